"""lib.resampling against exhaustive enumeration, scipy, and the long way round."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib import numeric
from lib.numeric import average_ranks
from lib.ranks import spearman
from lib.resampling import (
    Interval,
    bootstrap,
    bootstrap_counts,
    bootstrap_indices,
    bootstrap_weights,
    percentile_interval,
    permutation_null,
    spearman_null,
)

NAN = np.nan


def rng(seed=0):
    return np.random.default_rng(seed)


def every_resample(values):
    """The statistic's whole bootstrap distribution: all n**n resamples of a small sample."""
    return np.array(list(product(values, repeat=len(values))))


def test_indices_and_weights_are_the_same_draws():
    drawn, weights = bootstrap_indices(7, 30, rng(1)), bootstrap_weights(7, 30, rng(1))
    assert drawn.shape == weights.shape == (30, 7)
    for row, counted in zip(drawn, weights, strict=True):
        assert np.bincount(row, minlength=7).tolist() == counted.tolist()


@pytest.mark.parametrize("sizes", [[3, 2, 0, 1], [40, 60], [1] * 12, [100, 0, 0, 20]])
def test_counts_have_the_moments_of_resampling(sizes):
    n, B = sum(sizes), 20_000
    counts = bootstrap_counts(sizes, B, rng(2))
    assert (counts.sum(axis=1) == n).all()
    p = np.array(sizes) / n
    spread = np.sqrt(n * p * (1 - p))
    np.testing.assert_allclose(counts.mean(axis=0), n * p, atol=5 * spread.max() / np.sqrt(B))
    np.testing.assert_allclose(counts.std(axis=0), spread, rtol=0.05)
    assert (counts[:, np.array(sizes) == 0] == 0).all()


def test_percentile_interval_of_the_mean_matches_the_whole_bootstrap_distribution():
    values = np.array([0.0, 1.0, 3.0, 7.0, 8.0])
    whole = every_resample(values).mean(axis=1)
    found = bootstrap(values, B=40_000, rng=rng(3))
    assert found.estimate == values.mean()
    # the quantiles of a discrete distribution, up to one step of it (sums of five integers / 5)
    np.testing.assert_allclose([found.lo, found.hi], np.quantile(whole, [0.025, 0.975]), atol=0.2 + 1e-9)


def test_mean_by_weights_is_the_mean_of_drawn_values():
    values = rng(4).normal(size=(3, 20))
    fast = bootstrap(values, B=500, rng=rng(5))
    slow = bootstrap(values, np.mean, B=500, rng=rng(5))
    for a, b in zip(fast, slow, strict=True):
        assert a.shape == (3,)
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_each_row_of_a_batch_is_its_own_interval():
    values = rng(6).normal(size=(2, 4, 15))
    batch = bootstrap(values, B=300, rng=rng(7), method="bca")
    alone = bootstrap(values[1, 2], B=300, rng=rng(7), method="bca")
    assert (batch.estimate[1, 2], batch.lo[1, 2], batch.hi[1, 2]) == tuple(alone)
    assert isinstance(alone.lo, float)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("statistic", [None, np.median])
@pytest.mark.parametrize("clusters", [None, [0, 0, 0, 1, 1, 2, 3, 3, 3, 3]])
def test_chunks_do_not_change_a_bit(monkeypatch, method, statistic, clusters):
    values = rng(8).normal(size=(2, 10))
    options = {"B": 97, "method": method, "clusters": clusters}
    whole = bootstrap(values, statistic, rng=rng(9), **options)
    for cells in (1, 20 * 13, 20 * 50):
        monkeypatch.setattr(numeric, "CHUNK_CELLS", cells)
        part = bootstrap(values, statistic, rng=rng(9), **options)
        assert np.array(part).tobytes() == np.array(whole).tobytes()


def test_nulls_do_not_depend_on_chunks(monkeypatch):
    first, second = rng(10).normal(size=(2, 9))

    def both():
        null = spearman_null(first, second, B=101, rng=rng(11))
        return null.tobytes(), permutation_null(spearman, first, second, B=101, rng=rng(11)).tobytes()

    whole = both()
    monkeypatch.setattr(numeric, "CHUNK_CELLS", 9 * 7)
    assert both() == whole


