"""One stage against a server that answers as real ones do: faults, quirks, refusals, keys."""

import asyncio
import base64
import json
import logging
import math
import time
import traceback
import urllib.parse
from email.utils import formatdate

import pytest

from compendium.asking.budget import Budget
from compendium.asking.client import FAULTS_IN_A_ROW, WRONG_MODELS_IN_A_ROW, retry_after
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import EndpointError
from compendium.asking.ledger import Ledger
from compendium.asking.request import Request
from compendium.asking.stage import run_stage
from tests.compendium.asking.loopback import Loopback, completion, echo


def asked(number=0, model="m", **more):
    return Request(model, [{"role": "user", "content": f"question {number}"}], seed=number, **more)


def run(server, tmp_path, requests, *, key_env=None, endpoint=None, **options):
    settings = {"concurrency": 4, "backoff": 0.001, **(endpoint or {})}
    with Ledger(tmp_path / "l.sqlite") as ledger:
        result = run_stage(requests, Endpoint(server.url, key_env, **settings), ledger, **options)
        return list(result.replies), result.report


def answering(*script):
    """The first tries get what `script` says, later ones a reply."""
    return lambda body, tries: script[tries] if tries < len(script) else echo(body, tries)


FAULTS = {
    "rate limited": (429, {"retry-after": "0.01"}, {"error": {"message": "slow down"}}),
    "server error": (503, {}, b"<html>overloaded</html>"),
    "connection dropped": "drop",
    "truncated body": (200, {}, "cut"),
    "malformed body": (200, {}, b'{"id": "x", "choices": [{"mess'),
    "error in body": {"error": {"message": "upstream failed", "code": 502}},
    "wrong model": completion("from another", "other-model-7b"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_counted_and_tried_again(kind, tmp_path):
    with Loopback(answering(FAULTS[kind], FAULTS[kind])) as server:
        (reply,), report = run(server, tmp_path, [asked()])
    assert reply.valid and reply.text == echo(asked().content, 0)["choices"][0]["message"]["content"]
    assert report.faults == {("m", kind): 2}
    assert (reply.tries, reply.attempts, report.total("calls"), report.total("replies")) == (3, 1, 3, 1)
    assert [headers["x-stainless-retry-count"] for headers in server.headers] == ["0", "1", "2"]
    assert all(body == asked().content for body in server.log)


def test_a_timeout_is_a_fault(tmp_path):
    with Loopback(answering(9.0)) as server:
        (reply,), report = run(server, tmp_path, [asked()], endpoint={"timeout": 1.0})
    assert reply.valid and report.faults == {("m", "timeout"): 1}


def test_a_reply_that_always_takes_too_long_is_not_paid_for_without_end(tmp_path):
    with Loopback(lambda body, tries: 1.0) as server:
        (reply,), report = run(server, tmp_path, [asked()], endpoint={"timeout": 0.02})
    assert reply.void_reason == "unanswered: 6 timeouts of 0.02 s; a longer `timeout` may do"
    assert report.faults == {("m", "timeout"): 6} and len(server.log) <= 6


def test_a_byte_order_mark_is_no_fault(tmp_path):
    body = b"\xef\xbb\xbf" + json.dumps(completion("yes")).encode()
    with Loopback(lambda request, tries: (200, {}, body)) as server:
        (reply,), report = run(server, tmp_path, [asked()])
    assert reply.text == "yes" and not report.faults


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"finish_reason": "stop"}]}',
        b'{"choices": [7]}',
        b"\xff\xfe",
        b"",
    ],
)
def test_bodies_without_an_answer(body, tmp_path):
    with Loopback(answering((200, {}, body))) as server:
        (reply,), report = run(server, tmp_path, [asked()])
    assert reply.valid and report.faults == {("m", "malformed body"): 1}


