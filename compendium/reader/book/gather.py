"""What a finished run holds, read once for all pages of the book."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compendium.frame.cells import CellsError, read_cells
from compendium.frame.chain import NUMBERED
from compendium.frame.files import read_yaml
from compendium.frame.paths import IDEAS, NOTEBOOKS, ROOT, STUDIES, figures_folder, shown

STUDIES_FILE = ROOT / "docs" / "studies.yaml"
STUDY_KEYS = {"title", "paper", "url", "question", "figures", "numbers"}
NUMERIC = ["value", "lo", "hi", "decimals", "computed", "computed_lo", "computed_hi", "tolerance"]


class BookError(ValueError):
    """A book that cannot be built; the message names what is missing and the command that makes it."""


@dataclass(frozen=True)
class Executed:
    """One executed notebook: its cells as nbformat's JSON has them, machine paths made relative."""

    study: str
    name: str
    content: dict

    @property
    def key(self) -> str:
        return f"{self.study}/{self.name}" if self.study else self.name

    @property
    def title(self) -> str:
        """The first heading, without its marks."""
        for cell in self.content["cells"]:
            for line in source(cell).splitlines():
                if cell["cell_type"] == "markdown" and line.startswith("# "):
                    return line[2:].strip()
        return self.name

    @property
    def said(self) -> dict:
        """What its metadata says of it."""
        return self.content.get("metadata", {}).get("compendium") or {}

    @property
    def section(self) -> str:
        """Its place in the paper."""
        return str(self.said.get("section") or "")

    def code(self) -> list[tuple[str, str]]:
        """(cell id, source) of its code cells, without the one that the runner injected."""
        return [
            (cell["id"], source(cell))
            for cell in self.content["cells"]
            if cell["cell_type"] == "code"
            and "injected-parameters" not in cell.get("metadata", {}).get("tags", [])
        ]


@dataclass
class Run:
    """A run's results: `report` (a row a printed number, then what is not printed as one), `computed` (a row a
    cell), notebooks, files."""

    profile: str
    out: Path
    report: pd.DataFrame
    computed: pd.DataFrame
    notebooks: dict
    studies: list
    facts: dict = field(default_factory=dict)

    def of(self, study: str) -> pd.DataFrame:
        """The printed numbers of a study."""
        return self.report[(self.report["study"] == study) & (self.report["print"] == "number")]

    def books(self, study: str) -> list[Executed]:
        """The executed notebooks of a study, in order."""
        return [book for book in self.notebooks.values() if book.study == study]

    def ideas(self) -> list[Executed]:
        """The pages of ideas, in the order in which their metadata places them."""
        return sorted(self.books(IDEAS.name), key=lambda book: book.said["place"])

    def figure(self, study: str) -> tuple[Path, str] | None:
        """The study's one figure and its caption: the first that docs/studies.yaml names and the run has.

        Else the first figure of a notebook called figures, or of any; None where no notebook drew one.
        """
        folder = figures_folder(self.out) / study
        named = self.facts.get(study, {}).get("figures", {})
        books = sorted(self.books(study), key=lambda book: "figure" not in book.name)
        names = [*named, *(name for book in books for name in book.said.get("figures") or ())]
        found = [name for name in names if (folder / f"{name}.png").is_file()]
        return (folder / f"{found[0]}.png", named.get(found[0], found[0])) if found else None

    def tables(self, study: str) -> list[Path]:
        """The study's rendered tables (HTML), by name."""
        return sorted((self.out / "tables" / study).glob("*.html"))


def gather(profile: str, out: Path) -> Run:
    """Read a finished run from `out`. Raises BookError where there is none."""
    paths = [out / "verification.csv", out / "cells.csv"]
    for path in paths:
        if not path.is_file():
            raise BookError(f"{shown(path)}: no such file; run `make tables PROFILE={profile}` first")
    # a row may be called "null" or "None"; what no paper prints as a number stands behind what they do
    report = pd.concat(
        [pd.read_csv(path, dtype=str, keep_default_na=False) for path in (paths[0], out / "unprinted.csv")],
        ignore_index=True,
    )
    report[NUMERIC] = report[NUMERIC].apply(pd.to_numeric)
    try:
        computed = read_cells(paths[1])
    except CellsError as error:
        raise BookError(str(error)) from None
    notebooks = {book.key: book for book in [*_front(), *_executed(out / "notebooks")]}
    studies = [name for name in STUDIES if any(book.study == name for book in notebooks.values())]
    others = dict.fromkeys(
        book.study for book in notebooks.values() if book.study not in ("", IDEAS.name, *studies)
    )
    return Run(profile, out, report, computed, notebooks, [*studies, *others], study_facts())


def study_facts(path: Path = STUDIES_FILE) -> dict:
    """{study: {title, paper, url, question, …}} from docs/studies.yaml. Raises BookError for an unknown
    key.
    """
    facts = read_yaml(path, BookError, dict) if path.is_file() else {}
    for study, entry in facts.items():
        unknown = set(entry) - STUDY_KEYS
        if unknown:
            raise BookError(
                f"{shown(path)}: {study}: unknown key {sorted(unknown)[0]!r}; "
                f"known: {', '.join(sorted(STUDY_KEYS))}"
            )
    return facts


def source(cell: dict) -> str:
    """A cell's source as one string."""
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def _executed(folder: Path) -> list[Executed]:
    """Every executed notebook of the run, study by study in reading order."""
    order = {name: place for place, name in enumerate(STUDIES)}
    paths = sorted(folder.glob("*/*.ipynb"), key=lambda path: (order.get(path.parent.name, 99), path))
    return [_read(path, path.parent.name) for path in paths if NUMBERED.fullmatch(path.name)]


def _front() -> list[Executed]:
    """The notebooks that belong to no study (00_start_here, the ideas), as committed."""
    start = [_read(path, "") for path in sorted(NOTEBOOKS.glob("*.ipynb")) if NUMBERED.fullmatch(path.name)]
    return [*start, *(_read(path, IDEAS.name) for path in sorted(IDEAS.glob("*.ipynb")))]


def _read(path: Path, study: str) -> Executed:
    """One notebook, without the paths of the machine that ran it."""
    text = path.read_text(encoding="utf-8").replace(f"{ROOT.as_posix()}/", "")
    content = json.loads(text)
    for place, cell in enumerate(content["cells"]):
        cell.setdefault("id", f"cell-{place}")
        cell["id"] = re.sub(r"[^\w-]", "-", cell["id"])
    return Executed(study, path.stem, content)
