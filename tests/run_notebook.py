"""Runs a committed notebook's own cells in this process, with other parameters: what the chain does, without a
kernel."""

import contextlib
import io
import json

import matplotlib

from compendium.frame.paths import ROOT

matplotlib.use("Agg")


def run_notebook(study: str, name: str, **parameters) -> str:
    """Execute notebooks/<study>/<name>.ipynb with `parameters`; returns what its cells printed.

    Names that its parameters cell does not have are left out, as the chain leaves them out.
    """
    book = json.loads((ROOT / "notebooks" / study / f"{name}.ipynb").read_text(encoding="utf-8"))
    space, printed = {"__name__": "__main__"}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in book["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}[{cell['id']}]", "exec"), space)
                if "parameters" in cell["metadata"].get("tags", ()):
                    space.update({key: value for key, value in parameters.items() if key in space})
    import matplotlib.pyplot as plt

    plt.close("all")
    return printed.getvalue()
