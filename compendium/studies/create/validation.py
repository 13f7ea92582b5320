"""CREATE, section 6 and appendix E: are the judges right? In the demo the annotators are simulated and truth
is known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from compendium.asking.study import simulator
from compendium.studies.create.ask import judge_requests
from compendium.studies.create.judging import read_class_sizes, read_factuality, specificity
from compendium.studies.create.scores import confusion_rates, path_sets, utilities
from lib.agreement import krippendorff_alpha_interval

TRIPLE = ["head", "relation", "tail"]


def annotated_paths(judgements: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """`n` judged paths with the specificity that the judge and two simulated annotators give them: columns
    path, judge, annotator_1, annotator_2 (each the minimum over the triples that count, as
    `path_strength`)."""
    world = simulator("create")
    last = judgements.groupby("path")["triple"].transform("max")
    counting = judgements[(judgements["triple"] < last) | (last == 0)]
    chosen = rng.choice(counting["path"].unique(), size=min(n, counting["path"].nunique()), replace=False)
    counting = counting[counting["path"].isin(chosen)]
    scores = counting.assign(
        judge=counting["specificity"],
        **{
            f"annotator_{who + 1}": [
                world.annotate(tuple(triple), who) for triple in counting[TRIPLE].to_numpy()
            ]
            for who in (0, 1)
        },
    )
    return scores.groupby("path")[["judge", "annotator_1", "annotator_2"]].min().reset_index()


def labelled_triples(judgements: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """`n` distinct judged triples with the label that the closed world gives: columns head, relation, tail,
    truth, verdict, size (the judge's estimate), specificity."""
    world = simulator("create")
    distinct = judgements.dropna(subset=["factual"]).drop_duplicates(TRIPLE)
    rows = distinct.iloc[np.sort(rng.choice(len(distinct), size=min(n, len(distinct)), replace=False))]
    return pd.DataFrame(
        {
            **{name: rows[name].to_numpy() for name in TRIPLE},
            "truth": [float(world.is_true(tuple(triple))) for triple in rows[TRIPLE].to_numpy()],
            "verdict": rows["factual"].to_numpy(),
            "size": rows["size"].to_numpy(),
            "specificity": rows["specificity"].to_numpy(),
        }
    )


def other_judge(p, triples: pd.DataFrame, judge: str, ask) -> pd.DataFrame:
    """The same triples judged by another judge, one by one: `triples` with verdict, size and specificity
    replaced.

    `p` holds judging (as for `create_stages.judge`) and seed; `ask` as `create_stages.asking` yields it.
    """
    singles = [(place, (tuple(triple),)) for place, triple in enumerate(triples[TRIPLE].to_numpy())]
    requests = judge_requests(singles, judge, max_tokens=p.judging["max_tokens"], seed=p.seed)
    values = {}
    for kind, read in (("factuality", read_factuality), ("specificity", read_class_sizes)):
        asked = [request for request in requests if request.tag["kind"] == kind]
        result = ask(
            asked,
            f"{judge}: {kind}",
            parse=lambda text, read=read: read(text, 1),
            retries_on_invalid=p.judging["retries_on_invalid"],
        )
        values[kind] = [float(reply.parsed[0]) if reply.valid else np.nan for reply in result.replies]
    return triples.assign(
        verdict=values["factuality"],
        size=values["specificity"],
        specificity=specificity(values["specificity"], p.judging["class_size_limits"]),
    )


def annotator_scores(triples: pd.DataFrame) -> np.ndarray:
    """Mean specificity score of the two simulated annotators for each triple."""
    world = simulator("create")
    return np.array(
        [[world.annotate(tuple(triple), who) for who in (0, 1)] for triple in triples[TRIPLE].to_numpy()]
    ).mean(axis=1)


def true_utilities(data: SimpleNamespace, patience) -> pd.DataFrame:
    """Utilities by (source, query) as the closed world has them: every chain judged without error, same
    embeddings."""
    world = simulator("create")
    valid = data.paths["valid"].astype(bool)
    truth = data.paths.assign(
        factual=[float(v and all(map(world.is_true, path))) for v, path in zip(valid, data.paths["triples"])],
        strength=[
            world.true_strength(path) if v else np.nan for v, path in zip(valid, data.paths["triples"])
        ],
    )
    return utilities(path_sets(truth, data.queries, data.vectors), patience)


def rated_sets(truth: pd.Series, found: pd.Series, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """`n` sets with the 1–5 ratings of two simulated annotators and the metric: truth and found are utilities
    by (source, query) at one patience. Columns metric, annotator_1, annotator_2, mean."""
    world = simulator("create")
    standing = (truth - truth.mean()) / truth.std()
    rows = np.sort(rng.choice(len(truth), size=min(n, len(truth)), replace=False))
    frame = pd.DataFrame(
        {
            "metric": found.to_numpy()[rows],
            **{
                f"annotator_{who + 1}": [
                    world.rate_set(standing.iloc[row], truth.index[row], who) for row in rows
                ]
                for who in (0, 1)
            },
        }
    )
    return frame.assign(mean=frame[["annotator_1", "annotator_2"]].mean(axis=1))


def agreement(
    ratings: pd.DataFrame, against: str, B: int, rng: np.random.Generator, level: str = "interval"
) -> dict:
    """alpha (estimate, lo, hi) of columns annotator_1, annotator_2, and Pearson's r of each, and of their
    mean, with the column `against`."""
    people = ratings[["annotator_1", "annotator_2"]]
    alpha = krippendorff_alpha_interval(people.to_numpy(dtype=float).T, level, B=B, rng=rng)
    r = {name: float(np.corrcoef(people[name], ratings[against])[0, 1]) for name in people}
    return {
        "alpha": alpha,
        **{f"pearson_{name}": value for name, value in r.items()},
        "pearson_mean": float(np.corrcoef(people.mean(axis=1), ratings[against])[0, 1]),
    }


def judge_table(by_judge: dict) -> pd.DataFrame:
    """Table 6 by judge: accuracy, f1 of factual and of hallucinated triples, balanced accuracy; by_judge maps
    a judge to a frame with truth and verdict."""
    rates = {judge: confusion_rates(frame["truth"], frame["verdict"]) for judge, frame in by_judge.items()}
    names = {
        "accuracy": "accuracy",
        "f1_factual": "f1_pos",
        "f1_not_factual": "f1_neg",
        "balanced_accuracy": "balanced_accuracy",
    }
    return pd.DataFrame(rates).T[list(names)].rename(columns=names)


def recovery(truth: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """By patience: how well utilities as judged give back the true ones: Pearson's r over answers, mean of
    both, their ratio, and Spearman's rho of the sources' means."""
    from lib.ranks import spearman

    rows = {}
    for gamma in truth.columns:
        means = [frame[gamma].groupby(level="source", sort=False).mean() for frame in (truth, found)]
        rows[gamma] = {
            "r": np.corrcoef(truth[gamma], found[gamma])[0, 1],
            "true_mean": truth[gamma].mean(),
            "found_mean": found[gamma].mean(),
            "ratio": found[gamma].mean() / truth[gamma].mean(),
            "rho_sources": float(spearman(*means)),
        }
    return pd.DataFrame(rows).T
