"""How 100 models × 100,000 generations would run: unit costs measured here, multiplied up.

    python tests/bench/bench_scaling.py [--models 100] [--generations 100000] [--write docs/scaling.md]

Measured on one core, each in the place it has in a run: asking (the ledger's commits included), what a
reply takes on the disk, starting again, merging shards (peer: SQLite copying the same rows with INSERT …
SELECT), requests in memory, resampling. With --write the two tables in the page are replaced by what was
measured.
"""

import argparse
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

import numpy as np  # noqa: E402
from bench_models import FEATURES, LABELS, Server, judge_requests, stage_seconds  # noqa: E402

from compendium.asking.endpoint import Endpoint  # noqa: E402
from compendium.asking.ledger import Ledger  # noqa: E402
from compendium.asking.replies import labels_from_reply  # noqa: E402
from compendium.asking.shards import Shard, ask_share, merge  # noqa: E402
from compendium.frame.params import profile_params, study_params  # noqa: E402
from lib.agreement import krippendorff_alpha_interval  # noqa: E402
from lib.resampling import bootstrap  # noqa: E402

CONCURRENCY = 32
TOKENS_OF = {"description": 1200, "judge's prompt": 2600, "judge's reply": 700}  # about AlienBench's
MERGE_MARK = 0.05  # of SQLite's own copying: ours also checks every row and carries its cost over


def shard(url, folder, count, text):
    """One shard of a judging stage (a process of its own)."""
    with Ledger(Path(folder) / "whole.sqlite") as whole:
        ask_share(
            judge_requests(count),
            Endpoint(url, None, concurrency=CONCURRENCY),
            whole,
            folder=Path(folder) / "shards",
            shard=Shard.read(text),
            label="judging",
            progress=False,
        )


def shards_seconds(url, folder, count, number):
    """Wall seconds of `number` shards side by side, the start of their processes included."""
    Ledger(folder / "whole.sqlite").close()
    began = time.perf_counter()
    jobs = [
        subprocess.Popen([sys.executable, __file__, "--shard", url, str(folder), str(count), f"{i}/{number}"])
        for i in range(number)
    ]
    if any(job.wait() for job in jobs):
        raise RuntimeError("a shard failed")
    return time.perf_counter() - began


