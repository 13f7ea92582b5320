"""Matrices of rank correlations: coefficients, p values, control of multiple comparisons, and what rater
noise hides.

Sources: Spearman (1904) for rho and for disattenuation; Kendall (1945) for tau-b; Holm (1979); Benjamini and
Hochberg (1995); Shrout and Fleiss (1979), case 1, with Donner's (1986) mean group size for the reliability of
a mean of ratings; Fisher (1921) for the interval of r.
"""

import math
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.numeric import average_ranks, centred_ranks, floats
from lib.ranks import bonferroni, checked_p, holm, kendall_tau_b, spearman
from lib.resampling import bootstrap_weights, percentile_interval

RELIABILITY_FLOOR = 0.2  # below it a correlation cannot be freed of noise
NO_RELIABILITY = 1e-6  # below it a reliability is a rounding error
SLACK = 1e-9  # a whole number missed by a rounding error is that number
EXACT_UNITS = 8  # up to so many units the p of rho is that of all their orders
METHODS = ("spearman", "kendall")
ADJUSTMENTS = ("none", "bonferroni", "holm", "fdr_bh")
MARKS = ((0.001, "‡"), (0.01, "†"), (0.05, "*"))


class Correlations(NamedTuple):
    """Coefficients, p values and numbers of pairs, each a frame [first variable, second variable]."""

    coefficient: pd.DataFrame
    p: pd.DataFrame
    n: pd.DataFrame


class Reliability(NamedTuple):
    """One-way random effects of ratings within units: ICC of a single rating and of a unit's mean,
    variances.
    """

    single: float
    mean: float
    between: float
    within: float


