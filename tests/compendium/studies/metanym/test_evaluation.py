"""Judges' replies of every kind that real judges sent, the released table, and the authors' folder."""

import json

import numpy as np
import pytest

from compendium.asking.errors import InvalidReply
from compendium.studies.metanym.evaluation import parse_batch, parse_evaluation
from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.ratings import oddities, read_folder, read_table
from compendium.studies.metanym.release import load_archive

ITEM = {
    "name": "A",
    "factual_per_pc": [5, 6, 7, 8, 9],
    "beauty": 4,
    "intelligence": 5,
    "instantiation_distinctness": 6,
    "impressive_length": 7,
}


def block(items=None, structure=6, **change):
    items = [{**ITEM, "name": f"A{k}", **change} for k in range(5)] if items is None else items
    return {"scores": {"Target": {"archetypal_contexts": items, "structural_diversity": structure}}}


def fenced(content) -> str:
    return (
        "Some words.\n\n```json\n"
        + (content if isinstance(content, str) else json.dumps(content, indent=1))
        + "\n```"
    )


def kind(text, **options):
    with pytest.raises(InvalidReply) as error:
        parse_evaluation(text, **options)
    return error.value.kind


def test_a_reply_as_asked():
    found = parse_evaluation(fenced(block()))
    assert (
        found.strict
        and found.names == ("A0", "A1", "A2", "A3", "A4")
        and found.structure == 6
        and not found.notes
    )
    np.testing.assert_array_equal(found.scores[0], [5, 6, 7, 8, 9, 4, 5, 6, 7])


def test_rows_are_tidy():
    rows = parse_evaluation(fenced(block())).rows(2, 7, "bob", "cid")
    assert (
        list(rows["archetype"]) == [1, 2, 3, 4, 5]
        and set(rows["run"]) == {2}
        and (rows["structure"] == 6).all()
    )
    assert rows.loc[0, "pc5"] == 9 and rows.loc[0, "length"] == 7 and rows.loc[0, "distinctness"] == 6


@pytest.mark.parametrize(
    "text",
    [
        fenced(
            '{"scores": {"Target": {"archetypal_contexts": ['
            + json.dumps(ITEM)
            + ' /* four more archetypes omitted for brevity */], "structural_diversity": 8}}}'
        ),
        fenced(
            '{"scores": {"Target": {"archetypal_contexts": ['
            + json.dumps(ITEM)
            + '\n/* five entries in this list, one per archetypal context */], "structural_diversity": 8}}}'
        ),
        fenced(
            '{"scores": {"Target": {"archetypal_contexts": ['
            + json.dumps(ITEM)
            + ', ...], "structural_diversity": 8}}}'
        ),
    ],
)
def test_a_comment_in_place_of_the_rest_is_never_filled_in(text):
    assert kind(text) == "omission"


def test_the_schemas_own_comment_beside_complete_scores_is_harmless():
    text = json.dumps(block()).replace(
        '}], "struct', '} /* five entries in this list, one per archetypal context */], "struct'
    )
    found = parse_evaluation(fenced(text))
    assert len(found.names) == 5 and not found.strict


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_other_numbers_of_archetypes_are_noted(count):
    found = parse_evaluation(fenced(block([ITEM] * count)))
    assert len(found.scores) == count and f"{count} archetypes" in found.notes


def test_too_few_archetypes_can_be_refused():
    assert kind(fenced(block([ITEM] * 3)), least=4) == "archetypes"


@pytest.mark.parametrize(
    "value, expected", [(7, 7), ("7", 7), ("7/10", 7), (7.0, 7), (0, 0), (None, np.nan), ("N/A", np.nan)]
)
def test_spellings_of_a_rating(value, expected):
    found = parse_evaluation(fenced(block(beauty=value)))
    np.testing.assert_array_equal(found.scores[:, 5], np.full(5, expected))


@pytest.mark.parametrize("value", [11, -1, 7.5, True, "high", "7/5"])
def test_what_is_no_rating_is_asked_again(value):
    assert kind(fenced(block(beauty=value))) == "rating"


