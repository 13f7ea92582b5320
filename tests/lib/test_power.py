"""lib.power against scipy's test on the same samples, the normal formula, and limiting cases."""

import numpy as np
import pytest
from scipy import stats

from lib.power import _count_below, mann_whitney_power, minimum_detectable_effect, rank_biserial_of_shift


def rng(seed=0):
    return np.random.default_rng(seed)


def test_power_equals_scipy_on_the_same_samples():
    drawn = rng(1).standard_normal((300, 12 + 15))
    first, second = drawn[:, :12], drawn[:, 12:]
    for shift in (0.0, 0.9, -1.5):
        p = stats.mannwhitneyu(first, second + shift, axis=1, method="asymptotic").pvalue
        found = mann_whitney_power(12, 15, shift, alpha=0.05, simulations=300, rng=rng(1))
        assert found == np.mean(p <= 0.05)


def test_pairs_are_counted_right_across_blocks():
    drawn = rng(2).standard_normal((2100, 9))
    first, second = np.sort(drawn[:, :4], axis=1), np.sort(drawn[:, 4:], axis=1)
    brute = (first[:, :, np.newaxis] < second[:, np.newaxis, :] + 0.3).sum(axis=(1, 2))
    assert (_count_below(first, second, 0.3) == brute).all()


def test_without_an_effect_power_is_alpha():
    found = mann_whitney_power(60, 60, 0.0, alpha=0.05, simulations=8000, rng=rng(3))
    assert found == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / 8000))


def test_power_rises_with_the_shift_and_is_symmetric():
    shifts = [0.0, 0.2, 0.4, 0.8, 3.0]
    found = [mann_whitney_power(40, 40, shift, alpha=0.01, simulations=2000, rng=rng(4)) for shift in shifts]
    assert found == sorted(found) and found[-1] == 1.0
    down = mann_whitney_power(40, 40, -0.4, alpha=0.01, simulations=20_000, rng=rng(5))
    up = mann_whitney_power(40, 40, 0.4, alpha=0.01, simulations=20_000, rng=rng(6))
    assert down == pytest.approx(up, abs=5 * np.sqrt(2 * 0.25 / 20_000))


def test_minimum_detectable_effect_is_the_first_shift_with_the_power():
    found = minimum_detectable_effect(50, 40, alpha=0.05, simulations=4000, rng=rng(7), resolution=0.01)
    at, before = (
        mann_whitney_power(50, 40, shift, alpha=0.05, simulations=4000, rng=rng(7))
        for shift in (found.shift, found.shift - 0.01)
    )
    assert at == found.power >= 0.8 > before
    assert found.abs_r == pytest.approx(2 * stats.norm.cdf(found.shift / np.sqrt(2)) - 1, abs=1e-12)


def test_minimum_detectable_effect_agrees_with_the_large_sample_formula():
    # r near 0 has the standard deviation sqrt((n1 + n2 + 1) / (3 n1 n2)); z_alpha/2 + z_power of it is found
    n, alpha = 300, 0.05 / 15
    deviation = np.sqrt((2 * n + 1) / (3 * n * n))
    formula = (stats.norm.isf(alpha / 2) + stats.norm.isf(0.2)) * deviation
    found = minimum_detectable_effect(n, n, alpha=alpha, power=0.8, simulations=4000, rng=rng(8))
    assert found.abs_r == pytest.approx(formula, abs=0.006)


def test_a_coarse_grid_gives_its_next_point():
    fine = minimum_detectable_effect(300, 300, alpha=0.05 / 15, simulations=1000, rng=rng(9))
    grid = minimum_detectable_effect(300, 300, alpha=0.05 / 15, simulations=1000, rng=rng(9), resolution=0.05)
    assert grid.shift == pytest.approx(0.05 * np.ceil(fine.shift / 0.05))
    assert grid.power >= fine.power >= 0.8


def test_same_seed_same_answer_and_more_units_detect_less():
    def detectable(n):
        return minimum_detectable_effect(n, n, alpha=0.05, simulations=1000, rng=rng(10)).abs_r

    found = [detectable(n) for n in (20, 80, 320)]
    assert found == sorted(found, reverse=True)
    assert detectable(20) == found[0]


def test_power_below_alpha_needs_no_shift():
    found = minimum_detectable_effect(30, 30, alpha=0.5, power=0.2, simulations=500, rng=rng(11))
    assert (found.shift, found.abs_r) == (0.0, 0.0)


def test_samples_that_can_never_reject_detect_nothing():
    found = minimum_detectable_effect(6, 6, alpha=0.05 / 15, simulations=10, rng=rng())
    assert np.isnan(found.abs_r) and np.isnan(found.shift) and found.power == 0
    assert mann_whitney_power(6, 6, 50.0, alpha=0.05 / 15, simulations=10, rng=rng()) == 0
    assert minimum_detectable_effect(9, 9, alpha=0.05 / 15, simulations=10, rng=rng()).abs_r < 1


def test_rank_biserial_of_shift():
    assert rank_biserial_of_shift(0.0) == 0.0
    assert rank_biserial_of_shift(50.0) == 1.0
    x, y = rng(12).normal(size=(2, 200_000))
    assert rank_biserial_of_shift(0.5) == pytest.approx(2 * np.mean(x < y + 0.5) - 1, abs=0.01)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: minimum_detectable_effect(0, 2, alpha=0.05, simulations=10, rng=rng()), "at least one each"),
        (lambda: minimum_detectable_effect(9, 9, alpha=5, simulations=10, rng=rng()), "alpha"),
        (lambda: minimum_detectable_effect(9, 9, alpha=0.05, power=80, simulations=10, rng=rng()), "power"),
        (lambda: minimum_detectable_effect(9, 9, alpha=0.05, simulations=0, rng=rng()), "whole number"),
        (lambda: minimum_detectable_effect(9, 9, alpha=0.1, simulations=9, rng=rng(), resolution=0), "resol"),
        (
            lambda: minimum_detectable_effect(9, 9, alpha=0.1, simulations=9, rng=rng(), resolution=np.nan),
            "resol",
        ),
        (lambda: mann_whitney_power(9, 9, 0.5, alpha=0.05, simulations=10, rng=0), "Generator"),
        (lambda: mann_whitney_power(9, 9, np.nan, alpha=0.05, simulations=10, rng=rng()), "finite number"),
        (lambda: mann_whitney_power(9, 9, -np.inf, alpha=0.05, simulations=10, rng=rng()), "finite number"),
        (
            lambda: mann_whitney_power(9, 9.5, 0.1, alpha=0.05, simulations=10, rng=rng()),
            "whole numbers of units",
        ),
        (
            lambda: mann_whitney_power(np.nan, 9, 0.1, alpha=0.05, simulations=10, rng=rng()),
            "whole numbers of units",
        ),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
