"""How far a ranking depends on its parts: features left out, all subsets of features, judges left out.

Source: Appendix F.2 and F.3 of the AlienBench paper. A model's score is the sum of its feature rates, so
every subset's scores follow from the matrix rates[model, feature] alone. Sums are rounded to 1e-9 before they
are ranked: the same total reached in another order of summation must tie.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.numeric import centred_ranks, check_replicates, chunk_sizes
from lib.ranks import kendall_tau_b, mean_absolute_difference, pair_signs, rank_changes, ranks, spearman

DECIMALS = 9
MOST_FEATURES = 20  # 2**20 subsets
BAR_SLACK = 1e-12  # a correlation equal to its bar meets it


class SmallestK(NamedTuple):
    """Smallest subset sizes whose best subset meets each bar (NaN if none does), and those subsets."""

    k_rho: float
    k_tau: float
    subset_rho: tuple
    subset_tau: tuple


class SmallestKNull(NamedTuple):
    """Observed smallest sizes, their permutation p values, and the nulls: null_rho[B], null_tau[B]."""

    k_rho: float
    k_tau: float
    p_rho: float
    p_tau: float
    null_rho: np.ndarray
    null_tau: np.ndarray


def leave_one_out(rates) -> pd.DataFrame:
    """The full ranking against the ranking without each feature of rates[model, feature].

    Index: feature. Columns: rho, tau, mad (mean absolute difference of the scores, in points of the sum) and
    rank_changes (models whose average rank moves). Raises ValueError for fewer than two models or features,
    or a missing rate.

    >>> rates = pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]})
    >>> leave_one_out(rates)["rank_changes"].tolist()
    [2, 0]
    """
    values, _, features = _matrix(rates, "rates[model, feature]", least=2)
    full = _scores(values, np.ones((1, len(features))))[0]
    reduced = _scores(values, 1 - np.eye(len(features)))
    return _comparison(reduced, full, pd.Index(features, name="feature"))


def all_subsets(rates) -> pd.DataFrame:
    """Every non-empty subset of features against the full score, in order of size.

    Columns: k, features (a tuple), rho, tau, mad; rho and tau are NaN where a subset gives all models one
    score.

    >>> all_subsets(pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]}))["k"].tolist()
    [1, 1, 2]
    """
    values, _, features = _matrix(rates, "rates[model, feature]", least=1)
    members = _members(len(features))
    full = _scores(values, np.ones((1, len(features))))[0]
    scores = _scores(values, members)
    return pd.DataFrame(
        {
            "k": members.sum(axis=1).astype(int),
            "features": [tuple(features[column] for column in np.flatnonzero(row)) for row in members],
            "rho": spearman(scores, full),
            "tau": kendall_tau_b(scores, full),
            "mad": mean_absolute_difference(scores, full),
        }
    )


def subset_search(rates) -> pd.DataFrame:
    """All subsets of each size k. Index: k; columns n_subsets, median_rho, best_rho, best_tau, min_mad.

    >>> subset_search(pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]}))["best_rho"].tolist()
    [1.0, 1.0]
    """
    return (
        all_subsets(rates)
        .groupby("k")
        .agg(
            n_subsets=("mad", "size"),
            median_rho=("rho", "median"),
            best_rho=("rho", "max"),
            best_tau=("tau", "max"),
            min_mad=("mad", "min"),
        )
    )


def smallest_k(rates, *, rho: float = 0.9, tau: float = 0.8) -> SmallestK:
    """The smallest k whose best subset reaches rho >= `rho`, and the smallest for tau >= `tau`.

    With each, the best subset of that size (the first in the order of features among equals; empty if none).

    >>> smallest_k(pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]})).subset_rho
    ('f',)
    """
    table = all_subsets(rates)
    found = []
    for column, bar in (("rho", rho), ("tau", tau)):
        meeting = table[table[column] >= bar - BAR_SLACK]
        k = meeting["k"].min()
        best = meeting[meeting["k"] == k].sort_values(column, ascending=False, kind="stable")
        found.append((int(k), best["features"].iloc[0]) if len(best) else (np.nan, ()))
    return SmallestK(found[0][0], found[1][0], found[0][1], found[1][1])


def smallest_k_null(
    rates, *, rho: float = 0.9, tau: float = 0.8, B: int, rng: np.random.Generator
) -> SmallestKNull:
    """Permutation test of the smallest k: the full ranking's model labels are permuted, the search run again.

    p = (1 + #{null k <= observed k}) / (B + 1), the chance that a ranking unrelated to the features is met by
    as small a subset; NaN where no observed subset meets the bar. A null replicate that no subset meets is
    NaN.

    >>> rates = pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]})
    >>> len(smallest_k_null(rates, B=20, rng=np.random.default_rng(1)).null_rho)
    20
    """
    check_replicates(B, rng)
    values, _, features = _matrix(rates, "rates[model, feature]", least=1)
    observed = smallest_k(rates, rho=rho, tau=tau)
    members = _members(len(features))
    k = members.sum(axis=1).astype(int)
    full = _scores(values, np.ones((1, len(features))))[0]
    scores = _scores(values, members)
    by_rank, by_pair, nulls = centred_ranks(scores), pair_signs(scores), []
    for rows in chunk_sizes(B, len(members)):
        permuted = rng.permuted(np.broadcast_to(full, (rows, len(full))), axis=1)
        nulls.append(
            (
                _smallest(by_rank, centred_ranks(permuted), k, rho),
                _smallest(by_pair, pair_signs(permuted), k, tau),
            )
        )
    null_rho, null_tau = np.concatenate(nulls, axis=1)
    return SmallestKNull(
        observed.k_rho,
        observed.k_tau,
        _p_value(null_rho, observed.k_rho),
        _p_value(null_tau, observed.k_tau),
        null_rho,
        null_tau,
    )


def mean_pairwise_rho(rates) -> float:
    """Mean Spearman rho over pairs of single-feature rankings of rates[model, feature].

    Pairs with a feature that is the same for all models have no rho and are left out; NaN if none remains.

    >>> mean_pairwise_rho(pd.DataFrame({"f": [0.1, 0.5, 0.9], "g": [0.2, 0.1, 0.3]}))
    0.5
    """
    values, _, features = _matrix(rates, "rates[model, feature]", least=2)
    columns = np.round(values.T, DECIMALS)
    i, j = np.triu_indices(len(features), k=1)
    rho = spearman(columns[i], columns[j])
    return float(rho[~np.isnan(rho)].mean()) if not np.isnan(rho).all() else np.nan


def judge_leave_one_out(scores) -> pd.DataFrame:
    """Each judge's model means against the other judges' mean, two disjoint panels: scores[judge, model].

    Index: judge. Columns rho, tau, mad, rank_changes (models whose average rank differs between the two).
    Raises ValueError for fewer than two judges or models, or a missing score.

    >>> judge_leave_one_out(pd.DataFrame([[1, 2, 3], [1, 3, 2]]))["rho"].tolist()
    [0.5, 0.5]
    """
    values, judges, _ = _matrix(scores, "scores[judge, model]", least=2, rows_least=2)
    others = (values.sum(axis=0) - values) / (len(judges) - 1)
    return _comparison(np.round(values, DECIMALS), np.round(others, DECIMALS), pd.Index(judges, name="judge"))


def ranks_without_judge(scores) -> pd.DataFrame:
    """League-table ranks (1 = highest) of the panel mean of scores[judge, model].

    Index: "all" for the full panel, then each judge left out. Columns: models.

    >>> ranks_without_judge(pd.DataFrame([[1, 2, 3], [1, 3, 1]], index=["x", "y"])).loc["x"].tolist()
    [2, 1, 2]
    """
    values, judges, models = _matrix(scores, "scores[judge, model]", least=2, rows_least=2)
    others = (values.sum(axis=0) - values) / (len(judges) - 1)
    panels = np.round(np.vstack([values.mean(axis=0), others]), DECIMALS)
    placed = ranks(panels, method="competition").astype(int)
    return pd.DataFrame(placed, index=["all", *judges], columns=models)


def rates_from_percent(percent, n: int, *, decimals: int = 1) -> pd.DataFrame | np.ndarray:
    """The exact rates behind printed percentages of `n` labels each: the multiples of 1/n that print so.

    Printed sums carry rounding that can break a tie or make one; counts do not. percent[model, feature] as a
    DataFrame or array. Raises ValueError where the multiples of 1/n lie too close to tell at this rounding
    (n above 10**(decimals + 2)), or where no multiple prints as given.

    >>> rates_from_percent([[33.3, 66.7]], 3).round(4)
    array([[0.3333, 0.6667]])
    """
    if not 0 < n <= 10 ** (decimals + 2):
        raise ValueError(f"percentages with {decimals} decimals do not determine counts out of {n}")
    values = np.asarray(percent, dtype=float)
    rates = np.round(values / 100 * n) / n
    off = np.abs(100 * rates - values) > 0.5 * 10.0**-decimals + 1e-9
    if off.any():
        raise ValueError(f"{values[off].ravel()[0]:g} per cent is no whole number out of {n}")
    if isinstance(percent, pd.DataFrame):
        return pd.DataFrame(rates, index=percent.index, columns=percent.columns)
    return rates


def _comparison(first, second, index) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rho": spearman(first, second),
            "tau": kendall_tau_b(first, second),
            "mad": mean_absolute_difference(first, second),
            "rank_changes": rank_changes(first, second),
        },
        index=index,
    )


def _scores(values, members) -> np.ndarray:
    """scores[subset, model]: sums of the member features' rates."""
    return np.round(members @ values.T, DECIMALS)


