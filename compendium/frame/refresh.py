"""Execute the committed notebooks with their defaults and store the outputs: `python -m compendium.frame.refresh [NOTEBOOK …]`.

After a change to an estimator, `make refresh` brings up to date what `make test` compares: first the files of
data/demo/ with which the notebooks run alone, then their outputs. With notebooks named, their outputs alone.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from compendium.frame import demo
from compendium.frame.chain import NUMBERED
from compendium.frame.clean import tidy
from compendium.frame.files import write_text_atomic
from compendium.frame.paths import IDEAS, NOTEBOOKS, ROOT, SPARE_HOME, check_place, shown
from compendium.frame.system import use_writable_home


def committed() -> list[Path]:
    """Every committed notebook, in reading order."""
    numbered = [path for path in NOTEBOOKS.rglob("*.ipynb") if NUMBERED.fullmatch(path.name)]
    return sorted([*numbered, *IDEAS.glob("*.ipynb")])


def refresh(path: Path) -> None:
    """Execute one notebook in its own folder and replace its outputs, whole or not at all.

    Raises nbclient's CellExecutionError and DeadKernelError.
    """
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
    ).execute()
    write_text_atomic(path, nbformat.writes(tidy(book)) + "\n")


def main(names) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        check_place()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    use_writable_home(SPARE_HOME)
    failed = 0 if names else demo.main()
    if failed:
        return failed
    for path in [ROOT / name for name in names] or committed():
        try:
            refresh(path)
            print(f"{shown(path)}: refreshed")
        except FileNotFoundError:
            failed += 1
            print(f"{shown(path)}: no such notebook", file=sys.stderr)
        except (CellExecutionError, DeadKernelError, OSError, ValueError) as error:  # ValueError: no notebook
            failed += 1
            print(f"{shown(path)}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
