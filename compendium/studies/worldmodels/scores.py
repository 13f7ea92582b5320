"""World models: Lane 2 of many candidates, and the paper's tables from them.

Every table comes as a frame whose index and columns are the addresses of data/published/worldmodels.csv.
"""

import functools
import itertools

import numpy as np
import pandas as pd

from compendium.studies.worldmodels.posg.criteria import criteria_features, criteria_reference
from compendium.studies.worldmodels.posg.features import feature_multiset, multiset_agreement
from compendium.studies.worldmodels.posg.match import Match, compare
from compendium.studies.worldmodels.posg.model import POSG, canonical_json
from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.posg.structure import differences, properties, structure_profile
from lib.proportions import median_iqr, self_consistency, within_pair_sd
from lib.ranks import spearman

REFERENCE_METRICS = ("states", "joint_actions", "branching_mean", "depth", "stochastic_share", "entropy_mean")


def first_pass(candidates: pd.DataFrame, track: str) -> pd.DataFrame:
    """The candidates of a track as first asked for, located and anonymised only in the cultural track."""
    chosen = candidates[(candidates["track"] == track) & (candidates["round"] == 0)]
    return chosen[chosen["condition"].isin(["", "anonymised", "located"])]


def match_table(candidates: pd.DataFrame, games: dict[str, POSG], *, horizon: int) -> pd.DataFrame:
    """Lane 2a of game candidates against their references: id, coverage, precision, f1, f1_upper, settled (the
    search was complete), same (exact match), and the fallback's fallback_coverage, fallback_precision,
    fallback_f1. Rows for candidates without a model are missing."""
    rows = []
    for row in candidates[candidates["id"].isin(games)].itertuples():
        match = matched(row.case, games[row.id], horizon)
        loose = multiset_agreement(
            feature_multiset(corpus()[row.case].game, horizon), feature_multiset(games[row.id], horizon)
        )
        rows.append(
            [
                row.id,
                match.coverage,
                match.precision,
                match.f1,
                match.f1_upper,
                match.exact,
                match.same,
                loose["coverage"],
                loose["precision"],
                loose["f1"],
            ]
        )
    return pd.DataFrame(
        rows,
        columns=[
            "id",
            "coverage",
            "precision",
            "f1",
            "f1_upper",
            "settled",
            "same",
            "fallback_coverage",
            "fallback_precision",
            "fallback_f1",
        ],
    )


def matched(case: str, game: POSG, horizon: int) -> Match:
    """The match of a case's reference with a candidate; equal candidates are matched once."""
    return _matched(canonical_json(corpus()[case].game), canonical_json(game), horizon)


@functools.lru_cache(maxsize=8192)
def _matched(first: str, second: str, horizon: int) -> Match:
    return compare(_parsed(first), _parsed(second), horizon=horizon)


@functools.lru_cache(maxsize=8192)
def _parsed(text: str) -> POSG:
    import json

    from compendium.studies.worldmodels.posg.model import from_document

    return from_document(json.loads(text))


def criteria_table(candidates: pd.DataFrame, games: dict[str, POSG]) -> pd.DataFrame:
    """Lane 2a where there is no reference model: id, coverage, precision, f1 against the criteria-derived one."""
    rows = []
    for row in candidates[candidates["id"].isin(games)].itertuples():
        criteria = corpus()[row.case].criteria
        found = multiset_agreement(criteria_reference(criteria), criteria_features(games[row.id], criteria))
        rows.append([row.id, found["coverage"], found["precision"], found["f1"]])
    return pd.DataFrame(rows, columns=["id", "coverage", "precision", "f1"])


def structure_table(candidates: pd.DataFrame, games: dict[str, POSG]) -> pd.DataFrame:
    """Lane 2b: id, the structure profile, and the four properties of Figure 5 (booleans)."""
    chosen = [name for name in candidates["id"] if name in games]
    rows = [{"id": name, **structure_profile(games[name]), **properties(games[name])} for name in chosen]
    return pd.DataFrame(rows)


def agreement(first: POSG, second: POSG, horizon: int) -> float:
    """Feature-multiset F1 of two candidates (symmetric)."""
    return multiset_agreement(feature_multiset(first, horizon), feature_multiset(second, horizon))["f1"]


