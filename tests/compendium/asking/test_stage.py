"""A stage: the same replies however it is run, nothing asked twice, nothing above a ceiling."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from compendium.asking.account import spent_on
from compendium.asking.answers import FAULTS
from compendium.asking.budget import Budget
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError, LedgerError
from compendium.asking.ledger import Ledger
from compendium.asking.replies import Parsed
from compendium.asking.request import Request
from compendium.asking.stage import run_stage
from compendium.frame.paths import ROOT
from tests.compendium.asking.loopback import Loopback, completion, echo
from tests.compendium.asking.stage_requests import parse, requests

HERE = Path(__file__).parent


def run(server, path, asked, **options):
    settings = {"concurrency": 8, "backoff": 0.001, **options.pop("endpoint", {})}
    with Ledger(path) as ledger:
        result = run_stage(asked, Endpoint(server.url, None, **settings), ledger, **options)
        replies = list(result.replies)
        ledger.dump(path.with_suffix(".jsonl"))
        return replies, result.report


def seen(replies):
    """What a study could use of replies: all but times and tries."""
    return [
        (r.key, r.text, r.parsed, r.void_reason, r.attempts, r.seed, r.model_requested, r.raw)
        for r in replies
    ]


def test_replies_in_the_order_of_the_requests(tmp_path):
    asked = requests()
    with Loopback() as server:
        replies, report = run(server, tmp_path / "l", asked, parse=parse)
    assert [reply.request for reply in replies] == asked
    assert [reply.key for reply in replies] == [request.key for request in asked]
    for request, reply in zip(asked, replies, strict=True):
        texts = [echo(request.body(attempt), 0)["choices"][0]["message"]["content"] for attempt in range(3)]
        valid = [int(text.split()[-1][:4], 16) % 3 != 0 for text in texts]
        used = valid.index(True) if any(valid) else 2
        assert (reply.attempts, reply.raw, reply.valid) == (used + 1, texts[used], any(valid))
    assert replies[-1].text == replies[4].text
    sent = Counter(json.dumps(body, sort_keys=True) for body in server.log)
    distinct = {reply.key: reply.attempts for reply in replies}
    assert max(sent.values()) == 1 and sum(sent.values()) == sum(distinct.values())
    assert report.total("requests") == 150 == report.total("valid") + report.total("void")
    assert report.total("re_asked") == sum(reply.attempts - 1 for reply in replies) > 20
    assert report.total("replies") == report.total("calls") == len(server.log)
    assert report.void_frame().to_numpy().sum() == report.total("void") > 0


@pytest.mark.parametrize("concurrency", [1, 64])
def test_concurrency_and_order_change_nothing(concurrency, tmp_path):
    asked = requests()
    turned = asked[:]
    random.Random(concurrency).shuffle(turned)
    with Loopback() as server:
        first, _ = run(server, tmp_path / "a", asked, parse=parse)
        second, report = run(
            server, tmp_path / "b", turned, parse=parse, endpoint={"concurrency": concurrency}
        )
    assert sorted(seen(first), key=str) == sorted(seen(second), key=str)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_at_most_so_many_calls_at_once(tmp_path):
    with Loopback(lambda body, tries: 0.01) as server:
        run(server, tmp_path / "l", requests(40), endpoint={"concurrency": 5})
    assert server.most == 5


def test_a_finished_stage_asks_nothing(tmp_path):
    with Loopback() as server:
        first, before = run(server, tmp_path / "l", requests(), parse=parse)
        calls = len(server.log)
        second, after = run(server, tmp_path / "l", requests(), parse=parse)
    assert len(server.log) == calls and seen(first) == seen(second)
    assert after.total("from_ledger") == 150 and after.total("replies") == 0
    assert before.frame("outcomes").equals(after.frame("outcomes"))


def test_another_parser_asks_only_what_it_needs(tmp_path):
    def stricter(text):
        if not text.split()[-1][:4].isdigit():
            raise ValueError("holds a letter")
        return parse(text)

    with Loopback() as server:
        run(server, tmp_path / "l", requests(), parse=parse)
        calls = len(server.log)
        replies, report = run(server, tmp_path / "l", requests(), parse=stricter, retries_on_invalid=3)
        sent = Counter(json.dumps(body, sort_keys=True) for body in server.log)
        lax, _ = run(server, tmp_path / "l", requests(), parse=parse, retries_on_invalid=0)
    assert len(server.log) > calls and max(sent.values()) == 1
    assert all(reply.raw.split()[-1][:4].isdigit() for reply in replies if reply.valid)
    assert {reply.attempts for reply in lax} == {1}
    assert {reply.void_reason for reply in replies if not reply.valid} > {"invalid: holds a letter"}


def test_every_third_try_disturbed_gives_the_same(tmp_path):
    """30 % and more of all kinds of faults: same replies, and the counts tell what happened."""
    kinds = [
        (429, {"retry-after": "0.01"}, {}),
        (500, {}, b"oops"),
        "drop",
        (200, {}, "cut"),
        (200, {}, b'{"half'),
        {"error": {"message": "upstream"}},
        completion("x", "gateway/fallback-1"),
        60.0,
    ]

    def disturbed(body, tries):
        chance = random.Random(f"{json.dumps(body, sort_keys=True)} {tries}")
        return chance.choice(kinds) if chance.random() < 0.4 else echo(body, tries)

    with Loopback() as server:
        quiet, outcome = run(server, tmp_path / "a", requests(), parse=parse)
    with Loopback(disturbed) as server:
        loud, report = run(
            server, tmp_path / "b", requests(), parse=parse, endpoint={"timeout": 4.0, "concurrency": 32}
        )
    assert seen(quiet) == seen(loud)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert outcome.frame("outcomes").equals(report.frame("outcomes"))
    assert {kind for _, kind in report.faults} == set(FAULTS) - {"no connection"}
    assert report.total("calls") == report.total("replies") + report.total("faults")
    late = sum(count for (_, kind), count in report.faults.items() if kind == "timeout")
    assert report.total("calls") - late <= len(server.log) <= report.total("calls")
    with Ledger(tmp_path / "b") as ledger:
        kept = ledger.faults().groupby("kind")["count"].sum().to_dict()
    assert kept == report.fault_frame().sum().to_dict()


def test_a_judge_that_answers_nothing_useful(tmp_path):
    with Loopback(lambda body, tries: completion("I would rather not.", body["model"])) as server:
        replies, report = run(server, tmp_path / "l", requests(30), parse=lambda text: int(text))
    assert not any(reply.valid for reply in replies)
    assert {reply.void_reason for reply in replies} == {
        "invalid: invalid literal for int() with base 10: 'I would rather not.'"
    }
    assert report.total("void") == 30 and "30 of 30 requests (100.0 %) have no valid reply" in report.warning
    assert "Warning" in report._repr_html_()


# killed ----------------------------------------------------------------------------------------------------


def test_killed_at_any_moment_and_started_again(tmp_path):
    """kill -9 at random moments: the end is an undisturbed run's, and no stored reply is asked for again."""
    chance = random.Random(20)
    stored = Counter()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
    with Loopback(lambda body, tries: 0.02) as server:
        replies, _ = run(server, tmp_path / "undisturbed", requests(), parse=parse)
        server.log.clear()
        ledger = tmp_path / "killed.sqlite"
        for _ in range(3):
            child = subprocess.Popen(
                [sys.executable, str(HERE / "stage_child.py"), server.url, str(ledger)],
                env=environment,
                cwd=ROOT,
            )
            asked = len(server.log)
            while len(server.log) == asked and child.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.25))
            child.send_signal(signal.SIGKILL)
            child.wait()
            with Ledger(ledger, readonly=True) as known:
                stored.update((row["request"], row["attempt"]) for row in known.rows())
            mark = len(server.log)
        again, report = run(server, ledger, requests(), parse=parse)
    assert 0 < report.total("from_ledger") < 150
    assert seen(again) == seen(replies)
    assert (tmp_path / "killed.jsonl").read_bytes() == (tmp_path / "undisturbed.jsonl").read_bytes()
    by_body = {
        json.dumps(request.body(attempt), sort_keys=True): (request.digest, attempt)
        for request in requests()
        for attempt in range(3)
    }
    asked_last = [by_body[json.dumps(body, sort_keys=True)] for body in server.log[mark:]]
    assert asked_last and not set(asked_last) & set(stored)


