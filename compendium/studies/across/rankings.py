"""The ranking that each study leads with, and what becomes of it under another study's estimator."""

import numpy as np
import pandas as pd

from compendium.studies.across.data import Ranking, Studies
from lib.rankings import consensus_means, mean_replicates, pair_p, paired_p, win_share
from lib.ranks import kendall_tau_b, ranks, spearman
from lib.resampling import bootstrap_weights


def rankings(studies: Studies, *, B: int, rng) -> list[Ranking]:
    """All rankings at hand, study by study. rng(label): a generator."""
    return [
        *_alienbench(studies),
        *_stories(studies, B, rng),
        *_metanym(studies, B, rng),
        *_worldmodels(studies),
        *_create(studies),
    ]


def replicates_of(ranking: Ranking, *, B: int, rng: np.random.Generator, fixed: bool = False) -> np.ndarray:
    """replicates[b, entrant] of the study's own estimate: its own joint draw, or resampled means.

    fixed: hold what the design fixes (AlienBench's conditions) fixed in each resample; its paper does not.
    """
    if ranking.replicates is not None:
        return ranking.replicates
    return mean_replicates(
        ranking.scores, paired=ranking.paired, B=B, rng=rng, strata=ranking.strata if fixed else None
    )


def p_of_pairs(ranking: Ranking, replicates, *, B: int, rng: np.random.Generator) -> np.ndarray:
    """p[i, j] that two entrants are equal: over their pairs of units where they met the same ones, else from
    replicates[b, entrant]."""
    if ranking.paired and ranking.replicates is None:
        return paired_p(ranking.scores, B=B, rng=rng)
    return pair_p(replicates)


