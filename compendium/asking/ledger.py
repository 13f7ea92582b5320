"""The ledger: every reply, one row each, safe on disk before anything uses it.

One SQLite file in write-ahead mode. A row is named by the request's digest and the attempt (0, 1, ...
re-asks). Replies are never altered or deleted. `synchronous=FULL`: a commit returns when the log is on the
disk, so a killed process loses nothing and neither does a power cut; as many replies share a commit as arrive
during the last one (`compendium.asking.writer`), which is what makes that affordable.
"""

import contextlib
import json
import math
import os
import sqlite3
import threading
import uuid
import zlib
from pathlib import Path

import pandas as pd

from compendium.asking.budget import SPENDING
from compendium.asking.errors import LedgerError
from compendium.asking.locks import exclusive
from compendium.frame.files import atomic_write
from compendium.frame.paths import shown

VERSION = 1
APPLICATION = 0x4C656467  # "Ledg", in the header of the file
COLUMNS = tuple(
    "request attempt stage model model_resolved sample seed text reasoning refusal finish_reason "
    "prompt_tokens completion_tokens reasoning_tokens usage_estimated cost latency tries call_id "
    "created".split()
)
# These differ from run to run; all else follows from the request.
VOLATILE = ("latency", "tries", "call_id", "created")
CHUNK = 500  # keys a query; SQLite takes at least 999 variables

