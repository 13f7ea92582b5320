"""AlienBench's ledger in the archive's layout and back: nothing changes on the way."""

import functools
import json

import pytest

from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import LedgerError
from compendium.asking.ledger import Ledger
from compendium.asking.replies import labels_from_reply
from compendium.asking.request import Request
from compendium.asking.stage import run_stage
from compendium.studies.alienbench import layout
from tests.compendium.asking.loopback import Loopback, completion

FEATURES = ("symmetry", "habitat")
PARSE = functools.partial(labels_from_reply, features=FEATURES)
MODELS, CONDITIONS, JUDGES = ("lab/one", "lab/two"), ("baseline", "constrained_ammonia"), ("lab/judge",)


def generation_requests():
    return [
        Request(
            model,
            [{"role": "user", "content": f"Imagine, {condition}."}],
            temperature=1.0,
            max_tokens=50,
            seed=i,
            sample=i,
            tag={"model": model, "condition": condition, "sample_index": i},
        )
        for model in MODELS
        for condition in CONDITIONS
        for i in range(3)
    ]


def judge_requests(generations):
    return [
        Request(
            judge,
            [{"role": "user", "content": f"Judge: {reply.text}"}],
            temperature=0.0,
            max_tokens=50,
            tag={
                "generation_id": layout.generation_id(request),
                "model": request.tag["model"],
                "condition": request.tag["condition"],
                "judge": judge,
            },
        )
        for judge in JUDGES
        for request, reply in generations
        if reply.valid
    ]


def answer(body, tries):
    """Descriptions, one of them empty; labels, some mended, some asked again, one never valid."""
    said, seed = body["messages"][-1]["content"], body.get("seed")
    if said.startswith("Imagine"):
        empty = seed not in (0, 1) and body["model"] == "lab/two" and "ammonia" in said
        return completion(
            "" if empty else f"A creature of {body['model']} ({said} {seed}) — ünusual",
            f"{body['model']}-20260305",
            finish="length" if seed == 1 else "stop",
        )
    number = sum(map(ord, said))
    labels = json.dumps(
        {
            name: {
                "feature_described": f"the {name}",
                "is_departure": (number + i) % 2 == 0,
                "reasoning": "It says so.",
            }
            for i, name in enumerate(FEATURES)
        }
    )
    if number % 5 == 0 or (number % 5 == 1 and seed is None):
        return completion(labels[:40], body["model"], finish="length")
    return completion(f"```json\n{labels}\n```" if number % 5 == 2 else labels, body["model"])


def study(server, path):
    """(ledger, generation requests and replies, judge requests and replies)."""
    ledger = Ledger(path)
    endpoint = Endpoint(server.url, None)
    asked = generation_requests()
    generations = list(run_stage(asked, endpoint, ledger).replies)
    judged = judge_requests(zip(asked, generations, strict=True))
    labels = list(run_stage(judged, endpoint, ledger, parse=PARSE).replies)
    return ledger, (asked, generations), (judged, labels)


def files(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.jsonl"))}


def cells(replies):
    return [
        (
            reply.key,
            reply.text if reply.parsed == reply.text else None,
            reply.parsed,
            reply.valid,
            reply.attempts,
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.model_resolved,
            reply.void_reason,
        )
        for reply in replies
    ]


def test_there_and_back(tmp_path):
    with Loopback(answer) as server:
        ledger, generations, labels = study(server, tmp_path / "a.sqlite")
        layout.export_generations(tmp_path / "out", *generations)
        layout.export_extractions(tmp_path / "out", *labels)
        calls = len(server.log)
        fresh = Ledger(tmp_path / "b.sqlite")
        with fresh.writing("loopback"):  # what is imported here stands for this endpoint's replies
            pass
        assert layout.import_generations(tmp_path / "out", generations[0], fresh) == 12
        assert layout.import_extractions(tmp_path / "out", labels[0], fresh) == 11
        assert layout.import_extractions(tmp_path / "out", labels[0], fresh) == 0
        fresh.close()
        _, again, labels_again = study(server, tmp_path / "b.sqlite")
        layout.export_generations(tmp_path / "back", *again)
        layout.export_extractions(tmp_path / "back", *labels_again)
    assert len(server.log) == calls  # nothing was asked again, void replies neither
    assert cells(generations[1]) == cells(again[1]) and cells(labels[1]) == cells(labels_again[1])
    assert not all(reply.valid for reply in labels[1]) and {reply.attempts for reply in labels[1]} == {
        1,
        2,
        3,
    }
    assert files(tmp_path / "out") == files(tmp_path / "back")
    assert len(files(tmp_path / "out")) == 4 + 4


def test_a_prompt_that_is_not_the_studys(tmp_path):
    with Loopback(answer) as server:
        ledger, generations, _ = study(server, tmp_path / "a.sqlite")
        (path, *_) = layout.export_generations(tmp_path / "out", *generations)
    path.write_text(path.read_text().replace("Imagine, baseline.", "Imagine, differently."))
    with pytest.raises(LedgerError, match="made with another prompt"):
        layout.import_generations(tmp_path / "out", generations[0], Ledger(tmp_path / "b.sqlite"))


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"id": "x"', "responses.jsonl, line 2: not a whole JSON object"),
        ("[1]", "responses.jsonl, line 2: should be a JSON object, is a list"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, words):
    (path,) = layout.write_rows(tmp_path, [("generations/m/baseline/responses.jsonl", {"id": "a"})])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(LedgerError, match=words):
        list(layout.read_rows(tmp_path, "**/*.jsonl"))
    with pytest.raises(LedgerError, match="holds no file"):
        list(layout.read_rows(tmp_path, "extractions/**/*.jsonl"))


def test_rows_have_the_archives_keys_in_the_archives_order(mirror, tmp_path):
    found = {"generations": [], "extractions": []}
    for path, row in layout.read_rows(mirror / "alienbench", "*/*gpt-5.4*/**/*.jsonl"):
        found[path.split("/")[0]].append(list(row))
    with Loopback(answer) as server:
        _, (asked, generations), (judged, labels) = study(server, tmp_path / "a.sqlite")
    assert list(layout.generation_row(asked[0], generations[0])[1]) in found["generations"]
    valid = next(place for place, reply in enumerate(labels) if reply.valid)
    assert {tuple(row) for row in found["extractions"]} == {layout.EXTRACTION_KEYS}
    assert list(layout.extraction_row(judged[valid], labels[valid])[1]) == list(layout.EXTRACTION_KEYS)


def test_the_archives_own_files_come_back_byte_for_byte(mirror, tmp_path):
    source = mirror / "alienbench"
    layout.write_rows(tmp_path, layout.read_rows(source, "*/*llama-4-maverick*/**/*.jsonl"))
    copied = files(tmp_path)
    assert len(copied) == 11
    for path, content in copied.items():
        assert content.rstrip(b"\n") == (source / path).read_bytes().rstrip(b"\n")


def test_labels_of_the_archive_are_read_as_they_are(mirror):
    """The parser takes every reply that the authors' parser took, and reads the same labels."""
    count = 0
    for _, row in layout.read_rows(mirror / "alienbench", "extractions/*/openai__gpt-5.4/*/*.jsonl"):
        said = {name: entry["is_departure"] for name, entry in row["features"].items()}
        found = labels_from_reply(json.dumps(row["features"]), tuple(said))
        assert (found.values, found.repairs, found.details) == (said, (), row["features"])
        count += 1
    assert count > 700
