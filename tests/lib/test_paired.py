"""lib.paired: by hand, against every flip and scipy, and the rate of false differences among equals."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import numeric
from lib.paired import FEW, paired_difference, sign_flip_p
from lib.rankings import mean_replicates, pair_p, paired_p, rank_table, separated
from lib.resampling import bootstrap


def rng(seed=0):
    return np.random.default_rng(seed)


def test_three_pairs_by_hand():
    found = paired_difference([10, 2, 6], [11, 4, 7], B=1000, rng=rng())
    assert found.estimate == pytest.approx(4 / 3)
    assert (found.p, found.test) == (0.25, "sign flips, all 8")
    expected = stats.ttest_rel([11, 4, 7], [10, 2, 6]).confidence_interval()
    assert found[1:3] == pytest.approx(tuple(expected))


def test_one_pair_says_nothing():
    found = paired_difference([1.0], [3.0], B=10_000, rng=rng())
    assert found.estimate == 2 and np.isnan(found[1:4]).all() and "one unit" in found.test
    clustered = paired_difference([1, 2, 3], [2, 4, 4], B=50, rng=rng(), clusters=["a", "a", "a"])
    assert np.isnan(clustered.p) and "one unit" in clustered.test


def test_all_flips_and_drawn_flips_agree_with_the_long_way():
    for n, seed in ((5, 1), (12, 2), (16, 3)):
        values = np.round(rng(seed).normal(0.4, 1, n), 1)
        sums = [abs(np.dot(signs, values)) for signs in product([1, -1], repeat=n)]
        expected = np.mean(np.array(sums) >= abs(values.sum()) - 1e-9)
        p, test = sign_flip_p(values, B=40_000, rng=rng(seed))
        assert p == pytest.approx(expected, abs=0 if n <= 14 else 0.01), test
    assert test == "sign flips, 40000 drawn"


def test_flips_are_scipys():
    values = rng(4).normal(0.5, 1, 11)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip_p(values, B=10, rng=rng())[0] == pytest.approx(expected)


def test_enough_pairs_have_the_papers_convention():
    values = rng(5).normal(0.12, 1, FEW)
    found = paired_difference(np.zeros(FEW), values, B=40_000, rng=rng(6))
    assert found.test == "bootstrap, 40000 resamples"
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)
    assert found[1:3] == pytest.approx(bootstrap(values, B=40_000, rng=rng(7))[1:], abs=0.02)
    sure = paired_difference(np.zeros(FEW), values + 9, B=40_000, rng=rng(6))
    assert sure.p == 2 / 40_001
    few = paired_difference(np.zeros(FEW - 1), values[1:], B=4000, rng=rng(6))
    assert few.test == "sign flips, 4000 drawn"


def test_clusters_are_flipped_whole():
    values, labels = rng(8).normal(size=24), np.repeat(range(6), 4)
    found = paired_difference(np.zeros(24), values, B=50, rng=rng(), clusters=labels)
    totals = np.bincount(labels, values)
    assert found.p == sign_flip_p(totals, B=50, rng=rng())[0]
    assert found[1:3] == pytest.approx(tuple(stats.ttest_1samp(totals / 4, 0).confidence_interval()))


def test_missing_pairs_are_left_out_and_infinities_refused():
    whole = paired_difference([1, 3, 5], [2, 5, 4], B=50, rng=rng())
    gaps = paired_difference([1, np.nan, 3, 5], [2, 2, 5, 4], B=50, rng=rng())
    assert gaps == whole
    with pytest.raises(ValueError, match="infinite"):
        paired_difference([1, np.inf, 3, 4], [0, 0, 2, 3], B=50, rng=rng())


def test_differences_that_are_rounding_errors_are_none():
    first, second = np.array([0.1 + 0.2, 0.3 + 0.6, 0.7 + 0.1]), np.array([0.3, 0.9, 0.8])
    assert (first != second).any()
    assert paired_difference(first, second, B=50, rng=rng())[:4] == (0, 0, 0, 1)
    exact = sign_flip_p([-3.0, 1.0, 1.0, 1.0], B=50, rng=rng())
    assert exact == sign_flip_p([-0.3, 0.1, 0.1, 0.1], B=50, rng=rng()) and exact[0] == 1


@pytest.mark.parametrize("draw", ["normal", "standard_t", "integers"])
@pytest.mark.parametrize("n", [9, 12, 20])
def test_intervals_of_few_pairs_cover(n, draw):
    options = {"normal": (0, 1), "standard_t": (4,), "integers": (-2, 3)}[draw]
    values = getattr(rng(9), draw)(*options, size=(600, n)).astype(float)
    found = [paired_difference(np.zeros(n), row, B=2, rng=rng()) for row in values]
    assert np.mean([one.lo <= 0 <= one.hi for one in found]) == pytest.approx(
        0.95, abs=0.0275
    )  # 3 standard errors


def test_six_equal_sources_seldom_differ():
    """12 queries, 15 pairs, Bonferroni: the bootstrap found a difference in 20 % of studies; Holm over ranks 24-28 %."""
    draws, bonferroni, holm, old = rng(10), 0, 0, 0
    for _ in range(200):
        scores = 10 + draws.gamma(2, 2, size=(12, 1)) + draws.normal(size=(12, 6))
        p = paired_p(scores, B=99, rng=draws)
        bonferroni += np.nanmin(p) * 15 < 0.05
        holm += separated(p).any()
        old += np.nanmin(pair_p(mean_replicates(scores, paired=True, B=4000, rng=draws))) * 15 < 0.05
    assert bonferroni <= 10 and holm <= 10
    assert old >= 20, "resampling: a test that cannot tell the two apart says nothing"


def test_real_differences_are_still_found():
    scores = rng(11).normal(size=(12, 6)) * 0.5 + np.arange(6)
    clear = separated(paired_p(scores, B=99, rng=rng(12)))
    assert all(clear[i, j] for i, j in combinations(range(6), 2) if abs(i - j) > 1)
    replicates = mean_replicates(scores, paired=True, B=500, rng=rng(13))
    table = rank_table(pd.Series(scores.mean(axis=0)), replicates, paired_p(scores, B=99, rng=rng(12)))
    assert table["beats"].iloc[0] >= 4


def test_drawn_flips_do_not_depend_on_chunks(monkeypatch):
    values = rng(14).normal(size=40)
    whole = sign_flip_p(values, B=500, rng=rng(15))
    monkeypatch.setattr(numeric, "CHUNK_CELLS", 40 * 7)
    assert sign_flip_p(values, B=500, rng=rng(15)) == whole


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: paired_difference([1, 2], [1], B=10, rng=rng()), "one shape"),
        (lambda: paired_difference([np.nan], [1], B=10, rng=rng()), "nothing to compare"),
        (lambda: paired_difference([1, 2], [1, 3], B=10, rng=rng(), clusters=[1]), "label each"),
        (lambda: paired_difference([1, 2], [1, 3], B=10, rng=rng(), confidence=95), "confidence"),
        (lambda: paired_difference([1, 2], [1, 3], B=0, rng=rng()), "whole number"),
        (lambda: sign_flip_p([], B=10, rng=rng()), "nothing to compare"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
