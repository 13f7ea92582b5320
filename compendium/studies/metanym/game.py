"""The Metanym Game's ratings as one array, and the checks a game must pass before anything is estimated from
it.

Source: The Metanym Game, sections 3.1-3.2 and Appendix A. Write r[t, s, x, u](theta) for evaluator t's score
of unit u on axis x of submission s with the reference pinned at theta; here that is `factual[run, anchor,
evaluator, target, archetype, context]`, `subjective[run, anchor, evaluator, target, archetype, axis]` and
`structure[run, anchor, evaluator, target]`, all 1-10, NaN where missing. Nobody's grade of the own portfolio
enters (leave-self-out).
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

PER_ARCHETYPE = ("beauty", "intelligence", "distinctness", "length")
SUBJECTIVE = (*PER_ARCHETYPE, "structure")
AXES = ("factual", *SUBJECTIVE)
CONTEXTS = ("pc1", "pc2", "pc3", "pc4", "pc5")
KEYS = ("run", "anchor", "evaluator", "target", "archetype")
SCORES = (*CONTEXTS, *PER_ARCHETYPE, "structure")
PRODUCTION = 7
N_ARCHETYPES = 5
LEAST_JUDGES = 3  # of two judges' ratings no decomposition can say which of them is right
ZEROS = ("missing", "counted")


class MetanymError(ValueError):
    """Ratings, a portfolio or a reply that cannot be used; the message names what, and what would be right."""


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about a game. `level` is "error" (nothing can be estimated) or "warning"."""

    level: str
    code: str
    message: str


@dataclass(frozen=True)
class Game:
    """Every rating of a game; axes as in the module's docstring.

    evaluators, targets (graded portfolios: all but the anchor model's), anchors (pinned values), runs are the
    labels of the axes; `anchor_model` evaluates, its portfolio is the reference and reads `production`
    throughout.
    """

    evaluators: tuple
    targets: tuple
    anchors: tuple
    runs: tuple
    anchor_model: str
    factual: np.ndarray = field(repr=False)
    subjective: np.ndarray = field(repr=False)
    structure: np.ndarray = field(repr=False)
    production: int = PRODUCTION

    @property
    def models(self) -> tuple:
        """Every player: the evaluators, in their order."""
        return self.evaluators

    @property
    def anchor_index(self) -> int:
        """The anchor model's place among the evaluators."""
        return self.evaluators.index(self.anchor_model)

    @property
    def sweep_runs(self) -> tuple:
        """Runs that were rated at two anchor values or more: only they can show a judge's consistency."""
        present = ~np.isnan(self.structure).all(axis=(2, 3))
        return tuple(run for run, anchors in zip(self.runs, present) if anchors.sum() > 1)

    def at(self, axis: str, anchor: int | None = None) -> np.ndarray:
        """Scores on one axis at one anchor value (default: production), [run, evaluator, target, archetype,
        unit].

        `unit` is the five contexts for "factual", else one. The portfolio's structure score stands at each of
        its archetypes, as each archetype carries it through a resample. Raises MetanymError for an unknown
        axis or anchor.
        """
        place = self._anchor(self.production if anchor is None else anchor)
        return self.sweep(axis)[:, place]

    def sweep(self, axis: str) -> np.ndarray:
        """Scores on one axis at every anchor value, [run, anchor, evaluator, target, archetype, unit]."""
        if axis == "factual":
            return self.factual
        if axis == "structure":
            repeated = np.broadcast_to(self.structure[..., None], self.subjective.shape[:-1])
            return repeated[..., None]
        if axis not in PER_ARCHETYPE:
            raise MetanymError(f"axis {axis!r} is not one of {', '.join(AXES)}")
        return self.subjective[..., PER_ARCHETYPE.index(axis), None]

    def only(self, *, runs=None, evaluators=None, targets=None, anchors=None) -> "Game":
        """The part of the game with these labels (None: all), in the order given.

        Raises MetanymError for a label the game lacks, or where the anchor model would be left out.
        """
        wanted = {"runs": runs, "anchors": anchors, "evaluators": evaluators, "targets": targets}
        kept, arrays = {}, [self.factual, self.subjective, self.structure]
        for axis, (name, labels) in enumerate(wanted.items()):
            have = getattr(self, name)
            labels = have if labels is None else tuple(labels)
            absent = [label for label in labels if label not in have]
            if absent:
                raise MetanymError(
                    f"the game has no {name[:-1]} {absent[0]!r}; it has {', '.join(map(str, have))}"
                )
            arrays = [np.take(array, [have.index(label) for label in labels], axis=axis) for array in arrays]
            kept[name] = labels
        if self.anchor_model not in kept["evaluators"]:
            raise MetanymError(
                f"the anchor {self.anchor_model!r} must stay among the evaluators: every rating is "
                "scaled so that it reads 7"
            )
        return replace(self, **kept, factual=arrays[0], subjective=arrays[1], structure=arrays[2])

    def _anchor(self, value: int) -> int:
        if value not in self.anchors:
            raise MetanymError(
                f"nobody rated with the reference pinned at {value}; "
                f"there are {', '.join(map(str, self.anchors))}"
            )
        return self.anchors.index(value)


