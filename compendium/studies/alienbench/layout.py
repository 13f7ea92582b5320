"""AlienBench: a ledger as the authors' archive lays its data out, and back.

    generations/<model>/<condition>/responses.jsonl
    extractions/<judge>/<model>/<condition>/features.jsonl

Slashes in names become "__" in folders; `generation_id` joins the two. A row has the archive's keys in the
archive's order; keys of our own (`EXTRA`) follow only where a reply is out of the ordinary (re-asked, void,
cut off), so that nothing is lost on the way back.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from compendium.asking.errors import LedgerError
from compendium.asking.ledger import Ledger
from compendium.frame.files import read_jsonl, write_jsonl
from compendium.frame.paths import shown

GENERATION_KEYS = (
    "id",
    "model",
    "model_resolved",
    "call_id",
    "prompt_variant",
    "prompt_text",
    "response",
    "temperature",
    "seed",
    "timestamp",
    "prompt_tokens",
    "completion_tokens",
    "duration_seconds",
    "sample_index",
)
EXTRACTION_KEYS = (
    "generation_id",
    "judge_model",
    "judge_model_resolved",
    "judge_call_id",
    "subject_model",
    "prompt_variant",
    "timestamp",
    "features",
    "parse_error",
    "raw_response",
    "prompt_tokens",
    "completion_tokens",
    "n_parse_attempts",
    "duration_seconds",
)
EXTRA = ("n_attempts", "finish_reason", "void_reason")
STAGE = "imported"


def folder(name: str) -> str:
    """A model's name as the archive's folders spell it."""
    return name.replace("/", "__")


def generation_id(request) -> str:
    """The id of a generation: the first half of its request's key."""
    return request.key[:32]


def generation_row(request, reply) -> tuple:
    """(path, row) of a generation. `request.tag` holds model, condition and sample_index."""
    tag = request.tag
    row = dict(
        zip(
            GENERATION_KEYS,
            (
                generation_id(request),
                tag["model"],
                reply.model_resolved,
                reply.call_id,
                tag["condition"],
                request.messages[-1]["content"],
                reply.raw,
                request.temperature,
                reply.seed,
                reply.created,
                reply.prompt_tokens,
                reply.completion_tokens,
                reply.latency,
                tag["sample_index"],
            ),
            strict=True,
        )
    )
    extra = {"n_attempts": reply.attempts} if reply.attempts > 1 else {}
    return (
        f"generations/{folder(tag['model'])}/{tag['condition']}/responses.jsonl",
        {**row, **extra, **_unusual(reply)},
    )


def extraction_row(request, reply) -> tuple:
    """(path, row) of a judge's labels. `request.tag` holds generation_id, model, condition and judge."""
    tag = request.tag
    row = dict(
        zip(
            EXTRACTION_KEYS,
            (
                tag["generation_id"],
                tag["judge"],
                reply.model_resolved,
                reply.call_id,
                tag["model"],
                tag["condition"],
                reply.created,
                reply.details or {},
                not reply.valid,
                None if reply.valid else reply.raw,
                reply.prompt_tokens,
                reply.completion_tokens,
                reply.attempts,
                reply.latency,
            ),
            strict=True,
        )
    )
    return (
        f"extractions/{folder(tag['judge'])}/{folder(tag['model'])}/{tag['condition']}/features.jsonl",
        {**row, **_unusual(reply)},
    )


def export_generations(root, requests: Iterable, replies: Iterable) -> list:
    """Write generations below `root`; requests that no reply ever came to have no row. Returns the files."""
    return write_rows(root, _rows(generation_row, requests, replies))


def export_extractions(root, requests: Iterable, replies: Iterable) -> list:
    """Write judges' labels below `root` (`replies` parsed by `labels_from_reply`). Returns the files."""
    return write_rows(root, _rows(extraction_row, requests, replies))