def test_retry_after_is_waited_for(tmp_path):
    with Loopback(answering((429, {"retry-after": "0.3"}, {}))) as server:
        start = time.monotonic()
        run(server, tmp_path, [asked()])
    assert 0.3 <= time.monotonic() - start < 60  # the backoff of a loaded machine; not longest_wait, 120 s


def test_retry_after_in_all_its_forms():
    assert retry_after({"retry-after": "2"}) == 2
    assert retry_after({"retry-after-ms": "500", "retry-after": "9"}) == 0.5
    assert retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None
    assert retry_after({"retry-after": "inf"}) is None


def test_a_wait_longer_than_allowed_stops_the_stage(tmp_path):
    with (
        Loopback(answering((429, {"retry-after": "7200"}, {}))) as server,
        pytest.raises(EndpointError, match="asks to wait 7,200 s, longer than longest_wait"),
    ):
        run(server, tmp_path, [asked()])


def test_a_request_given_up_is_unanswered_and_asked_by_the_next_run(tmp_path):
    state = {"down": True}

    def answer(body, tries):
        return (500, {}, b"") if state["down"] and body["seed"] == 1 else echo(body, tries)

    with Loopback(answer) as server:
        replies, report = run(server, tmp_path, [asked(0), asked(1)], endpoint={"max_retries": 2})
        assert replies[0].valid and not replies[1].valid
        assert replies[1].void_reason.startswith(
            "unanswered: no reply in 3 tries (server error x3); the last: 500"
        )
        assert (report.total("unanswered"), report.total("void"), report.total("valid")) == (1, 0, 1)
        assert "1 got no reply at all and are asked again by the next run" in report.warning
        state["down"] = False
        replies, report = run(server, tmp_path, [asked(0), asked(1)])
    assert all(reply.valid for reply in replies) and report.warning is None
    assert (report.total("from_ledger"), report.total("replies")) == (1, 1)


def test_a_refused_request_is_unanswered_and_the_others_are_not(tmp_path):
    def answer(body, tries):
        return (
            (400, {}, {"error": {"message": "prompt too long"}}) if body["seed"] == 1 else echo(body, tries)
        )

    with Loopback(answer) as server:
        replies, report = run(server, tmp_path, [asked(i) for i in range(3)])
    assert [reply.valid for reply in replies] == [True, False, True]
    assert replies[1].void_reason == "unanswered: refused with status 400: prompt too long"
    assert report.total("calls") == 3


@pytest.mark.parametrize(
    "status, body, words",
    [
        (401, {"error": {"message": "bad key"}}, "it wants a key"),
        (403, {}, "it wants a key"),
        (402, {"error": {"message": "credits"}}, "no credit left"),
        (429, {"error": {"message": "x", "code": "insufficient_quota"}}, "no credit left"),
        (404, {"error": {"message": "no such model"}}, "for model 'm': no such model or path"),
        (
            400,
            {"error": {"message": "Unsupported value: 'temperature' does not support 0"}},
            "sampling parameters",
        ),
    ],
)
def test_what_stops_a_stage(status, body, words, tmp_path):
    with (
        Loopback(lambda request, tries: (status, {}, body)) as server,
        pytest.raises(EndpointError, match=words) as error,
    ):
        run(server, tmp_path, [asked(i, temperature=0.0) for i in range(50)])
    assert len(server.log) <= 4  # those under way; nobody asks on
    assert error.value.report.total("valid") == 0


def test_an_endpoint_that_is_not_there(tmp_path):
    with Loopback() as server:
        url = server.url
    with (
        Ledger(tmp_path / "l") as ledger,
        pytest.raises(EndpointError, match="does not serve: .*no connection"),
    ):
        run_stage([asked(i) for i in range(100)], Endpoint(url, None, backoff=0.001, patience=0.2), ledger)


