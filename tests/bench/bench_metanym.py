"""The Metanym Game's estimates for one run with 1,000 joint replicates: point estimates and intervals on both
bases (twelve evaluators; twelve contests), against a loop that takes numpy.linalg.svd of each replicate's
matrix and counts each correlation anew. The same draws go to both; prints seconds and the ratio, and fails if
the numbers differ.
"""

import sys
from itertools import combinations
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compendium.frame.params import study_params  # noqa: E402
from compendium.studies.metanym.components import (
    atom_table,
    components,
    factual_matrix,
    joint_intervals,
    joint_replicates,
)
from compendium.studies.metanym.contest import leaderboard_intervals, line_up  # noqa: E402
from compendium.studies.metanym.game import PER_ARCHETYPE, build_game  # noqa: E402
from compendium.studies.metanym.ratings import read_table  # noqa: E402
from lib.consistency import collapse  # noqa: E402
from lib.resampling import bootstrap_weights  # noqa: E402
from lib.spectral import two_sided  # noqa: E402

B, SAMPLE = 1000, 20  # replicates; how many of them the slow peer works out (its time is scaled)


def peer(game, council, counts, reference):
    """Replicate by replicate: repeat the drawn archetypes, take the SVD, correlate pair by pair. {name: [b,
    model]}.
    """
    matrix, target_of = factual_matrix(game)
    matrix = np.where(np.isnan(matrix), 7.0, matrix)
    a, seats = game.anchor_index, [game.evaluators.index(name) for name in council]
    units = {axis: game.sweep(axis)[0, ..., 0] for axis in (*PER_ARCHETYPE, "structure")}
    units["collapsed"] = collapse(game.subjective[0])
    place = game.anchors.index(game.production)
    rows = {name: [] for name in ("EF", "EC", "GF", "GC")}
    for row in counts.astype(int):
        drawn = np.repeat(np.arange(len(row)), row)
        columns = (drawn[:, None] * 5 + np.arange(5)).reshape(-1)
        taken = matrix[:, columns]
        means = taken.mean(axis=1)
        centred = taken - means[:, None]
        u, _, _ = np.linalg.svd(centred, full_matrices=False)
        outer, _, other = np.linalg.svd(u[:, :2].T @ reference)
        left = (u[:, :2] @ outer @ other)[:, 0]
        f = np.maximum(left, 0)
        consensus = f @ means / f.sum() + f @ left / f.sum() * (centred.T @ left)
        own = [consensus[target_of[columns] == t] for t in range(len(game.targets))]
        rows["GF"].append([values.mean() if len(values) else np.nan for values in own])
        rows["EF"].append(7 * f / f[a])
        there = np.unique(drawn // 5) * 5  # a portfolio's one structural score counts once
        r = {
            axis: judge_by_judge(
                values.reshape(*values.shape[:2], -1)[..., there if axis == "structure" else drawn]
            )
            for axis, values in units.items()
        }
        rows["EC"].append(7 * r["collapsed"] / r["collapsed"][a])
        owner = drawn // 5
        quality = []
        for t in range(len(game.targets)):
            means_of = []
            for axis in (*PER_ARCHETYPE, "structure"):
                votes = units[axis][place].reshape(len(game.evaluators), -1)[:, drawn[owner == t]][seats]
                votes = np.array(
                    [np.mean(v[~np.isnan(v)]) if (~np.isnan(v)).any() else np.nan for v in votes]
                )
                weight = np.maximum(np.nan_to_num(r[axis][seats]), 0) * ~np.isnan(votes)
                means_of.append(
                    (weight * np.nan_to_num(votes)).sum() / weight.sum() if weight.sum() else np.nan
                )
            quality.append(np.mean(means_of))
        rows["GC"].append(quality)
    return {name: np.array(values) for name, values in rows.items()}


def judge_by_judge(scores):
    """A10 as written: scores[anchor, judge, unit]."""
    result = []
    for judge in range(scores.shape[1]):
        found = []
        for one, two in combinations(range(len(scores)), 2):
            both = ~np.isnan(scores[one, judge]) & ~np.isnan(scores[two, judge])
            x, y = scores[one, judge, both], scores[two, judge, both]
            if len(x) and np.ptp(x) > 0 and np.ptp(y) > 0:
                found.append(np.corrcoef(x, y)[0, 1])
        result.append(np.mean(found) if found else np.nan)
    return np.array(result)


def main():
    p = SimpleNamespace(**{**study_params("metanym"), "runs": [1]})
    ratings = read_table("data/demo/metanym/ratings.csv.gz").query("run == 1")
    game = build_game(
        ratings,
        anchor_model=p.anchor_model,
        evaluators=list(p.players),
        targets=[name for name in p.players if name != p.anchor_model],
        zeros=p.zeros,
    )
    rng = np.random.default_rng(0)
    start = perf_counter()
    joint_intervals(game, p.council, B=B, rng=rng)
    leaderboard_intervals(game, p.council, p.ballast[:2], B=B, rng=rng)
    whole = perf_counter() - start
    print(
        f"all point estimates and {B} joint replicates, twelve evaluators and twelve contests: {whole:.2f} s (mark: 5 s)"
    )

    table = atom_table(game)
    counts = bootstrap_weights(table.n_atoms, B, rng)
    start = perf_counter()
    fast = joint_replicates(table, counts, p.council)
    together = perf_counter() - start
    matrix, _ = factual_matrix(game)
    reference = two_sided(matrix).basis
    start = perf_counter()
    slow = peer(game, p.council, counts[:SAMPLE], reference)
    one_by_one = (perf_counter() - start) * B / SAMPLE
    graded = [game.evaluators.index(name) for name in game.targets]
    for name in ("EF", "EC"):
        np.testing.assert_allclose(fast[name][:SAMPLE], slow[name], atol=1e-8)
    for name in ("GF", "GC"):
        np.testing.assert_allclose(fast[name][:SAMPLE][:, graded], slow[name], atol=1e-8)
    start = perf_counter()
    for row in counts[:200].astype(int):
        columns = (np.repeat(np.arange(len(row)), row)[:, None] * 5 + np.arange(5)).reshape(-1)
        taken = np.nan_to_num(matrix[:, columns], nan=7.0)
        np.linalg.svd(taken - taken.mean(axis=1, keepdims=True), full_matrices=False)
    svd_alone = (perf_counter() - start) * B / 200
    print(
        f"twelve evaluators, {B} replicates: together {together:.3f} s; one by one {one_by_one:.1f} s (from {SAMPLE}), "
        f"ratio {one_by_one / together:.0f}x (mark: 20x)"
    )
    print(
        f"the loop's SVDs alone: {svd_alone:.2f} s, ratio {svd_alone / together:.1f}x to everything together"
    )
    evaluators, targets = line_up(game, None, p.council, p.ballast[:2])
    part, atoms = table.select(evaluators, targets)
    start = perf_counter()
    joint_replicates(part, counts[:, atoms], p.council)
    print(f"one contest, {len(atoms)} atoms: {perf_counter() - start:.3f} s")
    assert whole < 5 and one_by_one / together >= 20
    assert components(game, p.council).table["T"].notna().all()


if __name__ == "__main__":
    main()
