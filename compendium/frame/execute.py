"""Execute one notebook with papermill: `python -m compendium.frame.execute NOTEBOOK OUT PARAMETERS` (as JSON).

The executed notebook and its HTML page are written to temporary names and moved, so an interrupted run never
leaves a half notebook where a whole one is expected. On an error the one line that matters is printed.
"""
# Tested by tests/compendium/frame/test_chain.py.

import json
import os
import signal
import sys
import traceback
from pathlib import Path

from compendium.frame.files import atomic_write, said, write_text_atomic
from compendium.frame.params import OWN_DATA, PROFILES
from compendium.frame.paths import ROOT, from_root, shown
from compendium.frame.prose import of_profile
from compendium.frame.system import die_with_parent, start_lean

MOST_MOVED = 5  # numbers that moved, named as their notebook ends; the report names all
VERBOSE = os.environ.get("VERBOSE", "") not in ("", "0")


class NotebookError(Exception):
    """A notebook that did not run to its end: the message names it, the cell, and what happened; `name` and `said`
    are those of the cell's error."""

    name, said = "", ""


def execute(notebook: Path, output: Path, parameters: dict) -> None:
    """Run `notebook` with `parameters`; write `output` (.ipynb) and the page beside it (.html).

    The kernel runs in the notebook's own folder, as in JupyterLab. Raises NotebookError where a cell fails or the
    kernel dies, OSError where `output` cannot be written.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    from compendium.frame.notebook_html import to_html
    from compendium.frame.warm_kernel import use_where_possible

    use_where_possible()

    with atomic_write(output, suffix=".ipynb") as temporary:
        try:
            papermill.execute_notebook(
                _literal(notebook),
                _literal(temporary),
                parameters=parameters,
                cwd=notebook.parent,
                progress_bar=False,
                log_output=False,
                kernel_name="python3",
            )
        except PapermillExecutionError as error:
            cell = _cell_id(cell for cell in _code_cells(notebook) if "".join(cell["source"]) == error.source)
            told = "\n" + "\n".join(error.traceback) if VERBOSE else ""
            failed = NotebookError(f"{shown(notebook)}, {cell}: {error.ename}: {error.evalue}{told}")
            failed.name, failed.said = error.ename, error.evalue
            raise failed from None
        except DeadKernelError:
            begun = [cell for cell in _code_cells(temporary) if cell["metadata"]["papermill"]["start_time"]]
            cell = _cell_id(reversed(begun))
            raise NotebookError(
                f"{shown(notebook)}, {cell}: its kernel died (the memory was full, or something "
                "ended the process)"
            ) from None
        _keep_profile(temporary, parameters.get("profile", ""))
    write_text_atomic(output.with_suffix(".html"), to_html(output))


def _keep_profile(path: Path, profile: str) -> None:
    """Take out of an executed notebook the prose that is about another profile's data."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"] = of_profile(content["cells"], profile, PROFILES)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def moved_numbers(notebook: Path, out: Path) -> list[str]:
    """What a notebook's cells say now that the last verified run's did not, in words; at most `MOST_MOVED` lines.

    Empty in a first run, and where the last run's cells cannot be read (verification says so).
    """
    from compendium.frame.cells import CellsError, read_cells
    from compendium.frame.compare import in_words, moved

    last, name = out / "cells.csv", f"{notebook.parent.name}/{notebook.stem}"
    if not last.is_file():
        return []
    try:
        before = read_cells(last)
    except CellsError:
        return []
    after = read_cells(out / "cells" / f"{name}.csv")
    said = in_words(moved(before[before["notebook"] == name], after[after["basis"] == "data"]))
    more = [f"and {len(said) - MOST_MOVED} more"] if len(said) > MOST_MOVED else []
    return said[:MOST_MOVED] + more


def _literal(path: Path) -> str:
    """A path as papermill should be told it: it would fill in parameters where one holds braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _code_cells(notebook: Path) -> list:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _cell_id(cells) -> str:
    """The first of some cells, by its id (before nbformat 4.5 cells had none); papermill's own where there is none."""
    return next((f"cell {cell.get('id', '?')}" for cell in cells), "injected parameters")


def _run(notebook: Path, output: Path, parameters: dict) -> bool:
    """Execute a notebook; or fold it away, where a live run or data of one's own hold nothing for it.

    Whether it was executed."""
    if parameters.get("profile") != "live" and not os.environ.get(OWN_DATA):
        execute(notebook, output, parameters)
        return True
    from compendium.frame import chain, folding

    book, out = chain.read_notebook(notebook), from_root(parameters["out"])
    reason = folding.reason_before(book, out)
    if not reason:
        try:
            execute(notebook, output, parameters)
            folding.unfold(book, out)
            return True
        except NotebookError as error:
            reason = folding.reason_after(error.name, error.said, out, book.study)
            if not reason:
                raise
    folding.fold(book, out, reason)
    return False


def main(arguments) -> int:
    notebook, output, values = arguments
    parameters = json.loads(values)
    die_with_parent(signal.SIGTERM)  # a notebook that nobody waits for any more asks no model anything
    start_lean()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        if not _run(ROOT / notebook, Path(output), parameters):
            return 0
        for line in moved_numbers(ROOT / notebook, from_root(parameters["out"])):
            print(f"  moved: {line}", file=sys.stderr)
    except NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{shown(ROOT / notebook)}: {said(error)}", file=sys.stderr)
        if VERBOSE:
            traceback.print_exc()
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
