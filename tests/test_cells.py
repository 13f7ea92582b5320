import numpy as np
import pandas as pd
import pytest

from lib.cells import CellsError, grid, published, read_cells, study_cells, value_of
from lib.page import Page

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
    from lib import style

    style.use()
    saved = []
    for _ in range(2):
        figure = style.heat([[0.5, np.nan]], ["r"], ["a", "b"])
        page.save_figure(figure, "heat")
        saved.append([(page.figures / f"heat.{ending}").read_bytes() for ending in ("png", "svg")])
    assert saved[0] == saved[1]


@pytest.mark.parametrize("body, message", [
    ("alienbench,t,r,c,five,,,,\n", "line 2: value is 'five', should be a number or empty"),
    ("alienbench,t,r,c,5,,,,\nalienbench,t,r,c,6,,,,\n", r"line 3: the address alienbench/t\[r, c\] is given twice"),
])
def test_bad_cells_are_named_by_line(tmp_path, body, message):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + body)
    with pytest.raises(CellsError, match=message):
        read_cells(path)


def test_missing_file_and_column(tmp_path):
    with pytest.raises(CellsError, match="no such file"):
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
