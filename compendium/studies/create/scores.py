"""CREATE: from judged paths to the paper's numbers (sections 3, 6 and 7, appendices E and J).

Everything here takes the table of paths of `compendium.studies.create.answers` (one or more sources stacked) and the vectors
of their texts. Results are frames indexed by source; "survives" means structurally valid and factual in every
triple.
"""

import io
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from compendium.frame.files import atomic_write, read_bytes
from lib.embedding import embed
from lib.means import mean_interval
from lib.paired import paired_difference
from lib.ranks import bonferroni
from lib.utility import (
    CUTOFF,
    PATIENCE,
    discounted,
    greedy,
    optimal_order,
    patience_weights,
    set_distances,
    upper_bound,
)

NO_PATH = 1.0  # what the released leaderboard gives a query without a surviving path


@dataclass(frozen=True)
class TextVectors:
    """Unit vectors of texts: `matrix[text, dimension]`, rows in the order of `texts` (sorted, unique)."""

    texts: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, texts, model: str, cache=None) -> "TextVectors":
        """Vectors of every distinct text, from `lib.embedding.embed`."""
        unique = sorted(set(texts))
        return cls(np.array(unique, dtype=object), embed(unique, model, cache))

    def rows(self, texts) -> np.ndarray:
        """vectors[text, dimension] for `texts`. Raises KeyError for a text that was not embedded."""
        place = {text: row for row, text in enumerate(self.texts)}
        return self.matrix[[place[text] for text in texts]]

    def save(self, path):
        """Write as .npz (read by `load`)."""
        save_vectors(path, {"": self})

    @classmethod
    def load(cls, path) -> "TextVectors":
        """What `save` wrote."""
        return load_vectors(path)[""]


def save_vectors(path, by_model: dict) -> None:
    """Write {model name: TextVectors} as one .npz, whole or not at all."""
    arrays = {
        f"{part}:{name}": value
        for name, found in by_model.items()
        for part, value in (("texts", found.texts.astype(str)), ("matrix", found.matrix))
    }
    with atomic_write(path, suffix=".npz") as temporary:
        np.savez(temporary, **arrays)


def load_vectors(path) -> dict:
    """{model name: TextVectors} as `save_vectors` wrote them."""
    with np.load(io.BytesIO(read_bytes(path))) as stored:
        names = [key.removeprefix("texts:") for key in stored.files if key.startswith("texts:")]
        return {
            name: TextVectors(stored[f"texts:{name}"].astype(object), stored[f"matrix:{name}"])
            for name in names
        }


@dataclass(frozen=True)
class PathSets:
    """The paths that count, one padded set a (source, query): keys, quality[set, item] (0 beyond the end),
    distance[set, item, item], length[set, item] (triples)."""

    keys: pd.MultiIndex
    quality: np.ndarray
    distance: np.ndarray
    length: np.ndarray


def survives(paths: pd.DataFrame, at_least: float = 1.0) -> pd.Series:
    """Which paths count: valid, and a share of at least `at_least` of their triples factual (1: all of
    them)."""
    if at_least >= 1:
        return paths["valid"].astype(bool) & (paths["factual"] == 1)
    return paths["valid"].astype(bool) & (paths["share_factual"] >= at_least - 1e-9)


