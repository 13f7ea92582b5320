"""Power of the two-sided Mann-Whitney test, and the smallest effect it can detect, by simulation.

Normal samples of one standard deviation, the second shifted up. Under such a shift the rank-biserial r of the
populations is 2 P(first < second) - 1 = 2 Phi(shift / sqrt 2) - 1. The test rejects by the normal
approximation with continuity correction, as `lib.ranks.mann_whitney` does for samples of this size. Source:
Section 3 of the AlienBench paper ("Monte Carlo sensitivity analysis with simulated normal location shifts");
the approximation is Mann and Whitney (1947).
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from lib.numeric import check_replicates

SHIFT_LIMIT = 20.0  # standard deviations; beyond this the samples are apart whatever their size
ROWS = 1000  # simulations counted in one sorted pass


class MinimumDetectable(NamedTuple):
    """The smallest detectable effect as |rank-biserial r| and as a shift in SD, with its simulated power."""

    abs_r: float
    shift: float
    power: float


def mann_whitney_power(
    n_first: int, n_second: int, shift: float, *, alpha: float, simulations: int, rng: np.random.Generator
) -> float:
    """Share of `simulations` in which the test at level `alpha` rejects for a location shift in SD units.

    Raises ValueError for a shift that is no finite number, sizes that are no whole numbers of at least 1, and an
    alpha outside (0, 1).

    >>> bool(mann_whitney_power(30, 30, shift=2.0, alpha=0.05, simulations=200, rng=np.random.default_rng(1)) > 0.9)
    True
    """
    if not np.isfinite(shift):
        raise ValueError(f"the shift must be a finite number of standard deviations, got {shift!r}")
    lower, upper = _rejection(n_first, n_second, alpha)
    first, second = _samples(n_first, n_second, simulations, rng)
    U = _count_below(first, second, shift)
    return float(((U <= lower) | (U >= upper)).mean())


def minimum_detectable_effect(
    n_first: int,
    n_second: int,
    *,
    alpha: float,
    power: float = 0.8,
    simulations: int,
    rng: np.random.Generator,
    resolution: float = 0.001,
) -> MinimumDetectable:
    """The smallest shift, among multiples of `resolution` (SD), at which the test has at least `power`.

    All shifts are judged on the same simulated samples (common random numbers), so power rises with the shift
    and bisection finds the answer. A coarse resolution gives what a search over a grid of shifts gives.
    NaN, with power 0, where samples of these sizes can never reject at this level. Raises ValueError for sizes
    below 1 and an alpha or power outside (0, 1).

    >>> found = minimum_detectable_effect(
    ...     40, 40, alpha=0.05, simulations=2000, rng=np.random.default_rng(1), resolution=0.1
    ... )
    >>> round(float(found[0]), 1)
    0.4
    """
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, got {power!r}")
    if not 0 < resolution < np.inf:
        raise ValueError(f"resolution must be above 0, got {resolution!r}")
    lower, upper = _rejection(n_first, n_second, alpha)
    if upper > n_first * n_second:
        return MinimumDetectable(np.nan, np.nan, 0.0)
    first, second = _samples(n_first, n_second, simulations, rng)

    def verdicts(U):  # -1, 0, 1: rejects for the first, not at all, rejects for the second
        return (U >= upper).astype(int) - (U <= lower)

    low, high = 0, max(1, int(np.ceil(SHIFT_LIMIT / resolution)))
    at_low = verdicts(_count_below(first, second, 0.0))
    at_high = verdicts(_count_below(first, second, high * resolution))
    if np.mean(at_low != 0) >= power:
        high, at_high = low, at_low
    while high - low > 1:
        middle = (low + high) // 2
        at_middle = at_high.copy()
        # U rises with the shift: verdicts that are equal at both ends hold in between
        open_ = np.flatnonzero(at_low != at_high)
        at_middle[open_] = verdicts(_count_below(first[open_], second[open_], middle * resolution))
        if np.mean(at_middle != 0) >= power:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    shift = high * resolution
    return MinimumDetectable(rank_biserial_of_shift(shift), float(shift), float(np.mean(at_high != 0)))


def rank_biserial_of_shift(shift: float) -> float:
    """Rank-biserial r between two normal populations of one SD whose means differ by `shift` SD.

    >>> round(rank_biserial_of_shift(1.0), 3)
    0.52
    """
    return float(2 * special.ndtr(shift / np.sqrt(2)) - 1)


def _rejection(n_first, n_second, alpha) -> tuple[float, float]:
    """Reject for U <= lower or U >= upper."""
    for n in (n_first, n_second):
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(
                f"samples need whole numbers of units, at least one each, got {n_first!r} and {n_second!r}"
            )
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    middle = n_first * n_second / 2
    deviation = np.sqrt(n_first * n_second * (n_first + n_second + 1) / 12)
    reach = -special.ndtri(alpha / 2) * deviation + 0.5
    return middle - reach, middle + reach


def _samples(n_first, n_second, simulations, rng):
    """first[simulation, unit] and second[simulation, unit], each row sorted."""
    check_replicates(simulations, rng)
    drawn = rng.standard_normal((simulations, n_first + n_second))
    return np.sort(drawn[:, :n_first], axis=1), np.sort(drawn[:, n_first:], axis=1)


def _count_below(first, second, shift) -> np.ndarray:
    """U[simulation]: pairs with first < second + shift, from sorted rows.

    Rows are laid end to end, far enough apart to stay in order, so that one sorted search serves them all.
    """
    results = np.empty(len(first))
    for start in range(0, len(first), ROWS):
        x, y = first[start : start + ROWS], second[start : start + ROWS] + shift
        row = np.arange(len(x))[:, np.newaxis]
        apart = 2 + max(x.max(), y.max()) - min(x.min(), y.min())
        found = np.searchsorted((x + row * apart).ravel(), (y + row * apart).ravel()).reshape(y.shape)
        results[start : start + ROWS] = (found - row * x.shape[1]).sum(axis=1)
    return results
