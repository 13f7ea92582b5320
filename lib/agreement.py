"""Agreement between raters: Krippendorff's alpha, Cohen's kappa, and the bands that name them.

Sources: Krippendorff (2011), Computing Krippendorff's alpha-reliability, with the metric differences of its
section on levels; Cohen (1960, 1968); Landis and Koch (1977) as banded in Table 7 of the AlienBench paper.

Alpha is 1 - observed / expected disagreement. Both are sums over units (observed) or over pooled values
(expected), so units with the same ratings are interchangeable: the sample is reduced to its distinct patterns
of ratings once, and each bootstrap replicate is a vector of counts over the patterns.
"""

import numpy as np

from lib.numeric import check_replicates, chunk_sizes, floats, levels
from lib.resampling import Interval, bootstrap_counts, percentile_interval

LEVELS = ("nominal", "ordinal", "interval", "ratio")
EDGE_SLACK = 1e-12  # 1 - 0.6 is 0.4, whatever binary fractions say
BANDS = ((0.80, "Excellent"), (0.60, "Good"), (0.40, "Moderate"), (0.20, "Fair"), (-np.inf, "Poor"))


def krippendorff_alpha(ratings, level: str = "nominal") -> float | np.ndarray:
    """Krippendorff's alpha of ratings[..., rater, unit]; one value, or an array over the leading axes.

    Missing ratings are NaN; a unit with fewer than two ratings pairs with nothing and is left out. Where
    alpha is undefined the result is NaN: no unit holds two ratings, or all pairable ratings are one value
    (nothing could have disagreed). level: "nominal", "ordinal", "interval" or "ratio" (values >= 0). Raises
    ValueError for fewer than two axes, an unknown level, or a negative value at ratio level.

    >>> float(round(krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, np.nan]]), 3))
    1.0
    >>> float(round(krippendorff_alpha([[1, 2, 3, 3], [1, 2, 4, 3]], "interval"), 3))
    0.889
    """
    alphas = _over_batch(ratings, level, lambda sample: sample.alpha(sample.sizes[np.newaxis]))
    return _plain(alphas[..., 0])


def krippendorff_alpha_interval(
    ratings, level: str, *, B: int, rng: np.random.Generator, confidence: float = 0.95
) -> Interval:
    """Alpha with its percentile bootstrap interval: units are resampled, their raters kept together.

    ratings[..., rater, unit] as in `krippendorff_alpha`; with leading axes the fields are arrays, and each
    entry has draws of its own. Replicates in which alpha is undefined are left out of the quantiles. Raises
    ValueError as `krippendorff_alpha`, and for a bad B, rng or confidence.

    >>> found = krippendorff_alpha_interval(
    ...     [[0, 1] * 20, [0, 1] * 19 + [1, 0]], "nominal", B=200, rng=np.random.default_rng(1)
    ... )
    >>> bool(found.lo < found.estimate < found.hi)
    True
    """
    check_replicates(B, rng)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")

    def interval(sample):
        estimate = sample.alpha(sample.sizes[np.newaxis])[0]
        if np.isnan(estimate):
            return np.full(3, np.nan)
        parts = [
            sample.alpha(bootstrap_counts(sample.sizes, rows, rng)) for rows in chunk_sizes(B, sample.width)
        ]
        return percentile_interval(estimate, np.concatenate(parts), confidence)

    fields = _over_batch(ratings, level, interval)
    return Interval(*(_plain(fields[..., column]) for column in range(3)))


