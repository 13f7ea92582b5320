"""Verdicts: what a printed number was compared with (evidence) and how that came out (outcome).

The one place that knows the words, decides them, and says how they look and in which order they stand.
`not equal` is said on whole evidence alone, `contradicts` only where a recorded finding of that kind names the
number, with what was tried: nobody is accused on part of the data, and no number moves towards the printed one.
"""

import operator
from typing import NamedTuple

import numpy as np
import pandas as pd

EVIDENCE = {
    "whole": "the paper's own run, all of it",
    "part": "part of the paper's own run",
    "other run": "another run than the paper's",
    "printed": "other numbers that the same paper prints",
    "none held": "no copy of the data at hand",
}
# outcome: (what it means, its sign, its colour on white, its colour on black), in the order of every summary and bar
LOOKS = {
    "equal": ("computed from the paper's own run, equal at the printed rounding", "✓", "#23744f", "#57b98a"),
    "within": ("a Monte Carlo quantity, inside its stated tolerance", "≈", "#527a12", "#9cc94d"),
    "agrees": ("follows from other printed numbers, within their rounding", "∴", "#2a6cab", "#6fb1ee"),
    "repeats": ("the same number printed in a second place", "=", "#3f7186", "#8fc1d4"),
    "reconcilable": (
        "does not follow at first sight, but under a convention that the paper names or allows",
        "~",
        "#8a6100",
        "#e0b64f",
    ),
    "not equal": ("computed from the paper's own run, all of it, and not equal", "≠", "#c0392b", "#f0806f"),
    "contradicts": (
        "cannot hold together with other printed numbers, whatever convention was tried",
        "✗",
        "#9b1c6b",
        "#f08ac8",
    ),
    "not computed": ("the printed number itself was not computed", "–", "#69707a", "#9aa1ab"),
}
OUTCOMES = tuple(LOOKS)
# how the note of a bound begins; the longer signs first
SIGNS = {
    "<=": operator.le,
    ">=": operator.ge,
    "≤": operator.le,
    "≥": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
DESIGN = "a choice of the design, which no data could show"
ASKED = {"demo": "simulated models", "live": "models asked now"}


class Verdict(NamedTuple):
    """Both halves of a verdict, why, the computed cell shown beside the printed number (None: none), and the id of
    the finding that decided (empty: none)."""

    evidence: str
    outcome: str
    why: str
    shown: dict | None
    finding: str = ""


def decide(printed, found, again, profile: str, finding=None, held=None) -> Verdict:
    """The verdict on one printed number.

    Parameters
    ----------
    printed : a row of `compendium.frame.cells.published`.
    found, again : what the run computed at its address, from data and from other printed numbers; None: nothing.
    profile : demo, released or live. Only released reads the authors' archives.
    finding : the recorded finding (`compendium.frame.cells.findings`) that names the number, if one does.
    held : {evidence: what is at hand of this study, and what its paper says exists}.
    """
    held, released = held or {}, profile == "released"
    if released and printed["archive"] == "whole" and _holds(found, printed):
        outcome = equality(printed, found)
        if outcome != "not equal":
            return Verdict("whole", outcome, found["note"], found)
        if finding and finding["kind"] == "reconcilable":
            outcome = "reconcilable"
        return Verdict("whole", outcome, _said(found["note"], _named(finding)), found, _id(finding))
    if _holds(again, printed):
        return _from_print(printed, again, finding)
    if printed["kind"] == "design" and found is None:
        return Verdict("none held", "not computed", DESIGN, None)
    if not released:
        if found is None:
            said = "this profile reads no archive" if profile == "demo" else "nothing was asked for it"
            return Verdict("none held", "not computed", said, None)
        return Verdict("other run", "not computed", _said(ASKED[profile], found["note"]), found)
    evidence, said = printed["archive"], held.get(printed["archive"], "")
    if evidence == "whole":
        said = "the archive covers it; no notebook computed it" if found is None else ""
    if evidence == "part" and _holds(found, printed):
        said = _said(_fits(printed, found), said)
    if evidence == "none held":  # a run of another profile's making is no evidence here
        found = None
    return Verdict(evidence, "not computed", _said(said, found["note"] if found else ""), found)


def equality(printed, found) -> str:
    """How a computed number stands to a printed one: equal, within or not equal.

    Equal at the printed rounding means nearer than half a unit of the last printed digit (a tie may round
    either way). A bound ("p < .001") is met by any number on its side; a printed interval must agree too.
    Where nothing was computed, only a printed "no value" is met.
    """
    if np.isnan(printed["value"]) or np.isnan(found["value"]):
        return "equal" if np.isnan(printed["value"]) and np.isnan(found["value"]) else "not equal"
    if printed["kind"] == "bound":
        return (
            "equal" if SIGNS[bound_sign(printed["note"])](found["value"], printed["value"]) else "not equal"
        )
    pairs = [(printed[name], found[name]) for name in ("value", "lo", "hi") if not np.isnan(printed[name])]
    half = half_unit(printed)
    if all(abs(value - other) <= half for value, other in pairs):
        return "equal"
    tolerance = printed["tolerance"]
    if printed["kind"] == "monte-carlo" and not np.isnan(tolerance):
        if all(abs(value - other) <= tolerance + half for value, other in pairs):
            return "within"
    return "not equal"


def consistent(printed, again) -> bool:
    """Whether a number recomputed from printed ones can be the printed one.

    Where the paper prints no interval, `lo` and `hi` of `again` are what the rounding of its inputs allows, and
    one common value is enough.
    """
    if equality(printed, again) != "not equal":
        return True
    if np.isnan(again["lo"]) or not np.isnan(printed["lo"]):
        return False
    if printed["kind"] == "bound":
        meets = SIGNS[bound_sign(printed["note"])]
        return any(meets(again[end], printed["value"]) for end in ("lo", "hi"))
    half = half_unit(printed)
    return again["lo"] - half <= printed["value"] <= again["hi"] + half


def half_unit(printed) -> float:
    """Half a unit of the last printed digit; 1e-9 more, so that a computed tie does not fail on the last bit."""
    decimals = 0 if pd.isna(printed["decimals"]) else int(printed["decimals"])
    return 0.5 * 10.0**-decimals * (1 + 1e-9) + 1e-12


def bound_sign(note: str) -> str:
    """The sign (of `SIGNS`) that a bound's note begins with."""
    return next(sign for sign in SIGNS if note.startswith(sign))


def summary(report: pd.DataFrame, study: str) -> str:
    """How a study's printed numbers came out, in one line: "printed 12: equal 7, not computed 5 (none held 5)"."""
    mine = report[report["study"] == study]
    counts = mine["outcome"].value_counts()
    said = [f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts.get(outcome)]
    without = mine.loc[mine["outcome"] == "not computed", "evidence"].value_counts()
    if len(without):
        said[-1] += f" ({', '.join(f'{word} {without[word]}' for word in EVIDENCE if without.get(word))})"
    return f"printed {len(mine)}: {', '.join(said)}"


def independent(report: pd.DataFrame) -> pd.DataFrame:
    """How many equations stand behind each count: study, outcome, rows, equations.

    Numbers that one relation decides carry one name in `equation`; a number that a text prints again counts with
    its first place.
    """
    made = report[report["outcome"] != "not computed"]
    found = made.groupby(["study", "outcome"], sort=False)["equation"].agg(rows="size", equations="nunique")
    order = {outcome: place for place, outcome in enumerate(OUTCOMES)}
    found = found.reset_index()
    studies = {study: place for place, study in enumerate(dict.fromkeys(report["study"]))}
    keys = found["study"].map(studies) * len(order) + found["outcome"].map(order)
    return found.loc[keys.sort_values().index].reset_index(drop=True)


def equation_of(printed, again) -> str:
    """The name of the relation behind a verdict: as the notebook gave it, else the number's own."""
    named = "" if again is None else again.get("equation", "")
    if isinstance(named, str) and named:
        return named
    own = [printed["row"], printed["column"]]
    return " ".join(own if printed["exhibit"].startswith("text-") else [printed["exhibit"], *own])


def stylesheet() -> str:
    """The outcomes' colours as CSS, light and dark: `.s.agrees` a mark, `.bar .agrees` a part of a bar."""
    names = {outcome: outcome.replace(" ", "-") for outcome in OUTCOMES}
    light, dark = (
        "".join(f"--{names[outcome]}:{LOOKS[outcome][place]};" for outcome in OUTCOMES) for place in (2, 3)
    )
    marks = "".join(
        f".s.{name},.bar .{name}{{background:var(--{name})}}.s.{name}{{color:var(--mark-ink)}}"
        for name in names.values()
    )
    dark += "--mark-ink:#10151b"
    return (
        f":root{{{light}--mark-ink:#fff}}html[data-theme=dark]{{{dark}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme]){{{dark}}}}}{marks}"
        ".bar{display:flex;height:.7rem;min-width:8rem;border-radius:4px;overflow:hidden;gap:1px;margin:.35rem 0}"
        ".bar span{min-width:3px;flex-basis:0}"
        ".s{display:inline-block;border-radius:999px;padding:0 .55em;font-size:.82rem;line-height:1.5;"
        "white-space:nowrap}.s i{font-style:normal;font-weight:700}"
    )


def _from_print(printed, again, finding) -> Verdict:
    """The verdict where other printed numbers determine this one."""
    if consistent(printed, again):
        outcome = "repeats" if again.get("basis") == "repeated" else "agrees"
        return Verdict("printed", outcome, again["note"], again)
    kind = finding["kind"] if finding else ""
    if kind in ("contradiction", "reconcilable"):
        outcome = "contradicts" if kind == "contradiction" else "reconcilable"
        return Verdict("printed", outcome, _said(again["note"], _named(finding)), again, _id(finding))
    why = _said(again["note"], "not the printed number, and no finding says what was tried")
    return Verdict("printed", "not computed", why, again)


def _fits(printed, found) -> str:
    """Whether what the part allows for the whole (its interval) holds the printed number, in words."""
    if np.isnan(found["lo"]) or not np.isnan(printed["lo"]):
        return ""
    if found["lo"] - half_unit(printed) <= printed["value"] <= found["hi"] + half_unit(printed):
        return "consistent with the printed number"
    return "outside what this part allows; the rest of the run is not at hand"


def _holds(cell, printed) -> bool:
    """Whether a cell says anything about a printed number: a missing value only answers a missing one."""
    return cell is not None and not (np.isnan(cell["value"]) and not np.isnan(printed["value"]))


def _named(finding) -> str:
    return f"see the finding “{finding['title']}”" if finding else ""


def _id(finding) -> str:
    return finding["id"] if finding else ""


def _said(*texts) -> str:
    return "; ".join(filter(None, texts))