@pytest.mark.parametrize("statistic", [np.mean, np.median, np.std])
def test_bca_equals_scipy_on_the_same_replicates(statistic):
    """One seed for both: scipy asks the generator for the same integers, so the formulas must agree."""
    values = rng(15).exponential(size=30)
    theirs = stats.bootstrap((values,), statistic, n_resamples=999, method="BCa", rng=rng(16))
    ours = bootstrap(values, None if statistic is np.mean else statistic, B=999, rng=rng(16), method="bca")
    np.testing.assert_allclose([ours.lo, ours.hi], theirs.confidence_interval, rtol=1e-10)


def test_bca_of_a_correlation_takes_rows_as_variables():
    pairs = rng(17).normal(size=(2, 20))
    pairs[1] += pairs[0]

    def pearson(drawn, axis):
        return stats.pearsonr(drawn[0], drawn[1], axis=axis).statistic

    ours = bootstrap(pairs, pearson, B=999, rng=rng(18), method="bca")
    theirs = stats.bootstrap(
        tuple(pairs),
        lambda x, y, axis: stats.pearsonr(x, y, axis=axis).statistic,
        paired=True,
        vectorized=True,
        n_resamples=999,
        method="BCa",
        rng=rng(18),
    )
    assert ours.estimate == stats.pearsonr(*pairs).statistic
    np.testing.assert_allclose([ours.lo, ours.hi], theirs.confidence_interval, rtol=1e-10)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("value", [4.0, 0.1, -1e9 / 3])
def test_constant_values_and_one_unit_have_no_width(method, value):
    for n in (1, 2, 180):
        found = bootstrap(np.full(n, value), B=50, rng=rng(), method=method)
        assert found.lo == found.hi == found.estimate == pytest.approx(value, rel=1e-15)


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(-100, 100), min_size=1, max_size=12),
    shift=st.floats(-10, 10),
    method=st.sampled_from(["percentile", "bca"]),
)
def test_intervals_stay_inside_the_data_and_move_with_it(values, shift, method):
    values = np.round(values, 3)
    found = bootstrap(values, B=60, rng=rng(20), method=method)
    assert values.min() - 1e-9 <= found.lo <= found.hi <= values.max() + 1e-9
    moved = bootstrap(values + shift, B=60, rng=rng(20))
    plain = bootstrap(values, B=60, rng=rng(20))
    np.testing.assert_allclose(moved, np.array(plain) + shift, atol=1e-9)


def test_missing_units_are_left_out_row_by_row():
    values = np.array([[1.0, NAN, 4.0, 6.0], [NAN, NAN, NAN, NAN], [5.0, 5.0, NAN, 5.0]])
    found = bootstrap(values, B=400, rng=rng(21))
    np.testing.assert_allclose(found.estimate, [11 / 3, NAN, 5.0])
    assert 1 <= found.lo[0] < found.hi[0] <= 6
    assert np.isnan([found.lo[1], found.hi[1]]).all()
    assert found.lo[2] == found.hi[2] == 5.0


def test_clusters_go_along_whole():
    values = np.array([0.0, 0.0, 0.0, 6.0])
    labels = ["a", "a", "a", "b"]
    found = bootstrap(values, B=4000, rng=rng(22), clusters=labels)
    # two draws of {a: three zeros, b: one six}: means 0 (1/4), 6/4 (1/2), 6 (1/4)
    assert (found.estimate, found.lo, found.hi) == (1.5, 0.0, 6.0)
    seen = []
    bootstrap(
        values,
        lambda drawn, axis: seen.append(drawn) or drawn.mean(axis=axis),
        B=4000,
        rng=rng(22),
        clusters=labels,
    )
    means = np.concatenate([drawn.mean(axis=-1) for drawn in seen[1:]])
    shares = [np.mean(means == value) for value in (0.0, 1.5, 6.0)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.04)


