"""What differs between operating systems, in one place: locks, signals, groups of processes, a home that can be written.

Everything here has an answer everywhere. Linux has all of it. On macOS nobody tells a command that its parent was
killed outright. On Windows a lock is one byte far behind the end of the file, a hang-up is a termination, and
of a group that is stopped the command alone is told.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    try:
        import msvcrt
    except ImportError:
        msvcrt = None

HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
STOPS = tuple(dict.fromkeys((signal.SIGINT, signal.SIGTERM, HANGUP)))  # what ends a command
LOCKED_BYTE = 2**30  # a byte that is locked cannot be read on Windows: one that no lock file reaches


def lock(handle, wait: bool = False) -> None:
    """Lock an open file for this process alone, until it is closed or the process ends, however it ends.

    Raises BlockingIOError where another holds it and `wait` is not set; NotImplementedError where files cannot be locked.
    """
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    if msvcrt is None:
        raise NotImplementedError(f"no file can be locked on {sys.platform}")
    while True:
        place = handle.tell()
        try:
            handle.seek(LOCKED_BYTE)
            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            return
        except OSError as error:  # LK_LOCK gives up after ten seconds
            if not wait:
                raise BlockingIOError(error.errno, "another holds the lock") from None
        finally:
            handle.seek(place)


def own_group(keep=()) -> dict:
    """Options with which `subprocess.Popen` starts the leader of a group of processes that ends with this process.

    keep : file descriptors that it inherits (nowhere but on systems with `fork`).
    """
    if not hasattr(os, "killpg"):
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"process_group": 0, "pass_fds": keep, "preexec_fn": _begin}


def signal_group(leader: int, number: int) -> None:
    """Send a signal to a group of processes; one that is gone already needs none."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(leader, number)
        else:
            os.kill(leader, signal.SIGTERM)
    except OSError:  # gone; macOS says "no permission" of such a group
        pass


def die_with_parent(number: int = HANGUP) -> None:
    """Ask for a signal when this process's parent ends, however it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(number))  # 1: PR_SET_PDEATHSIG


def rename(name: str) -> None:
    """What `ps` and `top` call this process (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(15, name.encode())  # 15: PR_SET_NAME


def start_lean() -> None:
    """For a process that runs notebooks, before it imports anything large.

    One thread: the chain runs notebooks side by side, and thread counts must not move last bits. And jsonschema, where
    it finds the optional rfc3987_syntax, builds a grammar on import: a second for each notebook.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    sys.modules.setdefault("rfc3987_syntax", None)


def use_writable_home(spare) -> None:
    """Where the home folder cannot be written let `spare` be it, for this process and those it starts.

    Snakemake, Jupyter and Matplotlib keep files of their own at home and stop, or warn, where they cannot.
    """
    home = Path(os.path.expanduser("~"))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    if _can_be_written(home) and (_can_be_written(caches) or not os.path.lexists(caches)):
        return
    Path(spare).mkdir(parents=True, exist_ok=True)
    models = caches / "huggingface"  # what was downloaded stays in reach
    if models.is_dir():
        os.environ.setdefault("HF_HOME", str(models))
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    os.environ["HOME"] = str(spare)


def _can_be_written(folder) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # also where it came ignored: the group is stopped by it
    die_with_parent()
