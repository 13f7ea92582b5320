"""Probabilities that meet printed margins: the arithmetic behind the simulated subject models.

Three small fits, all convex or one-dimensional, all vectorised over the cells of a design.

- `additive_rates`: p[condition, feature] = logistic(a[condition] + b[feature]) whose row sums and column
  means are given. Among all tables with these margins it has the highest entropy.
- `shifted_rates`: the same b under another condition of which only the sum is known.
- `joint_states`: a distribution over the 2^10 patterns of ten binary features with given marginal rates and a
  given variance of a weighted sum, again of highest entropy: P(x) ~ exp(h·x + J (w·x)²), the quadratic
  exponential family (Cox 1972, The analysis of multivariate binary data). J > 0 ties features together, J < 0
  spreads them.
"""

from __future__ import annotations

import numpy as np

MOST_STEPS = 200
NEAREST_TO_FULL_DEPENDENCE = 0.9


def logistic(x):
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def logit(p):
    """log(p / (1 - p))."""
    return np.log(p) - np.log1p(-p)


def patterns(n: int) -> np.ndarray:
    """patterns[state, feature]: every 0/1 vector of length n; bit f of the state's number is feature f."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)


def additive_rates(row_sums, column_means) -> tuple[np.ndarray, np.ndarray]:
    """Rates and feature effects for each of several models.

    row_sums[model, condition] in (0, features); column_means[model, feature] in (0, 1). Printed margins
    disagree by their rounding, so the column means are first scaled to the row sums' total (odds stay within
    (0, 1)). Returns rates[model, condition, feature], effects[model, feature]. Raises ValueError for a margin
    out of range or margins that no table meets.
    """
    rows, columns = np.asarray(row_sums, float), np.asarray(column_means, float)
    conditions, features = rows.shape[1], columns.shape[1]
    if not (np.all((rows > 0) & (rows < features)) and np.all((columns > 0) & (columns < 1))):
        raise ValueError(
            "row sums should lie strictly between 0 and the number of features, column means in (0, 1)"
        )
    columns = _summing_to(columns, rows.mean(axis=1))
    a, b = logit(rows / features), np.zeros_like(columns)
    for _ in range(MOST_STEPS):
        p = logistic(a[:, :, None] + b[:, None, :])
        gap = np.concatenate([rows - p.sum(axis=2), conditions * columns - p.sum(axis=1)], axis=1)
        if np.abs(gap).max() < 1e-11:
            return p, b
        step = np.linalg.solve(_information(p), gap[..., None])[..., 0]
        step *= 2 / np.maximum(2, np.abs(step).max(axis=1, keepdims=True))  # damped while far away; 0 stays 0
        a, b = a + step[:, :conditions], b + step[:, conditions:]
    raise ValueError(f"no table of rates meets these margins: the best is off by {np.abs(gap).max():.2g}")


def _information(p):
    """Hessian of the log-partition in (a, b); the one free direction (a up, b down) is held by a small ridge."""
    w = p * (1 - p)
    models, conditions, features = p.shape
    full = np.zeros((models, conditions + features, conditions + features))
    full[:, :conditions, conditions:] = w
    full[:, conditions:, :conditions] = w.transpose(0, 2, 1)
    diagonal = np.arange(conditions + features)
    full[:, diagonal, diagonal] = np.concatenate([w.sum(axis=2), w.sum(axis=1)], axis=1) + 1e-9
    return full


def _summing_to(rates, totals):
    """rates[model, feature] moved along the logit scale, each model by one constant, to sum to totals[model]."""
    return shifted_rates(logit(rates), totals[:, None])[:, 0]


def shifted_rates(effects, sums) -> np.ndarray:
    """rates[model, condition, feature] = logistic(a + effects[model, feature]) with row sums sums[model,
    condition].

    Raises ValueError for a sum outside (0, features).
    """
    effects, sums = np.asarray(effects, float), np.asarray(sums, float)
    if not np.all((sums > 0) & (sums < effects.shape[1])):
        raise ValueError("each sum of rates should lie strictly between 0 and the number of features")
    low, high = np.full(sums.shape, -60.0), np.full(sums.shape, 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        above = logistic(middle[:, :, None] + effects[:, None, :]).sum(axis=2) > sums
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return logistic(middle[:, :, None] + effects[:, None, :])


def joint_states(rates, weights, variance, *, ridge: float = 0.005, steps: int = 60) -> np.ndarray:
    """States' probabilities P[cell, state] with marginal rates and, as near as they allow, a variance of the
    sum.

    rates[cell, feature] in (0, 1); weights[cell, feature] > 0; variance[cell] of sum(weights * x). Marginals
    are met to 1e-9. A variance below what any distribution with these marginals has is approached (the ridge
    on J keeps the fit finite); one above 0.9 of the most they allow is replaced by that. States are numbered
    as in `patterns`. Raises ValueError where a fit does not converge.
    """
    rates, weights = np.asarray(rates, float), np.asarray(weights, float)
    x = patterns(rates.shape[1])
    pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    squared = ((weights @ x.T) - (weights * rates).sum(axis=1, keepdims=True)) ** 2
    variance = np.minimum(variance, NEAREST_TO_FULL_DEPENDENCE * largest_variance(rates, weights))
    target = np.concatenate([rates, variance[:, None]], axis=1)
    theta = np.concatenate([logit(rates), np.zeros((len(rates), 1))], axis=1)
    dual, p = _dual(theta, target, x, squared, ridge)
    for _step_number in range(steps):
        gap = target - np.concatenate([p @ x, (p * squared).sum(axis=1, keepdims=True)], axis=1)
        gap[:, -1] -= ridge * theta[:, -1]
        if np.abs(gap).max() < 1e-10:
            break
        step = np.linalg.solve(_covariance(p, x, pairs, squared, ridge), gap[..., None])[..., 0]
        theta, dual, p = _line_search(theta, step, dual, target, x, squared, ridge)
    if np.abs(p @ x - rates).max() > 1e-9:
        raise ValueError(
            f"no joint distribution found within {steps} steps: rates are off by "
            f"{np.abs(p @ x - rates).max():.2g}"
        )
    return p / p.sum(axis=1, keepdims=True)


def largest_variance(rates, weights) -> np.ndarray:
    """largest[cell]: variance of sum(weights * x) when every feature follows one common draw, the most there
    can be."""
    together = np.minimum(rates[:, :, None], rates[:, None, :]) - rates[:, :, None] * rates[:, None, :]
    return np.einsum("cf,cg,cfg->c", weights, weights, together)


def _dual(theta, target, x, squared, ridge):
    """The convex function that the fit minimises, and the distribution at theta."""
    energy = theta[:, :-1] @ x.T + theta[:, -1:] * squared
    top = energy.max(axis=1, keepdims=True)
    p = np.exp(energy - top)
    total = p.sum(axis=1, keepdims=True)
    value = (np.log(total) + top)[:, 0] - (theta * target).sum(axis=1) + ridge / 2 * theta[:, -1] ** 2
    return value, p / total


def _covariance(p, x, pairs, squared, ridge):
    cells, features = len(p), x.shape[1]
    mean, level = p @ x, (p * squared).sum(axis=1)
    full = np.empty((cells, features + 1, features + 1))
    full[:, :-1, :-1] = (p @ pairs).reshape(cells, features, features) - mean[:, :, None] * mean[:, None, :]
    full[:, -1, :-1] = full[:, :-1, -1] = (p * squared) @ x - level[:, None] * mean
    full[:, -1, -1] = (p * squared**2).sum(axis=1) - level**2 + ridge
    full[:, np.arange(features), np.arange(features)] += 1e-12
    return full


def _line_search(theta, step, dual, target, x, squared, ridge):
    """Take the Newton step, halved cell by cell until the dual does not rise."""
    length = 6 / np.maximum(6, np.abs(step).max(axis=1))  # 1 for a short step, also one of exactly 0
    for _ in range(40):
        moved = theta + length[:, None] * step
        value, p = _dual(moved, target, x, squared, ridge)
        worse = value > dual + 1e-12 * np.abs(dual)
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
    return moved, value, p


def covariances(p) -> np.ndarray:
    """Covariance[..., feature, feature] of the features under states' probabilities p[..., state]."""
    x = patterns(int(np.log2(p.shape[-1])))
    pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    second = (p @ pairs).reshape(*p.shape[:-1], x.shape[1], x.shape[1])
    mean = p @ x
    return second - mean[..., :, None] * mean[..., None, :]
