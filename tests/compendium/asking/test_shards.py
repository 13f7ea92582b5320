"""Stages in shards: each request asked once, by one of them, and the merged ledger as good as an unsharded
one's.
"""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

from compendium.asking.budget import Budget
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError
from compendium.asking.ledger import Ledger
from compendium.asking.request import Request
from compendium.asking.shards import NO_STAGE, Shard, ShardError, ask_share, main, merge
from compendium.asking.stage import run_stage
from compendium.frame.params import study_params
from compendium.frame.paths import ROOT
from tests.compendium.asking.loopback import Loopback, completion

REQUESTS = [
    Request("m", [{"role": "user", "content": f"number {i}"}], sample=i, max_tokens=5) for i in range(40)
]
PRICES = {"m": {"input": 10.0, "output": 10.0}}


def endpoint(server):
    return Endpoint(server.url, key_env=None, concurrency=8)


def ask(server, folder, count, requests=REQUESTS, indices=None, **options):
    """Every shard (or those of `indices`) of a stage; the study's ledger is main.sqlite."""
    with Ledger(folder / "main.sqlite") as whole:
        for index in range(count) if indices is None else indices:
            ask_share(
                requests,
                endpoint(server),
                whole,
                folder=folder / "shards",
                shard=Shard(index, count),
                label="asking all",
                progress=False,
                **options,
            )


def content(path):
    """What was asked and answered, without what differs from run to run."""
    with Ledger(path, readonly=True) as ledger:
        return ledger.dump(path.with_suffix(".jsonl")).read_bytes().replace(b"asking all", b"stage")


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_request_falls_to_one_shard(count):
    held = [[shard for shard in range(count) if Shard(shard, count).holds(request)] for request in REQUESTS]
    assert all(len(shards) == 1 for shards in held) and len({shards[0] for shards in held}) == count


def test_merged_shards_equal_one_stage(tmp_path):
    with Loopback() as server, Ledger(tmp_path / "alone.sqlite") as alone:
        run_stage(REQUESTS, endpoint(server), alone, progress=False)
        server.log.clear()
        ask(server, tmp_path, 3)
        assert len(server.log) == len(REQUESTS), "no request was asked twice"
        assert merge(tmp_path / "shards", tmp_path) == len(REQUESTS)
        assert content(tmp_path / "main.sqlite") == content(tmp_path / "alone.sqlite")
        server.log.clear()
        with Ledger(tmp_path / "main.sqlite") as whole:
            result = run_stage(REQUESTS, endpoint(server), whole, progress=False)
            assert server.log == [] and all(reply.valid for reply in result.replies)
    assert list((tmp_path / "shards").iterdir()) == []


def test_a_merge_broken_off_and_repeated_counts_nothing_twice(tmp_path):
    budget = Budget(prices=PRICES)
    with Loopback() as server:
        ask(server, tmp_path, 2, budget=budget)
        copies = {path.name: path.read_bytes() for path in (tmp_path / "shards").glob("*.sqlite")}
        assert merge(tmp_path / "shards", tmp_path) == len(REQUESTS)
        with Ledger(tmp_path / "main.sqlite") as whole:
            spent = whole.spent()
        for name, data in copies.items():
            (tmp_path / "shards" / name).write_bytes(data)
        assert merge(tmp_path / "shards", tmp_path) == 0
    with Ledger(tmp_path / "main.sqlite") as whole:
        assert whole.spent() == spent and spent["total"]["calls"] == len(REQUESTS)
        assert spent["total"]["dollars"] == pytest.approx(len(REQUESTS) * 15 * 10 / 1e6)


def test_what_the_ledger_holds_is_not_asked_again(tmp_path):
    with Loopback() as server:
        with Ledger(tmp_path / "main.sqlite") as whole:
            run_stage(REQUESTS[:25], endpoint(server), whole, progress=False)
        server.log.clear()
        ask(server, tmp_path, 4)
        assert len(server.log) == 15


def test_a_shard_asks_again_for_what_is_invalid(tmp_path):
    def answer(body, _):
        return completion("good" if body.get("seed") else "bad", body["model"])

    def parse(text):
        if text != "good":
            raise ValueError("not what was asked for")
        return text

    with Loopback(answer) as server:
        ask(server, tmp_path, 2, REQUESTS[:6], parse=parse, retries_on_invalid=1)
        merge(tmp_path / "shards", tmp_path)
    with Ledger(tmp_path / "main.sqlite") as whole:
        assert sorted({row["attempt"] for row in whole.rows()}) == [0, 1]


def test_the_shards_share_the_ceiling(tmp_path):
    budget = Budget(calls=8)
    with Loopback() as server:
        refused = 0
        for index in range(4):
            try:
                ask(server, tmp_path, 4, indices=[index], budget=budget)
            except BudgetError:
                refused += 1
        assert (len(server.log), refused > 0) == (8, True)
        merge(tmp_path / "shards", tmp_path)
        with pytest.raises(BudgetError, match="8 calls spent"), Ledger(tmp_path / "main.sqlite") as whole:
            run_stage(REQUESTS, endpoint(server), whole, budget=budget, progress=False)
        assert len(server.log) == 8


