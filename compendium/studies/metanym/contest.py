"""Seats: who is fit for the council, what a contest measures, and when its verdict may be trusted.

Source: The Metanym Game, section 3.4, Appendix A.4 (selection) and A.6 (contest, ballast, guards).
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from compendium.studies.metanym.components import (
    GAP_RANGE,
    MIN_SPREAD,
    RATINGS,
    AtomTable,
    Components,
    atom_table,
    components,
    factual_matrix,
    interval_frame,
    joint_replicates,
)
from compendium.studies.metanym.game import LEAST_JUDGES, Game, MetanymError
from lib import spectral
from lib.resampling import bootstrap_weights


@dataclass(frozen=True)
class Contest:
    """A contest for one model: its estimates, its guards and whether both hold."""

    candidate: str
    evaluators: tuple
    targets: tuple
    estimates: Components
    gap: float
    spread: float
    identified: bool


def near_zero_edge(loadings: pd.Series, hi: pd.Series) -> tuple[float, list]:
    """Upper edge of the near-zero band, and the models in it.

    The paper names the band and gives no rule for it; here the loadings are cut into the two classes with the
    least squared distance to their means (Fisher's natural break), and the band reaches up to the highest
    upper bound in the lower class. loadings, hi: by model. Raises MetanymError for fewer than two models.
    """
    if len(loadings) < 2:
        raise MetanymError("a near-zero band needs the loadings of at least two models")
    ordered = loadings.sort_values()
    values = ordered.to_numpy()
    spread = [values[:k].var() * k + values[k:].var() * (len(values) - k) for k in range(1, len(values))]
    low = list(ordered.index[: int(np.argmin(spread)) + 1])
    return float(hi[low].max()), low


def select_council(loading: pd.DataFrame, collapsed: pd.Series, bar: float = 0.78) -> pd.DataFrame:
    """Both gates of A.4 for every model, by descending loading.

    loading: frame with estimate, lo, hi; collapsed: r of A11. Columns: loading, lo, hi, collapsed,
    clear_of_band, consistent, seat.
    """
    edge, _ = near_zero_edge(loading["estimate"], loading["hi"])
    frame = pd.DataFrame(
        {"loading": loading["estimate"], "lo": loading["lo"], "hi": loading["hi"], "collapsed": collapsed}
    )
    frame["clear_of_band"] = frame["lo"] > edge
    frame["consistent"] = frame["collapsed"] >= bar
    frame["seat"] = frame["clear_of_band"] & frame["consistent"]
    return frame.sort_values("loading", ascending=False)


def line_up(game: Game, candidate, council, ballast) -> tuple[list, list]:
    """(evaluators, portfolios) of a contest: the seats and the candidate, over the incumbents' portfolios,
    the ballast and the candidate's; a seat contests with the council alone. candidate None: the council by
    itself. Raises MetanymError for a council too small to agree on anything.
    """
    if len(council) < LEAST_JUDGES:
        raise MetanymError(
            f"a council of {len(council)} ({', '.join(council)}): its seats must agree among "
            f"themselves, which takes at least {LEAST_JUDGES}"
        )
    extra = [candidate] if candidate is not None and candidate not in council else []
    targets = dict.fromkeys(name for name in (*council, *ballast, *extra) if name != game.anchor_model)
    return [*council, *extra], list(targets)


def contest(game: Game, candidate, council, ballast, sweep: Game | None = None) -> Contest:
    """Hold the contest for one model (A.6). The anchor's f_a and r_a are the contest's own.

    sweep: the game whose anchor sweep gives the consistencies (default: this one). Raises as `components`,
    and MetanymError for an unknown model.
    """
    evaluators, targets = line_up(game, candidate, council, ballast)
    part, swept = (
        None if one is None else one.only(evaluators=evaluators, targets=targets) for one in (game, sweep)
    )
    estimates = components(part, council, sweep=swept)
    seats = estimates.table.loc[list(council), "EF"]
    gap, spread = estimates.axis.gap, float(seats.max() - seats.min())
    return Contest(
        str(candidate), tuple(evaluators), tuple(targets), estimates, gap, spread, guards_hold(gap, spread)
    )


def run_apart(game: Game, run: int, ballast, n_ballast: int = 2) -> tuple[Game, list]:
    """(one run, its ballast) as Table 14 rates the runs apart.

    A later run was rated at the production anchor alone. The printed totals come out when its consistencies
    compare its own ratings there with the first swept run's at the other anchors, and when the ballast is the
    first n_ballast blocks of `ballast` whose portfolio in that run is whole (gpt-4o-mini's of run 2 holds one
    archetype).
    """
    part = game.only(runs=[run])
    rated = ~np.isnan(part.at("factual")).all(axis=(1, 4))[0]  # [target, archetype]
    whole = [name for name in ballast if rated[game.targets.index(name)].all()]
    if not part.sweep_runs and game.sweep_runs:
        swept, at = game.only(runs=game.sweep_runs[:1]), game.anchors.index(game.production)
        scores = {name: getattr(swept, name).copy() for name in ("factual", "subjective", "structure")}
        for name, values in scores.items():
            values[:, at] = getattr(part, name)[:, at]
        part = replace(part, **scores)
    return part, whole[:n_ballast]


def guards_hold(gap, spread):
    """Whether sigma1/sigma2 lies in [2, 5] and the seats' E^F spread over more than 2.5 points (A.6); arrays
    or numbers. Both must hold before a seat changes hands."""
    return (gap >= GAP_RANGE[0]) & (gap <= GAP_RANGE[1]) & (spread > MIN_SPREAD)


def leaderboard(game: Game, council, ballast, sweep: Game | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The official ratings: each model's line from its own contest, best first, and the contests' guards.

    sweep: as in `contest`, for a single run rated with another run's consistencies. Returns (models x
    `RATINGS` and `seat`, models x gap, spread, identified).
    """
    rows, guards = {}, {}
    for model in game.models:
        held = contest(game, model, council, ballast, sweep)
        rows[model] = {**held.estimates.table.loc[model], "seat": model in council}
        guards[model] = {"gap": held.gap, "spread": held.spread, "identified": bool(held.identified)}
    table = pd.DataFrame.from_dict(rows, orient="index").sort_values("T", ascending=False, kind="stable")
    return table, pd.DataFrame.from_dict(guards, orient="index").loc[table.index]


def leaderboard_replicates(table: AtomTable, counts, council, ballast) -> dict:
    """Replicates of the leaderboard on one joint draw of the whole grid: {"T": [b, model], …, "gap": [b,
    model], "spread": [b, model]} in the order of the game's evaluators."""
    counts, game = np.asarray(counts, dtype=float), table.game
    values = {name: np.full((len(counts), len(game.models)), np.nan) for name in (*RATINGS, "gap", "spread")}
    shared = {}
    for m, model in enumerate(game.models):
        evaluators, targets = line_up(game, model, council, ballast)
        key = (tuple(evaluators), tuple(targets))
        if key not in shared:  # all seats contest with the council alone
            part, atoms = table.select(evaluators, targets)
            shared[key] = joint_replicates(part, counts[:, atoms], council)
        drawn, place = shared[key], evaluators.index(model)
        for name in RATINGS:
            values[name][:, m] = drawn[name][:, place]
        seats = drawn["EF"][:, [evaluators.index(name) for name in council]]
        values["gap"][:, m], values["spread"][:, m] = drawn["gap"], np.ptp(seats, axis=1)
    return values


def leaderboard_intervals(
    game: Game, council, ballast, *, B: int, rng: np.random.Generator, confidence: float = 0.95
) -> tuple[dict, dict]:
    """Joint percentile intervals of the leaderboard: ({"T": frame[model: estimate, lo, hi], …}, the
    replicates).
    """
    point, _ = leaderboard(game, council, ballast)
    point = point.loc[list(game.models)]
    atoms = atom_table(game)
    values = leaderboard_replicates(atoms, bootstrap_weights(atoms.n_atoms, B, rng), council, ballast)
    return {
        name: interval_frame(point[name].astype(float), values[name], confidence) for name in RATINGS
    }, values


def adjacent_resolved(table: pd.DataFrame) -> list[tuple[int, int]]:
    """Adjacent ranks whose intervals do not overlap, as (rank, rank + 1); table: columns estimate, lo, hi."""
    ordered = table.sort_values("estimate", ascending=False)
    lo, hi = ordered["lo"].to_numpy(), ordered["hi"].to_numpy()
    return [(k + 1, k + 2) for k in range(len(ordered) - 1) if lo[k] > hi[k + 1]]


def ballast_table(
    game: Game, council, candidates, ballast, sizes=(0, 1, 2, 3)
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Each seat's anchored E^F by contest composition (Table 7) and each composition's guards.

    Mean over the contests for `candidates` (models without a seat) with the first k blocks of `ballast`,
    beside all evaluators over all portfolios ("all"). Second frame, by composition: gap and spread (means
    over contests), passed (share of contests in which both guards hold), deviation (mean |E^F - reference|
    over contests and seats), swing (largest range of one seat's E^F over contests).
    """
    ratings, _ = factual_matrix(game)
    everyone = spectral.anchored(spectral.two_sided(ratings).loadings, game.anchor_index)
    reference = pd.Series(everyone, list(game.evaluators))[list(council)]
    seats, guards = {}, {}
    for k in sizes:
        held = [contest(game, candidate, council, ballast[:k]) for candidate in candidates]
        values = pd.DataFrame([one.estimates.table.loc[list(council), "EF"] for one in held])
        seats[k] = values.mean()
        guards[k] = {
            "gap": np.mean([one.gap for one in held]),
            "spread": np.mean([one.spread for one in held]),
            "passed": np.mean([one.identified for one in held]),
            "deviation": float((values - reference).abs().to_numpy().mean()),
            "swing": float((values.max() - values.min()).max()),
        }
    seats["all"] = reference
    return pd.DataFrame(seats), pd.DataFrame.from_dict(guards, orient="index")


def resolved_above(table: dict, challenger: str, incumbent: str) -> bool:
    """Whether the challenger's T beats the incumbent's by a margin the bootstrap can resolve.

    table: the replicates of `leaderboard_replicates` with a key "models" (their order): the 2.5th percentile
    of the paired difference must lie above 0.
    """
    order = list(table["models"])
    difference = table["T"][:, order.index(challenger)] - table["T"][:, order.index(incumbent)]
    return bool(np.nanpercentile(difference, 2.5) > 0)
