"""Simulated games and rosters whose truth is known: how often the study's intervals hold it.

The game at hand is taken for the world: its atoms (run, portfolio, archetype) are all there are, a simulated study
draws as many of each portfolio as it has, and the study's intervals resample that study's atoms as the paper does
(the double bootstrap: Efron 1983; Hall 1986). For the correlations with a keyed test, models are drawn from a
bivariate normal distribution.
"""

import numpy as np
import pandas as pd

from compendium.studies.metanym import external
from compendium.studies.metanym.components import AtomTable, apart_weights, joint_replicates
from compendium.studies.metanym.exam import LETTERS, key_balance
from lib.calibration import Coverage, Size, coverage, coverage_table, rejections
from lib.correlation import fisher_interval
from lib.means import mean_interval
from lib.proportions import wilson_interval
from lib.rankings import rank_intervals
from lib.ranks import ranks
from lib.resampling import bootstrap, percentile_interval

COMPONENTS = ("T", "G", "E", "GF", "GC", "EF", "EC", "loading", "collapsed")
SKILL_SD, MEASURED_SD, QUESTIONS = 1.3, 0.12, 198  # of totals, of their measurement; of the keyed test


def joint_coverage(
    table: AtomTable, council, *, studies: int, B: int, rng
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(intervals, ranks): coverage of the joint intervals of the components (05_council, 06_contest) and of the
    intervals of ranks by the total (13_leaderboard), each as the mean over the models but the anchor, which reads 7
    by definition. The bounds take the models of one study for one."""
    others = np.flatnonzero(np.arange(len(table.game.models)) != table.game.anchor_index)
    drawn = apart_weights(table.portfolio_of, studies, rng)
    again = np.array([rng.multinomial(table.n_atoms, row / table.n_atoms, size=B) for row in drawn])
    true = joint_replicates(table, np.ones((1, table.n_atoms)), council)
    one = joint_replicates(table, drawn, council)
    many = joint_replicates(table, again.reshape(-1, table.n_atoms), council)
    found, places = {}, {}
    for name in COMPONENTS:
        inner = many[name].reshape(studies, B, -1)[..., others]
        interval = percentile_interval(one[name][:, others], np.moveaxis(inner, 1, -1))
        seen = ~np.isnan(true[name][0, others])  # a judge without a consistency has no E^C and no T
        found[name] = _mean(
            coverage(*(part[:, seen] for part in interval), true[name][0, others][seen]), studies
        )
    totals, standing = many["T"].reshape(studies, B, -1)[..., others], true["T"][0, others]
    seen = ~np.isnan(standing)
    bounds = np.array([rank_intervals(study[:, seen]) for study in totals])
    own = ranks(one["T"][:, others][:, seen], method="competition")
    place = ranks(standing[seen], method="competition")
    for position in (0, seen.sum() // 2, seen.sum() - 1):
        at = int(np.argsort(place, kind="stable")[position])
        label = f"rank {position + 1} of {seen.sum()}"
        places[label] = coverage(own[:, at], bounds[:, 0, at], bounds[:, 1, at], place[at])
    places["rank, mean of all"] = _mean(coverage(own, bounds[:, 0], bounds[:, 1], place), studies)
    return coverage_table(found), coverage_table(places)


def means_coverage(values, *, studies: int, B: int, rng) -> pd.DataFrame:
    """The mean of a portfolio's archetypes, values[portfolio, archetype] taken for all there are, by the percentile
    bootstrap (03_factual, as the paper) and by Student's interval."""
    values = np.asarray(values, dtype=float)
    true, n = values.mean(axis=1), values.shape[1]
    drawn = values[:, rng.integers(0, n, size=(studies, n))]  # [portfolio, study, archetype]
    found = {"resampled": bootstrap(drawn, B=B, rng=rng), "Student": mean_interval(drawn, B=B, rng=rng)}
    return coverage_table(
        {
            f"mean of {n} archetypes, {name}": _mean(coverage(*(part.T for part in interval), true), studies)
            for name, interval in found.items()
        }
    )


def correlation_coverage(rhos, *, models: int, studies: int, B: int, rng) -> pd.DataFrame:
    """Pearson's r of so few models with a keyed test (07_external, Table 9): Fisher's z and BCa, at true values rhos."""
    found = {}
    for rho in rhos:
        first, other = rng.standard_normal((2, studies, models))
        second = rho * first + np.sqrt(1 - rho**2) * other
        r = external.correlation(first, second)
        lo, hi = fisher_interval(r, models)
        found[f"r = {rho:.2f}, Fisher"] = coverage(r, lo, hi, rho)
        bounds = np.array([external.bca_interval(*pair, B=B, rng=rng) for pair in zip(first, second)])
        found[f"r = {rho:.2f}, BCa"] = coverage(r, *bounds.T, rho)
    return coverage_table(found)


def error_coverage(rho: float, *, models: int, studies: int, B: int, rng) -> pd.DataFrame:
    """Table 10's intervals of r (07_external): other models; the same models measured again, whose truth is their own
    correlation without error; both, whose truth is that of measured models of the kind."""
    skill = SKILL_SD * rng.standard_normal((studies, models))
    logit = 0.6 + 1.1 * (rho * skill / SKILL_SD + np.sqrt(1 - rho**2) * rng.standard_normal(skill.shape))
    share = 1 / (1 + np.exp(-logit))
    total = skill + MEASURED_SD * rng.standard_normal(skill.shape)
    correct = rng.binomial(QUESTIONS, share)
    own, measured = external.correlation(skill, share), external.correlation(total.ravel(), correct.ravel())
    found = {name: [] for name in ("models", "measurement", "both")}
    names = [f"m{i}" for i in range(models)]
    for row, right in zip(total, correct):
        replicates = row + MEASURED_SD * rng.standard_normal((B, models))
        table = external.propagated_error(
            pd.Series(row, names), replicates, pd.Series(right, names), QUESTIONS, rng=rng
        )
        for name in found:
            found[name].append(table.loc[name, ["r_lo", "r_hi"]].to_numpy(dtype=float))
    r, truths = (
        external.correlation(total, correct),
        {"models": measured, "measurement": own, "both": measured},
    )
    return coverage_table(
        {f"r, {name}": coverage(r, *np.transpose(rows), truths[name]) for name, rows in found.items()}
    )


def key_size(questions: int, *, studies: int, rng) -> Size:
    """How often a key drawn evenly over four letters is called unbalanced (07_external)."""
    counts = rng.multinomial(questions, [1 / len(LETTERS)] * len(LETTERS), size=studies)
    return rejections([key_balance(np.repeat(list(LETTERS), row)).p for row in counts])


def _mean(found: Coverage, studies: int) -> Coverage:
    """Coverage averaged over the models, with the bounds that so many studies of one model would have."""
    share = float(np.mean(found.share))
    lo, hi = wilson_interval(share * studies, studies)
    return Coverage(share, float(lo), float(hi), float(np.mean(found.bias)), float(np.mean(found.width)))
