"""A linear mixed model with crossed or nested random intercepts: ratings by raters of stories, both samples.

y = X b + sum over effects of Z u + e, u ~ N(0, s^2), e ~ N(0, s_e^2). Restricted maximum likelihood
(Patterson and Thompson 1971), profiled over b and s_e^2 as in Bates, Maechler, Bolker and Walker (2015), Fitting
linear mixed-effects models using lme4, section 3: the search is over theta, each effect's standard deviation
relative to the residual's, which may be 0. No matrix of rows by rows is made, and the effect with the most groups
(whose own block is diagonal) is eliminated first.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy import linalg, optimize, sparse, stats

from lib.numeric import significant

DIGITS, LIKELIHOOD_DIGITS = (
    7,
    10,
)  # significant digits that a fit is given to: the optimum is found to about 1e-9
STARTS = (0.3, 1.5)  # values of theta; every combination is a start
NIL = 1e-4  # a theta below this is tried against 0
STEEP = 1e-5  # slope of the deviance over asinh(theta) above which a point is no optimum
MOST_PAIRS = 5e6  # of groups that meet in one group of the first effect
WITHOUT_RESIDUAL = 1e7  # a theta beyond this: the residual variance goes to 0


@dataclass(frozen=True)
class MixedFit:
    """`fixed` (index: terms; estimate, se, lo, hi, z, p; Wald, 95%), `variances` {effect: variance,
    "residual": ...}, the restricted log-likelihood, and how far the search was from flat where it ended: `slope`, the
    largest derivative of -2 log-likelihood over asinh(theta). Numbers have 7 significant digits, the likelihood 10."""

    fixed: pd.DataFrame
    variances: dict
    log_likelihood: float
    slope: float

    def share(self, effect: str) -> float:
        """The share of all random variance that one effect has.

        >>> MixedFit(None, {"rater": 1.0, "residual": 3.0}, -10.0, 0.0).share("rater")
        0.25
        """
        return self.variances[effect] / sum(self.variances.values())


def crossed_model(y, fixed: pd.DataFrame, groups: dict) -> MixedFit:
    """Fit y[row] on fixed[row, term] (with its own column of ones for the intercept) and random intercepts.

    groups : {effect: labels[row]}, e.g. {"story": ..., "rater": ...}; crossed or nested (then the inner labels
        must differ between the outer groups).
    Raises ValueError for values that are missing or infinite, rows that do not match, terms that depend on each
    other or are as many as rows, effects with one group or as many groups as rows, a y that the terms or the groups
    give exactly (no residual variance), and where the search ends on a slope.

    >>> dyes = [1545, 1440, 1440, 1540, 1555, 1490, 1595, 1550, 1605]
    >>> fit = crossed_model(dyes, pd.DataFrame({"mean": [1.0] * 9}), {"batch": list("AAABBBCCC")})
    >>> fit.variances
    {'batch': 2301.852, 'residual': 1897.222}
    """
    y, X, codes = _checked(y, fixed, groups)
    problem = _Problem(y, X, codes)
    theta, slope = _search(problem)
    deviance, b, covariance, residual = problem.solution(theta)
    error = significant(np.sqrt(np.diag(covariance)), DIGITS)
    b = significant(b, DIGITS)
    z, reach = b / error, stats.norm.ppf(0.975) * error
    columns = {"estimate": b, "se": error, "lo": b - reach, "hi": b + reach, "z": z}
    table = pd.DataFrame({**columns, "p": 2 * stats.norm.sf(np.abs(z))}, index=fixed.columns)
    variances = {
        name: float(significant(v, DIGITS)) for name, v in zip(groups, theta**2 * residual, strict=True)
    }
    variances["residual"] = float(significant(residual, DIGITS))
    return MixedFit(
        significant(table, DIGITS), variances, float(significant(-0.5 * deviance, LIKELIHOOD_DIGITS)), slope
    )


def crossed_effects(Y, fixed: pd.DataFrame, groups: dict, *, most: float = 2.0, points: int = 17):
    """(estimate, se), each [study, term]: `crossed_model`'s fixed effects for many Y[row, study] of one design.

    The restricted likelihood is taken at `points` values of each effect's theta (its standard deviation relative to
    the residual's) from 0 to `most`, and a study keeps the estimates at its own best: close to the optimum, and a
    hundredth of the work where the same design is simulated over and over. Raises ValueError as `crossed_model`.

    >>> dyes = np.array([1545, 1440, 1440, 1540, 1555, 1490, 1595, 1550, 1605.0])
    >>> two = np.column_stack([dyes, 2 * dyes])
    >>> b, se = crossed_effects(two, pd.DataFrame({"mean": [1.0] * 9}), {"batch": list("AAABBBCCC")})
    >>> b.round(3).ravel().tolist()
    [1528.889, 3057.778]
    """
    Y = np.asarray(Y, dtype=float)
    X, codes = [_checked(y, fixed, groups)[1:] for y in Y.T][0]
    problem, p = _Problem(Y, X, codes), X.shape[1]
    best = np.full(Y.shape[1], np.inf)
    b, variance = np.zeros((2, Y.shape[1], p))
    for theta in product(np.linspace(0, most, points), repeat=len(codes)):
        W, log_det = problem.solve(np.array(theta)[problem.order])[:2]
        information = np.linalg.inv(W[:p, :p])
        found = information @ W[:p, p:]
        rest = np.diag(W)[p:] - (found * W[:p, p:]).sum(axis=0)
        value = (len(Y) - p) * np.log(rest) + log_det + np.linalg.slogdet(W[:p, :p])[1]
        nearer = value < best
        best[nearer], b[nearer] = value[nearer], found.T[nearer]
        variance[nearer] = rest[nearer, None] / (len(Y) - p) * np.diag(information)
    unit = problem.unit[:, None]
    return (b * unit + problem.offset.T) / problem.norms, np.sqrt(variance) * unit / problem.norms


def _checked(y, fixed, groups):
    """(y[row], X[row, term], [codes[row] of each effect])."""
    y, X = pd.array(y, dtype="Float64").to_numpy(float, na_value=np.nan), fixed.to_numpy(dtype=float)
    rows = len(y)
    if X.shape[0] != rows or any(len(labels) != rows for labels in groups.values()):
        raise ValueError(f"y has {rows} rows; fixed and every group should have as many")
    if not groups:
        raise ValueError("a mixed model needs at least one group; without any it is ordinary least squares")
    if np.isnan(y).any() or np.isnan(X).any():
        raise ValueError("a mixed model needs complete rows: leave out those with a missing value")
    if np.isinf(y).any() or np.isinf(X).any():
        raise ValueError("a mixed model needs finite values: y or a fixed term is infinite")
    if X.shape[1] >= rows:
        raise ValueError(f"{X.shape[1]} fixed terms for {rows} rows: there should be more rows than terms")
    if X.shape[1] == 0 or np.linalg.matrix_rank(X / np.linalg.norm(X, axis=0).clip(1e-300)) < X.shape[1]:
        raise ValueError(f"the fixed terms {', '.join(map(str, fixed.columns))} depend on each other")
    codes = []
    for name, labels in groups.items():
        found, levels = pd.factorize(pd.Series(np.asarray(labels)))
        if (found < 0).any():
            raise ValueError(f"a label of {name!r} is missing: leave the row out or name its group")
        if len(levels) < 2:
            raise ValueError(f"{name!r} has one group only: its variance cannot be told from the mean")
        if len(levels) == rows:
            raise ValueError(f"every row is a group of {name!r} by itself: that is the residual")
        codes.append(found)
    return y, X, codes


class _Problem:
    """The deviance (-2 restricted log-likelihood) and its slopes, from sums over rows made once.

    Effects are reordered so that the one with the most groups comes first; M = I + T Z'Z T with T = diag(theta)
    has there the diagonal D = 1 + theta^2 n, and S is its Schur complement.
    """

    def __init__(self, y, X, codes):
        self.rows, self.terms = X.shape
        self.norms = np.linalg.norm(X, axis=0)
        X = X / self.norms
        rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        # y is measured in its own spread: no unit of y is special
        self.unit = np.sqrt((rest**2).sum(axis=0) / (self.rows - self.terms))
        if not (self.unit > 1e-12 * np.abs(y).max(axis=0)).all():
            raise ValueError("the fixed terms give y exactly (a constant y?): there is no variance to divide")
        self.offset = np.linalg.lstsq(X, y, rcond=None)[0]  # restored in `solution`
        data = np.column_stack([X, rest / self.unit])
        sizes = np.array([found.max() + 1 for found in codes])
        self.order = np.argsort(-sizes, kind="stable")
        self.sizes = sizes[self.order]
        Z = [
            sparse.csr_array((np.ones(self.rows), (np.arange(self.rows), codes[i])), (self.rows, sizes[i]))
            for i in self.order
        ]
        self.gram = data.T @ data
        self.first, self.sums = np.asarray(Z[0].sum(axis=0)).ravel(), [z.T @ data for z in Z]
        others = sparse.hstack(Z[1:], format="csr") if len(Z) > 1 else sparse.csr_array((self.rows, 0))
        self.across = sparse.csr_array(Z[0].T @ others)
        self.back = sparse.csr_array(self.across.T)
        self.others = (others.T @ others).toarray()
        self.pairs = _pairs(self.across)
        self.rest = np.vstack([np.zeros((0, len(self.gram))), *self.sums[1:]])

    def between(self, weights):
        """across' diag(weights) across, dense: what the other effects' groups share through the first's."""
        width = self.across.shape[1]
        if self.pairs is None:
            return np.asarray((self.back @ self.across.multiply(weights[:, None]).tocsr()).todense())
        place, product, row = self.pairs
        return np.bincount(place, product * weights[row], width * width).reshape(width, width)

    def solve(self, theta):
        """(W = data' V^-1 data, log det V, [Z_k' V^-1 data], [trace of the block of M^-1]) at theta[effect]."""
        head, tail = theta[0], np.repeat(theta[1:], self.sizes[1:])
        D = 1 + head**2 * self.first
        S = np.eye(len(tail)) + tail[:, None] * (self.others - head**2 * self.between(1 / D)) * tail
        inverse, log_det = _inverse(S)
        log_det += np.log(D).sum()
        one, two = head * self.sums[0], tail[:, None] * self.rest
        x2 = inverse @ (two - head * tail[:, None] * (self.back @ (one / D[:, None])))
        x1 = (one - head * (self.across @ (tail[:, None] * x2))) / D[:, None]
        W = self.gram - one.T @ x1 - two.T @ x2
        rest = self.rest - self.back @ (head * x1) - self.others @ (tail[:, None] * x2)
        ends = np.cumsum(self.sizes[1:])[:-1]
        moved = [
            self.sums[0] - self.first[:, None] * head * x1 - self.across @ (tail[:, None] * x2),
            *np.split(rest, ends),
        ]
        spread = head**2 * ((inverse * tail[:, None] * tail) * self.between(1 / D**2)).sum()
        blocks = np.split(np.diag(inverse), ends)
        return W, log_det, moved, [(1 / D).sum() + spread, *(block.sum() for block in blocks)]

    def deviance(self, position):
        """(deviance but for its constants, slopes[effect]) at position = asinh(theta), the effects in `order`."""
        theta = np.sinh(position)
        W, log_det, moved, traces = self.solve(theta)
        p, freedom = self.terms, self.rows - self.terms
        information = np.linalg.inv(W[:p, :p])
        b = information @ W[:p, p]
        rest = W[p, p] - b @ W[:p, p]
        if not rest > 0:
            return np.inf, np.zeros(len(theta))
        value = freedom * np.log(rest) + log_det + np.linalg.slogdet(W[:p, :p])[1]
        slopes = np.zeros(len(theta))
        for k, at in enumerate(theta):
            if at == 0:
                continue  # the deviance is even in theta
            left = moved[k][:, p] - moved[k][:, :p] @ b
            explained = ((moved[k][:, :p] @ information) * moved[k][:, :p]).sum()
            slopes[k] = 2 * (self.sizes[k] - traces[k]) / at - 2 * at * (
                explained + freedom / rest * (left @ left)
            )
        return value, slopes * np.cosh(position)

    def solution(self, theta):
        """(deviance, b, covariance of b, residual variance) in the units of y and X, effects as handed in."""
        W, log_det, _, _ = self.solve(np.asarray(theta)[self.order])
        p, freedom = self.terms, self.rows - self.terms
        information = np.linalg.inv(W[:p, :p])
        b = information @ W[:p, p]
        residual = (W[p, p] - b @ W[:p, p]) / freedom * self.unit**2
        deviance = freedom * (np.log(2 * np.pi * residual) + 1) + log_det
        deviance += np.linalg.slogdet(W[:p, :p])[1] + 2 * np.log(self.norms).sum()
        return (
            deviance,
            (b * self.unit + self.offset) / self.norms,
            residual * information / np.outer(self.norms, self.norms),
            residual,
        )


