"""The four components, the total, the council, the contest and their joint intervals.

Source: The Metanym Game, section 3.4 and Appendix A (A5-A14, A.4 intervals, A.6 contest and guards). Every
estimate
exists twice: written out plainly in `components`, and for many resamples at once in `joint_replicates`, which
only adds up sums per atom (run, submission, archetype). Drawing each atom once must give the plain estimate;
tests hold the two together.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.studies.metanym.game import SUBJECTIVE, Game, MetanymError
from lib import spectral
from lib.consistency import collapse, consistency_from_moments, pair_moments, sweep_consistency
from lib.resampling import bootstrap_weights, percentile_interval

COMPONENTS = ("GF", "GC", "EF", "EC")
RATINGS = ("T", "E", "G", *COMPONENTS)
GAP_RANGE = (2.0, 5.0)
MIN_SPREAD = 2.5


@dataclass(frozen=True)
class Components:
    """One factorisation's estimates.

    table: models x `RATINGS` (NaN where undefined), the anchor reading 7; loading, collapsed: by evaluator;
    consistency: evaluators x axes; quality: portfolios x subjective axes (A12b per axis); axis: the
    factorisation.
    """

    table: pd.DataFrame
    loading: pd.Series
    collapsed: pd.Series
    consistency: pd.DataFrame
    quality: pd.DataFrame
    axis: spectral.TwoSided


def factual_matrix(game: Game, anchor: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """F (A5) before filling, [evaluator, context], and the portfolio each context belongs to, [context].

    Contexts of all runs side by side; an archetype that nobody rated has no columns.
    """
    scores = np.moveaxis(game.at("factual", anchor), 1, 0)
    scores = scores.reshape(len(game.evaluators), -1, scores.shape[-1])
    kept = ~np.isnan(scores).all(axis=(0, 2))
    target = np.tile(np.repeat(np.arange(len(game.targets)), game.factual.shape[4]), len(game.runs))
    return scores[:, kept].reshape(len(scores), -1), np.repeat(target[kept], scores.shape[-1])


def sweep_scores(game: Game, axis: str) -> np.ndarray:
    """Scores of the sweep, [anchor, evaluator, unit], runs with a sweep side by side. axis: one of the
    rubric's axes, or "collapsed": the four per-archetype axes averaged into one value per archetype (A11)."""
    runs = [game.runs.index(run) for run in game.sweep_runs]
    if not runs:
        return np.full((2, len(game.evaluators), 1), np.nan)
    if axis == "collapsed":
        scores = collapse(game.subjective)[runs][..., None]
    elif axis == "structure":
        scores = game.structure[runs][..., None, None]
    else:
        scores = game.sweep(axis)[runs]
    scores = np.moveaxis(scores, 0, 2)
    return scores.reshape(*scores.shape[:2], -1)


def consistency_table(game: Game, axes=("factual", *SUBJECTIVE)) -> pd.DataFrame:
    """r[evaluator, axis] (A10), a row per evaluator; NaN where no pair of anchors has two varying vectors."""
    return pd.DataFrame(
        {axis: sweep_consistency(sweep_scores(game, axis)) for axis in axes}, index=list(game.evaluators)
    )