def path_sets(
    paths: pd.DataFrame,
    queries: pd.DataFrame,
    vectors: TextVectors,
    *,
    quality: str = "strength",
    at_least: float = 1.0,
    cutoff: float = CUTOFF,
    wraps: bool = False,
) -> PathSets:
    """One set a (source, query) of `queries` (columns source, query), empty sets included.

    quality : column of `paths` that holds σ: `strength` (as released: the final triple left out) or
        `weakest`.
    at_least : share of factual triples that a path needs.
    wraps : the distance of the authors' code (see `lib.utility.path_distance`).
    Repeats of a path within a set are harmless: their distance is 0, so they gain nothing.
    """
    keys = pd.MultiIndex.from_frame(queries[["source", "query"]])
    kept = paths[survives(paths, at_least) & paths[quality].notna()]
    row = keys.get_indexer(pd.MultiIndex.from_frame(kept[["source", "query"]]))
    kept, row = kept[row >= 0], row[row >= 0]
    item = pd.Series(row).groupby(row).cumcount().to_numpy()
    width = int(item.max(initial=0)) + 1
    values, length = np.zeros((len(keys), width)), np.zeros((len(keys), width))
    values[row, item], length[row, item] = kept[quality], kept["length"]
    distance = np.zeros((len(keys), width, width))
    matrix = vectors.rows(kept["text"])
    starts = np.flatnonzero(np.r_[True, np.diff(row) != 0]) if len(row) else []
    order = np.argsort(row, kind="stable")
    for block in np.split(order, np.flatnonzero(np.diff(row[order])) + 1) if len(starts) else ():
        n = len(block)
        distance[row[block[0]], :n, :n] = set_distances(matrix[block], cutoff, wraps=wraps)
    return PathSets(keys, values, distance, length)


def utilities(sets: PathSets, patience=PATIENCE, delay: int = 1, empty: float = NO_PATH) -> pd.DataFrame:
    """Creative utility by (source, query) and patience; a set without a surviving path gets `empty`."""
    found = discounted(greedy(sets.quality, sets.distance).gain, patience, delay)
    found[~(sets.quality > 0).any(axis=1)] = empty
    return pd.DataFrame(found, index=sets.keys, columns=[f"{gamma:.1f}" for gamma in patience])


def mean_utility(by_query: pd.DataFrame, B: int, rng: np.random.Generator):
    """Mean over queries by source, with the bounds of `lib.means.mean_interval`: three frames (mean, lo, hi)."""
    frames = [{}, {}, {}]
    for source, rows in by_query.groupby(level="source", sort=False):
        for frame, values in zip(frames, mean_interval(rows.to_numpy().T, B=B, rng=rng)):
            frame[source] = np.atleast_1d(values)
    return [pd.DataFrame(frame, index=by_query.columns).T for frame in frames]


def set_summary(sets: PathSets) -> pd.DataFrame:
    """Table 16 by source: `max_quality` (a query without a path counts 0), `mean_distance` (pairs within a
    set; sets of two or more), `n_factual` (paths a query), `mean_length` (triples a path, sets of one or
    more)."""
    present = sets.quality > 0
    count = present.sum(axis=1)
    pairs = (
        np.triu(np.ones(sets.distance.shape[1:], dtype=bool), k=1)[None]
        & present[:, :, None]
        & present[:, None, :]
    )
    with np.errstate(invalid="ignore"):
        between = np.where(pairs, sets.distance, 0).sum(axis=(1, 2)) / pairs.sum(axis=(1, 2))
        length = np.where(present, sets.length, 0).sum(axis=1) / count
    frame = pd.DataFrame(
        {
            "max_quality": sets.quality.max(axis=1),
            "mean_distance": between,
            "n_factual": count.astype(float),
            "mean_length": length,
        },
        index=sets.keys,
    )
    return frame.groupby(level="source", sort=False).mean()


