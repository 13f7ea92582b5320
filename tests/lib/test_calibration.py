"""lib.calibration: coverage and size by hand, and what is said of them."""

import numpy as np
import pytest
from scipy import stats

from lib.calibration import (
    Coverage,
    Size,
    coverage,
    coverage_table,
    coverage_verdict,
    rejections,
    size_table,
    size_verdict,
)
from lib.proportions import wilson_interval


def test_coverage_by_hand():
    found = coverage([1.0, 2.0, 4.0, 0.0], [0, 1, 3, -1], [2, 3, 5, 1], 2.0)
    assert found.share == 0.5 and found.bias == -0.25 and found.width == 2
    assert (found.lo, found.hi) == wilson_interval(2, 4)


def test_a_truth_of_each_study_and_a_study_without_an_interval():
    nan = float("nan")
    found = coverage([[1.0, 5], [2, 5]], [[0, nan], [1, 4]], [[2, nan], [3, 6]], np.array([[1, 5], [9, 5]]))
    assert found.share.tolist() == [0.5, 0.5]


def test_students_interval_covers_and_a_normal_one_of_five_values_does_not():
    values = np.random.default_rng(1).normal(size=(4000, 5))
    middle, error = values.mean(axis=1), stats.sem(values, axis=1)
    found = {}
    for name, z in (("student", stats.t.ppf(0.975, 4)), ("normal", 1.96)):
        found[name] = coverage(middle, middle - z * error, middle + z * error, 0.0)
    assert found["normal"].share == pytest.approx(2 * stats.t.cdf(1.96, 4) - 1, abs=0.02)  # 0.878
    assert coverage_table(found)["says"].to_dict() == {"student": "kept", "normal": "too narrow"}


def test_rejections_count_p_below_the_level_and_no_missing_one():
    found = rejections([[0.01, 0.5], [0.05, float("nan")], [0.049, 0.2]])
    assert found.share.tolist() == [2 / 3, 0]
    assert rejections([0.01, 0.2], level=0.3).share == 1
    table = size_table({"fair": rejections(np.linspace(0, 1, 1000)), "crying": rejections(np.full(90, 0.04))})
    assert table["says"].tolist() == ["kept", "too many false alarms"] and table["size"].iloc[1] == 1


@pytest.mark.parametrize(
    "share, lo, hi, says",
    [
        (0.935, 0.9, 0.96, "kept"),
        (0.93, 0.91, 0.95, "unclear"),
        (0.9, 0.88, 0.92, "too narrow"),
        (0.99, 0.98, 1, "wider than need be"),
    ],
)
def test_what_is_said_of_coverage(share, lo, hi, says):
    assert coverage_verdict(Coverage(share, lo, hi, 0, 1)) == says


@pytest.mark.parametrize(
    "share, lo, says",
    [(0.06, 0.03, "kept"), (0.061, 0.05, "unclear"), (0.08, 0.0601, "too many false alarms")],
)
def test_what_is_said_of_size(share, lo, says):
    assert size_verdict(Size(share, lo, 0.2)) == says
