"""lib.ranks against scipy, statsmodels, brute force, and cases worked by hand."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from compendium.frame.paths import ROOT
from lib import numeric
from lib.ranks import (
    bonferroni,
    holm,
    kendall_tau_b,
    kruskal_wallis,
    mann_whitney,
    mean_absolute_difference,
    pair_signs,
    rank_biserial_interval,
    rank_changes,
    ranks,
    spearman,
)

NAN = np.nan
tied_pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=14)
tied_sample = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def published(exhibit):
    frame = pd.read_csv(ROOT / "data" / "published" / "alienbench.csv")
    return frame[frame["exhibit"] == exhibit]


def test_ranks_by_hand():
    scores = [3.0, 1.0, 3.0, 2.0]
    assert ranks(scores).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert ranks(scores, method="competition").tolist() == [1.0, 4.0, 1.0, 3.0]
    assert ranks(scores, highest_first=True).tolist() == [1.5, 4.0, 1.5, 3.0]
    assert ranks(scores, method="competition", highest_first=False).tolist() == [3.0, 1.0, 3.0, 2.0]
    np.testing.assert_array_equal(ranks([[2, NAN, 5]]), [[1, NAN, 2]])
    assert ranks(np.array([3, 7], dtype=np.uint8), method="competition").tolist() == [2.0, 1.0]


@settings(max_examples=80, deadline=None)
@given(scores=tied_sample)
def test_competition_ranks_equal_scipy(scores):
    theirs = stats.rankdata(-np.array(scores), "min")
    np.testing.assert_array_equal(ranks(scores, method="competition"), theirs)


@settings(max_examples=100, deadline=None)
@given(pairs=tied_pairs)
def test_correlations_equal_scipy(pairs):
    a, b = np.array(pairs, dtype=float).T
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(spearman(a, b)) and np.isnan(kendall_tau_b(a, b))
    else:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
        assert kendall_tau_b(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(pairs=tied_pairs)
def test_correlations_are_symmetric_and_ordinal(pairs):
    a, b = np.array(pairs, dtype=float).T
    for correlation in (spearman, kendall_tau_b):
        found = correlation(a, b)
        np.testing.assert_array_equal(correlation(b, a), found)
        np.testing.assert_array_equal(correlation(a**3, np.exp(b)), found)
        np.testing.assert_array_equal(correlation(-a, b), -np.array(found))
        assert np.isnan(found) or -1 <= found <= 1 + 1e-15


def test_correlations_are_batched_and_broadcast():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, size=(6, 10)).astype(float)
    for correlation in (spearman, kendall_tau_b):
        table = correlation(scores[:, np.newaxis], scores[np.newaxis])
        assert table.shape == (6, 6)
        assert table[1, 4] == correlation(scores[1], scores[4])
        assert isinstance(correlation(scores[0], scores[1]), float)
        upright = correlation(scores.T, scores[::-1].T, axis=0)
        np.testing.assert_array_equal(upright, correlation(scores, scores[::-1]))


def test_correlations_leave_out_incomplete_pairs():
    a = np.array([[1, 2, 3, NAN, 5], [1, NAN, 2, 2, 9]])
    b = np.array([[2, 1, 3, 4, NAN], [4, 4, NAN, 1, 2]])
    for row in range(2):
        seen = ~(np.isnan(a[row]) | np.isnan(b[row]))
        for correlation in (spearman, kendall_tau_b):
            assert correlation(a, b)[row] == correlation(a[row][seen], b[row][seen])
    assert np.isnan(spearman([1, NAN], [NAN, 2])) and np.isnan(kendall_tau_b([1.0], [2.0]))


def test_a_score_summed_in_another_order_still_ties():
    a, b = [0.1 + 0.2 + 0.3, 0.5], [0.3 + 0.2 + 0.1, 0.6]
    assert a[0] != b[0]
    assert spearman([a[0], b[0], 0.1], [1, 1, 0]) == 1.0
    assert kendall_tau_b([a[0], b[0], 0.1], [1, 1, 0]) == 1.0
    assert rank_changes([a[0], b[0], 0.1], [1, 1, 0]) == 0


def test_tau_by_sorting_equals_tau_by_pairs():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 30, size=(2, 2, 501)).astype(float)
    a[0, :5] = NAN
    long = kendall_tau_b(a, b)
    assert long.shape == (2,)
    for row in range(2):
        seen = np.s_[5:] if row == 0 else np.s_[:]
        x, y = pair_signs(a[row][seen]), pair_signs(b[row][seen])
        assert long[row] == pytest.approx(x @ y / np.sqrt((x @ x) * (y @ y)), abs=1e-12)
    assert np.isnan(kendall_tau_b(np.full(501, NAN), np.arange(501.0)))


def test_rank_changes_by_hand():
    assert rank_changes([1, 2, 3], [10, 20, 30]) == 0
    assert rank_changes([1, 2, 3], [1, 3, 2]) == 2
    assert rank_changes([1, 2, 3], [1, 2, 2]) == 2  # a new tie moves both average ranks
    assert rank_changes([1, 2, NAN], [2, 1, 0]) == 2
    assert rank_changes([[1, 2, 3], [3, 2, 1]], [1, 2, 3]).tolist() == [0, 2]


def test_mean_absolute_difference_by_hand():
    assert mean_absolute_difference([1, 2, 3], [2, 2, 1]) == 1.0
    assert mean_absolute_difference([1, NAN, 3], [2, 2, NAN]) == 1.0
    assert np.isnan(mean_absolute_difference([NAN], [1.0]))
    np.testing.assert_array_equal(mean_absolute_difference([[0, 0], [1, 3]], [1, 1]), [1, 1])


def test_table_9_follows_from_its_own_means():
    """The paper's rho and MAD between wordings, from the means it prints to two decimals."""
    means = published("table-9-means").pivot(index="row", columns="column", values="value")
    for exhibit, statistic in (("table-9-rho", spearman), ("table-9-mad", mean_absolute_difference)):
        cells = published(exhibit)
        for row, column, value in zip(cells["row"], cells["column"], cells["value"], strict=True):
            # printed means are off by up to 0.005 each, so MAD by up to 0.01 and its rounding 0.005
            assert statistic(means[row], means[column]) == pytest.approx(value, abs=0.015), (row, column)
    assert len(published("table-9-rho")) >= 15