def test_a_zero_is_kept_and_noted():
    assert "0 given, outside the scale" in parse_evaluation(fenced(block(factual_per_pc=[0] * 5))).notes


def test_diversity_inside_the_list_is_taken_out_of_it():
    content = block([{**ITEM, "name": str(k)} for k in range(5)] + [{"structural_diversity": 9}])
    del content["scores"]["Target"]["structural_diversity"]
    found = parse_evaluation(fenced(content))
    assert (
        found.structure == 9
        and len(found.names) == 5
        and "structural_diversity stood in the list" in found.notes
    )


def test_of_two_blocks_the_last_counts():
    text = fenced({"summary": "first the prose again"}) + "\n" + fenced(block(beauty=3))
    assert (parse_evaluation(text).scores[:, 5] == 3).all()
    assert (parse_evaluation(fenced(block(beauty=9)) + fenced(block(beauty=2))).scores[:, 5] == 2).all()


def test_thinking_and_a_fence_without_a_language():
    text = '<think>{"scores": 1}</think>\n```\n' + json.dumps(block()) + "\n```"
    assert parse_evaluation(text).strict


@pytest.mark.parametrize("text", ["", "No JSON at all.", fenced({"verdict": "fine"})])
def test_no_scores(text):
    with pytest.raises(InvalidReply):
        parse_evaluation(text)


def test_half_a_block():
    assert kind(fenced(block())[:500]) == "truncated"


def test_four_contexts_leave_the_fifth_missing():
    found = parse_evaluation(fenced(block(factual_per_pc=[5, 5, 5, 5])))
    assert np.isnan(found.scores[:, 4]).all() and "4 contexts scored" in found.notes


PROSE = """## Target Submission

### Archetypal context 1: One

#### Factually correct (per parallel context)
- PC 1 (x): fine. Rating: 5
- PC 2 (x): fine. **Rating: 6**
- PC 3 (x): fine. Rating: 7
- PC 4 (x): fine. Rating: 8
- PC 5 (x): fine. Rating: 9

#### Beauty
Good.
Rating: 4

#### Intelligence
Good.
**Rating:** 5

#### Domains far apart / metanyms not synonymous
Good.
Rating: 6

#### Impressive length
Good.
Rating: 7

### Structural diversity across the submitted set
Good.
Rating: 6
"""


def test_prose_and_block_are_compared_and_the_block_counts():
    same = parse_evaluation(PROSE + fenced(block([ITEM])))
    assert same.disagreements == 0
    np.testing.assert_array_equal(same.markdown[0], [5, 6, 7, 8, 9, 4, 5, 6, 7])
    other = parse_evaluation(PROSE + fenced(block([{**ITEM, "beauty": 9}], structure=3)))
    assert other.disagreements == 2 and other.scores[0, 5] == 9 and other.structure == 3


def test_a_batch_of_submissions():
    scores = {name: block(beauty=place)["scores"]["Target"] for place, name in enumerate(("S01", "S02"), 3)}
    found = parse_batch(fenced({"scores": scores}), ["S02", "S01"])
    assert (found["S01"].scores[:, 5] == 3).all() and (found["S02"].scores[:, 5] == 4).all()
    with pytest.raises(InvalidReply, match="no scores for 'S03'"):
        parse_batch(fenced({"scores": scores}), ["S01", "S03"])


# loading ------------------------------------------------------------------------------------------


HEADER = "anchor,evaluator,target,archetype,pc1,pc2,pc3,pc4,pc5,beauty,intelligence,distinctness,length,diversity,strict_json"


def write(tmp_path, *lines, header=HEADER):
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_columns_are_found_by_meaning(tmp_path):
    path = write(
        tmp_path,
        "9,bob,cid,7,1,6,7,8,9,4,5,6,7,5",
        header="structural_diversity,judge,submission,theta,archetype,pc1,pc2,pc3,pc4,pc5,beauty,intelligence,"
        "instantiation_distinctness,impressive_length",
    )
    row = read_table(path).iloc[0]
    assert (row["structure"], row["evaluator"], row["anchor"], row["pc5"], row["length"], row["run"]) == (
        9,
        "bob",
        7,
        4,
        5,
        1,
    )


