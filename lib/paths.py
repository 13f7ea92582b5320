"""Where things stand: every path the project uses hangs from `ROOT`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
PARAMS = ROOT / "params"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
STUDIES = ("alienbench", "stories", "metanym", "worldmodels", "create")


def from_root(path) -> Path:
    """`path` itself where absolute, else below the project's root (a notebook's own folder never matters)."""
    path = Path(path)
    return path if path.is_absolute() else ROOT / path


def shown(path) -> str:
    """`path` as a message should show it: relative to the project's root where it lies below it."""
    path = Path(path)
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return str(path)
