"""Running a Python world model that nobody has vouched for. Standard library only.

Every candidate gets its own processes, in which the kernel shows the interpreter's files (read-only, under a
neutral name), one empty scratch folder in memory, and nothing else: no other process, no network, no other file,
no inherited environment, no name of the host, no second process or thread, only the system calls on a list
(`sandbox_calls`), and limits on CPU, memory, file size, output and wall-clock time. The import is already inside.
The candidate's answer goes to a process that waits for it inside and alone can reach this one; it is JSON, taken
as data of unknown origin: whoever uses the document validates it (`compendium.studies.worldmodels.posg.lanes`), for
a hostile candidate can write any answer it likes. It must name a class that the program defines.

Two ways in, tried in this order: bubblewrap (`bwrap`), and the same namespaces entered directly
(`sandbox_enter`). Both end in the same system-call filter, and both prove to themselves that the doors are shut
before the candidate is compiled. Where neither can be had, `run_candidate` refuses.
"""

import functools
import json
import marshal
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compendium.studies.worldmodels.posg.sandbox_calls import ARCHITECTURES, filters

HERE = Path(__file__).resolve().parent
PYTHON = "/python"  # where the interpreter lies inside
INSIDE = f"{PYTHON}/inside.py"
FLAGS = ["-I", "-S", "-B", "-X", "utf8"]
# as FLAGS, in an environment that is ours alone: sets are listed in one order, so a candidate's error reads the same
CHILD_FLAGS, CHILD_ENVIRONMENT = ["-P", "-s", *FLAGS[1:]], {"PYTHONHASHSEED": "0"}
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")  # shared libraries there say nothing of the machine
BACKENDS = ("bwrap", "namespaces")
STATUSES = ("ok", "error", "memory", "timeout", "cpu", "output", "crashed", "unreadable")


class SandboxRefused(RuntimeError):
    """No isolation can be had here, so nothing was run; the message gives the reason for each way tried."""


@dataclass(frozen=True)
class Limits:
    """What one candidate may use."""

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    memory_bytes: int = 512 * 1024**2
    output_bytes: int = 8 * 1024**2
    scratch_bytes: int = 4 * 1024**2
    max_states: int = 2000


@dataclass(frozen=True)
class Verdict:
    """What became of one candidate.

    status : one of STATUSES; only "ok" has a `document` (a dict nobody has validated yet).
    message : one line for people; backend : the isolation it ran under ("none" only when asked for).
    """

    status: str
    message: str = ""
    document: dict | None = field(default=None, repr=False)
    backend: str = ""


def run_candidate(
    source: str, *, limits: Limits = Limits(), backend: str | None = None, allow_unisolated: bool = False
) -> Verdict:
    """Import and tabulate a Python world model in isolation.

    backend : "bwrap" or "namespaces" to insist on one; None takes the first that works.
    allow_unisolated : run in a plain separate process (limits, but no isolation) where none can be had;
        for code that you have read yourself.
    Raises SandboxRefused where isolation cannot be had and `allow_unisolated` is not set.
    """
    if backend is None:
        backend, reasons = isolation()
        if backend is None:
            if not allow_unisolated:
                raise SandboxRefused(
                    "refused to run model-written Python: "
                    + "; ".join(reasons)
                    + ". Install bubblewrap, or pass allow_unisolated=True for code you have read yourself"
                )
            backend = "none"
    elif backend not in BACKENDS:
        raise ValueError(f"backend {backend!r} is not one of {', '.join(BACKENDS)}")
    elif lacking := _lacking(backend):
        raise SandboxRefused(f"refused to run model-written Python: {backend}: {lacking}")
    verdict = _run(source, limits, backend)
    if verdict.status == "refused":
        if backend == "none" or unavailable(backend) is None:
            # the way in works, so it was the candidate that said so
            return Verdict("unreadable", "the answer is not a verdict", backend=backend)
        raise SandboxRefused(f"refused to run model-written Python: {backend}: {verdict.message}")
    return verdict


@functools.lru_cache(maxsize=1)
def isolation() -> tuple[str | None, tuple[str, ...]]:
    """The first way of isolating that works on this machine, and why those before it do not.

    (None, reasons) where none works. Each way is tried once, with no candidate.
    """
    reasons = []
    for backend in BACKENDS:
        reason = unavailable(backend)
        if reason is None:
            return backend, tuple(reasons)
        reasons.append(f"{backend}: {reason}")
    return None, tuple(reasons)


