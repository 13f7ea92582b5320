"""Runs a committed notebook's own cells in this process, with other parameters: what the chain does, without a
kernel."""

import contextlib
import io
import json

import matplotlib

from compendium.frame.cells import read_cells
from compendium.frame.paths import ROOT

matplotlib.use("Agg")
FAST = {"B": 20, "B_external": 20, "B_baseline": 20, "simulations": 4, "n_questions": 8}


def run_notebook(name: str, out, **parameters) -> str:
    """Execute notebooks/metanym/<name>.ipynb with `out` and `parameters`; returns what its cells printed.

    Names that its parameters cell does not have are left out, as the chain leaves them out.
    """
    book = json.loads((ROOT / "notebooks" / "metanym" / f"{name}.ipynb").read_text(encoding="utf-8"))
    space, printed = {"__name__": "__main__"}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in book["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}[{cell['id']}]", "exec"), space)
                if "parameters" in cell["metadata"].get("tags", ()):
                    given = {**FAST, "out": str(out), **parameters}
                    space.update({key: value for key, value in given.items() if key in space})
    import matplotlib.pyplot as plt

    plt.close("all")
    return printed.getvalue()


def cells_of(out, name: str):
    """The cells that the notebook computed from data, by (exhibit, row, column)."""
    cells = read_cells(out / "cells" / "metanym" / f"{name}.csv")
    return cells[cells["basis"] == "data"].set_index(["exhibit", "row", "column"])
