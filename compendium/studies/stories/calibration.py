"""Simulated studies of the size and shape of the one at hand, their truth known: who read which story is kept, what
they thought is drawn anew from what data/simulated/stories.yaml plants.

Each function makes the numbers that a notebook of the study prints, by the same call of `lib`, and says how often
their intervals hold the truth and how often their tests find what is not there. One dimension stands for the eleven,
which are alike but for their means. Axes: ratings[study, rating], means[study, story].
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from compendium.studies.stories.data import HIGHEST, LOWEST, Stories
from compendium.studies.stories.simulated import planted
from lib.agreement import krippendorff_alpha_interval
from lib.calibration import coverage, coverage_table, normal_rule, rounded_moments
from lib.correlation import correlate, rater_reliability, reliability_interval
from lib.mixed import crossed_effects
from lib.ranks import mann_whitney, spearman
from lib.selection import strongest_correlation

Z = stats.norm.ppf(0.975)
METRICS = 7


class Design(NamedTuple):
    """Who read what: story[rating] and rater[rating] (numbers from 0), machine[story] (1: written by a model)."""

    story: np.ndarray
    rater: np.ndarray
    machine: np.ndarray


class Truth(NamedTuple):
    """What estimators should find: mean[kind] of ratings (by people, by models), the share of the variance of single
    ratings that belongs to the story, and of the means of a story's ratings."""

    mean: np.ndarray
    single: float
    of_means: float


def design_of(data: Stories) -> Design:
    """The design of the ratings at hand; stories that nobody rated are left out."""
    story, stories = pd.factorize(data.ratings["story"])
    machine = (~data.human()).reindex(stories).to_numpy(dtype=int)
    return Design(story, pd.factorize(data.ratings["session"])[0], machine)


def truth(design: Design, means) -> Truth:
    """The truth behind `draw_ratings` with the same means[kind], rounding and the ends of the scale included."""
    bank = planted()["raters"]
    nodes, weights = normal_rule()
    noise = np.hypot(bank["rater_sd"], bank["noise_sd"])
    centre = np.asarray(means, dtype=float)[:, None] + bank["story_sd"] * nodes
    given, squares = rounded_moments(centre, noise, LOWEST, HIGHEST)  # [kind, node]
    mean, share = given @ weights, np.bincount(design.machine, minlength=2) / len(design.machine)
    within = share @ ((squares - given**2) @ weights)
    between = share @ ((given - share @ mean) ** 2 @ weights)
    k = len(design.machine) / (1 / np.bincount(design.story)).sum()
    return Truth(mean, between / (between + within), between / (between + within / k))


def draw_ratings(design: Design, means, *, studies: int, rng: np.random.Generator) -> np.ndarray:
    """ratings[study, rating], 1 to 5: a story's quality, a rater's leaning (the same for all they read), and noise
    around means[kind]."""
    bank, raters = planted()["raters"], design.rater.max() + 1
    quality = bank["story_sd"] * rng.standard_normal((studies, len(design.machine)))
    value = (np.asarray(means, dtype=float)[design.machine] + quality)[:, design.story]
    value += (bank["rater_sd"] * rng.standard_normal((studies, raters)))[:, design.rater]
    value += bank["noise_sd"] * rng.standard_normal(value.shape)
    return np.clip(np.rint(value), LOWEST, HIGHEST)


def story_means(ratings, design: Design) -> np.ndarray:
    """means[study, story]."""
    order = np.argsort(design.story, kind="stable")
    sizes = np.bincount(design.story)
    return np.add.reduceat(ratings[:, order], np.cumsum(sizes) - sizes, axis=1) / sizes


