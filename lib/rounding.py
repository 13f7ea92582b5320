"""What printed numbers allow: rounding ranges, whole-number checks, statistics of printed columns.

A printed number stands for every number that rounds to it. These functions carry that range through the
simple arithmetic between a paper's tables, so that a disagreement is reported only where no reading of the
printed digits can explain it. Ties in the last place may have been rounded either way, so all ranges are
closed.

Sources: Brown and Heathers (2017), "The GRIM test", Social Psychological and Personality Science 8(4); Anaya
(2016) and Allard (2018) for its extension to standard deviations (GRIMMER).
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

# Decimal fractions have no exact binary form; a unit's billionth keeps the closed ranges closed.
SLACK = 1e-9
MOST_ORDERINGS = 20_000


class AuditError(ValueError):
    """Printed numbers that cannot be what they are said to be; the message names the number and the rule."""


class Printed(NamedTuple):
    """A number recomputed from printed numbers, with the range that their rounding allows."""

    value: float
    lo: float
    hi: float

    def allows(self, printed, decimals) -> bool:
        """Whether some number in [lo, hi] rounds to `printed`.

        >>> Printed(0.1234, 0.1226, 0.1241).allows(0.12, 2)
        True
        """
        lo, hi = printed_range(printed, decimals)
        slack = SLACK * 10.0**-decimals
        return bool(self.lo <= hi + slack and lo <= self.hi + slack)


def printed_range(value, decimals):
    """(lo, hi): the closed range of numbers that print as `value` with so many decimals. Arrays broadcast.

    >>> [float(round(end, 3)) for end in printed_range(0.12, 2)]
    [0.115, 0.125]
    """
    half = 0.5 * 10.0 ** -np.asarray(decimals, dtype=float)
    value = np.asarray(value, dtype=float)
    return value - half, value + half


def units_off(computed, printed, decimals):
    """Printed minus computed in units of the last printed digit; within ±0.5 they agree. Arrays broadcast.

    >>> float(round(units_off(0.134, 0.12, 2), 1))
    -1.4
    """
    difference = np.asarray(printed, dtype=float) - np.asarray(computed, dtype=float)
    return difference * 10.0 ** np.asarray(decimals, dtype=float)


def agrees(computed, printed, decimals):
    """Whether `computed` prints as `printed` (a tie may have been rounded either way). Arrays broadcast.

    >>> bool(agrees(0.1249, 0.12, 2)), bool(agrees(0.131, 0.12, 2))
    (True, False)
    """
    return np.abs(units_off(computed, printed, decimals)) <= 0.5 + SLACK


def possible_counts(printed, decimals: int, n: int, scale: float = 1.0):
    """(first, last): the whole numbers c for which scale·c/n prints as `printed`; first > last if
    there is none.

    A mean of `n` whole numbers with `scale` 1 (a GRIM test), a percentage of `n` labels with `scale` 100.
    Arrays broadcast. Raises ValueError unless n >= 1 and scale > 0.

    >>> list(possible_counts(0.33, 2, 12))
    [np.int64(4), np.int64(4)]
    """
    if n < 1 or scale <= 0:
        raise ValueError(f"n must be at least 1 and scale positive, got n = {n}, scale = {scale}")
    lo, hi = printed_range(printed, decimals)
    slack = SLACK * 10.0 ** -float(decimals)
    first, last = np.ceil((lo - slack) * n / scale), np.floor((hi + slack) * n / scale)
    return first.astype(int), last.astype(int)


def consistent_mean(printed, decimals: int, n: int, scale: float = 1.0):
    """GRIM: whether `printed` can be scale times a mean of `n` whole numbers. Arrays broadcast.

    >>> bool(consistent_mean(3.51, 2, 7)), bool(consistent_mean(3.57, 2, 7))
    (False, True)
    """
    first, last = possible_counts(printed, decimals, n, scale)
    return first <= last


def grim_power(decimals: int, n: int, scale: float = 1.0) -> float:
    """The share of printable numbers that a mean of `n` whole numbers cannot give: how much GRIM can notice.

    0 where the multiples of scale/n lie closer together than the printed digits (the test says nothing then).

    >>> round(float(grim_power(2, 30)), 2)
    0.7
    """
    return max(0.0, 1.0 - n / scale * 10.0**-decimals)


def exact_counts(table: pd.DataFrame, decimals: int, n, scale: float = 1.0) -> pd.DataFrame:
    """The whole-number counts behind a printed table, where its rounding leaves exactly one for each entry.

    `n` is one number or a mapping {column: n}. Returns an integer frame of the same shape. Raises AuditError
    naming the first entry for which no count, or more than one, is possible.

    >>> exact_counts(pd.DataFrame({"a": [0.33], "b": [0.5]}), 2, 12).shape
    (1, 2)
    """
    counts = pd.DataFrame(index=table.index, columns=table.columns, dtype=int)
    for column in table.columns:
        units = n[column] if isinstance(n, dict) else n
        first, last = possible_counts(table[column].to_numpy(), decimals, units, scale)
        wrong = np.flatnonzero(first != last)
        if len(wrong):
            row = wrong[0]
            found = last[row] - first[row] + 1
            several = "no count" if found < 1 else f"{found} counts"
            raise AuditError(
                f"{table.index[row]}, {column}: {table[column].iloc[row]} stands for {several} "
                f"of {units}; there should be exactly one"
            )
        counts[column] = first
    return counts


def consistent_sd(printed, decimals: int, total: int, n: int, step: float = 1.0, ddof: int = 1) -> bool:
    """GRIMMER: whether n multiples of `step` that sum to total·step can have this standard deviation.

    In units of `step` the values are whole numbers, so their sum of squares is whole and has the parity of
    `total`. Raises ValueError for n <= ddof.

    >>> consistent_sd(1.0, 2, 6, 3)
    True
    """
    if n <= ddof:
        raise ValueError(f"a standard deviation with ddof = {ddof} needs more than {ddof} values, got {n}")
    lo, hi = (max(0.0, bound / step) for bound in printed_range(printed, decimals))
    first, last = (bound**2 * (n - ddof) + total**2 / n for bound in (lo, hi))
    slack = SLACK * (1 + last)
    first, last = int(np.ceil(first - slack)), int(np.floor(last + slack))
    return (last >= first) and (last > first or first % 2 == total % 2)


def printed_mean(values, decimals) -> Printed:
    """The mean of printed numbers values[i]; its range follows from each one's rounding.

    >>> round(printed_mean([0.1, 0.2], 1).value, 2)
    0.15
    """
    lo, hi = printed_range(values, decimals)
    return Printed(*(float(np.mean(part)) for part in (np.asarray(values), lo, hi)))


def printed_difference(first, second, first_decimals: int, second_decimals: int) -> Printed:
    """first − second of two printed numbers.

    >>> [float(round(end, 3)) for end in printed_difference(0.5, 0.3, 1, 1)]
    [0.2, 0.1, 0.3]
    """
    (a_lo, a_hi), (b_lo, b_hi) = printed_range(first, first_decimals), printed_range(second, second_decimals)
    return Printed(float(first - second), float(a_lo - b_hi), float(a_hi - b_lo))


def printed_ratio(first, second, first_decimals: int, second_decimals: int, scale: float = 1.0) -> Printed:
    """scale·first/second of two positive printed numbers. Raises ValueError where the divisor may be 0.

    >>> round(printed_ratio(1.0, 2.0, 1, 1).value, 2)
    0.5
    """
    (a_lo, a_hi), (b_lo, b_hi) = printed_range(first, first_decimals), printed_range(second, second_decimals)
    if b_lo <= 0 or a_lo < 0:
        raise ValueError(f"the ratio needs positive numbers, got {first} / {second}")
    return Printed(*(float(scale * part) for part in (first / second, a_lo / b_hi, a_hi / b_lo)))


def printed_correlation(first, second, method: str = "spearman") -> Printed:
    """Rank correlation of two printed columns, and its range over all orders that equal numbers can hide.

    Numbers that print differently had the same order before rounding, so only printed ties are open: each
    group may have been tied, or in any order. Without printed ties the value is exact (lo = hi). `method` is
    "spearman" or "kendall" (tau-b). Raises ValueError for another method, fewer than two pairs, or more than
    MOST_ORDERINGS orders.

    >>> printed_correlation([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    Printed(value=0.5, lo=0.5, hi=0.5)
    """
    correlate = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}.get(method)
    if correlate is None:
        raise ValueError(f'method is {method!r}, should be "spearman" or "kendall"')
    columns = [np.asarray(column, dtype=float) for column in (first, second)]
    if len(columns[0]) != len(columns[1]) or len(columns[0]) < 2:
        raise ValueError("the columns must have the same length, at least two")
    orders = [_orders(column) for column in columns]
    if len(orders[0]) * len(orders[1]) > MOST_ORDERINGS:
        raise ValueError(f"printed ties hide more than {MOST_ORDERINGS} orders; the range is not computed")
    found = [float(correlate(a, b).statistic) for a, b in product(*orders)]
    return Printed(float(correlate(*columns).statistic), min(found), max(found))


def spearman_values(printed, decimals: int, n: int) -> np.ndarray:
    """The values of Spearman's rho that `n` untied ranks can have and that print as `printed`.

    rho = 1 − 6·D/(n³ − n), D the sum of squared rank differences, which is always even.

    >>> spearman_values(0.8, 1, 4).round(2)
    array([0.8])
    """
    rho = 1 - 6 * np.arange(0, (n**3 - n) // 3 + 1, 2) / (n**3 - n)
    return rho[agrees(rho, printed, decimals)]


def rank_moves(n: int, most: int) -> set[tuple[int, int]]:
    """All (D, moved) with D <= `most`: sum of squared rank differences, and ranks changed, of n items.

    Goes through permutations position by position, keeping only partial sums that stay within `most`.

    >>> sorted(rank_moves(3, 1))[:3]
    [(0, 0)]
    """
    states = {0: {(0, 0)}}
    for position in range(n):
        following = {}
        for taken, pairs in states.items():
            for rank in range(n):
                square = (rank - position) ** 2
                if taken >> rank & 1 or square > most:
                    continue
                grown = {(d + square, moved + (rank != position)) for d, moved in pairs if d + square <= most}
                if grown:
                    following.setdefault(taken | 1 << rank, set()).update(grown)
        states = following
    return states[(1 << n) - 1]


def spearman_null_exact(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(rho[i], probability[i]): exact distribution of Spearman's rho over all n! orders of n untied ranks.

    Values descend from 1. Raises ValueError outside 2 <= n <= 12, where the count over subsets stays small.

    >>> values, chances = spearman_null_exact(3)
    >>> float(round(chances.sum(), 6))
    1.0
    """
    if not 2 <= n <= 12:
        raise ValueError(f"n must be between 2 and 12, got {n}")
    largest = (n**3 - n) // 3
    counts = {0: np.zeros(largest + 1)}
    counts[0][0] = 1.0
    for position in range(n):
        following = {}
        for taken, ways in counts.items():
            for rank in range(n):
                if not taken >> rank & 1:
                    square = (rank - position) ** 2
                    target = following.setdefault(taken | 1 << rank, np.zeros(largest + 1))
                    target[square:] += ways[: largest + 1 - square]
        counts = following
    ways = counts[(1 << n) - 1]
    possible = np.flatnonzero(ways)
    return 1 - 6 * possible / (n**3 - n), ways[possible] / ways.sum()


def pooled_sd(means, sds, sizes, ddof: int = 0) -> float:
    """Standard deviation of the union of groups, from printed means[g], sds[g] (n − 1) and sizes[g].

    >>> round(pooled_sd([1, 3], [1, 1], [10, 10]), 3)
    1.378
    """
    means, sds = np.asarray(means, dtype=float), np.asarray(sds, dtype=float)
    sizes = np.broadcast_to(sizes, means.shape)
    centre = np.average(means, weights=sizes)
    squares = ((sizes - 1) * sds**2 + sizes * (means - centre) ** 2).sum()
    return float(np.sqrt(squares / (sizes.sum() - ddof)))


def normal_interval(mean: float, sd: float, n: int, confidence: float = 0.95) -> Printed:
    """mean ± z·sd/√n: what a percentile bootstrap of a mean of `n` values comes to when n is large.

    >>> [round(float(v), 2) for v in normal_interval(0.0, 1.0, 100)]
    [0.0, -0.2, 0.2]
    """
    half = stats.norm.ppf(0.5 + confidence / 2) * sd / np.sqrt(n)
    return Printed(float(mean), float(mean - half), float(mean + half))


def normal_rank_biserial(means, sds, other_means, other_sds) -> float:
    """Rank-biserial r of two pooled samples if every group were normal; positive: the other is higher.

    means[g], sds[g] describe equally large groups of the first sample, other_means[h], other_sds[h] of the
    second: r = mean over all (g, h) of 2·Φ((m_h − m_g)/√(s_g² + s_h²)) − 1.

    >>> round(float(normal_rank_biserial([1.0], [1.0], [0.0], [1.0])), 3)
    -0.52
    """
    means, sds, other_means, other_sds = (
        np.asarray(column, dtype=float) for column in (means, sds, other_means, other_sds)
    )
    gap = np.subtract.outer(other_means, means)
    spread = np.sqrt(np.add.outer(other_sds**2, sds**2))
    return float((2 * stats.norm.cdf(gap / spread) - 1).mean())


def rank_biserial_p(r: float, n_first: int, n_second: int) -> float:
    """Two-sided Mann-Whitney p value that belongs to a printed rank-biserial r, by normal approximation to U.

    Ties are left out of the variance, which makes p a little too large, never too small.

    >>> round(float(rank_biserial_p(0.5, 20, 20)), 3)
    0.007
    """
    error = np.sqrt((n_first + n_second + 1) / (3 * n_first * n_second))
    return float(2 * stats.norm.sf(abs(r) / error))


def detectable_rank_biserial(n_first: int, n_second: int, alpha: float, power: float) -> float:
    """Smallest |r| that a two-sided Mann-Whitney test detects with that power, by normal approximation.

    |r| = (z(1 − alpha/2) + z(power))·√((n₁ + n₂ + 1)/(3·n₁·n₂)), the null variance of U on the scale of r.

    >>> round(float(detectable_rank_biserial(30, 30, 0.05, 0.8)), 2)
    0.42
    """
    error = np.sqrt((n_first + n_second + 1) / (3 * n_first * n_second))
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)) * error)


def _orders(column: np.ndarray) -> list[np.ndarray]:
    """All columns of ranks that agree with a printed column: each printed tie tied, or split in any way."""
    _, code = np.unique(column, return_inverse=True)
    groups = [np.flatnonzero(code == value) for value in range(code.max() + 1)]
    options = [_weak_orders(len(group)) for group in groups]
    if np.prod([float(len(option)) for option in options]) > MOST_ORDERINGS:
        raise ValueError(f"printed ties hide more than {MOST_ORDERINGS} orders; the range is not computed")
    orders = []
    for choice in product(*options):
        ranks = np.empty(len(column))
        for level, (group, within) in enumerate(zip(groups, choice, strict=True)):
            ranks[group] = level * len(column) + np.asarray(within)
        orders.append(ranks)
    return orders


def _weak_orders(size: int) -> list[tuple]:
    """The ways to order `size` items with ties allowed, as tuples of levels (1, 3, 13, 75, ... of them)."""
    if size > 6:
        raise ValueError(f"{size} numbers print alike: too many hidden orders to go through")
    levels = product(range(size), repeat=size)
    return [order for order in levels if set(order) == set(range(len(set(order))))]
