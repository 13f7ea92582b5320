"""Processes that end with the one that started them."""
# Tested by tests/chain/test_stopping.py.

import signal
import subprocess
import threading

from compendium.frame.system import KILL, STOPS, own_group, signal_group

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
            signal_group(process.pid, signal.SIGINT if len(stops) == 1 else KILL)
            timer = threading.Timer(PATIENCE, signal_group, (process.pid, KILL))
            timer.daemon = True
            timer.start()

    # what came ignored stays so: nohup, a job in the background
    heard = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, errors="replace", **own_group(keep), **options
        ) as process:
            if stops:
                signal_group(process.pid, signal.SIGINT)
            for text in process.stderr:
                line(text.rstrip("\n"), bool(stops))
        signal_group(process.pid, KILL)  # whom the command, killed itself, has left behind
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return process.returncode, stops[0] if stops else None
