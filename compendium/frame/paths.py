"""Where things stand: every path the project uses hangs from `ROOT`."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
PARAMS = ROOT / "params"
NOTEBOOKS = ROOT / "notebooks"
IDEAS = (
    NOTEBOOKS / "ideas"
)  # a page an idea: no study's, no profile's, run with the tests and not by the chain
FIGURES = ROOT / "figures"
SPARE_HOME = ROOT / "build" / "home"  # the home folder of those who cannot write theirs
ACROSS = (
    "across"  # the chapter that looks across the studies: notebooks and params as theirs, no paper of its own
)
STUDIES = ("alienbench", "stories", "metanym", "worldmodels", "create", ACROSS)


class PlaceError(ValueError):
    """A folder in which nothing can be run; the message names it and what would be right."""


def check_place(here=None) -> None:
    """Raises PlaceError where the code that was imported is another checkout's than the one that holds `here`
    (default: the current folder), and where the project's own path cannot be handed on."""
    here = Path.cwd() if here is None else Path(here).resolve()
    marks = (folder / "compendium" / "frame" / "paths.py" for folder in (here, *here.parents))
    own = next((mark.parents[2] for mark in marks if mark.is_file()), ROOT)
    if not own.samefile(ROOT):
        raise PlaceError(
            f"{own} would run the code of another checkout, {ROOT}, and write there: start with `make` in {own}, "
            f"or set PYTHONPATH={own}"
        )
    if os.pathsep in str(ROOT):
        raise PlaceError(
            f"the project lies in {ROOT}, whose name holds a {os.pathsep!r}, which separates folders in PATH and "
            "PYTHONPATH: rename the folder"
        )


def from_root(path) -> Path:
    """`path` itself where absolute, else below the project's root (a notebook's own folder never matters)."""
    path = Path(path)
    return path if path.is_absolute() else ROOT / path


def below_root(path) -> Path:
    """`path` relative to the project's root where it lies below it, links left as they are: what holds of the
    root's own name (blanks, #, braces) then never reaches Snakemake."""
    path = Path(path)
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def shown(path) -> str:
    """`path` as a message should show it: relative to the project's root where it lies below it."""
    path = Path(path)
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return str(path)


def figures_folder(out) -> Path:
    """Where a run's figures go: figures/<name> for the chain's build/<name>, else figures/ inside `out`."""
    out = from_root(out)
    by_chain = out.parent == ROOT / "build" and out.name != "lab"
    return FIGURES / out.name if by_chain else out / "figures"
