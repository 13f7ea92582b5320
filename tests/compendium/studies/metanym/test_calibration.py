"""Simulated games and rosters: the double bootstrap's truth is the game's own, and intervals come out as theory says."""

import numpy as np
import pytest
from scipy import stats

from compendium.studies.metanym import calibration as c
from compendium.studies.metanym.components import atom_table
from tests.compendium.studies.metanym.games import game


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def found():
    table = atom_table(game(seed=1, runs=(1, 2)))
    council = list(table.game.evaluators[:3])
    return c.joint_coverage(table, council, studies=80, B=60, rng=rng(1))


def test_joint_intervals_are_about_as_good_as_ten_units_allow(found):
    joint, _ = found
    assert joint.index.tolist() == list(c.COMPONENTS)
    assert joint["coverage"].between(0.75, 1).all() and (joint["width"] > 0).all()
    spread = joint["width"] / 4  # about a standard error
    assert (joint["bias"].abs() < spread).all(), "the truth is the game's own estimate"


def test_bounds_take_the_models_of_one_study_for_one(found):
    for table in found:
        row = table.iloc[0]
        assert (row["lo"], row["hi"]) == pytest.approx(c.wilson_interval(80 * row["coverage"], 80))


def test_ranks_that_are_far_apart_are_held(found):
    _, places = found
    assert places.index[-1] == "rank, mean of all" and len(places) == 4
    assert places["coverage"].between(0.9, 1).all()


def test_few_archetypes_want_students_factor():
    values = rng(2).normal(size=(40, 6))
    found = c.means_coverage(values, studies=150, B=150, rng=rng(3))["coverage"]
    assert found["mean of 6 archetypes, Student"] > found["mean of 6 archetypes, resampled"] + 0.05


def test_fishers_z_covers_twelve_normal_models():
    found = c.correlation_coverage((0.0, 0.9), models=12, studies=500, B=100, rng=rng(4))
    for rho in ("0.00", "0.90"):
        assert found.at[f"r = {rho}, Fisher", "lo"] < 0.95 < found.at[f"r = {rho}, Fisher", "hi"] + 0.02
    assert found["bias"].abs().max() < 0.04


def test_measured_again_lies_too_low_and_other_models_spread_wider():
    found = c.error_coverage(0.9, models=12, studies=150, B=150, rng=rng(5))
    assert found.at["r, measurement", "width"] < found.at["r, models", "width"] < found.at["r, both", "width"]
    assert found.at["r, measurement", "hi"] < 0.95


def test_an_even_key_is_seldom_called_unbalanced():
    found = c.key_size(48, studies=1500, rng=rng(6))
    assert stats.binom.sf(found.share * 1500, 1500, 0.06) > 1e-4