def unavailable(backend: str) -> str | None:
    """Why `backend` cannot isolate here, or None where it can; tried by entering it with no candidate."""
    if lacking := _lacking(backend):
        return lacking
    verdict = _run(None, Limits(), backend)
    return None if verdict.status == "ok" else verdict.message or verdict.status


def _lacking(backend: str) -> str | None:
    """What this machine has not got that `backend` cannot start without, or None."""
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, this is {sys.platform}"
    if platform.machine() not in ARCHITECTURES:
        return f"no system-call filter is written for {platform.machine()}"
    if backend == "bwrap" and shutil.which("bwrap") is None:
        return "the program bwrap is not installed"
    return None


def _run(source, limits: Limits, backend: str) -> Verdict:
    order = {
        "source": source,
        "backend": backend,
        "limits": asdict(limits),
        "abstract": (HERE / "abstract.py").read_text(encoding="utf-8"),
        "outsider": os.getpid(),
    }
    if backend != "none":
        order |= filters(platform.machine())
    with tempfile.TemporaryDirectory(prefix="posg-") as root:
        command = _command(backend, limits, root)
        return _converse(command, json.dumps(order).encode(), limits, backend)


def _command(backend: str, limits: Limits, root: str) -> list[str]:
    """What to start: the inside, by itself or by one of the ways in; `root` is an empty folder."""
    if backend == "none":
        return [_interpreter(), *CHILD_FLAGS, str(HERE / "sandbox_child.py")]
    visible, libraries = _visible()
    environment = {**CHILD_ENVIRONMENT, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
    inner = [f"{PYTHON}/bin/python", *CHILD_FLAGS, INSIDE]
    if backend == "namespaces":
        order = {
            "root": root,
            "visible": visible,
            "hidden": _hidden(),
            "scratch_bytes": limits.scratch_bytes,
            "command": inner,
            "environment": environment,
        }
        return [_interpreter(), *FLAGS, str(HERE / "sandbox_enter.py"), marshal.dumps(order).hex()]
    outer = [
        shutil.which("bwrap"),
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--uid",
        "65534",
        "--gid",
        "65534",
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
    ]
    for outside, inside in visible:
        outer += ["--ro-bind", outside, inside]
    for inside in _hidden():
        outer += ["--tmpfs", inside, "--remount-ro", inside]
    for name, value in environment.items():
        outer += ["--setenv", name, value]
    size = str(limits.scratch_bytes)
    outer += ["--size", size, "--tmpfs", "/scratch", "--remount-ro", "/", "--chdir", "/scratch"]
    return outer + inner


def _converse(command, order: bytes, limits: Limits, backend: str) -> Verdict:
    """Start the process, hand it the order, collect its answer within the limits, and end it for certain."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=CHILD_ENVIRONMENT,
        cwd="/",
        start_new_session=True,
        close_fds=True,
    )
    try:
        answer, noise, ended = _exchange(process, order, limits)
    finally:
        # the group, and with bubblewrap its whole process namespace, dies with its leader
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
    if ended:
        return Verdict(ended[0], ended[1], backend=backend)
    return _verdict(answer, noise, code, backend)


def _exchange(process, order: bytes, limits: Limits):
    """(answer, noise, None), or (…, …, (status, message)) where a limit was met first."""
    deadline = time.monotonic() + limits.wall_seconds
    chunks = {"out": bytearray(), "err": bytearray()}
    for pipe in (process.stdin, process.stdout, process.stderr):
        os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE, "in")
        selector.register(process.stdout, selectors.EVENT_READ, "out")
        selector.register(process.stderr, selectors.EVENT_READ, "err")
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return (
                    None,
                    None,
                    ("timeout", f"still running after {limits.wall_seconds:g} s of wall-clock time"),
                )
            for key, _ in selector.select(left):
                if key.data == "in":
                    order = _feed(selector, process.stdin, order)
                    continue
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                chunks[key.data] += data
                if len(chunks["out"]) + len(chunks["err"]) > limits.output_bytes:
                    return None, None, ("output", f"wrote more than {limits.output_bytes} bytes")
    return bytes(chunks["out"]), bytes(chunks["err"]), None


def _feed(selector, pipe, order: bytes) -> bytes:
    try:
        order = order[os.write(pipe.fileno(), order[:65536]) :]
    except BrokenPipeError:
        order = b""
    if not order:
        selector.unregister(pipe)
        pipe.close()
    return order


def _verdict(answer: bytes, noise: bytes, code: int, backend: str) -> Verdict:
    """Read the answer as data of unknown origin: one line by the process that waited, the rest by the candidate."""
    head, _, answer = answer.partition(b"\n")
    if not head:  # the one that waits has not come so far
        last = noise.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit status {code}"]
        status = "refused" if noise.startswith((b"bwrap:", b"enter:")) else "crashed"
        said = f"ended without an answer: {_one_line(last[0][:300])}"
        return Verdict(status, said, backend=backend)
    told = json.loads(head)
    if told["ended"]:
        return Verdict(told["ended"][0], _one_line(told["ended"][1]), backend=backend)
    try:
        data = json.loads(answer, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        said = f"the answer is not JSON: {type(error).__name__}: {error}"
        return Verdict("unreadable", _one_line(said[:300]), backend=backend)
    known = {"ok": dict, "error": type(None), "memory": type(None), "output": type(None)}
    if not isinstance(data, dict) or data.get("status") not in known:
        return Verdict("unreadable", "the answer is not a verdict", backend=backend)
    document, message = data.get("document"), data.get("message", "")
    if not isinstance(message, str) or not isinstance(document, (dict, type(None))):
        return Verdict("unreadable", "the answer is not a verdict", backend=backend)
    if document is not None and data.get("class") not in told["classes"]:
        said = "the answer is not a verdict: it names no class that the program defines"
        return Verdict("unreadable", said, backend=backend)
    return Verdict(
        data["status"], _one_line(message[:500]), document if data["status"] == "ok" else None, backend
    )


def _one_line(text: str) -> str:
    """The candidate chose these words: what is not printable (half a surrogate pair, a line end, an escape code)
    is spelled out, so that the message can be stored and shown."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _no_constant(name):
    raise ValueError(f"{name} is not a number in JSON")


def _unique(pairs):
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key is given twice")
    return content


def _interpreter() -> str:
    return os.path.realpath(sys.executable)


def _library() -> str:
    """Where the standard library lies inside."""
    return f"{PYTHON}/{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"


@functools.lru_cache(maxsize=1)
def _visible() -> tuple[list, str]:
    """([[outside, inside], …], where shared libraries of its own lie inside): what the sandbox shows, read-only: the
    interpreter, its standard library, the shared libraries that these load, and the script."""
    python, library = _interpreter(), os.path.realpath(sysconfig.get_path("stdlib"))
    extensions = os.path.join(library, "lib-dynload")
    modules = [
        os.path.join(extensions, name)
        for name in sorted(os.listdir(extensions))
        if re.match(
            r"_?(ctypes|socket|json|struct|math|random|resource|datetime|decimal|fractions|"
            r"statistics|heapq|bisect|posixsubprocess|select|zlib|array)\.",
            name,
        )
    ]
    try:
        listed = subprocess.run(
            ["ldd", python, *modules], capture_output=True, text=True, timeout=30, check=False
        )
        libraries = sorted(set(re.findall(r"(/\S+) \(0x", listed.stdout)))
    except (OSError, subprocess.TimeoutExpired):
        libraries = []
    if not libraries:
        libraries = [path for path in SYSTEM if os.path.isdir(path)]
    shown = [[python, f"{PYTHON}/bin/python"], [library, _library()]]
    shown.append([str(HERE / "sandbox_child.py"), INSIDE])
    own = ""
    for path in libraries:
        if path in SYSTEM or path.startswith(tuple(f"{folder}/" for folder in SYSTEM)):
            shown.append([path, path])
        elif not path.startswith(library + os.sep):
            own = f"{PYTHON}/shared"
            shown.append([path, f"{own}/{os.path.basename(path)}"])
    return shown, own


@functools.lru_cache(maxsize=1)
def _hidden() -> tuple[str, ...]:
    """Folders inside what is shown that are covered: installed packages are no business of a world model, and what
    the interpreter was built with names folders of the machine."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    names = ["site-packages", "dist-packages", *(path.name for path in library.glob("config-*"))]
    return tuple(f"{_library()}/{name}" for name in names if (library / name).is_dir())
