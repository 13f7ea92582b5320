"""What differs between operating systems: every module can be imported on each, and the answers are as stated."""

import os
import signal
import subprocess
import sys
import types

import pytest

from compendium.frame import system
from compendium.frame.paths import ROOT

# the inside of the sandbox: a script for Linux's own kernel calls, started by a parent that refuses elsewhere
INSIDE = "compendium.studies.worldmodels.posg.sandbox_child"
IMPORT_ALL = """
import builtins, importlib, os, signal, sys
original = builtins.__import__
def refusing(name, globals=None, locals=None, fromlist=(), level=0):
    room = (globals or {}).get("__name__", "").split(".")[0]
    if room in ("lib", "compendium") and name in ("fcntl", "pwd", "grp", "resource", "msvcrt"):
        raise ImportError(name)
    return original(name, globals, locals, fromlist, level)
import concurrent.futures, IPython, jupyter_client, nbclient, papermill, seaborn, starlette, uvicorn, openai, sphinx
for name in ("SIGHUP", "SIGKILL", "SIGXCPU"):
    delattr(signal, name)
for name in ("fork", "killpg", "geteuid", "getuid", "sched_getaffinity", "setsid"):
    delattr(os, name)
builtins.__import__ = refusing
for name in sys.argv[1:]:
    importlib.import_module(name)
print(len(sys.argv) - 1)
"""


def modules():
    for room in ("lib", "compendium"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if name != INSIDE and path.name != "__main__.py":
                yield name


def test_every_module_is_imported_where_unix_is_not():
    names = list(modules())
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert len(names) > 100 and ran.stdout.split() == [str(len(names))]


def test_a_lock_keeps_others_out_until_it_is_closed(tmp_path):
    path = tmp_path / "lock"
    with open(path, "w") as first, open(path, "w") as second:
        system.lock(first)
        with pytest.raises(BlockingIOError):
            system.lock(second)
        first.close()
        system.lock(second)


def test_a_lock_without_fcntl_is_a_byte_behind_the_file(tmp_path, monkeypatch):
    held, asked = set(), []

    def locking(descriptor, mode, count):
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        asked.append((mode, count, place))
        if (os.fstat(descriptor).st_ino, place) in held:
            raise OSError(36, "deadlock avoided")
        held.add((os.fstat(descriptor).st_ino, place))

    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(
        system, "msvcrt", types.SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2), raising=False
    )
    with open(tmp_path / "lock", "w+") as handle:
        handle.write("123")
        handle.flush()
        system.lock(handle)
        assert handle.tell() == 3 and asked == [(2, 1, system.LOCKED_BYTE)]
        with pytest.raises(BlockingIOError):
            system.lock(handle)
    monkeypatch.setattr(system, "msvcrt", None)
    with (
        open(tmp_path / "lock", "w") as handle,
        pytest.raises(NotImplementedError, match="no file can be locked on"),
    ):
        system.lock(handle)


def test_a_group_where_there_are_none_is_its_leader(monkeypatch):
    told = []
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr(os, "kill", lambda leader, number: told.append((leader, number)))
    assert system.own_group((3,)) == {"creationflags": 0}
    system.signal_group(77, system.KILL)
    assert told == [(77, signal.SIGTERM)]


def test_a_home_that_cannot_be_written_is_replaced(tmp_path, monkeypatch):
    for name in ("HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    own, spare = tmp_path / "own", tmp_path / "project" / "home"
    (own / ".cache" / "huggingface").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(own))
    system.use_writable_home(spare)
    assert os.environ["HOME"] == str(own) and not spare.exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    (tmp_path / "file").write_text("")
    (own / "x").write_text("")
    monkeypatch.setenv("HOME", str(own / "x"))  # a file: nothing can be written in it
    system.use_writable_home(spare)
    assert os.environ["HOME"] == str(spare) and spare.is_dir() and "XDG_CACHE_HOME" not in os.environ