def test_interrupted_by_hand(tmp_path):
    """Ctrl-C ends the stage at once; what had come is kept."""

    def answer(body, tries):
        if len(server.log) == 40:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.01

    # a shell that starts the tests in the background has SIGINT ignored; Ctrl-C means the default handler
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with Loopback(answer) as server:
        try:
            with pytest.raises(KeyboardInterrupt):
                run(server, tmp_path / "l", requests(), parse=parse)
        finally:
            signal.signal(signal.SIGINT, before)
        with Ledger(tmp_path / "l") as ledger:
            kept = len(ledger)
        assert 20 <= kept <= 40
        server.answer = echo
        replies, _ = run(server, tmp_path / "l", requests(), parse=parse)
    assert sum(reply.valid for reply in replies) > 100


# budgets ---------------------------------------------------------------------------------------------------

PRICES = {f"model-{i}": {"input": 1.0, "output": 2.0} for i in range(2)}


def bounded(count=60):
    return [
        Request(f"model-{i % 2}", [{"role": "user", "content": f"question {i:02d}"}], seed=i, max_tokens=50)
        for i in range(count)
    ]


def paid(body, tries=0):
    return completion(f"reply to {body['seed']}", body["model"], usage=(20, 50))


@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_ceiling_on_calls_is_kept_to_the_call(concurrency, tmp_path):
    with Loopback(paid) as server:
        with pytest.raises(
            BudgetError, match="ceiling of 37 calls in total is reached: 37 calls spent"
        ) as error:
            run(
                server,
                tmp_path / "l",
                bounded(),
                budget=Budget(calls=37),
                endpoint={"concurrency": concurrency},
            )
        assert len(server.log) == 37 == error.value.report.total("valid")
        with pytest.raises(BudgetError):
            run(
                server, tmp_path / "l", bounded(), budget=Budget(calls=37)
            )  # starting again is no fresh budget
        assert len(server.log) == 37
        replies, _ = run(server, tmp_path / "l", bounded(), budget=Budget(calls=60))
    assert len(server.log) == 60 and all(reply.valid for reply in replies)


