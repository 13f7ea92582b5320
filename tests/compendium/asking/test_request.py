"""A request's name follows from what is sent and the sample's index, and from nothing else."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compendium.asking.errors import RequestError
from compendium.asking.names import same_model
from compendium.asking.request import Request, canonical_json, known
from compendium.frame.params import study_params
from compendium.studies.alienbench import ask as alienbench_requests
from compendium.studies.alienbench.data import KEYS
from compendium.studies.create import ask as create_requests
from compendium.studies.create.paths import Query
from compendium.studies.worldmodels import ask as worldmodels

MESSAGES = [{"role": "user", "content": "Describe it."}]


def test_the_key_of_a_known_request():
    """The recipe, spelled out: were it to change, every ledger would be asked everything again."""
    request = Request(
        "m", MESSAGES, temperature=1.0, max_tokens=800, seed=7, sample=2, extra={"b": 1, "a": [1.0, 2.5]}
    )
    content = (
        '{"a":[1,2.5],"b":1,"max_tokens":800,"messages":[{"content":"Describe it.","role":"user"}],'
        '"model":"m",'
        '"seed":7,"temperature":1}'
    )
    assert canonical_json(request.content) == content
    assert request.key == hashlib.sha256(f"{content}\n2".encode()).hexdigest()


def test_what_makes_a_key():
    base = Request("m", MESSAGES, temperature=0, seed=1)
    same = [
        Request("m", [{"content": "Describe it.", "role": "user"}], temperature=0.0, seed=np.int64(1)),
        Request("m", tuple(MESSAGES), temperature=np.float64(0), seed=1, tag={"condition": "baseline"}),
    ]
    other = [
        Request("n", MESSAGES, temperature=0, seed=1),
        Request("m", MESSAGES, temperature=0.1, seed=1),
        Request("m", MESSAGES, temperature=0, seed=2),
        Request("m", MESSAGES, temperature=0, seed=1, sample=1),
        Request("m", MESSAGES, temperature=0, seed=1, top_p=1.0),
        Request("m", MESSAGES, seed=1),
        Request("m", MESSAGES, temperature=0, seed=1, max_tokens=5),
        Request("m", MESSAGES, temperature=0, seed=1, extra={"logit_bias": {}}),
    ]
    assert {request.key for request in same} == {base.key} and set(same) == {base}
    assert len({request.key for request in [base, *other]}) == 1 + len(other)


def test_a_re_ask_has_a_seed_of_its_own():
    request = Request("m", MESSAGES, seed=7)
    bodies = [request.body(attempt) for attempt in range(3)]
    assert bodies[0] == request.content
    assert len({body["seed"] for body in bodies}) == 3
    assert bodies[1:] == [Request("m", MESSAGES, seed=7).body(attempt) for attempt in (1, 2)]
    assert "seed" not in Request("m", MESSAGES).body() and "seed" in Request("m", MESSAGES).body(1)
    assert all(0 <= body["seed"] < 2**31 for body in bodies)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"model": ""}, "model should be"),
        ({"messages": []}, "messages should be"),
        ({"messages": "hi"}, "messages should"),
        ({"messages": [{"content": "x"}]}, "message 0"),
        ({"max_tokens": 0}, "max_tokens should be a whole number"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"seed": True}, "seed"),
        ({"sample": -1}, "sample should be"),
        ({"sample": None}, "sample should be"),
        ({"temperature": "hot"}, "temperature should be"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"extra": {"seed": 3}}, "extra holds 'seed'"),
        ({"extra": {"stream": True}}, "never streamed"),
    ],
)
def test_one_clear_error_for_a_wrong_field(fields, words):
    with pytest.raises(RequestError, match=words):
        Request(**{"model": "m", "messages": MESSAGES, **fields})


@pytest.mark.parametrize("content", [float("nan"), {1, 2}, "\ud83d"])
def test_content_that_is_no_json(content):
    with pytest.raises(RequestError, match="cannot be written as JSON"):
        assert Request("m", MESSAGES, extra={"x": content}).key


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    )
)
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    def turned(item):
        if isinstance(item, dict):
            return {key: turned(item[key]) for key in reversed(item)}
        return [turned(each) for each in item] if isinstance(item, list) else item

    assert canonical_json(value) == canonical_json(turned(value))


@pytest.mark.parametrize(
    "asked, answered, expected",
    [
        ("openai/gpt-5.4", "gpt-5.4-2026-03-05", True),
        ("openai/gpt-5.4", "openai/gpt-5.4-20260305", True),
        ("anthropic/claude-opus-4.7", "anthropic/claude-4.7-opus-20260416", True),
        ("anthropic/claude-opus-4.6", "claude-opus-4-6", True),
        ("meta-llama/llama-4-maverick", "meta-llama/llama-4-maverick-17b-128e-instruct", True),
        ("qwen/qwen3-235b-a22b", "qwen/qwen3-235b-a22b-04-28", True),
        ("google/gemini-3.1-pro-preview", "gemini-3.1-pro", True),
        ("m", "M", True),
        ("google/gemini-2.0-flash", "gemini-2.0-flash-001", True),
        ("deepseek/deepseek-v3", "deepseek/deepseek-v3.2-20251201", False),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-5", "gpt-5.4", False),
        ("gpt-5", "gpt-5-12", False),
        ("gpt-4", "gpt-4o", False),
        ("gpt-4", "gpt-4-turbo", False),
        ("qwen3-8b", "qwen3-32b", False),
        ("mistral-large-2411", "mistral-large-2407", False),
        ("m", "gateway/fallback-1", False),
        ("claude-opus-4.6", "claude-sonnet-4.6", False),
        ("claude-opus-4.6", "", False),
    ],
)
def test_which_names_are_one_model(asked, answered, expected):
    assert same_model(asked, answered) is expected


def test_an_id_that_params_misspell_is_named_before_anything_is_asked():
    """Each study's request builders look ids up in the instruments; the mistake would make every reply void."""
    p = SimpleNamespace(**study_params("alienbench"))
    options = {"seed": 1, "temperature": 1.0, "max_tokens": 10}
    with pytest.raises(
        RequestError, match="condition or wording 'basline' is not known: did you mean 'baseline'"
    ):
        alienbench_requests.generation_requests(p.subjects, {"basline": 2}, **options)
    generations = pd.DataFrame([["g", "m", "baseline", 0]], columns=KEYS[:4])
    with pytest.raises(RequestError, match="feature 'simmetry' is not known: did you mean 'symmetry'"):
        alienbench_requests.judge_requests(
            generations, ["text"], p.judges, max_tokens=10, features=["simmetry"]
        )
    worlds = SimpleNamespace(**study_params("worldmodels"))
    worlds.games = ["G10"]
    with pytest.raises(RequestError, match="case 'G10' is not known: did you mean 'G1'"):
        worldmodels.generation_requests(worlds)
    with pytest.raises(RequestError, match="runs: subject 'gtp' is not known: did you mean 'gpt'"):
        create_requests.generation_requests(
            [Query(0, "a", "r", "b", "?")],
            {"gpt": {"model": "m"}},
            {"gtp": {"original": 1}},
            seed=1,
            n_resamples=1,
        )
    with pytest.raises(RequestError, match="thing 'x' is not known: there are one, two"):
        known({"one": 1, "two": 2}, "x", "thing")
