"""Faults on demand: at the stated rate, by content and try alone, and never for good."""

import http.client
import json

import pytest
from scipy import stats

from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import InvalidReply
from compendium.asking.ledger import Ledger
from compendium.asking.replies import labels_from_reply
from compendium.asking.request import Request
from compendium.asking.simulated.faults import KINDS, LOST, REPAIRABLE, REPLY_KINDS, Faults, spoil, useless
from compendium.asking.simulated.reply import Reply
from compendium.asking.simulated.server import serve
from compendium.asking.stage import run_stage
from compendium.studies.alienbench import simulated as simulator
from compendium.studies.alienbench.ask import judge_prompt, prompts

FALSE_ALARM = 1e-4


def judging(number, **more):
    text = simulator.respond(
        {
            "model": "x-ai/grok-4.7",
            "seed": number,
            "temperature": 1.0,
            "messages": [{"role": "user", "content": prompts()["baseline"]}],
        }
    ).text
    system, template = judge_prompt()
    return {
        "model": "openai/gpt-5.4",
        "temperature": 0.0,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": template.replace("{description}", text)},
        ],
        **more,
    }


def post(server, request):
    """(status, headers, body) of one try; the exception where the connection broke."""
    connection = http.client.HTTPConnection(
        server.base_url.removeprefix("http://").removesuffix("/v1"), timeout=60
    )
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(request))
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    except (http.client.HTTPException, ConnectionError) as error:
        return type(error), {}, b""
    finally:
        connection.close()


@pytest.fixture(scope="module")
def undisturbed():
    """The body that an undisturbed server answers `judging(2)` with."""
    with serve() as server:
        return post(server, judging(2))[2]


def test_faults_come_at_the_stated_rate_and_in_all_kinds():
    faults = Faults(rate=0.3, reply_rate=0.2)
    way = [faults.on_the_way(f"key{i}", 0) for i in range(4000)]
    spoilt = [faults.in_the_reply(f"key{i}", 0) for i in range(4000)]
    for drawn, rate, kinds in ((way, 0.3, KINDS), (spoilt, 0.2, REPLY_KINDS)):
        hits = [kind for kind in drawn if kind]
        assert stats.binomtest(len(hits), 4000, rate).pvalue > FALSE_ALARM
        assert stats.chisquare([hits.count(kind) for kind in kinds]).pvalue > FALSE_ALARM
    assert way == [Faults(rate=0.3).on_the_way(f"key{i}", 0) for i in range(4000)]
    assert way != [Faults(rate=0.3, seed=1).on_the_way(f"key{i}", 0) for i in range(4000)]


def test_a_request_is_let_through_after_patience_runs_out():
    for patience in (0, 1, 3):
        faults = Faults(rate=1.0, patience=patience)
        met = [faults.on_the_way("key", attempt) is not None for attempt in range(2 * patience + 2)]
        assert met == [True] * patience + [False] + [True] * patience + [False]


@pytest.mark.parametrize(
    "wrong",
    [{"rate": 1.2}, {"reply_rate": -0.1}, {"kinds": ("late",)}, {"patience": -1}, {"reply_kinds": ("rude",)}],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}|unknown fault"):
        Faults(**wrong)


@pytest.mark.parametrize("kind", REPLY_KINDS)
def test_a_spoilt_reply_is_repaired_to_the_same_labels_or_refused(kind):
    whole = simulator.respond(judging(1))
    spoilt = spoil(whole, kind)
    features = list(json.loads(whole.text))
    assert spoilt.text != whole.text
    if kind in REPAIRABLE:
        assert (
            labels_from_reply(spoilt.text, features).values == labels_from_reply(whole.text, features).values
        )
    else:
        assert kind in LOST
        with pytest.raises(InvalidReply):
            labels_from_reply(spoilt.text, features)


def test_only_json_replies_are_spoilt():
    prose = Reply("It rolls.")
    assert spoil(prose, "fence") is prose and spoil(Reply("[1, 2]"), "fence") == Reply("[1, 2]")
    assert "judge" in useless(prose).text


@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbed_request_gets_its_undisturbed_answer_in_the_end(kind, undisturbed):
    request = judging(2)
    with serve(faults=Faults(rate=1.0, kinds=(kind,), patience=2, retry_after=0.05, slow_s=0.01)) as server:
        tries = [post(server, request) for _ in range(3)]
    assert tries[2][0] == 200 and tries[2][2] == undisturbed
    for status, headers, body in tries[:2]:
        if kind in ("rate_limit", "server_error"):
            assert status == {"rate_limit": 429, "server_error": 500}[kind]
            assert json.loads(body)["error"]["message"]
            assert (headers.get("retry-after") == "0.05") == (kind == "rate_limit")
        elif kind == "slow":
            assert (status, body) == (200, undisturbed)
        elif kind == "wrong_model":
            answer, wanted = json.loads(body), json.loads(undisturbed)
            assert answer.pop("model") != wanted.pop("model") and answer == wanted
        elif kind == "malformed":
            assert status == 200 and undisturbed.startswith(body) and len(body) < len(undisturbed)
        else:
            assert (
                status
                is {"dropped": http.client.RemoteDisconnected, "truncated": http.client.IncompleteRead}[kind]
            )


def test_spoilt_replies_are_counted_by_question_whatever_the_seed():
    """A client asks again with another seed; the question is the same and must come through."""
    settings = Faults(reply_rate=1.0, reply_kinds=("half",), patience=2)
    with serve(faults=settings) as server:
        replies = [json.loads(post(server, judging(3, seed=seed))[2]) for seed in (None, 17, 18)]
    assert [reply["choices"][0]["finish_reason"] for reply in replies] == ["length", "length", "stop"]


def test_a_useless_judge_stays_useless_and_the_others_do_not():
    with serve(faults=Faults(useless=("openai/gpt-5.4",))) as server:
        request = judging(4)
        bodies = [
            json.loads(post(server, {**request, "model": model})[2])
            for model in ("openai/gpt-5.4", "openai/gpt-5.4", "anthropic/claude-opus-4.6")
        ]
    answers = [body["choices"][0]["message"]["content"] for body in bodies]
    assert answers[0] == answers[1] and "{" not in answers[0]
    assert answers[2] == simulator.respond({**request, "model": "anthropic/claude-opus-4.6"}).text


def test_a_stage_through_faults_of_every_sort_ends_with_the_same_labels(tmp_path):
    """30 % of tries disturbed on their way, 30 % of answers spoilt: the client's own retries see it through."""
    features = list(json.loads(simulator.respond(judging(0)).text))
    requests = [
        Request(model, asked["messages"], temperature=0.0, max_tokens=2000)
        for asked in map(judging, range(40))
        for model in ("openai/gpt-5.4", "anthropic/claude-opus-4.6")
    ]
    settings = Faults(rate=0.3, reply_rate=0.3, retry_after=0.01, slow_s=0.02)
    with serve(faults=settings) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        result = run_stage(
            requests,
            Endpoint(server.base_url, key_env=None),
            ledger,
            progress=False,
            parse=lambda text: labels_from_reply(text, features),
            retries_on_invalid=2,
        )
        replies = list(result.replies)
    assert sum(result.report.faults.values()) > 10
    for request, reply in zip(requests, replies, strict=True):
        assert reply.void_reason is None
        assert reply.parsed == labels_from_reply(simulator.respond(request.content).text, features).values
