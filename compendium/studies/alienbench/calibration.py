"""Repeated simulated studies with a known truth: coverage, bias, power, and how large a study should be.

Labels are drawn straight from the truth of `compendium.studies.alienbench.simulated.truth`, as arrays and without texts; the
texts that the demo's models write carry labels of the same distribution (a test holds the two together).
Axes: labels[study, model, condition, sample, judge, feature], 0 or 1.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special

from compendium.studies.alienbench.simulated.truth import CONDITIONS, HUMAN, Truth
from lib.agreement import krippendorff_alpha_interval
from lib.calibration import Coverage, coverage
from lib.proportions import wilson_interval
from lib.ranks import rank_biserial_interval, ranks, spearman
from lib.resampling import Interval, bootstrap, bootstrap_weights, percentile_interval

CONTINUITY = 0.5


def draw_labels(
    known: Truth, *, studies: int, n: int, rng: np.random.Generator, conditions=CONDITIONS
) -> np.ndarray:
    """labels[study, model, condition, sample, judge, feature] (uint8) of the ten subject models, n samples a
    cell.

    Raises ValueError for fewer than one study or sample, or a condition that the study does not have.
    """
    if studies < 1 or n < 1:
        raise ValueError(f"studies and n should be at least 1, not {studies} and {n}")
    models = [model for model in known.models if model != HUMAN]
    cells = [[known.place(model, condition) for condition in conditions] for model in models]
    shape = (studies, len(models), len(cells[0]), n, len(known.judges), len(known.features))
    labels = np.empty(shape, np.uint8)
    steps = np.cumsum(known.vote_odds)[:-1]
    votes = known.votes.astype(np.uint8)
    for row, columns in enumerate(cells):
        for column, at in enumerate(columns):
            ladder = np.cumsum(known.states[at])[:-1]
            state = np.searchsorted(ladder, rng.random((studies, n)), side="right")
            x = (state[..., None] >> np.arange(len(known.features)) & 1).astype(np.uint8)
            odds = known.contested[:, at[0], at[1]]
            contested = rng.random(x.shape) < np.where(x == 1, odds[1], odds[0])
            dissent = votes[np.searchsorted(steps, rng.random(x.shape), side="right")]
            cell = np.where(contested[..., None], dissent, x[..., None])
            labels[:, row, column] = cell.swapaxes(-1, -2)
    return labels


def panel_scores(labels) -> np.ndarray:
    """Ward Departure Scores: mean over judges of the sum of features, labels[..., judge, feature] ->
    scores[...]."""
    return labels.sum(axis=-1, dtype=float).mean(axis=-1)


def expected_scores(known: Truth, conditions=CONDITIONS) -> np.ndarray:
    """The true mean score of each cell, [model, condition], of the subject models."""
    columns = [known.conditions.index(condition) for condition in conditions]
    return known.rates[:-1, columns].sum(axis=-1)


def score_distribution(known: Truth, conditions=CONDITIONS) -> np.ndarray:
    """pmf[model, condition, level] of a description's score: level k is the score k / judges. Exact.

    A panel's sum is a sum over features that are independent given the pattern x of departures, so its
    generating function is a product, taken at roots of unity and transformed back.
    """
    judges, features = len(known.judges), len(known.features)
    levels = judges * features + 1
    roots = np.exp(-2j * np.pi * np.arange(levels) / levels)
    dissent = (known.vote_odds * roots[:, None] ** known.votes.sum(axis=1)).sum(axis=1)
    columns = [known.conditions.index(condition) for condition in conditions]
    pmf = np.empty((len(known.models) - 1, len(columns), levels))
    for row, column in np.ndindex(pmf.shape[:2]):
        at = row, columns[column]
        zero, one = known.contested[:, at[0], at[1], :, None]
        no, yes = 1 - zero + zero * dissent, (1 - one) * roots**judges + one * dissent
        transform = known.states[at][:, None]
        for feature in reversed(range(features)):  # the highest bit of a state's number first
            half = len(transform) // 2
            transform = transform[:half] * no[feature] + transform[half:] * yes[feature]
        pmf[row, column] = np.fft.ifft(transform[0]).real
    return np.clip(pmf, 0, None) / np.clip(pmf, 0, None).sum(axis=-1, keepdims=True)


def rank_biserial(first_pmf, second_pmf) -> float | np.ndarray:
    """P(second > first) - P(second < first) for two distributions pmf[..., level] over the same levels."""
    first_pmf, second_pmf = np.asarray(first_pmf), np.asarray(second_pmf)
    below = np.cumsum(first_pmf, axis=-1) - first_pmf
    above = first_pmf.sum(axis=-1, keepdims=True) - below - first_pmf
    return (second_pmf * (below - above)).sum(axis=-1)


def stratified_bootstrap(values, *, B: int, rng: np.random.Generator) -> Interval:
    """Percentile interval of the mean over strata of values[..., stratum, unit], units resampled in each.

    The design's own variance where the strata (here: prompt conditions) are fixed and only units are sampled.
    All rows of the batch share the draws.
    """
    values = np.asarray(values, dtype=float)
    strata, n = values.shape[-2:]
    replicates = sum(values[..., stratum, :] @ bootstrap_weights(n, B, rng).T for stratum in range(strata))
    return percentile_interval(values.mean(axis=(-2, -1)), replicates / (strata * n))


def score_coverage(labels, known: Truth, *, B: int, rng: np.random.Generator, conditions=CONDITIONS) -> dict:
    """Coverage of the models' 95 % intervals, {"pooled", "stratified"}: a frame each (index model).

    Pooled: the paper's, all of a model's generations resampled as one sample. Stratified: within conditions.
    """
    true = expected_scores(known, conditions).mean(axis=1)
    scores = panel_scores(labels)
    pooled = bootstrap(scores.reshape(*scores.shape[:2], -1), B=B, rng=rng)
    found = {"pooled": pooled, "stratified": stratified_bootstrap(scores, B=B, rng=rng)}
    return {name: _frame(coverage(*interval, true), known.models[:-1]) for name, interval in found.items()}


def alpha_coverage(labels, known: Truth, *, B: int, rng: np.random.Generator) -> pd.DataFrame:
    """Coverage of alpha's 95 % intervals (units resampled): the score at interval level (`total`), then each
    feature at nominal level. labels of the main study's six conditions, for which the true alphas are known.
    """
    true = known.expected_alphas()
    ratings = labels.reshape(len(labels), -1, *labels.shape[-2:])  # [study, unit, judge, feature]
    total = krippendorff_alpha_interval(ratings.sum(axis=-1).swapaxes(1, 2), "interval", B=B, rng=rng)
    each = krippendorff_alpha_interval(ratings.transpose(0, 3, 2, 1), "nominal", B=B, rng=rng)
    joined = [np.column_stack([one, several]) for one, several in zip(total, each)]
    rows = ("total", *known.features)
    return _frame(coverage(*joined, np.array([true[row] for row in rows])), rows)


def effect_coverage(
    labels, known: Truth, *, B: int, rng: np.random.Generator, conditions=CONDITIONS
) -> pd.DataFrame:
    """Coverage of the 95 % intervals of rank-biserial r of each condition against the first (index
    condition)."""
    pmf = score_distribution(known, conditions).mean(axis=0)
    true = rank_biserial(pmf[0], pmf[1:])
    scores = panel_scores(labels)
    found = np.array(
        [
            [
                rank_biserial_interval(study[:, 0].ravel(), study[:, other].ravel(), B=B, rng=rng)
                for other in range(1, len(conditions))
            ]
            for study in scores
        ]
    )
    return _frame(coverage(*np.moveaxis(found, -1, 0), true), conditions[1:]).assign(true=true)


def _frame(found: Coverage, index) -> pd.DataFrame:
    return pd.DataFrame(
        {"coverage": found.share, "lo": found.lo, "hi": found.hi, "bias": found.bias, "width": found.width},
        index=list(index),
    )


def mann_whitney_of_counts(first, second) -> tuple[np.ndarray, np.ndarray]:
    """(r, p) of two-sided Mann–Whitney tests from counts first[..., level], second[..., level] of ordered
    values.

    As `lib.ranks.mann_whitney` for many units (normal approximation, corrected for ties and continuity), but
    for a batch of studies at once. r is positive where the second sample is higher; p is 1 where all values
    are equal.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n1, n2, tied = first.sum(axis=-1), second.sum(axis=-1), first + second
    U = (second * (np.cumsum(first, axis=-1) - first / 2)).sum(axis=-1)
    n = n1 + n2
    variance = n1 * n2 / 12 * (n + 1 - (tied**3 - tied).sum(axis=-1) / (n * (n - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (np.abs(U - n1 * n2 / 2) - CONTINUITY) / np.sqrt(variance)
    p = np.where(variance > 0, np.minimum(1, 2 * special.ndtr(-np.where(variance > 0, z, 0))), 1.0)
    return 2 * U / (n1 * n2) - 1, p


def power_curve(
    known: Truth,
    effects,
    *,
    n: int,
    alpha: float,
    studies: int,
    rng: np.random.Generator,
    toward: str = "departure_primed",
) -> pd.DataFrame:
    """Power of the condition comparison at true rank-biserial effects (columns power, lo, hi; index effect).

    Scores under the baseline are compared with those of a mixture in which a share of descriptions answers
    the prompt `toward` instead. r is linear in that share, so each effect is met exactly; n descriptions a
    model and condition, pooled over models as in the paper. Raises ValueError for an effect outside [0, r of
    `toward`].
    """
    base, other = score_distribution(known, ("baseline", toward)).transpose(1, 0, 2)
    largest = float(rank_biserial(base.mean(axis=0), other.mean(axis=0)))
    rows = {}
    for effect in effects:
        share = effect / largest
        if not 0 <= share <= 1:
            raise ValueError(f"an effect between 0 and {largest:.2f} can be simulated, not {effect}")
        first = _counts(base, n, studies, rng)
        second = _counts((1 - share) * base + share * other, n, studies, rng)
        found = mann_whitney_of_counts(first, second)[1] < alpha
        lo, hi = wilson_interval(found.sum(), studies)
        rows[effect] = {"power": found.mean(), "lo": float(lo), "hi": float(hi)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("effect")


def _counts(pmf, n, studies, rng):
    """counts[study, level] of n descriptions from each row of pmf[model, level]."""
    return sum(rng.multinomial(n, row, size=studies) for row in pmf)


def design_quality(labels, known: Truth, sizes, conditions=CONDITIONS) -> pd.DataFrame:
    """What smaller studies give, from labels of a large one: one row a number of samples and of judges.

    labels as `draw_labels` gives them; `sizes` are numbers of samples up to theirs, taken from the front.
    Panels of k judges are all those there are. Columns: rmse of a model's score against the full panel's
    truth, rho (mean Spearman correlation with the true ranking), best (share of studies in which the best
    model comes out best). Raises ValueError for a size that the labels do not have.
    """
    true = expected_scores(known, conditions).mean(axis=1)
    leader = int(np.argmax(true))
    rows = []
    for size in sizes:
        if not 1 <= size <= labels.shape[3]:
            raise ValueError(
                f"sizes should lie between 1 and {labels.shape[3]}, the samples there are; not {size}"
            )
        by_judge = labels[:, :, :, :size].sum(axis=-1, dtype=float).mean(axis=(2, 3))  # [study, model, judge]
        for k in range(1, len(known.judges) + 1):
            panels = np.stack(
                [
                    by_judge[..., list(chosen)].mean(axis=-1)
                    for chosen in combinations(range(len(known.judges)), k)
                ]
            )
            rows.append(
                {
                    "samples": size,
                    "judges": k,
                    "rmse": float(np.sqrt(((panels - true) ** 2).mean())),
                    "rho": float(np.mean(spearman(panels, true))),
                    "best": float((ranks(panels, method="competition")[..., leader] == 1).mean()),
                }
            )
    return pd.DataFrame(rows)


def samples_for_half_width(known: Truth, half_width: float, conditions=CONDITIONS) -> pd.Series:
    """Samples a condition at which a model's 95 % interval (stratified by condition) reaches +- half_width
    points.

    From the exact variance of scores within conditions. Index: model. Raises ValueError for a width of 0 or
    less.
    """
    if not half_width > 0:
        raise ValueError(f"half_width should be above 0, not {half_width!r}")
    pmf = score_distribution(known, conditions)
    levels = np.arange(pmf.shape[-1]) / len(known.judges)
    variance = (pmf * levels**2).sum(axis=-1) - (pmf @ levels) ** 2
    needed = variance.mean(axis=1) / len(conditions) * (special.ndtri(0.975) / half_width) ** 2
    return pd.Series(np.ceil(needed - 1e-9).astype(int), index=known.models[:-1], name="samples")
