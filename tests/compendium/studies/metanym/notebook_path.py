"""Metanym's notebooks run in this process, with few draws."""

from compendium.frame.cells import read_cells
from tests import run_notebook as runner

FAST = {"B": 20, "B_external": 20, "simulations": 4, "n_questions": 8}


def run_notebook(name: str, out, **parameters) -> str:
    """Execute notebooks/metanym/<name>.ipynb with `out` and `parameters`; returns what its cells printed."""
    return runner.run_notebook("metanym", name, **{**FAST, "out": str(out), **parameters})


def cells_of(out, name: str):
    """The cells that the notebook computed from data, by (exhibit, row, column)."""
    cells = read_cells(out / "cells" / "metanym" / f"{name}.csv")
    return cells[cells["basis"] == "data"].set_index(["exhibit", "row", "column"])
