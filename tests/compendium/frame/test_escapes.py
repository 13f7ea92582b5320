import nbformat
import pytest

from compendium.frame.escapes import clean_notebook, without_escapes
from compendium.frame.notebook_html import to_html
from compendium.reader.book.markup import esc

LINK = "\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\"


@pytest.mark.parametrize(
    "text, left",
    [
        (LINK, "click"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://evil.example/\nnext", "\nnext"),
        ("\x9d8;;http://evil.example\x9cclick", "click"),
        ("\x1bPsecret\x1b\\after", "after"),
        ("\x1b[2J\x1b[1;1Hafter", "after"),
        ("\x1b[?1049hafter", "after"),
        ("\x9b31mafter", "after"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1bcafter", "cafter"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("\u202egnp.exe", "gnp.exe"),
        ("two\nlines\tand perché", "two\nlines\tand perché"),
    ],
)
def test_no_escape_is_left(text, left):
    assert without_escapes(text) == left


def test_colours_stay_where_they_are_shown():
    text = f"\x1b[31mred\x1b[0m{LINK}\x1b[2K\x1b[1;38;5;9mbold\x07"
    assert without_escapes(text, colours=True) == "\x1b[31mred\x1b[0mclick\x1b[1;38;5;9mbold"


def test_no_escape_survives_into_a_page(tmp_path):
    outputs = [
        nbformat.v4.new_output("stream", name="stdout", text=f"said {LINK} \x1b[31mred\x1b[0m"),
        nbformat.v4.new_output("execute_result", data={"text/plain": LINK, "text/html": f"<p>{LINK}</p>"}),
        nbformat.v4.new_output("error", ename="E", evalue=LINK, traceback=[LINK]),
    ]
    cells = [
        nbformat.v4.new_code_cell(f"x = '{LINK}'", outputs=outputs, id="one"),
        nbformat.v4.new_markdown_cell(f"words {LINK}", id="two"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "book.ipynb")
    page = to_html(tmp_path / "book.ipynb")
    assert page.count("click") >= 5 and "evil.example" not in page and "\x1b" not in page
    assert "ansi-red-fg" in page


def test_a_notebook_as_json_has_it_is_cleaned_and_left_as_it_was():
    content = {"cells": [{"source": ["a\n", LINK], "outputs": [{"text": [LINK, "\n"]}]}]}
    cleaned = clean_notebook(content)
    assert cleaned == {"cells": [{"source": "a\nclick", "outputs": [{"text": "click\n"}]}]}
    assert content["cells"][0]["source"] == ["a\n", LINK]


def test_the_book_s_and_the_report_s_text_hold_none():
    from compendium.frame.report import _esc

    assert esc(f"<{LINK}>") == _esc(f"<{LINK}>") == "&lt;click&gt;"
