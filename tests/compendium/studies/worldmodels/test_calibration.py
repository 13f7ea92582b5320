"""Simulated studies of few cases: their spread is the one asked for, and estimators come out as theory says."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compendium.studies.worldmodels import calibration as c
from lib.calibration import rejections, size_verdict

SPREAD = c.Spread(0.78, 0.15, 0.12)


def rng(seed=0):
    return np.random.default_rng(seed)


def frame(models=4, cases=60, runs=3, seed=1):
    draws = rng(seed)
    place = pd.MultiIndex.from_product(
        [range(models), range(cases), range(runs)], names=["model", "case", "run"]
    )
    case = draws.normal(0, 0.1, (models, cases, 1))
    value = 0.5 + case + draws.normal(0, 0.05, (models, cases, runs))
    return pd.DataFrame({"f1": value.ravel()}, index=place).reset_index()


def test_spread_is_found_again_and_by_hand():
    found = c.spread_of(frame(models=8, cases=200), "f1")
    assert found == pytest.approx((0.5, 0.1, 0.05), abs=0.01)
    two = pd.DataFrame({"model": "m", "case": list("aabb"), "f1": [0.9, 0.7, 0.5, 0.3]})
    assert c.spread_of(two, "f1") == pytest.approx((0.6, 0.07**0.5, 0.02**0.5))


def test_where_nobody_has_two_runs_models_stand_for_runs():
    one = frame(runs=1)
    found = c.spread_of(one, "f1")
    assert found.case < 0.05 and found.run == pytest.approx((0.1**2 + 0.05**2) ** 0.5, abs=0.01)


def test_two_runs_that_always_go_together_are_alike():
    same = pd.DataFrame(
        {"model": "m", "case": np.repeat(range(10), 2), "lane1": np.repeat([True, False] * 5, 2)}
    )
    assert c.alike(same, "lane1") == 1
    apart = same.assign(lane1=[True, False] * 10)
    assert c.alike(apart, "lane1") == 0.01


def test_the_true_mean_of_a_score_that_is_cut_off():
    drawn = np.clip(rng(2).normal(0.8, 0.25, 400_000), 0, 1)
    assert c.true_mean(0.8, 0.25) == pytest.approx(drawn.mean(), abs=0.002)


def test_student_keeps_its_promise_with_nine_games_and_the_bootstrap_does_not():
    found = c.f1_coverage(SPREAD, cases=9, runs=3, valid=0.92, studies=700, B=200, rng=rng(3))
    assert found.at["mean F1, Student", "hi"] > 0.935 and found.at["mean F1, bootstrap", "hi"] < 0.935
    assert (found["bias"].abs() < 0.01).all()


def test_shares_of_these_cases_and_of_their_kind():
    found = c.share_coverage(0.8, 0.4, cases=20, runs=3, studies=3000, rng=rng(4))
    assert found.at["share valid of 60, these cases", "coverage"] > 0.95
    assert found.at["share valid of 60, cases of their kind", "coverage"] < 0.91
    alone = c.share_coverage(0.8, 0.4, cases=60, runs=1, studies=3000, rng=rng(5))
    assert alone.at["share valid of 60, cases of their kind", "coverage"] == pytest.approx(0.95, abs=0.02)
    assert len(alone) == 2, "with one run nothing is clustered"


def test_flips_keep_their_level_and_find_what_is_there():
    frame, p = c.location_coverage(SPREAD, 0.0, cases=14, studies=500, B=50, rng=rng(6))
    assert (p < 0.05).mean() <= stats.binom.isf(1e-4, 500, 0.05) / 500
    assert frame["coverage"].iloc[0] > 0.9 and frame.index.tolist() == ["effect of location, +0"]
    assert (c.location_coverage(SPREAD, 0.4, cases=14, studies=100, B=50, rng=rng(7))[1] < 0.05).mean() > 0.7


def test_the_strongest_of_six_is_compared_with_the_strongest():
    found = c.reference_size([f"G{i}" for i in range(1, 10)], SPREAD, runs=15, studies=400, B=200, rng=rng(8))
    assert found["each"].shape == (400, 6) and found["strongest"].shape == (400,)
    assert size_verdict(rejections(found["strongest"])) != "too many false alarms"
    assert (np.nanmin(found["each"], axis=1) < 0.05).mean() > 0.12
    assert (found["strongest"] >= np.nanmin(found["each"], axis=1)).all()
