"""The stages that make the game's data, whatever the source: portfolios, raw ratings, anchored ratings, the
keyed test.

source "simulated" and "endpoint" ask over HTTP and keep every reply in the study's ledger; "archive" loads
what was released (all ratings, and the counts of the keyed test).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.asking.study import ask_all
from compendium.frame.files import read_jsonl, write_jsonl
from compendium.studies.metanym.ask import exam_requests, generation_requests, judge_requests, raw_requests
from compendium.studies.metanym.evaluation import parse_batch, parse_evaluation
from compendium.studies.metanym.exam import lenient_answer, merge_stages
from compendium.studies.metanym.game import KEYS, SCORES, MetanymError
from compendium.studies.metanym.portfolio import parse_portfolio
from compendium.studies.metanym.release import load_archive, load_exam, load_unanchored

USUAL_PORTFOLIO = "word " * 5000  # a portfolio of usual length, for estimates
PORTFOLIO = ["run", "model", "text", "void"]
EXAM = ["model", "question", "key", "text", "prompt"]


@dataclass
class Stage:
    """What a stage made: `table`; `report` of asking (None where nothing was asked); `voids`, one row a
    request without a usable reply; `notes`, counts of repairs and oddities by kind."""

    table: pd.DataFrame
    report: object = None
    voids: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: pd.Series = field(default_factory=lambda: pd.Series(dtype=int))


def play(p, *, source: str, profile: str = "demo", out="build/lab") -> Stage:
    """Portfolios: a row a player and run (columns `PORTFOLIO`). None were released as a table: empty for
    "archive".
    """
    if source == "archive":
        return Stage(pd.DataFrame(columns=PORTFOLIO))
    requests = generation_requests(p)
    replies, report = _ask(requests, "playing", parse_portfolio, p, source, profile, out)
    rows = [
        {**request.tag, "text": reply.text, "void": reply.void_reason or ""}
        for request, reply in zip(requests, replies)
    ]
    return Stage(pd.DataFrame(rows, columns=PORTFOLIO), report, _voids(requests, replies))


def raw_pass(
    p, portfolios, *, source: str, profile: str = "demo", out="build/lab", mirror: str = ""
) -> Stage:
    """The un-anchored ratings, tidy; `anchor` is 0 there."""
    if source == "archive":
        return Stage(load_unanchored(list(p.players), p.spelling, p.strict, mirror))
    requests = raw_requests(p, portfolios)
    replies, report = _ask(
        requests, "un-anchored pass", lambda text: parse_batch(text, []), p, source, profile, out
    )
    parts = [
        evaluation.rows(min(p.runs), 0, request.tag["evaluator"], request.tag["ids"][key])
        for request, reply in zip(requests, replies)
        if reply.valid
        for key, evaluation in parse_batch(reply.text, request.tag["ids"]).items()
    ]
    return Stage(_joined(parts), report, _voids(requests, replies))


def judge(p, portfolios, *, source: str, profile: str = "demo", out="build/lab", mirror: str = "") -> Stage:
    """The anchored ratings, tidy (columns KEYS and SCORES of `compendium.studies.metanym.game`), for every run and
    anchor.
    """
    if source == "archive":
        return Stage(load_archive(list(p.players), p.spelling, p.strict, mirror, p.runs))
    requests = judge_requests(p, portfolios)
    replies, report = _ask(
        requests, "judging", lambda text: parse_evaluation(text, p.min_archetypes), p, source, profile, out
    )
    parts, notes = [], []
    for request, reply in zip(requests, replies):
        if reply.valid:
            evaluation = reply.parsed
            notes += [*evaluation.notes, *(["prose and block differ"] if evaluation.disagreements else [])]
            parts.append(evaluation.rows(**request.tag))
    return Stage(
        _joined(parts), report, _voids(requests, replies), pd.Series(notes, dtype=object).value_counts()
    )


def exam(p, questions, *, source: str, profile: str = "demo", out="build/lab") -> tuple[Stage, pd.DataFrame]:
    """The keyed test in two stages (D.2): (replies as columns `EXAM`, the second stage's report by model).

    First every question under the lower cap; then the void replies alone under the higher one.
    """
    tables, reports, only = [], [], None
    for cap in p.exam_tokens:
        requests = exam_requests(p, questions, cap, only)
        replies, report = _ask(requests, f"keyed test, {cap} tokens", None, p, source, profile, out)
        tables.append(
            pd.DataFrame(
                [
                    {**request.tag, "text": reply.raw or "", "prompt": request.messages[0]["content"]}
                    for request, reply in zip(requests, replies)
                ],
                columns=EXAM,
            )
        )
        reports.append(report)
        void = tables[0]["text"].map(lenient_answer).isna()
        only = set(zip(tables[0].loc[void, "model"], tables[0].loc[void, "question"]))
    patched, second = merge_stages(*tables)
    return Stage(patched[EXAM], reports[-1]), second


def exam_counts(p, mirror: str = "") -> pd.DataFrame:
    """The released counts of the keyed test, models x n, correct, void, accuracy, accuracy_given."""
    return load_exam(list(p.players), p.spelling, mirror)


def planned(p, out: Path) -> dict:
    """{stage: requests} of a live run; a portfolio that is not written yet is stood in for by one of usual
    length.

    What counts is what these params ask for, whatever an earlier run with other players or runs has left in
    `out`.
    """
    path = out / "metanym" / "portfolios.jsonl"
    there = read_portfolios(path) if path.is_file() else pd.DataFrame(columns=PORTFOLIO)
    written = {(row.run, row.model): row.text for row in there.itertuples() if row.text}
    table = pd.DataFrame(
        [(run, name, written.get((run, name), USUAL_PORTFOLIO), "") for run in p.runs for name in p.players],
        columns=PORTFOLIO,
    )
    return {
        "playing": generation_requests(p),
        "un-anchored pass": raw_requests(p, table),
        "judging": judge_requests(p, table),
        "keyed test": exam_requests(p, exam_questions(p.n_questions), p.exam_tokens[0]),
    }


def exam_questions(n: int) -> list:
    """The demo's keyed test, n questions on its closed world (right option first); GPQA's own are not ours to
    give.
    """
    from compendium.studies.metanym.simulated import questions  # the world belongs to the simulator

    return questions(n)


def write_portfolios(path, portfolios: pd.DataFrame) -> Path:
    """Portfolios as JSON lines {run, model, text, void}."""
    return write_jsonl(path, portfolios[PORTFOLIO].to_dict("records"))


def read_portfolios(path) -> pd.DataFrame:
    """Portfolios as `write_portfolios` wrote them. Raises MetanymError for a file that is none."""
    rows = read_jsonl(path, MetanymError, PORTFOLIO, "portfolios as JSON lines")
    return pd.DataFrame(rows, columns=PORTFOLIO)


def _ask(requests, label, parse, p, source, profile, out):
    """(replies, report)"""
    return ask_all(
        "metanym",
        requests,
        label,
        source=source,
        profile=profile,
        out=out,
        parse=parse,
        retries_on_invalid=p.retries_on_invalid,
    )


def _joined(parts) -> pd.DataFrame:
    return (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*KEYS, *SCORES], dtype=float)
    )


def _voids(requests, replies) -> pd.DataFrame:
    """Requests without a usable reply: their tags and why."""
    rows = [
        {**{key: value for key, value in request.tag.items() if np.isscalar(value)}, "why": reply.void_reason}
        for request, reply in zip(requests, replies)
        if not reply.valid
    ]
    return pd.DataFrame(rows)
