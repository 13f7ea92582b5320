"""The AlienBench analysis written the straightforward way: a Python loop over replicates, scipy and the
`krippendorff` package inside it. The peer of bench_alienbench.py, and an independent check on its values.

A `Stopwatch` adds up what the loops would take at full length: work inside `watch.loop(part, share)` is timed
on `share` of the replicates and counted 1 / share times; fixed work (share 1) counts as it is.
"""

from contextlib import contextmanager
from itertools import combinations
from time import perf_counter

import krippendorff
import numpy as np
from scipy import stats


class Stopwatch:
    """Seconds spent and seconds a full run would take, in parts."""

    def __init__(self):
        self.spent, self.full, self.parts = 0.0, 0.0, {}

    @contextmanager
    def loop(self, part, share=1.0):
        start = perf_counter()
        yield
        seconds = perf_counter() - start
        self.spent += seconds
        self.full += seconds / share
        self.parts[part] = self.parts.get(part, 0.0) + seconds / share


def mean_interval(values, B, rng):
    """values[unit]: lo, hi of the mean."""
    means = [rng.choice(values, len(values)).mean() for _ in range(B)]
    return np.percentile(means, [2.5, 97.5])


def alpha(ratings, level):
    """ratings[rater, unit]."""
    return krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)


def alpha_interval(ratings, level, B, rng):
    n = ratings.shape[1]
    return np.percentile([alpha(ratings[:, rng.integers(0, n, n)], level) for _ in range(B)], [2.5, 97.5])


def rank_biserial(first, second):
    return 2 * stats.mannwhitneyu(second, first).statistic / (len(first) * len(second)) - 1


def rank_biserial_interval(first, second, B, rng):
    found = [rank_biserial(rng.choice(first, len(first)), rng.choice(second, len(second))) for _ in range(B)]
    return np.percentile(found, [2.5, 97.5])


def spearman_null(first, second, B, rng):
    return np.array([stats.spearmanr(first, rng.permutation(second)).statistic for _ in range(B)])


def subset_rows(rates):
    """(k, rho, tau, MAD) of every subset of the features of rates[model, feature]."""
    full, rows = np.round(rates.sum(axis=1), 9), []
    for k in range(1, rates.shape[1] + 1):
        for features in combinations(range(rates.shape[1]), k):
            part = np.round(rates[:, list(features)].sum(axis=1), 9)
            rows.append(
                (
                    k,
                    stats.spearmanr(part, full).statistic,
                    stats.kendalltau(part, full).statistic,
                    np.abs(full - part).mean(),
                )
            )
    return rows


def smallest_k(rates, target, rho_bar, tau_bar):
    """Least k whose best subset reaches each bar against target[model]; stops when both are found."""
    found = {"rho": np.inf, "tau": np.inf}
    for k in range(1, rates.shape[1] + 1):
        for features in combinations(range(rates.shape[1]), k):
            part = np.round(rates[:, list(features)].sum(axis=1), 9)
            if stats.spearmanr(part, target).statistic >= rho_bar - 1e-12:
                found["rho"] = min(found["rho"], k)
            if stats.kendalltau(part, target).statistic >= tau_bar - 1e-12:
                found["tau"] = min(found["tau"], k)
        if np.isfinite(list(found.values())).all():
            break
    return found["rho"], found["tau"]


def smallest_k_null(rates, B, rng, rho_bar, tau_bar):
    full = np.round(rates.sum(axis=1), 9)
    return [smallest_k(rates, rng.permutation(full), rho_bar, tau_bar) for _ in range(B)]


def power_at(shift, n, alpha_level, simulations, seed):
    """Share of simulated studies whose test rejects; the same seed gives every shift the same samples."""
    rng, rejected = np.random.default_rng(seed), 0
    for _ in range(simulations):
        first, second = rng.standard_normal(n), rng.standard_normal(n)
        rejected += stats.mannwhitneyu(first, second + shift).pvalue <= alpha_level
    return rejected / simulations


def minimum_detectable_shift(n, alpha_level, power, simulations, seed):
    low, high = 0.0, 2.0
    while high - low > 0.001:
        middle = (low + high) / 2
        if power_at(middle, n, alpha_level, simulations, seed) >= power:
            high = middle
        else:
            low = middle
    return high


