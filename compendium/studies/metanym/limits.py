"""What a rating by consensus can and cannot do: authority, vendors left out, dissent, blocs, and how much
data it takes.

Source: The Metanym Game, section 4.2 (vendor left out), A.2 (self-entry fill), A.6 (permutation null), A.7
(authority, synthetic consensus judge). The last three functions take up what the paper leaves open, with
planted truths.
"""

import numpy as np
import pandas as pd

from compendium.studies.metanym.components import components, factual_matrix, totals
from compendium.studies.metanym.external import correlation
from compendium.studies.metanym.game import LEAST_JUDGES, SUBJECTIVE, Game, MetanymError
from lib import spectral
from lib.numeric import average_ranks
from lib.ranks import spearman


def axis_matrix(game: Game, axis: str) -> np.ndarray:
    """Evaluators x units at production on a subjective axis, runs side by side; structure has a unit a
    portfolio.
    """
    if axis == "structure":
        scores = np.moveaxis(game.structure[:, game.anchors.index(game.production)], 1, 0)
    else:
        scores = np.moveaxis(game.at(axis), 1, 0)
    scores = scores.reshape(len(game.evaluators), -1)
    return scores[:, ~np.isnan(scores).all(axis=0)]


def authority(game: Game, axes=SUBJECTIVE, fill=7.0) -> pd.DataFrame:
    """Peer centrality on each subjective axis (A.7): evaluators x axes, clamped loadings of one SVD an axis."""
    return pd.DataFrame(
        {axis: spectral.two_sided(axis_matrix(game, axis), fill).loadings for axis in axes},
        index=list(game.evaluators),
    )


def authority_total(
    game: Game, council, table: pd.DataFrame | None = None, combine=np.median, fill=7.0
) -> pd.DataFrame:
    """The table of ratings with authority in place of consistency in E^C: 7 f/f_a on each axis, combined over
    the axes.

    The paper does not say how the five axes are combined; with the median its printed total comes out.
    table: ratings to start from (default: `components` on the game's own basis); combine(values, axis=0); fill:
    as in `authority`.
    """
    table = components(game, council).table if table is None else table
    loadings = authority(game, fill=fill).reindex(table.index)
    anchored = spectral.anchored(loadings.to_numpy().T, list(table.index).index(game.anchor_model))
    return totals(table.assign(EC=combine(anchored, axis=0)))


def vendor_left_out(game: Game, vendors: dict) -> tuple[pd.DataFrame, pd.Series]:
    """G^F with each vendor's judges removed (section 4.2): (portfolios x "all" and vendors, Spearman with
    "all").

    vendors: {model: vendor}; NaN where a vendor's judges leave fewer than three behind.
    Raises MetanymError for an evaluator without a vendor.
    """
    absent = [name for name in game.evaluators if name not in vendors]
    if absent:
        raise MetanymError(f"no vendor is given for {absent[0]!r}")
    ratings, target_of = factual_matrix(game)
    owner = np.array([vendors[name] for name in game.evaluators])
    sets = {"all": np.ones(len(owner), bool)} | {vendor: owner != vendor for vendor in dict.fromkeys(owner)}
    few = np.full(ratings.shape[1], np.nan)
    consensus = {
        name: spectral.two_sided(ratings[rows]).consensus if rows.sum() >= LEAST_JUDGES else few
        for name, rows in sets.items()
    }
    table = pd.DataFrame(
        {
            name: spectral.group_means(values, target_of, len(game.targets))
            for name, values in consensus.items()
        },
        index=list(game.targets),
    )
    ranks = pd.Series({name: float(spearman(table["all"], table[name])) for name in table if name != "all"})
    return table, ranks


def self_fill_check(game: Game) -> dict:
    """What filling missing entries with each judge's own mean, instead of 7, moves (A.2): {"loading":
    greatest change of a loading, "rank": Spearman between the two orders}."""
    ratings, _ = factual_matrix(game)
    seven, own = (spectral.two_sided(ratings, fill).left for fill in (7.0, "row_mean"))
    return {
        "loading": float(np.abs(seven - own).max()),
        "rank": float(spearman(np.maximum(seven, 0), np.maximum(own, 0))),
    }


