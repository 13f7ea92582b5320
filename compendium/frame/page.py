"""The page a notebook writes on: its cells, tables, figures and files, each in the one place it belongs.

A notebook opens a `Page`, puts numbers at their addresses while it argues, and closes it. Nothing is
written to the cells file before `close`, so a notebook that fails half-way leaves no half table behind.
"""

import os
import zlib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from compendium.frame import cells as cells_module
from compendium.frame.files import atomic_write, marks, write_csv_atomic, write_jsonl
from compendium.frame.params import MISSING, ParamsError, check_given, study_params
from compendium.frame.paths import ACROSS, STUDIES, check_place, figures_folder, from_root

VOIDS = "void"  # the folder of marks below a run's: which models gave nothing usable
FEW = "undefined: too few replies or models in this run"


class Page:
    """The outputs of one notebook.

    Parameters
    ----------
    study, name : e.g. "alienbench", "03_scores" (the notebook's own file name without ending).
    profile : demo, released or live; decides where figures go.
    out : folder of everything else, relative to the project's root; the chain passes build/<profile>,
        a notebook run by hand writes to build/lab and never disturbs the chain's results.

    `missing` says why a value may be missing in this notebook, for those without a note of their own (empty:
    there is no reason, and a missing value is refused). In a live run there always is one: the models that gave
    nothing usable, or too few replies or models; what is infinite for want of spread is missing there too.
    """

    def __init__(self, study: str, name: str, *, profile: str = "demo", out: str = "build/lab"):
        if study not in (*STUDIES, "compendium"):
            raise cells_module.CellsError(f"study {study!r} is not one of {', '.join(STUDIES)}")
        check_place()
        if study in STUDIES:
            check_given(study, profile, _ran())
        self.study, self.name, self.profile = study, name, profile
        self.out = from_root(out)
        self.figures = figures_folder(self.out) / study
        self._rows, self._taken = [], set()
        self._missing, self._live = "", profile == "live"

    @property
    def missing(self) -> str:
        """Why a value may be missing."""
        return self._missing or (nothing_usable(self.out, self.study) or FEW if self._live else "")

    @missing.setter
    def missing(self, reason: str):
        self._missing = reason

    def cell(self, exhibit, row, column, value, *, lo=None, hi=None, decimals=None, note=""):
        """Put one computed number at its address.

        `value` may be missing (None or NaN) only with a `note` saying why. Raises CellsError for a value
        without a number or note, and for an address this notebook has filled already.
        """
        self._put("data", exhibit, row, column, value, lo, hi, decimals, note)

    def cells(self, exhibit, frame: pd.DataFrame, *, note=""):
        """Put a whole table: index = rows, columns = columns; intervals go by `cell`.

        Entries that are missing get the note "undefined" unless `note` says more.
        """
        for row in frame.index:
            for column in frame.columns:
                value = frame.at[row, column]
                said = note or (self.missing or "undefined" if pd.isna(value) else "")
                self.cell(exhibit, row, column, value, note=said)

    def derived(self, exhibit, row, column, value, *, lo=None, hi=None, note="", equation="", repeats=False):
        """Put a number recomputed from others that the same paper prints, at the printed number's address.

        `value` comes from the printed midpoints; where the paper prints no interval, `lo` and `hi` say what the
        rounding of the inputs allows. `equation` names the relation where it decides several numbers; `repeats`:
        the same number, printed in another place.
        """
        basis = "repeated" if repeats else "printed"
        self._put(basis, exhibit, row, column, value, lo, hi, None, note, equation)

    def says(self, text: str) -> None:
        """Show a Markdown sentence whose numbers were computed, as prose."""
        from IPython.display import Markdown, display  # not where only cells are written

        display(Markdown(text))

    def holds(self, sentence: str, true, instead: str = "") -> None:
        """Show a Markdown sentence about what was computed where it is true; where it is not, struck out, and after
        it `instead`: what holds here. Raises TypeError where `true` is not one truth value (NaN and arrays are
        none).
        """
        if not isinstance(true, (bool, np.bool_)):
            raise TypeError(f"whether {sentence!r} holds should be True or False, not {true!r}")
        self.says(sentence if true else f"~~{sentence.strip()}~~ {instead}".rstrip())

    @property
    def cells_path(self) -> Path:
        """Where `close` writes this notebook's cells."""
        return self.out / "cells" / self.study / f"{self.name}.csv"

    def close(self) -> None:
        """Write this notebook's cells to `cells_path`.

        In a live run that went on without some replies (`--accept-missing`), each computed cell's note says so.
        """
        lacking = accepted(self.out, self.study) if self._live else ""
        for row in self._rows if lacking else ():
            if row[9] == "data":
                row[8] = f"{row[8]}; {lacking}" if row[8] else lacking
        columns = [*cells_module.ADDRESS, *cells_module.VALUES, "basis", "equation", "notebook", "execution"]
        write_csv_atomic(self.cells_path, pd.DataFrame(self._rows, columns=columns))

    def params(self, **given):
        """The values of params keys: what the notebook was given, and for each None what params/<study>.yaml says.

        Raises ParamsError for a name that is no key of the study.
        """
        known = study_params(self.study, self.profile)
        for name in given:
            if name not in known:
                raise ParamsError(
                    f"{name!r} is no key of params/{self.study}.yaml; it has {', '.join(known)}"
                )
        return SimpleNamespace(
            **{name: known[name] if value is None else value for name, value in given.items()}
        )

    def rng(self, seed: int, label: str) -> np.random.Generator:
        """A generator of its own for one use: the same draws whatever else the notebook draws, in any order."""
        return np.random.default_rng([seed, zlib.crc32(f"{self.study}/{label}".encode())])

    def gave_nothing(self, stage: str, models: dict) -> None:
        """Tell a live run that these models gave nothing to work on: {model: why}. What then lacks input is folded away."""
        if self._live:
            mark_nothing(self.out, f"{self.study}-{self.name}", self.study, stage, models)

    def path(self, relative) -> Path:
        """A path below this run's folder, its parent made."""
        path = self.out / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def save_csv(self, frame: pd.DataFrame, relative, index: bool = False) -> None:
        """Write a table for the notebooks after this one (whole or not at all)."""
        write_csv_atomic(self.out / relative, frame, index=index)

    def save_figure(self, figure, name: str) -> None:
        """Write a figure below `figures` as PNG and SVG, the same bytes each time (no dates, stable ids) and on every
        processor (its frame is rounded to a thousandth of an inch: the SVG's ids are hashes of it to the last bit)."""
        frame = figure.get_tightbbox().padded(0.1).frozen()
        frame.set_points(np.round(frame.get_points(), 3))
        for ending, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
            with atomic_write(self.figures / f"{name}.{ending}", suffix=f".{ending}") as temporary:
                figure.savefig(temporary, metadata=metadata, bbox_inches=frame)
        if judge := os.environ.get("COMPENDIUM_FIGURES"):  # in the tests; no result hangs on that module
            import_module(judge).check(figure, f"{self.study}/{name}")

    def save_tables(self, tables: dict) -> None:
        """Render tables {name: compendium.frame.tables.Table} as HTML, LaTeX and CSV under tables/<study>/."""
        from compendium.frame.tables import write_table  # jinja2 is needed by the table notebooks alone

        folder = self.out / "tables" / self.study
        for name, table in tables.items():
            write_table(table, folder, name)

    def _put(self, basis, exhibit, row, column, value, lo, hi, decimals, note, equation=""):
        key = ("data" if basis == "data" else "printed", str(exhibit), str(row), str(column))
        shown = f"{self.study}/{exhibit}[{row}, {column}]"
        if key in self._taken:
            raise cells_module.CellsError(f"the address {shown} is filled twice in {self.name}")
        if self._live and value is not None and np.isinf(float(value)):
            value = lo = hi = None
        note = note or (self.missing if value is None or pd.isna(value) else "")
        if (value is None or pd.isna(value)) and not note:
            raise cells_module.CellsError(f"{shown}: a missing value needs a note that says why")
        self._taken.add(key)
        numbers = [np.nan if number is None else float(number) for number in (value, lo, hi)]
        self._rows.append(
            [
                self.study,
                *key[1:],
                *numbers,
                decimals,
                note,
                basis,
                equation,
                f"{self.study}/{self.name}",
                _execution_count(),
            ]
        )


