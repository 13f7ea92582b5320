"""Replies as judges really send them: mended where that invents nothing, else void with a reason."""

import json
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compendium.asking.errors import InvalidReply
from compendium.asking.items import items_from_reply
from compendium.asking.mending import mend
from compendium.asking.replies import (
    as_label,
    as_number,
    extract_json,
    is_placeholder,
    labels_from_reply,
    list_in_cell,
    object_with,
)
from compendium.asking.results import verdict
from compendium.asking.scores import score_from_reply

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "malformed_replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
PARSERS = {
    "labels": labels_from_reply,
    "score": score_from_reply,
    "items": items_from_reply,
    "json": extract_json,
}


def judged(case):
    arguments = dict(case["arguments"])
    row = {
        "text": case["reply"],
        "finish_reason": case["finish_reason"],
        "refusal": None,
        "reasoning": None,
        "reasoning_tokens": 0,
    }
    return verdict(row, partial(PARSERS[case["parser"]], **arguments))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind'].replace(' ', '_')}")
def test_malformed_reply(case):
    found, reason, kind = judged(case)
    if "void" in case["expect"]:
        assert found is None
        assert reason.split(":")[0].split(" (")[0] == case["expect"]["void"], reason
        finish = {"length": "truncated", "content_filter": "refusal"}
        assert kind == finish.get(case["finish_reason"], case["expect"]["void"])
    else:
        assert reason is None
        assert found.values == case["expect"]["values"]
        assert type(found.values) is type(case["expect"]["values"])
        assert list(found.repairs) == case["expect"]["repairs"]


def test_the_malformed_replies_are_of_every_kind():
    assert len(CASES) >= 100
    assert len({case["kind"] for case in CASES}) == len(CASES)
    outcomes = Counter(case["expect"].get("void", "mended") for case in CASES)
    assert set(outcomes) == {
        "mended",
        "truncated",
        "omission",
        "missing",
        "malformed",
        "no JSON",
        "conflict",
        "repeated",
        "repeated key",
        "placeholder",
        "not a label",
        "not a number",
        "out of range",
        "count",
        "thinking",
    }


FEATURES = ("symmetry", "habitat", "body_plan")


def said(labels):
    return {
        name: {"feature_described": f"the {name}", "is_departure": label, "reasoning": "So it says."}
        for name, label in labels.items()
    }


@settings(max_examples=60, deadline=None)
@given(
    labels=st.fixed_dictionaries({name: st.booleans() for name in FEATURES}),
    cut=st.integers(1, 400),
    data=st.data(),
)
def test_a_cut_reply_is_void_or_says_the_same(labels, cut, data):
    """Whatever is cut off, the parser never makes up a label."""
    whole = data.draw(
        st.sampled_from(
            [
                json.dumps(said(labels)),
                json.dumps(said(labels), indent=2),
                str(said(labels)),
                "Here it is:\n```json\n" + json.dumps({"result": said(labels)}) + "\n```\nDone.",
            ]
        )
    )
    part = whole[:cut]
    try:
        found = labels_from_reply(part, FEATURES).values
    except InvalidReply:
        return
    assert found == labels


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    """No text makes the parsers raise anything but InvalidReply."""
    for parser in (
        partial(labels_from_reply, features=FEATURES),
        partial(score_from_reply, lo=1, hi=10),
        extract_json,
        lambda t: labels_from_reply("{" + t, FEATURES),
        lambda t: extract_json('{"a": [' + t + "]}"),
        lambda t: score_from_reply('{"score": "' + t + '"}', 1, 10),
    ):
        try:
            parser(text)
        except InvalidReply as problem:
            assert problem.kind


def test_every_omission_of_one_token_is_refused_or_harmless():
    """Drop any one word or sign of a good reply: no label may come out other than it was."""
    labels = {"symmetry": True, "habitat": False, "body_plan": True}
    whole = json.dumps(said(labels))
    for place in range(len(whole)):
        try:
            found = labels_from_reply(whole[:place] + whole[place + 1 :], FEATURES).values
        except InvalidReply:
            continue
        assert found == labels


def test_details_keep_what_the_judge_wrote():
    labels = {"symmetry": True, "habitat": False, "body_plan": True}
    found = labels_from_reply(json.dumps(said(labels)), FEATURES)
    assert found.repairs == ()
    assert found.details == said(labels)
    assert list(found.values) == list(FEATURES)


@pytest.mark.parametrize(
    "span, repairs",
    [
        ('{"a": 1, "b": "x, }"}', ()),
        ('{"a": 1, "b": "x, }",}', ("trailing comma",)),
        ('{"a": 1, /* b is a text */ "b": "x, }"}', ("comment removed",)),
    ],
)
def test_strings_are_left_alone(span, repairs):
    assert mend(span) == ({"a": 1, "b": "x, }"}, repairs)