def components(game: Game, council, fill=7.0, sweep: Game | None = None) -> Components:
    """Every component of every model of the game (A5-A14).

    council: the evaluators whose weighted votes make G^C; leave-self-out throughout, as the game holds no
    grades of the own portfolio. sweep: the game whose anchor sweep gives the consistencies (default: this
    one; a later run has none of its own). Raises SpectralError where no factual axis can be read,
    MetanymError for a council member who does not evaluate or an anchor with no error signal.
    """
    seats = council_indices(game, council)
    ratings, target_of = factual_matrix(game)
    axis = spectral.two_sided(ratings, fill)
    check_anchor_signal(game, axis.loadings)
    swept = game if sweep is None else sweep
    r = consistency_table(swept)
    collapsed = sweep_consistency(sweep_scores(swept, "collapsed"))
    generated = spectral.group_means(axis.consensus, target_of, len(game.targets))
    quality = council_quality(game, seats, r[list(SUBJECTIVE)].to_numpy())
    models = list(game.models)
    table = pd.DataFrame(index=models, columns=list(RATINGS), dtype=float)
    table["EF"] = spectral.anchored(axis.loadings, game.anchor_index)
    table["EC"] = spectral.anchored(collapsed, game.anchor_index)
    table["GF"] = pd.Series(generated, index=list(game.targets)).reindex(models)
    table["GC"] = quality.mean(axis=1, skipna=False).reindex(models)
    table.loc[game.anchor_model, ["GF", "GC"]] = game.production
    return Components(
        totals(table), pd.Series(axis.loadings, models), pd.Series(collapsed, models), r, quality, axis
    )


def totals(table: pd.DataFrame) -> pd.DataFrame:
    """Fill in G, E (A13) and T (A14) from the four components, in a table with the columns `RATINGS`."""
    table = table.copy()
    table["G"] = (table["GF"] + table["GC"]) / 2
    table["E"] = (table["EF"] + table["EC"]) / 2
    table["T"] = (table["G"] + table["E"]) / 2
    return table


def council_quality(game: Game, seats, reliability) -> pd.DataFrame:
    """G^C_s by axis (A12b): portfolios x subjective axes.

    seats: indices of the voting evaluators; reliability[evaluator, axis]: their own consistency, its negative
    part clamped to 0, weighs each vote. NaN where no seat with a positive weight rated the portfolio.
    """
    votes = np.stack([_own_mean(game, axis) for axis in SUBJECTIVE], axis=-1)[seats]
    weight = np.maximum(np.nan_to_num(np.asarray(reliability, dtype=float)[seats]), 0)[:, None, :]
    weight = np.where(np.isnan(votes), 0.0, weight)
    total = weight.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (weight * np.nan_to_num(votes)).sum(axis=0) / total
    return pd.DataFrame(np.where(total > 0, mean, np.nan), index=list(game.targets), columns=list(SUBJECTIVE))


def anchored_cosine(quality: pd.DataFrame, consistency: pd.DataFrame, anchor_model: str) -> pd.Series:
    """Per subjective axis, the cosine between G_x - 7 and E_x - 7 over models (A15); the anchor adds nothing.

    NaN where no model departs from the anchor on both sides.
    """
    result = {}
    for axis in SUBJECTIVE:
        evaluation = 7 * consistency[axis] / consistency.at[anchor_model, axis] - 7
        generation = quality[axis] - 7
        both = (generation * evaluation.reindex(generation.index)).dropna().index
        g, e = generation[both], evaluation[both]
        size = np.sqrt((g @ g) * (e @ e))
        result[axis] = float(g @ e / size) if size > 0 else np.nan
    return pd.Series(result)


@dataclass(frozen=True)
class AtomTable:
    """Sums per atom (run, submission, archetype) from which any resample's components follow.

    factual: spectral sums; moments: {axis or "collapsed": [atom, evaluator, pair, 6]}; votes[atom, evaluator,
    axis] sums of the production scores and cast[atom, evaluator, axis] how many; target_of[atom],
    portfolio_of[atom] (run and target). Atoms of archetypes that nobody rated are left out.
    """

    game: Game
    factual: spectral.AtomSums
    moments: dict
    votes: np.ndarray
    cast: np.ndarray
    target_of: np.ndarray
    portfolio_of: np.ndarray

    @property
    def n_atoms(self) -> int:
        return len(self.target_of)

    def select(self, evaluators, targets) -> tuple["AtomTable", np.ndarray]:
        """The table of a contest between some evaluators over some portfolios, and which atoms it keeps."""
        game = self.game.only(evaluators=evaluators, targets=targets)
        rows = np.array([self.game.evaluators.index(name) for name in game.evaluators])
        place = np.array(
            [game.targets.index(name) if name in game.targets else -1 for name in self.game.targets]
        )
        atoms = np.flatnonzero(place[self.target_of] >= 0)
        moments = {axis: values[atoms][:, rows] for axis, values in self.moments.items()}
        table = AtomTable(
            game,
            self.factual.select(atoms, rows),
            moments,
            self.votes[atoms][:, rows],
            self.cast[atoms][:, rows],
            place[self.target_of[atoms]],
            self.portfolio_of[atoms],
        )
        return table, atoms


