"""Cells: every number has an address (study, exhibit, row, column).

The printed side lies in data/published/<study>.csv, the computed side is written by the notebooks through
`compendium.frame.page.Page` into build/<profile>/. Both share `ADDRESS` and `VALUES`.
"""

import io
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.frame.files import read_utf8, read_yaml
from compendium.frame.paths import DATA, shown
from compendium.frame.verdict import EVIDENCE, SIGNS

ADDRESS = ["study", "exhibit", "row", "column"]
VALUES = ["value", "lo", "hi", "decimals", "note"]
COMPUTED = [*ADDRESS, *VALUES, "notebook", "cell"]
PUBLISHED = [*ADDRESS, *VALUES, "place", "kind", "tolerance", "archive", "print"]
KINDS = ("exact", "monte-carlo", "bound", "design")  # design: a choice that no data could show
COVERS = tuple(word for word in EVIDENCE if word != "printed")  # what is at hand in the profile released
# number: the paper prints it (in digits or in words); word: it prints a word such as "Pass"; nothing: a dash or an
# empty cell; file: it stands in a file released beside the paper
PRINTS = ("number", "word", "nothing", "file")
FINDINGS = ("contradiction", "reconcilable", "oddity")
NUMERIC = {"value": float, "lo": float, "hi": float, "decimals": "Int64"}


class CellsError(ValueError):
    """A cells table that cannot be used; the message names file, line or address, and what would be right."""


def read_cells(path) -> pd.DataFrame:
    """A cells CSV with typed columns (`value`, `lo`, `hi` float, NaN where empty; `decimals` Int64; text else).

    Raises CellsError for a missing file or column, a value that is no number, an address with an empty part or
    blanks around one, and an address given twice.
    """
    text = read_utf8(path, CellsError, "a CSV file")
    try:
        frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        if not isinstance(frame.index, pd.RangeIndex):
            raise pd.errors.ParserError("its rows have more entries than the first line has names")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise CellsError(
            f"{shown(path)}: not a CSV file: {str(error).strip()}; it should hold the columns "
            f"{', '.join(ADDRESS + VALUES)}"
        ) from None
    missing = [name for name in ADDRESS + VALUES if name not in frame.columns]
    if missing:
        raise CellsError(f"{shown(path)}: lacks the column {missing[0]!r}")
    for name, kind in {**NUMERIC, "tolerance": float}.items():
        if name in frame.columns:
            frame[name] = _numbers(frame[name], name, kind, path)
    for name in ADDRESS:
        _refuse(
            path,
            frame,
            (frame[name] == "") | (frame[name] != frame[name].str.strip()),
            lambda row: f"{name} is {row[name]!r}, should be a name without blanks around it",
        )
    _refuse(
        path,
        frame,
        frame.duplicated([*ADDRESS, *({"basis"} & set(frame.columns))]),
        lambda row: f"the address {address(row)} is given twice",
    )
    return frame


def published(study: str) -> pd.DataFrame:
    """The printed numbers of a study (columns `PUBLISHED`), one row a number, in the order of the paper.

    `archive` is the evidence at hand in the profile released, `print` what stands in the paper (see `PRINTS`).
    Raises CellsError as `read_cells`, and, naming the line, for a kind, an archive or a print that is not a known
    word, neither a value (with its decimals) nor a note that says why, half an interval, a bound whose note does
    not begin with its sign, and a tolerance that is no Monte Carlo quantity's or is missing there.
    """
    path = DATA / "published" / f"{study}.csv"
    frame = read_cells(path)
    missing = [name for name in PUBLISHED if name not in frame.columns]
    if missing:
        raise CellsError(f"{shown(path)}: lacks the column {missing[0]!r}")
    words = {"kind": KINDS, "archive": COVERS, "print": PRINTS, "study": (study,)}
    for name, known in words.items():
        _refuse(
            path,
            frame,
            ~frame[name].isin(known),
            lambda row: f"{name} is {row[name]!r}, should be one of {', '.join(known)}",
        )
    empty, drawn = frame["value"].isna(), frame["kind"] == "monte-carlo"
    _refuse(
        path,
        frame,
        empty & (frame["note"].str.strip() == ""),
        lambda row: "the value is missing; `note` should say what the paper prints instead",
    )
    _refuse(
        path, frame, ~empty & frame["decimals"].isna(), lambda row: "decimals is empty, should be as printed"
    )
    _refuse(
        path,
        frame,
        frame["lo"].isna() != frame["hi"].isna(),
        lambda row: "an interval needs both `lo` and `hi`",
    )
    _refuse(
        path,
        frame,
        (frame["kind"] == "bound") & ~frame["note"].str.startswith(tuple(SIGNS)),
        lambda row: (
            f"the note of a bound should begin with its sign, {', '.join(SIGNS)}; it is {row['note']!r}"
        ),
    )
    _refuse(
        path,
        frame,
        ~drawn & frame["tolerance"].notna() | drawn & ~(frame["tolerance"] >= 0),
        lambda row: (
            "a monte-carlo number needs a tolerance of at least 0"
            if row["kind"] == "monte-carlo"
            else "a tolerance belongs to a monte-carlo number alone"
        ),
    )
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


