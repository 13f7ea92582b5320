import json

import numpy as np
import pandas as pd
import pytest

from compendium.frame.cells import COMPUTED, PUBLISHED, CellsError
from compendium.frame.report import bar, computed_text, counts_line, page
from compendium.frame.verdicts import verify
from compendium.frame.verify import DERIVED, gather, moved, summary
from tests.compendium.frame.rows import printed


def computed(value, **changes):
    row = dict(
        study="alienbench",
        exhibit="table-3",
        row="m",
        column="overall",
        value=value,
        lo=np.nan,
        hi=np.nan,
        decimals=pd.NA,
        note="",
        notebook="alienbench/03_scores",
        cell="overall",
    )
    return row | changes


def report_of(*rows, data=(), derived=(), profile="released"):
    printed_rows = pd.DataFrame(list(rows), columns=PUBLISHED)
    found = pd.DataFrame(list(data), columns=COMPUTED)
    return verify(printed_rows, found, pd.DataFrame(list(derived), columns=DERIVED), profile)


def test_every_printed_number_gets_a_verdict_and_the_summary_adds_up():
    rows = [printed(row=str(i), archive=word) for i, word in enumerate(("whole", "other run", "none held"))]
    data = [computed(5.14, row="0")]
    report = report_of(*rows, data=data)
    assert list(report["evidence"]) == ["whole", "other run", "none held"]
    assert list(report["outcome"]) == ["equal", "not computed", "not computed"]
    assert summary(report, pd.DataFrame(data), "alienbench") == (
        "alienbench: cells 1; printed 3: equal 1, not computed 2 (other run 1, none held 1)"
    )


def test_the_equation_is_the_one_that_the_notebook_named():
    again = computed(5.14) | {"basis": "printed", "equation": "departures of m"}
    report = report_of(printed(), printed(exhibit="text-1"), derived=[again])
    assert list(report["equation"]) == ["departures of m", "m overall"]


def cells_file(folder, name, notebook, basis="data"):
    path = folder / name
    path.write_text(
        "study,exhibit,row,column,value,lo,hi,decimals,note,basis,notebook,execution\n"
        f"alienbench,table-3,m,overall,1,,,,,{basis},alienbench/{notebook},3\n"
    )
    return path


def test_two_notebooks_may_not_fill_one_address(tmp_path):
    paths = [cells_file(tmp_path, f"{name}.csv", name) for name in ("03_scores", "04_reliability")]
    with pytest.raises(
        CellsError, match="filled by alienbench/03_scores and again by alienbench/04_reliability"
    ):
        gather(paths, tmp_path)
    paths[1] = cells_file(tmp_path, "12_audit.csv", "12_audit", basis="printed")
    data, derived = gather(paths, tmp_path)
    assert len(data) == len(derived) == 1


def test_a_cell_links_to_the_notebook_cell_that_made_it(tmp_path):
    book = tmp_path / "notebooks" / "alienbench" / "03_scores.ipynb"
    book.parent.mkdir(parents=True)
    book.write_text(
        '{"cells": [{"execution_count": 3, "id": "overall"}, {"execution_count": 4, "id": "rates"}]}'
    )
    data, _ = gather([cells_file(tmp_path, "03.csv", "03_scores")], tmp_path)
    assert data["cell"].tolist() == ["overall"]


def test_the_page_holds_every_row_and_asks_no_other_host():
    rows = [printed(row="<script>", note="</script> & more <!--<script>", archive="other run")]
    report = report_of(*rows, data=[computed(5.1)], profile="demo")
    html = page(report, ["a line"], ["alienbench"], "demo")
    data = html.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert "<" not in data, "no text of a paper may open or close an element"
    row = json.loads(data)["rows"][0]
    assert row[2] == "<script>" and row[9].startswith("</script> & more <!--<script>")
    assert "simulated models" in html
    assert "http://" not in html and "https://" not in html and "src=" not in html


def test_contradictions_stand_in_the_bar_and_the_counts():
    one = {"agrees": 3, "contradicts": 1}
    assert "class='contradicts'" in bar(one) and "contradicts 1" in bar(one)
    assert "✗</i> contradicts</span> 1" in counts_line(one)


@pytest.mark.parametrize("content", ["", "study,exhibit\n", "\0\0\0"])
def test_a_damaged_memory_of_the_last_run_counts_as_none(tmp_path, capsys, content):
    path = tmp_path / "last_run.csv"
    path.write_text(content)
    assert moved(path, pd.DataFrame([computed(1)], columns=COMPUTED)).empty
    assert "last_run.csv" in capsys.readouterr().err


def test_numbers_that_moved_since_the_last_run(tmp_path):
    def cells(**values):
        rows = [computed(value, row=row) for row, value in values.items()]
        return pd.DataFrame(rows, columns=COMPUTED)

    path = tmp_path / "cells.csv"
    assert moved(path, cells(a=1)).empty, "a first run has nothing to compare with"
    cells(a=1, b=2, c=0.1).to_csv(path, index=False)
    found = moved(path, cells(a=1, b=3, c=0.1 + 1e-17, d=4)).set_index("row")
    assert set(found.index) == {"b", "d"} and tuple(found.loc["b", ["before", "after"]]) == (2, 3)
    assert np.isnan(found.at["d", "before"])


@pytest.mark.parametrize(
    "value, decimals, shown",
    [(5.1426, 2, "5.1426"), (5.914833491449999592, 16, "5.914833491450"), (12.0, 0, "12")],
)
def test_the_computed_number_shows_no_noise_of_its_last_bit(value, decimals, shown):
    row = {"computed": value, "computed_lo": np.nan, "computed_hi": np.nan, "decimals": decimals}
    assert computed_text(row) == shown
