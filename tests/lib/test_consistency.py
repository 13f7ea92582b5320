"""Anchor-sweep consistency: worked examples, invariances, missing scores, and the moments against a loop."""

from itertools import combinations

import numpy as np
import pytest

from lib.consistency import (
    ConsistencyError,
    anchors_compared,
    collapse,
    consistency_from_moments,
    pair_moments,
    sweep_consistency,
)


def by_loop(scores):
    """The definition, judge by judge and pair by pair."""
    result = []
    for judge in range(scores.shape[1]):
        found = []
        for a, b in combinations(range(len(scores)), 2):
            both = ~np.isnan(scores[a, judge]) & ~np.isnan(scores[b, judge])
            x, y = scores[a, judge, both], scores[b, judge, both]
            if len(x) and np.ptp(x) > 0 and np.ptp(y) > 0:
                found.append(np.corrcoef(x, y)[0, 1])
        result.append(np.mean(found) if found else np.nan)
    return np.array(result)


def sweep(seed=0, judges=5, units=30, missing=0.1):
    rng = np.random.default_rng(seed)
    scores = np.rint(6 + rng.normal(size=(1, judges, units)) * 2 + rng.normal(size=(4, judges, units)))
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


def test_worked_example_by_hand():
    # one judge, three anchors, three units: r(1,2) = 1, r(1,3) = r(2,3) = 1/2
    scores = np.array([[[1.0, 2, 3]], [[2.0, 4, 6]], [[1.0, 3, 2]]])
    assert sweep_consistency(scores)[0] == pytest.approx((1 + 0.5 + 0.5) / 3)


@pytest.mark.parametrize("seed", range(8))
def test_equals_the_definition(seed):
    scores = sweep(seed, missing=0.25)
    np.testing.assert_allclose(sweep_consistency(scores), by_loop(scores), atol=1e-12)


def test_a_shift_or_stretch_at_one_anchor_changes_nothing():
    scores, moved = sweep(), sweep()
    moved[2] = 3 * moved[2] - 5
    np.testing.assert_allclose(sweep_consistency(moved), sweep_consistency(scores), atol=1e-12)


def test_order_of_judges_units_and_anchors():
    scores, rng = sweep(), np.random.default_rng(3)
    units, judges, anchors = rng.permutation(30), rng.permutation(5), rng.permutation(4)
    turned = scores[anchors][:, judges][:, :, units]
    np.testing.assert_allclose(sweep_consistency(turned), sweep_consistency(scores)[judges], atol=1e-12)


def test_a_constant_vector_drops_its_pairs_only():
    scores = sweep(missing=0)
    scores[0, 1] = 7
    expected = by_loop(scores)
    np.testing.assert_allclose(sweep_consistency(scores), expected, atol=1e-12)
    np.testing.assert_array_equal(anchors_compared(scores), [6, 3, 6, 6, 6])


def test_a_judge_who_gives_one_number_is_undefined():
    scores = sweep(missing=0)
    scores[:, 2] = 7
    found = sweep_consistency(scores)
    assert np.isnan(found[2]) and np.isfinite(found[[0, 1, 3, 4]]).all()


def test_a_constant_fraction_counts_as_constant():
    scores = np.full((2, 1, 9), 7 + 1 / 3)
    scores[1] = np.arange(9)
    assert np.isnan(sweep_consistency(scores)[0])


def test_collapse_leaves_out_what_is_missing():
    found = collapse([[1.0, 3.0, np.nan, np.nan], [np.nan] * 4, [2.0, 2.0, 4.0, 4.0]])
    np.testing.assert_array_equal(found, [2.0, np.nan, 3.0])


def test_collapsing_averages_noise_away():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(1, 1, 200, 1))
    axes = truth + rng.normal(size=(4, 1, 200, 4))
    single = sweep_consistency(axes[..., 0])[0]
    assert sweep_consistency(collapse(axes))[0] > single + 0.2


def test_resamples_equal_repeated_units():
    scores, atom_of = sweep(2, units=24), np.repeat(np.arange(8), 3)
    counts = np.random.default_rng(1).multinomial(8, [1 / 8] * 8, size=20).astype(float)
    found = consistency_from_moments(pair_moments(scores, atom_of, 8), counts)
    for row, values in zip(counts.astype(int), found):
        units = np.repeat(np.arange(24), row[atom_of])
        np.testing.assert_allclose(values, by_loop(scores[:, :, units]), atol=1e-10)


def test_weights_count_a_unit_in_part():
    scores = sweep(5, units=6, missing=0)
    twice = np.concatenate([scores, scores], axis=2)
    halves = pair_moments(twice, np.zeros(12, int), 1, np.full(12, 0.5))
    np.testing.assert_allclose(
        consistency_from_moments(halves, [[1.0]])[0], sweep_consistency(scores), atol=1e-12
    )


def test_one_anchor_is_no_sweep():
    with pytest.raises(ConsistencyError, match="at least two anchors"):
        sweep_consistency(np.ones((1, 3, 4)))


def test_values_stay_between_minus_one_and_one():
    scores = np.stack([np.arange(5.0), 3 * np.arange(5.0)])[:, None]
    assert sweep_consistency(scores)[0] == 1.0


@pytest.mark.parametrize("scale", [1e-9, 1e100])
def test_a_sweep_knows_no_unit(scale):
    scores = np.random.default_rng(9).normal(5, 1, size=(3, 4, 8))
    scores[:, 1] = 5.0
    np.testing.assert_allclose(sweep_consistency(scores * scale), sweep_consistency(scores), rtol=1e-9)
    assert np.isnan(sweep_consistency(scores * scale)[1])