def atom_table(game: Game, fill=7.0, axes=SUBJECTIVE) -> AtomTable:
    """Collect a game's sums per atom. axes: whose consistency is kept (add "factual" for Table 5's
    intervals).
    """
    rated = ~np.isnan(game.at("factual")).all(axis=(1, 4))  # [run, target, archetype]
    new = np.cumsum(rated.reshape(-1)).reshape(rated.shape) - 1
    n_atoms, contexts = int(rated.sum()), game.factual.shape[-1]
    ratings, _ = factual_matrix(game)
    sums = spectral.atom_sums(ratings, np.repeat(np.arange(n_atoms), contexts), n_atoms, fill)
    # a portfolio's one structure score stands at each of its archetypes, so each carries its share of it
    share = 1.0 / np.maximum(rated.sum(axis=2, keepdims=True), 1) * np.ones(rated.shape)
    swept = [game.runs.index(run) for run in game.sweep_runs]
    moments = {axis: _axis_moments(game, axis, swept, rated, new, share) for axis in ("collapsed", *axes)}
    votes = np.stack([np.moveaxis(game.at(axis), 1, -2)[..., 0] for axis in SUBJECTIVE], axis=-1)[rated]
    weight = np.where(np.array(SUBJECTIVE) == "structure", share[rated][:, None], 1.0)[:, None, :]
    run_of, target_of, _ = np.nonzero(rated)
    return AtomTable(
        game,
        sums,
        moments,
        weight * np.nan_to_num(votes),
        weight * ~np.isnan(votes),
        target_of,
        run_of * len(game.targets) + target_of,
    )


def _axis_moments(game, axis, swept, rated, new, share) -> np.ndarray:
    """Moments of the sweep on one axis per kept atom; zeros where no run was swept (consistency undefined)."""
    n_atoms = int(rated.sum())
    if not swept:
        return np.zeros((n_atoms, len(game.evaluators), 1, 6))
    scores = collapse(game.subjective)[..., None] if axis == "collapsed" else game.sweep(axis)
    scores = np.moveaxis(scores[swept], 0, 2)  # [anchor, evaluator, run, target, archetype, unit]
    units = scores.shape[-1]
    kept = rated[swept]
    scores = scores[:, :, kept].reshape(*scores.shape[:2], -1)
    weights = np.repeat(share[swept][kept], units) if axis == "structure" else None
    return pair_moments(scores, np.repeat(new[swept][kept], units), n_atoms, weights)


