"""CREATE: what the notebooks after 02_judge read: judged paths, queries and the vectors of their texts."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd

from compendium.frame.files import read_csv
from compendium.studies.create.errors import CreateError
from compendium.studies.create.scores import PathSets, TextVectors, path_sets, utilities
from compendium.studies.create.tables import read_csv_frame
from lib.utility import PATIENCE

# "[iterate]" as the demo names a source, "_variation_iterate" or "_iterate" as a file's name holds it.
VARIATION = re.compile(
    r" \[(?P<name>\w+)\]|(?:_variation)?_(?P<word>original|(?:be_)?creative|verbali[sz]ed|"
    r"iterat(?:e|ive)|resampl(?:e|ing))(?=_|$)",
    re.I,
)


def load(judged, queries, vectors=None, *, model: str = "", cache=None) -> SimpleNamespace:
    """paths (judged), queries, vectors of the valid paths' texts, and `sources` in order of appearance.

    Where no file of vectors is given they are computed by `model`, kept in the SQLite file `cache`. Raises
    CreateError naming a file that cannot be read or lacks a column.
    """
    paths, asked = read_csv_frame(judged), read_csv(queries, ["source", "query"], CreateError)
    valid = paths["valid"].astype(bool)
    found = TextVectors.load(vectors) if vectors else TextVectors.of(paths.loc[valid, "text"], model, cache)
    return SimpleNamespace(
        paths=paths, queries=asked, vectors=found, sources=list(dict.fromkeys(asked["source"]))
    )


def load_utility(utility) -> pd.DataFrame:
    """Utilities by (source, query) and patience, as 03_scores wrote them (columns "0.0" … "1.0", empty).

    Raises CreateError as `load`.
    """
    return read_csv(utility, ["source", "query"], CreateError).set_index(["source", "query"])


def load_results(queries, utility, strong, threshold) -> SimpleNamespace:
    """What 08_figures draws: queries, utility by (source, query), strong paths with ν, threshold curve
    [source, share]. Raises CreateError as `load`."""
    return SimpleNamespace(
        queries=read_csv(queries, ["source", "query"], CreateError),
        utility=load_utility(utility),
        strong=read_csv_frame(strong),
        threshold=read_csv(threshold, ["source"], CreateError).set_index("source"),
    )


def variation_of(source: str) -> str:
    """The prompt variation a source answered, as it stands in brackets or as a word of a file's name;
    "original" where it names none."""
    found = VARIATION.search(source)
    return (found["name"] or found["word"]).lower() if found else "original"


def base_sources(names) -> list:
    """Those sources that answered the base prompt, in their order."""
    return [name for name in names if variation_of(name) == "original"]


def model_of(source: str) -> str:
    """The model behind a source: its name without the prompt variation."""
    return VARIATION.sub("", source)


def originals(data: SimpleNamespace) -> SimpleNamespace:
    """The same without the prompt variations: sources under the base prompt, on which models are compared."""
    keep = base_sources(data.sources)
    return SimpleNamespace(
        paths=data.paths[data.paths["source"].isin(keep)],
        vectors=data.vectors,
        sources=keep,
        queries=data.queries[data.queries["source"].isin(keep)].reset_index(drop=True),
    )


def with_values(sets: PathSets, patience=PATIENCE, **options) -> pd.DataFrame:
    """Utilities by (source, query), a query without a surviving path missing."""
    return utilities(sets, patience, empty=np.nan, **options)


def definitions(data: SimpleNamespace, patience: float) -> pd.DataFrame:
    """Mean utility by source under every reading of the definition: frame [source, reading].

    `released`: as the leaderboard (final triple left out of σ, flags as released, first two items
    undiscounted, 1 for a query without a path); each other column changes one thing: `weakest` counts the
    final triple too, `code` takes the distance of the authors' code (see `lib.utility.path_distance`),
    `code-weakest` both, `chain` takes strict chains only, `plain` discounts by γ^i, `scored` leaves empty
    queries out, `zero` gives them 0.
    """
    from compendium.studies.create.answers import query_of
    from compendium.studies.create.paths import fault

    ends = {(row["source"], row["query"]): query_of(row) for _, row in data.queries.iterrows()}
    strict = [
        valid and not fault(path, ends[source, query])
        for source, query, path, valid in zip(
            data.paths["source"], data.paths["query"], data.paths["triples"], data.paths["valid"]
        )
    ]
    both = {
        (name, wraps): path_sets(data.paths, data.queries, data.vectors, quality=name, wraps=wraps)
        for name in ("strength", "weakest")
        for wraps in (False, True)
    }
    readings = {
        "released": utilities(both["strength", False], [patience]),
        "weakest": utilities(both["weakest", False], [patience]),
        "code": utilities(both["strength", True], [patience]),
        "code-weakest": utilities(both["weakest", True], [patience]),
        "chain": utilities(
            path_sets(data.paths.assign(valid=strict), data.queries, data.vectors), [patience]
        ),
        "plain": utilities(both["strength", False], [patience], delay=0),
        "scored": utilities(both["strength", False], [patience], empty=np.nan),
        "zero": utilities(both["strength", False], [patience], empty=0.0),
    }
    return pd.DataFrame(
        {
            name: frame.groupby(level="source", sort=False).mean().iloc[:, 0]
            for name, frame in readings.items()
        }
    )


def validity_rules(data: SimpleNamespace) -> pd.DataFrame:
    """How the flags of a file stand to the definition, by source: paths, flagged valid, and of those how many
    are chains, share entities between neighbours at least, and end as the query demands."""
    from compendium.studies.create.answers import query_of
    from compendium.studies.create.paths import fault, path_key

    ends = {(row["source"], row["query"]): query_of(row) for _, row in data.queries.iterrows()}
    rows = []
    for source, path, query, valid in zip(
        data.paths["source"], data.paths["triples"], data.paths["query"], data.paths["valid"]
    ):
        asked = ends[source, query]
        tail = path_key(path)[-1][1:] == path_key([("", asked.relation, asked.tail)])[0][1:]
        rows.append(
            (
                source,
                1,
                valid,
                valid and not fault(path, asked),
                valid and not fault(path, asked, "shared"),
                valid and tail,
            )
        )
    names = ["source", "paths", "flagged", "chains", "shared", "right_end"]
    return pd.DataFrame(rows, columns=names).groupby("source", sort=False).sum().astype(int)


def projected_half_width(mean, by_query: pd.DataFrame, n: int):
    """(half-width of a 95 % interval that a leaderboard mean over `n` queries would have, c), projected from the
    spread at hand: by_query[source, query] utilities at one patience give a pooled coefficient of variation
    c, and the half-width is 1.96 · c · mean / √n. A projection: it takes other queries and other models to vary
    as much, relative to their mean."""
    spread = by_query.groupby(level="source").agg(["mean", "std"])
    spread = spread.droplevel(0, axis=1) if spread.columns.nlevels > 1 else spread
    cv = float(np.sqrt(((spread["std"] / spread["mean"]) ** 2).mean()))
    return half_width(mean, cv, n), cv


def half_width(mean, cv, n: int):
    """Half the width of a 95 % interval of a mean over n queries with coefficient of variation cv: 1.96 · cv · mean / √n."""
    return 1.959964 * cv * np.asarray(mean, dtype=float) / np.sqrt(n)
