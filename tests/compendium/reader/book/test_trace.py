"""What stands behind a number: the trace through a notebook, the library as its sources describe it,
links.
"""

import pytest

from compendium.reader.book.api import Library
from compendium.reader.book.notebooks import Links
from compendium.reader.book.reference import docstring_html
from compendium.reader.book.trace import Trace


@pytest.fixture(scope="module")
def library():
    return Library()


SETUP = (
    "setup",
    "import numpy as np\nfrom lib import resampling\nfrom lib.agreement import cohen_kappa, "
    "krippendorff_alpha as alpha\n"
    "from compendium.frame.page import Page\npage = Page('alienbench', 'x')\nratings = np.ones((2, 3))",
)


def makers(library, *cells, at, exhibit, row="", column=""):
    trace = Trace([SETUP, *((f"c{number}", source) for number, source in enumerate(cells))], library)
    return [name.removeprefix("lib.") for name in trace.makers(at, exhibit, row, column)]


def test_a_number_is_traced_through_cells_to_its_functions_nearest_first(library):
    cells = (
        "raw = resampling.bootstrap(ratings)",
        "score = alpha(raw)\nother = cohen_kappa(ratings[0], ratings[1])",
        "page.cell('t', 'r', 'c', 100 * score)",
    )
    assert makers(library, *cells, at="c2", exhibit="t") == [
        "agreement.krippendorff_alpha",
        "resampling.bootstrap",
    ]


def test_two_numbers_of_one_cell_keep_their_own_makers(library):
    cell = (
        "page.cell('t', 'r', 'a', alpha(ratings))\npage.cell('t', 'r', 'k', cohen_kappa(*ratings))\n"
        "page.cell('u', 'r', 'x', 1)"
    )
    assert makers(library, cell, at="c0", exhibit="t", row="r", column="a") == [
        "agreement.krippendorff_alpha"
    ]
    assert makers(library, cell, at="c0", exhibit="t", row="r", column="k") == ["agreement.cohen_kappa"]
    assert makers(library, cell, at="c0", exhibit="u", row="r", column="x") == [], "plain arithmetic"


def test_loops_and_changes_in_place_are_followed(library):
    cells = (
        "found = {}\nfor name in 'ab':\n    found[name] = "
        "alpha(ratings)\nfound.update(c=cohen_kappa(*ratings))",
        "for name, value in found.items():\n    page.cell('t', name, 'value', value)",
    )
    assert set(makers(library, *cells, at="c1", exhibit="t", row="a", column="value")) == {
        "agreement.krippendorff_alpha",
        "agreement.cohen_kappa",
    }


def test_a_value_set_anew_forgets_what_it_was(library):
    cells = ("x = alpha(ratings)", "x = cohen_kappa(*ratings)", "page.cell('t', 'r', 'c', x)")
    assert makers(library, *cells, at="c2", exhibit="t") == ["agreement.cohen_kappa"]


def test_what_is_computed_later_stands_behind_nothing_before(library):
    cells = ("page.cell('t', 'r', 'c', alpha(ratings))", "y = cohen_kappa(*ratings)")
    assert makers(library, *cells, at="c0", exhibit="t") == ["agreement.krippendorff_alpha"]


def test_the_library_is_read_without_importing_it(library):
    alpha = library.functions["lib.agreement.krippendorff_alpha"]
    assert alpha.signature.startswith("krippendorff_alpha(ratings, level: str='nominal')")
    assert alpha.source.startswith("def krippendorff_alpha") and "Krippendorff's alpha" in alpha.doc
    assert library.find("compendium.asking.simulated.Reply") == "compendium.asking.simulated.reply.Reply", (
        "re-exports are followed"
    )
    assert library.find("lib.agreement._missing_one") is None
    assert library.link("compendium.asking.request.Request") == "api/compendium/asking/request.html#Request"


def test_docstrings_become_html():
    html = docstring_html(
        "Sum of `a` & b.\n\n    a = 1\n\nParameters\n----------\na, b : numbers\n    both finite.\nRaises "
        "nothing."
    )
    assert "<p>Sum of <code>a</code> &amp; b.</p><pre>    a = 1</pre>" in html
    assert (
        "<p class='section'>Parameters</p><dl class='arguments'><dt><code>a, b</code></dt><dd>numbers both "
        "finite.</dd>" in html
    )


def test_links_into_the_project_become_links_within_the_book():
    links = Links({"notebooks/alienbench/02_judge.html", "api/lib/agreement.html"})
    turned = links.turn(
        "[next](02_judge.ipynb#top), [`alpha`](../../lib/agreement.py), [gone](99_x.ipynb), "
        "[prints](../../data/published/alienbench.csv), [out](https://example.org), `[a](b)`",
        "notebooks/alienbench",
        "notebooks/alienbench/01_a.html",
    )
    assert turned == (
        '<a href="02_judge.html#top">next</a>, <a href="../../api/lib/agreement.html">`alpha`</a>, gone, '
        '<a href="../../files/data/published/alienbench.csv">prints</a>, [out](https://example.org), `[a](b)`'
    )
    assert links.files == {"data/published/alienbench.csv"}
