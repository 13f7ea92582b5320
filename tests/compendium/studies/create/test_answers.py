"""CREATE's loader: one meaning under many spellings, and one clear error where there is none."""

import json

import numpy as np
import pytest

from compendium.studies.create.answers import load_answers, path_strength
from compendium.studies.create.errors import CreateError
from compendium.studies.create.paths import parse_answer, path_key
from compendium.studies.create.tables import read_csv_frame, to_csv_frame

PATHS = [
    [["ada", "friend of", "bo"], ["bo", "occupation", "poet"]],
    [["ada", "plays", "cello"], ["cello", "played by", "cy"], ["cy", "occupation", "poet"]],
    [["ada", "lives in", "oslo"], ["rome", "home of", "di"], ["di", "occupation", "poet"]],
]
ROW = {
    "index": 4,
    "query": "How?",
    "entity_a": "Ada",
    "rel_b": "occupation",
    "entity_b": "poet",
    "parsed_paths": [PATHS],
    "paths_0": PATHS,
    "validity_per_path_0": [1, 1, 0],
    "parsed_scores_factuality_0": [[1, 1], [1, 0, 1], [1, 1, 1]],
    "factuality_scores_0": [1.0, 0.0, 1.0],
    "raw_salience_scores_0": [[4, 1], [3, 5, 1], [2, 2, 1]],
    "min_salience_scores_0": [4.0, 3.0, 2.0],
}


def load(tmp_path, *rows, name="model.jsonl", text=None):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row) for row in rows) if text is None else text, encoding="utf-8")
    return load_answers(path)


def columns(answers):
    table = answers.paths
    return {
        name: table[name].tolist()
        for name in ("valid", "factual", "share_factual", "strength", "weakest", "length")
    }


@pytest.fixture
def plain(tmp_path):
    return load(tmp_path, ROW)


def test_plain(plain):
    assert plain.source == "model" and plain.problems == []
    assert plain.queries.iloc[0].tolist() == ["model", 4, "How?", "Ada", "occupation", "poet", 3, ""]
    assert columns(plain) == {
        "valid": [True, True, False],
        "factual": [1, 0, 1],
        "share_factual": [1, 2 / 3, 1],
        "strength": [4, 3, 2],
        "weakest": [1, 1, 1],
        "length": [2, 3, 3],
    }
    assert plain.paths["text"].tolist()[1] == "[plays] cello | cello [played by] cy"


@pytest.mark.parametrize(
    "change",
    [
        {"paths_0": json.dumps(PATHS), "parsed_paths": json.dumps([PATHS])},
        {"paths_0": str(PATHS), "parsed_paths": str([PATHS])},
        {"paths_0": json.dumps(json.dumps(PATHS))},
        {"parsed_paths": None},
        {"paths_0": None},
        {"parsed_paths": PATHS, "paths_0": None},
        {"paths_0": [[" | ".join(triple) for triple in path] for path in PATHS]},
        {"paths_0": {str(i): path for i, path in enumerate(PATHS)}, "parsed_paths": None},
        {"paths_0": [[dict(zip(("head", "relation", "tail"), triple)) for triple in path] for path in PATHS]},
        {"paths_0": [[json.dumps(triple) for triple in path] for path in PATHS], "parsed_paths": None},
        {"validity_per_path_0": [True, "True", "false"]},
        {"validity_per_path_0": "[1.0, 1.0, 0.0]"},
        {"validity_per_path_0": None},
        {"parsed_scores_factuality_0": "[[1, 1], [1, 0, 1], [1, 1, 1]]"},
        {
            "parsed_scores_factuality_0": [
                ["True", "true"],
                [True, False, 1.0],
                ["not hallucinated", "yes", "1.0"],
            ]
        },
        {"raw_salience_scores_0": str([["4", "1"], ["3/5", 5.0, 1], [2, 2, 1]])},
        {"min_salience_scores_0": None},
        {"factuality_scores_0": None},
        {
            "triple1_labels": ["Ada", "x", "c"],
            "triple3_labels": ["y", "occupation", "poet"],
            "entity_a": None,
            "rel_b": "",
            "entity_b": None,
        },
        {
            "source_path": str([["Ada", "x", "c"], ["y", "x", "c"], ["y", "occupation", "poet"]]),
            "entity_a": None,
        },
    ],
)
def test_the_same_in_other_dresses(tmp_path, plain, change):
    row = {key: value for key, value in {**ROW, **change}.items() if value is not None}
    found = load(tmp_path, row)
    assert columns(found) == columns(plain)
    assert [path_key(path) for path in found.paths["triples"]] == [
        path_key(path) for path in plain.paths["triples"]
    ]


@pytest.mark.parametrize("keep", [[0, 2], "[0, 2]", "(0, 2)", [0.0, 2.0]])
def test_files_that_keep_factual_paths_only(tmp_path, plain, keep):
    kept = {
        **ROW,
        "paths_0": [PATHS[0], PATHS[2]],
        "min_salience_scores_0": [4.0, 2.0],
        "indices_to_keep": keep,
    }
    assert columns(load(tmp_path, kept)) == columns(plain)
    del kept["parsed_paths"]
    found = load(tmp_path, kept)
    assert columns(found) == {name: [values[0], values[2]] for name, values in columns(plain).items()}


