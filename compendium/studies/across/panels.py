"""Every panel of the five studies that has more than one judge or repetition, as ratings[judge, unit], and what it
says of its judges: the facts behind an alpha, and the two-sided spectral estimator of The Metanym Game (A5-A9)."""

import numpy as np
import pandas as pd

from compendium.asking.study import simulator
from compendium.studies.across.data import Panel, Studies
from lib import spectral
from lib.agreement import krippendorff_alpha


def panels(studies: Studies, *, rng) -> list[Panel]:
    """All panels at hand, study by study. rng(label): a generator, for what the demo's annotators are shown."""
    return [
        *_alienbench(studies),
        *_stories(studies),
        *_metanym(studies),
        *_worldmodels(studies),
        *_create(studies, rng),
    ]


def describe(ratings) -> dict:
    """What an alpha of ratings[judge, unit] depends on: pairable (units with two judgements or more), each
    (judgements a pairable unit), same (share of equal pairs within units, NaN without any), commonest (share of
    the commonest judgement), used (different judgements)."""
    ratings = np.asarray(ratings, dtype=float)
    seen = ~np.isnan(ratings)
    held = seen.sum(axis=0) >= 2
    ratings, seen = ratings[:, held], seen[:, held]
    values, counts = np.unique(ratings[seen], return_counts=True)
    each = seen.sum(axis=0)
    equal = sum(
        ((ratings == value).sum(axis=0) * ((ratings == value).sum(axis=0) - 1)).sum() for value in values
    )
    pairs = (each * (each - 1)).sum()
    return {
        "pairable": int(held.sum()),
        "each": float(each.mean()) if held.any() else np.nan,
        "same": float(equal / pairs) if pairs else np.nan,
        "commonest": float(counts.max() / counts.sum()) if len(values) else np.nan,
        "used": len(values),
    }


def _alienbench(studies) -> list[Panel]:
    labels = studies.alienbench
    if labels is None:
        return []
    p = studies.params("alienbench")
    who, unit = tuple(p.judges[name] for name in labels.judges), "descriptions"
    found = [
        Panel("alienbench", "total", "AlienBench, score", "interval", who, unit, labels.totals().T, True)
    ]
    return found + [
        Panel(
            "alienbench",
            feature,
            f"AlienBench, {p.features[feature]}",
            "nominal",
            who,
            unit,
            labels.values[:, :, i].T,
        )
        for i, feature in enumerate(labels.features)
    ]


def _stories(studies) -> list[Panel]:
    data = studies.stories
    if data is None:
        return []
    p, found, repeats = studies.params("stories"), [], []
    own = data.judgements[data.judgements["language"] == "en"]
    for name, label in p.dimensions.items():
        people = data.ratings.pivot_table(index="session", columns="story", values=name)
        found.append(
            Panel(
                "stories",
                f"people-{name}",
                f"Stories, people on {label}",
                p.alpha_level,
                tuple(people.index),
                "stories",
                people.to_numpy(),
                name == "creativity",
            )
        )
        again = own.pivot_table(index="repetition", columns="story", values=name, dropna=False)
        if len(again) > 1:
            repeats.append(
                Panel(
                    "stories",
                    f"judge-{name}",
                    f"Stories, judge again on {label}",
                    p.alpha_level,
                    tuple(f"run {run}" for run in again.index),
                    "stories",
                    again.to_numpy(),
                    name == "creativity",
                )
            )
    return found + repeats


def _metanym(studies) -> list[Panel]:
    from compendium.studies.metanym.components import factual_matrix
    from compendium.studies.metanym.limits import axis_matrix

    game = studies.metanym
    if game is None:
        return []
    p = studies.params("metanym")
    who = tuple(p.players[name]["label"] for name in game.evaluators)
    units = {"factual": "contexts", "structure": "portfolios"}
    return [
        Panel(
            "metanym",
            axis,
            f"Metanym, {label}",
            "interval",
            who,
            units.get(axis, "archetypes"),
            factual_matrix(game)[0] if axis == "factual" else axis_matrix(game, axis),
            axis in ("factual", "beauty"),
        )
        for axis, label in p.axes.items()
    ]


