"""Ranks and what is read from them: rank correlations, rank changes, group tests with effect sizes.

Sources: Spearman (1904); Kendall (1945) for tau-b; Kruskal and Wallis (1952); Mann and Whitney (1947); Wendt
(1972) for the rank-biserial r = 2U / (n1 n2) - 1; Holm (1979). Correlations are batched over leading axes and
leave out pairs with a missing (NaN) member. Ties are judged as in `lib.numeric`: values within 1e-12 of each
other (relative) are equal, so a mean computed in two orders of summation does not change a rank.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from lib.numeric import average_ranks, centred_ranks, check_replicates, chunk_sizes, floats, minimum_ranks
from lib.resampling import Interval, bootstrap_counts, percentile_interval

PAIRWISE_LIMIT = 500  # above this many items tau-b sorts (n log n) instead of comparing all pairs


class KruskalWallis(NamedTuple):
    """H (corrected for ties) and its chi-squared p value."""

    H: float
    p: float


class MannWhitney(NamedTuple):
    """U of the second sample, two-sided p, and rank-biserial r (positive: the second sample is higher)."""

    U: float
    p: float
    r: float


def ranks(scores, *, method: str = "average", highest_first: bool | None = None) -> np.ndarray:
    """Ranks of scores[..., item] along the last axis; NaN (missing) stays NaN.

    method: "average" (ties share their mean rank; 1 = lowest score) or "competition" (ties share the best
    rank, the next rank is skipped; 1 = highest score, as in a league table). highest_first overrides the
    direction.

    >>> ranks([7, 9, 9, 3], method="competition")
    array([3., 1., 1., 4.])
    """
    if method not in ("average", "competition"):
        raise ValueError(f"unknown ranking method {method!r}: use 'average' or 'competition'")
    if highest_first is None:
        highest_first = method == "competition"
    scores = np.asarray(scores)
    if scores.dtype.kind not in "iu":
        scores = floats(scores)
    if highest_first:
        scores = -scores.astype(float) if scores.dtype.kind == "u" else -scores
    return average_ranks(scores) if method == "average" else minimum_ranks(scores)


def spearman(a, b, axis: int = -1) -> float | np.ndarray:
    """Spearman's rho of a[..., item] and b[..., item], leading axes broadcast; NaN for a constant sample.

    Sums are whole numbers, so equal correlations are equal to the last bit.

    >>> spearman([9, 12, 20, 30], [4, 4.5, 3, 2])
    -0.8
    """
    a, b = _paired(a, b, axis)
    a, b = centred_ranks(a), centred_ranks(b)
    norm = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return _divide((a * b).sum(axis=-1), norm)


def kendall_tau_b(a, b, axis: int = -1) -> float | np.ndarray:
    """Kendall's tau-b of a[..., item] and b[..., item], leading axes broadcast; NaN for a constant sample.

    >>> round(kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4]), 3)
    0.667
    """
    a, b = _paired(a, b, axis)
    n = a.shape[-1]
    if n > PAIRWISE_LIMIT:
        rows = zip(a.reshape(-1, n), b.reshape(-1, n), strict=True)
        return np.reshape([_tau_by_sorting(x, y) for x, y in rows], a.shape[:-1])[()]
    a, b = pair_signs(a), pair_signs(b)
    norm = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return _divide((a * b).sum(axis=-1), norm)


def pair_signs(scores) -> np.ndarray:
    """signs[..., pair] in {-1, 0, 1}: for each pair i < j of items, which of scores[..., item] is higher.

    Ties, and pairs with a missing member, are 0. Tau-b is the cosine of two such vectors.

    >>> pair_signs([1, 3, 3])
    array([1., 1., 0.])
    """
    placed = average_ranks(scores)
    i, j = np.triu_indices(placed.shape[-1], k=1)
    signs = np.sign(placed[..., j] - placed[..., i])
    return np.where(np.isnan(signs), 0.0, signs)


def rank_changes(a, b) -> int | np.ndarray:
    """How many items of a[..., item] stand at another rank in b[..., item].

    Ranks are average ranks: when two items tie in one ranking only, both change. (The AlienBench paper counts
    so: its Table 10 prints rho = 1.00 with 2 changes, which only a tie can give.) Pairs with a missing member
    are left out.

    >>> rank_changes([1, 2, 3], [1, 2, 2])
    2
    """
    a, b = _paired(a, b, -1)
    placed_a, placed_b = average_ranks(a), average_ranks(b)
    changed = (placed_a != placed_b) & ~np.isnan(placed_a)
    count = changed.sum(axis=-1)
    return int(count) if np.ndim(count) == 0 else count


def mean_absolute_difference(a, b) -> float | np.ndarray:
    """Mean over items of |a - b|, for a[..., item] and b[..., item]; incomplete pairs are left out.

    >>> mean_absolute_difference([1, 2, np.nan], [2, 5, 1])
    2.0
    """
    a, b = _paired(a, b, -1)
    difference = np.abs(a - b)
    seen = ~np.isnan(difference)
    return _divide(np.where(seen, difference, 0.0).sum(axis=-1), seen.sum(axis=-1).astype(float))


def kruskal_wallis(groups) -> KruskalWallis:
    """Kruskal-Wallis H test of a sequence of samples groups[group][unit]; missing units are left out.

    All values equal: H = 0, p = 1. Raises ValueError for fewer than two groups or a group with no values.

    >>> round(kruskal_wallis([[1, 2, 3], [4, 5, 6]]).H, 3)
    3.857
    """
    groups = [_sample(group, f"group {number}") for number, group in enumerate(groups, start=1)]
    if len(groups) < 2:
        raise ValueError("Kruskal-Wallis needs at least two groups")
    placed = average_ranks(np.concatenate(groups))
    n, sizes = len(placed), np.array([len(group) for group in groups])
    _, tied = np.unique(placed, return_counts=True)
    correction = 1 - (tied**3 - tied).sum() / (n**3 - n) if n > 1 else 0.0
    if correction == 0:
        return KruskalWallis(0.0, 1.0)
    sums = np.add.reduceat(placed, np.cumsum(sizes) - sizes)
    H = (12 / (n * (n + 1)) * (sums**2 / sizes).sum() - 3 * (n + 1)) / correction
    return KruskalWallis(float(H), float(stats.chi2.sf(H, len(groups) - 1)))


def mann_whitney(first, second) -> MannWhitney:
    """Two-sided Mann-Whitney U test of first[unit] (the baseline) and second[unit]; NaN are left out.

    U counts the pairs in which the second value is the higher, ties as half. p is exact for samples without
    ties of which one has at most 8 units, else normal with corrections for ties and continuity (scipy's
    rule). All values equal: p = 1, r = 0. Raises ValueError for a sample with no values.

    >>> mann_whitney([1, 2, 3], [4, 5, 6])
    MannWhitney(U=9.0, p=0.1, r=1.0)
    """
    first, second = _sample(first, "the first sample"), _sample(second, "the second sample")
    placed = average_ranks(np.concatenate([first, second]))
    n1, n2 = len(first), len(second)
    U = float(placed[n1:].sum() - n2 * (n2 + 1) / 2)
    if (placed == placed[0]).all():
        return MannWhitney(U, 1.0, 0.0)
    p = stats.mannwhitneyu(placed[n1:], placed[:n1], alternative="two-sided").pvalue
    return MannWhitney(U, float(p), 2 * U / (n1 * n2) - 1)


def rank_biserial_interval(
    first, second, *, B: int, rng: np.random.Generator, confidence: float = 0.95
) -> Interval:
    """Rank-biserial r with its percentile bootstrap interval; both samples are resampled, each by itself.

    first[unit] (the baseline), second[unit]; r = 2U / (n1 n2) - 1, positive where the second sample is
    higher. Works on counts of the distinct values, so a replicate costs the number of values rather than of
    units.

    >>> found = rank_biserial_interval([1, 2, 3, 5], [4, 5, 6, 2], B=200, rng=np.random.default_rng(1))
    >>> found.estimate, bool(found.lo <= found.estimate <= found.hi)
    (0.5, True)
    """
    check_replicates(B, rng)
    first, second = _sample(first, "the first sample"), _sample(second, "the second sample")
    n1, n2 = len(first), len(second)
    levels, codes = np.unique(average_ranks(np.concatenate([first, second])), return_inverse=True)
    sizes = [np.bincount(part, minlength=len(levels)) for part in (codes[:n1], codes[n1:])]
    estimate = _biserial(sizes[0][np.newaxis].astype(float), sizes[1][np.newaxis].astype(float))[0]
    # One stream a sample, so that a chunk's end cannot interleave their draws differently.
    streams = rng.spawn(2)
    parts = [
        _biserial(*(_spread(size, rows, stream) for size, stream in zip(sizes, streams, strict=True)))
        for rows in chunk_sizes(B, max(n1, n2))
    ]
    return percentile_interval(estimate, np.concatenate(parts), confidence)


def bonferroni(p) -> np.ndarray:
    """Bonferroni-adjusted p values, min(1, m p), m the number of p values that are not missing.

    >>> bonferroni([0.01, 0.4, np.nan])
    array([0.02, 0.8 ,  nan])
    """
    p = checked_p(p)
    return np.minimum(1.0, p * (~np.isnan(p)).sum())


def holm(p) -> np.ndarray:
    """Holm's step-down adjusted p values; missing (NaN) ones stay missing and are not counted.

    >>> holm([0.01, 0.03, 0.02])
    array([0.03, 0.04, 0.04])
    """
    p = checked_p(p)
    seen = p[~np.isnan(p)]
    order = np.argsort(seen, kind="stable")
    stepped = np.maximum.accumulate(seen[order] * np.arange(len(seen), 0, -1))
    adjusted = np.empty(len(seen))
    adjusted[order] = np.minimum(1.0, stepped)
    result = np.full(p.shape, np.nan)
    result[~np.isnan(p)] = adjusted
    return result


def _biserial(first, second) -> np.ndarray:
    """r[b] from counts first[b, value] and second[b, value], values in rising order."""
    below = np.cumsum(first, axis=1) - first / 2
    U = (below * second).sum(axis=1)  # whole and half numbers: exact
    return 2 * U / (first.sum(axis=1) * second.sum(axis=1)) - 1


def _spread(sizes, rows, rng) -> np.ndarray:
    """Bootstrap counts over the values a sample has, set among all the values of both samples."""
    present = np.flatnonzero(sizes)
    counts = np.zeros((rows, len(sizes)))
    counts[:, present] = bootstrap_counts(sizes[present], rows, rng)
    return counts


def _paired(a, b, axis):
    """Broadcast two samples, items on the last axis, with NaN set in both where either is missing."""
    a, b = floats(a), floats(b)
    if a.ndim == 0 or b.ndim == 0 or a.shape[axis] != b.shape[axis]:
        raise ValueError(f"samples must have the same items, got shapes {a.shape} and {b.shape}")
    a, b = np.broadcast_arrays(np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1))
    missing = np.isnan(a) | np.isnan(b)
    return (np.where(missing, np.nan, a), np.where(missing, np.nan, b)) if missing.any() else (a, b)


def _tau_by_sorting(a, b) -> float:
    seen = ~np.isnan(a)
    if seen.sum() < 2:
        return np.nan
    return float(stats.kendalltau(average_ranks(a[seen]), average_ranks(b[seen])).statistic)


def _divide(numerator, denominator):
    """numerator / denominator, NaN where the denominator is 0; a float where there is no batch."""
    undefined = np.full(np.shape(denominator), np.nan)
    result = np.divide(numerator, denominator, out=undefined, where=denominator > 0)
    return float(result) if np.ndim(result) == 0 else result


def _sample(values, name) -> np.ndarray:
    values = floats(values).ravel()
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError(f"{name} holds no values")
    return values


def checked_p(p) -> np.ndarray:
    """p values as floats, NaN missing. Raises ValueError for one outside [0, 1].

    >>> checked_p([0.5, np.nan])
    array([0.5, nan])
    """
    p = np.asarray(p, dtype=float)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("p values must lie between 0 and 1")
    return p
