import re

import nbformat

from compendium.frame.notebook_html import to_html, with_mathml


def test_formulas_become_mathml_and_code_is_left_alone():
    text = with_mathml("Let $x_1$ be `cost $5` and\n\n$$ y = \\frac12 $$\n\n```\na $b$ c\n```\n")
    assert text.count("<math") == 2 and 'display="block"' in text
    assert "`cost $5`" in text and "a $b$ c" in text


def test_prices_are_no_formulas():
    assert with_mathml("It costs $5 a call, or $10.") == "It costs $5 a call, or $10."


def test_the_page_has_an_anchor_a_cell_and_asks_no_other_host(tmp_path):
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("$a$", id="intro"), nbformat.v4.new_code_cell("1", id="one")]
    )
    nbformat.write(book, tmp_path / "book.ipynb")
    page = to_html(tmp_path / "book.ipynb")
    assert 'id="cell-id=one"' in page and "<math" in page
    assert "<script" not in page and 'src="http' not in page and 'rel="stylesheet"' not in page


def test_folded_code_can_be_unfolded_and_says_what_it_is(tmp_path):
    hidden = {"jupyter": {"source_hidden": True}}
    cells = [
        nbformat.v4.new_code_cell("import numpy", id="setup", metadata={"tags": ["setup"], **hidden}),
        nbformat.v4.new_code_cell("a = 1", id="given", metadata={"tags": ["injected-parameters"]}),
        nbformat.v4.new_code_cell("b = 2", id="plain", metadata={"tags": ["cells"]}),
        nbformat.v4.new_code_cell("c = 3", id="other", metadata=hidden),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "book.ipynb")
    page = to_html(tmp_path / "book.ipynb")
    labels = re.findall(r"<details class=\"folded\">\s*<summary>(.*?)</summary>", page)
    assert labels == ["Setup: what is imported and loaded", "The values that this run handed over", "Code"]
    assert page.count("numpy") == 1 and 'id="cell-id=setup"' in page