def standard_errors(design: Design) -> pd.DataFrame:
    """The standard error of the mean over the stories of each kind, before rounding: as the spread between stories shows
    it on average, and with what raters share. Columns over stories, with raters, coverage (what 1.96 of the former hold)."""
    bank, rows = planted()["raters"], {}
    for kind, name in enumerate(("by people", "by models")):
        mine = np.flatnonzero(design.machine == kind)
        seen = np.isin(design.story, mine)
        share = np.zeros((len(design.machine), design.rater.max() + 1))
        np.add.at(share, (design.story[seen], design.rater[seen]), 1.0)
        share = share[mine] / share[mine].sum(axis=1, keepdims=True)  # of a story's mean, by rater
        n, each = len(mine), bank["story_sd"] ** 2 + bank["noise_sd"] ** 2 * (share**2).sum(axis=1)
        leaning = bank["rater_sd"] ** 2
        total = each.sum() + leaning * (share.sum(axis=0) ** 2).sum()  # n^2 times the variance of the mean
        spread = each.sum() + leaning * (share**2).sum() - total / n  # n - 1 times the expected s^2
        over, right = np.sqrt(spread / (n - 1) / n), np.sqrt(total) / n
        rows[name] = {
            "over stories": over,
            "with raters": right,
            "coverage": 2 * stats.norm.cdf(Z * over / right) - 1,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def mean_coverage(ratings, design: Design, known: Truth) -> pd.DataFrame:
    """Table 1's means with 1.96 standard errors over stories, by people and by models, and their difference
    (03_scores)."""
    means, rows = story_means(ratings, design), {}
    halves = [means[:, design.machine == kind] for kind in (0, 1)]
    middle = np.array([half.mean(axis=1) for half in halves])
    error = np.array([stats.sem(half, axis=1) for half in halves])
    both = {
        "mean, by people": (middle[0], error[0], known.mean[0]),
        "mean, by models": (middle[1], error[1], known.mean[1]),
    }
    both["difference of the means"] = (middle[1] - middle[0], np.hypot(*error), known.mean[1] - known.mean[0])
    for name, (estimate, se, true) in both.items():
        rows[name] = coverage(estimate, estimate - Z * se, estimate + Z * se, true)
    return coverage_table(rows)


def reliability_coverage(
    ratings, design: Design, known: Truth, *, B: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Alpha and the reliability of a story's mean, stories resampled (04_reliability)."""
    order = np.argsort(design.story, kind="stable")
    ends = np.cumsum(np.bincount(design.story))[:-1]
    table = np.full((design.rater.max() + 1, len(design.machine)), np.nan)
    alphas, means = [], []
    for values in ratings:
        table[design.rater, design.story] = values
        alphas.append(krippendorff_alpha_interval(table, "interval", B=B, rng=rng))
        groups = np.split(values[order], ends)
        found = reliability_interval(groups, B=B, rng=rng)["mean"]
        means.append((rater_reliability(groups).mean, found.lo, found.hi))
    return coverage_table(
        {
            "Krippendorff's alpha": coverage(*np.transpose(alphas), known.single),
            "ICC(1,k), a story's mean": coverage(*np.transpose(means), known.of_means),
        }
    )


def mixed_coverage(ratings, design: Design, known: Truth) -> tuple[pd.DataFrame, np.ndarray]:
    """(frame, p[study]): the mixed model's difference between stories by models and by people, Wald's interval and p
    (10_mixed_model), by `lib.mixed.crossed_effects`."""
    terms = pd.DataFrame({"intercept": 1.0, "by a model": design.machine[design.story].astype(float)})
    groups = {"story": design.story, "rater": design.rater}
    estimate, se = (part[:, 1] for part in crossed_effects(ratings.T, terms, groups))
    found = coverage(estimate, estimate - Z * se, estimate + Z * se, known.mean[1] - known.mean[0])
    return coverage_table({"mixed model, by a model": found}), 2 * stats.norm.sf(np.abs(estimate / se))


def mann_whitney_p(ratings, design: Design) -> np.ndarray:
    """p[study] of Table 1: stories by people against stories by models (03_scores)."""
    machine = design.machine == 1
    return np.array([mann_whitney(row[~machine], row[machine]).p for row in story_means(ratings, design)])


def correlation_p(ratings, design: Design, *, rng: np.random.Generator) -> dict:
    """p[study, ...] of metrics and a judge that know nothing of the ratings: Spearman's with seven metrics
    (06_metrics_and_people), Kendall's with a judge of whole points, over stories by people (07_judge_and_people)."""
    means, bank = story_means(ratings, design), planted()["judge"]
    human = design.machine == 0
    metrics = rng.standard_normal((len(means), METRICS, means.shape[1]))
    feeling = bank["means"]["authenticity"][0] + bank["spread"][0] * rng.standard_normal(means.shape)
    scores = np.clip(np.rint(feeling), LOWEST, HIGHEST)
    pairs = list(zip(metrics, means, strict=True))
    tau = [correlate(a[human], b[human], "kendall")[1] for a, b in zip(scores, means, strict=True)]
    rho = {
        "rho": np.array([[correlate(one, row)[1] for one in rows] for rows, row in pairs]),
        "rho, one half": np.array([correlate(rows[0][human], row[human])[1] for rows, row in pairs]),
    }
    return {**rho, "tau": np.array(tau)}


def strongest_coverage(
    ratings, design: Design, pull, *, B: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """(frame, excludes[study]): the interval of the strongest of seven metrics (06_metrics_and_people) against the
    chosen one's own truth, and whether it leaves out 0.

    pull: how far the last metric follows the stories' means (a weight, the others less and less; 0: none does). A
    metric's truth is its mean rho over the studies.
    """
    means = story_means(ratings, design)
    level = (means - means.mean(axis=1, keepdims=True)) / means.std(axis=1, keepdims=True)
    weights = np.linspace(0, pull, METRICS)[:, None]
    metrics = weights * level[:, None] + rng.standard_normal((len(means), METRICS, means.shape[1]))
    true = spearman(metrics, means[:, None]).mean(axis=0) if pull else np.zeros(METRICS)
    found = [strongest_correlation(rows, row, B=B, rng=rng) for rows, row in zip(metrics, means)]
    place, estimate, lo, hi = np.transpose(found)
    frame = coverage_table({"strongest": coverage(estimate, lo, hi, true[place.astype(int)])})
    return frame, (lo > 0) | (hi < 0)
