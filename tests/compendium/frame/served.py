"""Git repositories made for a test, and a small server on loopback that hands them out as a forge does."""

import os
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep
from urllib.parse import unquote, urlsplit

IDENTITY = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(*arguments, cwd=None) -> str:
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(folder: Path, files: dict, name: str) -> str:
    """A bare repository `folder/<name>.git` of one commit with `files` {path: bytes}; the commit's id."""
    work, bare = folder / "work" / name, folder / f"{name}.git"
    for path, content in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(content)
    git("init", "-q", work)
    git("-c", "core.autocrlf=false", "add", ".", cwd=work)
    git("commit", "-q", "-m", "made up", cwd=work)
    git("clone", "-q", "--bare", work, bare)
    git("repack", "-adq", cwd=bare)
    git("config", "uploadpack.allowFilter", "true", cwd=bare)
    return git("rev-parse", "HEAD", cwd=work)


class Forge(ThreadingHTTPServer):
    """Smart HTTP through git's own http-backend, and single files at <repository>/raw/<commit>/<path>.

    `asked` lists the requests. `cut(n)`, n the number of the request from 1 on, says after how many bytes of its
    body an answer breaks off (None: it does not). `altered` {path: bytes} are single files that it lies about.
    `wait` is how long it takes to begin an answer, in seconds; `sent` counts the bytes of its answers.
    """

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.asked, self.altered = folder, [], {}
        self.wait, self.sent = 0.0, 0
        self.cut = lambda n: None
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def _answer(self):
        self.server.asked.append(f"{self.command} {self.path}")
        cut = self.server.cut(len(self.server.asked))
        status, kind, body = self._single() if "/raw/" in self.path else self._backend()
        sleep(self.server.wait)
        self.server.sent += len(body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])

    def _single(self):
        repo, _, rest = unquote(self.path).strip("/").partition("/raw/")
        commit, _, path = rest.partition("/")
        content = self.server.altered.get(path)
        found = subprocess.run(
            ["git", "-C", self.server.folder / f"{repo}.git", "cat-file", "blob", f"{commit}:{path}"],
            capture_output=True,
        )
        if found.returncode:
            return 404, "text/plain", b"not found"
        return 200, "application/octet-stream", found.stdout if content is None else content

    def _backend(self):
        url = urlsplit(self.path)
        owner_and_name, _, service = url.path.strip("/").partition("/info/")
        service = f"info/{service}" if service else "git-upload-pack"
        name = owner_and_name.removesuffix("/git-upload-pack")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{name}.git/{service}",
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        length = self.headers.get("Content-Length")
        sent = self.rfile.read(int(length)) if length else self._chunks()
        done = subprocess.run(["git", "http-backend"], input=sent, env=environment, capture_output=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(fields.get("Status", "200").split()[0])
        return status, fields.get("Content-Type", "text/plain"), body

    def _chunks(self) -> bytes:
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


@contextmanager
def forge(folder: Path):
    server = Forge(folder)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
