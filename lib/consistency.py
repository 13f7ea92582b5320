"""Anchor sweep: how stable a judge's ordering stays when the reference it is told about is re-pinned.

Source: The Metanym Game, section 3.3 and Appendix A.3 (A10, A11). `scores[anchor, judge, unit]` holds a
judge's scores of the same units at several anchor values, NaN where a score is missing or the unit is the
judge's own. Pearson's correlation ignores a common shift or stretch, so only a reordering lowers the value.
"""

from itertools import combinations

import numpy as np

FLAT = 1e-9  # a variance below this share of the mean square is a constant vector's rounding


class ConsistencyError(ValueError):
    """A sweep from which nothing can be read; the message says what is missing."""


def sweep_consistency(scores) -> np.ndarray:
    """Mean Pearson correlation over the anchor pairs at which both vectors vary (A10): [judge].

    Missing scores are dropped pair by pair. NaN for a judge with no such pair.
    Raises ConsistencyError unless scores has the axes [anchor, judge, unit] with two anchors or more.

    >>> sweep_consistency([[[1, 2, 3]], [[2, 4, 6]]]).round(3)
    array([1.])
    """
    scores = np.asarray(scores, dtype=float)
    n_units = scores.shape[-1] if scores.ndim == 3 else 0
    moments = pair_moments(scores, np.arange(n_units), n_units)
    return consistency_from_moments(moments, np.ones((1, n_units)))[0]


def collapse(scores) -> np.ndarray:
    """One value per unit from several axes' scores (A11): the mean over the last axis, missing left out.

    A unit with no score on any axis is NaN.

    >>> collapse([[1, 3], [np.nan, 4], [np.nan, np.nan]])
    array([ 2.,  4., nan])
    """
    scores = np.asarray(scores, dtype=float)
    present = (~np.isnan(scores)).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(present > 0, np.nansum(scores, axis=-1) / np.maximum(present, 1), np.nan)


def pair_moments(scores, atom_of, n_atoms: int, weights=None) -> np.ndarray:
    """Sums per atom, judge and anchor pair, enough for the correlation of any resample of atoms.

    scores[anchor, judge, unit], atom_of[unit], weights[unit] (default 1) -> moments[atom, judge, pair, 6]
    with the weighted sums of 1, x, y, xx, yy and xy over the atom's units that both anchors scored; pairs in
    the order of itertools.combinations. Raises ConsistencyError as `sweep_consistency`.

    >>> pair_moments([[[1, 2, 3]], [[2, 4, 6]]], [0, 0, 1], 2)[:, 0, 0, 0]
    array([2., 1.])
    """
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 3 or len(scores) < 2:
        raise ConsistencyError(
            "scores should have the axes [anchor, judge, unit] with at least two anchors, "
            f"not shape {scores.shape}"
        )
    first, second = (np.array(side) for side in zip(*combinations(range(len(scores)), 2)))
    # sums of squares of centred scores keep their digits; a constant taken from both vectors changes no
    # correlation
    middle = np.nanmean(scores) if np.isfinite(scores).any() else 0.0
    # and so does a common stretch; a power of two changes no digit
    reach = np.nanmax(np.abs(scores - middle)) if np.isfinite(scores).any() else 0.0
    flat = reach <= 1e-12 * abs(middle)
    unit = 1.0 if flat else 2.0 ** np.floor(np.log2(reach))
    x, y = (scores[first] - middle) / unit, (scores[second] - middle) / unit
    x, y = (np.where(np.isnan(side), np.nan, 0.0) if flat else side for side in (x, y))
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = np.where(both, x, 0.0), np.where(both, y, 0.0)
    terms = np.stack([both.astype(float), x, y, x * x, y * y, x * y])
    member = (np.asarray(atom_of)[:, None] == np.arange(n_atoms)).astype(float)
    member *= 1.0 if weights is None else np.asarray(weights, dtype=float)[:, None]
    return np.einsum("mpju,ua->ajpm", terms, member, optimize=True)


def consistency_from_moments(moments, counts) -> np.ndarray:
    """Consistency of every resample at once: moments[atom, judge, pair, 6], counts[b, atom] -> [b, judge].

    >>> moments = pair_moments([[[1, 2, 3]], [[2, 4, 6]]], [0, 1, 2], 3)
    >>> consistency_from_moments(moments, [[1, 1, 1]]).round(3)
    array([[1.]])
    """
    moments, counts = np.asarray(moments, dtype=float), np.asarray(counts, dtype=float)
    n_atoms, *rest = moments.shape
    total = (counts @ moments.reshape(n_atoms, -1)).reshape(-1, *rest)
    n, x, y, xx, yy, xy = np.moveaxis(total, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        var_x, var_y = xx - x * x / n, yy - y * y / n
        vary = (n > 0) & (var_x > FLAT * (1 + xx)) & (var_y > FLAT * (1 + yy))
        r = np.where(vary, (xy - x * y / n) / np.sqrt(np.where(vary, var_x * var_y, 1.0)), 0.0)
        pairs = vary.sum(axis=-1)
        mean = np.clip(r, -1.0, 1.0).sum(axis=-1) / pairs
    return np.where(pairs > 0, mean, np.nan)


def anchors_compared(scores) -> np.ndarray:
    """How many anchor pairs enter each judge's consistency: [judge] (both vectors vary on the shared units).

    >>> anchors_compared([[[1, 2, 3]], [[2, 4, 6]], [[5, 5, 5]]])
    array([1])
    """
    n_units = np.asarray(scores).shape[-1]
    n, x, y, xx, yy, _ = np.moveaxis(pair_moments(scores, np.arange(n_units), n_units).sum(axis=0), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        vary = (n > 0) & (xx - x * x / n > FLAT * (1 + xx)) & (yy - y * y / n > FLAT * (1 + yy))
    return vary.sum(axis=-1)