def test_a_model_that_only_fails_does_not_stop_the_others(tmp_path):
    def answer(body, tries):
        return (500, {}, b"") if body["model"] == "sick" else echo(body, tries)

    requests = [asked(i, model) for i in range(60) for model in ("sick", "well")]
    with Loopback(answer) as server:
        replies, report = run(
            server, tmp_path, requests, endpoint={"patience": 0.1, "max_retries": 500, "concurrency": 30}
        )
    assert all(reply.valid == (reply.model_requested == "well") for reply in replies)
    assert FAULTS_IN_A_ROW <= report.faults["sick", "server error"] < 60 * 500
    assert report.frame().loc["sick", "unanswered"] == 60
    assert "most with sick: 60 of 60" in report.warning


def test_a_model_that_is_always_another_stops_the_stage(tmp_path):
    with Loopback(lambda body, tries: completion("x", "m-mini")) as server:
        with pytest.raises(EndpointError, match="asked for 'm'.*answered as m-mini.*aliases"):
            run(server, tmp_path, [asked(i) for i in range(50)])
        assert len(server.log) < WRONG_MODELS_IN_A_ROW + 4
        replies, _ = run(
            server, tmp_path, [asked(i) for i in range(50)], endpoint={"aliases": {"m": ["m-mini"]}}
        )
    assert {reply.model_resolved for reply in replies} == {"m-mini"}


# quirks of providers ---------------------------------------------------------------------------------------


def test_max_tokens_under_its_other_name(tmp_path):
    def answer(body, tries):
        if "max_tokens" in body and body["model"] == "new":
            return (
                400,
                {},
                {
                    "error": {
                        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
                        "Use 'max_completion_tokens' instead.",
                        "param": "max_tokens",
                    }
                },
            )
        if "max_completion_tokens" in body and body["model"] == "old":
            return 400, {}, {"error": {"message": "max_completion_tokens: extra fields not permitted"}}
        return echo(body, tries)

    requests = [asked(i, model, max_tokens=9) for i in range(20) for model in ("new", "old")]
    with Loopback(answer) as server:
        replies, report = run(server, tmp_path, requests)
    assert all(reply.valid for reply in replies)
    assert report.adapted == (("new", "max_tokens is sent as max_completion_tokens"),)
    assert not report.faults
    assert 41 <= len(server.log) <= 44  # learnt by the calls that were under way together, then remembered
    assert all(body.get("max_completion_tokens", body.get("max_tokens")) == 9 for body in server.log)


def test_a_model_that_takes_no_seed(tmp_path):
    def answer(body, tries):
        if "seed" in body:
            return 400, {}, {"error": {"message": "Unrecognized request argument: seed"}}
        return echo(body, tries)

    with Loopback(answer) as server:
        replies, report = run(server, tmp_path, [asked(i) for i in range(3)])
    assert all(reply.valid and reply.seed is None for reply in replies)
    assert report.adapted == (("m", "takes no seed: replies cannot be repeated"),)


def test_a_bound_that_is_too_large_is_no_quirk(tmp_path):
    message = "max_tokens is too large: 90000. This model supports at most 4096 completion tokens"
    with Loopback(lambda body, tries: (400, {}, {"error": {"message": message}})) as server:
        (reply,), _ = run(server, tmp_path, [asked(max_tokens=90000)])
    assert reply.void_reason == f"unanswered: refused with status 400: {message}"
    assert len(server.log) == 1


def usage(**counts):
    body = completion("four letters each", usage=None)
    return {**body, "usage": counts} if counts else body


