"""Correlation matrices, adjustment, reliability and disattenuation: by hand, against peers, and by
simulation.
"""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lib.correlation import (
    adjust,
    benjamini_hochberg,
    ceiling,
    correlate,
    correlation_matrix,
    disattenuated,
    fisher_interval,
    marks,
    off_diagonal,
    rater_reliability,
    ratings_needed,
    reliability_interval,
    spearman_brown,
)


@pytest.fixture
def tables():
    rng = np.random.default_rng(1)
    first = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"], index=range(10, 50))
    second = pd.DataFrame(
        {"x": first["a"] + rng.normal(size=40), "y": np.round(rng.normal(size=40)), "flat": 5.0}
    )
    return first, second


@pytest.mark.parametrize("method, peer", [("spearman", stats.spearmanr), ("kendall", stats.kendalltau)])
def test_matrix_equals_scipy_pair_by_pair(tables, method, peer):
    first, second = tables
    found = correlation_matrix(first, second, method)
    for row in first:
        for column in ("x", "y"):
            expected = peer(first[row], second[column])
            assert found.coefficient.at[row, column] == pytest.approx(expected.statistic)
            assert found.p.at[row, column] == pytest.approx(expected.pvalue, rel=1e-9)
            assert found.n.at[row, column] == 40


def test_a_constant_column_gives_no_correlation(tables):
    found = correlation_matrix(*tables)
    assert found.coefficient["flat"].isna().all() and found.p["flat"].isna().all()
    assert (marks(found.p)["flat"] == "").all()


def test_missing_pairs_are_left_out_and_units_are_matched_by_index(tables):
    first, second = tables
    whole = correlate(first["a"].iloc[1:], second["x"].iloc[1:])
    second = second.copy()
    second.iloc[0, 0] = np.nan
    shuffled = second.sample(frac=1, random_state=3)
    found = correlation_matrix(first, shuffled)
    assert found.n.at["a", "x"] == 39
    assert found.coefficient.at["a", "x"] == pytest.approx(whole[0]) and found.p.at[
        "a", "x"
    ] == pytest.approx(whole[1])


def test_perfect_order_is_one_order_of_all():
    assert correlate([1, 2, 3, 4], [10, 20, 30, 99]) == (1.0, 2 / 24, 4)
    assert np.isnan(correlate([1, 2], [2, 1])[0])


def test_bad_input(tables):
    with pytest.raises(ValueError, match="no unit in common"):
        correlation_matrix(tables[0], tables[1].set_axis(range(1000, 1040)))
    with pytest.raises(ValueError, match="unknown method"):
        correlation_matrix(*tables, method="pearson")
    with pytest.raises(ValueError, match="unknown adjustment"):
        adjust(tables[0].abs(), "sidak")


@pytest.mark.parametrize(
    "ours, theirs", [("holm", "holm"), ("fdr_bh", "fdr_bh"), ("bonferroni", "bonferroni")]
)
def test_adjustment_equals_statsmodels_over_the_whole_matrix(ours, theirs):
    p = pd.DataFrame(np.random.default_rng(2).uniform(size=(3, 4)) ** 3)
    p.iloc[1, 2] = np.nan
    found = adjust(p, ours).to_numpy().ravel()
    seen = ~np.isnan(found)
    expected = multipletests(p.to_numpy().ravel()[seen], method=theirs)[1]
    assert seen.sum() == 11 and found[seen] == pytest.approx(expected)


def test_benjamini_hochberg_by_hand():
    # 0.01·4/1, 0.02·4/2, 0.03·4/3 = 0.04 each, 0.5
    assert benjamini_hochberg([0.01, 0.5, 0.03, 0.02]) == pytest.approx([0.04, 0.5, 0.04, 0.04])


@pytest.mark.parametrize("wrong", [-0.01, 1.01, np.inf])
def test_no_method_adjusts_what_is_no_p_value(wrong):
    for method in ("bonferroni", "holm", "fdr_bh"):
        with pytest.raises(ValueError, match="p values must lie between 0 and 1"):
            adjust(pd.DataFrame([[0.5, wrong]]), method)


def test_a_square_matrix_counts_each_pair_once():
    p = pd.DataFrame(np.full((3, 3), 0.01))
    assert int(off_diagonal(p).notna().to_numpy().sum()) == 3
    assert adjust(off_diagonal(p), "bonferroni").iloc[2, 0] == pytest.approx(0.03)


def test_marks():
    p = pd.DataFrame({"a": [0.0009, 0.001, 0.009, 0.01, 0.049, 0.05, np.nan]})
    assert marks(p)["a"].tolist() == ["‡", "†", "†", "*", "*", "", ""]


def test_reliability_by_hand():
    # two units, two ratings: means 1.5 and 4.5, within-squares 0.25·4 = 1 over 2 df, between-squares 9 over 1
    # df
    found = rater_reliability([[1, 2], [4, 5]])
    assert (found.within, found.between) == pytest.approx((0.5, (9 - 0.5) / 2))
    assert found.single == pytest.approx(4.25 / 4.75) and found.mean == pytest.approx(4.25 / 4.5)