def import_generations(root, requests: Iterable, ledger: Ledger) -> int:
    """Put the generations below `root` into a ledger, as replies to the study's `requests`; returns how many.

    A row is matched by model, condition and sample index, and its prompt and temperature must be the
    request's. Rows that no request asks for stay out. Raises LedgerError for a malformed line or a row of
    another prompt.
    """
    wanted = {(r.tag["model"], r.tag["condition"], r.tag["sample_index"]): r for r in requests}
    found = []
    for path, row in read_rows(root, "generations/*/*/responses.jsonl"):
        request = wanted.get((row["model"], row["prompt_variant"], row["sample_index"]))
        if request is None:
            continue
        asked = (request.messages[-1]["content"], request.temperature)
        if (row["prompt_text"], row["temperature"]) != asked:
            raise LedgerError(
                f"{shown(Path(root) / path)}: generation {row['id']} was made with another prompt or "
                "temperature than the study asks for"
            )
        found.append(
            (
                request,
                _stored(
                    request,
                    row,
                    row["model_resolved"],
                    row["call_id"],
                    row["response"],
                    row.get("n_attempts", 1),
                    row["seed"],
                ),
            )
        )
    return _store(ledger, found)


def import_extractions(root, requests: Iterable, ledger: Ledger) -> int:
    """Put the labels below `root` into a ledger, as replies to the judges' `requests`; returns how many.

    Matched by judge and generation id. The archive keeps a valid reply's labels, not its wording: the text
    stored is those labels as JSON, which `labels_from_reply` reads as they are.
    """
    wanted = {(r.tag["judge"], r.tag["generation_id"]): r for r in requests}
    found = []
    for _, row in read_rows(root, "extractions/*/*/*/features.jsonl"):
        request = wanted.get((row["judge_model"], row["generation_id"]))
        if request is not None:
            text = row["raw_response"] if row["raw_response"] is not None else json.dumps(row["features"])
            found.append(
                (
                    request,
                    _stored(
                        request,
                        row,
                        row["judge_model_resolved"],
                        row["judge_call_id"],
                        text,
                        row["n_parse_attempts"],
                        request.seed,
                    ),
                )
            )
    return _store(ledger, found)


def _rows(make, requests, replies):
    for request, reply in zip(requests, replies, strict=True):
        if reply.attempts:
            yield make(request, reply)


def _unusual(reply) -> dict:
    extra = {}
    if reply.finish_reason != "stop":
        extra["finish_reason"] = reply.finish_reason
    if not reply.valid:
        extra["void_reason"] = reply.void_reason
    return extra


def _stored(request, row, resolved, call, text, attempts, seed) -> dict:
    """A ledger's row for a reply of the archive; what the archive does not hold stays unknown."""
    return {
        "request": request.digest,
        "attempt": attempts - 1,
        "stage": STAGE,
        "model": request.model,
        "model_resolved": resolved,
        "sample": request.sample,
        "seed": seed,
        "text": text,
        "reasoning": None,
        "refusal": None,
        "finish_reason": row.get("finish_reason", "stop"),
        "prompt_tokens": row["prompt_tokens"],
        "completion_tokens": row["completion_tokens"],
        "reasoning_tokens": None,
        "usage_estimated": 0,
        "cost": None,
        "latency": row["duration_seconds"],
        "tries": None,
        "call_id": call,
        "created": row["timestamp"],
    }


def _store(ledger, found) -> int:
    """Write rows for requests that the ledger has no reply to."""
    known = ledger.have([request.digest for request, _ in found])
    fresh = {
        request.digest: ("reply", row, request.content)
        for request, row in found
        if request.digest not in known
    }
    with ledger.writing():
        ledger.commit(list(fresh.values()))
    return len(fresh)


def write_rows(root, rows) -> list:
    """Rows, (path below root, dict) each, to their files; the paths, sorted."""
    files = {}
    for path, row in rows:
        files.setdefault(str(path), []).append(row)
    return [write_jsonl(Path(root) / path, lines, ascii=True) for path, lines in sorted(files.items())]


def read_rows(root, pattern):
    """(path below root, row) of the files that match, sorted. Raises LedgerError where there is none."""
    paths = sorted(Path(root).glob(pattern))
    if not paths:
        raise LedgerError(f"{shown(root)}: holds no file {pattern}")
    for path in paths:
        for row in read_jsonl(path, LedgerError):
            yield path.relative_to(root).as_posix(), row
