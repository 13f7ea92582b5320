"""CREATE's loader on files that it has not seen: the same answers in every outer shape and under every spelling
that such files come in; and no input, however odd, that ends in anything but a table or one clear error."""

import bz2
import gzip
import json
import math
import shutil

import numpy as np
import pytest

from compendium.studies.create.answers import load_answers
from compendium.studies.create.errors import CreateError
from compendium.studies.create.paths import path_key, read_path
from compendium.studies.create.records import column_name, read_records, source_of
from compendium.studies.create.stages import load_archive
from tests.compendium.studies.create.test_answers import PATHS, ROW, columns

OTHER = {**ROW, "index": 5, "query": "Who?", "entity_a": "Ada", "entity_b": "Poet"}
ROWS = [ROW, OTHER]


def lines(rows, **options):
    return "\n".join(json.dumps(row, **options) for row in rows)


def load(tmp_path, content, name="model.jsonl"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_answers(path)


def without(row, *names):
    return {key: value for key, value in row.items() if key not in names}


@pytest.fixture
def plain(tmp_path):
    return load(tmp_path, lines(ROWS), "plain.jsonl")


def test_the_plain_file_is_clean(plain):
    assert plain.problems == [] and plain.left_out == {} and len(plain.queries) == 2 and len(plain.paths) == 6


SHAPES = {
    "list": json.dumps(ROWS),
    "indented list": json.dumps(ROWS, indent=2),
    "indented objects": "\n".join(json.dumps(row, indent=1) for row in ROWS),
    "lines with commas": ",\n".join(json.dumps(row) for row in ROWS) + ",",
    "under a key": json.dumps({"model": "x", "results": ROWS}),
    "under two keys": json.dumps({"meta": {"n": 2}, "data": {"rows": ROWS}}),
    "by number": json.dumps({str(row["index"]): without(row, "index") for row in ROWS}),
    "columns of lists": json.dumps({key: [row[key] for row in ROWS] for key in ROW}),
    "columns of objects": json.dumps({key: {"0": ROW[key], "1": OTHER[key]} for key in ROW}),
    "split": json.dumps(
        {"columns": list(ROW), "index": [0, 1], "data": [list(row.values()) for row in ROWS]}
    ),
    "Python text": "\n".join(repr(row) for row in ROWS),
    "lines in strings": lines([json.dumps(row) for row in ROWS]),
    "CRLF": lines(ROWS).replace("\n", "\r\n") + "\r\n",
    "CR alone": lines(ROWS).replace("\n", "\r"),
    "byte-order mark": b"\xef\xbb\xbf" + lines(ROWS).encode(),
    "UTF-16": lines(ROWS).encode("utf-16"),
    "gzip": gzip.compress(lines(ROWS).encode(), mtime=0),
    "bzip2": bz2.compress(json.dumps(ROWS).encode()),
    "unescaped": lines(ROWS, ensure_ascii=False),
    "a repeated line": lines([*ROWS, ROW]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_outer_shapes(tmp_path, plain, shape):
    found = load(tmp_path, SHAPES[shape])
    assert columns(found) == columns(plain)
    assert found.queries.drop(columns="source").equals(plain.queries.drop(columns="source"))
    assert found.left_out == ({"repeated record": 1} if shape == "a repeated line" else {})


def spelled(change):
    return lines({change(key): value for key, value in row.items()} for row in ROWS)


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda key: key.replace("_", " ").title(),
        lambda key: key.replace("_", "-"),
        lambda key: key[0] + key.title().replace("_", "")[1:],
        lambda key: key.removesuffix("_0"),
        lambda key: key.replace("salience", "specificity"),
        lambda key: {"entity_a": "head", "rel_b": "relation", "entity_b": "tail", "index": "query_id"}.get(
            key, key
        ),
    ],
)
def test_names_of_columns(tmp_path, plain, change):
    assert columns(load(tmp_path, spelled(change))) == columns(plain)


ENTITIES = [[[{"id": "Q1", "label": part} for part in triple] for triple in path] for path in PATHS]
CHAIN = PATHS[:2]
FORMS = {
    "with probabilities": [{"path": path, "probability": 0.3} for path in PATHS],
    "by name": {f"path {i}": path for i, path in enumerate(PATHS, 1)},
    "numbered the other way round": {str(i): PATHS[i] for i in (2, 1, 0)},
    "entities as objects": ENTITIES,
    "text with brackets": [", ".join(f"({', '.join(triple)})" for triple in path) for path in PATHS],
    "text with semicolons": ["; ".join(" | ".join(triple) for triple in path) for path in PATHS],
    "triples as Python text": [[str(tuple(triple)) for triple in path] for path in PATHS],
    "short names": [[dict(zip("hrt", triple)) for triple in path] for path in PATHS],
    "cut off": json.dumps(PATHS)[:-1],
    "in an answer tag": f"<answer>{json.dumps({'1': PATHS[0], '2': PATHS[1], '3': PATHS[2]})}</answer>",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_paths(tmp_path, plain, form):
    found = load(tmp_path, lines({**without(row, "parsed_paths"), "paths_0": FORMS[form]} for row in ROWS))
    assert columns(found) == columns(plain)
    assert [path_key(path) for path in found.paths["triples"]] == [
        path_key(path) for path in plain.paths["triples"]
    ]


@pytest.mark.parametrize(
    "value",
    [
        ["ada", "friend of", "bo", "occupation", "poet"],
        "ada -> friend of -> bo -> occupation -> poet",
        "ada | friend of | bo | occupation | poet",
        {"entities": ["ada", "bo", "poet"], "relations": ["friend of", "occupation"]},
        {"nodes": 1, "triples": PATHS[0]},
    ],
)
def test_flat_chains(value):
    assert read_path(value) == tuple(map(tuple, PATHS[0]))


@pytest.mark.parametrize("value", ["", "none", 7, {"entities": ["a", "b"], "relations": []}, ["a", "b"]])
def test_what_is_no_path(value):
    found = read_path(value)
    assert found is None or all(len(triple) == 1 for triple in found)


MARKS, SCORES = ROW["parsed_scores_factuality_0"], ROW["raw_salience_scores_0"]
JUDGEMENTS = {
    "flags as words": {
        "parsed_scores_factuality_0": [
            ["yes" if m else "Not_Hallucinated." if m else "hallucinated" for m in marks] for marks in MARKS
        ]
    },
    "booleans": {"parsed_scores_factuality_0": [[bool(m) for m in marks] for marks in MARKS]},
    "objects by triple": {
        "parsed_scores_factuality_0": [
            [{"triple": 1, "factual": m, "why": "…"} for m in marks] for marks in MARKS
        ],
        "raw_salience_scores_0": [[{"score": str(s)} for s in scores] for scores in SCORES],
    },
    "objects by path": {
        "parsed_scores_factuality_0": [{"judgments": marks} for marks in MARKS],
        "raw_salience_scores_0": [{str(i): s for i, s in enumerate(scores)} for scores in SCORES],
    },
    "numbered": {"raw_salience_scores_0": {"3": SCORES[2], "1": SCORES[0], "2": SCORES[1]}},
    "under the path's name": {"parsed_scores_factuality_0": None, "factuality_scores_0": MARKS},
    "text in text": {"raw_salience_scores_0": json.dumps([json.dumps(scores) for scores in SCORES])},
    "reasons missing": {"validity_reasons_0": [None, "nan", float("nan")]},
    "mask": {"indices_to_keep": [True, True, True]},
    "unjudged validity": {"validity_per_path_0": [None, "null", -1]},
}


@pytest.mark.parametrize("form", JUDGEMENTS)
def test_forms_of_judgements(tmp_path, plain, form):
    found = load(tmp_path, lines({**row, **JUDGEMENTS[form]} for row in ROWS))
    assert columns(found) == columns(plain)


def test_a_mask_keeps_the_paths_it_marks(tmp_path, plain):
    kept = {
        "indices_to_keep": [True, False, True],
        "paths_0": [PATHS[0], PATHS[2]],
        "min_salience_scores_0": [4.0, 2.0],
    }
    assert columns(load(tmp_path, lines({**row, **kept} for row in ROWS))) == columns(plain)


def test_extra_columns_change_nothing(tmp_path, plain):
    extra = {
        "usage": {"tokens": [1, 2]},
        "path_recall_scores_set_0": 0,
        "avg_path_length_0": 3.0,
        "uniqueness_scores_0": [[1], [2], [3]],
        "prompt": [{"role": "user", "content": "…"}],
        "answers_seen": None,
        "reasoning_0": "null",
    }
    assert columns(load(tmp_path, lines({**row, **extra} for row in ROWS))) == columns(plain)


def test_a_query_may_be_an_object(tmp_path, plain):
    rows = [
        {
            **without(row, "query", "entity_a", "rel_b", "entity_b", "index"),
            "query": {
                "id": f"q{row['index']}",
                "text": row["query"],
                "head": row["entity_a"],
                "relation": row["rel_b"],
                "tail": row["entity_b"],
            },
        }
        for row in ROWS
    ]
    found = load(tmp_path, lines(rows))
    assert columns(found) == columns(plain) and found.queries["query"].tolist() == [4, 5]
    assert found.queries["text"].tolist() == ["How?", "Who?"]


def test_samples_inside_one_column(tmp_path):
    twice = {
        "paths": [PATHS, PATHS[:2]],
        "validity_per_path": [[1, 1, 0], [1, 0]],
        "parsed_scores_factuality": [MARKS, MARKS[:2]],
        "raw_salience_scores": [SCORES, SCORES[:2]],
    }
    base = {key: value for key, value in ROW.items() if not key.endswith("_0") and key != "parsed_paths"}
    found = load(tmp_path, lines([{**base, **twice}]))
    assert found.paths["sample"].tolist() == [0, 0, 0, 1, 1]
    assert columns(found)["valid"] == [True, True, False, True, False]
    assert columns(found)["strength"] == [4, 3, 2, 4, 3] and found.queries["n_paths"].tolist() == [5]


def test_every_reply_of_several_is_read(tmp_path):
    base = {key: value for key, value in ROW.items() if not key.endswith("_0") and key != "parsed_paths"}
    replies = [f"<answer>{json.dumps({'1': path})}</answer>" for path in PATHS]
    found = load(tmp_path, lines([{**base, "raw_path_prediction": replies}]))
    assert found.paths["sample"].tolist() == [0, 1, 2]
    assert found.left_out["valid path without usable factuality"] == 2


@pytest.mark.parametrize("value", [None, "", "null", float("nan"), [None], "[null]", [[[]]], "NaN"])
def test_a_failed_answer_is_an_empty_one(tmp_path, value):
    row = {**without(ROW, "parsed_paths", "validity_per_path_0"), "paths_0": value}
    for name in (
        "parsed_scores_factuality_0",
        "factuality_scores_0",
        "raw_salience_scores_0",
        "min_salience_scores_0",
    ):
        row[name] = []
    found = load(tmp_path, lines([row, OTHER]))
    assert found.queries["n_paths"].tolist() == [0, 3]
    assert found.problems == [] or "holds no answer" in found.problems[0]


def test_missing_judgements_are_counted(tmp_path):
    found = load(
        tmp_path, lines([without(ROW, *[key for key in ROW if "factual" in key or "salience" in key])])
    )
    assert found.left_out == {
        "valid path without usable factuality": 2,
        "valid path without usable specificity": 2,
    }
    assert "2 of 2 valid paths have no usable factuality" in found.problems[0]
    assert found.paths[["factual", "strength"]].isna().all(axis=None)


@pytest.mark.parametrize("mark", [0.85, -1, "perhaps", 2, {"hallucinated": True}])
def test_a_mark_that_is_neither_is_void(tmp_path, mark):
    found = load(
        tmp_path,
        lines(
            [{**without(ROW, "factuality_scores_0"), "parsed_scores_factuality_0": [[mark, 1], *MARKS[1:]]}]
        ),
    )
    assert np.isnan(found.paths["factual"][0]) and found.left_out["factuality void"] == 1


def test_odd_names_are_made_fit_for_a_file(tmp_path):
    paths = [
        [["Simon &amp; Garfunkel", "song", "Caf\\u00e9 \ud800"], ["CAFE\u0301 \ufffd", "occupation", "poet"]]
    ]
    row = {
        **without(ROW, *[key for key in ROW if key.endswith("_0")]),
        "entity_a": "Simon & Garfunkel",
        "parsed_paths": paths,
    }
    found = load(tmp_path, json.dumps(row).replace("\\\\u00e9", "\\u00e9"))
    assert found.paths["valid"].tolist() == [True]
    assert found.paths["text"].str.encode("utf-8").str.decode("utf-8").tolist() == ["[song] café \ufffd"]


def test_numbers_of_queries(tmp_path):
    for given, read in ((7.0, 7), ("7", 7), ("Q7", 7), ("query_7", 7), (None, 0), (float("nan"), 0)):
        assert load(tmp_path, lines([{**ROW, "index": given}])).queries["query"].tolist() == [read]
    found = load(tmp_path, lines([{**ROW, "index": "3f-9a"}]))
    assert found.queries["query"].tolist() == [0] and "'3f-9a' is none" in found.problems[0]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"\x1f\x8b\x08\x00broken", ["model.jsonl", "cannot be read"]),
        (gzip.compress(lines(ROWS).encode(), mtime=0)[:60], ["model.jsonl", "cannot be read"]),
        (lines(ROWS).encode() + b"\n\xff\xfe", ["line 3", "cannot be read as text"]),
        (lines(ROWS)[:-20], ["line 2", "not JSON"]),
        (lines([ROW]) + "\nsorry\n", ["line 2", "not JSON", "one query"]),
        (lines([ROW]) + "\n17", ["line 2", "should be a JSON object, not a int"]),
        ("[" + json.dumps(ROW) + ", null]", ["entry 2", "should be a JSON object"]),
        (lines([ROW])[:-1] + ', "query": "again"}', ["line 1", "'query' is given twice"]),
        ("{}", ["line 1", "the query's head is missing"]),
        (lines([{**ROW, "indices_to_keep": [0, -1]}]), ["indices_to_keep", "path numbers"]),
        (lines([{**ROW, "indices_to_keep": [0.5]}]), ["indices_to_keep", "path numbers"]),
        (
            lines([{**without(ROW, "paths_0"), "indices_to_keep": [0, 9]}]),
            ["indices_to_keep", "names path 9, there are 3"],
        ),
        (lines([{**ROW, "indices_to_keep": [True]}]), ["indices_to_keep", "marks 1 paths, there are 3"]),
        (
            lines([{**ROW, "raw_salience_scores_0": [[True, 1], *SCORES[1:]]}]),
            ["raw_salience_scores_0", "True", "1 to 5"],
        ),
        (lines([{**ROW, "raw_salience_scores_0": [[float("inf"), 1], *SCORES[1:]]}]), ["path 0", "inf"]),
        (lines([ROW, {**OTHER, "index": 4}]), ["line 2", "query 4 stands in line 1", "paths_1"]),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, content, words):
    with pytest.raises(CreateError) as error:
        load(tmp_path, content)
    for word in ["model.jsonl", *words]:
        assert word in str(error.value)


