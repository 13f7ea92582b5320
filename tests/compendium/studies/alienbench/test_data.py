import json

import numpy as np
import pandas as pd
import pytest

from compendium.frame import archive as archive_module
from compendium.frame.archive import Archive, ArchiveError
from compendium.frame.params import study_params
from compendium.studies.alienbench import data as alienbench
from compendium.studies.alienbench.data import from_tables, load_archive, truth_of

FEATURES = ["symmetry", "habitat"]
JUDGES = ["p/one", "p/two"]


class Folder(Archive):
    """An archive whose files are whatever lies in a folder (nothing pinned): for malformed files."""

    def __init__(self, folder):
        self.name, self.mirror = "tiny", folder
        self.folder = folder

    def files(self, prefix=""):
        every = sorted(p.relative_to(self.folder).as_posix() for p in self.folder.rglob("*.jsonl"))
        return [path for path in every if path.startswith(prefix)]

    def path(self, path):
        return self.folder / path


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def answer(key, *labels, **more):
    features = {name: {"is_departure": label} for name, label in zip(FEATURES, labels)}
    return {"generation_id": key, "features": features, "parse_error": False, **more}


@pytest.fixture
def tiny(tmp_path):
    """Two generations of one model, judged by two judges, and a third generation beyond the study's N."""
    rows = [
        {"id": f"g{i}", "sample_index": i, "response": "a b c", "completion_tokens": 3} for i in (2, 0, 1)
    ]
    write(tmp_path / "generations/q__m/baseline/responses.jsonl", rows)
    for judge in ("p__one", "p__two"):
        write(
            tmp_path / f"extractions/{judge}/q__m/baseline/features.jsonl",
            [answer("g0", True, False), answer("g1", True, True), answer("g2", False, False)],
        )
    return tmp_path


def load(folder, judges=JUDGES, n=2):
    return load_archive(
        Folder(folder), subjects=["q/m"], judges=judges, features=FEATURES, samples={"baseline": n}
    )


def left_out(frame):
    return {(row.what, row.reason): row.count for row in frame.itertuples(index=False)} if len(frame) else {}


def test_the_first_n_by_sample_index_are_used_and_the_rest_counted(tiny):
    generations, labels, left = load(tiny)
    assert list(generations["generation_id"]) == ["g0", "g1"] and len(labels) == 4
    reasons = dict(zip(left["reason"], left["count"]))
    assert reasons["beyond the number the study uses"] == 1
    assert reasons["its generation is not among those the study uses"] == 2
    study = from_tables(generations, labels, judges=JUDGES, features=FEATURES)
    assert study.scores().tolist() == [1, 2]


def test_a_second_reply_of_a_judge_is_left_out_and_counted(tiny):
    path = tiny / "extractions/p__one/q__m/baseline/features.jsonl"
    write(path, [answer("g0", True, False), answer("g0", False, False), answer("g1", True, True)])
    generations, labels, left = load(tiny)
    assert (
        dict(zip(left["reason"], left["count"]))[
            "a second reply of the judge to one generation (the first is kept)"
        ]
        == 1
    )
    assert labels.query("judge == 'p/one' and generation_id == 'g0'")["symmetry"].tolist() == [1]


def test_words_are_read_as_their_meaning_and_missing_features_stay_missing(tiny):
    path = tiny / "extractions/p__one/q__m/baseline/features.jsonl"
    write(path, [answer("g0", "true", "False"), answer("g1", True)])
    generations, labels, left = load(tiny)
    one = labels[labels["judge"] == "p/one"].set_index("generation_id")
    assert one.loc["g0", FEATURES].tolist() == [1, 0] and np.isnan(one.loc["g1", "habitat"])
    reasons = dict(zip(left["reason"], left["count"]))
    assert (
        reasons["a word read as its meaning (kept)"] == 2
        and reasons["missing or neither true nor false"] == 1
    )
    study = from_tables(generations, labels, judges=JUDGES, features=FEATURES)
    assert study.scores().tolist() == [1, 2], "the judge without a whole answer does not count for g1"


def test_a_void_reply_is_missing_not_zero(tiny):
    path = tiny / "extractions/p__one/q__m/baseline/features.jsonl"
    write(path, [answer("g0", True, False, parse_error=True), answer("g1", True, True)])
    _, labels, left = load(tiny)
    assert labels.query("judge == 'p/one' and generation_id == 'g0'")[FEATURES].isna().all(axis=None)
    assert "it holds no labels (void)" in set(left["reason"])


