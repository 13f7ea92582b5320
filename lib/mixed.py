"""A linear mixed model with crossed random effects: ratings by raters of stories, both of them samples.

y = X b + sum over effects of Z u + e, u ~ N(0, s^2), e ~ N(0, s_e^2). Restricted maximum likelihood
(Patterson and Thompson 1971), profiled over b and s_e^2; the variances are found as ratios to the residual's.
Dense: meant for up to a few thousand rows.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import linalg, optimize, stats


@dataclass(frozen=True)
class MixedFit:
    """`fixed` (index: terms; estimate, se, lo, hi, z, p; Wald, 95%), `variances` {effect: variance,
    "residual": ...} and the restricted log-likelihood."""

    fixed: pd.DataFrame
    variances: dict
    log_likelihood: float

    def share(self, effect: str) -> float:
        """The share of all random variance that one effect has."""
        return self.variances[effect] / sum(self.variances.values())


def crossed_model(y, fixed: pd.DataFrame, groups: dict) -> MixedFit:
    """Fit y[row] on fixed[row, term] (with its own column of ones for the intercept) and crossed random
    intercepts.

    groups : {effect: labels[row]}, e.g. {"story": ..., "rater": ...}.
    Raises ValueError for missing values, rows that do not match, or terms that depend on each other.
    """
    y, X = np.asarray(y, dtype=float), fixed.to_numpy(dtype=float)
    rows = len(y)
    if X.shape[0] != rows or any(len(labels) != rows for labels in groups.values()):
        raise ValueError(f"y has {rows} rows; fixed and every group should have as many")
    if np.isnan(y).any() or np.isnan(X).any():
        raise ValueError("a mixed model needs complete rows: leave out those with a missing value")
    if np.linalg.matrix_rank(X) < X.shape[1]:
        raise ValueError(f"the fixed terms {', '.join(map(str, fixed.columns))} depend on each other")
    kernels = []
    for labels in groups.values():
        codes = pd.factorize(np.asarray(labels))[0]
        kernels.append((codes[:, None] == codes[None, :]).astype(float))
    start = np.full(len(kernels), np.log(0.5))
    found = optimize.minimize(
        lambda logs: -_profile(np.exp(logs), y, X, kernels)[0],
        start,
        method="L-BFGS-B",
        bounds=[(-14.0, 8.0)] * len(kernels),
    )
    ratios = np.exp(found.x)
    likelihood, b, covariance, residual = _profile(ratios, y, X, kernels)
    error = np.sqrt(np.diag(covariance))
    z, reach = b / error, stats.norm.ppf(0.975) * error
    table = pd.DataFrame(
        {
            "estimate": b,
            "se": error,
            "lo": b - reach,
            "hi": b + reach,
            "z": z,
            "p": 2 * stats.norm.sf(np.abs(z)),
        },
        index=fixed.columns,
    )
    variances = {name: float(ratio * residual) for name, ratio in zip(groups, ratios, strict=True)}
    return MixedFit(table, {**variances, "residual": float(residual)}, float(likelihood))


def _profile(ratios, y, X, kernels):
    """(restricted log-likelihood, b, covariance of b, residual variance) at variance ratios[effect]."""
    rows, terms = X.shape
    V = np.eye(rows)
    for ratio, kernel in zip(ratios, kernels, strict=True):
        V += ratio * kernel
    factor = linalg.cho_factor(V, lower=True, check_finite=False)
    solved = linalg.cho_solve(factor, np.column_stack([X, y]), check_finite=False)
    information = X.T @ solved[:, :terms]
    b = np.linalg.solve(information, X.T @ solved[:, terms])
    rest = y - X @ b
    residual = float(rest @ (solved[:, terms] - solved[:, :terms] @ b)) / (rows - terms)
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    likelihood = -0.5 * (
        (rows - terms) * (np.log(2 * np.pi * residual) + 1) + log_det + np.linalg.slogdet(information)[1]
    )
    return likelihood, b, residual * np.linalg.inv(information), residual
