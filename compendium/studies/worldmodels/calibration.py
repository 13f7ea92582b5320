"""Simulated studies of nine games, nine situations and fourteen cultural cases, as spread as the one at hand, their
truth known.

Each function makes the numbers that a notebook of the study prints, by the same call of `lib`, and says how often
their intervals hold the truth and how often their tests find what is not there. A score is a normal variable cut off
at 0 and 1 (many candidates *are* the reference), made of what a case does to all runs and of what a run does alone.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.posg.structure import structure_profile
from compendium.studies.worldmodels.scores import REFERENCE_METRICS
from lib.calibration import coverage, coverage_table
from lib.correlation import rater_reliability
from lib.means import mean_interval
from lib.paired import paired_difference
from lib.proportions import wilson_interval
from lib.resampling import bootstrap
from lib.selection import permuted_correlations


class Spread(NamedTuple):
    """A score before it is cut off: its mean, and standard deviations between cases and between the runs of one."""

    mean: float
    case: float
    run: float


def spread_of(scores: pd.DataFrame, value: str) -> Spread:
    """The spread of a column over case and run, by analysis of variance in each model, pooled over models.

    scores: columns model, case and `value`, a row a run. Where nobody has two runs of a case, models stand for runs.
    Cut-off scores stand for themselves here, so a simulated study is a little less spread than the one at hand.
    """
    found = [rater_reliability(runs) for runs in _runs(scores, value)]
    between, within = (
        float(np.mean([getattr(one, name) for one in found])) for name in ("between", "within")
    )
    return Spread(float(scores[value].mean()), between**0.5, within**0.5)


def alike(scores: pd.DataFrame, value: str) -> float:
    """The correlation of two runs of one case in a column of passes and failures, over models; at least 0.01."""
    pairs = [run for runs in _runs(scores, value) for run in runs]
    return max(rater_reliability(pairs).single, 0.01)


def _runs(scores, value) -> list:
    """[[the values of each case's runs] of each model with two runs of some case], or of all models as one."""
    seen = scores.dropna(subset=[value]).assign(value=lambda frame: frame[value].astype(float))
    groups = [mine for _, mine in seen.groupby("model") if mine.groupby("case").size().max() > 1] or [seen]
    return [[run.to_numpy() for _, run in mine.groupby("case")["value"]] for mine in groups]


def true_mean(mean: float, sd: float) -> float:
    """The mean of a normal variable cut off at 0 and 1.

    >>> round(true_mean(0.5, 10.0), 3), round(true_mean(0.9, 1e-6), 3)
    (0.5, 0.9)
    """
    low, high = -mean / sd, (1 - mean) / sd
    inside = stats.norm.cdf(high) - stats.norm.cdf(low)
    return float(mean * inside + sd * (stats.norm.pdf(low) - stats.norm.pdf(high)) + stats.norm.sf(high))


def f1_coverage(
    spread: Spread, *, cases: int, runs: int, valid: float, studies: int, B: int, rng
) -> pd.DataFrame:
    """Table 2's mean F1 of one model, cases as units (03_scores): Student's interval, and the percentile bootstrap that
    the paper names. valid: the chance that a run is valid and counts."""
    true, found = true_mean(spread.mean, np.hypot(spread.case, spread.run)), {"Student": [], "bootstrap": []}
    labels = np.repeat(np.arange(cases), runs)
    for _ in range(studies):
        case = spread.case * np.repeat(rng.standard_normal(cases), runs)
        score = np.clip(spread.mean + case + spread.run * rng.standard_normal(len(labels)), 0, 1)
        kept = rng.random(len(labels)) < valid
        kept[rng.integers(len(kept), size=2)] = True
        options = {"B": B, "rng": rng, "clusters": labels[kept]}
        found["Student"].append(mean_interval(score[kept], **options))
        found["bootstrap"].append(bootstrap(score[kept], **options))
    return coverage_table(
        {f"mean F1, {name}": coverage(*np.transpose(one), true) for name, one in found.items()}
    )


def share_coverage(
    share: float, together: float, *, cases: int, runs: int, studies: int, rng
) -> pd.DataFrame:
    """Wilson's interval of a share of valid candidates (02_judge, 04_reliability), cases x runs of them, and Student's
    with cases as units; the truth is the share over *these* cases, or over cases of their kind.

    together: the correlation of two runs of one case; a case's chance is drawn from a beta distribution."""
    size = 1 / together - 1
    chance = rng.beta(share * size, (1 - share) * size, (studies, cases))
    passed = rng.binomial(runs, chance)
    estimate, (lo, hi) = (
        passed.sum(axis=1) / (cases * runs),
        wilson_interval(passed.sum(axis=1), cases * runs),
    )
    student = mean_interval(passed / runs, B=2, rng=rng)
    name = f"share valid of {cases * runs}"
    found = {
        f"{name}, these cases": coverage(estimate, lo, hi, chance.mean(axis=1)),
        f"{name}, cases of their kind": coverage(estimate, lo, hi, share),
    }
    if runs > 1:
        student = mean_interval(passed / runs, B=2, rng=rng)
        found[f"{name}, cases of their kind, Student"] = coverage(*student, share)
    return coverage_table(found)


def location_coverage(
    spread: Spread, shift: float, *, cases: int, studies: int, B: int, rng
) -> tuple[pd.DataFrame, np.ndarray]:
    """(frame, p[study]): the mean difference with and without location over cases that have both (06_location)."""
    case = spread.case * rng.standard_normal((studies, cases, 1))
    noise = spread.run * rng.standard_normal((studies, cases, 2))
    scores = np.clip(spread.mean + case + noise + np.array([0.0, shift]), 0, 1)
    sd = np.hypot(spread.case, spread.run)
    true = true_mean(spread.mean + shift, sd) - true_mean(spread.mean, sd)
    found = [paired_difference(*pair.T, B=B, rng=rng) for pair in scores]
    frame = coverage_table(
        {f"effect of location, {shift:+g}": coverage(*np.transpose([one[:3] for one in found]), true)}
    )
    return frame, np.array([one.p for one in found])


def reference_size(games, spread: Spread, *, runs: int, studies: int, B: int, rng) -> dict:
    """p of the six properties of the references with mean F1 where none matters (04_reliability): {"each": p[study,
    property], "strongest": p[study] corrected for the choice}."""
    profiles = [structure_profile(corpus()[case].game) for case in games]
    shape = np.array([[profile[name] for profile in profiles] for name in REFERENCE_METRICS], dtype=float)
    sd = np.hypot(spread.case, spread.run / np.sqrt(runs))
    means = np.clip(spread.mean + sd * rng.standard_normal((studies, len(games))), 0, 1)
    found = [permuted_correlations(shape, row, B=B, rng=rng) for row in means]
    return {
        "each": np.array([one.p for one in found]),
        "strongest": np.array([one.p_strongest for one in found]),
    }