JUNK = [
    None,
    "",
    "junk",
    "[",
    "{'a': ",
    7,
    -3,
    1.5,
    math.nan,
    math.inf,
    True,
    [],
    {},
    [[]],
    [[[]]],
    [[[[]]]],
    [None],
    [7, "x"],
    {"a": 1},
    {"1": {"2": None}},
    [{}],
    [[None]],
    [[[None, None, None]]],
    [["a"]],
    ["a, b, c"],
    "\ud800",
    "[[[1, 2, 3]]]",
    [[0.5]],
]


@pytest.mark.parametrize(
    "column",
    [
        *ROW,
        "source_path",
        "triple1_labels",
        "raw_path_prediction",
        "indices_to_keep",
        "raw_responses_factuality_0",
        "salience_raw_responses_0",
        "validity_reasons_0",
    ],
)
def test_no_value_anywhere_breaks_the_loader(tmp_path, column):
    read = 0
    for junk in JUNK:
        for others in (ROW, without(ROW, "parsed_paths", "factuality_scores_0")):
            try:
                found = load(tmp_path, json.dumps({**others, column: junk}))
            except CreateError as error:
                assert "model.jsonl" in str(error)
            else:
                read += 1
                assert len(found.queries) == 1 and found.queries["n_paths"][0] == len(found.paths)
                assert found.paths["strength"].dropna().isin(range(1, 6)).all()
                assert found.paths["factual"].dropna().isin([0, 1]).all()
                assert found.paths["text"].str.encode("utf-8").notna().all()
    assert read > 0


