"""Shares and spreads: Wilson intervals, median and quartiles, spread within repeated pairs, self-consistency."""

import itertools

import numpy as np
import pandas as pd
from scipy import stats


def wilson_interval(successes, n, confidence: float = 0.95):
    """Score interval of a proportion (Wilson 1927): (lo, hi), in the shape `successes` and `n` broadcast to.

    Unlike the Wald interval it stays in [0, 1] and has width where all or none succeed. NaN where n is 0.
    Raises ValueError for successes outside 0 ... n and a confidence outside (0, 1).

    >>> lo, hi = wilson_interval(3, 10)
    >>> float(round(lo, 3)), float(round(hi, 3))
    (0.108, 0.603)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    successes, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(n, float))
    if (successes < 0).any() or (successes > n).any():
        raise ValueError("successes should lie between 0 and n")
    z = stats.norm.ppf(0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = successes / n
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # none or all successes: the bound is exactly 0 or 1, which rounding would miss by a hair
    lo = np.where(successes == 0, np.where(n > 0, 0.0, np.nan), centre - half)
    hi = np.where(successes == n, np.where(n > 0, 1.0, np.nan), centre + half)
    return lo[()], hi[()]


def median_iqr(values) -> tuple[float, float, float]:
    """(median, first quartile, third quartile), linear interpolation; missing values left out, NaN for none.

    >>> median_iqr([1, 2, 3, 4, np.nan])
    (2.5, 1.75, 3.25)
    """
    kept = np.asarray(values, float)
    kept = kept[~np.isnan(kept)]
    if not kept.size:
        return (np.nan,) * 3
    q1, median, q3 = np.quantile(kept, [0.25, 0.5, 0.75])
    return float(median), float(q1), float(q3)


def within_pair_sd(scores) -> np.ndarray:
    """Sample standard deviation over repeats of each pair: scores[pair, repeat] -> sd[pair].

    Missing repeats are left out; NaN for a pair with fewer than two.

    >>> within_pair_sd([[1, 3, np.nan], [2, np.nan, np.nan]]).round(3)
    array([1.414,   nan])
    """
    scores = np.atleast_2d(np.asarray(scores, float))
    count = (~np.isnan(scores)).sum(axis=1)
    mean = np.divide(np.nansum(scores, axis=1), count, out=np.full(len(scores), np.nan), where=count > 0)
    squares = np.nansum((scores - mean[:, None]) ** 2, axis=1)
    return np.sqrt(np.divide(squares, count - 1, out=np.full(len(scores), np.nan), where=count > 1))


def paired_deltas(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Differences of two conditions: table columns item, condition, value -> item, first, second, delta
    (`second` minus `first`), items that lack one of the two left out.

    Raises ValueError for an item that has a condition twice.

    >>> table = pd.DataFrame({"item": [1, 1], "condition": ["a", "b"], "value": [2.0, 5.0]})
    >>> paired_deltas(table, "a", "b")["delta"].tolist()
    [3.0]
    """
    chosen = table[table["condition"].isin([first, second])]
    twice = chosen.duplicated(["item", "condition"])
    if twice.any():
        row = chosen[twice].iloc[0]
        raise ValueError(f"item {row['item']!r} has the condition {row['condition']!r} twice")
    wide = chosen.pivot(index="item", columns="condition", values="value")
    wide = wide.reindex(columns=[first, second]).dropna()
    wide.columns.name = None
    return wide.assign(delta=wide[second] - wide[first]).reset_index()


def self_consistency(items, agreement) -> float:
    """Mean of a symmetric `agreement(a, b)` over all unordered pairs of `items`; NaN for fewer than two.

    >>> self_consistency([1, 1, 2], lambda a, b: float(a == b))
    0.3333333333333333
    """
    scores = [agreement(a, b) for a, b in itertools.combinations(items, 2)]
    return float(np.mean(scores)) if scores else np.nan
