"""The printed numbers of the world-model study: whole, addressed, and checked against each other."""

import numpy as np
import pandas as pd
import pytest

from compendium.frame.cells import findings, published, value_of
from compendium.studies.worldmodels.bounds import bounds, possible_semantics
from compendium.studies.worldmodels.printed import (
    CASES,
    MODELS,
    Rule,
    _range,
    derive,
    extreme_pairs,
    harmonic,
    rules,
    spearman_p,
)


@pytest.fixture(scope="module")
def printed():
    return published("worldmodels")


@pytest.fixture(scope="module")
def derived(printed):
    return derive(printed)


@pytest.mark.parametrize(
    "exhibit, count",
    [
        ("table-1", 16),
        ("table-2", 35),
        ("table-3", 24),
        ("table-4", 54),
        ("table-5", 2 * 9 + 3 * 11 + 3 * 14),
        ("table-6", 15),
        ("table-7", 70),
        ("table-8", 35),
        ("table-9", 90),
        ("table-10", 24),
        ("table-11", 130),
        ("table-12", 35),
        ("table-13", 70),
        ("table-14", 84),
        ("table-15", 50),
    ],
)
def test_every_table_is_whole(printed, exhibit, count):
    assert (printed["exhibit"] == exhibit).sum() == count


def test_nothing_is_said_to_be_covered_by_an_archive(printed):
    assert set(printed["archive"]) == {"none held"} and printed["place"].str.len().min() > 0


@pytest.mark.parametrize(
    "address, value, decimals",
    [
        (("table-2", "anthropic/claude-opus-5", "q1"), 0.0597, 4),
        (("table-6", "qwen/qwen3.8-27b", "median_range"), 0.7865, 4),
        (("table-9", "meta-llama/llama-3.3-70b-instruct", "G6:f1"), 0.72, 2),
        (("table-12", "qwen/qwen3.8-27b", "f1_delta"), -0.144, 3),
        (("table-13", "C2", "anthropic/claude-opus-5"), 0.127, 3),
        (("table-14", "C12", "panel"), 0.905, 3),
        (("table-15", "C13:qwen/qwen3.8-27b", "china"), 30, 0),
        (("text-6", "stochastic_fraction", "rho"), -0.677, 3),
    ],
)
def test_entries_against_the_page(printed, address, value, decimals):
    row = printed.set_index(["exhibit", "row", "column"]).loc[address]
    assert (row["value"], row["decimals"]) == (value, decimals)


def test_rules_name_printed_addresses_once(printed):
    known = set(map(tuple, printed[["exhibit", "row", "column"]].to_numpy()))
    targets = [rule.target for rule in rules()]
    assert len(targets) == len(set(targets)) > 300
    assert {address for rule in rules() for address in (rule.target, *rule.sources)} <= known


def test_what_contradicts_is_what_is_listed(derived):
    wrong = {tuple(row) for row in derived.loc[~derived["agrees"], ["exhibit", "row", "column"]].to_numpy()}
    deepseek, qwen = "deepseek/deepseek-v4-flash-0731", "qwen/qwen3.8-27b"
    assert wrong == {
        ("table-1", "game", "f1"),
        ("table-1", "cultural", "checklist"),
        ("table-11", f"{deepseek}:located", "semantic"),
        ("table-14", "C11", qwen),
        ("text-6", "game", "not_exact"),
        ("text-A.1", "C7", "lane1_pass"),
        ("text-A.1", "C7", "lane1_of"),
        ("text-B.1", "toy", "exact"),
        ("text-B.1", "toy", "sub_perfect"),
        ("text-B.4", f"missing:{qwen}", "unparseable_located"),
        *(("table-5", "cultural:mean_semantic", case) for case in CASES if case not in ("C5", "C10", "C11")),
    }


def test_a_finding_decides_every_number_that_does_not_follow(derived):
    wrong = {tuple(row) for row in derived.loc[~derived["agrees"], ["exhibit", "row", "column"]].to_numpy()}
    decided = {
        tuple(row) for entry in findings("worldmodels") if entry["kind"] != "oddity" for row in entry["rows"]
    }
    assert wrong == decided


