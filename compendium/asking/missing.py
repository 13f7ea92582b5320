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
from compendium.frame.params import ACCEPT_MISSING, MISSING

FEWEST = 5  # requests of a stage from which on none with a valid reply means that something is wrong with all
QUOTED = 300  # characters of a reply, where one is shown


def check_complete(result, study: str, ledger: str, out: Path) -> None:
    """Raise MissingReplies where a stage has requests without a reply, or not one valid reply.

    Names models, counts and the first reason in the server's words, or the first reply. Where COMPENDIUM_ACCEPT_MISSING
    is set, leave a mark instead.
    """
    mark = (
        Path(out)
        / MISSING
        / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', f'{study}-{ledger}-{result.report.label}')}.jsonl"
    )
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
    said = " ".join(first.raw.split())
    said = "".join(char if char.isprintable() else "\ufffd" for char in said)
    quoted = f"{said[:QUOTED]!r}" if said else "no text"
    return (
        f"not one of {report.total('requests'):,} replies is what was asked for; the first, of "
        f"{first.model_requested}, is void ({first.void_reason}): {quoted}"
    )
