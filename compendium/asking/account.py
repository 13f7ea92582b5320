"""The account that ceilings are kept on: one SQLite file, which every process, shard and folder of a profile draws on.

A call's most is set aside in the file before the call is made, and taken back only for what is known of its cost.
So whatever is killed, and whenever, the calls that could have been billed are in the file: the sum of what is spent,
at risk and under way never passes a ceiling. Journal mode DELETE: unlike the write-ahead log it may lie on a folder
that several machines share.
"""

import asyncio
import contextlib
import os
import socket
import sqlite3
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compendium.asking.budget import SPENDING, UNITS, Budget, shown
from compendium.asking.errors import BudgetError, LedgerError
from compendium.frame.paths import shown as shown_path

GRACE = (
    60.0  # seconds after its timeout from when on a call under way counts as one that ended without a word
)
POLL = 0.2  # seconds between looks at the room that other processes may free
HOST = socket.gethostname()
CRUMBS = 1 + 1e-12  # sums of floats leave crumbs, which must not block the last call
_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    id TEXT PRIMARY KEY, ledger TEXT NOT NULL, model TEXT NOT NULL, dollars REAL NOT NULL, tokens INTEGER NOT NULL,
    until REAL NOT NULL, owner TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
    model TEXT PRIMARY KEY, dollars REAL NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledgers (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_ADD = (
    "INSERT INTO spent VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET dollars = dollars + excluded.dollars, "
    "tokens = tokens + excluded.tokens, calls = calls + excluded.calls"
)


class AccountFile:
    """The file. Each method is one transaction; any number of processes may call them at once."""

    def __init__(self, path):
        self.path = Path(path)
        with self._speaking():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)

    def close(self):
        """Close the file."""
        self._db.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def meet(self, ledger) -> None:
        """Take over, once, what a ledger has recorded; its calls that are under way ended with the run that made
        them (`ledger` is held for writing)."""
        with self._transaction():
            self._db.execute("UPDATE calls SET until = 0 WHERE ledger = ?", [ledger.id])
            if not self._db.execute("INSERT OR IGNORE INTO ledgers VALUES (?)", [ledger.id]).rowcount:
                return
            for model, dollars, tokens, calls in ledger.charged():
                self._db.execute(_ADD, [model, dollars, tokens, calls])
            for call, model, dollars, tokens in ledger.open_calls():
                self._db.execute(
                    "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, 0, '')",
                    [call, ledger.id, model, dollars or 0.0, tokens],
                )

    def reserve(self, call: str, ledger: str, model: str, most: dict, limits, until: float):
        """Set `most` aside for a call, or say which limit it could pass: None or (limit, spent, at risk, hope), in the
        limit's unit; `hope` where calls under way may still free the room."""
        with self._transaction():
            spent = self._spent()
            for limit in limits:
                scope, unit, ceiling = limit
                if scope not in ("total", model):
                    continue
                used, risk, aside = (
                    spent.get(scope, {}).get(kind + unit, 0) for kind in ("", "risk_", "aside_")
                )
                if used + risk + aside + most[unit] > ceiling * CRUMBS:
                    return limit, used, risk, used + risk + most[unit] <= ceiling * CRUMBS
            dollars = most["dollars"] if most["dollars"] == most["dollars"] else 0.0
            self._db.execute(
                "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)",
                [call, ledger, model, dollars, most["tokens"], until, f"{HOST}:{os.getpid()}"],
            )
        return None

    def end_calls_of_the_dead(self) -> None:
        """Calls of this machine's processes that are no more are under way no longer."""
        with self._transaction():
            owners = self._db.execute(
                "SELECT DISTINCT owner FROM calls WHERE until >= ?", [time.time()]
            ).fetchall()
            for (owner,) in owners:
                host, _, pid = owner.rpartition(":")
                if host == HOST and not _lives(int(pid)):
                    self._db.execute("UPDATE calls SET until = 0 WHERE owner = ?", [owner])

    def settle(self, call: str, model: str, amounts: dict | None) -> None:
        """A call has ended: count what it cost; None: it may have cost its most, and stays at risk."""
        with self._transaction():
            if amounts is None:
                self._db.execute("UPDATE calls SET until = 0 WHERE id = ?", [call])
                return
            self._db.execute("DELETE FROM calls WHERE id = ?", [call])
            dollars = amounts["dollars"] if amounts["dollars"] == amounts["dollars"] else 0.0
            self._db.execute(_ADD, [model, dollars, amounts["tokens"], amounts["calls"]])

    def set_known(self, dollars: float) -> None:
        """Take the providers' own bill: this much is spent in dollars, and no call that has ended is at risk."""
        with self._transaction():
            self._db.execute("DELETE FROM calls WHERE until < ?", [time.time()])
            self._db.execute("UPDATE spent SET dollars = 0")
            self._db.execute(_ADD, ["(as billed)", dollars, 0, 0])

    def spent(self) -> dict:
        """{scope: {unit: amount}}, scope "total" and each model, units `SPENDING`; calls under way are at risk."""
        with self._transaction():
            found = self._spent()
        for entry in found.values():
            for unit in UNITS:
                entry[f"risk_{unit}"] += entry.pop(f"aside_{unit}")
        return found

    def _spent(self) -> dict:
        scopes = {"total": _nothing()}
        for model, *amounts in self._db.execute("SELECT model, dollars, tokens, calls FROM spent"):
            _put(scopes, model, "", amounts)
        query = "SELECT model, until >= ?, total(dollars), sum(tokens), count(*) FROM calls GROUP BY 1, 2"
        for model, under_way, *amounts in self._db.execute(query, [time.time()]):
            _put(scopes, model, "aside_" if under_way else "risk_", amounts)
        return scopes

    @contextlib.contextmanager
    def _transaction(self):
        with self._speaking(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield

    @contextlib.contextmanager
    def _speaking(self):
        try:
            yield
        except sqlite3.Error as error:
            problem = str(error)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        else:
            return
        raise LedgerError(
            f"{shown_path(self.path)}: the account of what is spent cannot be used ({problem}); nothing is asked "
            "without it: make it writable, or move it away and it is made again from the ledgers"
        ) from None


class Account:
    """What one running stage draws on the file with; used from one event loop. Without a ceiling it does nothing."""

    def __init__(self, budget: Budget, ledger, path=None):
        self.budget, self._limits, self._ledger = budget, budget.limits, ledger
        self._file = self._thread = None
        self._changed = asyncio.Event()
        if self.active:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="account")
            self._file = AccountFile(path or account_of(budget, ledger.path))
            self._file.meet(ledger)

    @property
    def active(self) -> bool:
        """Whether there is any ceiling to keep, or an account that others draw on."""
        return not self._ledger.readonly and bool(self._limits or self.budget.account)

    def close(self):
        """Close the file."""
        if self._thread is not None:
            self._thread.shutdown()
            self._file.close()

    async def reserve(self, request, timeout: float = 0.0) -> tuple:
        """(call, amounts): set aside the most a call of `request` could add, waiting for calls under way where they
        hold the room. `timeout`: seconds that the call may take.

        Raises BudgetError where the call could pass a ceiling even if those turn out to cost nothing.
        """
        most, call = self.budget.worst(request), uuid.uuid4().hex
        while True:
            self._changed.clear()
            until = time.time() + timeout + GRACE
            blocked = await self._do(
                self._file.reserve, call, self._ledger.id, request.model, most, self._limits, until
            )
            if blocked is None:
                return call, most
            limit, spent, risk, hope = blocked
            if not hope:
                raise _refusal(request, *limit, spent, risk, most[limit[1]])
            await self._do(self._file.end_calls_of_the_dead)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL)

    async def settle(self, call: str, model: str, spent: dict | None) -> None:
        """A call has ended: free what was set aside, count what it cost (None: what it may have cost)."""
        await self._do(self._file.settle, call, model, spent)
        self._changed.set()

    async def _do(self, function, *arguments):
        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        )


