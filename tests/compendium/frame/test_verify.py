import json

import numpy as np
import pandas as pd
import pytest

from compendium.frame.cells import COMPUTED, PUBLISHED, CellsError, agreement
from compendium.frame.report import page
from compendium.frame.verify import STATUSES, gather, moved, summary, verify


def printed(**changes):
    row = dict(
        study="alienbench",
        exhibit="table-3",
        row="m",
        column="overall",
        value=5.14,
        lo=np.nan,
        hi=np.nan,
        decimals=2,
        note="",
        place="Table 3",
        kind="exact",
        tolerance=np.nan,
        archive="same",
    )
    return row | changes


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


def status_of(row, profile="released", data=(), derived=()):
    frames = [pd.DataFrame(list(rows), columns=COMPUTED) for rows in (data, derived)]
    report = verify(pd.DataFrame([row], columns=PUBLISHED), *frames, profile)
    return tuple(report.loc[0, ["status", "verdict"]])


@pytest.mark.parametrize(
    "value, expected",
    [
        (5.1449, "reproduced"),
        (5.145, "reproduced"),
        (5.135, "reproduced"),
        (5.1451, "differs"),
        (5.1349, "differs"),
    ],
)
def test_equal_at_the_printed_rounding(value, expected):
    assert agreement(printed(), computed(value)) == expected


def test_intervals_count_too_and_tolerance_only_for_monte_carlo():
    row = printed(lo=4.78, hi=5.51, kind="monte-carlo", tolerance=0.02)
    assert agreement(row, computed(5.14, lo=4.78, hi=5.51)) == "reproduced"
    assert agreement(row, computed(5.14, lo=4.79, hi=5.50)) == "within"
    assert agreement(row, computed(5.14, lo=4.81, hi=5.50)) == "differs"
    assert agreement(row | {"kind": "exact"}, computed(5.14, lo=4.79, hi=5.50)) == "differs"
    assert agreement(row, computed(5.14)) == "differs"


def test_bounds():
    row = printed(value=0.001, decimals=3, kind="bound", note="<")
    assert agreement(row, computed(1e-9)) == "reproduced"
    assert agreement(row, computed(0.002)) == "differs"
    assert agreement(row, computed(np.nan)) == "differs"


@pytest.mark.parametrize(
    "sign, met, missed",
    [
        ("<", 4.9, 5.0),
        ("<=", 5.0, 5.1),
        ("≤ of both", 5.0, 5.1),
        (">", 5.1, 5.0),
        (">= always", 5.0, 4.9),
        ("≥", 5.0, 4.9),
    ],
)
def test_every_sign_of_a_bound(sign, met, missed):
    row = printed(value=5.0, kind="bound", note=sign)
    assert [agreement(row, computed(value)) for value in (met, missed, np.nan)] == [
        "reproduced",
        "differs",
        "differs",
    ]


def test_nothing_computed_never_reproduces_a_number():
    assert agreement(printed(), computed(np.nan)) == "differs"
    assert agreement(printed(kind="monte-carlo", tolerance=9.0), computed(np.nan)) == "differs"
    blank = printed(value=np.nan, decimals=pd.NA, note="a dash")
    assert agreement(blank, computed(np.nan)) == "reproduced" and agreement(blank, computed(1.0)) == "differs"
    row = verify(
        pd.DataFrame([printed()], columns=PUBLISHED),
        pd.DataFrame([computed(np.nan, note="one judge only")]),
        pd.DataFrame(columns=COMPUTED),
        "released",
    ).loc[0]
    assert (row["status"], row["remark"]) == ("no data", "one judge only")


def test_statuses_in_released():
    data, again = [computed(5.14)], [computed(5.2)]
    assert status_of(printed(), data=data) == ("reproduced", "")
    assert status_of(printed()) == ("no data", "")
    assert status_of(printed(archive="other run"), data=data) == ("other run", "")
    assert status_of(printed(archive="other run")) == ("other run", "")
    assert status_of(printed(archive="other run"), data=data, derived=again) == ("derived", "contradicts")
    assert status_of(printed(archive="none")) == status_of(printed(archive="design")) == ("no data", "")


def test_no_data_says_why():
    rows = [printed(row="released nothing", archive="none"), printed(row="chosen", archive="design")]
    report = verify(pd.DataFrame(rows, columns=PUBLISHED), *[pd.DataFrame(columns=COMPUTED)] * 2, "released")
    assert list(report["remark"]) == [
        "no released file at hand covers it",
        "a constant or choice of the design",
    ]


def test_the_demo_never_claims_to_reproduce():
    equal = [computed(5.14)]
    for archive in ("same", "other run", "none", "design"):
        assert status_of(printed(archive=archive), "demo", data=equal) == ("other run", "")
    assert status_of(printed(), "demo", derived=equal) == ("derived", "agrees")
    assert status_of(printed(), "demo") == ("no data", "")


def test_every_printed_number_gets_a_status_and_the_summary_adds_up():
    rows = [printed(row=str(i), archive=archive) for i, archive in enumerate(("same", "other run", "none"))]
    data = pd.DataFrame([computed(5.14, row="0")], columns=COMPUTED)
    report = verify(pd.DataFrame(rows, columns=PUBLISHED), data, data[:0], "released")
    assert list(report["status"]) == ["reproduced", "other run", "no data"] and set(report["status"]) <= set(
        STATUSES
    )
    line = summary(report, data, "alienbench")
    assert line == (
        "alienbench: cells 1; printed 3: reproduced 1, within 0, differs 0, derived 0, other run 1, no data 1"
    )


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
    data = pd.DataFrame([computed(5.1)], columns=COMPUTED)
    report = verify(pd.DataFrame(rows, columns=PUBLISHED), data, data[:0], "demo")
    html = page(report, data, ["alienbench"], "demo")
    data = html.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert "<" not in data, "no text of a paper may open or close an element"
    assert json.loads(data)[0][2] == "<script>" and json.loads(data)[0][9].startswith(
        "</script> & more <!--<script>"
    )
    assert "simulated models" in html
    assert "http://" not in html and "https://" not in html and "src=" not in html


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
