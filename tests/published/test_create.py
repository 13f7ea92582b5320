"""The transcription of CREATE: the leaderboard number by number, and every quotation where it is said to
stand."""

import json
import re

import pandas as pd
import pytest

from compendium.frame.cells import published
from compendium.studies.create.answers import load_answers


@pytest.fixture(scope="module")
def printed():
    return published("create")


def test_the_leaderboard_is_the_released_one(mirror, printed):
    board = json.loads((mirror / "create" / "utility_data.json").read_text(encoding="utf-8"))
    rows = printed[printed["exhibit"] == "figure-4"].set_index(["row", "column"])["value"]
    found = {
        (name, f"utility@{float(gamma):.1f}"): value
        for name, curve in board.items()
        for gamma, value in curve.items()
    }
    assert rows.to_dict() == found
    assert len({row for row, _ in found}) == 20


def test_leaderboard_curves_rise_with_patience(printed):
    board = printed[printed["exhibit"] == "figure-4"].pivot(index="row", columns="column", values="value")
    assert (board.diff(axis=1).iloc[:, 1:].fillna(1) > 0).all(axis=None)


def test_every_number_says_where_it_stands(printed):
    assert (printed["place"] != "").all()
    assert (printed["archive"] != "whole").all()  # 20 of 931 queries are released: another run
    assert printed.loc[printed["kind"] == "bound", "note"].str.startswith("<").all()


def test_printed_numbers_stand_in_the_paper(mirror, printed):
    path = mirror.parent / "papers" / "create.txt"
    if not path.is_file():
        pytest.skip("the paper's text does not lie beside the archive mirror")
    text = path.read_text(encoding="utf-8")
    words = {
        1: "first|one",
        2: "[Tt]wo|second",
        3: "third|three|3",
        5: "5",
        6: "6",
        10: "ten|10",
        11: "eleven",
    }
    for row in printed[printed["exhibit"] != "figure-4"].itertuples():
        number = f"{row.value:.{row.decimals}f}"
        pattern = rf"(?<![\d.])(?:{re.escape(number)}|{re.escape(f'{row.value:,.0f}')})(?!\d)"
        assert re.search(pattern, text) or re.search(words.get(int(row.value), "$^"), text), row


def test_classes_of_the_released_queries(mirror):
    """What the notes on the benchmark's relations and the entry classes-of-tails say."""
    answers = [load_answers(file) for file in (mirror / "create" / "data").glob("*.jsonl")]
    queries = pd.concat([found.queries for found in answers]).drop_duplicates("query")
    assert len(queries) == 23 and queries["class_relation"].nunique() == 9
    assert queries["class_relation"].isin(["cast member", "screenwriter"]).sum() == 5
