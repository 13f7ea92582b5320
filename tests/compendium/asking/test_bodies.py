"""Whatever a server sends: an answer or a fault of that try, fast; a stage never ends of it."""

import json
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compendium.asking.answers import Answer, Fault, read_body
from compendium.asking.budget import Budget, prompt_token_bound
from compendium.asking.client import retry_after
from compendium.asking.endpoint import Endpoint
from compendium.asking.ledger import Ledger
from compendium.asking.request import Request
from compendium.asking.stage import run_stage
from tests.compendium.asking.bodies import HUGE, _with, bodies
from tests.compendium.asking.loopback import Loopback

BODIES = bodies()
ASKED = Request("m", [{"role": "user", "content": "How is it?"}], max_tokens=50)
MOST = (prompt_token_bound(ASKED.messages), 50)


def read(text):
    """The answer or the fault of one body, in less than half a second."""
    start = time.thread_time()
    try:
        return read_body(text, ASKED)
    except Fault as fault:
        return fault
    finally:
        assert time.thread_time() - start < 0.5


def test_the_corpus_is_large_and_of_distinct_bodies():
    assert len({text for _, text in BODIES}) >= 200


@pytest.mark.parametrize("text", [text for _, text in BODIES], ids=[name for name, _ in BODIES])
def test_a_body_is_an_answer_or_a_fault(text):
    found = read(text)
    if isinstance(found, Fault):
        assert found.kind in ("malformed body", "error in body")
        assert found.charged
        assert found.detail.isprintable()
    else:
        found.text.encode()  # can be stored and sent on
        assert 0 < found.prompt_tokens <= 10**7
        assert 0 <= found.completion_tokens <= 10**7


@pytest.mark.parametrize("raw", ["1e300", str(2**63), HUGE, "-3", '"many"', "null"])
@pytest.mark.parametrize("place, name", [(0, "prompt_tokens"), (1, "completion_tokens")])
def test_a_count_that_cannot_be_is_the_most_that_was_reserved(raw, place, name):
    answer = read(_with(("usage", name), raw))
    counted = (answer.prompt_tokens, answer.completion_tokens)
    assert counted[place] == MOST[place]
    assert counted[1 - place] == (12, 7)[1 - place]
    assert answer.usage_estimated


@pytest.mark.parametrize(
    "path, raw",
    [
        (("usage", "cost"), HUGE),
        (("id",), '"\\ud83d"'),
        (("model",), '"\\ud83d"'),
        (("choices", 0, "finish_reason"), '"\\ud83d"'),
        (("choices", 0, "message", "content"), '[{"text": 5}]'),
        (("choices", 0, "message", "content"), '[{"text": {}}]'),
    ],
)
def test_what_cannot_be_stored_is_a_malformed_body(path, raw):
    found = read(_with(path, raw))
    assert (found.kind, found.charged) == ("malformed body", True)


def test_a_date_beyond_the_calendar_asks_for_no_wait():
    assert retry_after({"retry-after": "Wed, 21 Oct 9999999999 07:28:00 GMT"}) is None
    assert retry_after({"retry-after": HUGE + "9" * 400}) is None


def test_a_stage_goes_on_and_so_does_every_later_run(tmp_path):
    """Every body answers a request of its own, then the usual one does: all are answered, in this run and the next."""
    requests = [
        Request("m", [{"role": "user", "content": str(place)}], max_tokens=50) for place in range(len(BODIES))
    ]
    usual = json.dumps({"model": "m", "choices": [{"message": {"content": "fine"}}]}).encode()

    def answer(body, tries):
        text = BODIES[int(body["messages"][-1]["content"])][1] if not tries else None
        return 200, {}, usual if text is None else text.encode("utf-8", "surrogatepass")

    with Loopback(answer) as server:
        endpoint = Endpoint(server.url, key_env=None, max_retries=3, patience=60.0)
        budget = Budget(dollars=100.0, prices={"m": {"input": 1.0, "output": 1.0}})
        reports = []
        for _ in range(2):
            with Ledger(tmp_path / "ledger.sqlite") as ledger:
                result = run_stage(
                    requests, endpoint, ledger, budget=budget, progress=False, retries_on_invalid=1
                )
                reports.append(result.report)
                assert sum(reply.valid for reply in result.replies) == len(requests) - reports[0].total(
                    "void"
                )
        assert reports[0].total("unanswered") == 0
        assert reports[1].total("from_ledger") == len(requests)
        assert "of unknown usage, counted at the most" in str(reports[0])


_ODD = st.sampled_from(
    [HUGE, "1e300", '"\\ud83d"', "null", "[]", "{}", "-1", '"x"', "true", "[[[[", '{"text": 5}']
)
_PATHS = st.sampled_from(
    [("id",), ("model",), ("choices",), ("choices", 0), ("choices", 0, "message"), ("usage",), ("object",)]
    + [("choices", 0, "message", "content"), ("choices", 0, "finish_reason"), ("usage", "cost")]
    + [("usage", "prompt_tokens"), ("usage", "completion_tokens"), ("error",)]
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=_PATHS, raw=_ODD, text=st.sampled_from(BODIES), cut=st.integers(0, 400), noise=st.text(max_size=9)
)
@example(path=("id",), raw="[" * 50_000, text=BODIES[0], cut=0, noise="")
def test_fuzzed_bodies(path, raw, text, cut, noise):
    for body in (_with(path, raw), text[1][:cut] + noise + text[1][cut:], noise + text[1]):
        assert isinstance(read(body), (Answer, Fault))
