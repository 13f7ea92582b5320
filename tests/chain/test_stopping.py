"""A run that is stopped, politely or outright, takes everything along that it started; and a run beside it waits."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.small_project import PAGE, small_project, write_notebook

SLOW = "import pathlib, time\npathlib.Path('{started}').write_text('')\ntime.sleep(300)"


@pytest.fixture
def project(tmp_path):
    """This project's chain with one notebook, which says that it has begun and then sleeps."""
    small_project(tmp_path, {"alienbench": "seed: 1\n"})
    code = PAGE.format(name="01_slow", code=SLOW.format(started=tmp_path / "started"))
    write_notebook(tmp_path / "notebooks/alienbench/01_slow.ipynb", {}, "seed = 1\n", code)
    return tmp_path


def hear():
    """In the child: signals as at a terminal, also where the tests run as a job that ignores them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(folder, **options):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-m", "compendium", "--study", "alienbench"],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear,
        **options,
    )


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def free(lock) -> bool:
    with open(lock) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def alive(members) -> list:
    """Those that still do something: where nobody collects an orphan, it stays as a zombie."""
    found = []
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            if member.is_running() and member.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                found.append(member)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_whoever_stops_the_command_stops_its_notebooks(project, number):
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux tells a process that its parent was killed")
    process = start(project)
    wait_for((project / "started").exists)
    family, lock = psutil.Process(process.pid).children(recursive=True), project / "build/demo/.lock"
    assert "kernel" in {member.name() for member in family} and not free(lock)
    writers = [member for member in family if member.name() == "notebook"]
    process.send_signal(number)
    wait_for(lambda: free(lock))
    assert writers and not alive(writers), (
        "the folder is free only when nothing that could write into it is left"
    )
    _, shown = process.communicate(timeout=60)
    wait_for(lambda: not alive(family), 20)
    assert not list((project / "build/demo").rglob("*.ipynb*")), "nothing half written"
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert shown == (
            f"error: stopped by {number.name}; what was finished is kept, and the same command goes on "
            "from there\n"
        )


def test_a_second_run_waits_and_is_told_so(project):
    first = start(project)
    wait_for((project / "started").exists)
    second = start(project)
    assert second.stderr.readline() == "Another run is at work in build/demo: waiting for it.\n"
    second.send_signal(signal.SIGINT)
    assert second.wait(60) == 128 + signal.SIGINT
    assert "Traceback" not in second.stderr.read()
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 128 + signal.SIGTERM
