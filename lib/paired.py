"""Is one of two better over the units that both met? A mean paired difference with an interval and a p value.

Sources: Fisher (1935), The Design of Experiments, section 21, for the p by sign flips; Efron and Tibshirani (1993),
An Introduction to the Bootstrap, chapter 16, for the p by resampling; Phipson and Smyth (2010) for the 1 + in Monte
Carlo p values. With few units the bootstrap's p is far too small: resamples know neither Student's factor nor that
three units can never say more than p = .25. So below FEW units the p is that of sign flips and the interval Student's.
"""

from typing import NamedTuple

import numpy as np

from lib.means import FEW, mean_interval
from lib.numeric import TIE_RTOL, check_replicates, chunk_sizes, floats, near
from lib.resampling import bootstrap_weights, percentile_interval, tail_p

EXACT_FLIPS = 14  # up to so many units all flips are counted


class PairedResult(NamedTuple):
    """A mean paired difference (second - first), its interval, a two-sided p value, and `test`: how p was found, or
    why there is none."""

    estimate: float
    lo: float
    hi: float
    p: float
    test: str


def paired_difference(
    first, second, *, B: int, rng: np.random.Generator, confidence: float = 0.95, clusters=None
) -> PairedResult:
    """Difference of means over paired units, mean(second) - mean(first).

    first[unit], second[unit]: pairs with a missing member are left out; clusters[unit]: labels of units that
    belong together, flipped or drawn as one. With fewer than 200 units (clusters) the p is that of sign flips
    (`sign_flip_p`) and the interval Student's, with the clusters' residuals for a standard error. With more both are the
    bootstrap's: percentile interval, and twice the smaller tail of the B replicates at zero, each tail as
    (1 + count) / (B + 1). One unit has an estimate and nothing else. Differences within 1e-12 of the values (relative)
    are 0. Raises ValueError for different shapes, no pair at all, an infinite value, a bad B, rng or confidence.

    >>> found = paired_difference([10, 2, 6], [11, 4, 7], B=1000, rng=np.random.default_rng(1))
    >>> round(found.estimate, 3), found.p, found.test
    (1.333, 0.25, 'sign flips, all 8')
    """
    check_replicates(B, rng)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    first, second = floats(first, finite=True), floats(second, finite=True)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"paired samples must have one shape, [unit], got {first.shape} and {second.shape}")
    labels = np.arange(len(first)) if clusters is None else np.asarray(clusters)
    if labels.shape != first.shape:
        raise ValueError(f"clusters must label each of the {len(first)} units, got shape {labels.shape}")
    seen = ~np.isnan(first - second)
    if not seen.any():
        raise ValueError("no unit has both members of its pair: there is nothing to compare")
    differences = np.where(near(first, second), 0.0, second - first)[seen]
    codes = np.unique(labels[seen], return_inverse=True)[1]
    totals = np.bincount(codes, differences)
    if len(totals) >= FEW:
        return _by_resampling(float(differences.mean()), totals, np.bincount(codes), B, rng, confidence)
    interval = mean_interval(
        differences, B=B, rng=rng, confidence=confidence, clusters=None if clusters is None else codes
    )
    p, test = sign_flip_p(totals, B=B, rng=rng)
    return PairedResult(*map(float, interval), p, test)


def sign_flip_p(differences, *, B: int, rng: np.random.Generator) -> tuple[float, str]:
    """(two-sided p that differences[unit] are as likely of either sign, how it was found).

    All flips are counted with at most 14 units, else B are drawn: p = (1 + count) / (B + 1). A sum as far from 0 as
    the observed one but for rounding counts. NaN, with the reason, for one unit. Raises ValueError for none.

    >>> sign_flip_p([1, 2, 1], B=100, rng=np.random.default_rng(1))
    (0.25, 'sign flips, all 8')
    """
    check_replicates(B, rng)
    differences = floats(differences, finite=True)
    n = len(differences)
    if n == 0:
        raise ValueError("no unit has both members of its pair: there is nothing to compare")
    if n == 1:
        return np.nan, "none: one unit says nothing about chance"
    observed = abs(differences.sum()) - TIE_RTOL * np.abs(differences).sum()
    if n <= EXACT_FLIPS:
        # the first unit's sign is held: the flips of all signs give the same sums turned round
        flips = 1.0 - 2.0 * (np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1) & 1)
        sums = np.abs(differences[0] + (flips * differences[1:]).sum(axis=1))
        return float(np.mean(sums >= observed)), f"sign flips, all {2**n}"
    count = 0
    for rows in chunk_sizes(B, n):
        flips = 1.0 - 2.0 * rng.integers(0, 2, size=(rows, n))
        count += int((np.abs((flips * differences).sum(axis=1)) >= observed).sum())
    return (1 + count) / (B + 1), f"sign flips, {B} drawn"


def _by_resampling(estimate, totals, sizes, B, rng, confidence) -> PairedResult:
    """Interval and p from the same B resamples of units (clusters) with these sums and sizes."""
    slack = TIE_RTOL * np.abs(totals).sum() / sizes.sum()
    residuals, parts = totals - estimate * sizes, []
    for rows in chunk_sizes(B, len(totals)):
        weights = bootstrap_weights(len(totals), rows, rng)
        parts.append(np.add.reduce(weights * residuals, axis=1) / (weights @ sizes))
    means = estimate + np.concatenate(parts)
    p = float(tail_p((means <= slack).sum(), (means >= -slack).sum(), B))
    interval = percentile_interval(estimate, means, confidence)
    return PairedResult(*map(float, interval), p, f"bootstrap, {B} resamples")