def test_a_line_cut_off_names_file_and_line(tiny):
    path = tiny / "extractions/p__two/q__m/baseline/features.jsonl"
    write(path, [answer("g0", True, False), json.dumps(answer("g1", True, True))[:40]])
    with pytest.raises(
        ArchiveError, match=r"extractions/p__two/q__m/baseline/features.jsonl, line 2: not a whole JSON"
    ):
        load(tiny)
    write(path, ["[1]"])
    with pytest.raises(ArchiveError, match="line 1: should be a JSON object, is a list"):
        load(tiny)


def test_a_judge_without_rows_and_a_model_without_generations(tiny):
    with pytest.raises(
        ArchiveError, match=r"judge 'p/three': no rows in the archive \(extractions/p__three/\)"
    ):
        load(tiny, judges=[*JUDGES, "p/three"])
    (tiny / "generations/q__m/baseline/responses.jsonl").unlink()
    with pytest.raises(ArchiveError, match="q/m: the archive pins no generations/q__m/baseline"):
        load(tiny)


def test_stray_models_are_counted(tiny):
    write(tiny / "generations/q__stray/baseline/responses.jsonl", [{"id": "s", "sample_index": 0}])
    _, _, left = load(tiny)
    assert ("model folder", "generations/q__stray") in set(zip(left["what"], left["example"]))


def test_fewer_generations_than_the_study_uses_are_told(tiny):
    _, _, left = load(tiny, n=5)
    assert dict(zip(left["reason"], left["count"]))["fewer than the study uses (missing)"] == 2


@pytest.mark.parametrize(
    "value, expected",
    [(True, 1), (False, 0), (1, 1), (0.0, 0), ("true", 1), (" False ", 0), ("yes", 1), ("0", 0)],
)
def test_labels_by_meaning(value, expected):
    assert truth_of(value) == expected


@pytest.mark.parametrize("value", [None, "maybe", 2, -1, [], {}, float("nan"), ""])
def test_what_is_no_label_is_missing(value):
    assert np.isnan(truth_of(value))


def test_tables_are_checked():
    generations = pd.DataFrame(
        {"generation_id": ["g"], "model": "m", "condition": "baseline", "sample_index": 0}
    )
    labels = pd.DataFrame(
        {
            "generation_id": ["g"],
            "model": "m",
            "condition": "baseline",
            "sample_index": 0,
            "judge": "p/one",
            "symmetry": 1,
            "habitat": 2,
        }
    )
    with pytest.raises(ValueError, match="line 2: habitat is 2, should be 0, 1 or empty"):
        from_tables(generations, labels, judges=["p/one"], features=FEATURES)
    with pytest.raises(ValueError, match="lacks the column 'habitat'"):
        from_tables(generations, labels.drop(columns="habitat"), judges=["p/one"], features=FEATURES)
    with pytest.raises(ValueError, match="no rows of judge 'p/two'; it has p/one"):
        from_tables(generations, labels.assign(habitat=0), judges=JUDGES, features=FEATURES)
    twice = pd.concat([labels, labels]).assign(habitat=0)
    with pytest.raises(ValueError, match="labels: two rows of g, p/one"):
        from_tables(generations, twice, judges=["p/one"], features=FEATURES)
    with pytest.raises(ValueError, match="labels: two rows of g"):
        from_tables(
            pd.concat([generations] * 2), labels.assign(habitat=0), judges=["p/one"], features=FEATURES
        )


def test_the_released_archive_gives_the_paper_s_human_numbers(mirror):
    params = study_params("alienbench", "released")
    samples = {
        **dict.fromkeys(params["conditions"], 30),
        **{w: 10 for w in params["wordings"] if w != "baseline"},
    }
    generations, labels, left = load_archive(
        Archive("alienbench", mirror),
        subjects=params["subjects"],
        judges=params["judges"],
        features=params["features"],
        samples=samples,
    )
    assert len(generations) == 10 * (6 * 30 + 5 * 10) + 100 and len(labels) == 3 * len(generations)
    assert set(left["what"]) == {"generation", "judge reply", "model folder"}
    human = from_tables(generations, labels, judges=list(params["judges"]), features=list(params["features"]))
    human = human.of([alienbench.HUMAN])
    from compendium.frame.cells import grid, published

    printed = grid(published("alienbench"), "table-6")["human"]
    computed = 100 * human.rates([alienbench.HUMAN]).loc[alienbench.HUMAN]
    assert (computed.round(1) == printed[computed.index]).all()
    assert round(human.scores().mean(), 2) == 1.93


def test_the_default_archive_is_pinned():
    assert archive_module.sources()["alienbench"]
