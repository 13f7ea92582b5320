"""CREATE: what the judges are asked and how their replies are read.

Specificity (section 4, "Quality Metric"): the judge estimates how many entities could stand at either end of
a triple and takes the larger class; `specificity` maps that size to 1 (many) … 5 (few). Factuality: one
verdict a triple. A reply that is not what was asked for raises `JudgementError`; nothing is filled in.
"""

import re

import numpy as np

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import extract_json
from compendium.studies.create.paths import decode

# Class sizes up to which a triple still scores 5, 4, 3, 2. Not printed in the text; recovered from 6,507
# pairs of estimate and score in the released files, which these limits separate without one exception.
SIZE_LIMITS = (10, 99, 499, 4999)
VERDICTS = {
    "not hallucinated": True,
    "factual": True,
    "true": True,
    "correct": True,
    "1": True,
    "hallucinated": False,
    "not factual": False,
    "false": False,
    "incorrect": False,
    "0": False,
}


class JudgementError(InvalidReply):
    """A judge's reply that does not hold what was asked for (`kind`); the message says what would be
    right."""


def specificity(sizes, limits=SIZE_LIMITS) -> np.ndarray:
    """Specificity scores 1 … 5, float of the shape of `sizes` (entities that could stand at the wider end).

    limits : four rising sizes; at most the first scores 5, more than the last scores 1. A missing size gives
        NaN.
    Raises ValueError for a negative size or limits that do not rise.
    """
    sizes, limits = np.asarray(sizes, dtype=float), np.asarray(limits, dtype=float)
    if limits.shape != (4,) or not (np.diff(limits) > 0).all():
        raise ValueError(f"limits {limits.tolist()} should be four rising class sizes")
    if (sizes < 0).any():
        raise ValueError(f"a class size is {np.nanmin(sizes):g}, should be 0 or more")
    scores = 5.0 - np.searchsorted(limits, sizes, side="left")
    return np.where(np.isnan(sizes), np.nan, scores)


def read_class_sizes(reply: str, length: int) -> list[float]:
    """One class size a triple from a judge's reply: [{"judgment": 150}, …], {"judgments": [150, …]} or [150,
    …].

    Raises JudgementError where there are not `length` sizes that are numbers of 0 or more.
    """
    sizes = [_size(entry) for entry in _entries(reply, "size")]
    if len(sizes) != length:
        raise JudgementError(
            "wrong count", f"{len(sizes)} class sizes for {length} triples, should be one a triple"
        )
    return sizes


def read_factuality(reply: str, length: int) -> list[bool]:
    """One verdict a triple: {"judgments": ["hallucinated" | "not hallucinated", …]}, in the triples' order.

    Raises JudgementError where there are not `length` verdicts, or for one that is neither.
    """
    verdicts = []
    for entry in _entries(reply, "verdict"):
        word = re.sub(r"\s+", " ", str(entry)).strip().lower()
        if word not in VERDICTS:
            raise JudgementError(
                "no verdict",
                f"the verdict {str(entry)[:40]!r} is neither 'hallucinated' nor 'not hallucinated'",
            )
        verdicts.append(VERDICTS[word])
    if len(verdicts) != length:
        raise JudgementError(
            "wrong count", f"{len(verdicts)} verdicts for {length} triples, should be one a triple"
        )
    return verdicts


def read_trace(reply: str) -> dict:
    """{"entities": set, "relations": set, "triples": set} named in a reasoning trace, from the extractor's
    reply.

    Names are compared in lower case. Raises JudgementError where the reply is no object with these lists.
    """
    value = extract_json(reply).values
    if not isinstance(value, dict):
        raise JudgementError(
            "wrong shape", "should be an object with the lists entities, relations and triples"
        )
    found = {}
    for name in ("entities", "relations", "triples"):
        if not isinstance(value.get(name), list):
            raise JudgementError("wrong shape", f"the list {name!r} is missing")
        found[name] = {
            tuple(str(part).strip().lower() for part in entry)
            if isinstance(entry, list)
            else str(entry).strip().lower()
            for entry in value[name]
        }
    return found


def read_number(value):
    """A number from 7, 7.0, "7", "7/10" or True; None where there is none."""
    if isinstance(value, str):
        value = value.strip().split("/")[0]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if np.isnan(number) else number


def read_flag(value):
    """True or False from 1, "1.0", "True", "not hallucinated" and the like; None where it is neither (0.5, -1)."""
    if isinstance(value, str):
        word = re.sub(r"[\s_-]+", " ", value).strip(" .").lower()
        if word in ("true", "yes", "valid", "factual", "not hallucinated", "correct"):
            return True
        if word in ("false", "no", "invalid", "not factual", "hallucinated", "incorrect"):
            return False
    return {0.0: False, 1.0: True}.get(read_number(value))


def _entries(reply: str, wanted: str) -> list:
    value = extract_json(reply).values
    if isinstance(value, dict):
        value = next(
            (value[name] for name in ("judgments", "judgements", "judgment", "scores") if name in value), None
        )
        value = decode(value)
        value = value if isinstance(value, list) else [value] if value is not None else None
    if not isinstance(value, list):
        raise JudgementError(
            "wrong shape", f"no list of judgments in {reply[:60]!r}; should hold one {wanted} a triple"
        )
    entries = []
    for entry in value:
        if isinstance(entry, dict):
            key = next(
                (name for name in ("judgment", "judgement", "estimate", "size") if name in entry), None
            )
            if key is None:
                raise JudgementError("wrong shape", f"an entry lacks its judgment: {str(entry)[:60]}")
            entry = entry[key]
        entries.append(entry)
    return entries


def _size(value) -> float:
    """A class size from 150, "150", "1,500" or "~150"."""
    text = str(value).strip().lstrip("~≈").replace(",", "").replace("_", "")
    try:
        size = float(text)
    except ValueError:
        raise JudgementError("no number", f"the class size {str(value)[:40]!r} is no number") from None
    if not np.isfinite(size) or size < 0:
        raise JudgementError("off scale", f"the class size is {size:g}, should be 0 or more")
    return size
