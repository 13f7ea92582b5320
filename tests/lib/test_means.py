"""lib.means: Student's interval of few units and clusters, the bootstrap's of many, and how often they hold the mean."""

import numpy as np
import pytest
from scipy import stats

from lib.calibration import coverage
from lib.means import FEW, mean_interval
from lib.resampling import bootstrap


def rng(seed=0):
    return np.random.default_rng(seed)


def test_sleep_of_student_1908():
    """Student (1908), The probable error of a mean, section IX: hours of sleep gained by ten patients, mean
    2.33, s 1.9 (divisor n); R's t.test(extra) of `sleep`, group 2, gives 0.8976775 to 3.7623225."""
    gained = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = mean_interval(gained, B=10, rng=rng())
    assert found == pytest.approx((2.33, 0.8976775, 3.7623225), abs=1e-7)
    assert np.std(gained) == pytest.approx(1.9, abs=0.01)


def test_clusters_by_hand():
    """Two clusters, sums 3 and 3 over sizes 2 and 1: mean 2, residuals -1 and 1, error sqrt(2 * 2) / 3."""
    found = mean_interval([1.0, 2.0, 3.0], B=10, rng=rng(), clusters=["a", "a", "b"])
    assert found.estimate == 2 and found.hi - 2 == pytest.approx(stats.t.ppf(0.975, 1) * 2 / 3)
    assert mean_interval([1.0, 2.0], B=10, rng=rng(), clusters=[0, 1]) == mean_interval(
        [1.0, 2.0], B=10, rng=rng()
    )


def test_many_units_have_the_percentile_bootstrap():
    values = rng(1).exponential(size=(2, FEW))
    for clusters in (None, np.arange(FEW)):
        found = mean_interval(values, B=200, rng=rng(2), clusters=clusters)
        plain = bootstrap(values, B=200, rng=rng(2), clusters=clusters)
        assert np.array_equal(found, plain)
    few = mean_interval(values[0, 1:], B=200, rng=rng(2))
    assert few.hi - few.estimate == pytest.approx(few.estimate - few.lo), "Student's, alike on both sides"
    assert few.hi == pytest.approx(plain.hi[0], abs=0.05)


def test_missing_units_are_left_out_row_by_row():
    values = np.array([[1.0, 2, np.nan, 4], [np.nan] * 4, [5, np.nan, np.nan, np.nan]])
    found = mean_interval(values, B=10, rng=rng())
    assert found.estimate[0] == 7 / 3 and found.lo[0] == mean_interval([1.0, 2, 4], B=10, rng=rng()).lo
    assert np.isnan([part[1] for part in found]).all()
    assert found.estimate[2] == 5 and np.isnan([found.lo[2], found.hi[2]]).all()


def test_no_unit_of_measurement_is_special():
    values = rng(3).gamma(2, size=9)
    whole = np.array(mean_interval(values, B=10, rng=rng()))
    for scale in (1e-150, 1e100):
        assert np.array(mean_interval(scale * values, B=10, rng=rng())) == pytest.approx(
            scale * whole, rel=1e-12
        )


def test_nine_clusters_student_holds_the_mean_more_often_than_the_bootstrap():
    draws, held = rng(4), {"student": [], "percentile": []}
    labels = np.repeat(np.arange(9), 3)
    for _ in range(700):
        values = draws.normal(size=(9, 1)) + 0.6 * draws.normal(size=(9, 3))
        held["student"].append(mean_interval(values.ravel(), B=200, rng=draws, clusters=labels))
        held["percentile"].append(bootstrap(values.ravel(), B=200, rng=draws, clusters=labels))
    share = {name: coverage(*np.transpose(found), 0.0) for name, found in held.items()}
    assert share["student"].lo < 0.95 < share["student"].hi and share["percentile"].hi < 0.93


@pytest.mark.parametrize(
    "values, options, says",
    [
        ([], {}, "nothing to average"),
        ([1.0, np.inf], {}, "infinite"),
        ([1.0, 2.0], {"clusters": [1]}, "clusters must label"),
        ([1.0, 2.0], {"confidence": 95}, "confidence"),
        ([1.0, 2.0], {"B": 0}, "number of replicates"),
    ],
)
def test_bad_input(values, options, says):
    with pytest.raises(ValueError, match=says):
        mean_interval(values, **{"B": 10, "rng": rng(), **options})