def joint_replicates(table: AtomTable, counts, council, structure: str = "once") -> dict:
    """All components of all resamples: {"T": [b, model], …, "loading", "collapsed", "gap": [b],
    "quality": [b, portfolio, axis], "consistency": [b, evaluator, axis]}.

    counts[b, atom] (see `lib.resampling.bootstrap_weights`). Every component is recomputed, f_a and r_a too;
    the loading is read after aligning the replicate's two leading directions to the full sample's. The
    council stays as given. A portfolio none of whose atoms was drawn has NaN in that replicate.
    structure: a portfolio's one structural score counts "once" where any of its atoms was drawn (the paper's
    intervals come out so), or as often as they were "drawn".
    """
    if structure not in ("once", "drawn"):
        raise MetanymError(f'structure={structure!r}: should be "once" or "drawn"')
    counts, game = np.asarray(counts, dtype=float), table.game
    of_portfolio = counts
    if structure == "once":
        member = (table.portfolio_of[:, None] == np.unique(table.portfolio_of)).astype(float)
        of_portfolio = (counts @ member > 0) @ member.T
    seats, a = council_indices(game, council), game.anchor_index
    drawn = spectral.resample(table.factual, counts, _basis(table.factual))
    n_targets, n_models = len(game.targets), len(game.evaluators)
    generated = spectral.resampled_group_means(drawn, table.factual, counts, table.target_of, n_targets)
    drawn_for = {axis: of_portfolio if axis == "structure" else counts for axis in table.moments}
    r = {axis: consistency_from_moments(moments, drawn_for[axis]) for axis, moments in table.moments.items()}
    own = np.stack([r[axis] for axis in SUBJECTIVE], axis=-1)
    quality = _resampled_quality(table, [drawn_for[axis] for axis in SUBJECTIVE], seats, own)
    columns = [game.evaluators.index(name) for name in game.targets if name in game.evaluators]
    graded = [i for i, name in enumerate(game.targets) if name in game.evaluators]
    values = {name: np.full((len(counts), n_models), np.nan) for name in RATINGS}
    values["EF"] = spectral.anchored(drawn.loadings, a)
    values["EC"] = spectral.anchored(r["collapsed"], a)
    values["GF"][:, columns] = generated[:, graded]
    values["GC"][:, columns] = quality.mean(axis=-1)[:, graded]
    values["GF"][:, a] = values["GC"][:, a] = game.production
    values["G"] = (values["GF"] + values["GC"]) / 2
    values["E"] = (values["EF"] + values["EC"]) / 2
    values["T"] = (values["G"] + values["E"]) / 2
    return {
        **values,
        "loading": drawn.loadings,
        "collapsed": r["collapsed"],
        "gap": drawn.gap,
        "quality": quality,
        "consistency": own,
        "axis_consistency": r,
    }


def _basis(sums: spectral.AtomSums) -> np.ndarray:
    """The full sample's two leading left vectors, [judge, 2], the first with a positive sum (as `two_sided`)."""
    means = sums.totals.sum(axis=0) / sums.size.sum()
    gram = sums.products.sum(axis=0) - sums.size.sum() * np.outer(means, means)
    vectors = np.linalg.eigh(gram)[1][:, :-3:-1]
    return vectors * np.where(vectors[:, :1].sum() < 0, -1.0, 1.0)