def build_game(
    ratings: pd.DataFrame,
    *,
    anchor_model: str,
    evaluators=None,
    targets=None,
    production: int = PRODUCTION,
    zeros: str = "missing",
) -> Game:
    """A `Game` from a tidy table of ratings (columns `KEYS` and `SCORES`), as the loaders and parsers give
    it.

    Archetypes after the fifth and grades of the own or the anchor's portfolio are left out. A 0 lies outside
    the
    scale: "missing" drops it, "counted" keeps it as the number it is (as the paper's consistency tables do).
    evaluators, targets: the roster in order (default: those that occur, sorted).
    Raises MetanymError for fewer than three evaluators, an absent anchor model, a roster member that nobody
    rated or that rated nobody at the production anchor, one unit rated twice by one evaluator, or no ratings at
    the production anchor.
    """
    if zeros not in ZEROS:
        raise MetanymError(f"zeros={zeros!r}: should be one of {', '.join(ZEROS)}")
    evaluators = tuple(evaluators if evaluators is not None else sorted(ratings["evaluator"].unique()))
    if len(evaluators) < LEAST_JUDGES:
        raise MetanymError(
            f"{len(evaluators)} judge(s) ({', '.join(evaluators) or 'none'}): competence is read off agreement with "
            f"the others, which takes at least {LEAST_JUDGES}"
        )
    if anchor_model not in evaluators:
        raise MetanymError(
            f"the anchor {anchor_model!r} is not among the evaluators ({', '.join(evaluators)}): without "
            "it no rating can be scaled to read 7"
        )
    targets = tuple(
        targets
        if targets is not None
        else sorted(name for name in ratings["target"].unique() if name != anchor_model)
    )
    ratings = ratings[
        ratings["evaluator"].isin(evaluators)
        & ratings["target"].isin(targets)
        & (ratings["archetype"] <= N_ARCHETYPES)
        & (ratings["evaluator"] != ratings["target"])
    ]
    repeated = ratings.duplicated(list(KEYS))
    if repeated.any():
        row = ratings[repeated].iloc[0]
        raise MetanymError(
            f"{row['evaluator']} rates archetype {row['archetype']} of {row['target']} twice in run "
            f"{row['run']} at anchor {row['anchor']}: keep one of the two"
        )
    anchors, runs = (tuple(sorted(int(v) for v in ratings[name].unique())) for name in ("anchor", "run"))
    if production not in anchors:
        raise MetanymError(
            f"no rating has the reference pinned at {production}, the anchor of every official number; "
            f"there are {', '.join(map(str, anchors)) or 'none'}"
        )
    game = _fill(ratings, evaluators, targets, anchors, runs, anchor_model, production, zeros)
    _check_roster(game)
    return game


def _fill(ratings, evaluators, targets, anchors, runs, anchor_model, production, zeros) -> Game:
    shape = (len(runs), len(anchors), len(evaluators), len(targets), N_ARCHETYPES)
    axes = dict(zip(KEYS[:4], (runs, anchors, evaluators, targets)))
    place = tuple(
        ratings[name].map({label: i for i, label in enumerate(labels)}).to_numpy(dtype=int)
        for name, labels in axes.items()
    ) + (ratings["archetype"].to_numpy(dtype=int) - 1,)
    scores = ratings[list(SCORES)].to_numpy(dtype=float)
    if zeros == "missing":
        scores = np.where(scores == 0, np.nan, scores)
    values = np.full((*shape, len(SCORES)), np.nan)
    values[place] = scores
    structure = _first_present(values[..., -1])
    return Game(
        evaluators,
        targets,
        anchors,
        runs,
        anchor_model,
        values[..., :5],
        values[..., 5:9],
        structure,
        production,
    )


def _first_present(values) -> np.ndarray:
    """The first entry along the last axis that is not missing (a portfolio's score stands on each of its
    rows).
    """
    first = np.argmax(~np.isnan(values), axis=-1)
    return np.take_along_axis(values, first[..., None], axis=-1)[..., 0]


def _check_roster(game: Game) -> None:
    rated = ~np.isnan(game.at("factual")).all(axis=(3, 4))
    for r, run in enumerate(game.runs):
        for t, name in enumerate(game.targets):
            if not rated[r, :, t].any():
                raise MetanymError(
                    f"portfolio of {name} is missing in run {run}: no evaluator rated it at anchor "
                    f"{game.production}; add its ratings or take it off the roster"
                )
        for e, name in enumerate(game.evaluators):
            if not rated[r, e].any():
                raise MetanymError(
                    f"evaluator {name} rated no portfolio in run {run} at anchor {game.production}; "
                    "add its ratings or take it off the roster"
                )


