"""The release in both shapes: the mirror's tables, and the authors' folders of replies with all their oddities."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from compendium.frame import archive as module
from compendium.frame import fetch
from compendium.frame.params import study_params
from compendium.studies.metanym.evaluation import JSON_KEYS
from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.release import (
    FOLDERS,
    RAW_FOLDERS,
    RAW_TABLE,
    TABLES,
    load_archive,
    load_exam,
    load_unanchored,
)
from tests.compendium.frame.served import repository

P = study_params("metanym", "released")
ROSTER, SPELLING = list(P["players"]), P["spelling"]
CONTEXTS = [f"pc{k}" for k in range(1, 6)]
UNIT = ["evaluator", "target"]


def number(value):
    return None if pd.isna(value) else int(value)


def reply(rows: pd.DataFrame, place: int, raw: bool) -> str:
    """The API reply that a judge's rows stand for, odd in one of the ways that judges are (by `place`)."""
    items = []
    for row in rows.to_dict("records"):
        factual = [number(row[name]) for name in CONTEXTS]
        if factual[:-1] != [None] * 4 and factual[-1] is None:
            factual = factual[:-1]  # four ratings for five contexts
        name = "Archetype of another submission" if place % 3 == 0 else f"Archetype {row['archetype']}"
        items.append(
            {
                "name": name,
                "factual_per_pc": factual,
                **{key: number(row[axis]) for axis, key in JSON_KEYS.items()},
            }
        )
    key = ("1", "Submission 1")[place % 2] if raw else "Target"
    entry = {"archetypal_contexts": items, "structural_diversity": number(rows["diversity"].iloc[0])}
    block = json.dumps({"scores": {key: entry}}, indent=1)
    if not rows["strict_json"].iloc[0]:  # a comment stands for the rest
        block = block.replace("\n   }\n  ],", "\n   }\n   // … the other archetypes likewise\n  ],")
        block = block if "//" in block else block.replace('"structural', '// the rest likewise\n"structural')
    text = "The target is sound.\n" + ("```\n\n" if place % 5 == 1 else "\n") + f"```json\n{block}\n"
    text += "" if place % 7 == 2 else "```\n"  # some lack the closing fence
    return json.dumps({"Messages": [{"Message": {"Content": text}}]})


def files_of(table: pd.DataFrame, folders: dict) -> dict:
    """{path below the replies: content} of one table, a folder an anchor."""
    made = {}
    for folder, anchor in folders.items():
        mine = table if anchor == 0 else table[table["anchor"] == anchor]
        for place, ((judge, target), rows) in enumerate(mine.groupby(UNIT, sort=True)):
            made[f"{folder}/eval_{judge}_x_{target}.json"] = reply(rows, place, anchor == 0).encode()
    return made


@pytest.fixture
def folders(mirror, tmp_path, monkeypatch):
    """A repository like the authors', its folders built from the mirror's tables; the path of the repository."""
    tables = {name: pd.read_csv(mirror / "metanym" / name) for name in (*TABLES.values(), RAW_TABLE)}
    wanted = {
        "anchored": load_archive(ROSTER, SPELLING, mirror=mirror),
        "raw": load_unanchored(ROSTER, SPELLING, mirror=mirror),
        "exam": load_exam(ROSTER, SPELLING, mirror=mirror),
    }
    made = {}
    for run, name in TABLES.items():
        made |= files_of(tables[name], FOLDERS[run])
    made |= files_of(tables[RAW_TABLE], RAW_FOLDERS)
    made["replies/gpqa_selfadministered.csv"] = (
        mirror / "metanym" / "gpqa_selfadministered.csv"
    ).read_bytes()
    sources = [row for row in csv.DictReader(module.SOURCES.open()) if row["archive"] == "metanym"]
    upstream = {row["path"]: row["folder"] for row in sources if row["folder"]}
    placed = {}
    for path, body in made.items():
        shape = path if path in upstream else path.rpartition("/")[0]
        placed[upstream[shape] + path[len(shape) :]] = body
    commit = repository(tmp_path, placed, "metanym-game-paper")
    with (tmp_path / "sources.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, module.COLUMNS)
        writer.writeheader()
        writer.writerows([{**row, "commit": commit} for row in sources])
    (tmp_path / "blobs.csv").write_text(",".join(module.RECORD) + "\n")
    monkeypatch.setattr(module, "SOURCES", tmp_path / "sources.csv")
    monkeypatch.setattr(module, "BLOBS", tmp_path / "blobs.csv")
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    caches = (module.sources, module.recorded, module.pinned)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path, wanted, len(made)
    for cache in caches:
        cache.cache_clear()


def test_both_shapes_give_one_table(folders):
    place, wanted, files = folders
    assert files == 484 + 121 + 121 + 132 + 1
    pd.testing.assert_frame_equal(load_archive(ROSTER, SPELLING, mirror=place), wanted["anchored"])
    pd.testing.assert_frame_equal(load_unanchored(ROSTER, SPELLING, mirror=place), wanted["raw"])
    pd.testing.assert_frame_equal(load_exam(ROSTER, SPELLING, mirror=place), wanted["exam"])


def test_what_the_tables_hold(mirror):
    ratings = load_archive(ROSTER, SPELLING, mirror=mirror)
    units = ratings.drop_duplicates(["run", "anchor", *UNIT]).groupby("run").size()
    assert units.to_dict() == {1: 480, 2: 118, 3: 120}  # eight blocks are no JSON as they stand
    assert len(load_archive(ROSTER, SPELLING, strict=False, mirror=mirror)) == len(ratings) + 12
    four = ratings.query(
        "run == 3 and evaluator == 'gemini-2.5-flash' and target == 'gpt-4.1-nano' and archetype == 2"
    )
    assert four[CONTEXTS].iloc[0].tolist()[:4] == [7, 7, 7, 7] and np.isnan(four["pc5"].iloc[0])
    raw = load_unanchored(ROSTER, SPELLING, mirror=mirror)
    assert set(raw["anchor"]) == {0} and set(raw["target"]) == set(ROSTER)


def test_runs_that_were_not_released_are_refused(mirror):
    with pytest.raises(MetanymError, match="runs: 1, 4; released are 1, 2, 3"):
        load_archive(ROSTER, SPELLING, mirror=mirror, runs=[1, 4])


def test_the_keyed_counts(mirror):
    exam = load_exam(ROSTER, SPELLING, mirror=mirror)
    assert exam.loc["gemini-3.1-pro", ["n", "correct", "void"]].tolist() == [198, 160, 13]
    assert exam.at["gemini-3.1-pro", "accuracy"] == pytest.approx(80.81, abs=0.005)
    assert exam.at["gpt-4.1-mini", "accuracy_given"] == pytest.approx(63.45, abs=0.005)
    with pytest.raises(MetanymError, match="should have one line for 'nobody'"):
        load_exam([*ROSTER, "nobody"], SPELLING, mirror=mirror)
