"""Two runs side by side: which exhibits are equal, changed, missing or new, and which numbers moved."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.cells import ADDRESS, address, read_cells

MOST = 3  # changed numbers that a line names


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
            changes.append(Change(name, "changed", _detail(folder / name, place_of(name))))
    return changes + [Change(name, "new", "the certificate does not list it") for name in hashes]


def moved(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Which numbers of two cells tables differ, in words: moved, gone, new."""
    keys = [*ADDRESS, *({"basis"} & set(before.columns) & set(after.columns))]
    old, new = (
        {tuple(row[name] for name in keys): row for row in frame.to_dict("records")}
        for frame in (before, after)
    )
    said = []
    for key, row in old.items():
        if key not in new:
            said.append(f"{address(row)} is gone")
        elif not all(_same(row[name], new[key][name]) for name in ("value", "lo", "hi")):
            said.append(f"{address(row)} was {_shown(row)}, is {_shown(new[key])}")
        elif row["note"] != new[key]["note"]:
            said.append(f"{address(row)} has another note")
    return said + [f"{address(row)} is new" for key, row in new.items() if key not in old]


def _detail(before: Path, after: Path) -> str:
    """What differs between two versions of a file, as far as its kind allows to say."""
    if before.parts[-3:-2] == ("cells",) or before.name in ("cells.csv", "derived.csv"):
        said = moved(read_cells(before), read_cells(after))
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


def _same(a, b) -> bool:
    return a == b or (_missing(a) and _missing(b))


def _missing(value) -> bool:
    return isinstance(value, float) and np.isnan(value)


def _shown(row) -> str:
    bounds = "" if _missing(row["lo"]) else f" [{row['lo']:.6g}, {row['hi']:.6g}]"
    return "missing" if _missing(row["value"]) else f"{row['value']:.6g}{bounds}"


def sha256(path: Path) -> str:
    """A file's SHA-256, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
