"""The account: room set aside and freed, and the sum never above the ceiling, whoever is killed and when."""

import asyncio
import hashlib
import json
import multiprocessing
import random
import time

import pytest

from compendium.asking.account import Account, AccountFile, spent_on
from compendium.asking.budget import Budget, prompt_token_bound
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError
from compendium.asking.ledger import Ledger
from compendium.asking.request import Request
from compendium.asking.shards import Shard, ask_share, merge
from compendium.asking.stage import run_stage
from tests.compendium.asking.loopback import Loopback, completion

MODEL = "m"


def asked(number=0, model=MODEL):
    return Request(model, [{"role": "user", "content": f"question {number:03d}"}], seed=number, max_tokens=50)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_room_is_set_aside_and_freed(ledger):
    async def play():
        account = Account(Budget(calls=2), ledger)
        first, _ = await account.reserve(asked())
        second, _ = await account.reserve(asked())
        waiting = asyncio.create_task(account.reserve(asked()))
        await asyncio.sleep(0.05)
        assert not waiting.done()  # both calls may still turn out not to count
        await account.settle(first, MODEL, {"dollars": 0.0, "tokens": 0, "calls": 0})
        third, _ = await asyncio.wait_for(waiting, 5)
        for call in (second, third):
            await account.settle(call, MODEL, {"dollars": 0.0, "tokens": 0, "calls": 1})
        with pytest.raises(BudgetError) as refused:
            await account.reserve(asked())
        account.close()
        return refused.value

    error = asyncio.run(play())
    assert (error.scope, error.unit, error.ceiling, error.spent, error.needed) == ("total", "calls", 2, 2, 1)
    assert "ceiling of 2 calls in total is reached: 2 calls spent" in str(error)


def test_ceilings_by_model_and_what_was_spent_before(ledger):
    with ledger.writing():
        ledger.commit([("charge", MODEL, {"dollars": 0, "tokens": 0, "calls": 2})])
        ledger.commit([("charge", "n", {"dollars": 0, "tokens": 0, "calls": 99})])
        ledger.commit([("open", "lost", MODEL, {"dollars": 0, "tokens": 9}), ("lost", "lost")])

    async def play():
        account = Account(Budget(per_model={MODEL: {"calls": 4}}), ledger)
        await account.reserve(asked(model="n"))
        call, _ = await account.reserve(asked())
        await account.settle(call, MODEL, None)
        await account.reserve(asked())

    words = "for m is reached: 2 calls spent and 2 calls for calls that ended without"
    with pytest.raises(BudgetError, match=words):
        asyncio.run(play())


def test_crumbs_of_floats_do_not_block_the_last_call(ledger):
    budget = Budget(dollars=0.15, prices={MODEL: {"input": 0.0, "output": 1000.0}})

    async def play():
        account = Account(budget, ledger)
        for _ in range(3):  # three times five cents
            call, most = await account.reserve(asked())
            await account.settle(call, MODEL, most)
        with pytest.raises(BudgetError):
            await asyncio.wait_for(account.reserve(asked()), 5)

    asyncio.run(play())


def test_the_providers_own_bill_takes_the_place_of_what_was_at_risk(tmp_path):
    with AccountFile(tmp_path / "a") as account:
        for call in ("one", "two"):
            account.reserve(call, "l", MODEL, {"dollars": 2.0, "tokens": 10, "calls": 1}, [], time.time() + 9)
        account.settle("one", MODEL, None)
        account.set_known(3.5)
        spent = account.spent()["total"]
    assert (spent["dollars"], spent["risk_dollars"], spent["risk_calls"]) == (3.5, 2.0, 1)


# bills, faults, kills, shards and merges at random ---------------------------------------------------------

