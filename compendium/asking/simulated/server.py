"""The simulated models behind a real server: POST /v1/chat/completions and GET /v1/models.

`app` is the ASGI application, `serve` runs it in a process of its own on loopback for as long as a `with`
block lasts. The server adds no chance of its own: equal requests get equal bodies, whatever their order and
however many come at once.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route

from compendium.asking.simulated.faults import Faults, spoil, useless
from compendium.asking.simulated.reply import Reply, RequestError, request_key
from compendium.frame.paths import ROOT, STUDIES

_JSON = (b"content-type", b"application/json")
_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTHONHASHSEED",
)


def app(studies=("alienbench",), *, faults: Faults | None = None, log=None) -> Starlette:
    """The ASGI application that answers for some studies.

    Parameters
    ----------
    studies : names of modules compendium.studies.<name>.simulated, or objects with `models()` and `respond(request)`. A model
        that several of them know is answered by the first whose optional `claims(request)` does not say no.
    faults : what to disturb; None: nothing.
    log : path of an append-only log, one JSON line a request: key, model, seed, try (the client's count),
        status, fault. None: no log.

    Raises ValueError for a study that has no simulator.
    """
    endpoint = _Completions(_responders(studies), faults or Faults(), log)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", endpoint, methods=["POST"]),
            Route("/v1/models", endpoint.models, methods=["GET"]),
        ]
    )


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, and the process it runs in."""

    base_url: str
    pid: int


@contextmanager
def serve(
    studies=("alienbench",), port: int = 0, *, faults: Faults | None = None, log=None, timeout_s: float = 120
):
    """Run the server in a process of its own on 127.0.0.1; yield a `Server` once it listens.

    `port` 0 takes a free one. The process ends with the block, and with the process that opened it, however
    that one ends. It gets no environment but what an interpreter needs: no key can reach it.

    Raises ValueError for an unknown study, RuntimeError where the server does not start.
    """
    names = [studies] if isinstance(studies, str) else list(studies)
    for name in names:
        _check_study(name)
    command = [
        sys.executable,
        "-m",
        "compendium.asking.simulated",
        "--port",
        str(port),
        "--studies",
        *names,
        "--child",
    ]
    command += ["--settings", json.dumps(asdict(faults or Faults()))]
    command += ["--log", os.fspath(Path(log).absolute())] if log is not None else []
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment["PYTHONPATH"] = str(ROOT)
    # The child ends when its standard input does; the kernel closes that even where this process is killed.
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
    )
    errors: list[bytes] = []
    drain = threading.Thread(target=lambda: errors.extend(child.stderr), daemon=True)
    drain.start()
    try:
        yield Server(_announced(child, drain, errors, timeout_s), child.pid)
    finally:
        child.stdin.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        drain.join()
        child.stdout.close()
        child.stderr.close()


def _announced(child, drain, errors, timeout_s) -> str:
    """The address that the child writes once it listens."""
    timer = threading.Timer(timeout_s, child.kill)
    timer.start()
    try:
        line = child.stdout.readline().decode().strip()
    finally:
        timer.cancel()
    if line.startswith("http://"):
        return line
    child.wait()
    drain.join()
    said = b"".join(errors).decode(errors="replace").strip().splitlines()
    reason = said[-1] if said else f"nothing within {timeout_s:g} s"
    raise RuntimeError(f"the simulated models' server did not start: {reason}")


def _check_study(name):
    if name not in STUDIES or importlib.util.find_spec(f"compendium.studies.{name}.simulated") is None:
        raise ValueError(
            f"no simulator compendium/studies/{name}/simulated.py for study {name!r}; studies: {', '.join(STUDIES)}"
        )


def _responders(studies) -> list:
    chosen = [studies] if isinstance(studies, str) or not isinstance(studies, Iterable) else list(studies)
    responders = []
    for study in chosen:
        if isinstance(study, str):
            _check_study(study)
            study = importlib.import_module(f"compendium.studies.{study}.simulated")
        responders.append(study)
    return responders


