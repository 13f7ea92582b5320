"""The interval of a mean, whether its units are few or many.

Source: Student (1908), with the clusters' residuals for a standard error as in Liang and Zeger (1986) and n / (n - 1)
as in MacKinnon and White (1985); Efron and Tibshirani (1993), chapter 13, for the percentile bootstrap. The latter
takes the spread of few units for less than it is (its variance is (n - 1) / n of theirs) and knows no Student's
factor: of 9 clusters or 12 skewed units its 95 % interval holds the mean in 87 to 89 % of samples, Student's in 91 to
94 %. With 200 units both agree.
"""

import numpy as np
from scipy import stats

from lib.numeric import check_replicates, floats
from lib.resampling import Interval, bootstrap

FEW = 200  # units (clusters) below which Student's t takes the place of resampling


def mean_interval(
    values, *, B: int, rng: np.random.Generator, confidence: float = 0.95, clusters=None
) -> Interval:
    """The mean over units of values[..., unit], missing (NaN) left out row by row, with its interval.

    clusters[unit]: labels of units that belong together and count as one draw. Below 200 units (clusters) the interval
    is Student's, from 200 on the percentile bootstrap's. One unit has a mean and no interval (NaN). Raises
    ValueError for no units, labels of another length, an infinite value, a bad B, rng or confidence.

    >>> found = mean_interval([1.0, 2.0, 3.0], B=100, rng=np.random.default_rng(1))
    >>> round(found.lo, 2), found.estimate, round(found.hi, 2)
    (-0.48, 2.0, 4.48)
    """
    check_replicates(B, rng)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    values = floats(values, finite=True)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"nothing to average: values[..., unit] has shape {values.shape}")
    labels = np.arange(values.shape[-1]) if clusters is None else np.asarray(clusters)
    if labels.shape != values.shape[-1:]:
        raise ValueError(f"clusters must label each of {values.shape[-1]} units, got shape {labels.shape}")
    if not np.isnan(values).any() and len(np.unique(labels)) >= FEW:
        return bootstrap(values, B=B, rng=rng, confidence=confidence, clusters=clusters)
    rows = values.reshape(-1, values.shape[-1])
    found = np.array([_of_row(row, labels, B, rng, confidence) for row in rows])
    shape = values.shape[:-1]
    return Interval(*(part.reshape(shape) if shape else float(part[0]) for part in found.T))


def _of_row(row, labels, B, rng, confidence):
    seen = ~np.isnan(row)
    if not seen.any():
        return (np.nan,) * 3
    values, codes = row[seen], np.unique(labels[seen], return_inverse=True)[1]
    sizes, mean = np.bincount(codes), values.mean()
    n = len(sizes)
    if n >= FEW:
        return bootstrap(values, B=B, rng=rng, confidence=confidence, clusters=codes)
    if n == 1:
        return mean, np.nan, np.nan
    residuals = np.bincount(codes, values) - mean * sizes
    error = np.sqrt(n / (n - 1) * (residuals**2).sum()) / sizes.sum()
    reach = stats.t.ppf(0.5 + confidence / 2, n - 1) * error
    return mean, mean - reach, mean + reach