def _resampled_quality(table: AtomTable, counts, seats, reliability) -> np.ndarray:
    """G^C by axis for every resample, [b, portfolio, axis]; counts[axis][b, atom]."""
    member = (table.target_of[:, None] == np.arange(len(table.game.targets))).astype(float)
    quality = []
    for x, drawn in enumerate(counts):
        total, cast = (
            np.einsum("ba,ag,ae->bge", drawn, member, part[:, seats, x], optimize=True)
            for part in (table.votes, table.cast)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            votes = np.where(cast > 0, total / cast, 0.0)
            weight = np.maximum(np.nan_to_num(reliability[:, None, seats, x]), 0) * (cast > 0)
            quality.append((weight * votes).sum(axis=2) / weight.sum(axis=2))
    return np.stack(quality, axis=-1)


def council_indices(game: Game, council) -> list[int]:
    """Places of the council's members among the evaluators. Raises MetanymError for one who does not
    evaluate.
    """
    absent = [name for name in council if name not in game.evaluators]
    if absent or not len(council):
        raise MetanymError(
            f"council member {absent[0]!r} does not evaluate in this game"
            if absent
            else "the council has no members"
        )
    return [game.evaluators.index(name) for name in council]


def check_anchor_signal(game: Game, loadings) -> None:
    """Raise MetanymError where the anchor model's own loading is 0, so nothing can be scaled by it."""
    if loadings[game.anchor_index] <= spectral.ZERO:
        raise MetanymError(
            f"the anchor {game.anchor_model} has no factual loading (its ratings share nothing with the "
            "panel's axis): E^F = 7 f / f_a is undefined; take another anchor model"
        )


def check_scale(game: Game) -> None:
    """Whether the game can be put on the anchor's scale at all, before anything is estimated from it.

    Raises MetanymError where no run was swept, or where the anchor model has no factual loading or no positive
    consistency; SpectralError where no judge tells one context from another.
    """
    if not game.sweep_runs:
        raise MetanymError(
            f"every rating has the reference pinned at {', '.join(map(str, game.anchors))}: consistency, and so "
            "E^C and T, need one run at two anchors or more"
        )
    check_anchor_signal(game, spectral.two_sided(factual_matrix(game)[0]).loadings)
    own = sweep_consistency(sweep_scores(game, "collapsed"))[game.anchor_index]
    if not own > 0:
        raise MetanymError(
            f"the anchor {game.anchor_model} keeps no order of archetypes from one anchor value to the next "
            f"(consistency {own:.2f}): E^C = 7 r / r_a is undefined; take another anchor model"
        )


def undefined(game: Game) -> str:
    """Why some numbers of this game are missing, in one sentence; empty where none need be.

    A judge who gives one rating throughout, at all anchors but one, shows no order that could be kept.
    """
    table = consistency_table(game).assign(collapsed=sweep_consistency(sweep_scores(game, "collapsed")))
    flat = {name: [axis for axis in table if np.isnan(row[axis])] for name, row in table.iterrows()}
    told = [
        f"{name} ({'every axis' if len(axes) == table.shape[1] else ', '.join(axes)})"
        for name, axes in flat.items()
        if axes
    ]
    return f"undefined: one rating throughout, so no consistency, from {'; '.join(told)}" if told else ""


def _own_mean(game: Game, axis: str) -> np.ndarray:
    """Mean production score of each evaluator for each portfolio on one axis, runs pooled: [evaluator,
    target].
    """
    scores = game.structure[:, game.anchors.index(game.production)] if axis == "structure" else game.at(axis)
    scores = np.moveaxis(scores, 0, 2)
    return collapse(scores.reshape(*scores.shape[:2], -1))


def apart_weights(group_of, B: int, rng: np.random.Generator) -> np.ndarray:
    """weights[B, item]: how often each item was drawn when every group keeps its own number of draws.

    group_of[item]: the portfolio, say, of a context. The weights of a group sum to its size in every replicate.
    """
    group_of = np.asarray(group_of)
    weights = np.zeros((B, len(group_of)))
    for group in np.unique(group_of):
        mine = np.flatnonzero(group_of == group)
        weights[:, mine] = bootstrap_weights(len(mine), B, rng)
    return weights


def joint_intervals(
    game: Game, council, *, B: int, rng: np.random.Generator, confidence: float = 0.95
) -> dict:
    """Percentile intervals from one joint draw: {"T": frame[model: estimate, lo, hi], …} for `RATINGS`,
    "loading" and "collapsed", on the basis of all the game's evaluators and portfolios."""
    point, table = components(game, council), atom_table(game)
    replicates = joint_replicates(table, bootstrap_weights(table.n_atoms, B, rng), council)
    estimates = {
        **{name: point.table[name] for name in RATINGS},
        "loading": point.loading,
        "collapsed": point.collapsed,
    }
    return {name: interval_frame(value, replicates[name], confidence) for name, value in estimates.items()}


def interval_frame(estimate: pd.Series, replicates, confidence: float = 0.95) -> pd.DataFrame:
    """Columns estimate, lo, hi for a series and its replicates[b, entry]."""
    lo, hi = percentile_interval(estimate.to_numpy(), np.asarray(replicates).T, confidence)[1:]
    return pd.DataFrame({"estimate": estimate, "lo": lo, "hi": hi}, index=estimate.index)
