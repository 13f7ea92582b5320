"""Replies out to a file and back: nothing is asked again. What was spent, in words. `make clean` deletes none."""

import json
import shutil
import subprocess
import sys

import pytest

from compendium.asking.budget import Budget
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import LedgerError
from compendium.asking.ledger import Ledger
from compendium.asking.property import export_replies, import_replies, main
from compendium.asking.request import Request
from compendium.asking.sources import account_path
from compendium.asking.stage import run_stage
from compendium.frame.files import read_jsonl
from compendium.frame.paths import ROOT
from tests.compendium.asking.loopback import Loopback, completion

REQUESTS = [
    Request("m", [{"role": "user", "content": f"número {i}"}], max_tokens=5, sample=i) for i in range(7)
]


def ask(server, path, **options):
    with Ledger(path) as ledger:
        result = run_stage(REQUESTS, Endpoint(server.url, None), ledger, progress=False, **options)
        return [reply.text for reply in result.replies]


@pytest.fixture
def server():
    with Loopback() as opened:
        yield opened


def test_what_is_imported_is_not_asked_again(server, tmp_path):
    texts = ask(
        server, tmp_path / "here" / "study.sqlite", budget=Budget(prices={"m": {"input": 1, "output": 1}})
    )
    assert export_replies(tmp_path / "here", tmp_path / "replies.jsonl") == 7
    rows = read_jsonl(tmp_path / "replies.jsonl")
    assert {row["content"]["messages"][0]["content"] for row in rows} == {f"número {i}" for i in range(7)}
    assert all(row["model"] == "m" and row["cost"] == pytest.approx(15e-6) and row["text"] for row in rows)
    assert [import_replies(tmp_path / "replies.jsonl", tmp_path / "there") for _ in range(2)] == [7, 0]
    server.log.clear()
    assert ask(server, tmp_path / "there" / "study.sqlite") == texts
    assert server.log == []


def test_parquet_holds_the_same(server, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    ask(server, tmp_path / "study.sqlite")
    export_replies(tmp_path, tmp_path / "replies.jsonl")
    frame = pandas.read_parquet(tmp_path / "replies.parquet")
    assert list(frame["text"]) == [row["text"] for row in read_jsonl(tmp_path / "replies.jsonl")]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda row: row.pop("text"), "line 1: lacks 'text'"),
        (lambda row: row["content"].update(temperature=1.0), "row 1: `request` is not the name"),
        (lambda row: row.update(ledger="../../etc"), "row 1: .*`ledger` is none"),
    ],
)
def test_a_row_that_is_not_what_it_says_is_refused(change, words, server, tmp_path):
    ask(server, tmp_path / "study.sqlite")
    export_replies(tmp_path, tmp_path / "replies.jsonl")
    rows = read_jsonl(tmp_path / "replies.jsonl")
    change(rows[0])
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(LedgerError, match=words):
        import_replies(tmp_path / "replies.jsonl", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_no_ledger_is_said(tmp_path):
    with pytest.raises(LedgerError, match="holds no ledger"):
        export_replies(tmp_path, tmp_path / "replies.jsonl")


def test_what_was_spent_is_told_and_the_bill_taken(tmp_path, capsys):
    assert main(["spent"]) == 0
    assert "no account" in capsys.readouterr().out
    budget = Budget(dollars=9, prices={"m": {"input": 1e4, "output": 1e4}}, account=account_path("live"))
    with Loopback(lambda body, tries: "drop" if not tries else completion("fine", "m")) as server:
        ask(server, tmp_path / "study.sqlite", budget=budget)
    assert main(["spent"]) == 0
    shown = capsys.readouterr().out
    assert "7 calls ended without a reply" in shown
    assert "1.0500" in shown  # seven replies of 15 tokens at a cent each
    assert main(["spent", "--known", "2.5"]) == 0
    shown = capsys.readouterr().out
    assert "2.5000" in shown and "ended without" not in shown
    assert main(["spent", "--known", "much"]) == 2
    assert "KNOWN=much should be a number" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_clean_deletes_no_ledger_that_was_paid_for(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    kept = ["live/ledgers/a.sqlite", "live-smoke/ledgers/shards/r/1/b.sqlite", "mine/ledgers/c.sqlite"]
    gone = ["live/cells.csv", "demo/ledgers/d.sqlite", "lab/ledgers/e.sqlite", "mine/tables/f.tex"]
    for name in kept + gone:
        path = tmp_path / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    subprocess.run(
        ["make", "clean", f"PYTHON={sys.executable}"], cwd=tmp_path, check=True, capture_output=True
    )
    there = {
        path.relative_to(tmp_path / "build").as_posix()
        for path in tmp_path.rglob("build/**/*")
        if path.is_file()
    }
    assert there == set(kept)