@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_ceiling_in_dollars_is_kept_to_the_call(concurrency, tmp_path):
    """Every call that surely fits is made, and none that might not."""
    price, worst = (20 + 2 * 50) / 1e6, Budget(dollars=1, prices=PRICES).worst(bounded()[0])["dollars"]
    ceiling = 0.004
    with Loopback(paid) as server, pytest.raises(BudgetError) as error:
        run(
            server,
            tmp_path / "l",
            bounded(),
            budget=Budget(dollars=ceiling, prices=PRICES),
            endpoint={"concurrency": concurrency},
        )
    spent = len(server.log) * price
    assert spent <= ceiling < spent + worst + 1e-12
    assert error.value.spent == pytest.approx(spent) and error.value.needed == pytest.approx(worst)


def test_a_ceiling_of_one_model(tmp_path):
    with Loopback(paid) as server, pytest.raises(BudgetError, match="10 calls for model-1") as error:
        run(server, tmp_path / "l", bounded(), budget=Budget(per_model={"model-1": {"calls": 10}}))
    assert sum(body["model"] == "model-1" for body in server.log) == 10
    assert error.value.scope == "model-1"


def test_faults_that_may_be_charged_count_at_their_most(tmp_path):
    with Loopback(lambda body, tries: "drop" if tries == 0 else paid(body)) as server:
        with pytest.raises(BudgetError, match="calls for calls that ended without a reply") as error:
            run(server, tmp_path / "l", bounded(), budget=Budget(calls=30))
        assert len(server.log) == 30
        assert error.value.spent + error.value.at_risk == 30


@pytest.mark.parametrize(
    "status, at_risk", [(500, 1), (502, 1), (503, 1), (504, 1), (408, 1), (429, 0), (409, 0)]
)
def test_a_gateway_that_gives_up_may_be_charged_for(status, at_risk, tmp_path):
    with Loopback(lambda body, tries: (status, {}, b"") if tries == 0 else paid(body)) as server:
        budget = Budget(dollars=1, prices=PRICES, account=tmp_path / "account")
        run(server, tmp_path / "l", bounded(1), budget=budget)
    assert spent_on(budget.account)["risk_calls"] == at_risk
    worst = budget.worst(bounded(1)[0])
    assert spent_on(budget.account)["risk_dollars"] == pytest.approx(at_risk * worst["dollars"])