def distinctiveness(
    paths: pd.DataFrame, vectors: TextVectors, *, above: float = 3, queries=None, family=None
) -> pd.DataFrame:
    """ν of every strong path: its distance to the nearest valid path that any other source gave for the same
    query.

    Strong: valid, factual, strength above `above`. queries: the query numbers to use (all by default). family:
    a function source -> model; given, the pool leaves out everything by the same model, not by the same
    source only.
    Returns the strong paths with the column `nu`; NaN where no other source has a valid path (appendix J.2).
    """
    family = family or (lambda source: source)
    population = paths[paths["valid"].astype(bool)]
    if queries is not None:
        population = population[population["query"].isin(queries)]
    parts = []
    for _, rows in population.groupby("query", sort=True):
        strong = rows[survives(rows) & (rows["strength"] > above)]
        if strong.empty:
            continue
        matrix = vectors.rows([*strong["text"], *rows["text"]])
        distance = set_distances(matrix)[: len(strong), len(strong) :]
        foreign = (
            strong["source"].map(family).to_numpy()[:, None] != rows["source"].map(family).to_numpy()[None, :]
        )
        nu = np.where(foreign, distance, np.inf).min(axis=1)
        parts.append(strong.assign(nu=np.where(np.isinf(nu), np.nan, nu)))
    return pd.concat(parts) if parts else population.iloc[:0].assign(nu=np.nan)


def distinctiveness_table(strong: pd.DataFrame) -> pd.DataFrame:
    """Table 21 by source: `nu_mean` (over paths), `nu_max` (the best of each query, averaged),
    `mean_strength`, `n_paths`."""
    by_source = strong.groupby("source", sort=False)
    best = (
        strong.groupby(["source", "query"], sort=False)["nu"].max().groupby(level="source", sort=False).mean()
    )
    return pd.DataFrame(
        {
            "nu_mean": by_source["nu"].mean(),
            "nu_max": best,
            "mean_strength": by_source["strength"].mean(),
            "n_paths": by_source.size().astype(float),
        }
    )


def threshold_curve(
    paths: pd.DataFrame, queries: pd.DataFrame, vectors: TextVectors, thresholds
) -> pd.DataFrame:
    """Figure 8: mean utility at patience 1 by source when a path needs only a share of factual triples; σ alone
    is the quality.

    thresholds : shares 0 … 1 (0 keeps every valid path). Returns a frame [source, threshold].
    """
    columns = {}
    for share in thresholds:
        found = utilities(path_sets(paths, queries, vectors, at_least=share), [1.0])
        columns[f"{share:g}"] = found.groupby(level="source", sort=False).mean().iloc[:, 0]
    return pd.DataFrame(columns)