def test_scores_of_kept_paths_alone_are_put_in_place(tmp_path):
    kept = {
        **ROW,
        "indices_to_keep": [0, 2],
        "paths_0": [PATHS[0], PATHS[2]],
        "raw_salience_scores_0": [[4, 1], [2, 2, 1]],
    }
    found = columns(load(tmp_path, kept))
    assert found["strength"][0] == 4 and found["strength"][2] == 2
    assert found["strength"][1] == 3  # the file's own path score, where triples have none


def test_missing_scores_stay_missing(tmp_path):
    found = load(
        tmp_path,
        {
            **ROW,
            "raw_salience_scores_0": [[4, 1], None, [2, None, 1]],
            "min_salience_scores_0": None,
            "parsed_scores_factuality_0": [[1, 1], [], [1, 1]],
            "factuality_scores_0": None,
        },
    )
    assert np.isnan(found.paths["strength"].to_numpy()[1:]).all() and found.paths["strength"][0] == 4
    assert np.isnan(found.paths["factual"].to_numpy()[1:]).all()
    assert any("2 factuality marks for 3 triples" in words for words in found.problems)


def test_placeholders_are_void_not_scores(tmp_path):
    found = load(tmp_path, {**ROW, "raw_salience_scores_0": [[0, 1], [-1, 5, 1], [2, 2, 1]]})
    assert np.isnan(found.paths["strength"].to_numpy()[:2]).all()
    assert sum("stands for a missing one" in words for words in found.problems) == 2


def test_judges_replies_are_read_where_scores_are_missing(tmp_path, plain):
    row = {
        **ROW,
        "parsed_scores_factuality_0": None,
        "raw_salience_scores_0": None,
        "raw_responses_factuality_0": [
            json.dumps({"judgments": [{1: "not hallucinated", 0: "hallucinated"}[mark] for mark in marks]})
            for marks in ROW["parsed_scores_factuality_0"]
        ],
        "salience_raw_responses_0": [
            json.dumps([{"judgment": {1: 9000, 2: 900, 3: 300, 4: 50, 5: 2}[s]} for s in scores])
            for scores in ROW["raw_salience_scores_0"]
        ],
    }
    assert columns(load(tmp_path, row)) == columns(plain)


def test_several_samples_are_one_set(tmp_path):
    second = {key.replace("_0", "_1"): value for key, value in ROW.items() if key.endswith("_0")}
    row = {**ROW, **second, "parsed_paths": [PATHS, PATHS]}
    found = load(tmp_path, row)
    assert found.paths["sample"].tolist() == [0, 0, 0, 1, 1, 1]
    assert found.queries["n_paths"].tolist() == [6]


def test_duplicate_paths_are_marked(tmp_path):
    twice = {key: value for key, value in ROW.items() if key not in ("parsed_paths", "paths_0")}
    found = load(
        tmp_path,
        {
            **twice,
            "paths_0": [PATHS[0], PATHS[1], [[part.upper() for part in t] for t in PATHS[0]]],
            "parsed_scores_factuality_0": [[1, 1], [1, 0, 1], [1, 1]],
            "raw_salience_scores_0": [[4, 1], [3, 5, 1], [4, 1]],
        },
    )
    assert found.paths["repeat"].tolist() == [False, False, True]


@pytest.mark.parametrize("empty", [[], "[]", [[]], "[[]]"])
def test_an_empty_answer_is_a_query_without_paths(tmp_path, empty):
    row = {
        **ROW,
        "paths_0": empty,
        "parsed_paths": [empty],
        "validity_per_path_0": [0.0],
        "factuality_scores_0": [0.0],
        "parsed_scores_factuality_0": [[]],
        "raw_salience_scores_0": [[]],
        "min_salience_scores_0": [1.0],
    }
    found = load(tmp_path, row, {**ROW, "index": 5})
    assert found.queries["n_paths"].tolist() == [0, 3]


def test_a_reply_is_parsed_where_paths_are_missing(tmp_path, plain):
    row = {key: value for key, value in ROW.items() if key not in ("paths_0", "parsed_paths")}
    body = json.dumps({str(i): path for i, path in enumerate(PATHS, 1)})
    assert columns(load(tmp_path, {**row, "path_prediction": [f"<answer>{body}</answer>"]})) == columns(plain)
    unclosed = load(tmp_path, {**row, "raw_path_prediction": f"<answer>{body}"})
    assert columns(unclosed) == columns(plain)
    assert any("never closed" in words for words in unclosed.problems)