def consensus_gap(game: Game) -> dict:
    """How far the rank-one consensus lies from the plain competence-weighted mean rating (A.2), averaged over
    each generator's contexts: {"deviation": greatest, "r": Pearson}. Self-entries do not vote in the plain
    mean.
    """
    ratings, target_of = factual_matrix(game)
    axis = spectral.two_sided(ratings)
    weight = axis.loadings[:, None] * ~np.isnan(ratings)
    plain = (weight * np.nan_to_num(ratings)).sum(axis=0) / weight.sum(axis=0)
    one, other = (
        spectral.group_means(values, target_of, len(game.targets)) for values in (axis.consensus, plain)
    )
    return {"deviation": float(np.abs(one - other).max()), "r": float(correlation(one, other))}


def null_ratios(game: Game, *, B: int, rng: np.random.Generator) -> dict:
    """sigma1 and sigma2 over the 95th percentile of their permutation null (A.6): {"sigma1": …, "sigma2": …}."""
    ratings, _ = factual_matrix(game)
    edge = np.percentile(spectral.sigma_null(ratings, rng, B), 95, axis=0)
    sigma = spectral.two_sided(ratings).sigma
    return {"sigma1": float(sigma[0] / edge[0]), "sigma2": float(sigma[1] / edge[1])}


def consensus_judge(game: Game, share: float, *, B: int, rng: np.random.Generator) -> np.ndarray:
    """E^F of a synthetic judge who reproduces the consensus and inverts a share of its verdicts (A.7): [b].

    The judge joins the panel as one more row; an inverted verdict lies as far on the other side of its mean.
    Which items are inverted is drawn anew in each replicate. Raises MetanymError for a share outside 0-1.
    """
    if not 0 <= share <= 1:
        raise MetanymError(f"the share of inverted verdicts must lie from 0 to 1, not {share}")
    ratings, _ = factual_matrix(game)
    filled = spectral.fill_missing(ratings)
    consensus = spectral.two_sided(ratings).consensus
    n = len(consensus)
    order = rng.permuted(np.broadcast_to(np.arange(n), (B, n)), axis=1)
    inverted = order < round(share * n)
    rows = np.where(inverted, 2 * consensus.mean() - consensus, consensus)
    rows -= rows.mean(axis=1, keepdims=True)
    centred = filled - filled.mean(axis=1, keepdims=True)
    size = len(filled)
    gram = np.empty((B, size + 1, size + 1))
    gram[:, :size, :size] = centred @ centred.T
    gram[:, size, :size] = gram[:, :size, size] = rows @ centred.T
    gram[:, size, size] = (rows * rows).sum(axis=1)
    left = np.linalg.eigh(gram)[1][:, :, -1]
    left *= np.sign(left.sum(axis=1, keepdims=True))
    return spectral.anchored(np.maximum(left, 0), game.anchor_index)[:, size]


def planted(
    skill, standing, rng: np.random.Generator, *, B: int, noise=1.0, bias=0.0, bloc=(), leniency=0.5
) -> np.ndarray:
    """Ratings[b, judge, item] with a planted truth: level + skill x standing (+ bias of a bloc) + noise, as
    whole numbers 1-10.

    skill[judge]: rating points per unit of standing; standing[item], mean 0; noise: s.d. of each rating;
    bloc: judges who share one private axis, drawn anew each time with unit variance and scaled by `bias`;
    leniency: s.d. of the judges' levels around 6.
    """
    skill, standing = np.asarray(skill, dtype=float), np.asarray(standing, dtype=float)
    shape = (B, len(skill), len(standing))
    private = np.zeros(len(skill))
    private[list(bloc)] = bias
    shared = rng.standard_normal((B, 1, len(standing)))
    level = 6 + leniency * rng.standard_normal((B, len(skill), 1))
    ratings = (
        level + skill[:, None] * standing + private[:, None] * shared + noise * rng.standard_normal(shape)
    )
    return np.clip(np.rint(ratings), 1, 10)