def test_clusters_by_weights_equal_clusters_by_drawing():
    values, labels = rng(23).normal(size=(2, 30)), rng(24).integers(0, 6, size=30)
    for method in ("percentile", "bca"):
        fast = bootstrap(values, B=300, rng=rng(25), clusters=labels, method=method)
        slow = bootstrap(values, np.mean, B=300, rng=rng(25), clusters=labels, method=method)
        np.testing.assert_allclose(fast, slow, rtol=1e-10)


def test_clusters_of_one_unit_are_no_clusters():
    values = rng(26).normal(size=12)
    found = bootstrap(values, B=90, rng=rng(27), clusters=np.arange(12))
    assert found == bootstrap(values, B=90, rng=rng(27))


def test_clustered_interval_is_wider_where_clusters_differ():
    centres = np.repeat(rng(28).normal(size=12), 20)
    values = centres + 0.1 * rng(29).normal(size=240)
    alone = bootstrap(values, B=2000, rng=rng(30))
    clustered = bootstrap(values, B=2000, rng=rng(30), clusters=np.repeat(np.arange(12), 20))
    assert (clustered.hi - clustered.lo) > 3 * (alone.hi - alone.lo)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_cover_a_known_mean(method):
    draws = rng(31).gamma(4.0, size=(400, 40))  # 400 samples of 40, mean 4
    found = bootstrap(draws, B=1000, rng=rng(32), method=method)
    assert 0.90 <= np.mean((found.lo <= 4) & (found.hi >= 4)) <= 0.98


def test_spearman_null_matches_all_permutations():
    first, second = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 2.0, 5.0, 1.0, 9.0])
    whole = np.array([spearman(first, np.array(order)) for order in permutations(second)])
    null = spearman_null(first, second, B=24_000, rng=rng(37))
    assert set(null) == set(whole)
    for value in set(whole):
        assert np.mean(null == value) == pytest.approx(np.mean(whole == value), abs=0.012)


def test_spearman_null_is_the_permutation_null_of_spearman():
    first, second = rng(38).integers(0, 4, size=(2, 8)).astype(float)
    fast = spearman_null(first, second, B=200, rng=rng(39))
    slow = permutation_null(spearman, first, second, B=200, rng=rng(39))
    assert fast.tobytes() == slow.tobytes()


def test_null_holds_the_observed_value_to_the_last_bit():
    """So that rho > upper bound means above it, not beside it by rounding."""
    scores = np.array([5.14, 4.36, 3.28, 4.72, 5.42, 4.97, 4.84, 5.41, 5.23, 6.55])
    null = spearman_null(scores, scores[::-1] / 3, B=5000, rng=rng(40))
    steps = 165 * (1 - null)  # rho = 1 - 6 S / 990 with S even: 165 (1 - rho) is a whole number
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert len(np.unique(null)) == len(np.unique(np.round(steps)))


def test_null_edges():
    assert np.isnan(spearman_null([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], B=5, rng=rng())).all()
    assert np.isnan(spearman_null([1.0], [1.0], B=5, rng=rng())).all()
    gaps = spearman_null([1.0, 2.0, NAN, 3.0], [1.0, 2.0, 9.0, 3.0], B=60, rng=rng())
    assert set(np.round(gaps, 9)) <= {-1.0, -0.5, 0.5, 1.0}


