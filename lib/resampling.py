"""Bootstrap intervals and permutation nulls, without a Python loop over replicates.

Sources: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 (percentile) and 14 (BCa);
Field and Welsh (2007), Bootstrapping clustered data, for resampling whole clusters; Phipson and
Smyth (2010) for the 1 + in Monte Carlo p values. Every draw comes from the Generator handed in, and nothing
depends on how the replicates are cut into chunks: draws are consumed replicate by replicate, and each
replicate's sums run over its own row, so a chunk's height cannot change a bit of the result.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from lib.numeric import TIE_RTOL, centred_ranks, check_replicates, chunk_sizes, floats


class Interval(NamedTuple):
    """An estimate with its interval: floats, or arrays of the batch's shape."""

    estimate: float | np.ndarray
    lo: float | np.ndarray
    hi: float | np.ndarray


def bootstrap_indices(n: int, B: int, rng: np.random.Generator) -> np.ndarray:
    """indices[B, n]: each row draws n of n units with replacement.

    >>> bootstrap_indices(3, 2, np.random.default_rng(1)).shape
    (2, 3)
    """
    check_replicates(B, rng)
    if n < 1:
        raise ValueError("nothing to resample: there are no units")
    return rng.integers(0, n, size=(B, n))


def bootstrap_weights(n: int, B: int, rng: np.random.Generator) -> np.ndarray:
    """weights[B, n]: how often each unit was drawn; the counts of `bootstrap_indices` for the same draws.

    >>> bootstrap_weights(3, 2, np.random.default_rng(1)).sum(axis=1)
    array([3., 3.])
    """
    return _weights(bootstrap_indices(n, B, rng), n)


def bootstrap_counts(sizes, B: int, rng: np.random.Generator) -> np.ndarray:
    """counts[B, group]: how many of n resampled units fall into each group of interchangeable units.

    sizes[group] are the numbers of units that share a value (n is their sum). Where units repeat, a statistic
    of the counts needs one binomial draw a group instead of one draw a unit: same distribution, less work.

    >>> bootstrap_counts([4, 2], 3, np.random.default_rng(1)).sum(axis=1)
    array([6., 6., 6.])
    """
    check_replicates(B, rng)
    sizes = np.asarray(sizes, dtype=np.int64)
    n = int(sizes.sum())
    if n < 1 or (sizes < 0).any():
        raise ValueError("group sizes must be whole numbers >= 0 with a positive sum")
    if len(sizes) * 5 < n:
        return rng.multinomial(n, sizes / n, size=B).astype(float)
    group = np.repeat(np.arange(len(sizes)), sizes)
    return _weights(group[bootstrap_indices(n, B, rng)], len(sizes))


