"""Processes that end with the one that started them."""
# Tested by tests/chain/test_stopping.py.

import ctypes
import os
import signal
import subprocess
import sys
import threading

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 20  # seconds that a group has to end in, once told to stop


def run_group(command, *, line, keep=(), **options) -> tuple:
    """Run `command` and whatever it starts as a process group of its own, to its end.

    Returns (exit code, the signal that stopped it or None). A signal that would end this process (Ctrl-C, SIGTERM,
    SIGHUP) stops the group first: politely, then, after `PATIENCE` seconds or at the second signal, outright.
    Where this process is killed outright, Linux tells the command (SIGHUP). To be called from the main thread.

    Parameters
    ----------
    line : called with each line of the group's standard error, and whether it is being stopped.
    keep : file descriptors that the command inherits (a lock that it is to hold to its end).
    options : of subprocess.Popen.
    """
    stops, process = [], None

    def stop(number, _frame):
        stops.append(signal.Signals(number))
        if process:
            _signal(process.pid, signal.SIGINT if len(stops) == 1 else signal.SIGKILL)
            timer = threading.Timer(PATIENCE, _signal, (process.pid, signal.SIGKILL))
            timer.daemon = True
            timer.start()

    # what came ignored stays so: nohup, a job in the background
    heard = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        with subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
            pass_fds=keep,
            preexec_fn=_begin,
            **options,
        ) as process:
            if stops:
                _signal(process.pid, signal.SIGINT)
            for text in process.stderr:
                line(text.rstrip("\n"), bool(stops))
        _signal(process.pid, signal.SIGKILL)  # whom the command, killed itself, has left behind
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return process.returncode, stops[0] if stops else None


def die_with_parent(number: int = signal.SIGHUP) -> None:
    """Ask for a signal when this process's parent ends, however it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(number))  # 1: PR_SET_PDEATHSIG


def rename(name: str) -> None:
    """What `ps` and `top` call this process (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(15, name.encode())  # 15: PR_SET_NAME


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # also where it came ignored: the group is stopped by it
    die_with_parent()


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says "no permission" of a group that is gone
        pass
