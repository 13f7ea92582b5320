"""Stories: all measures in one plane, by principal components of their ranks."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.numeric import average_ranks


class Plane(NamedTuple):
    """scores[story, component] (unit variance), loadings[measure, component] (correlations), share[component]
    of variance.
    """

    scores: pd.DataFrame
    loadings: pd.DataFrame
    share: np.ndarray


def spread(positions, gap: float) -> np.ndarray:
    """Positions for labels that would overlap: at least `gap` apart, in the order of positions[label], as near to
    them as least squares allows (isotonic regression of what is left after the gaps).

    >>> spread([0.0, 0.1, 5.0], 1.0).round(2)
    array([-0.45,  0.55,  5.  ])
    """
    from scipy.optimize import isotonic_regression

    positions = np.asarray(positions, dtype=float)
    order = np.argsort(positions, kind="stable")
    steps = gap * np.arange(len(positions))
    moved = np.empty(len(positions))
    moved[order] = isotonic_regression(positions[order] - steps).x + steps
    return moved


def principal_plane(measures: pd.DataFrame, components: int = 2) -> Plane:
    """Principal components of the standardised ranks of measures[story, measure].

    Incomplete stories and constant measures are left out. A component's sign is fixed so that its loadings sum to a
    positive number. Loadings and shares are rounded to 10 decimals, scores to 12: below that processors differ. Raises
    ValueError where fewer than two stories or measures are left.

    >>> principal_plane(pd.DataFrame({"a": [1, 2, 3], "b": [2, 4, 7]})).share.round(3)
    array([1., 0.])
    """
    complete = measures.dropna()
    varied = complete.loc[:, complete.nunique() > 1]
    if min(varied.shape) < 2:
        raise ValueError(f"a plane needs two complete stories and two measures that vary, got {varied.shape}")
    ranks = average_ranks(varied.to_numpy(dtype=float).T).T
    standard = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    left, singular, right = np.linalg.svd(standard, full_matrices=False)
    loadings = right.T * singular / np.sqrt(len(standard))
    signs = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
    keep = slice(0, min(components, len(singular)))
    return Plane(
        pd.DataFrame((left * np.sqrt(len(standard)) * signs)[:, keep].round(12), index=varied.index),
        pd.DataFrame((loadings * signs)[:, keep].round(10), index=varied.columns),
        (singular**2 / (singular**2).sum()).round(10),
    )
