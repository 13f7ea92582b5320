"""Simulated studies of few and of many queries, as skewed as the one at hand, their truth known.

Each function makes the numbers that a notebook of the study prints, by the same call of `lib`, and says how often
their intervals hold the truth and how often their tests find what is not there. A utility is a query's richness, the
same for all models, times what the model makes of it; both are gamma variables, skewed and above 0.
Axes: utilities[study, query, model].
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from compendium.studies.create.data import half_width
from lib.agreement import krippendorff_alpha_interval
from lib.calibration import coverage, coverage_table, normal_rule, rejections, rounded_moments
from lib.means import mean_interval
from lib.paired import paired_difference
from lib.proportions import wilson_interval
from lib.rankings import mean_replicates, pair_p
from lib.resampling import bootstrap

SCALE = (1, 5)  # of the annotators
RATING_SD = 1.1  # points, of their ratings
OBJECTS, LISTS = 5, 10  # of the alternative uses test
OBJECT_SD, LIST_SD = 0.04, 0.02  # of originality, between objects and between lists for one


class World(NamedTuple):
    """Squared coefficients of variation: of a query's richness, and of what a model makes of it."""

    query: float
    own: float


def world_of(by_query: pd.Series) -> World:
    """The world whose coefficient of variation, pooled over models, and mean correlation between models are those of
    utilities by (source, query)."""
    wide = by_query.unstack("source")
    squared = float(((wide.std() / wide.mean()) ** 2).mean())
    together = wide.corr().to_numpy()[np.triu_indices(wide.shape[1], k=1)]
    query = max(float(np.nanmean(together)), 0.0) * squared
    return World(query, (1 + squared) / (1 + query) - 1)


def draw_utilities(world: World, *, models: int, queries: int, studies: int, rng) -> np.ndarray:
    """utilities[study, query, model], each with mean 1: models that do not differ."""
    richness = _gamma(world.query, (studies, queries, 1), rng)
    return richness * _gamma(world.own, (studies, queries, models), rng)


def mean_coverage(world: World, sizes, *, studies: int, B: int, rng) -> pd.DataFrame:
    """The mean utility of one model over so many queries (03_scores), by `mean_interval` and by resampling."""
    found = {}
    for n in sizes:
        values = draw_utilities(world, models=1, queries=n, studies=studies, rng=rng)[..., 0]
        found[f"mean of {n} queries"] = [mean_interval(row, B=B, rng=rng) for row in values]
        found[f"mean of {n} queries, resampled"] = [bootstrap(row, B=B, rng=rng) for row in values]
    return coverage_table({name: coverage(*np.transpose(rows), 1.0) for name, rows in found.items()})


def paired_calibration(world: World, sizes, *, studies: int, B: int, rng) -> tuple[pd.DataFrame, dict]:
    """(frame, {name: `Size`}) of two models that do not differ over so many shared queries (05_significance,
    06_variations), by `paired_difference`, and of the p that resampling alone would give."""
    intervals, sizes_found = {}, {}
    for n in sizes:
        pairs = draw_utilities(world, models=2, queries=n, studies=studies, rng=rng)
        found = [paired_difference(*pair.T, B=B, rng=rng) for pair in pairs]
        intervals[f"difference over {n} pairs"] = coverage(*np.transpose([one[:3] for one in found]), 0.0)
        sizes_found[f"{n} pairs"] = rejections([one.p for one in found])
        drawn = [pair_p(mean_replicates(pair, paired=True, B=B, rng=rng))[0, 1] for pair in pairs]
        sizes_found[f"{n} pairs, resampled"] = rejections(drawn)
    return coverage_table(intervals), sizes_found


def family_p(world: World, *, models: int, queries: int, studies: int, B: int, rng) -> np.ndarray:
    """p[study] of the least of all pairs of models that do not differ, after Bonferroni (05_significance)."""
    pairs = list(combinations(range(models), 2))
    least = []
    for scores in draw_utilities(world, models=models, queries=queries, studies=studies, rng=rng):
        least.append(min(paired_difference(scores[:, a], scores[:, b], B=B, rng=rng).p for a, b in pairs))
    return np.minimum(1.0, len(pairs) * np.array(least))


def projected_coverage(
    world: World, *, models: int, queries: int, board: int, studies: int, rng
) -> pd.DataFrame:
    """A leaderboard's mean over `board` queries with the interval projected from the queries at hand (05_significance)."""
    here = draw_utilities(world, models=models, queries=queries, studies=studies, rng=rng)
    cv = np.sqrt(((here.std(axis=1, ddof=1) / here.mean(axis=1)) ** 2).mean(axis=1))
    mean = np.array(
        [draw_utilities(world, models=1, queries=board, studies=1, rng=rng).mean() for _ in range(studies)]
    )
    reach = half_width(mean, cv, board)
    return coverage_table(
        {f"leaderboard mean, projected to {board}": coverage(mean, mean - reach, mean + reach, 1.0)}
    )


def alpha_coverage(reliability: float, sizes, *, studies: int, B: int, rng) -> pd.DataFrame:
    """Alpha of two annotators who give whole points (04_reliability), over so many paths or sets; `reliability` is
    that of a rating before rounding."""
    at, weights = normal_rule()
    shared, own = RATING_SD * reliability**0.5, RATING_SD * (1 - reliability) ** 0.5
    given, squares = rounded_moments(np.mean(SCALE) + shared * at, own, *SCALE)
    between = weights @ given**2 - (weights @ given) ** 2
    true = between / (between + weights @ (squares - given**2))
    found = {}
    for n in sizes:
        value = (
            np.mean(SCALE)
            + shared * rng.standard_normal((studies, 1, n))
            + own * rng.standard_normal((studies, 2, n))
        )
        ratings = np.clip(np.rint(value), *SCALE)
        rows = krippendorff_alpha_interval(ratings, "interval", B=B, rng=rng)
        found[f"alpha of {n}"] = coverage(*rows, true)
    return coverage_table(found)


def baseline_coverage(share: float, items: int, *, studies: int, rng) -> pd.DataFrame:
    """The tests of human creativity (10_baselines): Wilson's interval of a share of right answers, and Student's of
    originality over lists of alternative uses, five objects with ten lists each: over these objects, and over others."""
    right = rng.binomial(items, share, studies)
    lo, hi = wilson_interval(right, items)
    of_object = OBJECT_SD * rng.standard_normal((studies, OBJECTS, 1))
    lists = of_object + LIST_SD * rng.standard_normal((studies, OBJECTS, LISTS))
    found = mean_interval(lists.reshape(studies, -1), B=2, rng=rng)
    return coverage_table(
        {
            f"remote associates, {items} items": coverage(right / items, lo, hi, share),
            "alternative uses, these objects": coverage(*found, of_object.mean(axis=(1, 2))),
            "alternative uses, any objects": coverage(*found, 0.0),
        }
    )


def _gamma(squared: float, shape, rng) -> np.ndarray:
    """Gamma variables of mean 1 and this squared coefficient of variation."""
    return rng.gamma(1 / squared, squared, shape) if squared > 0 else np.ones(shape)