def test_table_13_ranks_follow_from_table_3():
    overall = published("table-3").query("column == 'overall'").set_index("row")["value"]
    placed = pd.Series(ranks(overall, method="competition"), index=overall.index)
    printed = published("table-13").query("column == 'rank_all'").set_index("row")["value"]
    assert len(printed) == 4
    assert placed[printed.index].tolist() == printed.tolist()


@settings(max_examples=60, deadline=None)
@given(groups=st.lists(tied_sample, min_size=2, max_size=5))
def test_kruskal_wallis_equals_scipy(groups):
    found = kruskal_wallis(groups)
    if len(set().union(*groups)) == 1:
        assert found == (0.0, 1.0)
    else:
        assert found == pytest.approx(tuple(stats.kruskal(*groups)), rel=1e-9, abs=1e-9)


def test_kruskal_wallis_leaves_out_missing_units_and_names_an_empty_group():
    assert kruskal_wallis([[1, 2, NAN], [3, 4]]) == kruskal_wallis([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="group 2 holds no values"):
        kruskal_wallis([[1.0], [NAN]])
    with pytest.raises(ValueError, match="at least two groups"):
        kruskal_wallis([[1.0, 2.0]])


@settings(max_examples=80, deadline=None)
@given(first=tied_sample, second=tied_sample)
def test_mann_whitney_counts_pairs_and_takes_scipys_p(first, second):
    found = mann_whitney(first, second)
    wins = sum((b > a) + 0.5 * (b == a) for a, b in product(first, second))
    assert found.U == wins
    assert found.r == pytest.approx(2 * wins / (len(first) * len(second)) - 1, abs=1e-12)
    if len(set(first) | set(second)) == 1:
        assert (found.p, found.r) == (1.0, 0.0)
    else:
        assert found.p == stats.mannwhitneyu(second, first).pvalue
    mirrored = mann_whitney(second, first)
    assert mirrored.r == pytest.approx(-found.r, abs=1e-12)
    assert mirrored.p == pytest.approx(found.p, abs=1e-12)


def test_mann_whitney_exact_by_hand():
    # 3 + 3 units without ties, fully apart: 2 of the C(6, 3) = 20 splits are as extreme
    assert mann_whitney([1, 2, 3], [4, 5, 6]) == (9.0, 0.1, 1.0)
    assert mann_whitney([4, 5, 6], [1, 2, 3]).r == -1.0
    assert mann_whitney([5.0], [5.0]) == (0.5, 1.0, 0.0)
    with pytest.raises(ValueError, match="second sample holds no values"):
        mann_whitney([1.0], [])


def test_rank_biserial_interval_equals_resampling_the_long_way():
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 8, size=30) / 3, (rng.integers(0, 8, size=25) + 1) / 3
    a, b = first[rng.integers(0, 30, size=(3000, 30))], second[rng.integers(0, 25, size=(3000, 25))]
    wins = (b[:, np.newaxis, :] > a[:, :, np.newaxis]) + 0.5 * (b[:, np.newaxis, :] == a[:, :, np.newaxis])
    long_way = 2 * wins.mean(axis=(1, 2)) - 1
    found = rank_biserial_interval(first, second, B=30_000, rng=rng)
    assert found.estimate == pytest.approx(mann_whitney(first, second).r, abs=1e-15)
    error = 5 * long_way.std() * 2.7 / np.sqrt(3000)  # five standard errors of a normal 2.5 % quantile
    np.testing.assert_allclose([found.lo, found.hi], np.quantile(long_way, [0.025, 0.975]), atol=error)