def nothing_usable(out: Path, study: str) -> str:
    """Which models of a study gave nothing usable in a stage of the run, in words; "" where each gave something."""
    return "; ".join(mark["why"] for mark in marks(out, VOIDS) if mark["study"] == study)


def mark_nothing(out: Path, name: str, study: str, stage: str, models: dict) -> None:
    """Mark the models, {model: why}, of which nothing in a stage can be used; none of them: take the mark `name` away."""
    mark = Path(out) / VOIDS / f"{name}.jsonl"
    if models:
        rows = [
            {
                "study": study,
                "stage": stage,
                "model": model,
                "why": f"{model} gave nothing usable in {stage}: {why}",
            }
            for model, why in sorted(models.items())
        ]
        write_jsonl(mark, rows)
    else:
        mark.unlink(missing_ok=True)


def accepted(out: Path, study: str) -> str:
    """Of which stages of a study (of all, for the chapter across) the run lacks replies, in words; "" where of none."""
    lacking = [mark for mark in marks(out, MISSING) if study in (mark["study"], ACROSS)]
    return f"replies missing in {', '.join(sorted({mark['stage'] for mark in lacking}))}" if lacking else ""


def _ran() -> list:
    """The sources of the cells that ran in this kernel, in order; none outside Jupyter."""
    try:
        from IPython import get_ipython
    except ImportError:
        return []
    shell = get_ipython()
    return [] if shell is None else [source for source in shell.user_ns["In"] if source]


def _execution_count() -> int | None:
    """The number of the notebook cell that runs now; None outside Jupyter.

    Verification turns it into the cell's id, and that into a link: the kernel is not told ids by whoever runs it.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    # `In` holds one entry a cell, the running one last; shell.execution_count may already be the next cell's.
    return None if shell is None else len(shell.user_ns["In"]) - 1
