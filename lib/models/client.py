"""One question, asked until it is answered: faults, retries, quirks of providers, money.

The tries are counted here and not inside the `openai` client (its own retries are off), because each fault is to be
counted by kind and each try needs room below the ceilings.
"""

import asyncio
import email.utils
import math
import random
import re
import time
import uuid
from collections import Counter

import openai

from lib.models.answers import Answer, Fault, read_body
from lib.models.budget import Account
from lib.models.endpoint import Endpoint
from lib.models.errors import EndpointError
from lib.models.names import same_model

FAULTS_IN_A_ROW = 60  # of one model, with no reply between: together with `patience`, it is not serving
WRONG_MODELS_IN_A_ROW = 20
_HEADERS_FROM_ENVIRONMENT = ("OpenAI-Organization", "OpenAI-Project")
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class GaveUp(Exception):
    """No reply to one request in this run; the message says why. The next run asks again."""


class Client:
    """Asks one endpoint within one event loop; a stage makes one and closes it.

    `record(*operations)` is the ledger's writer, awaited; `stage` names the stage in the ledger's faults.
    """

    def __init__(self, endpoint: Endpoint, account: Account, record, stage: str):
        self.endpoint, self.account, self.stage = endpoint, account, stage
        self.faults = Counter()  # (model, kind) -> count, this run
        self.calls = Counter()  # model -> calls, this run
        self.stopping = None  # the error that stops the stage
        self._record = record
        self._key = endpoint.key()
        self._openai = _openai_client(endpoint, self._key)
        self._dropped, self._renamed = set(), {}
        self._rows = Counter()  # model -> faults in a row
        self._wrong = Counter()
        self._last_reply = {}  # model -> when
        self._answered = False
        self._start = time.monotonic()

    async def close(self):
        """Close the connections."""
        await self._openai.close()

    async def ask(self, request, attempt: int, stored) -> Answer:
        """The answer to one attempt of a request, in the ledger when this returns.

        `stored(answer, latency, tries, cost)` makes the ledger operation that keeps it. Raises GaveUp where no
        reply came, EndpointError where none can come, BudgetError where asking could pass a ceiling.
        """
        kinds = Counter()
        while True:
            if self.stopping is not None:
                raise self.stopping
            tries = sum(kinds.values()) + 1
            if self._dead(request.model):
                raise GaveUp(f"{request.model} did not serve: {self._rows[request.model]} faults in a row")
            try:
                return await self._try(request, attempt, tries, stored)
            except Fault as fault:
                kinds[fault.kind] += 1
                await self._met(request.model, fault)
                if tries > self.endpoint.max_retries:
                    met = ", ".join(f"{kind} x{count}" for kind, count in sorted(kinds.items()))
                    raise GaveUp(f"no reply in {tries} tries ({met})") from None
                await asyncio.sleep(self._wait(fault, tries))

    # one try ---------------------------------------------------------------------------------------------------------

    async def _try(self, request, attempt, tries, stored):
        worst, call = None, None
        if self.account.active:
            worst, call = await self.account.reserve(request), uuid.uuid4().hex
            # Known to be under way before it is sent: a killed run must not forget what it may have to pay.
            await self._record(("open", call, request.model, worst))
        none = {"dollars": 0.0, "tokens": 0, "calls": 1}
        try:
            start = time.monotonic()
            answer = read_body(await self._post(request, attempt, tries), request)
            latency = time.monotonic() - start
            for name in ("text", "reasoning", "refusal", "call_id", "model_resolved"):
                setattr(answer, name, self._key.hide(getattr(answer, name)))
            tokens = answer.prompt_tokens + answer.completion_tokens
            cost = answer.reported_cost
            if cost is None:
                cost = self.account.budget.cost(request.model, answer.prompt_tokens, answer.completion_tokens)
            spent = {"dollars": cost, "tokens": tokens, "calls": 1}
            if not self._same(request.model, answer.model_resolved):
                raise Fault("wrong model", f"answered as {answer.model_resolved}", charged=True, spent=spent)
        except Fault as fault:
            await self._settle(request.model, call, worst, fault.spent or none, fault.charged and not fault.spent,
                               ("fault", self.stage, request.model, fault.kind))
            raise
        except BaseException:
            # A cancelled call may have been charged: its row stays open in the ledger.
            if call:
                self.account.settle(request.model, worst, worst, at_risk=True)
            raise
        await self._settle(request.model, call, worst, spent, False, stored(answer, latency, tries, cost))
        self._rows[request.model] = self._wrong[request.model] = 0
        self._answered, self._last_reply[request.model] = True, time.monotonic()
        return answer

    async def _settle(self, model, call, worst, spent, at_risk, *operations):
        """Write what the try left (one transaction with its reply), then free the room it held."""
        operations = [*operations, ("charge", model, spent)]
        if call:
            # The charge of a call at risk is its open row; the call itself counts there too.
            operations = [*operations[:-1], ("lost", call)] if at_risk else [*operations, ("close", call)]
        await self._record(*operations)
        if call:
            self.account.settle(model, worst, worst if at_risk else spent, at_risk)

    async def _post(self, request, attempt, tries) -> bytes:
        """The body of a 200 response. Raises Fault, EndpointError, or GaveUp for a request that is refused."""
        adapted = set()
        while True:
            self.calls[request.model] += 1
            known, extra = self._adapt(request, attempt)
            try:
                async with asyncio.timeout(self.endpoint.timeout):
                    response = await self._openai.chat.completions.with_raw_response.create(
                        **known, extra_body=extra, extra_headers={"x-stainless-retry-count": str(tries - 1)})
                    return response.http_response.content
            except (openai.APITimeoutError, TimeoutError):
                problem = Fault("timeout", f"no reply in {self.endpoint.timeout:g} s", charged=True)
            except openai.APIConnectionError as error:
                problem = _connection_fault(error.__cause__)
            except openai.APIStatusError as error:
                quirk = self._quirk(request, error, known)
                if quirk and quirk not in adapted:
                    adapted.add(quirk)
                    continue
                problem = self._status_problem(request.model, error)
            # Outside the handlers: the client's own errors hold the request and must not ride along as context.
            raise problem

    def _adapt(self, request, attempt):
        """The body as this model takes it: (fields the client knows, all others)."""
        body = request.body(attempt)
        for name in [name for model, name in self._dropped if model == request.model]:
            body.pop(name, None)
        if "max_tokens" in body and self._renamed.get(request.model) == "max_completion_tokens":
            body["max_completion_tokens"] = body.pop("max_tokens")
        known = {name: body.pop(name) for name in
                 ("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
                 if name in body}
        return known, body or None

    def _quirk(self, request, error, sent):
        """Learn from a 400 that names a field: the other name of `max_tokens`, or that seeds are not taken.

        Only what leaves the meaning of the request as it is: a refused temperature is an error, not a quirk.
        """
        if error.status_code not in (400, 422):
            return None
        text = f"{error.param or ''} {self._message(error)}"
        for name in ("max_tokens", "max_completion_tokens"):
            if name in sent and re.search(rf"\b{name}\b", text):
                self._renamed[request.model] = _OTHER_NAME[name]
                return name
        if "seed" in sent and re.search(r"\bseed\b", text, re.IGNORECASE):
            self._dropped.add((request.model, "seed"))
            return "seed"
        return None

    # what went wrong -------------------------------------------------------------------------------------------------

    def _status_problem(self, model, error):
        status, text = error.status_code, self._message(error)
        wait = retry_after(error.response.headers)
        where = f"{self.endpoint.base_url} answered {status}"
        if status == 401 or (status == 403 and "moderation" not in text.lower() and "flagged" not in text.lower()):
            name = self.endpoint.key_env
            key = f"the key in {name} is not accepted" if name else "it wants a key, and key_env is None"
            return EndpointError(f"{where}: {key} ({text})")
        if status == 402 or error.code == "insufficient_quota":
            return EndpointError(f"{where}: no credit left ({text}); every reply so far is in the ledger")
        if status == 404:
            return EndpointError(f"{where} for model {model!r}: no such model or path ({text})")
        if wait is not None and wait > self.endpoint.longest_wait:
            return EndpointError(f"{where} for {model} and asks to wait {wait:,.0f} s, longer than longest_wait "
                                 f"({self.endpoint.longest_wait:g} s); run again then, every reply is in the ledger")
        if status == 429:
            return Fault("rate limited", text, wait=wait)
        if status >= 500 or status in (408, 409, 425):
            return Fault("server error" if status >= 500 else "timeout", f"{status} {text}", wait=wait)
        if re.search(r"\b(temperature|top_p)\b", text):
            return EndpointError(f"{where} for {model}: it does not take these sampling parameters ({text}); set them "
                                 "to null for this model in the study's params")
        return GaveUp(f"refused with status {status}: {text}")

    def _message(self, error) -> str:
        """The endpoint's own words, on one line, short, and without the key."""
        body = error.body if isinstance(error.body, dict) else {}
        text = body.get("message") or error.message or ""
        return self._key.hide(" ".join(str(text).split()))[:300]

    async def _met(self, model, fault):
        """Count a fault; stop the stage where faults are all there is."""
        self.faults[model, fault.kind] += 1
        if fault.kind == "wrong model":
            self._wrong[model] += 1
            if self._wrong[model] >= WRONG_MODELS_IN_A_ROW:
                self.stopping = EndpointError(
                    f"asked for {model!r}, {self.endpoint.base_url} {fault.detail}, {self._wrong[model]} times in a "
                    "row: if that is the model meant, list the name under the endpoint's `aliases`")
        if fault.kind != "rate limited":
            self._rows[model] += 1
        if self._dead(model) and not self._answered:
            self.stopping = EndpointError(f"{self.endpoint.base_url} does not serve: {self._rows[model]} faults in a "
                                          f"row, the last: {fault}")
        if self.stopping is not None:
            raise self.stopping

    def _dead(self, model) -> bool:
        quiet = time.monotonic() - self._last_reply.get(model, self._start)
        return self._rows[model] >= FAULTS_IN_A_ROW and quiet >= self.endpoint.patience_s

    def _same(self, asked, answered) -> bool:
        return answered is None or answered in self.endpoint.aliases.get(asked, ()) or same_model(asked, answered)

    def _wait(self, fault, tries) -> float:
        if fault.wait is not None:
            return fault.wait
        backoff = min(self.endpoint.longest_backoff, self.endpoint.first_backoff * 2 ** min(tries - 1, 20))
        return backoff * (1 - random.random() / 4)  # spread, so that calls that failed together do not return together


def retry_after(headers) -> float | None:
    """Seconds that a response's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    moment = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return None if moment is None else max(0.0, email.utils.mktime_tz(moment) - time.time())


def _connection_fault(cause) -> Fault:
    name, text = type(cause).__name__, str(cause)
    if "Timeout" in name:
        return Fault("timeout", name, charged=True)
    if name == "ConnectError":
        return Fault("no connection", text)
    if "incomplete" in text or "without sending complete" in text or name == "DecodingError":
        return Fault("truncated body", text, charged=True)
    return Fault("connection dropped", text or name, charged=True)


def _openai_client(endpoint, key):
    """The client, told everything: nothing but the key may come from the environment."""
    http = openai.DefaultAsyncHttpxClient(trust_env=not endpoint.loopback) if endpoint.loopback else None
    return openai.AsyncOpenAI(base_url=endpoint.base_url, api_key=key.reveal(), max_retries=0,
                              timeout=endpoint.timeout, http_client=http,
                              default_headers={name: openai.Omit() for name in _HEADERS_FROM_ENVIRONMENT})
