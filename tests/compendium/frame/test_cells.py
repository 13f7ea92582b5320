import numpy as np
import pandas as pd
import pytest

from compendium.frame import cells
from compendium.frame.cells import (
    CellsError,
    findings,
    grid,
    held,
    published,
    read_cells,
    study_cells,
    value_of,
)
from compendium.frame.page import Page

HEAD = "study,exhibit,row,column,value,lo,hi,decimals,note\n"


@pytest.fixture
def page(tmp_path):
    return Page("alienbench", "03_scores", out=tmp_path)


def test_what_is_put_is_read_back(page):
    page.cell("table-3", "m", "overall", 5.14, lo=4.78, hi=5.51, decimals=2)
    page.cells("table-6", pd.DataFrame({"a": [1.0, np.nan]}, index=["x", "y"]))
    page.derived("table-3", "m", "overall", 5.13)
    page.close()
    frame = read_cells(page.cells_path)
    data = frame[frame["basis"] == "data"]
    assert value_of(data, "table-3", "m", "overall") == 5.14
    assert grid(data, "table-6").loc["x", "a"] == 1.0
    assert frame.loc[frame["row"] == "y", "note"].tolist() == ["undefined"]
    assert frame.loc[frame["basis"] == "printed", "value"].tolist() == [5.13]


def test_one_address_is_filled_once(page):
    page.cell("table-3", "m", "overall", 1)
    with pytest.raises(CellsError, match=r"alienbench/table-3\[m, overall\] is filled twice in 03_scores"):
        page.cell("table-3", "m", "overall", 2)


def test_a_missing_value_needs_a_reason(page):
    with pytest.raises(CellsError, match="needs a note"):
        page.cell("table-3", "m", "overall", np.nan)
    page.cell("table-3", "m", "overall", None, note="no rows")


def test_nothing_is_written_before_the_page_closes(page, tmp_path):
    page.cell("table-3", "m", "overall", 1)
    assert not list(tmp_path.rglob("*.csv"))


def test_generators_depend_on_their_label_alone(page):
    first = page.rng(1, "a").random(3)
    page.rng(1, "b").random(5)
    assert (page.rng(1, "a").random(3) == first).all()
    assert (page.rng(1, "b").random(3) != first).all()


def test_figures_are_the_same_bytes_twice(page):
    from compendium.frame import style

    style.use()
    saved = []
    for _ in range(2):
        figure = style.heat([[0.5, np.nan]], ["r"], ["a", "b"])
        page.save_figure(figure, "heat")
        saved.append([(page.figures / f"heat.{ending}").read_bytes() for ending in ("png", "svg")])
    assert saved[0] == saved[1]


