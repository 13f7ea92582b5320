"""Two-sided SVD: planted truth, invariances, conventions, degenerate matrices, and the batched form against a
loop.
"""

import numpy as np
import pytest

from lib import spectral
from lib.spectral import (
    SpectralError,
    anchored,
    atom_sums,
    group_means,
    resample,
    resampled_group_means,
    two_sided,
)


def ratings(seed=0, judges=6, items=40, noise=0.3):
    rng = np.random.default_rng(seed)
    skill = np.linspace(1.2, 0.1, judges)
    return (
        np.outer(skill, rng.normal(size=items))
        + noise * rng.normal(size=(judges, items))
        + rng.normal(size=(judges, 1))
        + 6
    )


def test_a_planted_rank_one_truth_comes_back():
    skill, standing = np.array([0.8, 0.6, 0.2, 0.0]), np.array([1.0, 0.5, -0.5, -1.0, 0.0])
    planted = 6 + np.array([[0.3], [-1], [2], [0]]) + np.outer(skill, standing)
    found = two_sided(planted)
    np.testing.assert_allclose(found.loadings, skill / np.linalg.norm(skill), atol=1e-12)
    np.testing.assert_allclose(found.right, standing / np.linalg.norm(standing), atol=1e-12)
    assert found.sigma[0] == pytest.approx(np.linalg.norm(skill) * np.linalg.norm(standing))
    assert found.gap == np.inf


def test_consensus_is_the_weighted_mean_rating_of_a_rank_one_matrix():
    planted = 6 + np.outer([0.8, 0.6, 0.2], [1.0, 0.5, -0.5, -1.0])
    found = two_sided(planted)
    weight = found.loadings / found.loadings.sum()
    np.testing.assert_allclose(found.consensus, weight @ planted, atol=1e-12)


def test_worked_example_by_hand():
    # two judges, deviations (1, -1) and (2, -2): u = (1, 2)/sqrt 5, v = (1, -1)/sqrt 2, sigma = sqrt 10
    found = two_sided([[8, 6], [6, 2]])
    np.testing.assert_allclose(found.left, np.array([1, 2]) / np.sqrt(5))
    np.testing.assert_allclose(found.right, np.array([1, -1]) / np.sqrt(2))
    assert found.sigma[0] == pytest.approx(np.sqrt(10))
    # C = (1*7 + 2*4)/3 = 5; kappa = sqrt 10 * (1 + 4)/sqrt 5/3 = 5 sqrt 2/3
    assert found.level == pytest.approx(5) and found.scale == pytest.approx(5 * np.sqrt(2) / 3)
    np.testing.assert_allclose(found.consensus, [5 + 5 / 3, 5 - 5 / 3])


@pytest.mark.parametrize("order", [[3, 1, 0, 2, 5, 4], [5, 4, 3, 2, 1, 0]])
def test_judges_in_another_order(order):
    base, other = two_sided(ratings()), two_sided(ratings()[order])
    np.testing.assert_allclose(other.loadings, base.loadings[order], atol=1e-12)
    np.testing.assert_allclose(other.consensus, base.consensus, atol=1e-12)


def test_items_in_another_order():
    order = np.random.default_rng(1).permutation(40)
    base, other = two_sided(ratings()), two_sided(ratings()[:, order])
    np.testing.assert_allclose(other.consensus, base.consensus[order], atol=1e-12)
    np.testing.assert_allclose(other.loadings, base.loadings, atol=1e-12)


def test_a_constant_added_to_one_judge_moves_no_loading():
    shifted = ratings()
    shifted[2] += 3
    base, other = two_sided(ratings()), two_sided(shifted)
    np.testing.assert_allclose(other.loadings, base.loadings, atol=1e-12)
    share = base.loadings[2] / base.loadings.sum()
    np.testing.assert_allclose(other.consensus, base.consensus + 3 * share, atol=1e-12)