def test_names():
    assert {
        column_name(name) for name in ("parsedPaths", "Parsed Paths", "PARSED-PATHS", " parsed_paths ")
    } == {"parsed_paths"}
    assert [source_of(name) for name in ("a/GPT-4.1_x.jsonl.gz", "b.JSON", "c", ".json", "gpt-5.2")] == [
        "GPT-4.1_x",
        "b",
        "c",
        ".json",
        "gpt-5.2",
    ]


def test_the_released_files_in_one_list(mirror, tmp_path):
    """A released file rewritten as an indented, packed JSON list is the same file."""
    path = next((mirror / "create" / "data").glob("res_*.jsonl"))
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    packed = tmp_path / f"{path.stem}.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(rows, indent=1).encode()))
    assert len(read_records(packed)) == len(rows)
    first, second = load_answers(path), load_answers(packed)
    assert (
        first.paths.equals(second.paths)
        and first.queries.equals(second.queries)
        and first.source == second.source
    )


def test_files_of_your_own_beside_the_released_ones(tmp_path):
    first, second = tmp_path / "own", tmp_path / "more"
    for folder in (first, second):
        folder.mkdir()
    cook = {**OTHER, "entity_b": "cook"}
    load(first, lines([ROW, cook]), "a_original_1.jsonl")
    packed = gzip.compress(
        lines([{**cook, "index": 0}, {**ROW, "index": 1}, {**ROW, "index": 4, "entity_a": "Eve"}]).encode()
    )
    load(first, packed, "b.json.gz")
    made = load_archive(answers=[str(first)])
    assert made.queries["source"].drop_duplicates().tolist() == ["a_original_1", "b"]
    assert made.queries["query"].tolist() == [
        4,
        5,
        5,
        4,
        6,
    ]  # by head, relation and tail; Eve's query is another
    assert made.paths.groupby(["source", "query"]).size().tolist() == [3] * 5
    assert made.problems == [
        "b.json.gz: 3 queries carry other numbers than in the files before: matched by head, relation and tail"
    ]
    (first / "notes.md").write_text("no answers")
    one = load_archive(answers=[str(first / "b.json.gz")])
    assert one.queries["query"].tolist() == [0, 1, 4]
    some = load_archive(answers=[str(tmp_path / "*" / "*.jsonl")])
    assert some.queries["source"].drop_duplicates().tolist() == ["a_original_1"]
    (first / "b.jsonl").write_text(lines([ROW]))
    for answers, words in (
        ([str(first)], "is called 'b' as"),
        ([str(second)], "folder holds no file of answers"),
        ([str(second / "*.json")], "pattern matches no file of answers"),
        ([], "lists nothing"),
        ([str(first / "c.jsonl")], "c.jsonl: cannot be read"),
    ):
        with pytest.raises(CreateError, match=words):
            load_archive(answers=answers)


def test_what_lies_unpinned_in_the_mirror_is_said(mirror, tmp_path):
    shutil.copytree(mirror / "create", tmp_path / "create")
    shutil.copy(next((mirror / "create" / "data").glob("res_*")), tmp_path / "create" / "data" / "mine.jsonl")
    made = load_archive(str(tmp_path))
    assert len(set(made.queries["source"])) == 5 and "data/mine.jsonl lies in the mirror" in made.problems[0]
    both = load_archive(str(tmp_path), ["released", str(tmp_path / "create" / "data" / "mine.jsonl")])
    assert (
        len(set(both.queries["source"])) == 6
        and both.queries["query"].nunique() == made.queries["query"].nunique()
    )