def analysis(study, settings, shares):
    """All cells of the study by loops. shares: how much of B, of B_min_k and of the simulations to run.

    Returns (cells, stopwatch); interval and null cells rest on the shortened loops.
    """
    watch, cells, rng = Stopwatch(), {}, np.random.default_rng(settings.seed)
    B = max(2, round(settings.B * shares["B"]))
    share = B / settings.B
    values, owner = study.values, study.generations["model"].to_numpy()
    setting = study.generations["condition"].to_numpy()
    tokens = study.generations["completion_tokens"].to_numpy(dtype=float)
    main = np.isin(setting, settings.conditions)
    with watch.loop("scores"):
        totals = values.sum(axis=2)
        scores = totals.mean(axis=1)
        pooled = {name: scores[setting == name] for name in settings.conditions}
    for model in settings.models:
        own = scores[main & (owner == model)]
        dense = own / tokens[main & (owner == model)] * 100
        cells["overall", model], cells["per_100", model] = own.mean(), dense.mean()
        with watch.loop("means: 20 intervals", share):
            mean_interval(own, B, rng)
            mean_interval(dense, B, rng)
    with watch.loop("alpha: 11 values"):
        cells["alpha", "total"] = alpha(totals[main].T, "interval")
        for number, feature in enumerate(study.features):
            cells["alpha", feature] = alpha(values[main, :, number].T, "nominal")
    with watch.loop("alpha: 11 intervals", share):
        alpha_interval(totals[main].T, "interval", B, rng)
        for number in range(len(study.features)):
            alpha_interval(values[main, :, number].T, "nominal", B, rng)
    pairs = list(combinations(settings.conditions, 2))
    with watch.loop("condition tests"):
        cells["H",] = stats.kruskal(*pooled.values()).statistic
        for first, second in pairs:
            cells["r", first, second] = rank_biserial(pooled[first], pooled[second])
    with watch.loop("rank-biserial: 15 intervals", share):
        for first, second in pairs:
            rank_biserial_interval(pooled[first], pooled[second], B, rng)
    simulations = max(20, round(settings.simulations * shares["simulations"]))
    with watch.loop("minimum detectable effect", simulations / settings.simulations):
        minimum_detectable_shift(len(pooled[pairs[0][0]]), 0.05 / len(pairs), 0.8, simulations, settings.seed)
    with watch.loop("wordings"):
        means = {
            name: np.array([scores[(owner == model) & (setting == name)].mean() for model in settings.models])
            for name in settings.wordings
        }
        for first, second in combinations(settings.wordings, 2):
            a, b = means[first], means[second]
            cells["rho", first, second] = stats.spearmanr(np.round(a, 9), np.round(b, 9)).statistic
            cells["mad", first, second] = np.abs(a - b).mean()
    with watch.loop("wordings: 30 nulls", share):
        for first in settings.wordings:
            for second in settings.wordings:
                if first != second:
                    np.percentile(spearman_null(means[first], means[second], B, rng), [2.5, 97.5])
    with watch.loop("features: leave one out, all subsets"):
        panel = values.mean(axis=1)
        rates = np.array([panel[main & (owner == model)].mean(axis=0) for model in settings.models])
        full = np.round(rates.sum(axis=1), 9)
        for number, feature in enumerate(study.features):
            part = np.round(np.delete(rates, number, axis=1).sum(axis=1), 9)
            cells["loo", feature] = stats.spearmanr(part, full).statistic
        rows = np.array(subset_rows(rates))
        for k in range(1, rates.shape[1] + 1):
            cells["median_rho", k] = np.median(rows[rows[:, 0] == k, 1])
            cells["best_tau", k] = rows[rows[:, 0] == k, 2].max()
            cells["min_mad", k] = rows[rows[:, 0] == k, 3].min()
        cells["k_rho",], cells["k_tau",] = smallest_k(rates, full, 0.9, 0.8)
        columns = np.round(rates, 9).T
        rho = [stats.spearmanr(first, second).statistic for first, second in combinations(columns, 2)]
        cells["pairwise",] = np.mean(rho)
    runs = max(1, round(settings.B_min_k * shares["B_min_k"]))
    with watch.loop("features: null of the smallest k", runs / settings.B_min_k):
        smallest_k_null(rates, runs, rng, 0.9, 0.8)
    with watch.loop("judges"):
        by_judge = np.array(
            [
                [totals[main & (owner == model), judge].mean() for model in settings.models]
                for judge in range(len(study.judges))
            ]
        )
    for number, judge in enumerate(study.judges):
        with watch.loop("judges"):
            rest = np.delete(by_judge, number, axis=0).mean(axis=0)
            cells["judge_rho", judge] = stats.spearmanr(by_judge[number], rest).statistic
            cells["judge_alpha", judge] = alpha(np.delete(totals[main], number, axis=1).T, "interval")
        with watch.loop("judges: 3 nulls", share):
            np.percentile(spearman_null(by_judge[number], rest, B, rng), [2.5, 97.5])
    return cells, watch
