"""Simulated studies of the stories' design: the truth is that of the draws, and estimators come out as theory says."""

import numpy as np
import pytest
from scipy import stats

from compendium.studies.stories import calibration as c

MEANS = (3.16, 3.27)


@pytest.fixture(scope="module")
def design():
    """60 stories, half by models; 150 ratings by 25 people, each story rated at least once."""
    rng = np.random.default_rng(3)
    story = np.r_[np.arange(60), rng.integers(0, 60, 90)]
    return c.Design(story, rng.integers(0, 25, 150), np.arange(60) % 2)


@pytest.fixture(scope="module")
def ratings(design):
    return c.draw_ratings(design, MEANS, studies=3000, rng=np.random.default_rng(4))


def test_the_truth_is_that_of_the_draws(design, ratings):
    known = c.truth(design, MEANS)
    assert ratings.shape == (3000, 150) and set(np.unique(ratings)) == {1, 2, 3, 4, 5}
    human = design.machine[design.story] == 0
    for kind, part in enumerate((ratings[:, human], ratings[:, ~human])):
        middle = part.mean(axis=1)
        assert middle.mean() == pytest.approx(known.mean[kind], abs=4 * stats.sem(middle))


def test_the_true_reliability_is_the_correlation_of_two_readers():
    many = c.Design(np.repeat(np.arange(200), 2), np.arange(400), np.arange(200) % 2)
    drawn = c.draw_ratings(many, MEANS, studies=400, rng=np.random.default_rng(5)).reshape(-1, 2)
    known = c.truth(many, MEANS)
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(known.single, abs=0.012)
    assert known.of_means == pytest.approx(2 * known.single / (1 + known.single)), "Spearman and Brown"


def test_story_means_by_hand():
    tiny = c.Design(np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([0, 1]))
    assert c.story_means(np.array([[2.0, 5, 4]]), tiny).tolist() == [[3, 5]]


def test_one_reader_of_everything_does_not_average_out():
    bank = c.planted()["raters"]
    one = c.Design(np.arange(20), np.zeros(20, dtype=int), np.repeat([0, 1], 10))
    found = c.standard_errors(one).iloc[0]
    apart = (bank["story_sd"] ** 2 + bank["noise_sd"] ** 2) / 10
    assert found["over stories"] ** 2 == pytest.approx(apart)
    assert found["with raters"] ** 2 == pytest.approx(apart + bank["rater_sd"] ** 2)
    apiece = c.standard_errors(one._replace(rater=np.arange(20))).iloc[0]
    assert apiece["over stories"] == pytest.approx(apiece["with raters"]) and apiece[
        "coverage"
    ] == pytest.approx(0.95)


def test_shared_readers_cost_a_mean_its_coverage_and_leave_a_difference_its_own(design, ratings):
    found, theory = c.mean_coverage(ratings, design, c.truth(design, MEANS)), c.standard_errors(design)
    for kind in ("by people", "by models"):
        assert found.at[f"mean, {kind}", "coverage"] == pytest.approx(theory.at[kind, "coverage"], abs=0.03)
        assert theory.at[kind, "coverage"] < 0.9
    assert found.at["difference of the means", "coverage"] > 0.91


def test_tests_of_nothing_keep_their_level(design):
    none = c.draw_ratings(design, (3.2, 3.2), studies=300, rng=np.random.default_rng(6))
    most = stats.binom.isf(1e-4, 300, 0.06) / 300
    assert (c.mann_whitney_p(none, design) < 0.05).mean() <= most
    frame, p = c.mixed_coverage(none, design, c.truth(design, (3.2, 3.2)))
    assert (p < 0.05).mean() <= most and frame["coverage"].iloc[0] == (p >= 0.05).mean()
    for name, found in c.correlation_p(none, design, rng=np.random.default_rng(7)).items():
        assert len(found) == 300 and (found[..., None] < 0.05).reshape(300, -1)[:, 0].mean() <= most, name


def test_the_choice_of_seven_is_allowed_for_and_a_planted_one_found(design, ratings):
    frame, excludes = c.strongest_coverage(ratings[:150], design, 0, B=100, rng=np.random.default_rng(8))
    assert (
        excludes.mean() <= stats.binom.isf(1e-4, 150, 0.07) / 150
        and frame["coverage"].iloc[0] == 1 - excludes.mean()
    )
    _, found = c.strongest_coverage(ratings[:150], design, 1.0, B=100, rng=np.random.default_rng(9))
    assert found.mean() > 0.95


def test_reliability_intervals_are_those_of_the_notebook(design, ratings):
    found = c.reliability_coverage(
        ratings[:60], design, c.truth(design, MEANS), B=60, rng=np.random.default_rng(10)
    )
    assert found.index.tolist() == ["Krippendorff's alpha", "ICC(1,k), a story's mean"]
    assert (found["coverage"] > 0.75).all() and (found["bias"].abs() < 0.1).all()