@pytest.mark.parametrize(
    "body, prompt, full, reasoning, estimated",
    [
        (usage(prompt_tokens=7, completion_tokens=3), 7, 3, 0, False),
        (
            usage(prompt_tokens=7, completion_tokens=30, completion_tokens_details={"reasoning_tokens": 20}),
            7,
            30,
            20,
            False,
        ),
        (usage(input_tokens=7, output_tokens=3), 7, 3, 0, False),
        (usage(), 90, 5, 0, True),  # "question 0" is 10 bytes and 80 around it; the text 17, at four a token
        (usage(prompt_tokens=0, completion_tokens=0), 90, 5, 0, True),
        (usage(prompt_tokens=7, completion_tokens=None), 7, 5, 0, True),
        (usage(prompt_tokens="many", completion_tokens=-1), 90, 5, 0, True),
    ],
)
def test_usage_by_meaning(body, prompt, full, reasoning, estimated, tmp_path):
    with Loopback(lambda request, tries: body) as server:
        (reply,), report = run(
            server, tmp_path, [asked()], budget=Budget(prices={"m": {"input": 1, "output": 2}})
        )
    assert (reply.prompt_tokens, reply.completion_tokens, reply.reasoning_tokens) == (prompt, full, reasoning)
    assert reply.usage_estimated is estimated
    assert reply.cost == pytest.approx((prompt + 2 * full) / 1e6) == report.total("cost")


def test_a_cost_that_the_endpoint_reports_counts(tmp_path):
    with Loopback(lambda body, tries: usage(prompt_tokens=7, completion_tokens=3, cost=0.125)) as server:
        (reply,), _ = run(server, tmp_path, [asked()], budget=Budget(prices={"m": {"input": 1, "output": 2}}))
    assert reply.cost == 0.125


def test_without_a_price_the_cost_is_unknown(tmp_path):
    with Loopback() as server:
        (reply,), report = run(server, tmp_path, [asked()])
    assert math.isnan(reply.cost) and math.isnan(report.total("cost"))


@pytest.mark.parametrize(
    "body, reason",
    [
        (completion(None, refusal="I cannot judge this."), "refusal: I cannot judge this."),
        (completion("", finish="content_filter"), "refusal: stopped by a content filter"),
        (completion("I can't", finish="content_filter"), "refusal: stopped by a content filter"),
        (
            completion("", finish="length", usage=(9, 50)),
            "empty: all tokens were spent (finish reason length)",
        ),
        (
            completion("", finish="MAX_TOKENS", reasoning_content="Hm"),
            "empty: all tokens were spent on reasoning (finish reason length)",
        ),
        (completion("  \n "), "empty: no text"),
        (completion(None), "empty: no text"),
    ],
)
def test_replies_without_a_text_are_asked_again_and_then_void(body, reason, tmp_path):
    with Loopback(lambda request, tries: body) as server:
        (reply,), report = run(server, tmp_path, [asked()], retries_on_invalid=2)
    assert (reply.text, reply.parsed, reply.void_reason, reply.attempts) == ("", None, reason, 3)
    assert (report.total("void"), report.total("re_asked"), report.total("replies")) == (1, 2, 3)
    assert len({body["seed"] for body in server.log}) == 3  # each re-ask has its own


def test_a_text_cut_by_its_length_is_a_text(tmp_path):
    with Loopback(lambda body, tries: completion("Once upon a", finish="length")) as server:
        (reply,), _ = run(server, tmp_path, [asked()])
    assert (reply.text, reply.finish_reason, reply.valid) == ("Once upon a", "length", True)


def test_content_in_parts_and_half_an_emoji(tmp_path):
    parts = [
        {"type": "text", "text": "first, "},
        {"type": "image"},
        {"type": "text", "text": "second \ud83d"},
    ]
    with Loopback(lambda body, tries: completion(parts, reasoning="because")) as server:
        (reply,), _ = run(server, tmp_path, [asked()])
    assert (reply.text, reply.reasoning) == ("first, second \ufffd", "because")


def test_a_reply_without_a_models_name_is_accepted(tmp_path):
    with Loopback(lambda body, tries: completion("x", None)) as server:
        (reply,), _ = run(server, tmp_path, [asked()])
    assert reply.valid and reply.model_resolved is None


def test_extra_fields_are_sent(tmp_path):
    with Loopback() as server:
        run(server, tmp_path, [asked(extra={"reasoning": {"effort": "low"}}, top_p=0.5)])
    assert server.log[0]["reasoning"] == {"effort": "low"} and server.log[0]["top_p"] == 0.5