@pytest.mark.parametrize("text", ["", "3", "3/3", "-1/3", "a/b", "1/0"])
def test_a_shard_that_cannot_be_is_refused(text):
    with pytest.raises(ShardError, match="is written like 0/20"):
        Shard.read(text)


def test_a_file_that_is_no_shards_ledger_is_named(tmp_path):
    (tmp_path / "else.sqlite").touch()
    with pytest.raises(ShardError, match="else.sqlite: is no shard's ledger"):
        merge(tmp_path, tmp_path)


def test_a_notebook_is_run_up_to_its_first_stage(tmp_path):
    """AlienBench's first notebook, small, as the chain's shard jobs run it; then its own call asks for
    nothing.
    """
    from compendium.studies.alienbench import stages as alienbench_stages

    given = study_params("alienbench", "demo", smoke=True)
    notebook = "notebooks/alienbench/01_generate.ipynb"
    names = [name for name in given if f'"{name} = ' in (ROOT / notebook).read_text(encoding="utf-8")]
    values = {
        "profile": "demo",
        "out": str(tmp_path),
        "source": "simulated",
        **{name: given[name] for name in names},
    }
    folder = tmp_path / "ledgers" / "shards" / "alienbench_01_generate" / "1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments in (
        ["ask", notebook, json.dumps(values), str(folder), "0/2"],
        ["ask", notebook, json.dumps(values), str(folder), "1/2"],
        ["merge", str(folder)],
    ):
        said = subprocess.run(
            [sys.executable, "-m", "compendium.asking.shards", *arguments],
            cwd=ROOT,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["0-of-2.done", "1-of-2.done", "merged.done"]
    assert not (tmp_path / "cells").exists(), "a shard writes its ledger and nothing else"
    made = alienbench_stages.generate(
        SimpleNamespace(**given), source="simulated", profile="demo", out=tmp_path
    )
    assert made.report.total("requests") == made.report.total("from_ledger") > 100


TWO_STAGES = """
from compendium.asking.request import Request
from compendium.asking.study import asking
said = lambda texts: [Request("m", [{"role": "user", "content": text}], sample=i, max_tokens=5)
                      for i, text in enumerate(texts)]
with asking("main", ["m"], source="endpoint", profile="live", out=out) as ask:
    first = ask(said([f"number {i}" for i in range(12)]), "first")
    second = ask(said([f"{reply.text}, and?" for reply in first.replies]), "second")
open(out + "/mine", "w").close()
open(end, "a").write("reached")
"""


@pytest.fixture
def two(tmp_path, monkeypatch):
    """A notebook of two stages and its shards' jobs, run as ever by papermill."""
    book = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            nbformat.v4.new_code_cell("out = end = ''", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(TWO_STAGES),
        ],
    )
    notebook = tmp_path / "01_two.ipynb"
    nbformat.write(book, notebook)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-nothing-but-a-test")
    job = lambda *arguments: main([str(argument) for argument in arguments])  # noqa: E731
    with Loopback() as server:
        monkeypatch.setenv("COMPENDIUM_BASE_URL", server.url)
        values = json.dumps({"out": str(tmp_path), "end": str(tmp_path / "end")})
        folder = tmp_path / "ledgers" / "shards" / "two"
        yield SimpleNamespace(
            folder=folder,
            server=server,
            merge=lambda stage: job("merge", folder / stage),
            ask=lambda stage, shard: job("ask", notebook, values, folder / stage, shard),
        )


def test_a_later_stage_is_split_too_when_the_one_before_is_merged(two, tmp_path):
    asked = []
    for stage in "1234":
        two.server.log.clear()
        assert two.ask(stage, "0/2") == two.ask(stage, "1/2") == two.merge(stage) == 0
        asked.append(len(two.server.log))
    assert asked == [12, 12, 0, 0]
    marks = [(two.folder / stage / "merged.done").read_text() for stage in "1234"]
    assert marks == ["", "", NO_STAGE, NO_STAGE]
    assert not (tmp_path / "mine").exists(), "a shard writes its ledger and nothing else"
    assert (tmp_path / "end").read_text() == "reached" * 2, "by the third stage's; the fourth's see its mark"
    with Ledger(tmp_path / "ledgers" / "main.sqlite", readonly=True) as whole:
        assert len(whole) == 24


def test_a_later_stage_asks_nothing_for_the_one_before(two, capsys):
    assert two.ask("1", "0/2") == two.merge("1") == 0
    two.server.log.clear()
    assert two.ask("2", "0/2") == 1
    assert "error: " in capsys.readouterr().err and two.server.log == []