@pytest.mark.parametrize(
    "body, message",
    [
        ("alienbench,t,r,c,five,,,,\n", "line 2: value is 'five', should be a number or empty"),
        ("alienbench,t,r,c,inf,,,,\n", "line 2: value is 'inf', should be a number or empty"),
        (
            "alienbench,t,r,c,1,,,1.5,\n",
            "line 2: decimals is '1.5', should be a whole number of at least 0 or empty",
        ),
        ("alienbench,t,r,c,1,,,-1,\n", "line 2: decimals is '-1', should be a whole number"),
        ("alienbench,t, r,c,1,,,,\n", "line 2: row is ' r', should be a name without blanks around it"),
        ("alienbench,t,r,,1,,,,\n", "line 2: column is '', should be a name"),
        ("alienbench,t,r,c,1,,,,x,y\n", "not a CSV file"),
        (
            "alienbench,t,r,c,5,,,,\nalienbench,t,r,c,6,,,,\n",
            r"line 3: the address alienbench/t\[r, c\] is given twice",
        ),
    ],
)
def test_bad_cells_are_named_by_line(tmp_path, body, message):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + body)
    with pytest.raises(CellsError, match=message):
        read_cells(path)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not a CSV file: No columns to parse"),
        (b"\xff\xfe", "not UTF-8"),
        (b'"open\n', "not a CSV file|lacks the column"),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path, content, message):
    path = tmp_path / "cells.csv"
    path.write_bytes(content)
    with pytest.raises(CellsError, match=f"cells.csv.*({message})"):
        read_cells(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(CellsError, match="cells.csv: cannot be read"):
        read_cells(path)


PRINTED = "study,exhibit,row,column,value,lo,hi,decimals,note,place,kind,tolerance,archive,print\n"


@pytest.mark.parametrize(
    "row, message",
    [
        (",,,,,Table 1,exact,,whole,number", "the value is missing; `note` should say"),
        ("5,,,,,Table 1,exact,,whole,number", "decimals is empty"),
        ("5,4,,0,,Table 1,exact,,whole,number", "an interval needs both"),
        (
            "5,,,0,,Table 1,bound,,whole,number",
            "the note of a bound should begin with its sign, .*; it is ''",
        ),
        ("5,,,0,about,Table 1,bound,,whole,number", "the note of a bound should begin with its sign"),
        ("5,,,0,,Table 1,monte-carlo,,whole,number", "a monte-carlo number needs a tolerance"),
        ("5,,,0,,Table 1,exact,0.1,whole,number", "a tolerance belongs to a monte-carlo number"),
        ("5,,,0,,Table 1,guess,,whole,number", "kind is 'guess', should be one of exact"),
        ("5,,,0,,Table 1,exact,,some,number", "archive is 'some', should be one of whole"),
        ("5,,,0,,Table 1,exact,,whole,page", "print is 'page', should be one of number"),
    ],
)
def test_a_printed_number_that_cannot_be_is_named_by_line(tmp_path, monkeypatch, row, message):
    monkeypatch.setattr(cells, "DATA", tmp_path)
    path = tmp_path / "published/alienbench.csv"
    path.parent.mkdir()
    good = (
        "alienbench,t,a,x,5,4,6,0,,Table 1,exact,,whole,number\n"
        "alienbench,t,b,x,5,,,0,< it says,Table 1,bound,,whole,number\n"
    )
    path.write_text(PRINTED + good)
    assert len(published("alienbench")) == 2
    path.write_text(PRINTED + good + f"alienbench,t,r,c,{row}\n")
    with pytest.raises(CellsError, match="alienbench.csv, line 4: " + message):
        published("alienbench")


FINDING = (
    "- {id: x, title: t, kind: oddity, finding: f, tried: [], independent: '', rows: [],"
    " first: {place: p, quote: q}, second: {place: p, shows: q}}\n"
)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a: 1\n", "should hold a list of"),
        ("- [\n", "line 2.*not valid YAML"),
        ("- {id: x}\n", "entry 1: should hold id, title, kind"),
        (
            FINDING.replace("kind: oddity", "kind: error"),
            "entry 1: kind is 'error', should be one of contradiction",
        ),
        (
            FINDING.replace("kind: oddity", "kind: contradiction"),
            "entry 1: a contradiction should say in `tried`",
        ),
        (FINDING.replace(", quote: q}", "}"), "entry 1: should hold id"),
        ("- 5\n", "entry 1: should be a mapping"),
    ],
)
def test_findings_that_cannot_be_shown_are_named(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(cells, "DATA", tmp_path)
    assert findings("alienbench") == []
    (tmp_path / "published").mkdir()
    path = tmp_path / "published/alienbench_findings.yaml"
    path.write_text(FINDING)
    assert findings("alienbench")[0]["id"] == "x"
    path.write_text(text)
    with pytest.raises(CellsError, match="alienbench_findings.yaml.*" + message):
        findings("alienbench")


def test_what_is_held_has_known_words(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "DATA", tmp_path)
    assert held("alienbench") == {}
    (tmp_path / "published").mkdir()
    path = tmp_path / "published/held.yaml"
    path.write_text("alienbench: {part: some, lost: [Table 1]}\n")
    assert held("alienbench")["lost"] == ["Table 1"]
    path.write_text("alienbench: {some: part}\n")
    with pytest.raises(CellsError, match="held.yaml, alienbench: unknown key 'some', should be one of whole"):
        held("alienbench")


def test_missing_file_and_column(tmp_path):
    with pytest.raises(CellsError, match="none.csv: cannot be read .*should be a CSV file"):
        read_cells(tmp_path / "none.csv")
    (tmp_path / "cells.csv").write_text("study,exhibit\n")
    with pytest.raises(CellsError, match="lacks the column 'row'"):
        read_cells(tmp_path / "cells.csv")


def test_unknown_exhibit_names_the_known_ones(page):
    page.cell("table-3", "m", "overall", 1)
    page.close()
    with pytest.raises(CellsError, match="there are: table-3"):
        grid(read_cells(page.cells_path), "table-4")


def test_tables_run_alone_show_the_printed_numbers(tmp_path):
    assert study_cells("", "alienbench").equals(published("alienbench"))
    with pytest.raises(CellsError, match="no cells yet"):
        study_cells(tmp_path, "alienbench")


def test_parameters_come_from_the_study_where_none_are_given(page):
    given = page.params(B=7, seed=None)
    assert (given.B, given.seed) == (7, 20261109)
    with pytest.raises(ValueError, match="'sed' is no key of params/alienbench.yaml"):
        page.params(sed=None)
