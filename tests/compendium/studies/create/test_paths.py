"""Reading answers and checking paths: replies as they come, and every way in which a path can be wrong."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compendium.studies.create.paths import (
    PathError,
    Query,
    fault,
    normalise,
    parse_answer,
    path_key,
    path_text,
    read_triple,
)

QUERY = Query(0, "Ada", "occupation", "poet")
GOOD = (("Ada", "friend of", "Bo"), ("Bo", "occupation", "poet"))
JSON = '{"1": [["Ada", "friend of", "Bo"], ["Bo", "occupation", "poet"]]}'


def paths(reply):
    return parse_answer(reply).paths


@pytest.mark.parametrize(
    "reply",
    [
        f"<answer>{JSON}</answer>",
        f"<answer>\n```json\n{JSON}\n```\n</answer>",
        f"<think>\n\n</think>\n\n<answer>{JSON}</answer>",
        f"<think>first <answer>{{}}</answer></think><answer>{JSON}</answer>",
        f"<answer>{{}}</answer> No, better: <answer>{JSON}</answer>",
        '<answer>{"1": [["Ada","friend of","Bo"],{"head":"Bo","relationship":"occupation","tail":"poet"}]}</answer>',
        '<answer>{"1": "[[\\"Ada\\", \\"friend of\\", \\"Bo\\"], [\\"Bo\\", \\"occupation\\", \\"poet\\"]]"}</answer>',
        "<answer>{'1': [('Ada', 'friend of', 'Bo'), ('Bo', 'occupation', 'poet')]}</answer>",
        '<answer>{"paths": [[["Ada", "friend of", "Bo"], "Bo | occupation | poet"]]}</answer>',
    ],
)
def test_clean_in_many_dresses(reply):
    found = parse_answer(reply)
    assert found.paths == [GOOD]
    assert found.problems == []


@pytest.mark.parametrize(
    "reply, kept, words",
    [
        ("", [], "empty"),
        ("   \n", [], "empty"),
        ("<think>and on and on", [], "never closed"),
        ("I would rather not say.", [], "no path could be read"),
        (JSON, [GOOD], "no <answer> tag"),
        (f"Sure!\n```\n{JSON}\n```", [GOOD], "no <answer> tag"),
        (f"<answer>{JSON}", [GOOD], "never closed"),
        (f"<answer>{JSON} Hope it helps!</answer>", [GOOD], "text follows"),
        (
            f'<answer>{JSON[:-1]}, "2": [["Ada", "sister of", "Cy"], ["Cy", "occ',
            [GOOD],
            "complete paths kept: 1",
        ),
        (f"<answer>{JSON[:-1]}, /* four more omitted for brevity */ }}</answer>", [GOOD], "not whole JSON"),
        ('<answer>[["Ada","friend of","Bo"],["Bo","occupation","poet"]]</answer>', [GOOD], "one bare path"),
        (f'<answer>{JSON[:-1]}, "2": []}}</answer>', [GOOD], "path 2 is empty"),
        (f'<answer>{JSON[:-1]}, "2": "none"}}</answer>', [GOOD], "no list of triples"),
        ('<answer>"none"</answer>', [], "no path"),
    ],
)
def test_what_is_wrong_is_said(reply, kept, words):
    found = parse_answer(reply)
    assert found.paths == kept
    assert any(words in problem for problem in found.problems), found.problems


def test_an_empty_object_is_a_clean_answer_without_paths():
    assert parse_answer("<answer>{}</answer>") == parse_answer("<answer>\n{}\n</answer>")
    assert parse_answer("<answer>{}</answer>").problems == []


def test_nothing_is_filled_in_where_an_answer_is_cut_off():
    reply = f"<answer>{JSON}</answer>"
    for cut in range(len(reply)):
        assert paths(reply[:cut]) in ([], [GOOD])


def test_repeats_are_dropped_whatever_their_case():
    reply = (
        f'<answer>{JSON[:-1]}, "2": [["ADA", "Friend  of", "bo"], ["Bo", "occupation", "Poet"]]}}</answer>'
    )
    assert parse_answer(reply).paths == [GOOD]
    assert "path 2 repeats path 1" in parse_answer(reply).problems[0]


def test_a_number_given_twice_loses_nothing():
    reply = f'<answer>{JSON[:-1]}, "1": [["Ada", "occupation", "poet"]]}}</answer>'
    assert len(paths(reply)) == 2


def test_probabilities_of_verbalised_sampling():
    reply = (
        '<answer>{"1": {"path": [["Ada","friend of","Bo"],["Bo","occupation","poet"]], "probability": "12%"}, '
        '"2": {"path": [["Ada","occupation","poet"]], "probability": 0.5}, "3": [["Ada","x","Cy"]]}</answer>'
    )
    odds = parse_answer(reply).probabilities
    assert odds[:2] == [0.12, 0.5] and math.isnan(odds[2])


def test_path_text_worked_example():
    path = (("A", "born in", "B"), ("B", "Home of", "C"), ("C", "occupation", "poet"))
    assert path_text(path) == "[born in] b | b [home of] c"
    assert path_text(path[:1]) == "[born in] b"
    with pytest.raises(PathError, match="without triples"):
        path_text(())


@pytest.mark.parametrize(
    "path, words",
    [
        ((), "no triples"),
        ((("Ada", "friend of"), ("Bo", "occupation", "poet")), "triple 0 has 2 elements"),
        ((("Ada", "friend of", "Bo", "x"),), "4 elements"),
        ((("Ada", "", "Bo"), ("Bo", "occupation", "poet")), "empty element"),
        ((("Eve", "friend of", "Bo"), ("Bo", "occupation", "poet")), "starts at 'eve'"),
        ((("Ada", "friend of", "Bo"), ("Cy", "occupation", "poet")), "breaks between triples 0 and 1"),
        ((("Ada", "friend of", "Bo"), ("Bo", "occupation", "cook")), "ends in"),
        ((("Ada", "friend of", "Bo"), ("Bo", "job", "poet")), "ends in"),
        ((("Ada", "friend of", "Bo"),), "ends in"),
    ],
)
def test_faults(path, words):
    assert words in fault(path, QUERY)


def test_valid_paths_have_no_fault():
    assert fault(GOOD, QUERY) == ""
    assert fault((("ADA", "occupation", "Poet"),), QUERY) == ""
    assert fault((("“Ada”", "friend of", "Bo "), (" bo", "Occupation", "poet")), QUERY) == ""


def test_the_shared_rule_lets_a_meeting_point_pass():
    meeting = (("Ada", "award", "Medal"), ("Bo", "award", "Medal"), ("Bo", "occupation", "cook"))
    assert fault(meeting, QUERY) != ""
    assert fault(meeting, QUERY, rule="shared") == ""
    assert "share no entity" in fault((("Ada", "a", "Bo"), ("Cy", "b", "Di")), QUERY, rule="shared")
    with pytest.raises(PathError, match="chain, shared"):
        fault(meeting, QUERY, rule="strict")


def test_triples_of_other_forms():
    assert read_triple("(Ada, friend of, Bo)") == ("Ada", "friend of", "Bo")
    assert read_triple({"subject": "Ada", "predicate": "friend of", "object": "Bo"}) == (
        "Ada",
        "friend of",
        "Bo",
    )
    assert read_triple(["Ada", None, 7]) == ("Ada", "", "7")
    assert read_triple("Washington, D.C., and so on, x") == ("Washington, D.C., and so on, x",)


def test_names_compare_by_content():
    assert normalise("  “Zoë’s   Café” ") == "zoë's café"
    assert path_key([["Á", "b", "C"]]) == path_key([["A\u0301", "B", "c "]])


@given(st.text(max_size=80))
def test_any_text_gives_an_answer(text):
    found = parse_answer(text)
    assert len(found.paths) == len(found.probabilities)


def test_a_reply_must_be_text():
    with pytest.raises(PathError, match="NoneType"):
        parse_answer(None)