def test_percentile_interval_leaves_out_undefined_replicates():
    replicates = np.array([[0.0, 1.0, NAN, 2.0], [NAN, NAN, NAN, NAN]])
    found = percentile_interval(np.array([1.0, NAN]), replicates, confidence=0.5)
    assert isinstance(found, Interval)
    np.testing.assert_array_equal(found.lo, [0.5, NAN])
    np.testing.assert_array_equal(found.hi, [1.5, NAN])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: bootstrap([], B=10, rng=rng()), "nothing to resample"),
        (lambda: bootstrap(3.0, B=10, rng=rng()), "nothing to resample"),
        (lambda: bootstrap([1.0], B=10, rng=np.random.RandomState(0)), "Generator"),
        (lambda: bootstrap([1.0], B=0, rng=rng()), "whole number"),
        (lambda: bootstrap([1.0], B=1e4, rng=rng()), "whole number"),
        (lambda: bootstrap([1.0], B=True, rng=rng()), "whole number"),
        (lambda: bootstrap([1.0], B=10, rng=rng(), method="basic"), "'basic'"),
        (lambda: bootstrap([1.0], B=10, rng=rng(), confidence=95), "confidence"),
        (lambda: bootstrap([1.0, 2.0], B=10, rng=rng(), clusters=[1]), "clusters must label"),
        (lambda: bootstrap([1.0, NAN], B=10, rng=rng(), clusters=[1]), "clusters must label"),
        (
            lambda: bootstrap([1.0, 2.0], lambda drawn, axis: drawn.mean(), B=9, rng=rng()),
            "reduce the last axis",
        ),
        (lambda: spearman_null([1.0, 2.0], [1.0], B=10, rng=rng()), "one length"),
        (
            lambda: permutation_null(lambda a, b: 0.0, [1.0, 2.0], [1.0, 3.0], B=10, rng=rng()),
            "one number a row",
        ),
        (lambda: bootstrap_counts([0, 0], 5, rng()), "positive sum"),
        (lambda: bootstrap_indices(0, 5, rng()), "no units"),
        (lambda: percentile_interval(1.0, []), "at least 2 replicates"),
        (lambda: percentile_interval(1.0, np.zeros((3, 0))), "at least 2 replicates"),
        (lambda: percentile_interval(1.0, 1.0), "at least 2 replicates"),
        (lambda: bootstrap([1.0, 2.0], B=1, rng=rng()), "at least 2 replicates"),
        (lambda: bootstrap([1.0, 2.0], B=1, rng=rng(), method="bca"), "at least 2 replicates"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@settings(max_examples=80, deadline=None)
@given(values=st.lists(st.sampled_from([0.0, 1.0, 1.5, 1e9, -3.0]), min_size=1, max_size=9))
def test_average_ranks_equal_scipy(values):
    np.testing.assert_array_equal(average_ranks(values), stats.rankdata(values))


def test_average_ranks_see_a_tie_through_rounding_and_leave_missing_out():
    assert average_ranks([0.1 + 0.2, 0.3, 0.2]).tolist() == [2.5, 2.5, 1.0]
    gaps = average_ranks([[3.0, NAN, 1.0], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(gaps, [[2, NAN, 1], [NAN, NAN, NAN]])
    assert average_ranks([10**15, 10**15 + 1]).tolist() == [1.0, 2.0]  # whole numbers are exact
    assert average_ranks([np.inf, 1.0, np.inf, -np.inf]).tolist() == [3.5, 2.0, 3.5, 1.0]
    assert average_ranks([0.0, -0.0, 5e-324]).tolist() == [1.5, 1.5, 3.0]


def test_bca_knows_no_unit():
    values = np.array([1.0, 2.0, 2.5, 3.0, 4.5, 5.0, 7.0, 7.5, 8.0, 12.0])
    plain = np.array(bootstrap(values, B=400, rng=rng(50), method="bca"))
    for scale in (1e103, 1e-107, 1e9):
        scaled = np.array(bootstrap(values * scale, B=400, rng=rng(50), method="bca"))
        np.testing.assert_allclose(scaled / scale, plain, rtol=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_statistic_that_gives_nan_has_no_bounds(method):
    values = np.array([1.0, np.nan, 3.0, 4.0, 9.0])
    found = bootstrap(values, lambda draws, axis: draws.mean(axis=axis), B=200, rng=rng(51), method=method)
    assert np.isnan(found).all()
    found = bootstrap(
        values, lambda draws, axis: np.nanmean(draws, axis=axis), B=200, rng=rng(51), method=method
    )
    assert found.lo < found.estimate == 4.25 < found.hi


def test_infinities_are_refused():
    with pytest.raises(ValueError, match="infinite"):
        bootstrap([1.0, np.inf], B=20, rng=rng())
