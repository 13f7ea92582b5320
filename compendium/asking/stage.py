"""Run a stage: from a list of requests to their replies, asking only for what the ledger does not hold."""

import asyncio
import contextlib
import itertools
import math
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence

from tqdm import tqdm

from compendium.asking.account import Account, account_of, spent_on
from compendium.asking.answers import GaveUp
from compendium.asking.budget import Budget, check_estimate, estimate
from compendium.asking.directory import directory_of
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError, EndpointError, LedgerError
from compendium.asking.ledger import Ledger
from compendium.asking.report import StageReport
from compendium.asking.request import Request
from compendium.asking.results import DIGEST, Replies, StageResult, final_reply, verdict
from compendium.asking.writer import GroupWriter
from compendium.frame.paths import shown

CHUNK = 256  # requests looked up in the ledger at a time


def run_stage(
    requests,
    endpoint: Endpoint,
    ledger: Ledger,
    *,
    parse=None,
    retries_on_invalid: int = 2,
    budget: Budget | None = None,
    progress: bool = True,
    label: str = "stage",
    preflight: bool = False,
) -> StageResult:
    """Ask what is missing, and give back every reply in the order of the requests.

    Parameters
    ----------
    requests : `Request`s; a list, or an iterator (for very many: then replies carry no `request`).
    endpoint, ledger : where to ask (an `Endpoint`, or a `Directory` of some) and where replies are kept. The ledger is
        held for writing meanwhile; one that is open read-only serves a stage that it holds every reply of.
    parse : text -> value or `Parsed`; a ValueError (`InvalidReply`) says that the reply is not what was asked
        for. None: any text that is not empty is valid.
    retries_on_invalid : how often an invalid reply is asked again before the request is void.
    budget : prices and ceilings; what the ledger records as spent counts.
    progress : show a bar on stderr where that is a terminal.
    label : the stage's name in bar, report, ledger and errors.
    preflight : refuse to start where the estimate for what is missing is above a ceiling.

    Raises EndpointError, BudgetError (both with `.report`) and LedgerError; every reply that had come by then
    is in the ledger, and the same call made again asks only for the rest. Works inside a running event loop
    (Jupyter).
    """
    budget = budget or Budget()
    if preflight:
        requests = list(requests)
        table = estimate({label: requests}, budget.prices, ledger=ledger)
        check_estimate(table, budget, spent_on(account_of(budget, ledger.path), [ledger]))
    stage = _Stage(requests, endpoint, ledger, parse, retries_on_invalid, budget, label)
    show = progress and sys.stderr is not None and sys.stderr.isatty()
    with contextlib.ExitStack() as held:
        if not ledger.readonly:
            simulated = {one.simulated for one in directory_of(endpoint).endpoints.values()}
            held.enter_context(ledger.writing("loopback" if simulated == {True} else "remote"))
        stage.bar = held.enter_context(
            tqdm(
                total=stage.size,
                desc=label,
                unit="reply",
                disable=not show,
                file=sys.stderr,
                dynamic_ncols=True,
            )
        )
        _in_a_loop(stage.run)
    return stage.result()


class _Job:
    """One request to be asked: from which attempt on, and for how many places of the list."""

    __slots__ = ("request", "attempt", "places")

    def __init__(self, request, attempt):
        self.request, self.attempt, self.places = request, attempt, 1


