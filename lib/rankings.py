"""Rankings, and what another sample would do to them: intervals of ranks, and which orders hold.

Sources: Goldstein and Spiegelhalter (1996), League tables and their limitations, for intervals of ranks; Efron and
Tibshirani (1993) for the bootstrap; Holm (1979); Mann and Whitney (1947) for the share of pairs won. Scores lie in
scores[unit, entrant], NaN where an entrant has no such unit; the highest score ranks first.
"""

from itertools import combinations

import numpy as np
import pandas as pd

from lib import spectral
from lib.numeric import average_ranks, check_replicates, floats, near
from lib.paired import paired_difference
from lib.ranks import holm, ranks
from lib.resampling import bootstrap_weights, percentile_interval, tail_p


def mean_replicates(scores, *, paired: bool, B: int, rng: np.random.Generator, strata=None) -> np.ndarray:
    """replicates[b, entrant]: means of resampled units of scores[unit, entrant]; missing units are left out.

    paired: every entrant met the same units (queries, cases), so all share one draw; otherwise each entrant's own
    units are drawn by themselves. strata[unit]: labels of what is fixed by design (conditions); as many units of
    each are drawn as there are. Raises ValueError for an entrant without any unit, a bad B or rng.

    >>> mean_replicates([[1, 2], [3, 5]], paired=True, B=4, rng=np.random.default_rng(1)).shape
    (4, 2)
    """
    check_replicates(B, rng)
    scores = floats(scores, finite=True)
    seen = ~np.isnan(scores)
    if not seen.any(axis=0).all():
        raise ValueError(f"entrant {int(np.flatnonzero(~seen.any(axis=0))[0])} has no score at all")
    strata = np.zeros(len(scores), dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    total, drawn = np.zeros((2, B, scores.shape[1]))
    for stratum in range(strata.max() + 1):
        part = scores[strata == stratum]
        if paired:
            weights = bootstrap_weights(len(part), B, rng).astype(float)
            total += weights @ np.nan_to_num(part)
            drawn += weights @ ~np.isnan(part)
            continue
        for entrant, column in enumerate(part.T):
            own = column[~np.isnan(column)]
            if len(own):
                total[:, entrant] += bootstrap_weights(len(own), B, rng) @ own
                drawn[:, entrant] += len(own)
    return np.divide(total, drawn, out=np.full(drawn.shape, np.nan), where=drawn > 0)


def rank_intervals(replicates, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """(lo[entrant], hi[entrant]): the middle `confidence` of each entrant's ranks in replicates[b, entrant].

    1 = highest, ties share the better rank, both ends outward to whole ranks. An entrant is not ranked in a replicate
    in which it is undefined. Goldstein and Spiegelhalter's interval: for entrants that are nearly equal it promises
    less than its name (the calibration notebooks say how much), for a rank jumps where a score moves a little.

    >>> rank_intervals([[5, 9], [6, 8], [5, 9], [9, 7]])
    (array([1., 1.]), array([2., 2.]))
    """
    return _middle(ranks(replicates, method="competition"), confidence)


def _middle(drawn, confidence=0.95):
    tail = (1 - confidence) / 2
    lo = np.nanquantile(drawn, tail, axis=0, method="lower")
    return lo, np.nanquantile(drawn, 1 - tail, axis=0, method="higher")


def pair_p(replicates) -> np.ndarray:
    """p[i, j] that entrants i and j are equal, two-sided, from replicates[b, entrant] (NaN on the diagonal).

    Twice the smaller tail of the differences at zero, each tail as (1 + count) / (B + 1); replicates in which one of
    the two is undefined are left out. Values that differ by rounding alone are equal (`lib.numeric.near`), so that no
    processor's last bit decides. Far too small for few units: paired ones have `paired_p`.

    >>> pair_p([[1, 2], [1, 3], [2, 2], [5, 2]])
    array([[nan,  1.],
           [ 1., nan]])
    """
    replicates = np.asarray(replicates, dtype=float)
    first, second = replicates[:, :, None], replicates[:, None, :]
    tied = near(first, second)
    below, above = ((first < second) | tied).sum(axis=0), ((first > second) | tied).sum(axis=0)
    defined = (~np.isnan(first - second)).sum(axis=0)
    p = tail_p(below, above, defined)
    np.fill_diagonal(p, np.nan)
    return p


def paired_p(scores, *, B: int, rng: np.random.Generator) -> np.ndarray:
    """p[i, j] that entrants i and j are equal, by `lib.paired.paired_difference` over the units both have; NaN where
    they share fewer than two. scores[unit, entrant].

    >>> paired_p([[1, 2], [0, 2], [3, 4]], B=100, rng=np.random.default_rng(1))
    array([[ nan, 0.25],
           [0.25,  nan]])
    """
    scores = floats(scores, finite=True)
    p = np.full((scores.shape[1],) * 2, np.nan)
    for i, j in combinations(range(scores.shape[1]), 2):
        both = scores[~np.isnan(scores[:, [i, j]]).any(axis=1)][:, [i, j]]
        if len(both):
            p[i, j] = p[j, i] = paired_difference(*both.T, B=B, rng=rng).p
    return p


def rank_table(estimates: pd.Series, replicates, p=None) -> pd.DataFrame:
    """What the replicates say of a ranking: a row an entrant, best first.

    Columns: estimate, lo, hi (95 %, percentile); rank (1 = best, ties share the better), rank_lo, rank_hi (95 %,
    `rank_intervals`); first (share of replicates in which it ranks first); holds (the share in which it stands above
    the next in line, ties half; what differs by rounding alone is tied); p_next (two-sided, Holm over the neighbours);
    beaten_by and beats (how many entrants stand clearly above and below it, Holm over all pairs at 0.05).
    replicates[b, entrant] in the order of `estimates`; p[i, j]: as `pair_p` (the default) or `paired_p` gives it.

    >>> replicates = [[5, 9], [6, 8], [5, 9], [9, 7]]
    >>> rank_table(pd.Series([6.0, 8.0], ["a", "b"]), replicates)[["rank", "first"]].to_numpy().tolist()
    [[1.0, 0.75], [2.0, 0.25]]
    """
    replicates = np.asarray(replicates, dtype=float)
    values = estimates.to_numpy(dtype=float)
    order = np.argsort(-values, kind="stable")
    drawn = ranks(replicates, method="competition")
    lo, hi = percentile_interval(values, replicates.T)[1:]
    rank_lo, rank_hi = _middle(drawn)
    table = pd.DataFrame(
        {
            "estimate": values,
            "lo": lo,
            "hi": hi,
            "rank": ranks(values, method="competition"),
            "rank_lo": rank_lo,
            "rank_hi": rank_hi,
            "first": (drawn == 1).mean(axis=0),
        },
        index=estimates.index,
    ).iloc[order]
    p, (upper, lower) = pair_p(replicates) if p is None else p, (order[:-1], order[1:])
    table["holds"] = [*_share_above(replicates[:, upper], replicates[:, lower]), np.nan]
    table["p_next"] = [*holm(p[upper, lower]), np.nan]
    clear = separated(p)
    table["beaten_by"] = (clear & (values[None, :] > values[:, None])).sum(axis=1)[order]
    table["beats"] = (clear & (values[None, :] < values[:, None])).sum(axis=1)[order]
    return table


def separated(p, level: float = 0.05) -> np.ndarray:
    """Which pairs differ after Holm over all pairs: boolean [i, j] from the symmetric p[i, j] of `pair_p`.

    >>> separated([[np.nan, 0.01], [0.01, np.nan]])
    array([[False,  True],
           [ True, False]])
    """
    p = np.asarray(p, dtype=float)
    upper = np.triu_indices(len(p), k=1)
    clear = np.zeros(p.shape, dtype=bool)
    clear[upper] = holm(p[upper]) < level
    return clear | clear.T


def win_share(scores, *, paired: bool) -> np.ndarray:
    """share[entrant]: how often a unit of it scores above a unit of another entrant, ties half, over all others.

    paired: units are compared one by one, over those that both have; otherwise every unit of the one with every
    unit of the other (Mann-Whitney's U as a share). NaN for an entrant that shares no unit with any other.

    >>> win_share([[1, 2], [3, 3]], paired=True)
    array([0.25, 0.75])
    """
    scores = floats(scores, finite=True)
    n = scores.shape[1]
    shares = np.full((n, n), np.nan)
    for i, j in combinations(range(n), 2):
        first, second = scores[:, i], scores[:, j]
        if paired:
            above = float(_share_above(first, second))
        else:
            first, second = first[~np.isnan(first)], second[~np.isnan(second)]
            above = _share_of_all(first, second) if len(first) and len(second) else np.nan
        shares[i, j], shares[j, i] = above, 1 - above
    seen = ~np.isnan(shares)
    return np.divide(
        np.where(seen, shares, 0).sum(axis=1),
        seen.sum(axis=1),
        out=np.full(n, np.nan),
        where=seen.any(axis=1),
    )


def consensus_means(ratings, group_of, n_groups: int) -> np.ndarray:
    """mean[group] of the two-sided spectral consensus (The Metanym Game, A5-A9) of ratings[judge, item].

    group_of[item]: whose item it is. Judges count by their loading on the shared axis, not alike. Raises
    SpectralError where there is no axis.

    >>> consensus_means([[5, 6, 8], [4, 6, 9]], [0, 0, 1], 2).round(2)
    array([5.19, 8.62])
    """
    return spectral.group_means(spectral.two_sided(ratings, "row_mean").consensus, group_of, n_groups)


def _share_of_all(first, second) -> float:
    """How often a unit of `first` stands above a unit of `second`, ties half, over all pairs: from the sum of ranks."""
    n = len(first)
    placed = average_ranks(np.concatenate([first, second]))
    return float((placed[:n].sum() - n * (n + 1) / 2) / (n * len(second)))


def _share_above(first, second):
    """How often `first` stands above `second` along the first axis, ties half; NaN where no pair is defined."""
    tied, defined = near(first, second), ~(np.isnan(first) | np.isnan(second))
    won = (((first > second) & ~tied) + 0.5 * tied).sum(axis=0)
    count = defined.sum(axis=0)
    return np.divide(won, count, out=np.full(np.shape(won), np.nan), where=count > 0)