_SCHEMA = """
CREATE TABLE replies (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, attempt INTEGER NOT NULL, stage TEXT, model TEXT NOT NULL,
    model_resolved TEXT, sample INTEGER NOT NULL, seed INTEGER, text TEXT NOT NULL, reasoning TEXT, refusal
    TEXT, finish_reason TEXT, prompt_tokens INTEGER, completion_tokens INTEGER, reasoning_tokens INTEGER,
    usage_estimated INTEGER NOT NULL, cost REAL, latency REAL, tries INTEGER, call_id TEXT, created REAL,
    UNIQUE (request, attempt));
CREATE TABLE requests (request BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE open_calls (
    id TEXT PRIMARY KEY, model TEXT NOT NULL, dollars REAL, tokens INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE charged (model TEXT PRIMARY KEY, dollars REAL NOT NULL, tokens INTEGER NOT NULL, calls INTEGER
NOT NULL); CREATE TABLE faults (
    stage TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (stage, model, kind)) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_INSERT = f"INSERT INTO replies ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


class Ledger:
    """A file of replies. Any number of readers; one writer at a time, while a stage runs (`writing()`).

    Parameters
    ----------
    path : the file; made with its folder where absent, unless `readonly`.
    readonly : open for reading only.
    wait : seconds to wait for another writer to end, before that is an error.

    Raises LedgerError for a file that is no ledger, is damaged, is of another version or cannot be opened.
    """

    def __init__(self, path, readonly: bool = False, wait: float = 0.0):
        self.path, self.readonly, self.wait = Path(path), readonly, wait
        self._lock = threading.Lock()
        if readonly and not self.path.is_file():
            raise LedgerError(f"{shown(self.path)}: there is no such ledger to read")
        with self._speaking():
            if not readonly:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._connect()
            self._prepare()

    def __repr__(self):
        return f"Ledger({shown(self.path)!r})"

    def __len__(self):
        return self._read("SELECT count(*) FROM replies")[0][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the file; a ledger is also closed when nothing refers to it any more."""
        self._db.close()

    # reading -----------------------------------------------------------------------------------------------

    def lookup(self, digests) -> dict:
        """The stored replies to requests: {digest: [row, ...]} by attempt, a row a dict with `COLUMNS`."""
        found = {}
        digests = list(digests)
        for start in range(0, len(digests), CHUNK):
            chunk = digests[start : start + CHUNK]
            marks = ", ".join("?" * len(chunk))
            for row in self._read(
                f"SELECT {', '.join(COLUMNS)} FROM replies WHERE request IN ({marks}) "
                "ORDER BY request, attempt",
                chunk,
            ):
                found.setdefault(row[0], []).append(dict(zip(COLUMNS, row, strict=True)))
        return found

    def have(self, digests) -> set:
        """Which of these requests have a reply."""
        digests, found = list(digests), set()
        for start in range(0, len(digests), CHUNK):
            chunk = digests[start : start + CHUNK]
            marks = ", ".join("?" * len(chunk))
            found.update(
                row[0] for row in self._read(f"SELECT request FROM replies WHERE request IN ({marks})", chunk)
            )
        return found

    def rows(self):
        """Every reply, by request and attempt (an order that no run changes): dicts with `COLUMNS`.

        Read in pieces, so the memory this takes does not grow with the ledger.
        """
        last = (b"", -1)
        while True:
            chunk = self._read(
                f"SELECT {', '.join(COLUMNS)} FROM replies WHERE (request, attempt) > (?, ?) "
                f"ORDER BY request, attempt LIMIT {CHUNK}",
                last,
            )
            for row in chunk:
                yield dict(zip(COLUMNS, row, strict=True))
            if len(chunk) < CHUNK:
                return
            last = chunk[-1][:2]

    def content(self, key) -> dict:
        """What was sent for a request (digest or hexadecimal key). Raises LedgerError for an unknown one."""
        digest = bytes.fromhex(key) if isinstance(key, str) else key
        found = self._read("SELECT content FROM requests WHERE request = ?", [digest])
        if not found:
            raise LedgerError(f"{shown(self.path)}: no request {digest.hex()[:12]}…")
        return json.loads(zlib.decompress(found[0][0]))

    def spent(self) -> dict:
        """What all calls cost: {scope: {unit: amount}}, scope "total" and each model, units `SPENDING`.

        `risk_dollars`, `risk_tokens` and `risk_calls` are of calls that ended without a reply (a timeout, a
        killed run) and may still be charged, each at its most.
        """
        charged = self._read("SELECT model, dollars, tokens, calls, 0, 0, 0 FROM charged")
        risked = self._read(
            "SELECT model, 0, 0, 0, total(dollars), sum(tokens), count(*) FROM open_calls GROUP BY model"
        )
        scopes = {"total": dict.fromkeys(SPENDING, 0)}
        for model, *amounts in charged + risked:
            for scope in ("total", model):
                entry = scopes.setdefault(scope, dict.fromkeys(SPENDING, 0))
                for unit, amount in zip(SPENDING, amounts, strict=True):
                    entry[unit] += amount
        return scopes

    @property
    def id(self) -> str:
        """The ledger's own name, the same wherever the file lies; of a file from before there were such: its path."""
        found = self._read("SELECT value FROM meta WHERE name = 'id'")
        return found[0][0] if found else str(self.path.resolve())

    def charged(self) -> list:
        """What is known to be spent: [(model, dollars, tokens, calls)]."""
        return self._read("SELECT model, dollars, tokens, calls FROM charged ORDER BY model")

    def open_calls(self) -> list:
        """Calls that ended without a word or are under way, each at its most: [(id, model, dollars, tokens)]."""
        return self._read("SELECT id, model, dollars, tokens FROM open_calls ORDER BY id")

    def take_costs(self, shard: "Ledger") -> None:
        """Take over what a shard's calls cost and may cost, faults included; what is taken already is not taken
        again. Only within `writing()`."""
        with self._speaking(), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            before = {
                model: amounts
                for model, *amounts in self._db.execute(
                    "SELECT model, dollars, tokens, calls FROM merged WHERE shard = ?", [shard.id]
                )
            }
            for model, *now in shard.charged():
                new = [a - b for a, b in zip(now, before.get(model, (0, 0, 0)), strict=True)]
                self._do_charge(model, dict(zip(("dollars", "tokens", "calls"), new, strict=True)))
                self._db.execute(
                    "INSERT OR REPLACE INTO merged VALUES (?, ?, ?, ?, ?)", [shard.id, model, *now]
                )
            for name, url in shard._read("SELECT name, value FROM meta WHERE name LIKE 'service:%'"):
                self._db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", [name, url])
            for call in shard.open_calls():
                self._db.execute("INSERT OR IGNORE INTO open_calls VALUES (?, ?, ?, ?, 'no reply')", call)

    def faults(self) -> pd.DataFrame:
        """Faults met in all runs so far: columns stage, model, kind, count."""
        rows = self._read("SELECT stage, model, kind, count FROM faults ORDER BY stage, model, kind")
        return pd.DataFrame(rows, columns=["stage", "model", "kind", "count"])

    def dump(self, path, volatile: bool = False) -> Path:
        """Write every reply as JSON lines, by request and attempt.

        Without the `VOLATILE` columns the bytes follow from what was asked and answered alone: the same for a
        run that was killed and resumed as for one that was not.
        """
        keep = [name for name in COLUMNS if volatile or name not in VOLATILE]
        with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
            for row in self.rows():
                row["request"] = row["request"].hex()
                handle.write(json.dumps({name: row[name] for name in keep}, ensure_ascii=False) + "\n")
        return Path(path)

    # writing -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, source: str = ""):
        """Hold the ledger for writing; `source` is "loopback" or "remote" and must stay the same.

        Raises LedgerError where another process (or stage) is writing, where the file cannot be written, and
        where simulated replies (from this machine, "loopback") would be mixed with those of a remote
        endpoint.
        """
        if self.readonly:
            raise LedgerError(
                f"{shown(self.path)}: opened read-only; open it with Ledger(path) to write to it"
            )
        lock = self.path.with_name(self.path.name + ".lock")
        with exclusive(lock, f"the ledger {shown(self.path)}", self.wait):
            with self._speaking(), self._lock, self._db:
                self._db.execute("BEGIN IMMEDIATE")
                known = self._db.execute("SELECT value FROM meta WHERE name = 'source'").fetchone()
                if known and source and known[0] != source:
                    raise LedgerError(
                        f"{shown(self.path)}: holds replies of a {known[0]} endpoint, and this stage "
                        f"asks a {source} one: give it a ledger of its own"
                    )
                if source and not known:
                    self._db.execute("INSERT INTO meta VALUES ('source', ?)", [source])
            try:
                yield self
            finally:
                with contextlib.suppress(
                    LedgerError
                ):  # the log is as safe as the file; this only makes one file of two
                    self._read("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_service(self, model: str, endpoint) -> None:
        """Keep the address that answers for a model. Raises LedgerError where another one's replies are here, unless
        the endpoint says that the two are one service (`same_as`). Only within `writing()`."""
        url, name = endpoint.base_url.rstrip("/"), f"service:{model}"
        found = self._read("SELECT value FROM meta WHERE name = ?", [name])
        if not found:
            with self._speaking(), self._lock, self._db:
                self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [name, url])
        elif found[0][0] != url and found[0][0] not in {other.rstrip("/") for other in endpoint.same_as}:
            raise LedgerError(
                f"{shown(self.path)}: holds replies of {model} from {found[0][0]}, and base_url is {url}: give this run "
                f"another folder, or, where the two are one service, say so: endpoint: same_as: [{found[0][0]}]"
            )

    def commit(self, operations) -> None:
        """Write operations in one transaction; on disk when this returns. Only within `writing()`.

        An operation is (name, values): ("reply", row and request content), ("open", id, model, amounts),
        ("close", id), ("lost", id), ("charge", model, amounts), ("fault", stage, model, kind).
        """
        with self._speaking(), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for name, *values in operations:
                getattr(self, f"_do_{name}")(*values)

    def _do_reply(self, row, content):
        self._db.execute(_INSERT, [_storable(row[name]) for name in COLUMNS])
        self._db.execute(
            "INSERT OR IGNORE INTO requests VALUES (?, ?)",
            [row["request"], zlib.compress(json.dumps(content, ensure_ascii=False).encode(), 1)],
        )

    def _do_open(self, call, model, amounts):
        self._db.execute(
            "INSERT INTO open_calls VALUES (?, ?, ?, ?, 'under way')",
            [call, model, _storable(amounts["dollars"]), amounts["tokens"]],
        )

    def _do_close(self, call):
        self._db.execute("DELETE FROM open_calls WHERE id = ?", [call])

    def _do_lost(self, call):
        self._db.execute("UPDATE open_calls SET state = 'no reply' WHERE id = ?", [call])

    def _do_charge(self, model, amounts):
        dollars = 0.0 if math.isnan(amounts["dollars"]) else amounts["dollars"]
        self._db.execute(
            "INSERT INTO charged VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET dollars = dollars + "
            "excluded.dollars, tokens = tokens + excluded.tokens, calls = calls + excluded.calls",
            [model, dollars, amounts["tokens"], amounts["calls"]],
        )

    def _do_fault(self, stage, model, kind):
        self._db.execute(
            "INSERT INTO faults VALUES (?, ?, ?, 1) ON CONFLICT (stage, model, kind) "
            "DO UPDATE SET count = count + 1",
            [stage, model, kind],
        )

    # the file ----------------------------------------------------------------------------------------------

    def _connect(self):
        mode = "rwc"
        if (
            self.readonly
        ):  # where SQLite cannot make its shared index beside the file, nobody is writing to it either
            mode = "ro" if os.access(self.path.parent, os.W_OK) else "ro&immutable=1"
        name = f"{self.path.resolve().as_uri()}?mode={mode}"
        # One connection, shared by threads under `_lock`; transactions are begun and ended by hand.
        return sqlite3.connect(name, uri=True, timeout=30, isolation_level=None, check_same_thread=False)

    def _prepare(self):
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and not self.readonly:
            self._create()
        elif application != APPLICATION:
            raise LedgerError(
                f"{shown(self.path)}: is an SQLite file but no ledger of replies; name another file"
            )
        elif version != VERSION:
            raise LedgerError(
                f"{shown(self.path)}: is a ledger of version {version}, and this code writes version "
                f"{VERSION}; keep it for the code that made it and name a new file"
            )
        if not self.readonly:
            self._db.execute("PRAGMA synchronous = FULL")
            if not self._db.execute("SELECT 1 FROM meta WHERE name = 'id'").fetchone():
                with contextlib.suppress(sqlite3.OperationalError), self._db:  # a file that cannot be written
                    self._db.execute("BEGIN IMMEDIATE")
                    self._db.execute("INSERT OR IGNORE INTO meta VALUES ('id', ?)", [uuid.uuid4().hex])
                    self._db.execute(
                        "CREATE TABLE IF NOT EXISTS merged (shard TEXT, model TEXT, dollars REAL, tokens INTEGER, "
                        "calls INTEGER, PRIMARY KEY (shard, model)) WITHOUT ROWID"
                    )

    def _create(self):
        if self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise LedgerError(
                f"{shown(self.path)}: this file system cannot hold SQLite's write-ahead log (network "
                "folders cannot); put ledgers on a local disk"
            )
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # nobody was faster
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    def _read(self, query, values=()):
        with self._speaking(), self._lock:
            return self._db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _speaking(self):
        """Turn SQLite's and the system's errors into one sentence that names the file."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            problem = _explain(error)
        except OSError as error:
            problem = f"cannot be opened ({error.strerror or type(error).__name__})"
        else:
            return
        raise LedgerError(f"{shown(self.path)}: {problem}") from None


def _explain(error) -> str:
    text = str(error)
    if "readonly" in text or "read-only" in text:
        return "cannot be written (read-only); make it writable or name another file"
    if "unable to open" in text:
        return "cannot be opened; check the path and its permissions"
    if "full" in text:
        return "the disk is full; every reply before this one is safe: make room and run again"
    if "locked" in text or "busy" in text:
        return "another process holds it locked; wait for it to end and run again"
    if "not a database" in text or "malformed" in text or "corrupt" in text or "no such" in text:
        return f"is damaged or no ledger ({text}); move it away and run again, or restore a copy"
    return f"SQLite says: {text}"


def _storable(value):
    return None if isinstance(value, float) and math.isnan(value) else value
