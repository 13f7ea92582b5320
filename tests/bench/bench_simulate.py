"""The simulated judges' server against the least an ASGI server can do.

Peer: the same uvicorn with an application that reads nothing and sends one constant body of the same size.
Both answer the same judge requests (AlienBench's prompt with a description in it) over 16 connections that
stay open. Mark: at least 1,000 answers a second of server time, so that a client on the other core is the
limit (400 a second).
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from compendium.asking.simulated.server import serve  # noqa: E402
from compendium.studies.alienbench.ask import judge_prompt  # noqa: E402
from compendium.studies.alienbench.stages import read_texts  # noqa: E402

CALLS, CONNECTIONS = 2400, 16
MARK = 1000
PEER = """
import socket, sys, uvicorn
body = b"x" * int(sys.argv[1])
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    length = b"content-length", b"%d" % len(body)
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none")
uvicorn.Server(config).run(sockets=[listening])
"""


def requests():
    """The raw HTTP of the judge calls."""
    texts = read_texts("data/demo/alienbench/texts.jsonl.gz")
    system, template = judge_prompt()
    raw = []
    for text in list(texts.values())[:CALLS]:
        body = json.dumps(
            {
                "model": "openai/gpt-5.4",
                "temperature": 0,
                "messages": [
                    {"role": "system", "content": system},
                    {"role": "user", "content": template.replace("{description}", text)},
                ],
            }
        ).encode()
        raw.append(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % len(body) + body
        )
    return raw


async def ask_all(port, raw):
    """Send every request, a connection asking for its next when it has its answer; bytes of the last body."""
    size = 0

    async def worker(part):
        nonlocal size
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for one in part:
            writer.write(one)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
        writer.close()

    await asyncio.gather(*(worker(raw[start::CONNECTIONS]) for start in range(CONNECTIONS)))
    return size


def measured(port, pid, raw):
    """(answers a second, answers a second of the server's own time, body size)."""
    process = psutil.Process(pid)
    before, start = process.cpu_times(), time.monotonic()
    size = asyncio.run(ask_all(port, raw))
    seconds, after = time.monotonic() - start, process.cpu_times()
    busy = after.user + after.system - before.user - before.system
    return len(raw) / seconds, len(raw) / busy, size


def main():
    raw = requests()
    with serve("alienbench") as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        asyncio.run(ask_all(port, raw[:1]))  # the first request solves the truth
        wall, own, size = measured(port, server.pid, raw)
    peer = subprocess.Popen(
        [sys.executable, "-c", PEER, str(size)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        peer_wall, peer_own, _ = measured(int(peer.stdout.readline()), peer.pid, raw)
    finally:
        peer.kill()
        peer.communicate()
    print(f"simulated judges: {wall:,.0f} answers/s, {own:,.0f} per second of server time (mark: {MARK:,})")
    print(
        f"bare uvicorn, constant body: {peer_wall:,.0f} answers/s, {peer_own:,.0f} per second of server time"
    )
    print(f"ratio (server time): {own / peer_own:.2f}")
    return 0 if own >= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
