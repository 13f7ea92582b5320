"""Warm processes: a parent that has imported what every notebook imports, forked for each of them.

    python -m compendium.frame.warm COMMAND …      run COMMAND; `warm_client` and kernels inside it find the parent

Starting papermill and a kernel cold costs three seconds of work a notebook, nearly all of it imports. This parent
imports the libraries (none of the project's own rooms, so that an edit is always seen), runs COMMAND beside
it, and forks a child for each request on a private socket: a module to run as `python -m` would, with the arguments, the
environment, the folder and the open files of whoever asks. A child ends with the connection of whoever asked for
it. Linux and other systems with `fork` and without its traps; elsewhere `available` says no and all runs cold.
"""

import array
import functools
import importlib
import json
import math
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

VARIABLE = "COMPENDIUM_WARM"  # the socket, for whoever is to find the parent
PARENT = "{parent}"  # in an argument: the number of the child's parent
BACKEND = "module://matplotlib_inline.backend_inline"  # what a kernel sets before matplotlib is imported
LIBRARIES = (  # not matplotlib_inline: it hooks into the kernel that imports it
    "numpy",
    "pandas",
    "scipy.stats",
    "matplotlib",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "seaborn",
    "yaml",
    "papermill",
    "nbclient",
    "nbconvert",
    "latex2mathml.converter",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
)
PATIENCE = 10  # seconds that a child has to end in
MOST = 8 * 1024 * 1024  # bytes of a request


def available() -> bool:
    """Whether a parent should be started: children can be forked here, none is there, and "0" does not forbid it."""
    return sys.platform == "linux" and not os.environ.get(VARIABLE)


def receive(connection) -> tuple[dict, list[int]]:
    """A request and the open files that came with it: 4 bytes of length, JSON, descriptors beside the length."""
    descriptors = array.array("i")
    head, extra, _, _ = connection.recvmsg(4, socket.CMSG_LEN(3 * descriptors.itemsize))
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MOST:
        raise ValueError("no request")
    body = b""
    while len(body) < size:
        part = connection.recv(size - len(body))
        if not part:
            raise ValueError("half a request")
        body += part
    return json.loads(body), list(descriptors)


class Parent:
    """Listens on a socket in a private folder; forks a child for each request; tells each its end."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "warm")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.path)
        self._listening.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._children = {}  # pid -> the connection of whoever asked for it
        self._told = {}  # pid -> when it was told to end

    def serve(self, process: subprocess.Popen) -> int:
        """Answer until `process` ends; returns its exit code."""
        while True:
            for key, _ in self._selector.select(0.02):
                if key.fileobj is self._listening:
                    self._accept()
                else:
                    self._gone(key.fileobj)
            self._collect()
            code = process.poll()
            if code is not None:
                for pid in self._children:
                    self._end(pid)
                while self._children:
                    self._collect()
                    time.sleep(0.02)
                return code

    def _accept(self):
        connection, _ = self._listening.accept()
        _warm_up()
        try:
            connection.settimeout(60)
            order, files = receive(connection)
        except (OSError, ValueError):
            connection.close()
            return
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._listening.close()
            connection.close()
            for other in self._children.values():
                other.close()
            self._selector.close()
            _become(order, files)
        for descriptor in files:
            os.close(descriptor)
        self._children[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ)
        _tell(connection, pid)

    def _gone(self, connection):
        """Whoever asked has closed the connection: its child ends too."""
        for pid, mine in self._children.items():
            if mine is connection:
                self._end(pid)
        self._selector.unregister(connection)

    def _end(self, pid: int):
        """Tell a child to end: politely, and outright once `PATIENCE` is over; a kernel has nothing to put away."""
        kernel = os.getpgid(pid) == pid
        _signal(pid, signal.SIGKILL if kernel else signal.SIGINT)
        self._told.setdefault(pid, time.monotonic())

    def _collect(self):
        for pid in list(self._children):
            if time.monotonic() - self._told.get(pid, math.inf) > PATIENCE:
                _signal(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                connection = self._children.pop(pid)
                self._told.pop(pid, None)  # the number may be given again
                _tell(connection, os.waitstatus_to_exitcode(status))
                if connection in {key.fileobj for key in self._selector.get_map().values()}:
                    self._selector.unregister(connection)
                connection.close()


@functools.cache
def _warm_up() -> None:
    """Import the libraries, at the first request: where nothing is stale none comes."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:  # the child that needs it will say so
            pass


def _tell(connection, number: int):
    try:
        connection.sendall(b"%d\n" % number)
    except OSError:  # nobody listens any more
        pass


def _signal(pid: int, number: int):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _become(order: dict, files: list[int]):
    """In the child: turn into `python -m module arguments` of whoever asked. Does not return."""
    code = 1
    try:
        if order["session"]:
            os.setsid()
        from compendium.frame.system import die_with_parent, rename

        rename(order["name"])
        die_with_parent(signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        for target, descriptor in enumerate(files):
            os.dup2(descriptor, target)
        for descriptor in files:
            if descriptor > 2:
                os.close(descriptor)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[:] = list(dict.fromkeys([order["folder"], *paths, *sys.path]))
        parent = str(os.getppid())
        sys.argv = [order["module"], *(text.replace(PARENT, parent) for text in order["arguments"])]
        for module in [name for name in sys.modules if name.split(".")[0] in ("lib", "compendium")]:
            del sys.modules[module]  # the child reads them as they are now
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code & 0xFF)


def main(command) -> int:
    from compendium.frame.system import die_with_parent, start_lean

    start_lean()  # and no thread may be there when a child is forked
    with tempfile.TemporaryDirectory(prefix="warm-", ignore_cleanup_errors=True) as folder:
        parent = Parent(folder)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the group hears it too: the command decides
        signal.signal(signal.SIGHUP, lambda *_: os.killpg(os.getpgrp(), signal.SIGINT))
        process = subprocess.Popen(
            command,
            env={**os.environ, VARIABLE: parent.path},
            close_fds=False,  # the run's lock, which it is to hold
            preexec_fn=lambda: (signal.signal(signal.SIGINT, signal.SIG_DFL), die_with_parent(signal.SIGHUP)),
        )
        os.environ["MPLBACKEND"] = BACKEND
        return parent.serve(process)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