def axis_recovery(ratings, standing) -> dict:
    """What the SVD makes of planted ratings[b, judge, item]: {"gap", "truth" (Pearson of v with the planted
    standing), "loading" [b, judge]}, vectorised over b through the judges' Gram matrices."""
    centred = ratings - ratings.mean(axis=2, keepdims=True)
    values, vectors = np.linalg.eigh(centred @ centred.transpose(0, 2, 1))
    left = vectors[:, :, -1]
    left = left * np.where(left.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    right = (left[:, None, :] @ centred)[:, 0]
    sigma = np.sqrt(np.maximum(values[:, :-3:-1], 1e-12))
    return {
        "gap": sigma[:, 0] / sigma[:, 1],
        "truth": correlation(right, np.asarray(standing, dtype=float)),
        "loading": np.maximum(left, 0),
    }


def identification_power(
    judges, items, *, competence: float, B: int, rng: np.random.Generator, noise=1.0
) -> pd.DataFrame:
    """How many judges and items make the axis clear: a row a pair (n_judges, n_items, gap, passes, truth,
    skill).

    Half of the judges have skill `competence`, the others a tenth of it; standings are skewed as errors are
    (few bad items). passes: share of replicates with sigma1/sigma2 of at least 2; truth and skill: mean
    correlation of v with the standing, and mean Spearman of the loadings with the skills.
    """
    rows = []
    for n_judges in judges:
        skill = np.where(np.arange(n_judges) < -(-n_judges // 2), competence, competence / 10)
        for n_items in items:
            standing = skewed_standing(n_items, rng)
            found = axis_recovery(planted(skill, standing, rng, B=B, noise=noise), standing)
            order = correlation(average_ranks(found["loading"]), average_ranks(skill))
            rows.append(
                {
                    "n_judges": n_judges,
                    "n_items": n_items,
                    "gap": found["gap"].mean(),
                    "passes": (found["gap"] >= 2).mean(),
                    "truth": np.nanmean(found["truth"]),
                    "skill": np.nanmean(order),
                }
            )
    return pd.DataFrame(rows)


def skewed_standing(n_items: int, rng: np.random.Generator) -> np.ndarray:
    """Planted standings: most items near the top, a tail of bad ones; mean 0, s.d. 1."""
    raw = -rng.exponential(size=n_items)
    return (raw - raw.mean()) / raw.std()


def bloc_curve(
    n_judges: int,
    bloc_sizes,
    biases,
    *,
    competence: float,
    n_items: int,
    B: int,
    rng: np.random.Generator,
    noise=1.0,
) -> pd.DataFrame:
    """When consensus misleads: every judge sees the truth with skill `competence`, a bloc shares one private
    bias.

    A row a (bloc size, bias in rating points): gap, passes (gap of at least 2), truth (mean correlation of
    the axis with the truth), misled (share of replicates in which the axis passes the guard and correlates
    below 0.7 with the
    truth: identified and wrong), weight (share of the loadings that the bloc holds).
    """
    rows = []
    standing = skewed_standing(n_items, rng)
    for size in bloc_sizes:
        for bias in biases:
            ratings = planted(
                np.full(n_judges, competence), standing, rng, B=B, noise=noise, bias=bias, bloc=range(size)
            )
            found = axis_recovery(ratings, standing)
            wrong = (found["gap"] >= 2) & (found["truth"] < 0.7)
            weight = found["loading"][:, :size].sum(axis=1) / found["loading"].sum(axis=1)
            rows.append(
                {
                    "bloc": size,
                    "bias": bias,
                    "gap": found["gap"].mean(),
                    "passes": (found["gap"] >= 2).mean(),
                    "truth": found["truth"].mean(),
                    "misled": wrong.mean(),
                    "weight": weight.mean(),
                }
            )
    return pd.DataFrame(rows)