def cohen_kappa(first, second, weights: str | None = None) -> float:
    """Cohen's kappa of two raters over units: first[unit], second[unit], NaN missing (the pair is left out).

    weights: None, or "linear" / "quadratic" for disagreement |a - b| or (a - b)**2 between the ratings
    themselves; a category of the scale that nobody used thus keeps its distance.
    NaN where it is undefined: no complete pair, or both raters give one and the same value throughout.
    Raises ValueError for samples of different shapes or unknown weights.

    >>> cohen_kappa([0, 0, 1, 1], [0, 0, 1, 0])
    0.5
    >>> round(cohen_kappa([1, 2, 3], [1, 2, 5], weights="quadratic"), 3)
    0.667
    """
    first, second = floats(first), floats(second)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"kappa compares two raters on one set of units: {first.shape}, {second.shape}")
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"unknown weights {weights!r}: use None, 'linear' or 'quadratic'")
    complete = ~(np.isnan(first) | np.isnan(second))
    first, second = first[complete], second[complete]
    if not len(first):
        return np.nan
    values, codes = levels(np.concatenate([first, second]))
    table = np.zeros((len(values), len(values)))
    np.add.at(table, (codes[: len(first)], codes[len(first) :]), 1)
    distance = np.abs(values[:, np.newaxis] - values)
    cost = {None: (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}[weights]
    expected = (cost * np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / len(first)
    return float(1 - (cost * table).sum() / expected) if expected > 0 else np.nan


def landis_koch(value: float) -> str:
    """The band of an agreement coefficient: Poor, Fair, Moderate, Good or Excellent; "Undefined" for NaN.

    Lower bounds 0.20, 0.40, 0.60 and 0.80 belong to the upper band, as in the AlienBench paper's Table 7
    (Landis and Koch's own words for the same bands are slight, fair, moderate, substantial and almost
    perfect). A value that falls short of a bound by rounding error alone (1e-12) reaches it.

    >>> landis_koch(0.72), landis_koch(1 - 0.6)
    ('Good', 'Moderate')
    """
    if np.isnan(value):
        return "Undefined"
    return next(name for bound, name in BANDS if value >= bound - EDGE_SLACK)


def _plain(values):
    return float(values) if values.ndim == 0 else values


def _over_batch(ratings, level, estimate) -> np.ndarray:
    """Stack estimate(patterns) over the leading axes: result[..., field]."""
    ratings = floats(ratings, finite=True)
    if ratings.ndim < 2:
        raise ValueError(f"ratings need the axes [..., rater, unit], got shape {ratings.shape}")
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}: use one of {', '.join(LEVELS)}")
    if level == "ratio" and (ratings < 0).any():
        raise ValueError("the ratio level needs ratings >= 0")
    batch = ratings.shape[:-2]
    results = [np.atleast_1d(estimate(_Patterns(ratings[index], level))) for index in np.ndindex(batch)]
    return np.reshape(results, batch + (-1,))


class _Patterns:
    """The distinct patterns of ratings in ratings[rater, unit], and alpha for any counts of them.

    sizes[pattern] units show each pattern; codes[pattern, slot] index the sorted `values`, -1 for missing.
    """

    def __init__(self, ratings, level):
        self.level = level
        observed = ~np.isnan(ratings)
        ratings, observed = ratings[:, observed.sum(axis=0) >= 2], observed[:, observed.sum(axis=0) >= 2]
        self.values, found = levels(ratings[observed])
        codes = np.full(ratings.shape, -1)
        codes[observed] = found
        codes = np.sort(codes, axis=0).T
        self.codes, self.sizes = codes, np.zeros(0, dtype=np.int64)
        if codes.size:
            self.codes, self.sizes = np.unique(codes, axis=0, return_counts=True)
        present = self.codes >= 0
        self.raters = present.sum(axis=1)
        rows = np.nonzero(present)[0]
        self.counts = np.zeros((len(self.codes), len(self.values)))  # counts[pattern, value]
        np.add.at(self.counts, (rows, self.codes[present]), 1)
        self.width = max(1, self.codes.size, self.counts.shape[1])
        if level == "ratio":
            low, high = self.values[:, np.newaxis], self.values
            total = low + high
            self.difference = np.divide(low - high, total, out=np.zeros_like(total), where=total > 0) ** 2
        if len(self.values):
            # One of the values as origin: whole-number ratings keep exact sums, and large ones their digits.
            self.positions = self.values - self.values[len(self.values) // 2]

    def alpha(self, weights) -> np.ndarray:
        """alpha[b] for weights[b, pattern], the number of units with each pattern."""
        if len(self.values) < 2:
            return np.full(len(weights), np.nan)
        totals = weights @ self.counts  # totals[b, value]: whole numbers, exact in any order of summation
        n = totals.sum(axis=1)
        observed, expected = getattr(self, f"_{self.level}")(weights, totals, n)
        defined = (totals > 0).sum(axis=1) > 1
        ratio = np.divide(observed, expected, out=np.full(len(weights), np.nan), where=defined)
        return 1 - (n - 1) * ratio

    # Each level gives observed[b], the units' summed squared differences over ordered pairs of raters,
    # divided by the unit's raters less one, and expected[b], the same sum over all ordered pairs of pooled
    # values. Row-wise np.add.reduce, not a matrix product, where terms are fractions: a row's sum must not
    # depend on the chunk it stands in.

    def _nominal(self, weights, totals, n):
        within = (self.raters**2 - (self.counts**2).sum(axis=1)) / (self.raters - 1)
        return np.add.reduce(weights * within, axis=1), n**2 - (totals**2).sum(axis=1)

    def _interval(self, weights, totals, n):
        first, second = self.counts @ self.positions, self.counts @ self.positions**2
        within = 2 * (self.raters * second - first**2) / (self.raters - 1)
        squares = np.add.reduce(totals * self.positions**2, axis=1)
        expected = 2 * (n * squares - np.add.reduce(totals * self.positions, axis=1) ** 2)
        return np.add.reduce(weights * within, axis=1), expected

    def _ordinal(self, weights, totals, n):
        # The ordinal difference of c and k counts the values between them, with half of both ends: the
        # distance of their mid-ranks in the pooled sample. So ordinal alpha is interval alpha of mid-ranks,
        # which each replicate has its own of. Doubled, they are whole numbers; the factor cancels in the
        # ratio.
        middles = 2 * np.cumsum(totals, axis=1) - totals - n[:, np.newaxis]
        placed = np.where(self.codes >= 0, middles[:, self.codes], 0.0)  # [b, pattern, slot]
        sums, squares = placed.sum(axis=2), (placed**2).sum(axis=2)
        within = 2 * (self.raters * squares - sums**2) / (self.raters - 1)
        expected = 2 * (n * (totals * middles**2).sum(axis=1) - (totals * middles).sum(axis=1) ** 2)
        return np.add.reduce(weights * within, axis=1), expected

    def _ratio(self, weights, totals, n):
        within = ((self.counts @ self.difference) * self.counts).sum(axis=1) / (self.raters - 1)
        expected = np.zeros(len(totals))
        for value, row in enumerate(self.difference):
            expected += totals[:, value] * np.add.reduce(totals * row, axis=1)
        return np.add.reduce(weights * within, axis=1), expected