def _pairs(across):
    """(place, product, row) of every pair of entries in one row of a sparse matrix: its Gram matrix, weighted by rows,
    is one sum over them. None where there are too many, and a product of matrices is the shorter way."""
    counts = np.diff(across.indptr)
    if (counts.astype(float) ** 2).sum() > MOST_PAIRS:
        return None
    row = np.repeat(np.arange(len(counts)), counts**2)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts**2) - counts**2, counts**2)
    start, wide = across.indptr[row], counts[row]
    first, second = start + within // np.maximum(wide, 1), start + within % np.maximum(wide, 1)
    place = across.indices[first].astype(np.int64) * across.shape[1] + across.indices[second]
    return place, across.data[first] * across.data[second], row


def _inverse(S):
    """(inverse, log determinant) of a symmetric positive definite matrix, by Cholesky."""
    if not len(S):
        return S, 0.0
    factor, failed = linalg.lapack.dpotrf(S, lower=1)
    if failed:
        return np.linalg.inv(S), np.linalg.slogdet(S)[1]
    lower = np.tril(linalg.lapack.dpotri(factor, lower=1)[0])
    return lower + np.tril(lower, -1).T, 2 * np.log(np.diag(factor)).sum()


def _search(problem):
    """(theta[effect], slope): the lowest deviance found from every start, polished."""
    effects = len(problem.sizes)
    ends = [_descend(problem, np.arcsinh(start)) for start in product(STARTS, repeat=effects)]
    position = min(ends, key=lambda end: problem.deviance(end)[0])
    for _ in range(2 * effects):
        nil = np.abs(np.sinh(position)) < NIL
        tried = np.where(nil, np.arcsinh(NIL), position)
        rising = nil & (problem.deviance(tried)[1] < 0)  # away from 0 the deviance falls: 0 is no optimum
        if not rising.any():
            break
        position = _descend(problem, np.where(rising, np.arcsinh(STARTS[0]), position))
    position = np.where(nil, 0.0, np.abs(position))
    inside = np.flatnonzero(position)
    if (np.sinh(position) > WITHOUT_RESIDUAL).any():
        raise ValueError("the groups give y exactly: there is no residual variance to compare theirs with")
    position = _polished(problem, position, inside)
    slope = float(np.abs(problem.deviance(position)[1]).max())
    if not slope <= STEEP * problem.rows:
        raise ValueError(
            f"the search for the variances ended on a slope of {slope:.1g}: no optimum was found"
        )
    theta = np.empty(effects)
    theta[problem.order] = np.sinh(position)
    return theta, slope


def _descend(problem, position):
    return optimize.minimize(problem.deviance, position, jac=True, method="BFGS", options={"gtol": 1e-4}).x


def _polished(problem, position, inside):
    """Newton's steps over the effects that are not 0, the curvature from differences of the slopes."""
    if not len(inside):
        return position
    for _ in range(4):
        slopes = problem.deviance(position)[1][inside]
        if np.abs(slopes).max() < 1e-10 * problem.rows:
            break
        steps = 1e-5 * np.eye(len(position))[inside]
        curvature = np.array(
            [
                (problem.deviance(position + h)[1] - problem.deviance(position - h)[1])[inside] / 2e-5
                for h in steps
            ]
        )
        if not (np.linalg.eigvalsh((curvature + curvature.T) / 2) > 0).all():
            break
        position = position.copy()
        position[inside] -= np.linalg.solve((curvature + curvature.T) / 2, slopes)
    return position
