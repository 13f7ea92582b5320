"""Execute one notebook with papermill: `python -m lib.execute NOTEBOOK OUT PARAMETERS` (as JSON).

The executed notebook and its HTML page are written to temporary names and moved, so an interrupted run never
leaves a half notebook where a whole one is expected. On an error the one line that matters is printed.
"""

import json
import os
import sys
from pathlib import Path

from lib.files import atomic_write, write_text_atomic
from lib.paths import ROOT, shown


def execute(notebook: Path, output: Path, parameters: dict) -> None:
    """Run `notebook` with `parameters`; write `output` (.ipynb) and the page beside it (.html).

    The kernel runs in the notebook's own folder, as in JupyterLab. Raises papermill's execution error.
    """
    import papermill

    from lib.notebook_html import to_html

    with atomic_write(output, suffix=".ipynb") as temporary:
        papermill.execute_notebook(notebook, temporary, parameters=parameters, cwd=notebook.parent,
                                   progress_bar=False, log_output=False, kernel_name="python3")
    write_text_atomic(output.with_suffix(".html"), to_html(output))


def _cell_of(notebook: Path, error) -> str:
    """The id of the cell that failed, found by its source (papermill counts the cell it injects)."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if "".join(cell["source"]) == error.source:
            return f"cell {cell['id']}"
    return "injected parameters"


def main(arguments) -> int:
    notebook, output, values = arguments
    parameters = json.loads(values)
    # One thread a kernel: the chain runs notebooks side by side, and thread counts must not move last bits.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # jsonschema, where it finds this optional package, builds a grammar on import: a second for each notebook
    sys.modules.setdefault("rfc3987_syntax", None)
    from papermill.exceptions import PapermillExecutionError

    try:
        execute(ROOT / notebook, Path(output), parameters)
    except PapermillExecutionError as error:
        print(f"{shown(notebook)}, {_cell_of(ROOT / notebook, error)}: {error.ename}: {error.evalue}", file=sys.stderr)
        if os.environ.get("VERBOSE", "") not in ("", "0"):
            print("\n".join(error.traceback), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