@pytest.mark.parametrize("decimals", [0, 12])
def test_rank_biserial_interval_does_not_depend_on_chunks(monkeypatch, decimals):
    first, second = np.round(np.random.default_rng(3).normal(size=(2, 40)), decimals)
    whole = rank_biserial_interval(first, second, B=123, rng=np.random.default_rng(4))
    monkeypatch.setattr(numeric, "CHUNK_CELLS", 40 * 10)
    assert rank_biserial_interval(first, second, B=123, rng=np.random.default_rng(4)) == whole


def test_rank_biserial_interval_edges():
    rng = np.random.default_rng(5)
    assert rank_biserial_interval([1, 1], [1, 1, 1], B=20, rng=rng) == (0.0, 0.0, 0.0)
    assert rank_biserial_interval([1, 2, NAN], [3], B=20, rng=rng) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="first sample holds no values"):
        rank_biserial_interval([NAN], [1.0], B=20, rng=rng)


def test_rank_biserial_interval_covers_the_population_value():
    rng = np.random.default_rng(6)
    truth = 2 * stats.norm.cdf(0.5 / np.sqrt(2)) - 1
    samples = [(rng.normal(size=40), rng.normal(0.5, size=40)) for _ in range(200)]
    found = [rank_biserial_interval(a, b, B=400, rng=rng) for a, b in samples]
    assert 0.90 <= np.mean([interval.lo <= truth <= interval.hi for interval in found]) <= 0.99


@pytest.mark.parametrize("n", [1, 2, 7, 15])
def test_corrections_equal_statsmodels(n):
    p = np.round(np.random.default_rng(n).random(n) ** 3, 2)  # rounded, so that some tie
    np.testing.assert_allclose(bonferroni(p), multipletests(p, method="bonferroni")[1], rtol=1e-12)
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=15))
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p):
    assert (np.array(p) <= holm(p)).all() and (holm(p) <= bonferroni(p)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(holm(p)[order]) >= 0).all()


def test_corrections_by_hand_and_with_missing_values():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(bonferroni([0.01, NAN, 0.6]), [0.02, NAN, 1.0])
    np.testing.assert_allclose(holm([0.01, NAN, 0.6]), [0.02, NAN, 0.6])
    assert holm(np.full((2, 2), 0.3)).shape == (2, 2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ranks([1, 2], method="dense"), "'dense'"),
        (lambda: ranks(3.0), "at least one axis"),
        (lambda: spearman([1, 2], [1, 2, 3]), "same items"),
        (lambda: rank_changes([1, 2], [1]), "same items"),
        (lambda: bonferroni([0.5, 1.5]), "between 0 and 1"),
        (lambda: holm([-0.1]), "between 0 and 1"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pair_signs_by_hand():
    assert pair_signs([1.0, 3.0, 3.0, NAN]).tolist() == [1, 1, 0, 0, 0, 0]
    assert len(pair_signs(np.arange(5))) == len(list(combinations(range(5), 2)))
