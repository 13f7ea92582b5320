"""The pages of ideas: short, with a picture and an example in sight, and solutions that are what Python says."""

import doctest
import json
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from compendium.frame import legible
from compendium.frame.paths import IDEAS

PATHS = sorted(IDEAS.glob("*.ipynb"))
WORDS, CELLS, LINES, WIDTH = 300, 8, 5, 92


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
        assert folded(cell) or len(lines) <= LINES and max(map(len, lines)) <= WIDTH, cell["id"]


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


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def ran(request, monkeypatch):
    """(the page, the names that its cells leave, its pictures): its code run here."""
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    book, names = load(request.param), {}
    plt.close("all")
    for cell in cells(book, "code"):
        exec(compile(text(cell), cell["id"], "exec"), names)
    yield book, names, [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    matplotlib.rcdefaults()


def test_a_solution_is_what_python_says(ran):
    """Its `>>>` lines run where the page's own cells have run."""
    book, names, _ = ran
    solution = text(cells(book, "markdown")[-1])
    said = doctest.DocTestParser().get_doctest(solution.replace("```", ""), names, "solution", None, 0)
    assert said.examples, "a solution shows a line of Python and what it gives"
    told = []
    assert doctest.DocTestRunner(verbose=False).run(said, out=told.append).failed == 0, "".join(told)


def test_every_word_of_a_picture_can_be_read(ran):
    assert [legible.faults(figure) for figure in ran[2]] == [[]]


def test_each_page_has_its_place():
    said = [load(path)["metadata"]["compendium"] for path in PATHS]
    assert sorted(each["place"] for each in said) == list(range(1, len(PATHS) + 1))
    assert all(each["title"] and each["asks"].endswith("?") for each in said)


def test_the_start_page_links_to_each():
    start = (IDEAS.parent / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(ideas/(\w+)\.ipynb\)", start)) == {path.stem for path in PATHS}