def check_game(game: Game) -> list[Finding]:
    """What a reader should know before trusting the estimates (all warnings; errors are raised when
    building).

    Codes: flat_judge (one rating throughout: no error signal, E^F will read 0), identical_judges (two judges
    agree on
    every unit both rated: one voice counted twice), lost_call (an evaluator returned nothing for a
    portfolio), short_portfolio (an archetype that no evaluator rated), no_sweep (no run at two anchors: no
    consistency).
    """
    findings, factual = [], game.at("factual")
    for r, run in enumerate(game.runs):
        flat = factual[r].reshape(len(game.evaluators), -1)
        findings += _flat_and_identical(game, run, flat)
        lost = np.isnan(factual[r]).all(axis=(2, 3))
        for e, t in zip(*np.nonzero(lost)):
            if game.evaluators[e] != game.targets[t]:
                findings.append(
                    Finding(
                        "warning",
                        "lost_call",
                        f"run {run}: {game.evaluators[e]} returned no usable "
                        f"ratings of {game.targets[t]} at anchor {game.production}",
                    )
                )
        empty = np.isnan(factual[r]).all(axis=(0, 3))
        for t, a in zip(*np.nonzero(empty)):
            findings.append(
                Finding(
                    "warning",
                    "short_portfolio",
                    f"run {run}: archetype {a + 1} of {game.targets[t]} "
                    "was rated by nobody: the portfolio is short",
                )
            )
    if not game.sweep_runs:
        findings.append(
            Finding(
                "warning",
                "no_sweep",
                "no run was rated at two anchor values: consistency, E^C and T are undefined",
            )
        )
    return findings


def _flat_and_identical(game: Game, run: int, flat: np.ndarray) -> list[Finding]:
    findings = []
    for e, name in enumerate(game.evaluators):
        seen = flat[e][~np.isnan(flat[e])]
        if len(seen) and (seen == seen[0]).all():
            findings.append(
                Finding(
                    "warning",
                    "flat_judge",
                    f"run {run}: {name} rates every context {seen[0]:g}: no "
                    "error signal, its factual competence will read 0",
                )
            )
    for i in range(len(flat)):
        for j in range(i + 1, len(flat)):
            both = ~np.isnan(flat[i]) & ~np.isnan(flat[j])
            varies = both.sum() > 1 and np.ptp(flat[i][both]) > 0
            if varies and (flat[i][both] == flat[j][both]).all():
                pair = f"{game.evaluators[i]} and {game.evaluators[j]}"
                findings.append(
                    Finding(
                        "warning",
                        "identical_judges",
                        f"run {run}: {pair} agree on all "
                        f"{both.sum()} contexts both rated: one voice counts twice in the "
                        "factual axis",
                    )
                )
    return findings


def overall_scores(game: Game, anchor: int | None = None) -> np.ndarray:
    """o[evaluator, target] (A2): the mean over the six axes of the mean over each axis's units, runs pooled.

    NaN where the evaluator gave the portfolio no usable rating (or it is the own one).
    """
    means = []
    for axis in AXES:
        scores = np.moveaxis(game.at(axis, anchor), 0, 2)  # [evaluator, target, run, archetype, unit]
        means.append(_mean(scores.reshape(*scores.shape[:2], -1)))
    return _mean(np.stack(means, axis=-1))


def generation_rating(game: Game, council=None, anchor: int | None = None) -> pd.Series:
    """G_s (A3): the mean overall score of each portfolio over the council's members (None: every evaluator)."""
    scores = overall_scores(game, anchor)
    rows = [game.evaluators.index(name) for name in (council or game.evaluators)]
    return pd.Series(_mean(scores[rows].T), index=list(game.targets))


def archetype_scores(game: Game, council=None, anchor: int | None = None) -> np.ndarray:
    """What each archetype adds to its portfolio's G_s, [target, run x archetype]: the mean over the council
    of the mean over the six axes. Their mean is `generation_rating` where nothing is missing; they are the
    units of its interval.
    """
    rows = [game.evaluators.index(name) for name in (council or game.evaluators)]
    axes = [_mean(np.moveaxis(game.at(axis, anchor)[:, rows], 1, -1).swapaxes(-1, -2)) for axis in AXES]
    scores = _mean(np.stack(axes, axis=-1))  # [run, target, archetype, evaluator]
    return np.moveaxis(_mean(scores), 1, 0).reshape(len(game.targets), -1)


def band_separation(means: pd.Series, leading: int = 8) -> float:
    """The gap between the lowest of the leading models and the highest of the others, in standard deviations
    of the means (section 4.1); NaN where one of the two bands is empty."""
    if not 0 < leading < len(means):
        return np.nan
    ordered = means.sort_values(ascending=False).to_numpy()
    return float((ordered[leading - 1] - ordered[leading]) / ordered.std(ddof=1))


def _mean(values) -> np.ndarray:
    """Mean over the last axis, missing left out; NaN where nothing is there (without a warning)."""
    present = (~np.isnan(values)).sum(axis=-1)
    return np.where(present > 0, np.nansum(values, axis=-1) / np.maximum(present, 1), np.nan)