def table_2(valid: pd.DataFrame) -> pd.DataFrame:
    """Rows models: coverage, precision, f1 (means), median, q1, q3 of F1, exact (count). `valid` joins match_table
    to the valid candidates (column model)."""
    rows = {}
    for model, part in valid.groupby("model", sort=False):
        median, q1, q3 = median_iqr(part["f1"])
        rows[model] = {
            **part[["coverage", "precision", "f1"]].mean(),
            "median": median,
            "q1": q1,
            "q3": q3,
            "exact": int(part["same"].sum()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def table_3(game: pd.DataFrame) -> pd.DataFrame:
    """Rows runs and `all`: first_pass_valid, first_pass_of, first_pass_percent, final_valid, final_of, attempts.
    `game` holds every round of the game track."""
    rows = {}
    for run, part in [*game.groupby("run"), ("all", game)]:
        first = part[part["round"] == 0]
        last = part.sort_values("round").groupby(["model", "case", "run"]).tail(1)
        rows[str(run)] = {
            "first_pass_valid": first["contract"].sum(),
            "first_pass_of": len(first),
            "first_pass_percent": 100 * first["contract"].mean(),
            "final_valid": last["lane1"].sum(),
            "final_of": len(last),
            "attempts": len(part),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def table_4(situational: pd.DataFrame) -> pd.DataFrame:
    """Rows models and `all`: validate, probe, pass, n, coverage, precision, f1, checklist, bias_free.
    `situational` joins criteria_table (coverage, precision, f1) and semantic_table (checklist, bias_free) to
    the candidates."""
    rows = {}
    for model, part in [*situational.groupby("model", sort=False), ("all", situational)]:
        scored = part[part["probe"]]
        rows[model] = {
            "validate": part["contract"].sum(),
            "probe": part["probe"].sum(),
            "pass": part["lane1"].sum(),
            "n": len(scored),
            **scored[["coverage", "precision", "f1"]].mean(),
            "checklist": (scored["checklist"] == True).sum(),  # noqa: E712  (missing counts as no)
            "bias_free": (scored["bias_free"]).sum(),
        }  # noqa: E712
    return pd.DataFrame.from_dict(rows, orient="index")


def table_6(valid: pd.DataFrame, games: dict[str, POSG], *, horizon: int) -> pd.DataFrame:
    """Rows models: mean_sd and median_range of F1 within a model-game pair, equivalent: pairs whose runs are all
    the same game under other names. Pairs with fewer than two valid runs say nothing."""
    rows = {}
    for model, part in valid.groupby("model", sort=False):
        scores = part.pivot(index="case", columns="run", values="f1")
        triples = part.groupby("case")["id"].apply(list)
        same = [
            len(ids) > 1
            and all(_same(games[a], games[b], horizon) for a, b in itertools.combinations(ids, 2))
            for ids in triples
        ]
        rows[model] = {
            "mean_sd": pd.Series(within_pair_sd(scores)).mean(),
            "median_range": (scores.max(axis=1) - scores.min(axis=1)).median(),
            "equivalent": sum(same),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _same(first: POSG, second: POSG, horizon: int) -> bool:
    texts = sorted((canonical_json(first), canonical_json(second)))
    return texts[0] == texts[1] or _matched(*texts, horizon).same


def table_7(*, horizon: int) -> pd.DataFrame:
    """Rows toy cases: lane1, coverage, precision, f1, lane3, bias_free, overall (1 or 0). A case without an
    authored candidate is scored with its reference under random names, which a sound evaluator cannot tell
    apart."""
    from compendium.studies.worldmodels.posg.lanes import lane_one
    from compendium.studies.worldmodels.posg.model import relabel
    from compendium.studies.worldmodels.posg.scenarios import tier

    rows = {}
    for number, (case, scenario) in enumerate(tier("toy").items()):
        candidate = scenario.candidate or relabel(scenario.game, np.random.default_rng(number))
        match, sound = (
            compare(scenario.game, candidate, horizon=horizon),
            lane_one(candidate.document()).valid,
        )
        ends = any(state in candidate.terminals for state in candidate.depths())
        rows[case] = {
            "lane1": int(sound),
            "coverage": match.coverage,
            "precision": match.precision,
            "f1": match.f1,
            "lane3": int(ends),
            "bias_free": 1,
            "overall": int(sound and ends),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def table_8(game: pd.DataFrame) -> pd.DataFrame:
    """Rows models: candidates, lane1, coverage, f1 (fallback), lane3, bias_free, overall. `game` joins match_table
    and semantic_table to all first-pass candidates."""
    rows = {}
    for model, part in game.groupby("model", sort=False):
        passes = part["checklist"] == True  # noqa: E712
        rows[model] = {
            "candidates": len(part),
            "lane1": part["lane1"].sum(),
            "coverage": part["fallback_coverage"].mean(),
            "f1": part["fallback_f1"].mean(),
            "lane3": passes.sum(),
            "bias_free": (part["bias_free"] == True).sum(),  # noqa: E712
            "overall": (part["lane1"] & passes).sum(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def table_9(game: pd.DataFrame) -> pd.DataFrame:
    """Rows models, columns <game>:coverage and <game>:f1 under the fallback: means over runs."""
    means = game.groupby(["model", "case"], sort=False)[["fallback_coverage", "fallback_f1"]].mean()
    wide = means.rename(columns={"fallback_coverage": "coverage", "fallback_f1": "f1"}).unstack("case")
    wide.columns = [f"{case}:{kind}" for kind, case in wide.columns]
    order = [f"{case}:{kind}" for case in dict.fromkeys(game["case"]) for kind in ("coverage", "f1")]
    return wide.loc[list(dict.fromkeys(game["model"])), order]


def table_11(cultural: pd.DataFrame, games: dict[str, POSG], *, horizon: int) -> pd.DataFrame:
    """Rows <model>:<condition>: strict, lane1, lane3, bias_free, overall (counts), coverage, precision, f1,
    semantic_coverage, semantic_avoidance, semantic, states (means), self_f1. `cultural` joins criteria_table,
    semantic_table (its coverage and avoidance named semantic_...) and structure_table's `states`."""
    rows = {}
    for model, mine in cultural.groupby("model", sort=False):
        same = self_agreement(mine, games, horizon)
        for condition, part in mine.groupby("condition"):
            passes = part["checklist"] == True  # noqa: E712
            rows[f"{model}:{condition}"] = {
                "strict": (part["parse"] == "strict").sum(),
                "lane1": part["lane1"].sum(),
                "lane3": passes.sum(),
                "bias_free": (part["bias_free"] == True).sum(),  # noqa: E712
                "overall": (part["lane1"] & passes).sum(),
                **part[
                    [
                        "coverage",
                        "precision",
                        "f1",
                        "semantic_coverage",
                        "semantic_avoidance",
                        "semantic",
                        "states",
                    ]
                ].mean(),
                "self_f1": same,
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def self_agreement(mine: pd.DataFrame, games: dict[str, POSG], horizon: int) -> float:
    """Mean agreement of one model's candidates for the same case under different conditions (SelfF1); NaN where no
    case has two."""
    by_case = [[games[name] for name in part["id"] if name in games] for _, part in mine.groupby("case")]
    scores = [self_consistency(found, lambda a, b: agreement(a, b, horizon)) for found in by_case]
    return float(pd.Series(scores, dtype=float).mean())


def table_12(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows models, from table_11's rows: semantic and F1 without and with location, their differences, self_f1."""
    rows = {}
    for model in dict.fromkeys(name.rpartition(":")[0] for name in runs.index):
        without, named = runs.loc[f"{model}:anonymised"], runs.loc[f"{model}:located"]
        rows[model] = {
            "semantic_anonymised": without["semantic"],
            "semantic_located": named["semantic"],
            "semantic_delta": named["semantic"] - without["semantic"],
            "f1_anonymised": without["f1"],
            "f1_located": named["f1"],
            "f1_delta": named["f1"] - without["f1"],
            "self_f1": named["self_f1"],
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def pairwise_f1(candidates: pd.DataFrame, games: dict[str, POSG], *, horizon: int) -> pd.Series:
    """Mean feature-multiset F1 over all pairs of a case's candidates, by case (Table 5, situational)."""
    found = {}
    for case, part in candidates.groupby("case", sort=False):
        counters = [feature_multiset(games[name], horizon) for name in part["id"] if name in games]
        found[case] = self_consistency(counters, lambda a, b: multiset_agreement(a, b)["f1"])
    return pd.Series(found)


def coverage_proxy(candidates: pd.DataFrame, games: dict[str, POSG]) -> pd.Series:
    """Players generated over players the case needs, at most 1; mean by case (Table 5's stakeholder proxy)."""
    needed = {case: len(corpus()[case].roles) for case in dict.fromkeys(candidates["case"])}
    share = [
        min(1.0, len(games[row.id].players) / needed[row.case]) if row.id in games else np.nan
        for row in candidates.itertuples()
    ]
    return candidates.assign(share=share).groupby("case", sort=False)["share"].mean()


def reference_correlations(valid: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of six properties of the reference with mean F1 over games: rho by metric, NaN where a
    property is constant."""
    means = valid.groupby("case", sort=False)["f1"].mean()
    profiles = pd.DataFrame({case: structure_profile(corpus()[case].game) for case in means.index}).T.astype(
        float
    )
    return pd.DataFrame(
        {"rho": {name: spearman(profiles[name].to_numpy(), means.to_numpy()) for name in REFERENCE_METRICS}}
    )


def difference_counts(valid: pd.DataFrame, games: dict[str, POSG]) -> pd.Series:
    """How many of the candidates that are not exact show which difference to their reference (section 6)."""
    rest = valid[valid["same"] != True]  # noqa: E712  (the column may hold objects)
    kinds = [differences(corpus()[row.case].game, games[row.id]) for row in rest.itertuples()]
    return pd.DataFrame(kinds).sum().astype(int) if kinds else pd.Series(dtype=int)