def account_of(budget: Budget, ledger_path) -> Path:
    """Where a stage's account lies: where the budget says, else beside the ledger."""
    return Path(budget.account) if budget.account is not None else Path(f"{ledger_path}.account")


def spent_on(path, ledgers=()) -> dict:
    """What an account records, and the ledgers that it has not met yet: {unit in `SPENDING`: amount}."""
    total, known = _nothing(), set()
    if Path(path).is_file():
        with AccountFile(path) as file:
            total.update(file.spent()["total"])
            known = {name for (name,) in file._db.execute("SELECT id FROM ledgers")}
    for ledger in ledgers:
        if ledger.id not in known:
            for unit, amount in ledger.spent()["total"].items():
                total[unit] += amount
    return {unit: total[unit] for unit in SPENDING}


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _nothing() -> dict:
    return dict.fromkeys((*SPENDING, *(f"aside_{unit}" for unit in UNITS)), 0)


def _put(scopes, model, kind, amounts):
    for scope in ("total", model):
        entry = scopes.setdefault(scope, _nothing())
        for unit, amount in zip(UNITS, amounts, strict=True):
            entry[kind + unit] += amount


def _refusal(request, scope, unit, ceiling, spent, risk, needed) -> BudgetError:
    whose = "in total" if scope == "total" else f"for {scope}"
    risky = f" and {shown(risk, unit)} for calls that ended without a reply" if risk else ""
    return BudgetError(
        f"the ceiling of {shown(ceiling, unit)} {whose} is reached: {shown(spent, unit)} spent{risky}, "
        f"and the next call ({request.model}) could add {shown(needed, unit)}; every reply so far is in "
        "the ledger, so raise the ceiling and run again",
        scope=scope,
        unit=unit,
        ceiling=ceiling,
        spent=spent,
        at_risk=risk,
        needed=needed,
    )
