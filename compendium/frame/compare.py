"""Two runs side by side: which exhibits are equal, changed, missing or new, and which numbers moved."""

import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from compendium.frame.cells import ADDRESS, address, read_cells

MOST = 3  # changed numbers that a line names
NUMBERS = {"value": "", "lo": "_lo", "hi": "_hi"}  # what a cell holds, and how `MOVED` ends the column of it
MOVED = [*ADDRESS, "what", *(f"{side}{end}" for side in ("before", "after") for end in NUMBERS.values())]


@dataclass(frozen=True)
class Change:
    """One exhibit of two runs: `kind` is equal, changed, missing or new; `detail` says what moved."""

    file: str
    kind: str
    detail: str = ""


def compare(folder: Path, before, after, place_of) -> list[Change]:
    """Every exhibit of two manifests, in the order of the first.

    Parameters
    ----------
    folder : holds the exhibits of `before`, by their names.
    before, after : manifests, lists of {file, sha256, …}.
    place_of : name -> path of an exhibit of `after`.
    """
    hashes = {entry["file"]: entry["sha256"] for entry in after}
    changes = []
    for entry in before:
        name = entry["file"]
        if name not in hashes:
            changes.append(Change(name, "missing", "the re-run did not make it"))
        elif hashes.pop(name) == entry["sha256"]:
            changes.append(Change(name, "equal"))
        else:
            try:
                detail = _detail(folder / name, place_of(name))
            except (ValueError, OverflowError) as error:  # the old one may be anybody's
                detail = f"cannot be compared: {error}"
            changes.append(Change(name, "changed", detail))
    return changes + [Change(name, "new", "the certificate does not list it") for name in hashes]


def moved(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The numbers in which two cells tables differ, in the order of `before`, new ones last (columns `MOVED`).

    `what` is moved (the value or a bound differs beyond its 11th digit; 12 are written), gone, new, or another
    note; numbers are NaN on the side that has none.
    """
    keys = [*ADDRESS, *({"basis"} & set(before.columns) & set(after.columns))]
    old, new = (
        {tuple(row[name] for name in keys): row for row in frame.to_dict("records")}
        for frame in (before, after)
    )
    rows = []
    for key in {**old, **new}:
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            what = "new" if was is None else "gone"
        elif not all(_same(was[name], now[name]) for name in NUMBERS):
            what = "moved"
        elif was["note"] != now["note"]:
            what = "another note"
        else:
            continue
        numbers = {
            f"{side}{end}": float("nan") if row is None else row[name]
            for side, row in (("before", was), ("after", now))
            for name, end in NUMBERS.items()
        }
        rows.append({**dict(zip(ADDRESS, key)), "what": what, **numbers})
    return pd.DataFrame(rows, columns=MOVED)


def in_words(differing: pd.DataFrame) -> list[str]:
    """The rows of `moved` as people say them: "s/t[a, c] was 1, is 1.5"."""
    says = {
        "moved": "was {before}, is {after}",
        "gone": "is gone",
        "new": "is new",
        "another note": "has another note",
    }
    return [
        f"{address(row)} "
        + says[row["what"]].format(before=_shown(row, "before"), after=_shown(row, "after"))
        for row in differing.to_dict("records")
    ]


def _detail(before: Path, after: Path) -> str:
    """What differs between two versions of a file, as far as its kind allows to say."""
    if before.parts[-3:-2] == ("cells",) or before.name in ("cells.csv", "derived.csv"):
        said = in_words(moved(read_cells(before), read_cells(after)))
        if said:
            more = f"; and {len(said) - MOST} more" if len(said) > MOST else ""
            return "; ".join(said[:MOST]) + more
        return "the same numbers, other columns"
    if before.suffix in (".csv", ".tex", ".html"):
        old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
        differing = sum(a != b for a, b in zip(old, new)) + abs(len(old) - len(new))
        first = next(
            (line for line, (a, b) in enumerate(zip(old, new), 1) if a != b), min(len(old), len(new)) + 1
        )
        return f"{differing} of {len(old)} lines, the first is line {first}"
    return f"{len(before.read_bytes())} bytes then, {len(after.read_bytes())} now"


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-11) or (math.isnan(a) and math.isnan(b))


def _shown(row, side: str) -> str:
    value, lo, hi = (row[f"{side}{end}"] for end in NUMBERS.values())
    bounds = "" if math.isnan(lo) else f" [{lo:.6g}, {hi:.6g}]"
    return "missing" if math.isnan(value) else f"{value:.6g}{bounds}"