PRICE = {MODEL: {"input": 1e4, "output": 1e4}}  # a cent a token
REQUESTS = [asked(number) for number in range(24)]
KINDS = (
    "fine",
    "fine",
    "fine",
    "unknown",
    "negative",
    "absurd",
    "500",
    "504",
    "408",
    "drop",
    "cut",
    "429",
    "400",
)


class Provider:
    """Answers, fails and bills at random (by the request and the try alone), never more than was reserved."""

    def __init__(self, seed):
        self.seed, self.billed = seed, 0

    def __call__(self, body, tries):
        name = json.dumps([self.seed, body, tries], sort_keys=True)
        chance = random.Random(hashlib.sha256(name.encode()).digest())
        kind, prompt = chance.choice(KINDS), prompt_token_bound(body["messages"])
        used = chance.randint(1, prompt), chance.randint(0, body["max_tokens"])
        if kind == "429" or kind == "400":
            return int(kind), {}, {"error": {"message": "not now"}}
        self.billed += sum(used)
        if kind in ("drop", "cut"):
            return kind if kind == "drop" else (200, {}, "cut")
        if kind.isdigit():
            return int(kind), {}, b""
        usage = {"unknown": None, "negative": (-used[0], -1), "absurd": (10**400, 1e300)}.get(kind, used)
        return completion("words", body["model"], usage=usage)


def stage_of(url, folder, budget, shard):
    """What one process of a run does: its share of the stage, the whole stage, or the merge."""
    endpoint = Endpoint(url, key_env=None, concurrency=4, max_retries=4, backoff=0.001, timeout=5.0)
    try:
        if shard == "merge":
            merge(folder / "shards", folder)
            return
        with Ledger(folder / "main.sqlite", wait=20) as whole:
            if shard is None:
                run_stage(REQUESTS, endpoint, whole, budget=budget, progress=False)
            else:
                ask_share(
                    REQUESTS,
                    endpoint,
                    whole,
                    folder=folder / "shards",
                    shard=shard,
                    budget=budget,
                    progress=False,
                )
    except ValueError:
        pass  # a ceiling reached, a ledger in use


@pytest.mark.parametrize("seed", range(8))
def test_the_sum_never_passes_the_ceiling(seed, tmp_path):
    """Random bills and faults; processes side by side, killed at any moment; two folders; merges, some broken off."""
    chance, provider = random.Random(seed), Provider(seed)
    fork = multiprocessing.get_context("fork")
    ceiling = chance.uniform(5.0, 25.0)  # of about 30 that all replies cost, and far more with the faults
    budget = Budget(dollars=ceiling, prices=PRICE, account=tmp_path / "account")
    with Loopback(provider) as server:
        for _ in range(4):
            folder = tmp_path / chance.choice(["build", "build-smoke"])
            jobs = chance.choice([[None], ["merge"], [Shard(0, 2), Shard(1, 2)], [Shard(0, 2), None]])
            running = [fork.Process(target=stage_of, args=(server.url, folder, budget, job)) for job in jobs]
            for process in running:
                process.start()
            if chance.random() < 0.6:
                time.sleep(chance.uniform(0.0, 0.4))
                for process in running:
                    process.kill()
            for process in running:
                process.join(60)
                assert process.exitcode is not None
            assert provider.billed / 100 <= ceiling * (1 + 1e-9)
        for folder in ("build", "build-smoke"):
            for job in ("merge", None):
                stage_of(server.url, tmp_path / folder, budget, job)
        counted = spent_on(budget.account)
    assert provider.billed > 0
    assert provider.billed / 100 <= counted["dollars"] + counted["risk_dollars"] + 1e-9 <= ceiling + 2e-9
    with (
        Ledger(tmp_path / "build" / "main.sqlite") as one,
        Ledger(tmp_path / "build-smoke" / "main.sqlite") as two,
    ):
        recorded = spent_on(tmp_path / "no account", [one, two])  # the ledgers alone would say no less
    assert recorded["dollars"] + recorded["risk_dollars"] >= provider.billed / 100 - 1e-9
