"""All of AlienBench's estimators, from labels to cells at B = 10,000, against the same analysis in loops.

    python tests/bench/bench_alienbench.py [--archive] [--full] [--share 0.002]

Labels are a simulated study of the archive's size (ten models, six conditions of 30 and five paraphrases of
10 generations, three judges, ten features); with --archive, the authors' release (COMPENDIUM_MIRROR or
download). The peer (peer_alienbench.py) runs its Python loops on a share of the replicates and counts them
up; --full runs them all, which takes many minutes. Values that do not depend on draws must be equal between
the two. Prints both times, in parts, and their ratio; ends with an error below a ratio of 100.
"""

import argparse
import os
import sys
from itertools import combinations, permutations
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import peer_alienbench as peer  # noqa: E402

from compendium.studies.alienbench.data import Labels, from_tables, load_archive  # noqa: E402
from lib import ranks, subsets  # noqa: E402
from lib.agreement import krippendorff_alpha, krippendorff_alpha_interval, landis_koch  # noqa: E402
from lib.power import minimum_detectable_effect  # noqa: E402
from lib.resampling import bootstrap, spearman_null  # noqa: E402

MARK = 100
CONDITIONS = (
    "baseline",
    "departure_primed",
    "constrained_no_light",
    "constrained_high_gravity",
    "constrained_ammonia",
    "detailed_description",
)
WORDINGS = ("baseline", *(f"baseline_para_{letter}" for letter in "abcde"))


def settings_for(models, conditions=CONDITIONS, wordings=WORDINGS):
    return SimpleNamespace(
        models=list(models),
        conditions=list(conditions),
        wordings=list(wordings),
        B=10_000,
        B_min_k=1_000,
        simulations=4_000,
        seed=20261109,
    )


def simulated(seed=0):
    """A study of the archive's size: a label departs with the propensities of its model, condition, feature
    and generation, and each judge misreads one label in fifteen."""
    rng = np.random.default_rng(seed)
    models, features = [f"model-{i}" for i in range(10)], [f"feature-{i}" for i in range(10)]
    judges = ["judge-0", "judge-1", "judge-2"]
    plan = [
        (model, condition, sample)
        for model in models
        for condition, n in [*((name, 30) for name in CONDITIONS), *((name, 10) for name in WORDINGS[1:])]
        for sample in range(n)
    ]
    generations = pd.DataFrame(plan, columns=["model", "condition", "sample_index"])
    generations.insert(0, "generation_id", [f"g{i}" for i in range(len(generations))])
    generations["completion_tokens"] = rng.integers(300, 3000, len(generations))
    logit = (
        rng.normal(size=len(models))[generations["model"].astype("category").cat.codes][:, np.newaxis]
        + effects(generations["condition"], rng)[:, np.newaxis]
        + 1.5 * rng.normal(size=len(features))
        + rng.normal(size=(len(generations), 1))
        - 0.3
    )
    truth = rng.random(logit.shape) < 1 / (1 + np.exp(-logit))
    misread = rng.random((len(generations), len(judges), len(features))) < 1 / 15
    return Labels(generations, (truth[:, np.newaxis] ^ misread).astype(float), judges, features)


def effects(column, rng):
    """One normal effect a value of the column."""
    codes = column.astype("category").cat.codes.to_numpy()
    return rng.normal(size=codes.max() + 1)[codes]


def released():
    """(study, settings, seconds): the archive, parsed."""
    from compendium.frame.archive import Archive
    from compendium.frame.params import study_params

    params = study_params("alienbench", profile="released")
    samples = dict.fromkeys(params["wordings"], params["n_samples_paraphrase"])
    samples |= dict.fromkeys(params["conditions"], params["n_samples"])
    judges, features = list(params["judges"]), list(params["features"])
    start = perf_counter()
    generations, labels, _ = load_archive(
        Archive("alienbench"), subjects=params["subjects"], judges=judges, features=features, samples=samples
    )
    study = from_tables(generations, labels, judges=judges, features=features)
    seconds = perf_counter() - start
    settings = settings_for(params["subjects"], params["conditions"], params["wordings"])
    return study.of(models=params["subjects"]), settings, seconds


