"""Creative utility: worked examples by hand, brute force over orders, and properties that must hold."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.utility import (
    CUTOFF,
    PATIENCE,
    UtilityError,
    cluster_bound,
    creative_utility,
    discounted,
    greedy,
    optimal_order,
    order_gain,
    path_distance,
    patience_weights,
    set_distances,
    upper_bound,
)

QUALITY = np.array([4.0, 3.0, 2.0])
DISTANCE = np.array([[0, 0.5, 1.0], [0.5, 0, 0.2], [1.0, 0.2, 0]])


def random_set(rng, n):
    vectors = rng.normal(size=(n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return rng.integers(1, 6, n).astype(float), path_distance(np.clip(1 - vectors @ vectors.T, 0, 2))


def test_worked_example():
    found = greedy(QUALITY[None], DISTANCE[None])
    assert found.order.tolist() == [[0, 2, 1]]
    np.testing.assert_allclose(found.gain, [[4, 2, 0.6]])
    np.testing.assert_allclose(creative_utility(QUALITY[None], DISTANCE[None], [0, 0.5, 1]), [[6, 6.3, 6.6]])


def test_discount_conventions():
    np.testing.assert_allclose(
        patience_weights(4, [0, 0.5, 1]), [[1, 1, 0, 0], [1, 1, 0.5, 0.25], [1, 1, 1, 1]]
    )
    np.testing.assert_allclose(patience_weights(4, 0.5, delay=0), [[1, 0.5, 0.25, 0.125]])
    # at patience 0 the plain form counts one item only, the published form two
    assert creative_utility(QUALITY[None], DISTANCE[None], 0, delay=0).item() == 4
    assert creative_utility(QUALITY[None], DISTANCE[None], 0).item() == 6


def test_distance_transform_at_known_points():
    assert path_distance(0.0) == 0
    assert path_distance(CUTOFF) == pytest.approx(1)
    assert path_distance(1.4) == pytest.approx(1)
    assert path_distance(CUTOFF / np.sqrt(2)) == pytest.approx(0.5)
    grid = path_distance(np.linspace(0, 1, 101))
    assert (np.diff(grid) >= 0).all()


def test_the_authors_code_counts_vectors_that_point_apart_as_near():
    assert path_distance([0.7, 0.85, 1.0], wraps=True) == pytest.approx([1, 1, 1])
    assert path_distance(1.05, wraps=True) == pytest.approx(0.5 * (1 - np.cos(np.pi * 2.25)))
    below = np.linspace(0, 1, 51)
    assert (path_distance(below, wraps=True) == path_distance(below)).all()
    assert path_distance(np.linspace(1, 2, 101), wraps=True).max() <= 1


def test_duplicates_add_nothing():
    quality, distance = QUALITY[[0, 1, 2, 0]], DISTANCE[np.ix_([0, 1, 2, 0], [0, 1, 2, 0])]
    np.testing.assert_allclose(
        creative_utility(quality[None], distance[None]), creative_utility(QUALITY[None], DISTANCE[None])
    )


def test_padding_and_zero_quality_are_inert():
    quality = np.array([[4, 3, 2, 0, np.nan]])
    distance = np.full((1, 5, 5), np.nan)
    distance[0, :3, :3] = DISTANCE
    np.testing.assert_allclose(
        creative_utility(quality, distance), creative_utility(QUALITY[None], DISTANCE[None])
    )
    assert creative_utility(np.zeros((1, 3)), DISTANCE[None], 1).item() == 0


def test_sets_do_not_touch_each_other():
    rng = np.random.default_rng(1)
    quality, distance = map(np.stack, zip(*(random_set(rng, 7) for _ in range(30))))
    together = creative_utility(quality, distance)
    alone = np.vstack([creative_utility(q[None], d[None]) for q, d in zip(quality, distance)])
    assert np.array_equal(together, alone)


def test_set_distances_agree_with_the_transform():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(3, 5, 8))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosine = 1 - np.einsum("sid,sjd->sij", vectors, vectors)
    np.testing.assert_allclose(set_distances(vectors), path_distance(np.clip(cosine, 0, 2)), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from(PATIENCE), st.sampled_from([0, 1]))
def test_exact_order_is_the_best_of_all(seed, n, patience, delay):
    quality, distance = random_set(np.random.default_rng(seed), n)
    weights = patience_weights(n, patience, delay)[0]
    best = max(order_gain(quality, distance, order) @ weights for order in permutations(range(n)))
    value, order = optimal_order(quality, distance, weights)
    assert value == pytest.approx(best)
    assert order_gain(quality, distance, order) @ weights == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from(PATIENCE))
def test_greedy_below_exact_below_bound(seed, n, patience):
    quality, distance = random_set(np.random.default_rng(seed), n)
    weights = patience_weights(n, patience)[0]
    found = creative_utility(quality[None], distance[None], patience).item()
    best, _ = optimal_order(quality, distance, weights)
    bounds = [upper_bound(quality, distance, weights, depth) for depth in (1, 2, 3)]
    assert found <= best + 1e-9
    assert best <= min(bounds) + 1e-9
    assert bounds[0] >= bounds[1] - 1e-9 and bounds[1] >= bounds[2] - 1e-9


def test_cluster_bound_sees_near_copies():
    # Five near-copies of one item and one other: a copy adds at most 4·0.01.
    distance = np.full((6, 6), 0.01)
    distance[5], distance[:, 5] = 1.0, 1.0
    np.fill_diagonal(distance, 0)
    quality = np.full(6, 4.0)
    assert cluster_bound(quality, distance) == pytest.approx(8 + 4 * 0.04)
    assert upper_bound(quality, distance, np.ones(6), 1) <= 8 + 4 * 0.04 + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8))
def test_patience_never_lowers_utility(seed, n):
    quality, distance = random_set(np.random.default_rng(seed), n)
    assert (np.diff(creative_utility(quality[None], distance[None])[0]) >= -1e-12).all()


def test_greedy_can_miss_the_best():
    # The most valuable item lies close to both others; starting with it spoils their distance.
    quality = np.array([3.0, 2.9, 2.9])
    distance = np.array([[0, 0.1, 0.1], [0.1, 0, 1.0], [0.1, 1.0, 0]])
    value, order = optimal_order(quality, distance, np.ones(3))
    assert creative_utility(quality[None], distance[None], 1).item() == pytest.approx(3 + 0.29 + 0.29)
    assert value == pytest.approx(2.9 + 2.9 + 0.3) and order[-1] == 0


def test_greedy_gains_follow_their_own_order():
    quality, distance = random_set(np.random.default_rng(5), 8)
    found = greedy(quality[None], distance[None])
    np.testing.assert_allclose(found.gain[0], order_gain(quality, distance, found.order[0]))
    np.testing.assert_allclose(discounted(found.gain, 1.0)[0, 0], found.gain.sum())


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: creative_utility(QUALITY, DISTANCE), "shape"),
        (lambda: creative_utility(-QUALITY[None], DISTANCE[None]), "0 or more"),
        (lambda: creative_utility(QUALITY[None], DISTANCE[None] * np.nan), "defined"),
        (lambda: creative_utility(QUALITY[None], DISTANCE[None], 1.2), "between 0 and 1"),
        (lambda: patience_weights(3, 0.5, delay=-1), "delay"),
        (lambda: path_distance(0.2, cutoff=0), "cutoff"),
        (lambda: optimal_order(np.ones(20), np.ones((20, 20)), np.ones(20)), "at most 16"),
        (lambda: order_gain(QUALITY, DISTANCE, [0, 0, 1]), "each of 0"),
        (lambda: upper_bound(QUALITY, DISTANCE, np.full(3, 1.5)), "at most 1"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(UtilityError, match=words):
        call()
