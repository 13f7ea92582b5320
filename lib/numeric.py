"""Numerical ground that the estimator rooms share: ranks that know a tie when they see one, and chunks."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

# Two numbers closer than this (relative to the larger) are one number written twice: the same features summed
# in another order differ by about 1e-15, and no instrument in these studies resolves 1e-12.
TIE_RTOL = 1e-12

# Cells of the widest working array that one chunk of replicates may fill (8 MiB of float64). It bounds memory
# only: results are the same for every value.
CHUNK_CELLS = 1 << 20


def floats(values, *, finite: bool = False) -> np.ndarray:
    """`values` as floats, missing as NaN: pandas' NA (Int64, boolean, string) and None are taken as such.

    finite: raise ValueError for an infinite value, which no mean or resample can hold.

    >>> floats(pd.array([1, None, 3], dtype="Int64"))
    array([ 1., nan,  3.])
    """
    found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        found = np.where(pd.isna(found), np.nan, found) if found.dtype == object else found
    found = found.astype(float)
    if finite and np.isinf(found).any():
        raise ValueError("a value is infinite: it should be a finite number, or NaN where it is missing")
    return found


def near(first, second) -> np.ndarray:
    """Whether numbers are one number but for rounding: within TIE_RTOL of the larger. NaN is near nothing.

    >>> near([0.1 + 0.2, 1.0], [0.3, 1.1])
    array([ True, False])
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    scale = np.maximum(np.abs(first), np.abs(second))
    with np.errstate(invalid="ignore"):
        return (first == second) | ((np.abs(first - second) <= TIE_RTOL * scale) & np.isfinite(scale))


def levels(values) -> tuple[np.ndarray, np.ndarray]:
    """(levels, codes): the distinct values in rising order and which of them each value is, near ones as one.

    As numpy.unique with its inverse, for values without NaN.

    >>> levels([0.3, 1.0, 0.1 + 0.2])[1]
    array([0, 1, 0])
    """
    found, codes = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    opens = np.ones(len(found), dtype=bool)
    size = np.abs(found)
    if len(found) and np.isfinite(size[[0, -1]]).all():  # as `near`, of rising finite values
        opens[1:] = found[1:] - found[:-1] > TIE_RTOL * np.maximum(size[1:], size[:-1])
    else:
        opens[1:] = ~near(found[1:], found[:-1])
    return found[opens], (np.cumsum(opens) - 1)[codes].reshape(np.shape(values))


def chunk_sizes(total: int, width: int) -> Iterator[int]:
    """Split `total` replicates into chunks of at most CHUNK_CELLS // `width` (at least one each).

    >>> list(chunk_sizes(5, CHUNK_CELLS // 2))
    [2, 2, 1]
    """
    size = max(1, CHUNK_CELLS // max(1, width))
    for start in range(0, total, size):
        yield min(size, total - start)


def significant(values, digits: int):
    """`values` rounded to so many significant digits (0, NaN and infinities as they are), in the shape given.

    Whatever came out of sums whose order depends on the processor's kernels is rounded so as it leaves.

    >>> significant([1234567.8, -0.00012345], 3)
    array([ 1.23e+06, -1.23e-04])
    """
    found = np.asarray(values, dtype=float)
    usual = np.isfinite(found) & (found != 0)
    rounded = [float(f"{value:.{digits - 1}e}") for value in found[usual]]
    result = found.copy()
    result[usual] = rounded
    if hasattr(values, "columns"):
        return type(values)(result, index=values.index, columns=values.columns)
    return result


def check_replicates(B: int, rng) -> None:
    """Raise ValueError unless `B` is a positive whole number and `rng` a numpy Generator.

    >>> check_replicates(100, np.random.default_rng(1))
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    if isinstance(B, bool) or not isinstance(B, (int, np.integer)) or B < 1:
        raise ValueError(f"the number of replicates must be a whole number >= 1, got {B!r}")


def average_ranks(values) -> np.ndarray:
    """Ranks along the last axis, 1 = smallest, tied values sharing their average rank.

    values[..., item]; NaN (missing) is not ranked and stays NaN. Neighbours within TIE_RTOL tie.

    >>> average_ranks([3.0, 1.0, 3.0, np.nan])
    array([2.5, 1. , 2.5, nan])
    """
    return _ranks(values, average=True)


def minimum_ranks(values) -> np.ndarray:
    """As `average_ranks`, but tied values all take the lowest rank of their group (competition ranking).

    >>> minimum_ranks([3.0, 1.0, 3.0])
    array([2., 1., 2.])
    """
    return _ranks(values, average=False)


def _ranks(values, average: bool) -> np.ndarray:
    exact = np.asarray(values).dtype.kind in "iub"
    values = floats(values)
    if values.ndim == 0:
        raise ValueError("ranks need at least one axis")
    n = values.shape[-1]
    if n == 0:
        return values
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    low, high = ordered[..., :-1], ordered[..., 1:]
    tied = (high == low) if exact else near(low, high)
    position = np.broadcast_to(np.arange(n), values.shape)
    opens = np.ones(values.shape, dtype=bool)
    opens[..., 1:] = ~tied
    first = np.maximum.accumulate(np.where(opens, position, 0), axis=-1)
    closes = np.ones(values.shape, dtype=bool)
    closes[..., :-1] = ~tied
    last = np.where(closes, position, n - 1)[..., ::-1]
    last = np.minimum.accumulate(last, axis=-1)[..., ::-1]
    sorted_ranks = (first + last) / 2 + 1 if average else first + 1.0
    result = np.empty(values.shape)
    np.put_along_axis(result, order, sorted_ranks, axis=-1)
    result[np.isnan(values)] = np.nan
    return result


def centred_ranks(values) -> np.ndarray:
    """Twice the average rank less its mean, missing as 0: whole numbers, so that sums of products are exact.

    Exact sums make equal correlations equal to the last bit, whatever order they were computed in; a rho can
    then be compared with a permutation null that holds the same rho.

    >>> centred_ranks([3.0, 1.0, 3.0, np.nan])
    array([ 1., -2.,  1.,  0.])
    """
    doubled = 2 * average_ranks(values)
    observed = ~np.isnan(doubled)
    return np.where(observed, doubled - (observed.sum(axis=-1, keepdims=True) + 1), 0.0)