def _members(n_features) -> np.ndarray:
    """members[subset, feature] of 0 and 1: all non-empty subsets by size, then in the order of features."""
    if n_features > MOST_FEATURES:
        raise ValueError(f"{n_features} features have too many subsets; at most {MOST_FEATURES}")
    masks = np.arange(1, 2**n_features)
    members = (masks[:, np.newaxis] >> np.arange(n_features - 1, -1, -1)) & 1
    return members[np.lexsort((-masks, members.sum(axis=1)))].astype(float)


def _smallest(subsets, permuted, k, bar) -> np.ndarray:
    """smallest[b]: least k of the subset vectors whose cosine with permuted[b] reaches the bar, else NaN."""
    norm = np.sqrt((subsets**2).sum(axis=1)[:, np.newaxis] * (permuted**2).sum(axis=1))
    products = subsets @ permuted.T  # whole numbers: exact
    meets = (products >= (bar - BAR_SLACK) * norm) & (norm > 0)
    return np.where(meets.any(axis=0), k[np.argmax(meets, axis=0)], np.nan)  # k rises along the subsets


def _p_value(null, observed) -> float:
    return float((1 + (null <= observed).sum()) / (len(null) + 1)) if not np.isnan(observed) else np.nan


def _matrix(table, axes, *, least, rows_least=2):
    """(values, row names, column names) of a DataFrame or array without missing values."""
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(np.asarray(table, dtype=float))
    values = frame.to_numpy(dtype=float)
    rows, columns = list(frame.index), list(frame.columns)
    if len(rows) < rows_least or len(columns) < least:
        raise ValueError(f"{axes} needs at least {rows_least} rows and {least} columns, got {values.shape}")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"{axes} holds a missing value at row {rows[row]!r}, column {columns[column]!r}")
    return values, rows, columns