def factual_counts(paths: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Table 20 by source: `factual_triples` (a query, over valid paths), `share_factual` (of their triples),
    `share_paths` (valid paths that are factual throughout)."""
    valid = paths[paths["valid"].astype(bool)]
    n_queries = queries.groupby("source", sort=False).size()
    by_source = valid.groupby("source", sort=False)
    triples = by_source["n_factual_triples"].sum()
    return pd.DataFrame(
        {
            "factual_triples": triples / n_queries,
            "share_factual": triples / by_source["length"].sum(),
            "share_paths": by_source["factual"].mean(),
        }
    ).reindex(n_queries.index)


def pairwise_differences(by_query: pd.Series, B: int, rng: np.random.Generator) -> pd.DataFrame:
    """Appendix J.1: mean difference of every pair of sources over the queries both answered, by
    `lib.paired.paired_difference`.

    by_query : utility indexed by (source, query). Returns a frame indexed `a|b` with difference (b − a), lo,
        hi, p, test (how p was found),
    p_bonferroni (times the number of pairs that were tested, at most 1) and n (shared queries).
    """
    wide = by_query.unstack("source")[by_query.index.get_level_values("source").unique()]
    pairs = list(combinations(wide.columns, 2))
    rows = {}
    for first, second in pairs:
        both = wide[[first, second]].dropna()
        if both.empty:
            rows[f"{first}|{second}"] = (np.nan, np.nan, np.nan, np.nan, "none: no shared query", 0)
            continue
        found = paired_difference(both[first].to_numpy(), both[second].to_numpy(), B=B, rng=rng)
        rows[f"{first}|{second}"] = (*found, len(both))
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["difference", "lo", "hi", "p", "test", "n"])
    table.insert(5, "p_bonferroni", bonferroni(table["p"]))
    return table


def order_gap(sets: PathSets, patience: float, limit: int, depth: int = 2, delay: int = 1) -> pd.DataFrame:
    """Greedy against the best order, by (source, query): greedy, best (NaN beyond `limit` items), bound,
    n."""
    rows = []
    for quality, distance in zip(sets.quality, sets.distance):
        here = np.flatnonzero(quality > 0)
        quality, distance = quality[here], distance[np.ix_(here, here)]
        weights = patience_weights(len(here), patience, delay)[0]
        found = float(greedy(quality[None], distance[None]).gain[0] @ weights) if len(here) else np.nan
        best = optimal_order(quality, distance, weights, limit)[0] if 0 < len(here) <= limit else np.nan
        bound = upper_bound(quality, distance, weights, depth) if len(here) else np.nan
        rows.append((found, best, bound, len(here)))
    return pd.DataFrame(rows, index=sets.keys, columns=["greedy", "best", "bound", "n"])


def confusion_rates(truth, verdict) -> dict:
    """A yes/no judge against labels: accuracy, balanced_accuracy, and precision, recall and f1 of each class.

    truth[unit], verdict[unit]: 1 factual, 0 not; pairs with a missing member (NaN) are left out. Rates whose
    denominator is empty are NaN. Raises ValueError for arrays of different lengths.
    """
    truth, verdict = np.asarray(truth, dtype=float), np.asarray(verdict, dtype=float)
    if truth.shape != verdict.shape:
        raise ValueError(f"labels and verdicts should have one length, got {truth.shape} and {verdict.shape}")
    both = ~(np.isnan(truth) | np.isnan(verdict))
    truth, verdict = truth[both] > 0.5, verdict[both] > 0.5
    rates = {"n": float(both.sum()), "accuracy": _share((truth == verdict).sum(), both.sum())}
    for name, label in (("factual", True), ("not_factual", False)):
        hit = ((truth == label) & (verdict == label)).sum()
        rates[f"precision_{name}"] = _share(hit, (verdict == label).sum())
        rates[f"recall_{name}"] = _share(hit, (truth == label).sum())
        rates[f"f1_{name}"] = _share(2 * hit, (verdict == label).sum() + (truth == label).sum())
    rates["balanced_accuracy"] = (rates["recall_factual"] + rates["recall_not_factual"]) / 2
    return rates


def tables_behind(n: int, rates: dict, decimals: int = 2) -> pd.DataFrame:
    """Every 2 × 2 table of n judged units whose printed rates round to `rates` (names as in
    `confusion_rates`).

    A reader's check: which counts could stand behind printed precisions and recalls. Columns: tp, fn, fp, tn
    (positive = factual), accuracy, balanced_accuracy.
    """
    tp, fn, fp = np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij", sparse=True)
    tn = n - tp - fn - fp
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {"recall_factual": tp / (tp + fn), "precision_factual": tp / (tp + fp)}
        keep = tn >= 0
        for name in ("recall_factual", "precision_factual"):
            keep = keep & (np.abs(found[name] - rates[name]) <= 0.5 * 10.0**-decimals)
        place = np.nonzero(keep)
        tp, fn, fp = place
        tn = n - tp - fn - fp
        keep = np.ones(len(tp), dtype=bool)
        for name, value in (
            ("recall_not_factual", tn / (tn + fp)),
            ("precision_not_factual", tn / (tn + fn)),
        ):
            keep &= np.abs(value - rates[name]) <= 0.5 * 10.0**-decimals
    tp, fn, fp, tn = (counts[keep] for counts in (tp, fn, fp, tn))
    return pd.DataFrame(
        {
            "tp": tp,
            "fn": fn,
            "fp": fp,
            "tn": tn,
            "accuracy": (tp + tn) / n,
            "balanced_accuracy": (tp / (tp + fn) + tn / (tn + fp)) / 2,
        }
    )


def _share(part, whole) -> float:
    return float(part) / float(whole) if whole else float("nan")