class _Completions:
    """The two resources, as ASGI applications: no layer between the socket and the responder."""

    def __init__(self, responders, faults: Faults, log):
        self._responders = responders
        self._by_model: dict[str, list] | None = None
        self._faults = faults
        self._disturbing = bool(faults.rate or faults.reply_rate)
        self._tries: Counter = Counter()
        self._log = None
        if log is not None:
            self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def models(self, request):
        """GET /v1/models."""
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "simulation"} for name in self._known()
        ]
        return _Body(json.dumps({"object": "list", "data": data}).encode())

    async def __call__(self, scope, receive, send):
        entry = {
            "key": "",
            "model": None,
            "seed": None,
            "try": _client_try(scope),
            "status": 0,
            "fault": None,
        }
        try:
            await self._answer(await _body(receive), entry, receive, send)
        except RequestError as error:
            kind = "invalid_request_error" if error.status < 500 else "server_error"
            await self._refuse(entry, send, error.status, str(error), kind, error.code)
        finally:
            self._write(entry)

    async def _answer(self, raw, entry, receive, send):
        request = _checked(raw)
        key = request_key(request)
        entry.update(key=key, model=request["model"], seed=request.get("seed"))
        responder = self._responder(request)
        fault = spoilt = None
        if self._disturbing:
            fault = self._faults.on_the_way(key, self._count(key))
            if fault not in (None, "slow", "wrong_model"):  # these two hand out an answer
                return await self._disturb(fault, entry, receive, send, request, responder)
            # A client that asks again changes the seed, so the tries of a question are counted without it.
            question = request_key({**request, "seed": None})
            spoilt = self._faults.in_the_reply(question, self._count("reply" + question))
        reply = responder.respond(request)
        reply = Reply(reply) if isinstance(reply, str) else reply
        if request["model"] in self._faults.useless:
            reply, spoilt = useless(reply), "useless"
        elif spoilt:
            changed = spoil(reply, spoilt)
            spoilt = spoilt if changed is not reply else None
            reply = changed
        entry["fault"] = "+".join(filter(None, (fault, spoilt))) or None
        if fault == "slow":
            await asyncio.sleep(self._faults.slow_s)
        name = "gateway/fallback-1" if fault == "wrong_model" else reply.model or request["model"]
        await self._send(entry, send, 200, _completion(request, key, reply, name))

    async def _disturb(self, fault, entry, receive, send, request, responder):
        entry["fault"] = fault
        if fault == "rate_limit":
            await self._refuse(
                entry,
                send,
                429,
                "Rate limit reached, try again later",
                "rate_limit_error",
                "rate_limit_exceeded",
                [(b"retry-after", b"%g" % self._faults.retry_after)],
            )
        elif fault == "server_error":
            await self._refuse(entry, send, 500, "The server had an error", "server_error", None)
        elif fault == "dropped":
            await _hang_up(receive, at_once=True)
        else:
            reply = responder.respond(request)
            reply = Reply(reply) if isinstance(reply, str) else reply
            whole = _completion(request, entry["key"], reply, reply.model or request["model"])
            half = whole[: len(whole) // 2]
            if fault == "malformed":
                return await self._send(entry, send, 200, half)
            entry["status"] = 200
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [_JSON, (b"content-length", b"%d" % len(whole))],
                }
            )
            await send({"type": "http.response.body", "body": half, "more_body": True})
            await _hang_up(receive)

    async def _refuse(self, entry, send, status, message, kind, code, headers=()):
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
        await self._send(entry, send, status, json.dumps(body).encode(), headers)

    async def _send(self, entry, send, status, body, headers=()):
        # The log's line is written first: what a client has stored was then certainly logged.
        entry["status"] = status
        self._write(entry)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [_JSON, (b"content-length", b"%d" % len(body)), *headers],
            }
        )
        await send({"type": "http.response.body", "body": body})

    def _write(self, entry):
        if self._log is not None and "written" not in entry:
            os.write(self._log, json.dumps(entry).encode() + b"\n")
        entry["written"] = True

    def _count(self, key) -> int:
        self._tries[key] += 1
        return self._tries[key] - 1

    def _known(self) -> dict:
        if self._by_model is None:
            self._by_model = {}
            for responder in self._responders:
                for model in responder.models():
                    self._by_model.setdefault(model, []).append(responder)
        return self._by_model

    def _responder(self, request):
        known = self._known().get(request["model"])
        if not known:
            near = difflib.get_close_matches(str(request["model"]), self._known(), n=1, cutoff=0.8)
            hint = f"did you mean {near[0]!r}?" if near else "GET /v1/models lists those that do."
            raise RequestError(
                f"the model {request['model']!r} does not exist; {hint} Only the models of the "
                "papers are simulated; any other needs PROFILE=live",
                404,
                "model_not_found",
            )
        for responder in known:
            claims = getattr(responder, "claims", None)
            if claims is None or claims(request):
                return responder
        return known[-1]


class _Body:
    """A JSON response, as an ASGI application."""

    def __init__(self, body):
        self._body = body

    async def __call__(self, scope, receive, send):
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [_JSON, (b"content-length", b"%d" % len(self._body))],
            }
        )
        await send({"type": "http.response.body", "body": self._body})


async def _body(receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the client left before its request was complete")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _checked(raw: bytes) -> dict:
    try:
        request = json.loads(raw)
    except ValueError as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise RequestError("the body should be a JSON object")
    if not isinstance(request.get("model"), str):
        raise RequestError("`model` should be the name of a model")
    messages = request.get("messages")
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages)
    ):
        raise RequestError("`messages` should be a list of objects with `role` and `content`")
    if request.get("stream"):
        raise RequestError("`stream` is not supported by the simulated models")
    if request.get("n") not in (None, 1):
        raise RequestError("`n` should be 1: ask for each sample with a seed of its own")
    return request


def _completion(request, key, reply: Reply, model) -> bytes:
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    return json.dumps(
        {
            "id": f"chatcmpl-{key}",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
            ],
            "usage": reply.usage(request),
        },
        ensure_ascii=False,
    ).encode("utf-8", "replace")


def _client_try(scope) -> str | None:
    """How often the client says it tried before (the `openai` client counts in this header)."""
    for name, value in scope["headers"]:
        if name == b"x-stainless-retry-count":
            return value.decode("latin-1")
    return None


async def _hang_up(receive, at_once=False):
    """Close the connection under a request, and see it closed (uvicorn keeps the socket where `receive`
    lives)."""
    transport = receive.__self__.transport
    if at_once:
        transport.abort()
    else:
        transport.close()
    while (await receive())["type"] != "http.disconnect":
        pass
