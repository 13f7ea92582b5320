"""The chain, killed again and again: nothing lost, nothing asked twice, the same cells.

Runs the live path (client, key, budget) against a simulator in a process of its own, whose log tells what was asked.
COMPENDIUM_KILLS sets how many kills (2 here; the acceptance is 20).
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from compendium.asking.ledger import Ledger
from compendium.asking.simulated.faults import Faults
from compendium.asking.simulated.reply import request_key
from compendium.asking.simulated.server import serve
from compendium.frame.cells import read_cells
from compendium.frame.files import read_jsonl
from compendium.frame.paths import ROOT

KEY = "sk-canary-5b1f0c2e7d"
KILLS = int(os.environ.get("COMPENDIUM_KILLS", "2"))
MADE = (
    "alienbench/generations.csv",
    "alienbench/texts.jsonl",
    "alienbench/labels.csv",
    "cells/alienbench/01_generate.csv",
    "cells/alienbench/02_judge.csv",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """This project, its first two AlienBench notebooks, and a live profile that asks a local server."""
    folder = tmp_path_factory.mktemp("live")
    for name in ("lib", "compendium", "params", "data/instruments", "data/published", "data/simulated"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "notebooks").mkdir()
    shutil.copytree(ROOT / "notebooks/alienbench", folder / "notebooks/alienbench")
    live = folder / "params" / "live.yaml"
    live.write_text(live.read_text().replace("dollars: 25.0", "dollars: 500.0"))
    return folder


def start(folder, url, out, targets=(MADE[0], MADE[2])):
    """A live run of the chain up to `targets` (none: all of it), in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "OPENROUTER_API_KEY": KEY,
        "COMPENDIUM_BASE_URL": url,
    }
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "compendium",
            "--profile",
            "live",
            "--study",
            "alienbench",
            "--smoke",
            "1",
            "--build",
            str(out),
            "--",
            *(str(out / name) for name in targets),
        ],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def kill_all(process):
    """SIGKILL for the command and everything it started: no one gets to tidy up."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        try:
            member.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            pass
    process.communicate()


def lines(log):
    return [json.loads(line) for line in log.read_text().splitlines() if line.strip()] if log.exists() else []


def stored(out):
    """The server's names of the requests whose first reply the ledger holds."""
    path = out / "ledgers" / "alienbench.sqlite"
    if not path.exists():
        return set()
    with Ledger(path, readonly=True) as ledger:
        return {request_key(ledger.content(row["request"])) for row in ledger.rows() if row["attempt"] == 0}


def contents(out):
    return [(out / name).read_bytes() for name in MADE]


@pytest.fixture(scope="module")
def undisturbed(project, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    with serve(("alienbench",)) as server:
        process = start(project, server.base_url, out)
        shown, _ = process.communicate(timeout=240)
    assert process.returncode == 0, shown
    return contents(out)


def test_killed_at_random_moments(project, undisturbed, tmp_path):
    log, out, rng, seen = tmp_path / "server.jsonl", tmp_path / "out", random.Random(7), []
    slow = Faults(rate=1.0, kinds=("slow",), slow_s=0.25, patience=10**9)
    with serve(("alienbench",), faults=slow, log=log) as server:
        while True:
            process = start(project, server.base_url, out)
            if len(seen) == KILLS or not asked_more(process, log, len(lines(log))):
                shown, _ = process.communicate(timeout=300)
                break
            time.sleep(rng.uniform(0, 2))
            kill_all(process)
            time.sleep(0.5)  # what the server was still answering gets its line in the log
            seen.append((stored(out), len(lines(log))))
    assert process.returncode == 0, shown
    assert contents(out) == undisturbed
    assert any(kept for kept, _ in seen), "no kill met a stored reply: nothing was tested"
    for kept, before in seen:
        again = [row["key"] for row in lines(log)[before:] if row["key"] in kept]
        assert not again, "asked again after its reply was stored"


def asked_more(process, log, before) -> bool:
    """Wait until the server has answered something new; False where the run ended without."""
    while process.poll() is None:
        if len(lines(log)) > before:
            return True
        time.sleep(0.05)
    return False


def test_with_every_kind_of_fault(project, undisturbed, tmp_path):
    with serve(("alienbench",), faults=Faults(rate=0.3, reply_rate=0.05, slow_s=0.05)) as server:
        process = start(project, server.base_url, tmp_path)
        shown, _ = process.communicate(timeout=300)
    assert process.returncode == 0, shown
    assert contents(tmp_path) == undisturbed
    told = (tmp_path / "notebooks/alienbench/02_judge.html").read_text()
    assert "429" in told or "rate limit" in told.lower(), "the counts tell what happened"


def test_a_judge_that_answers_nothing_useful(project, tmp_path):
    """The whole live chain of the study, to its tables, with one judge of no use."""
    useless = "openai/gpt-5.4"
    with serve(("alienbench",), faults=Faults(useless=(useless,))) as server:
        process = start(project, server.base_url, tmp_path, targets=[])
        shown, _ = process.communicate(timeout=400)
    assert process.returncode == 0, shown
    cells = read_cells(tmp_path / "cells.csv").set_index(["exhibit", "row", "column"])
    void = cells.loc["judge-void"].xs("count", level="column")["value"]
    descriptions = read_jsonl(tmp_path / "alienbench/texts.jsonl")
    assert len(void) > 1 and void.pop(useless) == len(descriptions) and (void == 0).all()
    assert cells.at[("table-11", useless, "rho"), "note"] == f"void: {useless}"
    warning = "WARNING: 100% of the replies of GPT-5.4 are void"
    assert all(warning in path.read_text() for path in (tmp_path / "tables/alienbench").glob("*.html"))
    assert "alienbench: cells" in shown


def test_the_key_is_in_no_file(undisturbed, project):
    """The live runs above wrote notebooks, pages, ledgers and cells; none holds the key they used."""
    hits = [
        path for path in project.parent.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]
    assert not hits


def test_the_ceiling_holds_to_the_call(project, tmp_path):
    """An estimate that was too low lets the run start; the ceiling stops it before the call that could pass it."""
    text = (project / "params/live.yaml").read_text()
    dear = (
        text.replace("dollars: 500.0", "dollars: 10.0")
        .replace("default: 1000", "default: 1")
        .replace("alienbench/judging: 300", "alienbench/judging: 1")
        .replace("concurrency: 16", "concurrency: 16\n  prices: {input: 0.0, output: 1000.0}")
    )
    (project / "params/live.yaml").write_text(dear)
    try:
        with serve(("alienbench",)) as server:
            process = start(project, server.base_url, tmp_path)
            shown, _ = process.communicate(timeout=200)
    finally:
        (project / "params/live.yaml").write_text(text)
    assert process.returncode != 0 and "BudgetError: the ceiling of $10.0000 in total is reached" in shown
    with Ledger(tmp_path / "ledgers/alienbench.sqlite", readonly=True) as ledger:
        assert 5 < ledger.spent()["total"]["dollars"] <= 10
