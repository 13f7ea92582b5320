"""AlienBench: the two stages that make the data, whatever the source: descriptions, then labels."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compendium.asking.replies import labels_from_reply
from compendium.asking.study import ask_all
from compendium.frame.archive import Archive
from compendium.frame.files import read_jsonl, write_jsonl
from compendium.frame.params import check_source
from compendium.studies.alienbench import data as alienbench
from compendium.studies.alienbench.ask import (
    generation_requests,
    generations_frame,
    judge_requests,
    labels_frame,
    samples,
)
from compendium.studies.alienbench.data import KEYS

USUAL_TEXT = "word " * 900  # a description of usual length, for estimates


@dataclass
class Stage:
    """What a stage made: `table`, and for generations their `texts` {id: text}; how it went (`report`, None for an
    archive) and what an archive's loading left out (`left_out`, empty otherwise)."""

    table: pd.DataFrame
    texts: dict = field(default_factory=dict)
    report: object = None
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)


def generate(p, *, source: str, profile: str, out, mirror: str = "") -> Stage:
    """Ask the subject models (and, simulated, the people) for descriptions, or load the archive's.

    `p` holds subjects, judges, features, conditions, wordings, n_samples, n_samples_paraphrase, n_human, seed,
    temperature, max_tokens (params/alienbench.yaml). Raises ValueError where no model wrote anything.
    """
    counts = samples(p.conditions, p.wordings, p.n_samples, p.n_samples_paraphrase)
    if check_source(source) == "archive":
        return _from_archive(p, counts, mirror)[0]
    people = p.n_human if source == "simulated" else 0
    requests = generation_requests(
        p.subjects, counts, seed=p.seed, temperature=p.temperature, max_tokens=p.max_tokens, n_human=people
    )
    replies, report = ask_all("alienbench", requests, "generating", source=source, profile=profile, out=out)
    table, texts = generations_frame(requests, replies)
    if table.empty:
        raise ValueError(
            f"none of {len(requests)} requests for a description got one; the first: {replies[0].void_reason}"
        )
    return Stage(table, dict(zip(table["generation_id"], texts)), report)


def judge(
    p, generations: pd.DataFrame, texts: dict, *, source: str, profile: str, out, mirror: str = ""
) -> Stage:
    """Ask every judge about every description, or load the archive's labels.

    `texts` is {generation id: description}; an answer that cannot be used is asked again `p.retries_on_invalid`
    times and then void (its labels missing).
    """
    if check_source(source) == "archive":
        counts = samples(p.conditions, p.wordings, p.n_samples, p.n_samples_paraphrase)
        return _from_archive(p, counts, mirror)[1]
    features = list(p.features)
    requests = judge_requests(
        generations,
        [texts[key] for key in generations["generation_id"]],
        p.judges,
        max_tokens=p.judge_max_tokens,
        features=features,
    )
    replies, report = ask_all(
        "alienbench",
        requests,
        "judging",
        source=source,
        profile=profile,
        out=out,
        parse=lambda text: labels_from_reply(text, features),
        retries_on_invalid=p.retries_on_invalid,
    )
    return Stage(labels_frame(requests, replies, features), report=report)


def planned(p, out: Path) -> dict:
    """{stage: requests} of a live run; one of usual length stands in for a description that is not written yet.

    What counts is what these params ask for, whatever an earlier run with another roster or N has left in `out`.
    """
    counts = samples(p.conditions, p.wordings, p.n_samples, p.n_samples_paraphrase)
    asked = generation_requests(
        p.subjects, counts, seed=p.seed, temperature=p.temperature, max_tokens=p.max_tokens
    )
    generations = pd.DataFrame(
        [{"generation_id": request.key[:32], **request.tag} for request in asked], columns=KEYS[:4]
    )
    path = out / "alienbench" / "texts.jsonl"
    written = read_texts(path) if path.is_file() else {}
    texts = [written.get(key, USUAL_TEXT) for key in generations["generation_id"]]
    return {
        "generating": asked,
        "judging": judge_requests(
            generations, texts, p.judges, max_tokens=p.judge_max_tokens, features=p.features
        ),
    }


def write_texts(path, texts: dict) -> Path:
    """Descriptions as JSON lines {generation_id, text}."""
    return write_jsonl(path, ({"generation_id": key, "text": text} for key, text in texts.items()))


def read_texts(path) -> dict:
    """{generation id: description}, as `write_texts` wrote it."""
    return {row["generation_id"]: row["text"] for row in read_jsonl(path, keys=("generation_id", "text"))}


def _from_archive(p, counts, mirror) -> tuple[Stage, Stage]:
    archive = Archive("alienbench", mirror or None)
    generations, labels, left_out = alienbench.load_archive(
        archive, subjects=p.subjects, judges=p.judges, features=p.features, samples=counts
    )
    texts = alienbench.archive_texts(archive, generations)
    return Stage(generations, texts, left_out=left_out), Stage(labels, left_out=left_out)
