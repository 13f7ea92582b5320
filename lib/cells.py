"""Cells: every number has an address (study, exhibit, row, column).

The printed side lies in data/published/<study>.csv, the computed side is written by the notebooks through
`lib.page.Page` into build/<profile>/. Both share `ADDRESS` and `VALUES`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from lib.paths import DATA, shown

ADDRESS = ["study", "exhibit", "row", "column"]
VALUES = ["value", "lo", "hi", "decimals", "note"]
COMPUTED = [*ADDRESS, *VALUES, "notebook", "cell"]
PUBLISHED = [*ADDRESS, *VALUES, "place", "kind", "tolerance", "archive"]
KINDS = ("exact", "monte-carlo", "bound")
COVERS = ("same", "other run", "none")
NUMERIC = {"value": float, "lo": float, "hi": float, "decimals": "Int64"}


class CellsError(ValueError):
    """A cells table that cannot be used; the message names file, line or address, and what would be right."""


def read_cells(path) -> pd.DataFrame:
    """A cells CSV with typed columns (`value`, `lo`, `hi` float, NaN where empty; `decimals` Int64; text else).

    Raises CellsError for a missing file or column, a value that is no number, or an address given twice.
    """
    path = Path(path)
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise CellsError(f"{shown(path)}: no such file; it should hold the columns {', '.join(ADDRESS + VALUES)}"
                         ) from None
    except pd.errors.ParserError as error:
        raise CellsError(f"{shown(path)}: not a CSV file: {error}") from None
    missing = [name for name in ADDRESS + VALUES if name not in frame.columns]
    if missing:
        raise CellsError(f"{shown(path)}: lacks the column {missing[0]!r}")
    for name, kind in {**NUMERIC, "tolerance": float}.items():
        if name in frame.columns:
            frame[name] = _numbers(frame[name], name, kind, path)
    repeated = frame.duplicated([*ADDRESS, *({"basis"} & set(frame.columns))])
    if repeated.any():
        line = int(np.flatnonzero(repeated)[0])
        raise CellsError(f"{shown(path)}, line {line + 2}: the address {address(frame.iloc[line])} is given twice")
    return frame


def published(study: str) -> pd.DataFrame:
    """The printed numbers of a study (columns `PUBLISHED`), one row a number, in the order of the paper.

    Raises CellsError as `read_cells`, and for a kind or an archive cover that is not a known word.
    """
    path = DATA / "published" / f"{study}.csv"
    frame = read_cells(path)
    missing = [name for name in PUBLISHED if name not in frame.columns]
    if missing:
        raise CellsError(f"{shown(path)}: lacks the column {missing[0]!r}")
    for name, known in (("kind", KINDS), ("archive", COVERS), ("study", (study,))):
        wrong = ~frame[name].isin(known)
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0])
            raise CellsError(f"{shown(path)}, line {line + 2}: {name} is {frame[name].iloc[line]!r}, "
                             f"should be one of {', '.join(known)}")
    return frame


def study_cells(folder, study: str) -> pd.DataFrame:
    """What the notebooks of a study computed (the cells files in `folder`), one table.

    With an empty `folder`: the printed numbers instead, so that a notebook of tables can be run on its own.
    Raises CellsError where the folder holds no cells.
    """
    if not folder:
        return published(study)
    frames = [frame for frame in map(read_cells, sorted(Path(folder).glob("*.csv"))) if len(frame)]
    frames = [frame[frame["basis"] == "data"] for frame in frames]
    if not frames:
        raise CellsError(f"{shown(folder)}: no cells yet; run the study's notebooks before this one")
    return pd.concat(frames, ignore_index=True)


def address(row) -> str:
    """`study/exhibit[row, column]`, the address as people read it."""
    return f"{row['study']}/{row['exhibit']}[{row['row']}, {row['column']}]"


def contradictions(study: str) -> list[dict]:
    """The recorded contradictions of a paper with itself (empty where none are recorded)."""
    path = DATA / "published" / f"{study}_contradictions.yaml"
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or []) if path.is_file() else []


def agreement(printed, found) -> str:
    """How a computed number stands to a printed one: reproduced, within or differs.

    Equal at the printed rounding means nearer than half a unit of the last printed digit (a tie may round
    either way). A bound ("p < .001") is met by any smaller number; a printed interval must agree too.
    """
    pairs = [(printed[name], found[name]) for name in ("value", "lo", "hi") if not np.isnan(printed[name])]
    if printed["kind"] == "bound":
        below = printed["note"].startswith("<")
        return "reproduced" if (found["value"] < printed["value"]) == below else "differs"
    half = 0.5 * 10.0 ** -_decimals(printed)
    # 1e-9 of a unit: a computed tie must not fail on the last binary digit
    if all(abs(value - other) <= half * (1 + 1e-9) + 1e-12 for value, other in pairs):
        return "reproduced"
    tolerance = printed["tolerance"]
    if printed["kind"] == "monte-carlo" and not np.isnan(tolerance):
        if all(abs(value - other) <= tolerance + half for value, other in pairs):
            return "within"
    return "differs"


def grid(cells: pd.DataFrame, exhibit: str, value: str = "value") -> pd.DataFrame:
    """One exhibit as a table: rows and columns in order of appearance, entries `value` (or "lo", "hi", "note").

    Raises CellsError where no cell belongs to the exhibit.
    """
    part = cells[cells["exhibit"] == exhibit]
    if part.empty:
        known = ", ".join(dict.fromkeys(cells["exhibit"])) or "none"
        raise CellsError(f"no cells for exhibit {exhibit!r}; there are: {known}")
    wide = part.pivot(index="row", columns="column", values=value)
    return wide.reindex(index=part["row"].unique(), columns=part["column"].unique())


def value_of(cells: pd.DataFrame, exhibit: str, row: str, column: str) -> float:
    """The value at one address. Raises CellsError where there is none."""
    part = cells[(cells["exhibit"] == exhibit) & (cells["row"] == row) & (cells["column"] == column)]
    if len(part) != 1:
        raise CellsError(f"no cell at {exhibit}[{row}, {column}]")
    return float(part["value"].iloc[0])


def _decimals(printed) -> int:
    return 0 if pd.isna(printed["decimals"]) else int(printed["decimals"])


def _numbers(texts: pd.Series, name: str, kind, path: Path) -> pd.Series:
    """Text to numbers, empty to missing; the first text that is no number is named with its line."""
    filled = texts.str.strip() != ""
    numbers = pd.to_numeric(texts.where(filled), errors="coerce")
    wrong = filled & numbers.isna()
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0])
        raise CellsError(f"{shown(path)}, line {line + 2}: {name} is {texts.iloc[line]!r}, should be a number or empty")
    return numbers.astype(kind)
