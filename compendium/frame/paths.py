"""Where things stand: every path the project uses hangs from `ROOT`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
PARAMS = ROOT / "params"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
ACROSS = (
    "across"  # the chapter that looks across the studies: notebooks and params as theirs, no paper of its own
)
STUDIES = ("alienbench", "stories", "metanym", "worldmodels", "create", ACROSS)


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


def figures_folder(out) -> Path:
    """Where a run's figures go: figures/<name> for the chain's build/<name>, else figures/ inside `out`."""
    out = from_root(out)
    by_chain = out.parent == ROOT / "build" and out.name != "lab"
    return FIGURES / out.name if by_chain else out / "figures"