def test_reliability_is_that_of_the_simulated_raters():
    rng = np.random.default_rng(4)
    truth = rng.normal(0, 0.6, size=4000)
    groups = [
        value + rng.normal(0, 1.1, size=size) for value, size in zip(truth, rng.integers(1, 6, size=4000))
    ]
    found = rater_reliability(groups)
    assert found.single == pytest.approx(0.36 / (0.36 + 1.21), abs=0.02)
    observed = np.corrcoef(truth, [np.mean(group) for group in groups])[0, 1]
    assert ceiling(found.mean) == pytest.approx(observed, abs=0.02)


def test_interval_covers_the_planted_reliability():
    rng, hits = np.random.default_rng(5), 0
    for _ in range(60):
        truth = rng.normal(0, 0.7, size=150)
        groups = [
            value + rng.normal(0, 1, size=size) for value, size in zip(truth, rng.integers(1, 5, size=150))
        ]
        interval = reliability_interval(groups, B=300, rng=rng)["single"]
        hits += interval.lo <= 0.49 / 1.49 <= interval.hi
    assert 51 <= hits <= 60


def test_noise_alone_has_no_reliability():
    assert rater_reliability([[1, 5], [5, 1]]).single == 0
    with pytest.raises(ValueError, match="no unit has two ratings"):
        rater_reliability([[1], [2]])


def test_disattenuation_recovers_the_true_correlation():
    rng = np.random.default_rng(6)
    truth = rng.normal(size=20000)
    metric = 0.5 * truth + np.sqrt(0.75) * rng.normal(size=20000)
    noisy = truth + rng.normal(0, 1.5, size=20000)
    seen = np.corrcoef(metric, noisy)[0, 1]
    assert seen == pytest.approx(0.277, abs=0.02)
    assert disattenuated(seen, 1 / (1 + 2.25)) == pytest.approx(0.5, abs=0.03)
    assert np.isnan(disattenuated(0.3, 0.0)) and np.isnan(disattenuated(0.3, [0.19, 0.007])).all()
    assert ceiling([-0.1, 0.25]).tolist() == [0.0, 0.5]


def test_kendalls_p_ties_as_its_coefficient():
    near, tied = [0.1 + 0.2, 0.3, 1.0, 2.0, 3.0, 4.0], [0.3, 0.3, 1.0, 2.0, 3.0, 4.0]
    other = [2.0, 1.0, 3.0, 5.0, 4.0, 6.0]
    assert correlate(near, other, "kendall") == correlate(tied, other, "kendall")


def test_spearmans_p_of_few_units_is_exact():
    assert correlate([1, 2, 3], [4, 5, 9])[:2] == (1.0, pytest.approx(1 / 3))
    first, second = [1, 2, 2, 4, 5], [2, 1, 3, 3, 5]
    rho, p, _ = correlate(first, second)
    every = [abs(stats.spearmanr(first, order).statistic) for order in permutations(second)]
    assert p == pytest.approx(np.mean(np.array(every) >= abs(rho) - 1e-9))
    assert correlate(np.arange(12), -np.arange(12))[1] == pytest.approx(2 / math.factorial(12))


def test_reliability_leaves_out_what_is_missing():
    whole = rater_reliability([[1, 2], [4, 5, 4], [2, 2]])
    assert rater_reliability([[1, 2], [4, 5, np.nan, 4], [3, np.nan], [2, 2], [np.nan]]) == whole
    with_na = [pd.array([1, 2], dtype="Int64"), pd.array([4, 5, None, 4], dtype="Int64"), [2, 2]]
    assert rater_reliability(with_na) == whole


def test_spearman_browns_rule_and_its_inverse():
    """Lord and Novick (1968), section 5.10: doubling a test of reliability .6 gives .75."""
    assert spearman_brown(0.6, 2) == pytest.approx(0.75) and spearman_brown(0.75, 1 / 2) == pytest.approx(0.6)
    frame = pd.DataFrame({"r": [0.2, 0.5]})
    assert spearman_brown(frame, 4)["r"].tolist() == pytest.approx([0.5, 0.8])
    needed = ratings_needed([0.5, 0.25, 0.26, 0.0, 1.0, np.nan])
    assert needed[:3].tolist() == [4, 12, 12] and needed[4] == 0 and np.isnan(needed[[3, 5]]).all()
    for single, count in zip((0.5, 0.25, 0.26), needed):
        assert spearman_brown(single, count) >= 0.8 - 1e-9 > spearman_brown(single, count - 1)


def test_fishers_interval_is_scipys():
    draws = np.random.default_rng(5)
    x, y = draws.normal(size=(2, 15))
    found = stats.pearsonr(x, y)
    assert fisher_interval(found.statistic, 15) == pytest.approx(tuple(found.confidence_interval()))
    assert fisher_interval(np.array([1.0, -1.0]), 5)[0] == pytest.approx([1, -1])
    with pytest.raises(ValueError, match="at least four"):
        fisher_interval(0.5, 3)