# the key ---------------------------------------------------------------------------------------------------

CANARY = "sk-canary-7f3a/91+QQ"


@pytest.fixture
def canary(monkeypatch):
    monkeypatch.setenv("STUDY_KEY", CANARY)
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_ADMIN_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENROUTER_API_KEY",
    ):
        monkeypatch.setenv(name, f"stranger-{name}")
    return CANARY


def echoing_key(status):
    def answer(body, tries):
        if status == 200:
            return completion(
                f"my key is {CANARY}, json {json.dumps(CANARY)}", refusal=None, reasoning=CANARY
            )
        return status, {"x-key": CANARY}, {"error": {"message": f"Incorrect API key provided: {CANARY}."}}

    return answer


def seen_anywhere(tmp_path, *texts):
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    return any(CANARY in text for text in texts) or any(CANARY.encode() in content for content in files)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_the_key_is_in_no_error_log_or_file(status, canary, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with Loopback(echoing_key(status)) as server:
        try:
            replies, report = run(
                server, tmp_path, [asked()], key_env="STUDY_KEY", endpoint={"max_retries": 1}
            )
            said = [
                repr(replies),
                str(report),
                report._repr_html_(),
                str(report.reasons),
                replies[0].void_reason,
            ]
        except EndpointError as error:
            chain, said = error, []
            while chain is not None:  # what a debugger or a verbose traceback could reach
                said += [str(chain), repr(chain), *traceback.format_exception(chain, chain=True)]
                said += [
                    repr(value)
                    for frame, _ in traceback.walk_tb(chain.__traceback__)
                    for value in frame.f_locals.values()
                    if frame.f_code.co_filename != __file__
                ]
                chain = chain.__context__ or chain.__cause__
    out = capfd.readouterr()
    assert server.headers[0]["authorization"] == f"bearer {CANARY}".lower()
    assert not seen_anywhere(tmp_path, *said, caplog.text, out.out, out.err)
    assert "[key hidden]" in " ".join(said) or status in (429, 500)


def test_the_key_is_hidden_in_what_models_say(canary, tmp_path):
    with Loopback(echoing_key(200)) as server:
        (reply,), _ = run(server, tmp_path, [asked()], key_env="STUDY_KEY")
    assert reply.text.startswith("my key is [key hidden], json") and reply.reasoning == "[key hidden]"
    assert not seen_anywhere(tmp_path, repr(reply))


def test_the_key_is_hidden_however_it_is_written(canary):
    """As an address or JSON quotes it, and in base64, alone or anywhere in a longer text."""
    key = Endpoint("http://127.0.0.1:1/v1", key_env="STUDY_KEY").key()
    quoted = urllib.parse.quote(CANARY, safe="")
    written = [
        quoted,
        quoted.replace("%2F", "%2f"),
        urllib.parse.quote(CANARY),
        urllib.parse.quote(quoted),
        json.dumps(CANARY)[1:-1],
    ]
    written += [
        CANARY.replace("/", r"\/"),
        json.dumps(CANARY.replace("/", r"\/"))[1:-1],
        CANARY.replace("+", r"\u002B"),
    ]
    for text in written:
        assert key.hide(f"a {text} b") == "a [key hidden] b", text
    for before in ("", "x", "xy", "Bearer ", "user:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(f"{before}{CANARY}{before}".encode()).decode()
            hidden = key.hide(text)
            assert "[key hidden]" in hidden and len(hidden) < len(text) - len(CANARY) + 14, (before, hidden)
    assert key.hide("sk-canary is no key") == "sk-canary is no key" and key.hide(None) is None


def test_nothing_else_of_the_environment_is_sent(canary, tmp_path):
    with Loopback() as server:
        run(server, tmp_path, [asked()], key_env="STUDY_KEY")
        run(server, tmp_path, [asked(1)], key_env=None)
    assert server.headers[1]["authorization"] == "bearer none"
    assert not any("stranger" in value for headers in server.headers for value in headers.values())


def test_no_key_no_call(monkeypatch, tmp_path):
    monkeypatch.delenv("STUDY_KEY", raising=False)
    with Loopback() as server:
        with pytest.raises(EndpointError, match="environment variable STUDY_KEY is not set"):
            run(server, tmp_path, [asked()], key_env="STUDY_KEY")
        assert server.log == []
        run(server, tmp_path, [asked()])
        replies, _ = run(server, tmp_path, [asked()], key_env="STUDY_KEY")  # all in the ledger: no key needed
    assert replies[0].valid and len(server.log) == 1


@pytest.mark.parametrize("name", ["ALL_PROXY", "https_proxy"])
def test_a_proxy_that_is_not_spoken_here_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setenv("STUDY_KEY", CANARY)
    monkeypatch.setenv(name, "socks5h://user:secret@localhost:9")
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with Ledger(tmp_path / "l.sqlite") as ledger:
        with pytest.raises(
            EndpointError, match=f"variable {name} names a proxy of the kind socks5h://"
        ) as told:
            run_stage([asked()], Endpoint("https://example.org/v1", "STUDY_KEY"), ledger)
        assert "secret" not in str(told.value) and "\n" not in str(told.value)
    with Loopback() as server, Ledger(tmp_path / "own.sqlite") as ledger:  # this machine needs none
        assert all(r.valid for r in run_stage([asked()], Endpoint(server.url, None), ledger).replies)


def test_an_endpoint_shows_no_key(canary):
    endpoint = Endpoint("https://example.org/v1", "STUDY_KEY")
    assert CANARY not in repr(endpoint) + repr(endpoint.key()) + str(endpoint.key()) + str(vars(endpoint))
    assert endpoint.key().reveal() == CANARY and not endpoint.loopback
    with pytest.raises(TypeError, match="never stored"):
        __import__("pickle").dumps(endpoint.key())


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"base_url": "openrouter.ai"}, "base_url should be like"),
        ({"base_url": "https://u:p@host/v1"}, "no user name"),
        ({"base_url": "https://host/v1?key=1"}, "no user name"),
        ({"concurrency": 0}, "concurrency should be"),
        ({"max_retries": -1}, "max_retries"),
        ({"timeout": 0}, "timeout should be"),
        ({"timeout": None}, "timeout"),
    ],
)
def test_one_clear_error_for_a_wrong_endpoint(fields, words):
    with pytest.raises(EndpointError, match=words):
        Endpoint(**{"base_url": "https://host/v1", **fields})


def test_a_proxy_in_the_environment_does_not_stand_between_this_machine_and_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Loopback() as server:
        (reply,), _ = run(server, tmp_path, [asked()])
    assert reply.valid


def test_inside_a_running_event_loop(tmp_path):
    """As in Jupyter, where a loop already runs in the main thread."""

    async def cell():
        return run(server, tmp_path, [asked(i) for i in range(5)])

    with Loopback() as server:
        replies, report = asyncio.run(cell())
    assert len(replies) == report.total("valid") == 5


@pytest.mark.parametrize(
    "detail, words",
    [
        ("No such thing: logit_bias", "No such thing: logit_bias"),
        (
            [
                {"loc": ["body", "messages", 0], "msg": "field required", "type": "value_error"},
                {"msg": "and so on"},
            ],
            "body.messages.0: field required; and so on",
        ),
        ({"reason": "odd"}, "reason"),
        ([None, 7, ["x"]], "None; 7"),
    ],
)
def test_errors_of_fastapis_shape_are_read(detail, words, tmp_path):
    with Loopback(lambda body, tries: (422, {}, {"detail": detail})) as server:
        (reply,), _ = run(server, tmp_path, [asked()])
    assert words in reply.void_reason