def analysis(study, settings):
    """All cells of the study, by the public functions of lib. Returns (cells, seconds by part)."""
    cells, parts, B, clock = {}, {}, settings.B, [perf_counter()]
    draws = iter(np.random.default_rng(settings.seed).spawn(200))

    def lap(part):
        clock.append(perf_counter())
        parts[part] = parts.get(part, 0.0) + clock[-1] - clock[-2]

    main = study.of(models=settings.models, conditions=settings.conditions)
    totals, scores = main.totals(), main.scores()
    by_condition = main.by("condition", settings.conditions)
    lap("scores")

    by_model = main.by("model", settings.models)
    tokens = main.generations["completion_tokens"].to_numpy(dtype=float)
    names = main.generations["model"].to_numpy()
    dense = np.stack([(scores / tokens * 100)[names == model] for model in settings.models])
    overall = bootstrap(np.stack(list(by_model.values())), B=B, rng=next(draws))
    per_100 = bootstrap(dense, B=B, rng=next(draws))
    for number, model in enumerate(settings.models):
        cells["overall", model], cells["per_100", model] = overall.estimate[number], per_100.estimate[number]
    lap("means: 20 intervals")

    total = krippendorff_alpha_interval(totals.T, "interval", B=B, rng=next(draws))
    each = krippendorff_alpha_interval(main.values.transpose(2, 1, 0), "nominal", B=B, rng=next(draws))
    cells["alpha", "total"] = total.estimate
    cells |= {("alpha", feature): value for feature, value in zip(study.features, each.estimate, strict=True)}
    cells |= {("band", feature): landis_koch(cells["alpha", feature]) for feature in study.features}
    lap("alpha: 11 values and intervals")

    pairs = list(combinations(settings.conditions, 2))
    cells["H",] = ranks.kruskal_wallis(list(by_condition.values())).H
    tests = {pair: ranks.mann_whitney(*(by_condition[name] for name in pair)) for pair in pairs}
    cells |= {("r", *pair): test.r for pair, test in tests.items()}
    cells["p_bonferroni",] = ranks.bonferroni([test.p for test in tests.values()])
    lap("condition tests")
    for pair in pairs:
        cells["r_interval", *pair] = ranks.rank_biserial_interval(
            *(by_condition[name] for name in pair), B=B, rng=next(draws)
        )
    lap("rank-biserial: 15 intervals")
    n = len(by_condition[settings.conditions[0]])
    cells["minimum_detectable",] = minimum_detectable_effect(
        n, n, alpha=0.05 / len(pairs), simulations=settings.simulations, rng=next(draws)
    ).abs_r
    lap("minimum detectable effect")

    means = study.means(settings.models, settings.wordings).to_numpy().T
    rho = ranks.spearman(means[:, np.newaxis], means[np.newaxis])
    mad = ranks.mean_absolute_difference(means[:, np.newaxis], means[np.newaxis])
    for i, j in combinations(range(len(means)), 2):
        pair = settings.wordings[i], settings.wordings[j]
        cells["rho", *pair], cells["mad", *pair] = rho[i, j], mad[i, j]
    for i, j in permutations(range(len(means)), 2):
        null = spearman_null(means[i], means[j], B=B, rng=next(draws))
        cells["null", settings.wordings[i], settings.wordings[j]] = np.quantile(null, [0.025, 0.975])
    lap("wordings: 30 nulls")

    rates = main.rates(settings.models)
    without = subsets.leave_one_out(rates)
    search = subsets.subset_search(rates)
    smallest = subsets.smallest_k(rates)
    cells |= {("loo", feature): value for feature, value in without["rho"].items()}
    for column in ("median_rho", "best_tau", "min_mad"):
        cells |= {(column, k): value for k, value in search[column].items()}
    cells["k_rho",], cells["k_tau",] = smallest.k_rho, smallest.k_tau
    cells["pairwise",] = subsets.mean_pairwise_rho(rates)
    lap("features: leave one out, all subsets")
    null = subsets.smallest_k_null(rates, B=settings.B_min_k, rng=next(draws))
    cells["p_min_k",] = null.p_rho, null.p_tau
    lap("features: null of the smallest k")

    by_judge = np.array([totals[names == model].mean(axis=0) for model in settings.models]).T
    held_out = subsets.judge_leave_one_out(by_judge)
    placed = subsets.ranks_without_judge(by_judge)
    for number, judge in enumerate(study.judges):
        rest = np.delete(by_judge, number, axis=0).mean(axis=0)
        null = spearman_null(by_judge[number], rest, B=B, rng=next(draws))
        cells["judge_rho", judge] = held_out.loc[number, "rho"]
        cells["judge_null", judge] = np.quantile(null, [0.025, 0.975])
        cells["judge_alpha", judge] = krippendorff_alpha(np.delete(totals, number, axis=1).T, "interval")
        cells["judge_ranks", judge] = placed.loc[number].to_numpy()
    lap("judges: 3 nulls")
    return cells, parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archive", action="store_true", help="the released labels, not simulated ones")
    parser.add_argument("--full", action="store_true", help="run the peer's loops in full (many minutes)")
    parser.add_argument("--share", type=float, default=0.002, help="share of the replicates the peer runs")
    options = parser.parse_args()
    if options.archive:
        study, settings, seconds = released()
        print(f"archive parsed in {seconds:.2f} s: {len(study.generations)} generations")
    else:
        study, settings = simulated(), settings_for([f"model-{i}" for i in range(10)])

    analysis(study, SimpleNamespace(**{**vars(settings), "B": 10, "B_min_k": 2, "simulations": 10}))  # warm
    times = []
    for _ in range(3):
        start = perf_counter()
        cells, parts = analysis(study, settings)
        times.append(perf_counter() - start)
    ours = min(times)
    print(
        f"lib, B = {settings.B:,}, one thread: {ours:.2f} s (best of {len(times)}: "
        f"{', '.join(f'{seconds:.2f}' for seconds in times)})"
    )
    for part, seconds in parts.items():
        print(f"  {seconds:8.3f} s  {part}")

    share = 1.0 if options.full else options.share
    shares = {"B": share, "B_min_k": share, "simulations": max(share, 0.02)}
    theirs, watch = peer.analysis(study, settings, shares)
    how = (
        "in full"
        if options.full
        else (
            f"counted up from {share:.2%} of the replicates, "
            f"{shares['simulations']:.0%} of simulations; fixed work as is"
        )
    )
    print(f"loops: {watch.full:.0f} s ({how}; ran {watch.spent:.1f} s)")
    for part, seconds in watch.parts.items():
        print(f"  {seconds:8.1f} s  {part}")

    for address, value in theirs.items():
        assert np.isclose(cells[address], value, rtol=1e-9, atol=1e-9), (address, cells[address], value)
    print(f"{len(theirs)} values without draws in them are equal")
    print(f"ratio {watch.full / ours:.0f}x (mark: {MARK}x)")
    if watch.full / ours < MARK:
        sys.exit(f"below the mark of {MARK}x")


if __name__ == "__main__":
    main()