def test_the_two_sign_conventions_are_one():
    for seed in range(30):
        table = np.random.default_rng(seed).normal(size=(5, 9))
        found = two_sided(table)
        columns = (table - table.mean(axis=1, keepdims=True)).mean(axis=0)
        assert found.left.sum() > 0 and np.corrcoef(found.right, columns)[0, 1] > 0


def test_a_judge_against_the_consensus_is_clamped_to_zero():
    table = np.vstack([ratings(), 12 - ratings(3)[:1]])
    table[-1] = 12 - table[0]
    found = two_sided(table)
    assert found.left[-1] < 0 and found.loadings[-1] == 0 and (found.loadings >= 0).all()


def test_missing_entries_are_filled_with_seven_or_the_judges_mean():
    table = ratings()
    table[0, 0] = np.nan
    seven, own = spectral.fill_missing(table), spectral.fill_missing(table, "row_mean")
    assert seven[0, 0] == 7 and own[0, 0] == pytest.approx(np.nanmean(table[0]))
    assert two_sided(table, "row_mean").left[0] != two_sided(table).left[0]


@pytest.mark.parametrize(
    "table, words",
    [
        (np.full((4, 6), 7.0), "same rating"),
        (np.array([[1.0, 2, 3], [3, 2, 1]]), "no orientation"),
        (np.ones((1, 5)), "at least two judges"),
        (np.array([[1.0, np.inf], [1, 2]]), "infinite"),
    ],
)
def test_degenerate_matrices_are_answered_clearly(table, words):
    with pytest.raises(SpectralError, match=words):
        two_sided(table)


def test_a_judge_who_rated_nothing_has_no_mean():
    with pytest.raises(SpectralError, match="judge 1 rated no item"):
        two_sided([[1.0, 2, 3], [np.nan] * 3], fill="row_mean")


def test_one_flat_judge_has_loading_zero():
    table = np.vstack([ratings(), np.full(40, 7.0)])
    assert two_sided(table).loadings[-1] == 0


def test_two_identical_judges_get_one_loading():
    table = np.vstack([ratings(), ratings()[1:2]])
    found = two_sided(table).loadings
    assert found[1] == pytest.approx(found[-1])


def test_anchored_reads_seven_at_the_anchor():
    np.testing.assert_allclose(anchored([0.6, 0.3, 0.0], 0), [7, 3.5, 0])
    assert np.isnan(anchored([0.0, 0.3], 0)).all()


def test_group_means_and_an_empty_group():
    found = group_means([1.0, 3.0, 5.0], [0, 0, 2], 3)
    np.testing.assert_array_equal(found, [2.0, np.nan, 5.0])


def test_align_undoes_any_rotation_or_reflection():
    rng = np.random.default_rng(0)
    reference = np.linalg.qr(rng.normal(size=(7, 2)))[0]
    turns = np.stack([np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(20)])
    np.testing.assert_allclose(
        spectral.align(reference @ turns, reference), np.broadcast_to(reference, (20, 7, 2)), atol=1e-12
    )


def loop(table, atom_of, counts, reference):
    """One replicate after another with numpy.linalg.svd: columns repeated, top-two subspace turned, loading
    read.
    """
    result = []
    for row in counts:
        columns = np.repeat(np.arange(table.shape[1]), row[atom_of].astype(int))
        drawn = table[:, columns]
        means = drawn.mean(axis=1)
        u, s, _ = np.linalg.svd(drawn - means[:, None], full_matrices=False)
        outer, _, other = np.linalg.svd(u[:, :2].T @ reference)
        left = (u[:, :2] @ outer @ other)[:, 0]
        f = np.maximum(left, 0)
        centred = drawn - means[:, None]
        norm = np.linalg.norm(centred.T @ left)
        consensus = f @ means / f.sum() + f @ left / f.sum() * (centred.T @ left)
        result.append((f, s[:2], norm, consensus.mean(), group_means(consensus, atom_of[columns] % 3, 3)))
    return [np.array(part) for part in zip(*result)]