class _Stage:
    """The state of one running stage; lives in one event loop."""

    def __init__(self, requests, endpoint, ledger, parse, retries, budget, label):
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries_on_invalid should be a whole number of at least 0, not {retries!r}")
        self.where, self.ledger, self.parse, self.budget = directory_of(endpoint), ledger, parse, budget
        self.last_attempt = retries
        self.report = StageReport(label)
        self.bar = None
        self._listed = requests if isinstance(requests, Sequence) else None
        self.size = len(requests) if self._listed is not None else None
        self._source = iter(requests)
        self._order = bytearray()
        self._models, self._unanswered, self._checked = {}, {}, set()
        self._ready, self._pending = deque(), {}
        for place, request in enumerate(self._listed or ()):  # what is wrong is said before anything is asked
            _checked(request, place)
            if budget.limits:
                budget.worst(request)

    def result(self):
        """The replies and the report."""
        replies = Replies(
            self.ledger,
            self._order,
            self._listed,
            self._models,
            self.parse,
            self.last_attempt,
            self._unanswered,
        )
        return StageResult(replies, self.report)

    async def run(self):
        """Ask everything that is missing. The first error that stops the stage is raised after the calls
        under way have ended and what they brought is in the ledger."""
        from compendium.asking.clients import Clients  # brings the openai package, which only a run needs

        start = time.monotonic()
        account = Account(self.budget, self.ledger)
        async with GroupWriter(self.ledger) as writer:
            client = Clients(self.where, account, writer.write, self.report.label)
            try:
                await asyncio.gather(*[self._work(client) for _ in range(client.concurrency)])
            finally:
                await client.close()
                account.close()
                self._finish_report(client, time.monotonic() - start)
        if client.stopping is not None:
            if isinstance(client.stopping, (BudgetError, EndpointError)):
                client.stopping.report = self.report
            raise client.stopping

    async def _work(self, client):
        """Take jobs until none is left. An error stops the stage, but lets other workers end their calls."""
        try:
            while client.stopping is None and (job := self._next()) is not None:
                try:
                    await self._ask(job, client)
                except GaveUp as reason:
                    self._give_up(job, str(reason))
                del self._pending[job.request.digest]
                self._advance(job.places)
        except Exception as error:
            client.stop(error)

    def _give_up(self, job, reason):
        digest, model = job.request.digest, job.request.model
        self._unanswered[digest], self._models[digest] = f"unanswered: {reason}", model
        self._count(model, "unanswered", job.places)
        self.report.voids[model, "unanswered"] += job.places
        self.report.first_reasons.setdefault(model, reason)
        self._keep_reason("unanswered", reason)

    async def _ask(self, job, client):
        request = job.request
        for attempt in range(job.attempt, self.last_attempt + 1):
            row = {}
            await client.ask(request, attempt, self._keeper(request, attempt, row))
            found = verdict(row, self.parse)
            if found[1] is None:
                break
        self._count_outcome(request.model, row, found, job.places)

    def _keeper(self, request, attempt, row):
        """What turns an answer into the ledger's row, and leaves that row in `row`."""

        def keep(answer, seed, latency, tries, cost):
            row.update(
                request=request.digest,
                attempt=attempt,
                stage=self.report.label,
                model=request.model,
                model_resolved=answer.model_resolved,
                sample=request.sample,
                seed=seed,
                text=answer.text,
                reasoning=answer.reasoning,
                refusal=answer.refusal,
                finish_reason=answer.finish_reason,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                reasoning_tokens=answer.reasoning_tokens,
                usage_estimated=int(answer.usage_estimated),
                cost=cost,
                latency=latency,
                tries=tries,
                call_id=answer.call_id,
                created=time.time(),
            )
            self.report.unreported[request.model] += answer.usage_estimated
            for name, amount in (
                ("replies", 1),
                ("cost", cost),
                ("prompt_tokens", answer.prompt_tokens),
                ("completion_tokens", answer.completion_tokens),
                ("reasoning_tokens", answer.reasoning_tokens),
            ):
                self.report.count(request.model, name, amount)
            return "reply", row, request.content

        return keep

    # what is next ------------------------------------------------------------------------------------------

    def _next(self):
        """The next job, or None where none is left. Runs without a pause: no two workers get one job."""
        while not self._ready:
            chunk = list(itertools.islice(self._source, CHUNK))
            if not chunk:
                return None
            self._sort(chunk)
        return self._ready.popleft()

    def _sort(self, chunk):
        """Count what the ledger answers already; make jobs of the rest, one for equal requests."""
        first = len(self._order) // DIGEST
        stored = self.ledger.lookup(
            {_checked(request, first + place).digest for place, request in enumerate(chunk)}
        )
        for place, request in enumerate(chunk):
            digest, model = request.digest, request.model
            self._order += digest
            self._count(model, "requests")
            if digest in self._pending:
                self._pending[digest].places += 1
                continue
            rows = stored.get(digest, [])
            row, found, complete = final_reply(rows, self.parse, self.last_attempt)
            if complete:
                self._count(model, "from_ledger")
                self._count_outcome(model, row, found, 1)
                self._advance(1)
            elif digest in self._unanswered:
                self._count(model, "unanswered")
                self.report.voids[model, "unanswered"] += 1
                self._advance(1)
            else:
                if self.ledger.readonly:
                    raise LedgerError(
                        f"{shown(self.ledger.path)}: is open read-only and has no valid reply to a "
                        f"request to {model} (number {first + place}); open it with Ledger(path)"
                    )
                self._check_service(model)
                job = _Job(request, row["attempt"] + 1 if row else 0)
                self._pending[digest] = job
                self._ready.append(job)

    def _check_service(self, model):
        """One look a model: simulated models move from port to port, and are no service."""
        if model not in self._checked and not self.where.endpoint(model).simulated:
            self.ledger.check_service(model, self.where.endpoint(model))
        self._checked.add(model)

    # counts ------------------------------------------------------------------------------------------------

    def _count(self, model, name, amount=1):
        self.report.count(model, name, amount)

    def _keep_reason(self, kind, reason):
        """One example a kind: the first in the alphabet, whatever the order of the replies."""
        self.report.reasons[kind] = min(self.report.reasons.get(kind, reason), reason)

    def _count_outcome(self, model, row, found, places):
        parsed, reason, kind = found
        self._count(model, "re_asked", row["attempt"] * places)
        if reason is None:
            self._count(model, "valid", places)
            self._count(model, "repaired", bool(parsed.repairs) * places)
            for repair in parsed.repairs:
                self.report.repairs[model, repair] += places
        else:
            self._count(model, "void", places)
            self.report.voids[model, kind] += places
            self._keep_reason(kind, reason)

    def _advance(self, places):
        if self.bar is not None and not self.bar.disable:
            cost, void = self.report.total("cost"), self.report.total("void")
            known = "" if math.isnan(cost) else f"${cost:.2f}, "
            self.bar.set_postfix_str(f"{known}{void} void", refresh=False)
        if self.bar is not None:
            self.bar.update(places)

    def _finish_report(self, client, seconds):
        self.report.seconds = seconds
        self.report.faults = Counter(client.faults)
        self.report.adapted = tuple(sorted(client.adapted))
        for model, calls in client.calls.items():
            self.report.count(model, "calls", calls)
        for (model, _), count in client.faults.items():
            self.report.count(model, "faults", count)


def _checked(request, place) -> Request:
    if not isinstance(request, Request):
        raise TypeError(f"requests should be Request objects; number {place} is a {type(request).__name__}")
    return request


def _in_a_loop(run):
    """Run a coroutine function to its end, in another thread where this one runs an event loop already."""
    if not _loop_is_running():
        asyncio.run(run())
        return
    caught = []
    loop = asyncio.new_event_loop()
    task = loop.create_task(run())

    def serve():
        try:
            loop.run_until_complete(task)
        except BaseException as error:  # handed to the caller's thread
            caught.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=serve, name="stage")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if caught:
        raise caught[0]


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
