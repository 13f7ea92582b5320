"""A stage that lacks replies: it stops the notebook, or goes on where that was asked for, and is not forgotten.

A notebook that stopped has made nothing, so the same command runs it again, and it asks for what is missing. Where
`--accept-missing` let it go on, a mark in <out>/missing makes the next run do the same.
"""

import os
import re
from collections import Counter
from pathlib import Path

from compendium.asking.errors import MissingReplies
from compendium.frame.files import write_jsonl
from compendium.frame.page import mark_nothing
from compendium.frame.params import ACCEPT_MISSING, MISSING

FEWEST = 5  # requests of a stage from which on none with a valid reply means that something is wrong with all
QUOTED = 300  # characters of a reply, where one is shown


def check_complete(result, study: str, ledger: str, out: Path) -> None:
    """Raise MissingReplies where a stage has requests without a reply, or not one valid reply.

    Names models, counts and the first reason in the server's words, or the first reply. Where COMPENDIUM_ACCEPT_MISSING
    is set, leave a mark instead.
    """
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{study}-{ledger}-{result.report.label}")
    mark = Path(out) / MISSING / f"{name}.jsonl"
    mark_nothing(out, name, study, result.report.label, _all_void_models(result))
    problem = _unanswered(result.report) or _all_void(result)
    if not problem:
        mark.unlink(missing_ok=True)
        return
    if not os.environ.get(ACCEPT_MISSING):
        raise MissingReplies(
            f"{result.report.label}: {problem}. The same command asks for what is missing; "
            "with ACCEPT_MISSING=1 it goes on without"
        )
    write_jsonl(mark, [{"study": study, "stage": result.report.label, "missing": problem}])


def _all_void_models(result) -> dict:
    """{model: its first reply} of the models none of whose replies was what was asked for."""
    found = {}
    for model, counts in result.report.outcomes.items():
        if counts["void"] and not counts["valid"]:
            first = next(r for r in result.replies if r.model_requested == model and r.void_reason)
            found[model] = (
                f"{counts['void']:,} of {counts['requests']:,} replies void, the first ({first.void_reason}): "
                f"{_quoted(first)}"
            )
    return found


def _quoted(reply) -> str:
    said = " ".join(reply.raw.split())
    said = "".join(char if char.isprintable() else "\ufffd" for char in said)
    return f"{said[:QUOTED]!r}" if said else "no text"


def _unanswered(report) -> str:
    lost = Counter({model: counts["unanswered"] for model, counts in report.outcomes.items()})
    if not lost.total():
        return ""
    models = "; ".join(
        f"{model} {count:,} (first: {report.first_reasons.get(model, 'not asked')})"
        for model, count in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))
        if count
    )
    return f"{lost.total():,} of {report.total('requests'):,} requests got no reply: {models}"


def _all_void(result) -> str:
    report = result.report
    if report.total("valid") or report.total("requests") < FEWEST:
        return ""
    first = result.replies[0]
    return (
        f"not one of {report.total('requests'):,} replies is what was asked for; the first, of "
        f"{first.model_requested}, is void ({first.void_reason}): {_quoted(first)}"
    )
