"""One question, asked until it is answered: faults, retries, quirks of providers, money.

The tries are counted here and not inside the `openai` client (its own retries are off), because each fault
is to be counted by kind and each try needs room below the ceilings.
"""

import asyncio
import contextlib
import dataclasses
import email.utils
import itertools
import math
import random
import re
import time
from collections import Counter

import openai

from compendium.asking.account import Account
from compendium.asking.answers import Answer, Fault, GaveUp, read_body
from compendium.asking.connection import openai_client
from compendium.asking.directory import PLAIN, from_stream
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import EndpointError
from compendium.asking.names import same_model

FAULTS_IN_A_ROW = 60  # of one model, with no reply between: together with `patience`, it is not serving
WRONG_MODELS_IN_A_ROW = 20
TIMEOUTS = 5  # of one request: each may be charged, and a reply that takes too long takes too long again
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|accepted|recogni[sz]ed)|unknown|"
    r"unrecogni[sz]ed|unexpected|extra|does(?: not|n't) (?:take|accept|support)|instead|only supports?",
    re.I,
)


class _Adapted(Exception):
    """The endpoint refused a field's spelling; the request is to be sent again as it wants it."""


class Client:
    """Asks one endpoint within one event loop; a stage makes one and closes it.

    `record(*operations)` is the ledger's writer, awaited; `stage` names the stage in the ledger's faults; `model(name)`
    says how a model is to be asked (`compendium.asking.directory.Model`).
    """

    def __init__(self, endpoint: Endpoint, account: Account, record, stage: str, model=lambda name: PLAIN):
        self.endpoint, self.account, self.stage, self.model = endpoint, account, stage, model
        self.faults = Counter()  # (model, kind) -> count, this run
        self.calls = Counter()  # model -> calls, this run
        self.adapted = set()  # (model, what was changed for it)
        self.stopping = None  # the error that stops the stage
        self._stop = asyncio.Event()
        self._record = record
        self._key = None  # read by the first call: a finished stage needs no key
        # Before each call an HTTP client looks at all its idle connections; a few clients with a few connections
        # each save a quarter of a call's time over one client with all of them.
        self._clients, self._turn = [], itertools.count()
        self._names = {}  # model -> its name for max_tokens
        self._seedless, self._streaming = set(), set()
        self._faults_in_a_row, self._wrong_in_a_row = Counter(), Counter()
        self._last_reply, self._last_fault = {}, {}  # model -> when, model -> the fault
        self._start = time.monotonic()

    def _open(self):
        self._key = self.endpoint.key()
        count = math.isqrt(self.endpoint.concurrency)
        self._clients = [openai_client(self.endpoint, self._key) for _ in range(count)]
        self._unguard = self._key.guard_logs()

    async def close(self):
        """Close the connections."""
        for client in self._clients:
            await client.close()
        if self._clients:
            self._unguard()

    def stop(self, error):
        """Make no further call; whoever is waiting to make one gets `error`. The first error stays."""
        self.stopping = self.stopping or error
        self._stop.set()

    async def ask(self, request, attempt: int, stored) -> Answer:
        """The answer to one attempt of a request, in the ledger when this returns.

        `stored(answer, seed, latency, tries, cost)` makes the ledger operation that keeps it. Raises GaveUp
        where no reply came, EndpointError where none can come, BudgetError where asking could pass a ceiling.
        """
        kinds, adapted = Counter(), set()
        while True:
            if self.stopping is not None:
                raise self.stopping
            if not self._clients:
                self._open()
            self._check_serving(request.model)
            tries = sum(kinds.values()) + 1
            try:
                return await self._try(request, attempt, tries, stored, adapted)
            except _Adapted:
                continue
            except Fault as fault:
                met = fault
            kinds[met.kind] += 1
            self._met(request.model, met)
            if kinds["timeout"] > TIMEOUTS:
                raise GaveUp(
                    f"{kinds['timeout']} timeouts of {self.endpoint.timeout:g} s; a longer `timeout` may do"
                )
            if tries > self.endpoint.max_retries:
                kinds = ", ".join(f"{kind} x{count}" for kind, count in sorted(kinds.items()))
                last = f"; the last: {met.detail}" if met.detail else ""
                raise GaveUp(f"no reply in {tries} tries ({kinds}){last}")
            await self._pause(self._wait(met, tries))

    # one try -----------------------------------------------------------------------------------------------

    async def _try(self, request, attempt, tries, stored, adapted):
        model, call = request.model, None
        if self.account.active:
            call, worst = await self.account.reserve(request, self.endpoint.timeout)
            # Known to be under way before it is sent: a killed run must not forget what it may have to pay.
            await self._record(("open", call, model, worst))
        nothing = {"dollars": 0.0, "tokens": 0, "calls": 1}
        try:
            start = time.monotonic()
            body, seed = await self._post(request, attempt, tries, adapted)
            answer = read_body(body, request, self.account.budget.default_max_tokens)
            latency = time.monotonic() - start
            cost = answer.reported_cost
            if cost is None:
                cost = self.account.budget.cost(model, answer.prompt_tokens, answer.completion_tokens)
            spent = {"dollars": cost, "tokens": answer.prompt_tokens + answer.completion_tokens, "calls": 1}
            if not self._same(model, answer.model_resolved):
                wrong = Fault(
                    "wrong model", f"answered as {answer.model_resolved}", charged=True, spent=spent
                )
                wrong.named = answer.model_resolved
                raise wrong
        except Fault as fault:
            await self._settle(
                model,
                call,
                fault.spent or nothing,
                fault.charged and not fault.spent,
                ("fault", self.stage, model, fault.kind),
            )
            raise
        except (GaveUp, EndpointError, _Adapted) as refused:  # nothing to pay, where the server was well
            await self._settle(model, call, nothing, getattr(refused, "charged", False))
            raise
        except BaseException:
            raise  # a cancelled call may have been charged: its rows stay open in ledger and account
        await self._settle(model, call, spent, False, stored(answer, seed, latency, tries, cost))
        self._faults_in_a_row[model] = self._wrong_in_a_row[model] = 0
        self._last_reply[model] = time.monotonic()
        return answer

    async def _settle(self, model, call, spent, at_risk, *operations):
        """Write what the try left (in one transaction with its reply), then free the room it held."""
        if call and at_risk:
            operations = (*operations, ("lost", call))  # its open row is its charge, at its most
        else:
            operations = (*operations, ("charge", model, spent))
            if call:
                operations = (*operations, ("close", call))
        await self._record(*operations)
        if call:
            await self.account.settle(call, model, None if at_risk else spent)

    async def _post(self, request, attempt, tries, adapted):
        """(text of a 200 response's body, the seed that was sent). Raises what one call can meet."""
        self.calls[request.model] += 1
        body = self._body(request, attempt)
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                # `post` and not `chat.completions.create`: that one walks through every message to check its
                # types, a third of all time spent on a call, and its model of the response would hide what a
                # provider adds.
                text = await self._clients[next(self._turn) % len(self._clients)].post(
                    "/chat/completions",
                    body=body,
                    cast_to=str,
                    options={"headers": {"x-stainless-retry-count": str(tries - 1)}},
                )
                return self._key.hide(from_stream(text)), body.get("seed")
        except (openai.APITimeoutError, TimeoutError):
            problem = Fault("timeout", f"no reply in {self.endpoint.timeout:g} s", charged=True)
        except openai.APIConnectionError as error:
            problem = _connection_fault(error.__cause__)
        except openai.APIStatusError as error:
            quirk = self._quirk(request.model, error, body)
            fresh = quirk is not None and quirk not in adapted
            adapted.add(quirk)
            problem = _Adapted() if fresh else self._status_problem(request.model, error)
        # Outside the handlers: the client's own errors hold the request and must not ride along as context.
        raise problem

    def _body(self, request, attempt) -> dict:
        """The body as this model takes it."""
        how = self.model(request.model)
        body = how.sent(request.body(attempt))
        if request.model in self._seedless:
            body.pop("seed", None)
        if request.model in self._streaming:
            body = dataclasses.replace(PLAIN, stream=True).sent(body)
        if "max_tokens" in body:
            usual = how.max_tokens_name or self.endpoint.max_tokens_name
            body[self._names.get(request.model, usual)] = body.pop("max_tokens")
        return body

    def _quirk(self, model, error, sent):
        """Learn from a 400 that names a field: the other name of `max_tokens`, that seeds are not taken, that replies only
        come as a stream.

        Only what leaves the meaning of the request as it is: a refused temperature is an error, not a quirk.
        Returns what was learnt, or None.
        """
        text = f"{error.param or ''} {self._message(error)}"
        if error.status_code not in (400, 422) or not _UNSUPPORTED.search(text):
            return None
        for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
            if name in sent and re.search(rf"\b{name}\b", text):
                self._names[model] = other
                self.adapted.add((model, f"max_tokens is sent as {other}"))
                return name
        if "seed" in sent and re.search(r"\bseed\b", text):
            self._seedless.add(model)
            self.adapted.add((model, "takes no seed: replies cannot be repeated"))
            return "seed"
        if "stream" not in sent and re.search(r"\bstream(?:ing)?\b", text):
            self._streaming.add(model)
            self.adapted.add((model, "replies come as a stream"))
            return "stream"
        return None

    # what went wrong ---------------------------------------------------------------------------------------

    def _status_problem(self, model, error):
        status, text = error.status_code, self._message(error)
        wait = retry_after(error.response.headers)
        where = f"{self.endpoint.base_url} answered {status}"
        if status == 401 or (
            status == 403 and "moderation" not in text.lower() and "flagged" not in text.lower()
        ):
            name = self.endpoint.key_env
            key = f"the key in {name} is not accepted" if name else "it wants a key, and key_env is None"
            return EndpointError(f"{where}: {key} ({text})")
        if 300 <= status < 400:
            return EndpointError(
                f"{where}, which sends on to another address; write that one as base_url where it is meant"
            )
        if status == 402 or error.code == "insufficient_quota":
            return EndpointError(f"{where}: no credit left ({text}); every reply so far is in the ledger")
        if status == 404:
            return EndpointError(f"{where} for model {model!r}: no such model or path ({text})")
        billed = status >= 500 or status == 408  # a gateway that gives up does not stop the model behind it
        if wait is not None and wait > self.endpoint.longest_wait:
            error = EndpointError(
                f"{where} for {model} and asks to wait {wait:,.0f} s, longer than longest_wait "
                f"({self.endpoint.longest_wait:g} s); run again then, every reply is in the ledger"
            )
            error.charged = billed
            return error
        if status == 429:
            return Fault("rate limited", text, wait=wait)
        if status >= 500 or status in (408, 409, 425):
            kind = "server error" if status >= 500 else "timeout"
            return Fault(kind, f"{status} {text}", wait=wait, charged=billed)
        if re.search(r"\b(temperature|top_p)\b", text):
            return EndpointError(
                f"{where} for {model}: it does not take these sampling parameters ({text}); write in params/live.yaml: "
                f"models: {{{model}: {{temperature: null}}}}"
            )
        if re.search(r"\bsystem\b", text, re.I) and re.search(
            r"\b(role|instruction|prompt|message)", text, re.I
        ):
            return EndpointError(
                f"{where} for {model}: it has no system role ({text}); write in params/live.yaml: "
                f"models: {{{model}: {{system: false}}}}"
            )
        return GaveUp(f"refused with status {status}: {text}")

    def _message(self, error) -> str:
        """The endpoint's own words, on one line, short, and without the key."""
        body = error.body if isinstance(error.body, dict) else {}
        text = body.get("message") or _detail(body.get("detail")) or error.message or ""
        return self._key.hide(" ".join(str(text).split()))[:300]

    def _met(self, model, fault):
        """Count a fault; stop the stage with EndpointError where the model that answers is always another."""
        self.faults[model, fault.kind] += 1
        self._last_fault[model] = fault
        if fault.kind != "rate limited":  # an endpoint that limits the rate is serving
            self._faults_in_a_row[model] += 1
        self._wrong_in_a_row[model] += fault.kind == "wrong model"
        most = WRONG_MODELS_IN_A_ROW if self.endpoint.simulated or model in self._last_reply else 2
        if self._wrong_in_a_row[model] >= most:
            self.stop(
                EndpointError(
                    f"asked for {model!r}, {self.endpoint.base_url} {fault.detail}, "
                    f"{self._wrong_in_a_row[model]} times with no other reply: if that is the model meant, write in "
                    f"params/live.yaml: models: {{{model}: {{aliases: [{fault.named}]}}}}"
                )
            )
            raise self.stopping

    def _check_serving(self, model):
        """Raises GaveUp where a model only fails while others answer, EndpointError where nothing answers."""
        row, last = self._faults_in_a_row[model], self._last_fault.get(model)
        quiet = time.monotonic() - self._last_reply.get(model, self._start)
        if row < FAULTS_IN_A_ROW or quiet < self.endpoint.patience_s:
            return
        if self._last_reply:
            raise GaveUp(f"{model} does not serve: {row} faults in a row, the last: {last}")
        self.stop(
            EndpointError(f"{self.endpoint.base_url} does not serve: {row} faults in a row, the last: {last}")
        )
        raise self.stopping

    def _same(self, asked, answered) -> bool:
        how = self.model(asked)
        known = (*self.endpoint.aliases.get(asked, ()), *how.aliases)
        return (
            answered is None
            or answered in known
            or same_model(asked, answered)
            or (how.name is not None and same_model(how.name, answered))
        )

    def _wait(self, fault, tries) -> float:
        backoff = min(self.endpoint.longest_backoff, self.endpoint.first_backoff * 2 ** min(tries - 1, 20))
        spread = 1 - random.random() / 4  # calls that failed together should not return together
        return max(fault.wait or 0.0, backoff * spread)

    async def _pause(self, seconds):
        """Sleep, but not past the moment the stage stops."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


def _detail(detail) -> str:
    """FastAPI's errors: `detail` is a text, or a list of {"loc": [...], "msg": ...}."""
    if not isinstance(detail, list):
        return str(detail or "")
    parts = [part if isinstance(part, dict) else {"msg": part} for part in detail[:5]]
    return "; ".join(
        f"{'.'.join(map(str, part['loc']))}: {part.get('msg', '')}"
        if isinstance(part.get("loc"), list)
        else str(part.get("msg", ""))
        for part in parts
    )


def retry_after(headers) -> float | None:
    """Seconds that headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        moment = email.utils.parsedate_tz(headers.get("retry-after", ""))
        return None if moment is None else max(0.0, email.utils.mktime_tz(moment) - time.time())
    except (OverflowError, ValueError, TypeError):  # a year that no calendar has
        return None


def _connection_fault(cause) -> Fault:
    name, text = type(cause).__name__, str(cause)
    if "Timeout" in name:
        return Fault("timeout", name, charged=True)
    if name == "ConnectError":
        return Fault("no connection", text)
    if "incomplete" in text or "without sending complete" in text or name == "DecodingError":
        return Fault("truncated body", text, charged=True)
    return Fault("connection dropped", text or name, charged=True)
