"""Does an interval hold the truth as often as its name says, and does a test cry wolf as seldom?

For simulated studies whose truth is known: coverage of intervals and size of tests, each a share of studies with its
own Wilson interval, since the studies are a sample too. Source: Morris, White and Crowther (2019), Using simulation
studies to evaluate statistical methods. Axes: estimate[study, ...], p[study, ...].
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from lib.proportions import wilson_interval

SETTLED = 9  # decimals of a bias and a width: beyond them they differ between processors
COVERAGE_BAND = (0.935, 0.965)  # a 95 % interval keeps its promise within 1.5 points
LARGEST_SIZE = 0.06  # and a test at .05 up to here


class Coverage(NamedTuple):
    """How often intervals hold the truth: the share, its 95 % Wilson bounds, mean estimate - truth, mean
    width."""

    share: float | np.ndarray
    lo: float | np.ndarray
    hi: float | np.ndarray
    bias: float | np.ndarray
    width: float | np.ndarray


class Size(NamedTuple):
    """How often a test rejects: the share of studies, and its 95 % Wilson bounds."""

    share: float | np.ndarray
    lo: float | np.ndarray
    hi: float | np.ndarray


def coverage(estimate, lo, hi, true) -> Coverage:
    """`Coverage` over the first axis (studies) of intervals [study, ...] against the truth [...], or a truth of each
    study's own [study, ...]. A study without an interval (NaN) does not hold the truth.

    >>> float(coverage([1.0, 2.0], [0.0, 1.5], [1.5, 2.5], 1.0).share)
    0.5
    """
    estimate, lo, hi = (np.asarray(part, dtype=float) for part in (estimate, lo, hi))
    held = (lo <= true) & (true <= hi)
    low, high = wilson_interval(held.sum(axis=0), len(held))
    bias, width = (np.round(part.mean(axis=0), SETTLED) for part in (estimate - true, hi - lo))
    return Coverage(held.mean(axis=0), low, high, bias, width)


def rejections(p, level: float = 0.05) -> Size:
    """`Size` over the first axis of p[study, ...]: the share of p below `level`; a p that is missing rejects nothing.

    Where nothing is to be found that share is the test's size, else its power.

    >>> float(rejections([0.01, 0.2, 0.6, float("nan")]).share)
    0.25
    """
    found = np.asarray(p, dtype=float) < level
    low, high = wilson_interval(found.sum(axis=0), len(found))
    return Size(found.mean(axis=0), low, high)


def rounded_moments(centre, sd: float, lowest: int, highest: int) -> tuple[np.ndarray, np.ndarray]:
    """(mean, mean square) of a normal variable around centre[...] that is rounded to whole points and cut off at the
    ends of a scale: what a rating of a known quality is on average.

    >>> [float(part.round(4)) for part in rounded_moments(3.0, 0.1, 1, 5)]
    [3.0, 9.0]
    """
    cuts = np.arange(lowest, highest) + 0.5
    above = special.ndtr(
        (np.asarray(centre, dtype=float)[..., None] - cuts) / sd
    )  # chance of a rating over each cut
    return lowest + above.sum(axis=-1), lowest**2 + (above * (2 * cuts)).sum(
        axis=-1
    )  # (k + 1)^2 - k^2 = 2 (k + 1/2)


def normal_rule(nodes: int = 61) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, weights) of the Gauss-Hermite rule: weights @ f(nodes) is the mean of f over a standard normal.

    >>> at, weights = normal_rule()
    >>> float((weights @ at**4).round(9))
    3.0
    """
    at, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return at, weights / weights.sum()


def coverage_verdict(found: Coverage) -> str:
    """What a simulated coverage says of a 95 % interval: "kept" at 95 +- 1.5 %; "unclear" where only its bounds reach
    so far (more studies would tell); else "too narrow" or "wider than need be".

    >>> coverage_verdict(Coverage(0.94, 0.92, 0.96, 0, 1)), coverage_verdict(Coverage(0.88, 0.84, 0.91, 0, 1))
    ('kept', 'too narrow')
    """
    least, most = COVERAGE_BAND
    if least <= found.share <= most:
        return "kept"
    return "too narrow" if found.hi < least else "wider than need be" if found.lo > most else "unclear"


def size_verdict(found: Size) -> str:
    """What a simulated size says of a test at .05: "kept" up to 6 %; "unclear" where only its bounds reach so far; else
    "too many false alarms".

    >>> size_verdict(Size(0.05, 0.03, 0.08)), size_verdict(Size(0.07, 0.05, 0.1)), size_verdict(Size(0.1, 0.07, 0.13))
    ('kept', 'unclear', 'too many false alarms')
    """
    if found.share <= LARGEST_SIZE:
        return "kept"
    return "too many false alarms" if found.lo > LARGEST_SIZE else "unclear"


def coverage_table(found: dict) -> pd.DataFrame:
    """{name: `Coverage` of one interval} as a frame, a row a name: coverage, lo, hi, bias, width, and what it says.

    >>> coverage_table({"mean": coverage([1.0] * 99, [0.0] * 99, [2.0] * 99, 1.0)})["says"].tolist()
    ['unclear']
    """
    table = pd.DataFrame.from_dict({name: one._asdict() for name, one in found.items()}, orient="index")
    table = table.rename(columns={"share": "coverage"})
    return table.assign(says=[coverage_verdict(one) for one in found.values()])


def size_table(found: dict) -> pd.DataFrame:
    """{name: `Size` of one test} as a frame, a row a name: size, lo, hi, and what it says.

    >>> size_table({"t": rejections([0.01] * 50 + [0.5] * 50)})["says"].tolist()
    ['too many false alarms']
    """
    table = pd.DataFrame.from_dict({name: one._asdict() for name, one in found.items()}, orient="index")
    table = table.rename(columns={"share": "size"})
    return table.assign(says=[size_verdict(one) for one in found.values()])