@pytest.mark.parametrize("span", ['{"a": }', '{"a": 1, "b"}', "{'a': 'x' 'y'}", '{"a": 12', '{"a": 01x}'])
def test_mending_never_invents(span):
    try:
        value, _ = mend(span)
    except InvalidReply as problem:
        assert problem.kind in ("malformed", "truncated")
    else:
        assert value in ({"a": ["x", "y"]}, {"a": "01x"})


@pytest.mark.parametrize(
    "value, expected", [(True, True), ("FALSE", False), (0, False), ("Yes.", True), (1.0, True)]
)
def test_label_spellings(value, expected):
    assert as_label(value) is expected


@pytest.mark.parametrize("value", [None, "", "maybe", 2, -1, [], "true or false", float("nan")])
def test_what_is_no_label(value):
    with pytest.raises(InvalidReply, match="not a label"):
        as_label(value)


@pytest.mark.parametrize(
    "value, expected",
    [
        (7, 7),
        ("7", 7),
        ("7/10", 7),
        ("7 out of 10", 7),
        ("**7**", 7),
        (7.0, 7),
        ("6.5", 6.5),
        ("6,5", 6.5),
        ("7 / 10.0", 7),
    ],
)
def test_number_spellings(value, expected):
    assert as_number(value, 1, 10) == expected


@pytest.mark.parametrize(
    "value, kind",
    [
        ("seven", "not a number"),
        (None, "not a number"),
        (True, "not a number"),
        ([7], "not a number"),
        (11, "out of range"),
        ("0", "out of range"),
        ("3/5", "out of range"),
        (float("nan"), "out of range"),
        ("7-8", "not a number"),
        ("70%", "not a number"),
    ],
)
def test_what_is_no_score(value, kind):
    with pytest.raises(InvalidReply, match=kind):
        as_number(value, 1, 10)


def test_whole_scores():
    assert as_number("7.0", 1, 10, whole=True) == 7
    with pytest.raises(InvalidReply, match="not whole"):
        as_number(7.5, 1, 10, whole=True)


def test_first_or_last_block():
    text = '{"a": 1} and then {"a": 2} [3]'
    assert extract_json(text).values == {"a": 2}
    assert extract_json(text, last=False).values == {"a": 1}
    assert extract_json("[1, 2]").values == [1, 2]


def test_object_with_keeps_the_rest_aside():
    found = object_with('{"b": 2, "a": 1, "c": 3}', ("a", "b"))
    assert (found.values, found.details, found.repairs) == ({"a": 1, "b": 2}, {"c": 3}, ("extra keys",))


def test_lists_in_cells():
    assert list_in_cell('["a", 1]') == list_in_cell("['a', 1]") == list_in_cell("('a', 1)") == ["a", 1]
    with pytest.raises(InvalidReply, match="not a list"):
        list_in_cell("a, 1")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("N/A", True),
        ("Missing archetype 5", True),
        ("", True),
        (None, True),
        ("...", True),
        ("Missives from the deep sea", False),
        ("Nadir", False),
    ],
)
def test_placeholders(text, expected):
    assert is_placeholder(text) is expected


def test_items_with_a_wrong_shape():
    with pytest.raises(InvalidReply, match="missing: item 2: name"):
        items_from_reply('[{"name": "a", "x": 1}, {"x": 2}]', 2, {"x": (1, 5)})
    with pytest.raises(InvalidReply, match="missing: a list"):
        items_from_reply('{"x": 1}', 2, {"x": (1, 5)})


@pytest.mark.parametrize(
    "unit",
    [
        "\n",
        " ,\n",
        ":",
        "<think>",
        "</think>",
        "<answer>",
        "[x ",
        "{x ",
        '{"a":1,}',
        "{'a':1}",
        '[ "a" ',
        "{# x\n",
        "/* c */",
        '```json\n{"a":1}\n```\n',
        '{"symmetry": ',
        "'",
        '"',
        "\\",
        "[NaN,",
    ],
)
@pytest.mark.parametrize("before", ["", '{"a": [', "score"])
def test_no_reply_takes_longer_than_its_length_deserves(unit, before):
    """Thirty times this length is the most that is read; a step that grows with its square takes minutes here."""
    text = before + unit * (30_000 // len(unit))
    began = time.process_time()
    for read in (partial(labels_from_reply, features=FEATURES), partial(score_from_reply, lo=1, hi=10)):
        with pytest.raises(InvalidReply):
            read(text)
    assert time.process_time() - began < 2


def test_a_reply_beyond_all_measure_is_void_at_once():
    whole = json.dumps(said(dict.fromkeys(FEATURES, True)))
    assert labels_from_reply(whole + " " * 900_000, FEATURES).values["habitat"] is True
    with pytest.raises(InvalidReply, match="too long: 1,000,... characters; at most 1,000,000 are read"):
        labels_from_reply("x" * 1_000_010 + whole, FEATURES)


def test_a_pile_of_pieces_is_no_answer():
    with pytest.raises(InvalidReply, match="malformed: more than 30 pieces that are nearly JSON"):
        labels_from_reply('{"a": 1,}' * 31, FEATURES)