def _worldmodels(studies) -> list[Panel]:
    game, found = studies.worldmodels, []
    if studies.profile == "demo":
        from compendium.studies.worldmodels.ask import features
        from compendium.studies.worldmodels.posg.annotation import LABELS
        from compendium.studies.worldmodels.posg.scenarios import tier

        annotate = simulator("worldmodels").annotate
        listed = [
            (case, name, label)
            for case, scenario in tier("cultural").items()
            for name, _, label in features(scenario)
        ]
        ratings = [[LABELS.index(annotate(*feature, who)) for feature in listed] for who in (0, 1)]
        found = [
            Panel(
                "worldmodels",
                "annotators",
                "World models, annotators",
                "nominal",
                ("annotator 1", "annotator 2"),
                "features",
                np.array(ratings, dtype=float),
                True,
            )
        ]
    if game is None:
        return found
    for column, label, level in (("lane1", "valid again", "nominal"), ("f1", "F1 again", "interval")):
        runs = game.assign(value=game[column].astype(float)).pivot_table(
            index="run", columns=["model", "case"], values="value", dropna=False
        )
        if len(runs) > 1:
            found.append(
                Panel(
                    "worldmodels",
                    f"repeat-{column}",
                    f"World models, {label}",
                    level,
                    tuple(f"run {run}" for run in runs.index),
                    "pairs of model and game",
                    runs.to_numpy(),
                    column == "f1",
                )
            )
    return found


def _create(studies, rng) -> list[Panel]:
    from compendium.studies.create import validation

    if studies.judgements is None or studies.profile != "demo":  # no annotator's label was released
        return []
    p = studies.params("create")
    paths = validation.annotated_paths(studies.judgements, p.n_specificity, rng("specificity"))
    triples = validation.labelled_triples(studies.judgements, p.n_factuality, rng("factuality"))
    two, judge = ("annotator 1", "annotator 2"), (p.judges[0].split("/")[-1],)
    people = paths[["annotator_1", "annotator_2"]].to_numpy(dtype=float).T
    both = pd.concat([paths[["annotator_1", "annotator_2"]], paths["judge"]], axis=1).to_numpy(dtype=float).T
    truth = triples[["truth", "verdict"]].to_numpy(dtype=float).T
    return [
        Panel(
            "create",
            "specificity",
            "CREATE, annotators on specificity",
            "ordinal",
            two,
            "paths",
            people,
            True,
        ),
        Panel(
            "create",
            "specificity-judge",
            "CREATE, annotators and judge",
            "ordinal",
            (*two, *judge),
            "paths",
            both,
        ),
        Panel(
            "create",
            "factuality",
            "CREATE, label and judge on factuality",
            "nominal",
            ("label", *judge),
            "triples",
            truth,
            True,
        ),
    ]


def competence(panel: Panel, n_permutations: int, rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """What the two-sided spectral estimator says of a panel, beside agreement.

    First, a row a judge: loading (left vector, missing filled by the judge's mean), relative (to the largest),
    spread (standard deviation of the judge's ratings), with others (Pearson's r with the mean of the others),
    without (alpha of the panel without the judge), alpha (of the whole panel). Second: gap (sigma1 / sigma2), null
    (its 95th percentile when each judge's ratings are shuffled), share (of variance on the first axis) and alpha.
    Raises SpectralError where the panel has no axis.
    """
    ratings = panel.ratings
    axis = spectral.two_sided(ratings, "row_mean")
    null = spectral.sigma_null(ratings, rng, n_permutations, "row_mean")
    whole, rows = krippendorff_alpha(ratings, panel.level), []
    for judge in range(len(ratings)):
        others = np.delete(ratings, judge, axis=0)
        seen = ~np.isnan(ratings[judge]) & ~np.isnan(others).all(axis=0)
        both = ratings[judge, seen], np.nanmean(others[:, seen], axis=0)
        r = np.corrcoef(both)[0, 1] if min(map(np.ptp, both)) > 0 else np.nan
        rows.append(
            [
                axis.left[judge],
                axis.left[judge] / axis.left.max(),
                np.nanstd(ratings[judge]),
                r,
                krippendorff_alpha(others, panel.level),
                whole,
            ]
        )
    columns = ["loading", "relative", "spread", "with others", "without", "alpha"]
    table = pd.DataFrame(rows, index=list(panel.judges), columns=columns)
    share = axis.sigma[0] ** 2 / (axis.sigma**2).sum()
    gaps = np.divide(null[:, 0], null[:, 1], out=np.full(len(null), np.inf), where=null[:, 1] > 0)
    # a shuffle that leaves no second axis has an infinite gap, between which nothing is interpolated
    chance = np.quantile(gaps, 0.95, method="linear" if np.isfinite(gaps).all() else "higher")
    return table, {"gap": axis.gap, "null": float(chance), "share": float(share), "alpha": whole}
