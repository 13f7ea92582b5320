"""An OpenAI-compatible server on loopback, in a thread: a script of what to answer, a log of what came."""

import asyncio
import hashlib
import json
import threading
from collections import Counter


def completion(text, model="m", finish="stop", usage=(10, 5), **message):
    """The body of a usual response."""
    body = {
        "id": "call-1",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return body


def echo(body, _tries):
    """A reply that follows from the request's content alone."""
    name = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return completion(f"reply {name[:16]}", body["model"])


class Loopback:
    """`answer(body, tries)` -> dict (status 200) or (status, headers, bytes or dict) or "drop" or "cut" or a
    float (seconds to wait before the reply of `echo`); `tries` counts how often the same body came before."""

    def __init__(self, answer=echo, tls=None):
        self.tls = tls
        self.answer, self.log, self.headers, self.most = answer, [], [], 0
        self._seen, self._now = Counter(), 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self.tls))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
            self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        self._loop.close()

    async def _talk(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
                self._now += 1
                self.most = max(self.most, self._now)
                name = json.dumps(body, sort_keys=True)
                self.log.append(body)
                self.headers.append(headers)
                said = self.answer(body, self._seen[name])
                self._seen[name] += 1
                if isinstance(said, float):
                    await asyncio.sleep(said)
                    said = echo(body, 0)
                self._now -= 1
                if said == "drop":
                    break
                status, extra, content = said if isinstance(said, tuple) else (200, {}, said)
                cut = content == "cut"
                content = completion("x" * 400) if cut else content
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                lines = [
                    f"HTTP/1.1 {status} X",
                    f"content-length: {len(content)}",
                    "content-type: application/json",
                ]
                lines += [f"{key}: {value}" for key, value in extra.items()]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (content[:99] if cut else content))
                await writer.drain()
                if cut:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