def test_ledgers_of_any_folder_draw_on_one_account(tmp_path):
    budget = Budget(calls=25, account=tmp_path / "accounts" / "live.sqlite")
    with Loopback(paid) as server:
        run(server, tmp_path / "one" / "l", bounded(20), budget=budget)
        with pytest.raises(BudgetError, match="20 calls spent|25 calls spent"):
            run(server, tmp_path / "two" / "l", bounded(21)[1:][::-1], budget=budget)
    assert len(server.log) == 25


def test_an_account_takes_a_ledger_over_once(tmp_path):
    """What was spent without it, what it lost, and what it knows already."""
    budget = Budget(calls=25, account=tmp_path / "account")
    with Loopback(paid) as server:
        run(server, tmp_path / "l", bounded(10), budget=Budget(prices=PRICES))
        assert spent_on(budget.account, [Ledger(tmp_path / "l")])["calls"] == 10
        for _ in range(2):
            run(server, tmp_path / "l", bounded(12), budget=budget)
            assert spent_on(budget.account, [Ledger(tmp_path / "l")])["calls"] == 12
        budget.account.unlink()
        with pytest.raises(BudgetError, match="25 calls spent"):
            run(server, tmp_path / "l", bounded(), budget=budget)
    assert len(server.log) == 25


def test_an_account_that_cannot_be_used_stops_before_anything_is_asked(tmp_path):
    (tmp_path / "account").write_text("no database at all, and long enough to be taken for one" * 30)
    with (
        Loopback(paid) as server,
        pytest.raises(LedgerError, match="account: the account of what is spent cannot be used"),
    ):
        run(server, tmp_path / "l", bounded(1), budget=Budget(calls=2, account=tmp_path / "account"))
    assert server.log == []


def test_not_started_above_the_ceiling_or_without_a_price(tmp_path):
    with Loopback(paid) as server:
        with pytest.raises(BudgetError, match="not started"):
            run(server, tmp_path / "l", bounded(), budget=Budget(calls=59), preflight=True)
        with pytest.raises(BudgetError, match="model-1: no price"):
            run(
                server,
                tmp_path / "l",
                bounded(),
                budget=Budget(dollars=9, prices={"model-0": PRICES["model-0"]}),
            )
        assert server.log == []
        run(
            server,
            tmp_path / "l",
            bounded(),
            budget=Budget(calls=60, dollars=1, prices=PRICES),
            preflight=True,
        )
        run(server, tmp_path / "l", bounded(), budget=Budget(calls=60), preflight=True)  # nothing is missing


# the rest --------------------------------------------------------------------------------------------------


def test_an_iterator_of_requests(tmp_path):
    with Loopback() as server, Ledger(tmp_path / "l") as ledger:
        result = run_stage(iter(requests(600)), Endpoint(server.url, None, concurrency=32), ledger)
        assert len(result.replies) == 600 and repr(result.replies) == "<600 replies>"
        assert [reply.key for reply in result.replies] == [request.key for request in requests(600)]
        assert result.replies[0].request is None
        assert result.replies[-1].key == result.replies[4].key == result.replies[4:5][0].key
        with pytest.raises(IndexError):
            result.replies[600]


def test_parsed_values_repairs_and_details(tmp_path):
    def mended(text):
        return Parsed({"n": len(text)}, ("fence removed",), {"why": text})

    with Loopback() as server:
        replies, report = run(server, tmp_path / "l", requests(10), parse=mended)
    assert (replies[0].parsed, replies[0].repairs) == ({"n": len(replies[0].text)}, ("fence removed",))
    assert replies[0].details == {"why": replies[0].text}
    assert report.repair_frame().to_dict() == {"fence removed": {"model-0": 6, "model-1": 4}}
    assert report.total("repaired") == 10