def test_batched_replicates_equal_the_loop():
    table, atom_of = ratings(2), np.repeat(np.arange(10), 4)
    counts = np.random.default_rng(3).multinomial(10, [0.1] * 10, size=25).astype(float)
    reference = two_sided(table).basis
    sums = atom_sums(table, atom_of, 10)
    found = resample(sums, counts, reference)
    f, sigma, norm, _, groups = loop(table, atom_of, counts, reference)
    np.testing.assert_allclose(found.loadings, f, atol=1e-9)
    np.testing.assert_allclose(found.sigma, sigma, atol=1e-9)
    np.testing.assert_allclose(found.norm, norm, atol=1e-9)
    means = resampled_group_means(found, sums, counts, np.arange(10) % 3, 3)
    np.testing.assert_allclose(means, groups, atol=1e-9)


def test_drawing_every_atom_once_gives_the_point_estimate():
    table, atom_of = ratings(4), np.repeat(np.arange(8), 5)
    point = two_sided(table)
    found = resample(atom_sums(table, atom_of, 8), np.ones((1, 8)), point.basis)
    np.testing.assert_allclose(found.loadings[0], point.loadings, atol=1e-10)
    assert found.gap[0] == pytest.approx(point.gap) and found.level[0] == pytest.approx(point.level)
    assert found.scale[0] == pytest.approx(point.scale)


def test_a_replicate_without_an_axis_is_missing_not_wrong():
    table = np.hstack([np.full((3, 4), 7.0), ratings(0, 3, 4)])
    sums = atom_sums(table, np.repeat([0, 1], 4), 2)
    found = resample(sums, np.array([[2.0, 0.0], [0.0, 2.0]]), two_sided(table).basis)
    assert np.isnan(found.loadings[0]).all() and np.isfinite(found.loadings[1]).all()


def test_a_group_that_was_not_drawn_is_missing():
    table = ratings(1)
    sums = atom_sums(table, np.repeat(np.arange(8), 5), 8)
    counts = np.array([[0, 0, 2, 2, 1, 1, 1, 1.0]])
    means = resampled_group_means(
        resample(sums, counts, two_sided(table).basis), sums, counts, np.arange(8) // 2, 4
    )
    assert np.isnan(means[0, 0]) and np.isfinite(means[0, 1:]).all()


def test_permutation_null_keeps_every_judges_spread_and_loses_what_they_share():
    table = ratings(5, noise=0.2)
    null = spectral.sigma_null(table, np.random.default_rng(0), 200)
    assert null.shape == (200, 2) and (null[:, 0] >= null[:, 1]).all()
    assert two_sided(table).sigma[0] > np.percentile(null[:, 0], 99)
    noise = np.random.default_rng(1).normal(size=table.shape)
    drawn = spectral.sigma_null(noise, np.random.default_rng(0), 200)[:, 0]
    assert np.percentile(drawn, 0.5) < two_sided(noise).sigma[0] < np.percentile(drawn, 99.5)


def test_permutation_null_repeats_with_its_seed():
    first, again = (spectral.sigma_null(ratings(), np.random.default_rng(7), 5) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("scale", [1e-9, 1e100])
def test_the_axis_knows_no_unit(scale):
    ratings = np.random.default_rng(9).normal(5, 1, size=(4, 12)) + np.linspace(0, 3, 12)
    plain, scaled = two_sided(ratings, "row_mean"), two_sided(ratings * scale, "row_mean")
    np.testing.assert_allclose(scaled.loadings, plain.loadings, rtol=1e-9)
    sums = atom_sums(ratings * scale, np.arange(12), 12, "row_mean")
    found = resample(sums, np.ones((1, 12)), plain.basis)
    np.testing.assert_allclose(found.loadings[0], plain.loadings, rtol=1e-6, atol=1e-9)
    with pytest.raises(SpectralError):
        two_sided(np.full((3, 5), 4.0 * scale), "row_mean")