def test_a_triple_of_two_elements_makes_a_path_invalid(tmp_path):
    row = {
        **ROW,
        "validity_per_path_0": None,
        "parsed_paths": None,
        "paths_0": [[["ada", "friend of"], PATHS[0][1]], *PATHS[1:]],
    }
    found = load(tmp_path, {key: value for key, value in row.items() if value is not None})
    assert not found.paths["valid"][0] and "2 elements" in found.paths["fault"][0]


def test_the_file_may_be_a_list_have_a_mark_or_blank_lines(tmp_path, plain):
    for text in (json.dumps([ROW]), "\ufeff" + json.dumps(ROW), "\n\n" + json.dumps(ROW) + "\n\n"):
        assert columns(load(tmp_path, text=text)) == columns(plain)


@pytest.mark.parametrize(
    "change, words",
    [
        (
            {"raw_salience_scores_0": [[7, 1], [3, 5, 1], [2, 2, 1]]},
            ["line 1", "raw_salience_scores_0", "path 0", "7", "1 to 5"],
        ),
        ({"raw_salience_scores_0": [["4.5", 1], [3, 5, 1], [2, 2, 1]]}, ["path 0", "4.5"]),
        ({"validity_per_path_0": [1, 1]}, ["line 1", "validity_per_path_0", "2 entries", "should hold 3"]),
        ({"parsed_scores_factuality_0": [[1, 1]] * 7}, ["parsed_scores_factuality_0", "7 entries"]),
        ({"paths_0": "no idea", "parsed_paths": None}, ["paths_0", "should hold paths"]),
        ({"paths_0": [7], "parsed_paths": None}, ["paths_0", "path 0", "list of triples"]),
        ({"indices_to_keep": "first two"}, ["indices_to_keep", "path numbers"]),
        ({"entity_a": None}, ["the query's head is missing", "entity_a"]),
        ({"paths_0": None, "parsed_paths": None}, ["holds no paths", "path_prediction"]),
        ({"factuality_scores_0": 1.0}, ["factuality_scores_0", "one entry a path"]),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, change, words):
    row = {key: value for key, value in {**ROW, **change}.items() if value is not None}
    with pytest.raises(CreateError) as error:
        load(tmp_path, row)
    for word in ["model.jsonl", *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "holds no query"),
        ('{"index": 1,\n', "line 1: not JSON"),
        (json.dumps(ROW) + "\n[1]", "line 2: should be a JSON object"),
        (
            json.dumps(ROW) + "\n" + json.dumps({**ROW, "query": "Why?"}),
            "line 2: query 4 stands in line 1 already",
        ),
        ("[{]", "JSON list"),
    ],
)
def test_files_that_are_no_answers(tmp_path, text, words):
    with pytest.raises(CreateError, match=words.replace("[", r"\[")):
        load(tmp_path, text=text)


def test_a_missing_file(tmp_path):
    with pytest.raises(CreateError, match="cannot be read"):
        load_answers(tmp_path / "nowhere.jsonl")


def test_strength_leaves_the_demanded_triple_out():
    assert path_strength([4, 2, 1]) == (2, 1)
    assert path_strength([3]) == (3, 3)
    assert np.isnan(path_strength([])).all()
    assert np.isnan(path_strength([4, np.nan, 1])[0])


def test_tables_survive_a_csv_file(tmp_path, plain):
    path = tmp_path / "paths.csv"
    to_csv_frame(plain.paths).to_csv(path, index=False)
    again = read_csv_frame(path)
    assert again["triples"].tolist() == plain.paths["triples"].tolist()
    assert again.drop(columns="triples").equals(
        plain.paths.drop(columns="triples").astype(again.dtypes[again.columns.drop("triples")].to_dict())
    )
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CreateError, match="lacks the column .triples."):
        read_csv_frame(path)


FILES = {
    "GPT-4.1_model_name_gpt-4.1_variation_iterate": (308, 290),
    "GPT-4.1_model_name_gpt-4.1_variation_original": (346, 329),
    "GPT-5 (med)_model_name_gpt-5": (623, 623),
    "Gemini-3-pro_model_name_gemini-3-pro": (307, 307),
    "res_gptoss120b_original_1_medium_0.7_16384_gemini-3_1-pro-preview": (178, 178),
}


@pytest.mark.parametrize("stem", FILES)
def test_released_files(mirror, stem):
    path = mirror / "create" / "data" / f"{stem}.jsonl"
    found = load_answers(path)
    assert (len(found.paths), int(found.paths["valid"].sum())) == FILES[stem]
    assert len(found.queries) == 20 and found.problems == []
    for line, (_, rows) in zip(path.open(encoding="utf-8"), found.queries.iterrows()):
        record, mine = json.loads(line), found.paths[found.paths["query"] == rows["query"]]
        # the paths are those of the reply itself, and the path scores those of the file
        answer = parse_answer(record["raw_path_prediction"][0])
        assert [path_key(path) for path in answer.paths] == [path_key(path) for path in mine["triples"]]
        keep = record.get("indices_to_keep", range(len(mine)))
        if len(mine):
            assert mine["strength"].iloc[list(keep)].tolist() == record["min_salience_scores_0"]