def test_a_parser_with_a_bug_stops_the_stage_and_loses_nothing(tmp_path):
    with Loopback() as server:
        with pytest.raises(ZeroDivisionError):
            run(server, tmp_path / "l", requests(), parse=lambda text: 1 / 0)
        with Ledger(tmp_path / "l") as ledger:
            assert len(ledger) == len(server.log) <= 16


def test_what_is_no_request(tmp_path):
    with Loopback() as server, Ledger(tmp_path / "l") as ledger:
        with pytest.raises(TypeError, match="number 1 is a dict"):
            run_stage([*bounded(1), {}], Endpoint(server.url, None), ledger)
        with pytest.raises(ValueError, match="retries_on_invalid should be"):
            run_stage([], Endpoint(server.url, None), ledger, retries_on_invalid=-1)
        assert len(run_stage([], Endpoint(server.url, None), ledger).replies) == 0
        assert server.log == []


def test_a_stage_on_a_ledger_in_use(tmp_path):
    with Loopback() as server, Ledger(tmp_path / "l") as ledger, ledger.writing("loopback"):
        with pytest.raises(LedgerError, match="in use by process"):
            run(server, tmp_path / "l", requests(10))
    assert server.log == []


def test_a_ledger_open_read_only_serves_what_it_holds(tmp_path):
    with Loopback() as server:
        first, _ = run(server, tmp_path / "l", requests(30), parse=parse)
        calls = len(server.log)
        endpoint = Endpoint("https://example.org/v1", "NO_SUCH_KEY")  # a finished stage needs neither
        with Ledger(tmp_path / "l", readonly=True) as ledger:
            result = run_stage(requests(30), endpoint, ledger, parse=parse)
            assert seen(result.replies) == seen(first)
            with pytest.raises(LedgerError, match=r"open read-only and has no valid reply.*\(number 29\)"):
                run_stage(requests(40), endpoint, ledger, parse=parse)
    assert len(server.log) == calls


def test_a_disk_that_fails_stops_the_stage(tmp_path, monkeypatch):
    with Loopback() as server, Ledger(tmp_path / "l") as ledger:
        commit, count = ledger.commit, Counter()

        def failing(operations):
            count["commits"] += 1
            if count["commits"] > 3:
                raise LedgerError("l: the disk is full")
            commit(operations)

        monkeypatch.setattr(ledger, "commit", failing)
        with pytest.raises(LedgerError, match="disk is full"):
            run_stage(requests(), Endpoint(server.url, None, concurrency=2), ledger)
        assert len(ledger) >= 3 and len(server.log) < 20


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_and_only_there(tmp_path, monkeypatch, capsys):
    with Loopback() as server:
        run(server, tmp_path / "a", requests(20), label="judging")
        assert capsys.readouterr() == ("", "")
        monkeypatch.setattr(sys, "stderr", Terminal())
        run(server, tmp_path / "b", requests(20), label="judging", budget=Budget(prices=PRICES))
        shown = sys.stderr.getvalue()
        assert "judging: 100%" in shown and "20/20" in shown and "$0.00, 0 void" in shown
        monkeypatch.setattr(sys, "stderr", Terminal())
        run(server, tmp_path / "b", requests(20), progress=False)
        assert sys.stderr.getvalue() == ""


def test_the_report_in_frames(tmp_path):
    with Loopback() as server:
        _, report = run(
            server, tmp_path / "l", requests(), parse=parse, label="judging", budget=Budget(prices=PRICES)
        )
        with Ledger(tmp_path / "l") as ledger:
            result = run_stage(requests(), Endpoint(server.url, None), ledger, parse=parse)
            frame = result.frame(text=True)
    counts = report.frame()
    assert list(counts.index) == ["model-0", "model-1", "total"]
    assert (counts.loc["model-0"] + counts.loc["model-1"]).equals(counts.loc["total"])
    assert counts.loc["total", "requests"] == 150 and counts.loc["total", "cost"] > 0
    assert str(report).startswith("judging: 150 requests, 0 from the ledger")
    assert list(frame["question"]) == [request.tag["question"] for request in requests()]
    assert frame["text"].eq("").sum() == frame["void_reason"].notna().sum() == report.total("void")
    assert frame["prompt_tokens"].sum() == 150 * 10
