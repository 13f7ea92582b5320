"""The simulated models on a port: python -m compendium.asking.simulated --port 8000 --studies alienbench --faults 0.3

Point any OpenAI-compatible client at the address it prints; any key will do.
"""
# Tested by tests/compendium/asking/simulated/test_server.py.

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import threading
import time

import uvicorn

from compendium.asking.simulated.faults import Faults
from compendium.asking.simulated.server import app


class _Announcing(uvicorn.Server):
    """Prints its address once it listens."""

    def __init__(self, config, address):
        super().__init__(config)
        self._address = address

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if self.started:
            print(self._address, flush=True)


def main(arguments=None) -> int:
    """Serve until interrupted. Returns the exit status: 2 with one line on stderr for settings that cannot be."""
    options = _parser().parse_args(arguments)
    try:
        if options.settings:
            faults = Faults(**json.loads(options.settings))
        else:
            faults = Faults(
                rate=options.faults, reply_rate=options.reply_faults, useless=tuple(options.useless)
            )
        application = app(options.studies, faults=faults, log=options.log)
        listening = socket.create_server(("127.0.0.1", options.port), backlog=2048)
    except (ValueError, OSError, OverflowError) as error:
        print(f"error: {_explained(error, options)}", file=sys.stderr)
        return 2
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    config = uvicorn.Config(
        application,
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
    )
    if options.child:
        _end_with_parent()
    try:
        asyncio.run(_Announcing(config, address).serve(sockets=[listening]))
    except KeyboardInterrupt:
        pass
    return 0


def _explained(error, options) -> str:
    if isinstance(error, OverflowError):
        return f"--port: {error}"
    if isinstance(error, OSError):
        place = f"--log {error.filename}" if error.filename else f"--port {options.port}"
        return f"{place}: {error.strerror}"
    return str(error)


def _end_with_parent():
    """End this process when the one that started it ends, however it ends."""
    parent = os.getppid()

    def at_end_of_input():
        sys.stdin.buffer.read()
        os._exit(0)

    def when_orphaned():
        # A child that the parent forked may hold the pipe open; who our parent is cannot be held.
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    for watch in (at_end_of_input, when_orphaned):
        threading.Thread(target=watch, daemon=True).start()


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m compendium.asking.simulated", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--studies", nargs="+", default=["alienbench"], help="whose models to simulate")
    parser.add_argument("--faults", type=float, default=0.0, help="share of tries disturbed on their way")
    parser.add_argument("--reply-faults", type=float, default=0.0, help="share of JSON answers to spoil")
    parser.add_argument("--useless", nargs="*", default=[], help="models that answer nothing of use")
    parser.add_argument("--log", help="append a line for each request to this file")
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
