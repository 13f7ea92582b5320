"""The ledger's file: what it holds, who may write, and one clear error for each way it can be unusable."""

import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from compendium.asking.account import spent_on
from compendium.asking.budget import SPENDING
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import LedgerError
from compendium.asking.ledger import COLUMNS, Ledger
from compendium.asking.request import Request
from compendium.asking.stage import run_stage
from compendium.frame.paths import ROOT
from tests.compendium.asking.loopback import Loopback


def asked(number, **more):
    return Request("m", [{"role": "user", "content": f"question {number}"}], seed=number, **more)


def reply_row(request, attempt=0, text="yes", **more):
    row = dict.fromkeys(COLUMNS)
    row.update(
        request=request.digest,
        attempt=attempt,
        stage="s",
        model=request.model,
        sample=request.sample,
        text=text,
        usage_estimated=0,
        cost=0.25,
        tries=1,
        latency=0.1,
        created=1.0,
        **more,
    )
    return row


def fill(ledger, requests):
    with ledger.writing("loopback"):
        ledger.commit([("reply", reply_row(request), request.content) for request in requests])


def test_what_is_stored_is_found(tmp_path):
    ledger = Ledger(tmp_path / "sub" / "l.sqlite")
    requests = [asked(i) for i in range(1200)]
    fill(ledger, requests)
    with ledger.writing("loopback"):
        ledger.commit([("reply", reply_row(requests[3], 1, "again"), requests[3].content)])
    assert len(ledger) == 1201
    found = ledger.lookup([request.digest for request in requests])
    assert len(found) == 1200
    assert [row["text"] for row in found[requests[3].digest]] == ["yes", "again"]
    assert found[requests[5].digest][0]["cost"] == 0.25
    assert ledger.have([requests[7].digest, asked(-1).digest]) == {requests[7].digest}
    assert ledger.content(requests[7].key) == requests[7].content
    with pytest.raises(LedgerError, match="no request"):
        ledger.content(asked(-1).key)


def test_rows_come_in_an_order_that_no_run_changes(tmp_path):
    requests = [asked(i) for i in range(1100)]
    for name, order in (("a", requests), ("b", requests[::-1])):
        ledger = Ledger(tmp_path / name)
        for part in range(0, len(order), 300):
            fill(ledger, order[part : part + 300])
        ledger.dump(tmp_path / f"{name}.jsonl")
    keys = [row["request"] for row in ledger.rows()]
    assert keys == sorted(keys) and len(keys) == 1100
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert b"latency" not in (tmp_path / "a.jsonl").read_bytes()
    ledger.dump(tmp_path / "c.jsonl", volatile=True)
    assert b'"latency": 0.1' in (tmp_path / "c.jsonl").read_bytes()


def test_a_reply_is_never_overwritten(tmp_path):
    ledger = Ledger(tmp_path / "l")
    fill(ledger, [asked(1)])
    with pytest.raises(LedgerError, match="UNIQUE"):
        fill(ledger, [asked(1)])
    assert len(ledger) == 1


def test_a_failed_transaction_leaves_nothing_behind(tmp_path):
    ledger = Ledger(tmp_path / "l")
    fill(ledger, [asked(1)])
    with pytest.raises(LedgerError):
        fill(ledger, [asked(2), asked(1)])
    assert ledger.have([asked(2).digest]) == set()
    fill(ledger, [asked(2)])
    assert len(ledger) == 2


def test_what_was_spent(tmp_path):
    folder = tmp_path / "ledgers"
    for name in ("a", "b"):
        ledger = Ledger(folder / f"{name}.sqlite")
        with ledger.writing():
            ledger.commit(
                [
                    ("charge", "m", {"dollars": 0.5, "tokens": 10, "calls": 1}),
                    ("charge", "n", {"dollars": float("nan"), "tokens": 5, "calls": 1}),
                    ("open", "call-1", "m", {"dollars": 2.0, "tokens": 100}),
                    ("open", "call-2", "m", {"dollars": 3.0, "tokens": 100}),
                    ("lost", "call-1"),
                    ("close", "call-2"),
                    ("fault", "s", "m", "timeout"),
                    ("fault", "s", "m", "timeout"),
                ]
            )
        ledger.close()
    spent = Ledger(folder / "a.sqlite").spent()
    once = dict(zip(SPENDING, (0.5, 15, 2, 2.0, 100, 1), strict=True))
    assert spent["total"] == once
    assert spent["m"]["risk_dollars"] == 2.0 and spent["n"]["tokens"] == 5
    assert Ledger(folder / "a.sqlite").faults().to_dict("records") == [
        {"stage": "s", "model": "m", "kind": "timeout", "count": 2}
    ]
    both = [Ledger(folder / f"{name}.sqlite") for name in ("a", "b")]
    assert spent_on(tmp_path / "none", both) == {unit: 2 * amount for unit, amount in once.items()}