def correlation_matrix(first: pd.DataFrame, second: pd.DataFrame, method: str = "spearman") -> Correlations:
    """Correlate every column of `first` with every column of `second` over the units both have (same index).

    Pairs with a missing member are left out. A constant column gives no correlation: NaN, never 0. p is two-sided:
    for rho exact (all orders of the ranks) with at most 8 units or in perfect order, else by the t distribution
    with n - 2 degrees of freedom; for tau-b as scipy.stats.kendalltau. Raises ValueError for an unknown method or
    frames without a unit in common.

    >>> first, second = pd.DataFrame({"a": [1, 2, 3, 4]}), pd.DataFrame({"b": [1, 3, 2, 4]})
    >>> float(correlation_matrix(first, second).coefficient.at["a", "b"])
    0.8
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: use one of {', '.join(METHODS)}")
    units = first.index.intersection(second.index, sort=False)
    if not len(units):
        raise ValueError("the two tables have no unit in common: their indexes should hold the same ids")
    tables = [pd.DataFrame(np.nan, index=first.columns, columns=second.columns) for _ in range(3)]
    for row in first.columns:
        for column in second.columns:
            found = correlate(first.loc[units, row], second.loc[units, column], method)
            for table, value in zip(tables, found, strict=True):
                table.at[row, column] = value
    return Correlations(tables[0], tables[1], tables[2].astype(int))


def correlate(first, second, method: str = "spearman") -> tuple[float, float, int]:
    """(coefficient, two-sided p, pairs) of first[unit] and second[unit]; NaN, NaN where either is
    constant.

    >>> value, p, n = correlate([1, 2, 3], [4, 5, 9])
    >>> value, round(p, 3), n
    (1.0, 0.333, 3)
    """
    first, second = floats(first), floats(second)
    seen = ~(np.isnan(first) | np.isnan(second))
    first, second, n = first[seen], second[seen], int(seen.sum())
    if n < 3:
        return np.nan, np.nan, n
    value = spearman(first, second) if method == "spearman" else kendall_tau_b(first, second)
    if np.isnan(value):
        return np.nan, np.nan, n
    if method == "kendall":
        return value, float(stats.kendalltau(average_ranks(first), average_ranks(second)).pvalue), n
    if n <= EXACT_UNITS or abs(value) >= 1:
        return value, _exact_p(first, second, value), n
    t = value * np.sqrt((n - 2) / ((1 - value) * (1 + value)))
    return value, float(2 * stats.t.sf(abs(t), n - 2)), n


def _exact_p(first, second, value) -> float:
    """The share of orders of `second` with a |rho| at least as large; ranks with their ties."""
    n = len(first)
    a, b = centred_ranks(first), centred_ranks(second)
    if n <= EXACT_UNITS:
        sums = np.abs(b[np.array(list(permutations(range(n))))] @ a)
        return float(np.mean(sums >= abs(a @ b)))  # whole numbers: exact
    # in perfect order: the orders that only exchange equal ranks, both ways if the ties are the same from either end
    alike = math.prod(math.factorial(count) for count in np.unique(b, return_counts=True)[1])
    return min(1.0, (1 + np.array_equal(np.sort(b), np.sort(-b))) * alike / math.factorial(n))


def benjamini_hochberg(p) -> np.ndarray:
    """Adjusted p values that control the false discovery rate; missing (NaN) ones stay missing and are not
    counted. Raises ValueError for a p value outside [0, 1].

    >>> benjamini_hochberg([0.01, 0.02, 0.03, 0.5])
    array([0.04, 0.04, 0.04, 0.5 ])
    """
    p = checked_p(p)
    seen = p[~np.isnan(p)]
    order = np.argsort(-seen, kind="stable")
    scaled = seen[order] * len(seen) / np.arange(len(seen), 0, -1)
    adjusted = np.empty(len(seen))
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled))
    result = np.full(p.shape, np.nan)
    result[~np.isnan(p)] = adjusted
    return result


def adjust(p: pd.DataFrame, method: str = "holm") -> pd.DataFrame:
    """The p values of a whole matrix (one family), adjusted for their number: none, bonferroni, holm or
    fdr_bh.

    In a matrix of a table with itself the diagonal is not a test and each pair stands twice: pass
    `off_diagonal(p)`.

    >>> adjust(pd.DataFrame([[0.01, 0.02], [0.03, 0.5]]), "holm").to_numpy().round(3)
    array([[0.04, 0.06],
           [0.06, 0.5 ]])
    """
    if method not in ADJUSTMENTS:
        raise ValueError(f"unknown adjustment {method!r}: use one of {', '.join(ADJUSTMENTS)}")
    if method == "none":
        return p.copy()
    function = {"bonferroni": bonferroni, "holm": holm, "fdr_bh": benjamini_hochberg}[method]
    values = p.to_numpy(dtype=float)
    return pd.DataFrame(function(values.ravel()).reshape(values.shape), index=p.index, columns=p.columns)


def off_diagonal(p: pd.DataFrame) -> pd.DataFrame:
    """A square matrix with only its lower triangle: each pair once, the diagonal and the upper half
    missing.

    >>> off_diagonal(pd.DataFrame([[1.0, 0.2], [0.2, 1.0]])).to_numpy()
    array([[nan, nan],
           [0.2, nan]])
    """
    keep = np.tril(np.ones(p.shape, dtype=bool), k=-1)
    return p.where(pd.DataFrame(keep, index=p.index, columns=p.columns))


def marks(p: pd.DataFrame) -> pd.DataFrame:
    """Significance marks as the Stories paper prints them: * p < .05, † p < .01, ‡ p < .001, else nothing.

    >>> marks(pd.DataFrame([[0.04, 0.009, 0.0005, 0.3]])).to_numpy().tolist()
    [['*', '†', '‡', '']]
    """

    def mark(value):
        return next((sign for bound, sign in MARKS if value < bound), "")

    return p.map(mark)


def rater_reliability(groups) -> Reliability:
    """How reliable are means over few and unequally many ratings: ICC(1, 1) and ICC(1, k) of
    groups[unit][rating].

    Variances by one-way analysis of variance; k of ICC(1, k) is the harmonic mean of the numbers of ratings, so
    that `mean` is the share of the variance between observed unit means that is not noise. A missing rating is left
    out, and with it a unit that keeps fewer than two, as alpha does; a unit that was rated once says nothing about
    noise, but counts for the spread between units. A negative between-variance is 0. Raises ValueError where no
    unit has two ratings.

    >>> round(rater_reliability([[1, 2], [4, 5], [2, 2]]).single, 3)
    0.879
    """
    sizes, sums, squares = _rated(groups)
    return _reliability(sizes, sums, squares, np.ones((1, len(sizes))))[0]


def reliability_interval(groups, *, B: int, rng: np.random.Generator, confidence: float = 0.95):
    """{"single", "mean"}: percentile intervals of the two reliabilities; units are resampled with their
    ratings.

    >>> groups = [[k % 5, k % 5 + k % 2] for k in range(40)]
    >>> found = reliability_interval(groups, B=200, rng=np.random.default_rng(1))["mean"]
    >>> bool(found.lo < found.estimate < found.hi)
    True
    """
    sizes, sums, squares = _rated(groups)
    estimate = _reliability(sizes, sums, squares, np.ones((1, len(sizes))))[0]
    single, mean = _components(sizes, sums, squares, bootstrap_weights(len(sizes), B, rng))[:2]
    return {
        "single": percentile_interval(estimate.single, single, confidence),
        "mean": percentile_interval(estimate.mean, mean, confidence),
    }


def disattenuated(coefficient, first_reliability=1.0, second_reliability=1.0):
    """What a correlation would be without measurement error: coefficient / sqrt(product of the
    reliabilities).

    Not estimable, NaN, where a reliability is below RELIABILITY_FLOOR (0.2): the formula divides by its root, and an
    estimate so near to 0 has a relative error that swamps the quotient. Values beyond 1 are given as they are: they
    say that chance, or a reliability too low, is at work. Works on numbers, arrays and frames.

    >>> float(round(disattenuated(0.29, 0.4), 2)), float(disattenuated(0.19, 0.007))
    (0.46, nan)
    """
    first, second = np.asarray(first_reliability, dtype=float), np.asarray(second_reliability, dtype=float)
    known = (first >= RELIABILITY_FLOOR) & (second >= RELIABILITY_FLOOR)
    return coefficient / np.sqrt(np.where(known, first * second, np.nan))


def spearman_brown(single, k):
    """The reliability of a mean of k ratings, from that of a single one: k r / (1 + (k - 1) r) (Spearman 1910, Brown
    1910). k may be a fraction: 1 / k takes the step back. Works on numbers, arrays and frames.

    >>> round(spearman_brown(0.62, 2), 3), round(spearman_brown(0.7654, 1 / 2), 2)
    (0.765, 0.62)
    """
    return k * single / (1 + (k - 1) * single)


def ratings_needed(single, wanted: float = 0.8):
    """How many ratings a unit's mean needs for a reliability of `wanted`: Spearman and Brown's rule solved for k, a whole
    number; NaN where a single rating has none. Works on numbers, arrays and frames.

    >>> float(ratings_needed(0.25))
    12.0
    """
    known = np.where(np.asarray(single, dtype=float) > NO_RELIABILITY, single, np.nan)
    return np.ceil(wanted / (1 - wanted) * (1 - known) / known - SLACK)


def fisher_interval(r, n: int, confidence: float = 0.95) -> tuple:
    """(lo, hi) of Pearson's r of n pairs by Fisher's z: tanh(atanh r -+ z / sqrt(n - 3)), r a number or an array.

    Made for the bivariate normal distribution. Raises ValueError for fewer than four pairs.

    >>> [float(round(bound, 2)) for bound in fisher_interval(0.98, 12)]
    [0.93, 0.99]
    """
    if n < 4:
        raise ValueError(f"Fisher's z needs at least four pairs, not {n}")
    half = stats.norm.ppf((1 + confidence) / 2) / np.sqrt(n - 3)
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    return np.tanh(z - half), np.tanh(z + half)


def ceiling(reliability) -> float | np.ndarray:
    """The correlation that a perfect measure of the truth would reach with noisy scores: sqrt(their
    reliability).

    >>> round(float(ceiling(0.4)), 2)
    0.63
    """
    return np.sqrt(np.clip(np.asarray(reliability, dtype=float), 0.0, None))[()]


def _rated(groups):
    """(sizes, sums, sums of squares) of each unit's ratings, missing ones left out."""
    groups = [np.asarray(group).ravel() for group in groups]
    if not groups:
        return (np.zeros(0),) * 3
    asked = np.array([len(group) for group in groups])
    unit, values = np.repeat(np.arange(len(groups)), asked), floats(np.concatenate(groups), finite=True)
    seen = ~np.isnan(values)
    unit, values = unit[seen], values[seen]
    sizes, sums, squares = (
        np.bincount(unit, part, len(groups)) for part in (np.ones(len(values)), values, values**2)
    )
    kept = (sizes >= 2) | ((sizes > 0) & (sizes == asked))
    return sizes[kept], sums[kept], squares[kept]


def _reliability(sizes, sums, squares, weights) -> list[Reliability]:
    if not (sizes >= 2).any():
        raise ValueError("no unit has two ratings: agreement between raters cannot be estimated")
    return [
        Reliability(*map(float, values))
        for values in zip(*_components(sizes, sums, squares, weights), strict=True)
    ]


def _components(sizes, sums, squares, weights):
    """(single, mean, between, within), each [replicate], from weights[replicate, unit]: how often a unit is
    drawn.
    """
    units = weights.sum(axis=1)
    total = weights @ sizes
    grand = weights @ sums / total
    between_squares = weights @ (sums**2 / sizes) - total * grand**2
    within_squares = weights @ (squares - sums**2 / sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = within_squares / (total - units)
        typical = (total - weights @ sizes**2 / total) / (units - 1)
        between = np.maximum(0.0, (between_squares / (units - 1) - within) / typical)
        harmonic = units / (weights @ (1 / sizes))
        single = between / (between + within)
        mean = between / (between + within / harmonic)
    return single, mean, between, within