def test_rows_that_no_strict_parser_takes_can_be_left_out(tmp_path):
    path = write(tmp_path, "7,bob,cid,1,5,5,5,5,5,4,4,4,4,4,1", "7,bob,dot,1,5,5,5,5,5,4,4,4,4,4,0")
    assert len(read_table(path)) == 1 and len(read_table(path, strict=False)) == 2


@pytest.mark.parametrize(
    "line, words",
    [
        ("7,bob,cid,1,11,5,5,5,5,4,4,4,4,4,1", "line 2: pc1 is 11"),
        ("7,bob,cid,1,5,5,5,5,5,7.5,4,4,4,4,1", "line 2: beauty is 7.5"),
        ("7,bob,cid,1,5,5,5,5,5,x,4,4,4,4,1", "line 2: beauty is x"),
        ("7,bob,cid,0,5,5,5,5,5,4,4,4,4,4,1", "line 2: archetype is"),
        (
            "7,bpb,cid,1,5,5,5,5,5,4,4,4,4,4,1",
            "line 2: evaluator 'bpb' is not on the roster; did you mean 'bob'",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, words):
    with pytest.raises(MetanymError, match=words):
        read_table(write(tmp_path, line), roster=["bob", "cid"])


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(MetanymError, match="has no column for 'beauty'"):
        read_table(write(tmp_path, header=HEADER.replace("beauty", "grace")))
    with pytest.raises(MetanymError, match="absent.csv: cannot be read"):
        read_table(tmp_path / "absent.csv")


def api_reply(text):
    return json.dumps({"Messages": [{"Message": {"Content": text}}]})


def test_the_authors_folder(tmp_path):
    for name, anchor in (("probe_K_5", 5), ("probe_K_7", 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "eval_gpt-41-mini_x_dot.json").write_text(
            api_reply(PROSE + fenced(block(beauty=anchor)))
        )
    bad = fenced(
        '{"scores": {"Target": {"archetypal_contexts": [' + json.dumps(ITEM) + " /* rest omitted */]}}}"
    )
    (tmp_path / "probe_K_7" / "eval_bob_x_dot.json").write_text(api_reply(bad))
    tidy, voids = read_folder(
        tmp_path,
        anchors={"probe_K_5": 5, "probe_K_7": 7},
        spelling={"gpt-41-mini": "gpt-4.1-mini"},
        roster=["bob", "dot", "gpt-4.1-mini"],
    )
    assert len(tidy) == 10 and set(tidy["evaluator"]) == {"gpt-4.1-mini"}
    assert (tidy.loc[tidy.anchor == 7, "beauty"] == 7).all()
    assert voids.to_dict("records")[0] | {"detail": ""} == {
        "anchor": 7,
        "evaluator": "bob",
        "target": "dot",
        "kind": "omission",
        "detail": "",
    }


def test_what_is_no_folder_of_evaluations(tmp_path):
    with pytest.raises(MetanymError, match="no files eval_"):
        read_folder(tmp_path, anchors={"probe_K_7": 7})
    (tmp_path / "eval_bob_x_dot.json").write_text("{}")
    with pytest.raises(MetanymError, match="not an API reply"):
        read_folder(tmp_path.parent, anchors={tmp_path.name: 7})


def test_the_released_table(mirror):
    spelling = {
        "gpt-41-mini": "gpt-4.1-mini",
        "gpt-41-nano": "gpt-4.1-nano",
        "gpt-41-2025-04-14": "gpt-4.1-2025-04-14",
    }
    everything = load_archive(None, spelling, strict=False, mirror=mirror, runs=[1])
    tidy = load_archive(None, spelling, mirror=mirror, runs=[1])
    assert len(everything) == 2412 and len(tidy) == 2408
    assert everything.drop_duplicates(["anchor", "evaluator", "target"]).shape[0] == 484
    assert not any("gpt-41" in name for name in tidy["evaluator"].unique())
    counts = oddities(everything).set_index("kind")["evaluations"]
    assert (
        counts["six archetypes"],
        counts["four archetypes"],
        counts["an archetype rated 0 throughout"],
        counts["an empty archetype"],
    ) == (25, 11, 2, 1)