HOLD = """
import sys
from compendium.asking.ledger import Ledger
with Ledger(sys.argv[1]).writing("loopback"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_gets_one_clear_error(tmp_path):
    path = tmp_path / "l.sqlite"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        ledger = Ledger(path)
        with pytest.raises(LedgerError, match=f"in use by process {holder.pid}"), ledger.writing("loopback"):
            pass
        assert len(ledger) == 0  # reading is free
        waiting = Ledger(path, wait=20)
        threading.Timer(0.1, holder.kill).start()
        fill(waiting, [asked(1)])  # a killed process holds nothing, and who waits gets its turn
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    assert len(ledger) == 1


def test_one_process_cannot_write_twice_at_once(tmp_path):
    ledger = Ledger(tmp_path / "l")
    with ledger.writing(), pytest.raises(LedgerError, match=f"in use by process {os.getpid()}"):
        with Ledger(tmp_path / "l").writing():
            pass


def test_simulated_and_remote_replies_do_not_mix(tmp_path):
    ledger = Ledger(tmp_path / "l.sqlite")
    fill(ledger, [asked(1)])
    with (
        pytest.raises(LedgerError, match="loopback endpoint.*remote.*ledger of its own"),
        ledger.writing("remote"),
    ):
        pass
    with ledger.writing("loopback"):
        pass


def test_a_ledger_of_another_version(tmp_path):
    Ledger(tmp_path / "l").close()
    with sqlite3.connect(tmp_path / "l") as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(LedgerError, match="version 7.*writes version 1"):
        Ledger(tmp_path / "l")


def test_a_file_that_is_no_ledger(tmp_path):
    (tmp_path / "text").write_text("model,score\n" * 200)
    with pytest.raises(LedgerError, match="text: is damaged or no ledger.*move it away"):
        Ledger(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(LedgerError, match="no ledger of replies"):
        Ledger(tmp_path / "other.sqlite")


def test_a_damaged_ledger(tmp_path):
    ledger = Ledger(tmp_path / "l")
    fill(ledger, [asked(i) for i in range(300)])
    ledger.close()
    content = bytearray((tmp_path / "l").read_bytes())
    content[4096 * 2 :] = b"\x17" * (len(content) - 4096 * 2)
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        list(Ledger(tmp_path / "l").rows())


def test_read_only(tmp_path):
    with pytest.raises(LedgerError, match="no such ledger"):
        Ledger(tmp_path / "none", readonly=True)
    ledger = Ledger(tmp_path / "l")
    fill(ledger, [asked(1)])
    reader = Ledger(tmp_path / "l", readonly=True)
    assert len(reader) == 1
    with pytest.raises(LedgerError, match="read-only"), reader.writing():
        pass
    with pytest.raises(LedgerError, match="read-only.*make it writable"):
        reader.commit([("charge", "m", {"dollars": 1.0, "tokens": 1, "calls": 1})])


def test_a_path_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / "file" / "l.sqlite")
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path)


def test_repr_names_the_file(tmp_path):
    with Ledger(tmp_path / "l.sqlite") as ledger:
        assert "l.sqlite" in repr(ledger)


def test_a_commit_waits_for_the_disk(tmp_path):
    ledger = Ledger(tmp_path / "l")
    full = 2
    assert ledger._read("PRAGMA synchronous") == [(full,)]
    assert ledger._read("PRAGMA journal_mode") == [("wal",)]


def test_another_service_under_the_same_name_is_refused_unless_it_is_declared_one(tmp_path):
    one, other = "https://one.example/v1", "https://other.example/v1"
    with Ledger(tmp_path / "l") as ledger, ledger.writing():
        ledger.check_service("m", Endpoint(one))
        ledger.check_service("m", Endpoint(one + "/"))
        ledger.check_service("n", Endpoint(other))
        with pytest.raises(
            LedgerError, match=r"replies of m from https://one.example/v1, .*same_as: \[https://one"
        ):
            ledger.check_service("m", Endpoint(other))
        ledger.check_service("m", Endpoint(other, same_as=[one]))


def test_a_stage_asks_no_other_service_for_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(Endpoint, "loopback", property(lambda self: False))
    first, second = [Request("m", [{"role": "user", "content": text}]) for text in "ab"]
    with Ledger(tmp_path / "l") as ledger:
        with Loopback() as server:
            run_stage([first], Endpoint(server.url, None), ledger, progress=False)
        with Loopback() as server:
            run_stage([first], Endpoint(server.url, None), ledger, progress=False)  # nothing is missing
            with pytest.raises(LedgerError, match="holds replies of m from http://127"):
                run_stage([first, second], Endpoint(server.url, None), ledger, progress=False)
            assert server.log == []
