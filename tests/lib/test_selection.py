"""lib.selection: what it says of one measure, and how often it finds something among seven that are nothing."""

import numpy as np
import pytest

from lib.ranks import spearman
from lib.resampling import bootstrap
from lib.selection import _weighted_spearman, chosen_difference, permuted_correlations, strongest_correlation


def rng(seed=0):
    return np.random.default_rng(seed)


def test_one_measure_has_an_ordinary_interval():
    first, second = rng(1).multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 150).T
    found = strongest_correlation([first], second, B=4000, rng=rng(2))
    plain = bootstrap(
        np.stack([first, second]), lambda d, axis=-1: spearman(d[0], d[1], axis), B=4000, rng=rng(3)
    )
    assert found.place == 0 and found.estimate == plain.estimate
    assert (found.lo, found.hi) == pytest.approx((plain.lo, plain.hi), abs=0.03)


def test_seven_measures_of_nothing_seldom_look_like_something():
    """An interval that ignores the choice excludes 0 in about a third of such studies."""
    draws, corrected, plain = rng(4), 0, 0
    for _ in range(120):
        values = draws.normal(size=(8, 80))
        found = strongest_correlation(values[:7], values[7], B=250, rng=draws)
        corrected += found.lo > 0 or found.hi < 0
        own = strongest_correlation(values[[found.place]], values[7], B=250, rng=draws)
        plain += own.lo > 0 or own.hi < 0
    assert corrected <= 12  # 6 are expected, with a standard error of 2.4
    assert plain >= 24


def test_the_interval_of_the_chosen_covers_its_truth():
    draws, hits = rng(5), 0
    for _ in range(120):
        target = draws.normal(size=100)
        values = 0.3 * target + draws.normal(size=(5, 100))
        found = strongest_correlation(values, target, B=250, rng=draws)
        pearson = 0.3 / np.sqrt(1.09)
        hits += found.lo <= 6 / np.pi * np.arcsin(pearson / 2) <= found.hi
    assert hits >= 107


def test_a_measure_that_does_not_vary_is_passed_over_and_missing_left_out():
    target = np.arange(12.0)
    values = np.array([np.full(12, 3.0), np.r_[np.nan, 11.0 - target[1:]]])
    found = strongest_correlation(values, target, B=100, rng=rng())
    assert found.place == 1 and found.estimate == -1


@pytest.mark.parametrize(
    "measures, target, options, says",
    [
        ([[1, 2, 3]], [1, 2], {}, "do not match"),
        ([[1, 1, 1]], [1, 2, 3], {}, "no measure varies"),
        ([[1, 2, np.inf]], [1, 2, 3], {}, "infinite"),
        ([[1, 2, 3]], [1, 2, 3], {"confidence": 95}, "confidence"),
    ],
)
def test_bad_input(measures, target, options, says):
    with pytest.raises(ValueError, match=says):
        strongest_correlation(measures, target, B=10, rng=rng(), **options)


def test_resamples_without_sorting_are_resamples():
    """Weighted ranks against `spearman` of the drawn units themselves, with ties and a missing value, to the last bit."""
    first, second = rng(6).integers(0, 6, (2, 30)) / 3
    first[4] = np.nan
    draws = rng(7).integers(0, 30, (50, 30))
    weights = np.stack([np.bincount(row, minlength=30) for row in draws]).astype(float)
    assert (
        _weighted_spearman(first, second, weights).tolist() == spearman(first[draws], second[draws]).tolist()
    )


def test_shuffles_of_four_units_are_counted_by_hand():
    """Of the 24 orders of four, one gives rho 1 and one -1: p = 2/24; of two opposite measures each is the strongest."""
    found = permuted_correlations([[1, 2, 3, 4], [4, 3, 2, 1]], [10, 20, 30, 40], B=20_000, rng=rng(8))
    assert found.rho.tolist() == [1, -1]
    assert found.p == pytest.approx([2 / 24, 2 / 24], abs=0.006) and found.p_strongest == found.p[0]


def test_shuffling_agrees_with_the_exact_p_and_corrects_for_independent_measures():
    from lib.correlation import correlate

    measures, target = rng(9).normal(size=(3, 7)), rng(10).normal(size=7)
    found = permuted_correlations(measures, target, B=20_000, rng=rng(11))
    exact = [correlate(one, target) for one in measures]
    assert found.rho == pytest.approx([one[0] for one in exact])
    assert found.p == pytest.approx([one[1] for one in exact], abs=0.015)
    assert found.p.min() < found.p_strongest < 3 * found.p.min() + 0.01


def test_shuffling_passes_over_what_does_not_vary():
    found = permuted_correlations([[1, 1, 1], [1, 2, 3]], [3, 1, 2], B=50, rng=rng())
    assert np.isnan(found.rho[0]) and np.isnan(found.p[0]) and found.p_strongest == found.p[1]
    nothing = permuted_correlations([[1, 2, 3]], [2, 2, 2], B=50, rng=rng())
    assert np.isnan(nothing.p).all() and np.isnan(nothing.p_strongest)
    with pytest.raises(ValueError, match="missing"):
        permuted_correlations([[1, np.nan, 3]], [1, 2, 3], B=50, rng=rng())
    with pytest.raises(ValueError, match="do not match"):
        permuted_correlations([[1, 2]], [1, 2, 3], B=50, rng=rng())


def test_one_pair_has_its_own_interval():
    drawn = rng(12).normal([2.0, 0.0], 0.5, (8000, 2))
    found = chosen_difference([2.0, 0.0], drawn, [0], [1])
    assert found[:3] == (0, 1, 2.0)
    assert (found.lo, found.hi) == pytest.approx(
        np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975]), abs=0.05
    )


def test_equal_entrants_are_seldom_told_apart_after_the_choice():
    draws, corrected, plain = rng(13), 0, 0
    for _ in range(300):
        scores = draws.normal(size=(8, 60))
        means, resamples = scores.mean(axis=1), draws.integers(0, 60, (300, 60))
        drawn = scores[:, resamples].mean(axis=2).T
        found = chosen_difference(means, drawn, range(5), range(5, 8))
        corrected += found.lo > 0 or found.hi < 0
        own = np.quantile(drawn[:, found.challenger] - drawn[:, found.incumbent], [0.025, 0.975])
        plain += own[0] > 0 or own[1] < 0
    assert corrected <= 28  # 15 are expected, with a standard error of 4
    assert plain >= 60


def test_a_choice_needs_something_to_choose_from():
    drawn = np.array([[1.0, np.nan], [2.0, 1.0], [2.0, 0.5]])
    assert chosen_difference([2.0, 1.0], drawn, [0], [1]).estimate == 1
    with pytest.raises(ValueError, match="at least one challenger"):
        chosen_difference([2.0, 1.0], drawn, [], [1])
    with pytest.raises(ValueError, match="no two replicates"):
        chosen_difference([2.0, 1.0], drawn[:2], [0], [1])
