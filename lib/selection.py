"""The strongest of several, reported as what it is: chosen after looking.

The largest of k noisy correlations is larger than what it estimates, and the interval of one that was not chosen
misses the truth far too often. Source: Romano and Wolf (2005), Exact and approximate stepdown methods for multiple
hypothesis testing, for the bootstrap of the maximum; Westfall and Young (1993) for shuffling; Fisher (1915) for the
scale on which correlations vary alike.
"""

from typing import NamedTuple

import numpy as np

from lib.numeric import centred_ranks, check_replicates, chunk_sizes, floats, levels
from lib.ranks import spearman
from lib.resampling import bootstrap_weights

EDGE = 1 - 1e-9  # Fisher's scale is infinite at 1


class Strongest(NamedTuple):
    """Which measure correlates most strongly (its place), rho, and the interval that allows for the choice."""

    place: int
    estimate: float
    lo: float
    hi: float


def strongest_correlation(
    measures, target, *, B: int, rng: np.random.Generator, confidence: float = 0.95
) -> Strongest:
    """The measure with the largest |rho| (Spearman) with a target, with its max-corrected interval.

    measures[measure, unit], target[unit]; pairs with a missing member are left out of a measure's rho. Units are
    resampled; the half-width on Fisher's scale is the `confidence` quantile of the largest deviation of any measure's
    rho from its estimate, so that all k intervals hold at once, and with them the one that is chosen. An interval
    that excludes 0 is then a test at that level that no measure correlates. Raises ValueError for shapes that do not
    match, where no rho is defined, and for a bad B, rng or confidence.

    >>> units = np.random.default_rng(1).normal(size=(4, 60))
    >>> found = strongest_correlation(units[:3], units[3] + units[1], B=500, rng=np.random.default_rng(2))
    >>> found.place, bool(found.lo > 0)
    (1, True)
    """
    check_replicates(B, rng)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    measures, target = floats(measures, finite=True), floats(target, finite=True)
    if measures.ndim != 2 or measures.shape[1:] != target.shape:
        raise ValueError(
            f"measures[measure, unit] and target[unit] do not match: {measures.shape}, {target.shape}"
        )
    rho = np.asarray(spearman(measures, target))
    if np.isnan(rho).all():
        raise ValueError("no measure varies together with the target: there is no correlation to choose from")
    place = int(np.nanargmax(np.abs(rho)))
    kept = np.flatnonzero(~np.isnan(rho))
    centre, parts = _fisher(rho[kept])[:, None], []
    for rows in chunk_sizes(B, measures.size):
        weights = bootstrap_weights(len(target), rows, rng)
        found = _fisher([_weighted_spearman(measures[place], target, weights) for place in kept])
        parts.append(np.nanmax(np.abs(found - centre), axis=0))
    reach = float(np.quantile(np.concatenate(parts), confidence))
    at = float(_fisher(rho[place]))
    return Strongest(place, float(rho[place]), float(np.tanh(at - reach)), float(np.tanh(at + reach)))


def _weighted_spearman(first, second, weights) -> np.ndarray:
    """rho[b] of first[unit] and second[unit], each unit as often as weights[b, unit] says: what `spearman` gives of
    the drawn units, without sorting a single resample."""
    seen = ~(np.isnan(first) | np.isnan(second))
    weights = weights[:, seen]
    placed = []
    for values in (first[seen], second[seen]):
        _, codes = levels(values)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
        counts = np.add.reduceat(weights[:, order], starts, axis=1)  # whole numbers: exact
        middle = 2 * np.cumsum(counts, axis=1) - counts - counts.sum(axis=1, keepdims=True)
        placed.append(middle[:, codes])
    a, b = placed
    norm = np.sqrt((weights * a**2).sum(axis=1) * (weights * b**2).sum(axis=1))
    return np.divide((weights * a * b).sum(axis=1), norm, out=np.full(len(weights), np.nan), where=norm > 0)


def _fisher(rho):
    return np.arctanh(np.clip(rho, -EDGE, EDGE))


class Permuted(NamedTuple):
    """rho[measure] with a target, p[measure] of each taken alone, and p_strongest of the strongest as the strongest."""

    rho: np.ndarray
    p: np.ndarray
    p_strongest: float


