"""Simulated studies of queries: the world is that of the data, and estimators come out as theory says."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compendium.studies.create import calibration as c
from lib.agreement import krippendorff_alpha

WORLD = c.World(0.10, 0.23)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_world_is_found_again():
    drawn = c.draw_utilities(WORLD, models=5, queries=20_000, studies=1, rng=rng(1))[0]
    index = pd.MultiIndex.from_product([range(20_000), list("abcde")], names=["query", "source"])
    found = c.world_of(pd.Series(drawn.ravel(), index).swaplevel())
    assert found == pytest.approx(WORLD, abs=0.012)
    assert drawn.mean() == pytest.approx(1, abs=0.01)
    squared = (1 + WORLD.query) * (1 + WORLD.own) - 1
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(WORLD.query / squared, abs=0.03)


def test_models_that_do_not_go_together_share_nothing():
    index = pd.MultiIndex.from_product([["a", "b"], range(4)], names=["source", "query"])
    found = c.world_of(pd.Series([1.0, 2, 3, 4, 4, 3, 2, 1], index))
    assert found.query == 0 and found.own == pytest.approx((5 / 3) / 2.5**2)
    assert (c.draw_utilities(c.World(0, 0), models=2, queries=3, studies=1, rng=rng()) == 1).all()


def test_few_queries_want_student_and_many_do_not_care():
    found = c.mean_coverage(WORLD, (12, 200), studies=500, B=200, rng=rng(2))["coverage"]
    assert found["mean of 12 queries"] > found["mean of 12 queries, resampled"] + 0.02
    assert found["mean of 200 queries"] == pytest.approx(found["mean of 200 queries, resampled"], abs=0.03)


def test_the_paired_test_keeps_its_level_on_both_sides_of_the_switch():
    table, sizes = c.paired_calibration(WORLD, (10, 199, 200), studies=400, B=200, rng=rng(3))
    most = stats.binom.isf(1e-4, 400, 0.06) / 400
    for n in (10, 199, 200):
        assert sizes[f"{n} pairs"].share <= most and table.at[f"difference over {n} pairs", "hi"] > 0.935
    assert sizes["10 pairs, resampled"].lo > 0.06 > sizes["199 pairs, resampled"].lo


def test_the_family_of_pairs_keeps_its_level():
    p = c.family_p(WORLD, models=4, queries=10, studies=200, B=50, rng=rng(4))
    assert p.shape == (200,) and (p <= 1).all()
    assert (p < 0.05).mean() <= stats.binom.isf(1e-4, 200, 0.05) / 200


def test_a_projected_interval_covers_when_the_spread_is_the_same():
    found = c.projected_coverage(WORLD, models=6, queries=30, board=400, studies=1500, rng=rng(5))
    assert found["coverage"].iloc[0] == pytest.approx(0.95, abs=0.025)


def test_the_true_alpha_is_that_of_many_ratings():
    found = c.alpha_coverage(0.65, (80,), studies=300, B=150, rng=rng(6)).iloc[0]
    assert abs(found["bias"]) < 0.015 and found["coverage"] > 0.88
    value = rng(7).standard_normal((1, 60_000)) * 0.65**0.5 + rng(8).standard_normal((2, 60_000)) * 0.35**0.5
    alpha = krippendorff_alpha(np.clip(np.rint(3 + c.RATING_SD * value), 1, 5), "interval")
    one = c.alpha_coverage(0.65, (60_000,), studies=2, B=20, rng=rng(9)).iloc[0]
    assert one["bias"] == pytest.approx(0, abs=0.006) and 0.55 < alpha < 0.65, "rounding costs agreement"


def test_ten_lists_about_one_object_are_not_ten_objects():
    found = c.baseline_coverage(0.9, 15, studies=3000, rng=rng(10))["coverage"]
    exact = stats.binom.pmf(np.arange(16), 15, 0.9)
    lo, hi = c.wilson_interval(np.arange(16), 15)
    assert found["remote associates, 15 items"] == pytest.approx(
        exact[(lo <= 0.9) & (0.9 <= hi)].sum(), abs=0.02
    )
    assert found["alternative uses, these objects"] > 0.98 and found["alternative uses, any objects"] < 0.6