def percentile_interval(estimate, replicates, confidence: float = 0.95) -> Interval:
    """Percentile interval from replicates[..., B]; undefined (NaN) replicates are left out,
    and an estimate that is itself undefined has no interval.

    Raises ValueError for fewer than two replicates: one has no spread to read an interval from.

    >>> percentile_interval(2.0, [1.0, 2.0, 3.0], confidence=0.5)
    Interval(estimate=2.0, lo=1.5, hi=2.5)
    """
    _check_interval("percentile", confidence)
    replicates = np.asarray(replicates, dtype=float)
    _check_enough(replicates)
    lo, hi = _quantiles(replicates, np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    lo, hi = (np.where(np.isnan(estimate), np.nan, bound) for bound in (lo, hi))
    return Interval(_plain(estimate), _plain(lo), _plain(hi))


def bootstrap(
    values,
    statistic: Callable | None = None,
    *,
    B: int,
    rng: np.random.Generator,
    method: str = "percentile",
    confidence: float = 0.95,
    clusters=None,
) -> Interval:
    """Bootstrap interval of a statistic of values[..., unit]; units (the last axis) are resampled.

    statistic: None for the mean (missing units, NaN, are left out row by row), or a callable (array, axis=-1) that
    reduces the last axis; it may combine leading axes too, e.g. the correlation of two rows, and sees NaN as it is
    (NaN from it makes the bounds NaN). The rows of a batch share their draws (unless one has missing units): each
    interval is valid by itself.
    method: "percentile", or "bca" (bias-corrected and accelerated, jackknife over units or clusters;
    replicates equal to the estimate count half; a constant statistic gives lo = hi = estimate).
    clusters[unit]: labels; whole clusters are drawn, as many as there are, and all their units go along.
    Raises ValueError for no units, labels of another length, an unknown method, a bad B, rng or confidence.

    >>> found = bootstrap([1.0, 2.0, 4.0, 9.0], B=500, rng=np.random.default_rng(1), method="bca")
    >>> bool(found.lo < found.estimate < found.hi), found.estimate
    (True, 4.0)
    """
    _check_interval(method, confidence)
    check_replicates(B, rng)
    values = _units(values)
    if statistic is None and np.isnan(values).any():
        return _by_row(
            values,
            clusters,
            lambda row, labels: bootstrap(
                row, B=B, rng=rng, method=method, confidence=confidence, clusters=labels
            ),
        )
    evaluate, n_draws, estimate = _evaluator(values, statistic, clusters)
    replicates = _replicates(evaluate, n_draws, values.size, B, rng)
    if method == "percentile":
        return percentile_interval(estimate, replicates, confidence)
    return _bca_interval(estimate, replicates, _jackknife(evaluate, n_draws, values.size), confidence)


def tail_p(below, above, B):
    """Two-sided p of a difference from how many of its B replicates lie at or below and at or above 0: twice the smaller
    tail, each (1 + count) / (B + 1), at most 1. Numbers or arrays.

    >>> float(tail_p(0, 999, 999))
    0.002
    """
    return np.minimum(1.0, 2 * (1 + np.minimum(below, above)) / (np.asarray(B) + 1))


def permutation_null(statistic: Callable, first, second, *, B: int, rng: np.random.Generator) -> np.ndarray:
    """null[B]: the statistic when the units of `second` are permuted against those of `first`.

    first[unit], second[unit]. statistic(first[1, unit], permuted[b, unit]) must return one number a row, as
    `lib.ranks.spearman` does. Raises ValueError for samples of different lengths, or a statistic that gives
    another shape.

    >>> dot = lambda first, second: (first * second).sum(axis=1)
    >>> sorted(set(permutation_null(dot, [0, 1], [2, 3], B=50, rng=np.random.default_rng(1)).tolist()))
    [2.0, 3.0]
    """
    first, second = _pair(first, second)
    check_replicates(B, rng)
    parts = []
    for rows in chunk_sizes(B, len(second)):
        part = np.asarray(statistic(first[np.newaxis, :], _permutations(second, rows, rng)), dtype=float)
        if part.shape != (rows,):
            raise ValueError(f"the statistic must give one number a row, shape ({rows},), not {part.shape}")
        parts.append(part)
    return np.concatenate(parts)


def spearman_null(first, second, *, B: int, rng: np.random.Generator) -> np.ndarray:
    """null[B]: Spearman's rho with the units of `second` permuted; pairs with a missing member are left out.

    The same values as permutation_null(spearman, ...) with the same generator, but ranks once, not B times.
    All NaN where rho is undefined (a constant sample, fewer than two pairs).

    >>> sorted(set(spearman_null([1, 2], [2, 3], B=50, rng=np.random.default_rng(1)).tolist()))
    [-1.0, 1.0]
    """
    first, second = _pair(first, second)
    check_replicates(B, rng)
    complete = ~(np.isnan(first) | np.isnan(second))
    first, second = centred_ranks(first[complete]), centred_ranks(second[complete])
    norm = np.sqrt((first @ first) * (second @ second))
    if len(first) < 2 or norm == 0:
        return np.full(B, np.nan)
    parts = [_permutations(second, rows, rng) @ first for rows in chunk_sizes(B, len(second))]
    return np.concatenate(parts) / norm


def _permutations(values, rows, rng) -> np.ndarray:
    return rng.permuted(np.broadcast_to(values, (rows, len(values))), axis=1)


def _weights(codes, width) -> np.ndarray:
    """Count codes[row, draw] per row: counts[row, width]."""
    rows = len(codes)
    flat = (codes + np.arange(rows)[:, np.newaxis] * width).ravel()
    return np.bincount(flat, minlength=rows * width).reshape(rows, width).astype(float)


def _evaluator(values, statistic, clusters):
    """(evaluate, n, estimate): evaluate(draws[b, draw]) is the statistic of each row's resample, [..., b]."""
    n = values.shape[-1]
    if clusters is None:
        order, sizes = np.arange(n), np.ones(n, dtype=np.int64)
    else:
        labels = np.asarray(clusters)
        if labels.shape != (n,):
            raise ValueError(f"clusters must label each of the {n} units, got shape {labels.shape}")
        _, codes = np.unique(labels, return_inverse=True)
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    if statistic is None:
        totals = np.add.reduceat(values[..., order], starts, axis=-1) if clusters is not None else values
        evaluate = _mean_of(totals, sizes)
        return evaluate, len(sizes), evaluate(np.arange(len(sizes))[np.newaxis])[..., 0]

    def evaluate(draws):
        lengths = sizes[draws].sum(axis=1)
        results = None
        for length in np.unique(lengths):  # resamples of one length stand in one rectangle
            rows = np.flatnonzero(lengths == length)
            drawn = draws[rows].ravel()
            offsets = np.cumsum(sizes[drawn]) - sizes[drawn]
            within = np.arange(len(rows) * length) - np.repeat(offsets, sizes[drawn])
            indices = order[np.repeat(starts[drawn], sizes[drawn]) + within].reshape(len(rows), length)
            part = np.asarray(statistic(values[..., indices], axis=-1), dtype=float)
            if part.ndim == 0 or part.shape[-1] != len(rows):
                raise ValueError(
                    "the statistic must reduce the last axis (axis=-1) and keep the axis of the "
                    f"replicates, giving [..., {len(rows)}], but gave shape {part.shape}"
                )
            if results is None:
                results = np.empty(part.shape[:-1] + (len(draws),))
            results[..., rows] = part
        return results

    return evaluate, len(sizes), np.asarray(statistic(values, axis=-1), dtype=float)


def _mean_of(totals, sizes):
    flat = np.ascontiguousarray(totals).reshape(-1, totals.shape[-1])
    # Sums around the mean, and an estimate made by the same sum, keep a constant sample's replicates
    # constant.
    centre = flat.sum(axis=-1) / sizes.sum()
    flat = flat - centre[:, np.newaxis] * sizes

    def evaluate(draws):
        weights = _weights(draws, len(sizes))
        units = weights @ sizes  # whole numbers: exact in any order
        means = [np.add.reduce(weights * row, axis=1) / units for row in flat]
        return (centre[:, np.newaxis] + np.stack(means)).reshape(totals.shape[:-1] + (len(draws),))

    return evaluate


def _replicates(evaluate, n_draws, cells, B, rng) -> np.ndarray:
    """replicates[..., B]."""
    parts = [evaluate(bootstrap_indices(n_draws, rows, rng)) for rows in chunk_sizes(B, cells)]
    return np.concatenate(parts, axis=-1)


def _jackknife(evaluate, n_draws, cells) -> np.ndarray | None:
    """left_out[..., unit]: the statistic without each unit (or cluster) in turn; None with only one."""
    if n_draws < 2:
        return None
    parts, start = [], 0
    for rows in chunk_sizes(n_draws, cells):
        left_out = np.arange(start, start + rows)[:, np.newaxis]
        kept = np.arange(n_draws - 1)
        parts.append(evaluate(kept + (kept >= left_out)))
        start += rows
    return np.concatenate(parts, axis=-1)


def _bca_interval(estimate, replicates, left_out, confidence) -> Interval:
    """Efron and Tibshirani (1993), equations 14.10, 14.14 and 14.15."""
    _check_enough(replicates)
    defined = ~np.isnan(replicates)
    B = np.maximum(1, defined.sum(axis=-1))
    target = np.asarray(estimate)[..., np.newaxis]
    # A resample that holds every unit once is the sample in another order: equal but for rounding.
    slack = TIE_RTOL * np.abs(np.where(defined, replicates, 0.0)).max(axis=-1, keepdims=True)
    under, up_to = (replicates < target - slack).sum(axis=-1), (replicates <= target + slack).sum(axis=-1)
    below = (under + up_to) / (2 * B)
    bias = special.ndtri(np.clip(below, 0.5 / B, 1 - 0.5 / B))
    acceleration = np.zeros(bias.shape)
    if left_out is not None:
        spread = left_out.mean(axis=-1, keepdims=True) - left_out
        largest = np.abs(spread).max(axis=-1, keepdims=True)
        negligible = largest[..., 0] <= 1e-14 * np.abs(left_out).max(axis=-1)
        spread = np.divide(
            spread, largest, out=np.zeros(spread.shape), where=largest > 0
        )  # its cubes would overflow
        scale = (spread**2).sum(axis=-1) ** 1.5
        cubes = (spread**3).sum(axis=-1)
        acceleration = np.divide(cubes, 6 * scale, out=acceleration, where=~negligible & (scale > 0))
    bounds = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + special.ndtri(tail)
        level = special.ndtr(bias + shifted / (1 - acceleration * shifted))
        rows = zip(replicates.reshape(-1, replicates.shape[-1]), level.ravel(), strict=True)
        bound = [_quantiles(row, np.array([at]))[0] for row, at in rows]
        bounds.append(np.where(np.isnan(estimate), np.nan, np.array(bound).reshape(bias.shape)))
    return Interval(_plain(estimate), _plain(bounds[0]), _plain(bounds[1]))


def _quantiles(replicates, levels) -> np.ndarray:
    """quantiles[level, ...] along the last axis; NaN only where every replicate is NaN."""
    missing = np.isnan(replicates)
    if not missing.any():
        return np.quantile(replicates, levels, axis=-1)
    flat = replicates.reshape(-1, replicates.shape[-1])
    kept = [row[~np.isnan(row)] for row in flat]
    result = [np.quantile(row, levels) if len(row) else np.full(len(levels), np.nan) for row in kept]
    return np.stack(result, axis=-1).reshape((len(levels),) + replicates.shape[:-1])


def _by_row(values, clusters, estimate_row):
    """Apply an estimator to each row's observed units; a row with none gives NaN in every field."""
    labels = None if clusters is None else np.asarray(clusters)
    if labels is not None and labels.shape != values.shape[-1:]:
        raise ValueError(f"clusters must label each of {values.shape[-1]} units, got shape {labels.shape}")
    rows = values.reshape(-1, values.shape[-1])
    results = np.full((len(rows), 3), np.nan)
    for row, result in zip(rows, results, strict=True):
        seen = ~np.isnan(row)
        if seen.any():
            result[:] = estimate_row(row[seen], None if labels is None else labels[seen])
    return Interval(*(_plain(column.reshape(values.shape[:-1])) for column in results.T))


def _units(values) -> np.ndarray:
    values = floats(values, finite=True)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"nothing to resample: values[..., unit] has shape {values.shape}")
    return values


def _pair(first, second):
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or len(first) == 0:
        raise ValueError(f"a null needs two samples of one length, got shapes {first.shape}, {second.shape}")
    return first, second


def _check_interval(method, confidence) -> None:
    if method not in ("percentile", "bca"):
        raise ValueError(f"unknown interval method {method!r}: use 'percentile' or 'bca'")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")


def _check_enough(replicates) -> None:
    if replicates.ndim == 0 or replicates.shape[-1] < 2:
        raise ValueError(
            f"an interval needs at least 2 replicates, replicates[..., B] has shape {replicates.shape}"
        )


def _plain(value):
    """A float for a single number, else the array."""
    value = np.asarray(value, dtype=float)
    return float(value) if value.ndim == 0 else value
