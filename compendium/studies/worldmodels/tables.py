"""World models: the tables and models that the notebooks hand to each other, and what is measured on a model."""

import functools
import json
from types import SimpleNamespace

import pandas as pd

from compendium.frame.files import read_csv, read_jsonl, write_jsonl
from compendium.studies.worldmodels.ask import KEYS, TRACKS, feature_presence
from compendium.studies.worldmodels.posg.criteria import semantics
from compendium.studies.worldmodels.posg.model import POSG, from_document
from compendium.studies.worldmodels.posg.scenarios import corpus


def semantic_table(candidates: pd.DataFrame, games: dict[str, POSG], *, checklist: float) -> pd.DataFrame:
    """Lane 3 of every candidate that has a model: id, coverage, avoidance, semantic, checklist, bias_free.

    Games have no criteria of their own: there the checklist asks for what every game needs (two players, a choice,
    an ending), as predicates of the same kind.
    """
    common = {
        "expect": [{"id": "players", "players_at_least": 2}, {"id": "endings", "terminals_at_least": 2}]
    }
    rows = []
    for row in candidates[candidates["id"].isin(games)].itertuples():
        found = semantics(games[row.id], common if row.track == "game" else corpus()[row.case].criteria)
        rows.append(
            [
                row.id,
                found.coverage,
                found.avoidance,
                found.score,
                found.score >= checklist,
                not found.sensitive,
            ]
        )
    return pd.DataFrame(rows, columns=["id", "coverage", "avoidance", "semantic", "checklist", "bias_free"])


def presence_table(candidates: pd.DataFrame, games: dict[str, POSG]) -> pd.DataFrame:
    """id, case, feature, present: which of the case's features each candidate has."""
    rows = [
        [row.id, row.case, name, present]
        for row in candidates.itertuples()
        for name, present in feature_presence(games[row.id], corpus()[row.case]).items()
    ]
    return pd.DataFrame(rows, columns=["id", "case", "feature", "present"])


def games_of(documents: dict[str, str]) -> dict[str, POSG]:
    """{id: POSG} of canonical documents; equal documents share one game."""
    return {name: _game(text) for name, text in documents.items()}


@functools.lru_cache(maxsize=4096)
def _game(text: str) -> POSG:
    return from_document(json.loads(text))


def write_documents(path, documents: dict[str, str]):
    """One JSON line a candidate: {"id": …, "model": {…}}."""
    return write_jsonl(path, ({"id": name, "model": json.loads(text)} for name, text in documents.items()))


def read_documents(path) -> dict[str, str]:
    """What `write_documents` wrote. Raises ValueError naming file and line."""
    found = read_jsonl(path, keys=("id", "model"))
    return {entry["id"]: json.dumps(entry["model"], ensure_ascii=False) for entry in found}


def read_table(path, columns=()) -> pd.DataFrame:
    """A CSV of this study: empty text stays text, conditions too. Raises ValueError as `read_csv`."""
    return read_csv(path, columns, keep_default_na=False, na_values={"flag": ["nan"]})


def load(candidates, documents, tracks: tuple = TRACKS) -> SimpleNamespace:
    """candidates, documents and games of some tracks, from the files of notebook 02 or files like them.

    Raises ValueError naming a file that cannot be read or lacks a column.
    """
    table, texts = read_table(candidates, [*KEYS, "lane1"]), read_documents(documents)
    table = table[table["track"].isin(tracks)].reset_index(drop=True)
    texts = {name: texts[name] for name in table["id"] if name in texts}
    return SimpleNamespace(candidates=table, documents=texts, games=games_of(texts))
