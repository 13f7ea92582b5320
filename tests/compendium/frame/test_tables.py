import numpy as np
import pandas as pd
import pytest

from compendium.frame.cells import CellsError, read_cells
from compendium.frame.page import Page
from compendium.frame.tables import Table, bold_best, from_cells, number, to_html, to_latex, write_table


@pytest.fixture
def cells(tmp_path):
    page = Page("alienbench", "03_scores", out=tmp_path)
    page.cell("table-3", "a", "overall", 5.144, lo=4.781, hi=5.5)
    page.cell("table-3", "a", "rate", 12.34)
    page.cell("table-3", "b", "overall", 3.2)
    page.cell("table-3", "b", "rate", None, note="no rows")
    page.close()
    return read_cells(page.cells_path)


def test_numbers_as_tables_print_them():
    assert number(5.144, 2, 4.781, 5.5) == "5.14 [4.78, 5.50]"
    assert number(np.nan) == "–" and number(-0.001) == "0.00" and number(-0.53) == "-0.53"


def test_rows_and_columns_are_chosen_ordered_and_labelled(cells):
    body = from_cells(
        cells,
        "table-3",
        rows={"b": "Model B", "a": "Model A"},
        columns={"overall": "Overall", "rate": "Rate"},
        decimals={"rate": 1},
        percent=("rate",),
    )
    assert body.loc["Model A"].tolist() == ["5.14 [4.78, 5.50]", "12.3%"]
    assert body.loc["Model B"].tolist() == ["3.20", "–"]
    with pytest.raises(KeyError):
        from_cells(cells, "table-3", rows={"c": "Model C"})


def test_two_ids_with_one_label_are_refused(cells):
    """Filled by label, both rows would have shown the numbers of the second."""
    for given in ({"rows": {"a": "Model", "b": "Model"}}, {"columns": {"overall": "Score", "rate": "Score"}}):
        with pytest.raises(CellsError, match="table-3: '.*' and '.*' have the same label"):
            from_cells(cells, "table-3", **given)


def test_three_formats_hold_the_same_numbers(cells, tmp_path):
    body = from_cells(cells, "table-3", columns={"overall": "Overall & all"})
    table = Table(
        "Table 3",
        "Scores with 95% intervals",
        bold_best(body, pd.DataFrame({"Overall & all": [5.1, 3.2]}, index=body.index)),
    )
    html, tex, csv = (path.read_text() for path in write_table(table, tmp_path, "table-3"))
    assert "<b>5.14 [4.78, 5.50]</b>" in html and "Overall &amp; all" in html
    assert r"\textbf{5.14 [4.78, 5.50]}" in tex and r"Overall \& all" in tex and r"95\% intervals" in tex
    assert (
        pd.read_csv(tmp_path / "table-3.csv", index_col=0).iloc[0, 0] == "5.14 [4.78, 5.50]"
        and "*" not in csv
    )


def test_markup_is_escaped():
    table = Table("T", "<x>", pd.DataFrame({"<a>": ["1 < 2"]}, index=["r_1"]))
    assert "<x>" not in to_html(table) and "1 &lt; 2" in to_html(table) and r"r\_1" in to_latex(table)