def copy_seconds(source, target):
    """The peer of merging: SQLite copies the rows of one ledger into an empty one."""
    Ledger(target).close()
    began = time.perf_counter()
    with sqlite3.connect(target) as database:
        database.execute("ATTACH ? AS shard", [str(source)])
        for table in ("replies", "requests"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM shard.{table}")
    database.close()
    return time.perf_counter() - began


def request_costs(count=2000):
    """(bytes in memory, seconds to name) of a judge's request."""
    tracemalloc.start()
    requests = list(judge_requests(count))
    size = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    began = time.perf_counter()
    held = sum(Shard(0, 2).holds(request) for request in requests)
    if not 0 < held < count:
        raise RuntimeError("requests do not fall to both of two shards")
    return size, (time.perf_counter() - began) / count


def resampling_costs(models=20, items=(2000, 4000), B=1000):
    """(seconds a model, item and replicate of the bootstrap of means; seconds an item of alpha's
    interval).
    """
    rng = np.random.default_rng(1)
    spent = []
    for n in items:
        values = rng.integers(0, 11, size=(models, n)).astype(float)
        began = time.perf_counter()
        bootstrap(values, B=B, rng=rng)
        spent.append(time.perf_counter() - began)
    ratings = rng.integers(0, 11, size=(3, 50_000)).astype(float)
    began = time.perf_counter()
    krippendorff_alpha_interval(ratings, "interval", B=B, rng=rng)
    return (spent[1] - spent[0]) / ((items[1] - items[0]) * models * B), (
        time.perf_counter() - began
    ) / ratings.shape[1]


def measure(calls):
    """{name: value} of every unit cost."""
    found = {}
    with Server() as url, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        stage_seconds(url, folder / "warm.sqlite", 300)
        found["asking"] = stage_seconds(url, folder / "one.sqlite", calls) / calls
        found["again"] = stage_seconds(url, folder / "one.sqlite", calls) / calls
        found["disk"] = sum(path.stat().st_size for path in folder.glob("one.sqlite*")) / calls
        (folder / "few").mkdir()
        found["start"] = shards_seconds(url, folder / "few", CONCURRENCY, 1)
        (folder / "two").mkdir()
        shards_seconds(url, folder / "two", calls, 2)
        shards = sorted((folder / "two" / "shards").glob("*.sqlite"))
        copied = sum(copy_seconds(path, folder / f"copy-{i}.sqlite") for i, path in enumerate(shards))
        began = time.perf_counter()
        if merge(folder / "two" / "shards", folder / "two") != calls:
            raise RuntimeError("the merge lost replies")
        found["merge"] = (time.perf_counter() - began) / calls
        found["copy"] = copied / calls
    found["memory"], found["naming"] = request_costs()
    found["bootstrap"], found["alpha"] = resampling_costs()
    found["parse"] = min(_timed(lambda: labels_from_reply(LABELS, FEATURES)) for _ in range(200))
    return found


def _timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def unit_table(found):
    """The unit costs as a Markdown table."""
    rows = [
        ("a call asked, answered at once, parsed, on the disk", f"{1e3 * found['asking']:.2f} ms"),
        ("a stored reply found again", f"{1e6 * found['again']:.0f} µs"),
        ("a reply's text parsed and checked", f"{1e6 * found['parse']:.0f} µs"),
        ("a judge's reply in the ledger, with its request", f"{found['disk'] / 1024:.1f} KiB"),
        ("a request named (its hash)", f"{1e6 * found['naming']:.0f} µs"),
        ("a request in memory", f"{found['memory'] / 1024:.1f} KiB"),
        ("a shard's reply merged", f"{1e6 * found['merge']:.0f} µs"),
        ("a shard's start: its process, its imports, its first calls", f"{found['start']:.1f} s"),
        ("a bootstrap replicate of a mean, per model and item", f"{1e9 * found['bootstrap']:.2f} ns"),
        ("the interval of Krippendorff's alpha (B = 1,000), per item", f"{1e6 * found['alpha']:.1f} µs"),
    ]
    return _markdown(("what", "on one core"), rows)


def study_table(found, models, generations, shards):
    """What the study costs, from the unit costs, params/alienbench.yaml and params/live.yaml."""
    judges = len(study_params("alienbench")["judges"])
    live = profile_params("live")
    price, wait = live["prices"]["default"], 20.0  # seconds that a remote reply takes
    written, judged = models * generations, models * generations * judges
    calls = written + judged
    at_once = shards * live["endpoint"]["concurrency"]
    dollars = (
        written * TOKENS_OF["description"] * price["output"]
        + judged
        * (TOKENS_OF["judge's prompt"] * price["input"] + TOKENS_OF["judge's reply"] * price["output"])
    ) / 1e6
    B = study_params("alienbench")["B"]
    rows = [
        ("calls", f"{written:,} descriptions + {judged:,} judgements ({judges} judges)"),
        ("one process that waits for nobody", _duration(calls * found["asking"])),
        (
            f"{shards} shards of {live['endpoint']['concurrency']} calls at once, {wait:.0f} s a reply",
            _duration(max(calls * wait / at_once, calls * found["asking"] / shards)),
        ),
        ("ledgers on the disk", _size(calls * found["disk"])),
        ("merging the shards", _duration(calls * found["merge"])),
        ("a notebook that reads every reply again", _duration(calls * (found["again"] + found["parse"]))),
        ("the requests of the judging stage as one list", _size(judged * found["memory"])),
        ("naming them, once a shard", _duration(judged * found["naming"])),
        (f"bootstrap of {models} means, B = {B:,}", _duration(models * generations * B * found["bootstrap"])),
        (
            "alpha of the panel with its interval (B = 1,000)",
            _duration(models * generations * found["alpha"]),
        ),
        ("models, at the default price of params/live.yaml", f"${dollars:,.0f}"),
    ]
    return _markdown(("what", f"{models} models × {generations:,} generations"), rows)


def _markdown(head, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _duration(seconds):
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _size(count):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:,.1f} {unit}"
        count /= 1024


def write(path, tables):
    """Replace what stands between the page's markers."""
    text = path.read_text(encoding="utf-8")
    for name, table in tables.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        if not mark.search(text):
            raise ValueError(f"{path}: lacks the markers <!-- {name} --> … <!-- end -->")
        text = mark.sub(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", text)
    path.write_text(text, encoding="utf-8")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--generations", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=200)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--shard", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.shard:
        url, folder, count, text = options.shard
        return shard(url, folder, int(count), text)
    found = measure(options.calls)
    tables = {
        "units": unit_table(found),
        "study": study_table(found, options.models, options.generations, options.shards),
    }
    print("\n\n".join(tables.values()))
    ratio = found["copy"] / found["merge"]
    print(
        f"\nmerging: {1 / found['merge']:,.0f} replies a second; SQLite's INSERT … SELECT: "
        f"{1 / found['copy']:,.0f}; ratio {ratio:.2f}"
    )
    if options.write:
        write(options.write, tables)
    if ratio < MERGE_MARK:
        print(f"below the mark: merging is {ratio:.3f} of SQLite's own copying, should be {MERGE_MARK}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
