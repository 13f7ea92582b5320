"""What the tests of the book share: a small library, a finished run of one study, and its book."""

import json
import shutil

import pandas as pd
import pytest

from compendium.frame.cells import published
from compendium.frame.files import write_csv_atomic
from compendium.frame.paths import ROOT
from compendium.frame.tables import Table, write_table
from compendium.frame.verify import main as verify
from compendium.reader.book.api import Library
from compendium.reader.book.gather import gather
from compendium.reader.book.site import build

LIBRARY = (
    "lib/agreement.py",
    "lib/numeric.py",
    "lib/resampling.py",
    "compendium/asking/request.py",
    "compendium/asking/simulated/__init__.py",
    "compendium/asking/simulated/reply.py",
)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A few modules of the library, so that the book of the tests is small."""
    folder = tmp_path_factory.mktemp("code")
    for name in LIBRARY:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return Library(folder)


SETUP = (
    "setup",
    "import numpy as np\nfrom lib import resampling\nfrom lib.agreement import cohen_kappa, "
    "krippendorff_alpha as alpha\n"
    "from compendium.frame.page import Page\npage = Page('alienbench', 'x')\nratings = np.ones((2, 3))",
)


# a run, and its book
# -------------------------------------------------------------------------------------------------


def code(name, source, count, *outputs, tags=()):
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"tags": list(tags)},
        "source": source,
        "execution_count": count,
        "outputs": list(outputs),
    }


def prose(name, source):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def notebook(*cells, **meta):
    return {
        "cells": list(cells),
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "compendium": meta,
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "papermill": {},
        },
    }


def shown(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


FRAME = {
    "output_type": "execute_result",
    "execution_count": 4,
    "metadata": {},
    "data": {
        "text/html": "<table class='dataframe'><tr><th>alpha</th><td>0.9</td></tr></table>",
        "text/plain": "alpha 0.9",
    },
}


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """A finished run of one study with two notebooks, its numbers those that the paper prints or nearly, and of
    the chapter across, which has no paper.
    """
    folder = tmp_path_factory.mktemp("run")
    table = published("alienbench")
    table = table[(table["exhibit"] == "table-7") & (table["column"] == "alpha")]
    rows = table["row"].tolist()
    put = "page.cell('table-7', row, 'alpha', value)"
    cell = f"for row, value in values.items():\n    {put}\nprint('{ROOT}/data')"
    books = {
        "04_agreement": notebook(
            prose(
                "intro",
                "# 4 · Do they agree?\n\nFrom [the archive](../../data/published/alienbench.csv); then "
                "[more](05_more.ipynb).",
            ),
            code("parameters", "profile = 'demo'\nseed = 1", 1, tags=["parameters"]),
            code(
                "given",
                f"# Parameters\nprofile = 'released'\nlabels = '{ROOT}/build/x.csv'",
                2,
                tags=["injected-parameters"],
            ),
            code("setup", SETUP[1], 3),
            prose(
                "formula",
                "## Alpha\n\n$$ \\alpha = 1 - \\frac{D_o}{D_e} $$\n\nwhere $D_o$ is seen. "
                "[Back](#4-·-Do-they-agree?)",
            ),
            code("alpha", "values = {'total': alpha(ratings)}\nvalues", 4, FRAME),
            code("put", cell, 5, shown(f"{ROOT}/data")),
            prose(
                "exercise",
                "## Exercise\n\nWould a *copy* raise $\\rho$ in `a_b`?\n\n<details>"
                "<summary>Solution</summary>\n\nNo: *copies* "
                "agree."
                "\n</details>",
            ),
            study="alienbench",
            section="4.3; Table 7",
        ),
        "05_more": notebook(
            prose("intro", "# 5 · More"),
            code("setup", SETUP[1], 1),
            code("kappa", "page.cell('beyond', 'a', 'b', cohen_kappa(*ratings))", 2),
            study="alienbench",
        ),
    }
    books = {f"alienbench/{name}": book for name, book in books.items()}
    books["across/01_designs"] = notebook(
        prose("intro", "# 1 · Five designs"),
        code("setup", SETUP[1].replace("alienbench", "across"), 1),
        code("put", "page.cell('across-alpha', 'a', 'alpha', alpha(ratings))", 2),
        study="across",
    )
    for name, book in books.items():
        path = folder / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(book), encoding="utf-8")
    columns = [
        "study",
        "exhibit",
        "row",
        "column",
        "value",
        "lo",
        "hi",
        "decimals",
        "note",
        "basis",
        "notebook",
        "execution",
    ]
    made = [
        [
            "alienbench",
            "table-7",
            row,
            "alpha",
            value + (0.2 if place == 1 else 0),
            lo,
            hi,
            None,
            "",
            "printed",
            "alienbench/04_agreement",
            5,
        ]
        for place, (row, value, lo, hi) in enumerate(table[["row", "value", "lo", "hi"]].to_numpy().tolist())
    ]
    beyond = [
        ["alienbench", "beyond", "a", "b", 0.51234, None, None, None, "", "data", "alienbench/05_more", 2]
    ]
    across = [
        ["across", "across-alpha", "a", "alpha", 0.5, None, None, None, "", "data", "across/01_designs", 2]
    ]
    paths = []
    for name, lines in (
        ("alienbench/04_agreement", made),
        ("alienbench/05_more", beyond),
        ("across/01_designs", across),
    ):
        paths.append(write_csv_atomic(folder / "cells" / f"{name}.csv", pd.DataFrame(lines, columns=columns)))
    off = {
        "id": "off",
        "title": "One that is off",
        "kind": "contradiction",
        "rows": [["table-7", rows[1], "alpha"]],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "compendium.frame.verdicts.findings", lambda study: [off] if study == "alienbench" else []
        )
        assert verify(["released", "alienbench,across", str(folder), *map(str, paths)]) == 0
    body = pd.DataFrame({"alpha": ["0.91"]}, index=["Total"])
    write_table(Table("Table 7", "Agreement.", body), folder / "tables" / "alienbench", "table-07")
    figure = folder / "figures" / "alienbench" / "figure_1_radar.png"
    figure.parent.mkdir(parents=True)
    figure.write_bytes(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
            "78da63fcffff3f0300050001fe02fea53581e20000000049454e44ae426082"
        )
    )
    assert len(rows) > 5
    return folder


@pytest.fixture(scope="session")
def built(out, library):
    return build(gather("released", out), library)
