"""The pages of ideas: short, with a picture and an example in sight, and solutions that are what Python says."""

import doctest
import json
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from compendium.frame.paths import IDEAS

PATHS = sorted(IDEAS.glob("*.ipynb"))
WORDS, CELLS, LINES = 300, 8, 5


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def cells(book, kind):
    return [cell for cell in book["cells"] if cell["cell_type"] == kind]


def text(cell):
    return "".join(cell["source"])


def folded(cell):
    return cell["metadata"].get("jupyter", {}).get("source_hidden", False)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def book(request):
    return load(request.param)


def test_a_page_is_short_and_its_rule_in_sight(book):
    prose = " ".join(map(text, cells(book, "markdown")))
    assert len(prose.split()) <= WORDS and len(cells(book, "code")) <= CELLS
    for cell in cells(book, "code"):
        lines = [line for line in text(cell).splitlines() if line.strip()]
        assert len(lines) <= LINES or folded(cell), f"{cell['id']}: {len(lines)} lines, not folded"


def test_a_page_shows_a_picture_before_a_formula_and_calls_what_the_studies_call(book):
    kinds = [
        "picture"
        if "image/png" in json.dumps(cell.get("outputs", ""))
        else "formula"
        if "$$" in text(cell)
        else ""
        for cell in book["cells"]
    ]
    assert "picture" in kinds and kinds.index("picture") <= (kinds + ["formula"]).index("formula")
    code = "\n".join(map(text, cells(book, "code")))
    assert re.search(r"^from (lib\.|compendium\.studies\.)", code, re.M)
    prose = "\n".join(map(text, cells(book, "markdown")))
    assert "## By hand" in prose and "## What it does not mean" in prose and "## Exercise" in prose


def test_a_solution_is_what_python_says(book, monkeypatch):
    """Its `>>>` lines run where the page's own cells have run."""
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    names = {}
    try:
        for cell in cells(book, "code"):
            exec(compile(text(cell), cell["id"], "exec"), names)
    finally:
        plt.close("all")
        matplotlib.rcdefaults()
    solution = text(cells(book, "markdown")[-1])
    said = doctest.DocTestParser().get_doctest(solution.replace("```", ""), names, "solution", None, 0)
    assert said.examples, "a solution shows a line of Python and what it gives"
    told = []
    assert doctest.DocTestRunner(verbose=False).run(said, out=told.append).failed == 0, "".join(told)


def test_each_page_has_its_place():
    said = [load(path)["metadata"]["compendium"] for path in PATHS]
    assert sorted(each["place"] for each in said) == list(range(1, len(PATHS) + 1))
    assert all(each["title"] and each["asks"].endswith("?") for each in said)
