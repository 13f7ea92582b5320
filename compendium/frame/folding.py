"""A notebook of a live run, or of one with data of one's own, that has nothing to work on: it is folded away with the
reason, and the chain goes on.

Ratings that nobody gave, an archive that cannot be had, a model that gave nothing usable: none of them is a fault of
the notebook. Its files are written all the same, each saying why, so that Snakemake counts it as done; what needs them
is folded for the same reason. A mark in <out>/folded says so at the end of the run.
"""

from pathlib import Path

import pandas as pd

from compendium.frame import cells
from compendium.frame.files import atomic_write, marks, write_csv_atomic, write_jsonl, write_text_atomic
from compendium.frame.page import nothing_usable
from compendium.frame.paths import shown

FOLDED = "folded"  # the folder of marks below a run's
# what stops a run whatever else is missing: asking again, a key, money or params are the way out
STOPS = ("MissingReplies", "EndpointError", "BudgetError", "LedgerError", "ParamsError", "KeyboardInterrupt")


class Folded(ValueError):
    """A notebook raises it where its input holds nothing to work on; the message is the reason, for a reader."""


def reason_before(book, out: Path) -> str:
    """Why a notebook (`compendium.frame.chain.Notebook`) cannot start: that of a folded one that makes what it needs;
    else ""."""
    made = {place: mark["reason"] for mark in marks(out, FOLDED) for place in mark["makes"]}
    return next((made[place] for place in book.needs.values() if place in made), "")


def summary(out: Path, studies) -> list[str]:
    """One line a reason: which notebooks of these studies were folded away for it."""
    lines = {}
    for mark in marks(out, FOLDED):
        if mark["study"] not in studies:
            continue
        lines.setdefault(mark["reason"], []).append(mark["notebook"])
    return [f"Folded away: {', '.join(books)}: {reason}" for reason, books in lines.items()]


def reason_after(name: str, message: str, out: Path, study: str) -> str:
    """Why a notebook that ended with the error `name: message` is to be folded; "" where it failed."""
    if name == "Folded":
        return message
    if name == "CellsError":  # a table of what other notebooks computed
        return next((mark["reason"] for mark in marks(out, FOLDED) if mark["study"] == study), "")
    weak = "" if name in STOPS else nothing_usable(out, study)
    return f"{weak} (met as {name}: {message})" if weak else ""


def unfold(book, out: Path) -> None:
    """Forget that a notebook was folded."""
    _mark(book, out).unlink(missing_ok=True)


def fold(book, out: Path, reason: str) -> None:
    """Write every file that a notebook makes, each saying why there is nothing in it, and the mark."""
    reason = " ".join(reason.split())
    writers = {".ipynb": _notebook, ".csv": _table, ".png": _picture, ".svg": _picture}
    for path in book.outputs(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        writers.get(path.suffix, _text)(path, book, reason)
    rows = [[book.study, "notebook", book.name, "run", *[float("nan")] * 3, None, reason, "data", ""]]
    columns = [*cells.ADDRESS, *cells.VALUES, "basis", "equation", "notebook", "execution"]
    frame = pd.DataFrame([[*rows[0], f"{book.study}/{book.name}", None]], columns=columns)
    write_csv_atomic(Path(out) / "cells" / book.study / f"{book.name}.csv", frame)
    name = f"{book.study}/{book.name}"
    write_jsonl(
        _mark(book, out),
        [{"study": book.study, "notebook": name, "reason": reason, "makes": list(book.makes)}],
    )


def _mark(book, out) -> Path:
    return Path(out) / FOLDED / f"{book.rule}.jsonl"


def _notebook(path, book, reason):
    import nbformat

    content = nbformat.read(book.path, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    content.cells.insert(0, nbformat.v4.new_markdown_cell(f"**Folded away in this run**: {reason}"))
    with atomic_write(path, suffix=".ipynb") as temporary:
        nbformat.write(content, temporary)


def _text(path, book, reason):
    write_text_atomic(path, f"{shown(book.path)} was folded away: {reason}\n")


def _table(path, book, reason):
    write_csv_atomic(path, pd.DataFrame({"folded": [reason]}))


def _picture(path, book, reason):
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1.5))
    figure.text(0.02, 0.5, fill(f"Folded away: {reason}", 90), va="center", fontsize=8, parse_math=False)
    with atomic_write(path, suffix=path.suffix) as temporary:
        figure.savefig(temporary, metadata={"Software": None} if path.suffix == ".png" else {"Date": None})