def permuted_correlations(measures, target, *, B: int, rng: np.random.Generator) -> Permuted:
    """Spearman's rho of several measures with one target, tested by shuffling the target: for few units.

    measures[measure, unit], target[unit], none missing. Two-sided p, (1 + count) / (B + 1), over the same B shuffles;
    the strongest of the measures is compared with the strongest in each shuffle (Westfall and Young 1993), so that
    measures that go together count for what they are. NaN for a measure, or with a target, that does not vary. Raises
    ValueError for missing values, shapes that do not match, a bad B or rng.

    >>> found = permuted_correlations([[1, 2, 3, 4], [1, 1, 1, 1]], [1, 2, 3, 4], B=999, rng=np.random.default_rng(1))
    >>> found.rho, bool(0.05 < found.p[0] == found.p_strongest < 0.12)
    (array([ 1., nan]), True)
    """
    check_replicates(B, rng)
    measures, target = floats(measures, finite=True), floats(target, finite=True)
    if measures.ndim != 2 or measures.shape[1:] != target.shape:
        raise ValueError(
            f"measures[measure, unit] and target[unit] do not match: {measures.shape}, {target.shape}"
        )
    if np.isnan(measures).any() or np.isnan(target).any():
        raise ValueError("a value is missing: shuffling needs complete units")
    rows, goal = centred_ranks(measures), centred_ranks(target)
    norm = np.sqrt((rows**2).sum(axis=1) * (goal @ goal))
    norm[norm == 0] = np.nan
    # sums of whole numbers: a shuffle that gives the same rho gives it to the last bit
    null = np.abs(rng.permuted(np.tile(goal, (B, 1)), axis=1) @ rows.T) / norm
    rho = rows @ goal / norm
    p = np.where(np.isnan(rho), np.nan, (1 + (null >= np.abs(rho)).sum(axis=0)) / (B + 1))
    if np.isnan(rho).all():
        return Permuted(rho, p, np.nan)
    strongest = (1 + (np.nanmax(null, axis=1) >= np.nanmax(np.abs(rho))).sum()) / (B + 1)
    return Permuted(rho, p, float(strongest))


class ChosenDifference(NamedTuple):
    """Places of the best challenger and the lowest incumbent, how far the first is above the second, and the interval
    that allows for choosing both."""

    challenger: int
    incumbent: int
    estimate: float
    lo: float
    hi: float


def chosen_difference(
    estimates, replicates, challengers, incumbents, confidence: float = 0.95
) -> ChosenDifference:
    """The best of some entrants against the lowest of others, both chosen after looking.

    estimates[entrant], replicates[b, entrant] of one joint resample; challengers, incumbents: their places. The
    half-width is the `confidence` quantile of the largest deviation of any pair's difference from its estimate, each in
    its own standard deviation (Romano and Wolf 2005), so that the intervals of all pairs hold at once. Replicates in
    which an entrant is undefined are left out. Raises ValueError for no challenger, no incumbent or no replicate.

    >>> drawn = np.random.default_rng(1).normal([1.0, 0.0, 3.0, 4.0], 0.1, (500, 4))
    >>> found = chosen_difference([1.0, 0.0, 3.0, 4.0], drawn, [0, 1], [2, 3])
    >>> found[:3], bool(found.hi < 0)
    ((0, 2, -2.0), True)
    """
    estimates, replicates = np.asarray(estimates, dtype=float), np.asarray(replicates, dtype=float)
    challengers, incumbents = np.asarray(challengers, dtype=int), np.asarray(incumbents, dtype=int)
    if not len(challengers) or not len(incumbents):
        raise ValueError("a choice needs at least one challenger and one incumbent")
    kept = replicates[~np.isnan(replicates[:, np.r_[challengers, incumbents]]).any(axis=1)]
    if len(kept) < 2:
        raise ValueError("no two replicates in which all the entrants are defined")
    drawn = kept[:, challengers, None] - kept[:, None, incumbents]
    point = estimates[challengers, None] - estimates[incumbents]
    spread = drawn.std(axis=0, ddof=1)
    away = np.divide(np.abs(drawn - point), spread, out=np.zeros(drawn.shape), where=spread > 0)
    at = int(np.argmax(estimates[challengers])), int(np.argmin(estimates[incumbents]))
    reach = float(np.quantile(away.max(axis=(1, 2)), confidence)) * float(spread[at])
    best, difference = (int(challengers[at[0]]), int(incumbents[at[1]])), float(point[at])
    return ChosenDifference(*best, difference, difference - reach, difference + reach)