def by_estimator(ranking: Ranking) -> pd.DataFrame:
    """The entrants' standing by each estimator that the data allow, [entrant, estimator].

    own: the study's; mean, median of the scores; wins: share of pairs of units won (CREATE's pairs, AlienBench's
    rank-biserial); consensus: mean of the two-sided spectral consensus (Metanym), NaN where there is one
    judge only.
    """
    scores = ranking.scores
    table = pd.DataFrame(
        {
            "own": ranking.estimates,
            "mean": scores.mean(),
            "median": scores.median(),
            "wins": pd.Series(win_share(scores, paired=ranking.paired), scores.columns),
        }
    )
    table["consensus"] = np.nan
    if ranking.ratings is not None:
        found = consensus_means(ranking.ratings, ranking.group_of, scores.shape[1])
        table["consensus"] = pd.Series(found, scores.columns)
    return table.reindex(ranking.estimates.index)


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """What `by_estimator` says of the headline, a row an estimator: leaders (list: more than one where they tie),
    tau (Kendall's tau-b with the study's own order) and place (where the study's own leader ranks, among those
    that the estimator can rank: nobody rates Metanym's anchor). Empty and NaN where it can rank nobody."""
    rows = {}
    for name, column in table.items():
        seen = column.dropna()
        place = pd.Series(ranks(seen, method="competition"), seen.index)
        own = table["own"][seen.index]
        rows[name] = {
            "leaders": list(seen.index[place == 1]),
            "tau": kendall_tau_b(own, seen) if len(seen) else np.nan,
            "place": place[own.idxmax()] if len(seen) else np.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _alienbench(studies) -> list[Ranking]:
    labels = studies.alienbench
    if labels is None:
        return []
    p = studies.params("alienbench")
    made = labels.generations.assign(score=labels.scores())
    scores = made.pivot_table(
        index=["condition", "sample_index"], columns="model", values="score", dropna=False
    )
    place = {model: i for i, model in enumerate(p.subjects)}
    return [
        Ranking(
            "alienbench",
            "score",
            "AlienBench, departure score",
            "descriptions",
            scores.reindex(columns=list(p.subjects)),
            False,
            {name: entry["label"] for name, entry in p.subjects.items()},
            scores.index.get_level_values("condition").to_numpy(),
            ratings=labels.totals().T,
            group_of=labels.generations["model"].map(place).to_numpy(),
        )
    ]


def _stories(studies, B, rng) -> list[Ranking]:
    data = studies.stories
    if data is None:
        return []
    author, found = data.texts[data.texts["language"] == "en"].set_index("story")["author"], []
    for who, table in (("people", data.human_scores()), ("judge", data.judge_scores())):
        value = table["creativity"]
        scores = pd.DataFrame({name: value.where(author == name) for name in author.unique()})
        found.append(
            Ranking(
                "stories",
                who,
                f"Stories, creativity by {'the ' if who == 'judge' else ''}{who}",
                "stories",
                scores,
                False,
                {name: name.replace("human", "People") for name in scores},
            )
        )
    return [*found, _dimensions(data, B, rng)]


def _dimensions(data, B, rng) -> Ranking:
    """On which dimension does the judge follow people best: Spearman's rho over stories, stories resampled."""
    people, judge = data.human_scores(), data.judge_scores()
    rated = people.notna().all(axis=1) & judge.notna().all(axis=1)
    people, judge = people[rated], judge[rated]
    drawn = rng("stories").integers(0, len(people), size=(B, len(people)))
    names = [name for name in people if judge[name].nunique() > 1]
    own = pd.Series({name: float(spearman(people[name], judge[name])) for name in names})
    parts = [spearman(people[name].to_numpy()[drawn], judge[name].to_numpy()[drawn]) for name in names]
    distance = pd.DataFrame({name: -(people[name].rank() - judge[name].rank()).abs() for name in names})
    return Ranking(
        "stories",
        "dimensions",
        "Stories, judge's correlation with people",
        "stories",
        distance,
        True,
        {name: name.capitalize() for name in names},
        own=own,
        replicates=np.column_stack(parts),
    )


def _metanym(studies, B, rng) -> list[Ranking]:
    from compendium.studies.metanym.components import atom_table, factual_matrix
    from compendium.studies.metanym.contest import leaderboard, leaderboard_replicates

    game = studies.metanym
    if game is None:
        return []
    p = studies.params("metanym")
    seats = list(p.council), list(p.ballast[: p.n_ballast])
    atoms = atom_table(game)
    drawn = leaderboard_replicates(atoms, bootstrap_weights(atoms.n_atoms, B, rng("atoms")), *seats)["T"]
    total = leaderboard(game, *seats)[0].loc[list(game.models), "T"].astype(float)
    ratings, group_of = factual_matrix(game)
    given = pd.Series(np.nanmean(ratings, axis=0))
    columns = [given[group_of == place].reset_index(drop=True) for place in range(len(game.targets))]
    scores = pd.concat(columns, axis=1, keys=game.targets)
    return [
        Ranking(
            "metanym",
            "total",
            "Metanym, total T",
            "contexts",
            scores,
            False,
            {name: p.players[name]["label"] for name in game.models},
            own=total,
            replicates=drawn,
            ratings=ratings,
            group_of=group_of,
        )
    ]


def _worldmodels(studies) -> list[Ranking]:
    game = studies.worldmodels
    if game is None:
        return []
    p = studies.params("worldmodels")
    valid = game[game["lane1"].astype(bool)]
    scores = valid.pivot_table(index="case", columns="model", values="f1").reindex(columns=list(p.subjects))
    return [
        Ranking(
            "worldmodels",
            "f1",
            "World models, F1 of games",
            "games",
            scores,
            True,
            {name: entry["label"] for name, entry in p.subjects.items()},
        )
    ]


def _create(studies) -> list[Ranking]:
    utility = studies.utility()
    if utility is None:
        return []
    labels = studies.params("create").labels
    scores = utility.unstack("source")[list(dict.fromkeys(utility.index.get_level_values("source")))]
    return [
        Ranking(
            "create",
            "utility",
            "CREATE, utility at patience 1",
            "queries",
            scores,
            True,
            {name: labels.get(name, name) for name in scores},
        )
    ]