def test_dropping_the_entry_that_should_be_a_dash_repairs_table_14(printed):
    row = printed[(printed["exhibit"] == "table-14") & (printed["row"] == "C11")].set_index("column")["value"]
    rest = row.drop(["panel", "qwen/qwen3.8-27b"])
    assert round(rest.mean(), 3) == row["panel"]
    column = printed[
        (printed["exhibit"] == "table-14") & (printed["column"] == "qwen/qwen3.8-27b")
    ].set_index("row")["value"]
    assert (
        round(column.drop("C11").mean(), 3)
        == value_of(printed, "table-11", "qwen/qwen3.8-27b:located", "semantic")
        or abs(column.drop("C11").mean() - 0.920) < 1e-3
    )


def test_rounding_is_carried_along():
    low, high = _range(harmonic, np.array([0.5, 0.5]), np.array([0.05, 0.05]))
    assert (low, high) == pytest.approx((0.45, 0.55))
    low, high = _range(lambda v: v[0] - v[1], np.array([1.0, 0.4]), np.array([0.05, 0.0]))
    assert (low, high) == pytest.approx((0.55, 0.65))


def frame(rows):
    return pd.DataFrame(
        [[*address, value, decimals, ""] for address, value, decimals in rows],
        columns=["exhibit", "row", "column", "value", "decimals", "note"],
    )


def test_agreement_is_a_matter_of_intervals(monkeypatch):
    made = [Rule(("t", "mean", "x"), (("t", "a", "x"), ("t", "b", "x")), np.mean, "mean")]
    monkeypatch.setattr("compendium.studies.worldmodels.printed.rules", lambda: made)
    rows = [(("t", "a", "x"), 0.1, 1), (("t", "b", "x"), 0.2, 1)]
    for shown, fine in ((0.15, True), (0.20, True), (0.21, False), (0.10, True), (0.09, False)):
        found = derive(frame([*rows, (("t", "mean", "x"), shown, 2)])).iloc[0]
        assert bool(found["agrees"]) is fine, shown
        assert found["lo"] == pytest.approx(0.10) and found["hi"] == pytest.approx(0.20)
        assert found["lo"] - 1e-12 <= found["value"] <= found["hi"] + 1e-12
    with pytest.raises(KeyError, match="printed as missing"):
        derive(frame([(("t", "a", "x"), np.nan, 1), rows[1], (("t", "mean", "x"), 0.1, 1)]))


def test_spearman_p_of_the_paper():
    assert spearman_p(np.array([-0.677, 9])) == pytest.approx(0.045, abs=5e-4)


def test_semantic_scores_are_square_roots(printed):
    table = printed[(printed["exhibit"] == "table-14") & (printed["column"] != "panel")]
    found = possible_semantics(table["value"]).set_index("score")
    assert found["k"].isna().sum() == 1 and np.isnan(found.at[0.854, "k"])
    assert tuple(found.loc[0.817, ["k", "n"]]) == (2, 3) and tuple(found.loc[0.964, ["k", "n"]]) == (13, 14)
    # most three-decimal numbers are no such root, so the fit says something
    others = possible_semantics(np.arange(0.7, 1.0, 0.001))
    assert others["k"].notna().mean() < 0.3


def test_levels_of_table_15(printed):
    assert extreme_pairs(printed) == {"printed": 46, "missing": 4, "EXT": 15, "HIGH": 16, "LOW": 15}


def test_bounds_hold_for_the_paper_and_can_fail(printed):
    found = bounds(printed)
    assert len(found) == 5 + 6 + 10 + 10 + 45 and found["holds"].all()
    # by hand: coverage .3133 and precision .1416 of Table 2's first row: 2 x .3133 x .1416 / .4549 = .1950
    row = found[(found["exhibit"] == "table-2") & (found["row"] == MODELS[0])].iloc[0]
    assert row["at_most"] == pytest.approx(0.1950, abs=2e-4) and row["printed"] == 0.1709
    raised = printed.copy()
    raised.loc[
        (raised["exhibit"] == "table-2") & (raised["row"] == MODELS[0]) & (raised["column"] == "f1"), "value"
    ] = 0.1953
    assert list(bounds(raised).query("~holds")["exhibit"]) == ["table-2"]
