"""Talking to models: calls a second, memory, and how fast a finished stage starts again.

    python tests/bench/bench_models.py [--calls 9000] [--few 10000] [--many 200000]

The server (in a process of its own) answers at once with a judge's reply of usual size. The peer is the bare
`openai.AsyncOpenAI` client with the same requests and concurrency, which keeps nothing.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import openai  # noqa: E402

from compendium.asking.endpoint import Endpoint  # noqa: E402
from compendium.asking.ledger import Ledger  # noqa: E402
from compendium.asking.replies import labels_from_reply  # noqa: E402
from compendium.asking.request import Request  # noqa: E402
from compendium.asking.stage import run_stage  # noqa: E402

FEATURES = (
    "symmetry",
    "sensory_organs",
    "locomotion",
    "body_plan",
    "skin_covering",
    "reproduction",
    "metabolism",
    "communication",
    "habitat",
    "cognition",
)
LABELS = json.dumps(
    {
        name: {
            "feature_described": "a short description of what is there",
            "is_departure": i % 3 == 0,
            "reasoning": "One sentence that justifies the decision in the usual number of words.",
        }
        for i, name in enumerate(FEATURES)
    }
)
PROMPT = (
    "Analyse this creature. " + "It has limbs, skin and habits that fill a description of usual length. " * 80
)
CONCURRENCY = 32
MARKS = {
    "calls a second": 400,
    "calls a second, long": 400,
    "growth of memory": 1.10,
    "seconds to resume 9,000": 2.0,
}


def judge_requests(count, start=0):
    """Requests of a judge's size, made as they are wanted."""
    return (
        Request(
            "judge",
            [{"role": "system", "content": "You label."}, {"role": "user", "content": f"{i} {PROMPT}"}],
            temperature=0.0,
            max_tokens=1500,
        )
        for i in range(start, start + count)
    )


# the server ------------------------------------------------------------------------------------------------


async def application(scope, receive, send):
    """An ASGI application that reads the request and answers with `LABELS`."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    asked = json.loads(body)
    content = json.dumps(
        {
            "id": "call",
            "object": "chat.completion",
            "model": asked["model"],
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": LABELS}}
            ],
            "usage": {"prompt_tokens": 2000, "completion_tokens": 600, "total_tokens": 2600},
        }
    ).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def serve(port):
    import uvicorn

    uvicorn.run(application, host="127.0.0.1", port=port, log_level="error", access_log=False, lifespan="off")


class Server:
    """The server's process, for a `with` block."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", str(self.port)])
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return f"http://127.0.0.1:{self.port}/v1"
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


# what is measured ------------------------------------------------------------------------------------------


def stage_seconds(url, path, count, start=0):
    """Wall seconds of a judging stage, every reply parsed and durable."""
    with Ledger(path) as ledger:
        began = time.perf_counter()
        result = run_stage(
            judge_requests(count, start),
            Endpoint(url, None, concurrency=CONCURRENCY),
            ledger,
            parse=partial(labels_from_reply, features=FEATURES),
            label="judging",
        )
        seconds = time.perf_counter() - began
        if result.report.total("valid") != count:
            raise RuntimeError(f"not all replies are valid: {result.report}")
        return seconds


async def _bare(url, count):
    client, waiting = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0), judge_requests(count)

    async def work():
        for request in waiting:
            await client.chat.completions.create(**request.content)

    began = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(CONCURRENCY)])
    seconds = time.perf_counter() - began
    await client.close()
    return seconds


def peak_megabytes(url, path, count):
    """(peak resident memory in MB, seconds of the stage) of a process that runs a stage of `count` and then reads
    every reply."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory", url, str(path), str(count)],
        check=True,
        capture_output=True,
        text=True,
    )
    megabytes, seconds = map(float, done.stdout.split())
    return megabytes, seconds


def memory_child(url, path, count):
    """Run a stage, read all replies, print the peak resident memory in MB and the stage's seconds."""
    import resource

    began = time.perf_counter()
    with Ledger(path) as ledger:
        result = run_stage(
            judge_requests(count),
            Endpoint(url, None, concurrency=CONCURRENCY),
            ledger,
            parse=partial(labels_from_reply, features=FEATURES),
        )
        seconds = time.perf_counter() - began
        departures = sum(sum(reply.parsed.values()) for reply in result.replies)
    if departures != count * sum(i % 3 == 0 for i in range(len(FEATURES))):
        raise RuntimeError("replies were lost")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=9000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=200_000)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        return serve(options.serve)
    if options.memory:
        return memory_child(options.memory[0], options.memory[1], int(options.memory[2]))
    measured = {}
    with Server() as url, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        asyncio.run(_bare(url, 500))  # warm up
        bare = options.calls / asyncio.run(_bare(url, options.calls))
        ours = options.calls / stage_seconds(url, folder / "rate.sqlite", options.calls)
        measured["calls a second"] = ours
        print(
            f"{options.calls:,} judge calls, every reply durable: {ours:,.0f} a second; "
            f"AsyncOpenAI alone, keeping nothing: {bare:,.0f} a second; ratio {ours / bare:.2f}"
        )
        stage_seconds(url, folder / "resume.sqlite", 9000)
        again = stage_seconds(url, folder / "resume.sqlite", 9000)
        measured["seconds to resume 9,000"] = again
        print(f"a finished stage of 9,000 calls started again: {again:.2f} s")
        few, _ = peak_megabytes(url, folder / "few.sqlite", options.few)
        many, seconds = peak_megabytes(url, folder / "many.sqlite", options.many)
        measured["growth of memory"], rate = many / few, options.many / seconds
        measured["calls a second, long"] = rate
        print(
            f"peak memory for {options.few:,} replies {few:.0f} MB, for {options.many:,} {many:.0f} MB; "
            f"ratio {many / few:.2f}; {rate:,.0f} judge calls a second over all of them"
        )
    failed = [
        name
        for name, mark in MARKS.items()
        if (measured[name] < mark if name.startswith("calls a second") else measured[name] > mark)
    ]
    for name in failed:
        print(f"below the mark: {name} is {measured[name]:.2f}, should be {MARKS[name]:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