def findings(study: str) -> list[dict]:
    """What is on record about a paper against itself (empty where nothing is).

    An entry has id, title, kind (of `FINDINGS`), first and second (place, and a whole sentence as `quote`, or what
    a table, figure or file `shows`), finding, tried (the conventions and what each gave), independent (which other
    printed numbers bear on it) and rows (the [exhibit, row, column] of the printed numbers that it decides).
    Raises CellsError where the file holds no such list, an entry lacks a key or has another kind, or a
    contradiction or a reconcilable place does not say what was tried.
    """
    path = DATA / "published" / f"{study}_findings.yaml"
    if not path.exists():
        return []
    found = read_yaml(path, CellsError, list)
    for number, entry in enumerate(found, 1):
        problem = _problem(entry)
        if problem:
            raise CellsError(f"{shown(path)}, entry {number}: {problem}")
    return found


def held(study: str) -> dict:
    """What is at hand of a study: {evidence: a sentence for it}, and `lost`, the exhibits whose bodies the text copy
    of the paper lost; from data/published/held.yaml. Raises CellsError for an unknown key."""
    path = DATA / "published" / "held.yaml"
    entry = read_yaml(path, CellsError, dict).get(study, {}) if path.exists() else {}
    unknown = set(entry) - {*COVERS, "lost"}
    if unknown:
        raise CellsError(
            f"{shown(path)}, {study}: unknown key {sorted(unknown)[0]!r}, should be one of {', '.join(COVERS)}, lost"
        )
    return entry


def _problem(entry) -> str:
    """What is wrong with a finding; empty where nothing is."""
    if not isinstance(entry, dict):
        return "should be a mapping with id, title, kind, first, second, finding"
    sides = [entry.get(name) for name in ("first", "second")]
    if not (
        {"id", "title", "kind", "finding", "tried", "independent", "rows"} <= entry.keys()
        and all(
            isinstance(side, dict) and "place" in side and {"quote", "shows"} & side.keys() for side in sides
        )
    ):
        return (
            "should hold id, title, kind, finding, tried, independent, rows, and first and second with place "
            "and quote (or shows)"
        )
    if entry["kind"] not in FINDINGS:
        return f"kind is {entry['kind']!r}, should be one of {', '.join(FINDINGS)}"
    if entry["kind"] != "oddity" and not entry["tried"]:
        return f"a {entry['kind']} should say in `tried` which conventions were tried and what each gave"
    return ""


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


def _numbers(texts: pd.Series, name: str, kind, path) -> pd.Series:
    """Text to numbers, empty to missing; the first that is no (finite, for decimals whole) number is named."""
    filled = texts.str.strip() != ""
    numbers = pd.to_numeric(texts.where(filled), errors="coerce").astype(float)
    whole = kind != float
    wrong = filled & ~(np.isfinite(numbers) & ((numbers % 1 == 0) & (numbers >= 0) if whole else True))
    _refuse(
        path,
        texts.to_frame(name),
        wrong,
        lambda row: (
            f"{name} is {row[name]!r}, should be a "
            f"{'whole number of at least 0' if whole else 'number'} or empty"
        ),
    )
    return numbers.astype(kind)


def _refuse(path, frame: pd.DataFrame, wrong, why) -> None:
    """Raise CellsError with the line of the first row that is `wrong`, and what `why` says of it."""
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0])
        raise CellsError(f"{shown(path)}, line {line + 2}: {why(frame.iloc[line])}")
