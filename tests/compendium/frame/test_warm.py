"""Forked processes: what a child gets, how it ends, and that notebooks come out as without the parent."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from compendium.frame import warm
from compendium.frame.files import sha256
from compendium.frame.paths import ROOT
from tests.small_project import PAGE, small_project, write_notebook

pytestmark = pytest.mark.skipif(not warm.available(), reason="children are forked on Linux alone")
CLIENT = str(ROOT / "compendium" / "frame" / "warm_client.py")
ASK = [sys.executable, "-SPE", CLIENT, "child", "-m"]


def under(folder, code: str):
    """Run Python code as the command of a warm parent, in `folder`."""
    command = [sys.executable, "-m", "compendium.frame.warm", sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True
    )


def test_a_child_gets_arguments_environment_folder_and_files(tmp_path):
    (tmp_path / "said.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], os.environ['ONE'], os.getcwd(), sys.stdin.read(), len(sys.modules) > 900]))\n"
        "print('aside', file=sys.stderr)\nsys.exit(7)\n"
    )
    code = (
        "import subprocess, os\n"
        f"ran = subprocess.run({ASK!r} + ['said', 'a', 'b c'], input='in', text=True, capture_output=True,"
        " env={**os.environ, 'ONE': '1'})\n"
        "print(ran.stdout, end=''); print(ran.returncode, ran.stderr, end='')"
    )
    result = under(tmp_path, code)
    first, second = result.stdout.splitlines()
    assert json.loads(first) == [["a", "b c"], "1", str(tmp_path), "in", True], result.stderr
    assert second == "7 aside"


def test_without_a_parent_the_client_runs_cold(tmp_path):
    (tmp_path / "said.py").write_text("import sys\nprint('cold', sys.argv[1])\nsys.exit(3)\n")
    for value in ("", "0", str(tmp_path / "nobody")):
        environment = {**os.environ, warm.VARIABLE: value, "PYTHONPATH": ""}
        ran = subprocess.run(
            [*ASK, "said", "x"], cwd=tmp_path, env=environment, text=True, capture_output=True
        )
        assert (ran.stdout, ran.returncode) == ("cold x\n", 3), ran.stderr


def test_the_commands_code_is_the_parents(tmp_path):
    assert under(tmp_path, "import sys; sys.exit(5)").returncode == 5


@pytest.mark.parametrize("end", [("module", "no_such_module"), ("code", "raise KeyError('lost')")])
def test_a_child_that_fails_says_why(tmp_path, end):
    (tmp_path / "failing.py").write_text(end[1] if end[0] == "code" else "")
    module = "failing" if end[0] == "code" else end[1]
    code = f"import subprocess; raise SystemExit(subprocess.run({ASK!r} + [{module!r}]).returncode)"
    result = under(tmp_path, code)
    assert result.returncode == 1 and ("lost" in result.stderr or "no_such_module" in result.stderr)


def test_a_child_ends_with_whoever_asked_for_it(tmp_path):
    (tmp_path / "sleeping.py").write_text(
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'begun')\ntime.sleep(600)\n"
    )
    code = (
        "import os, subprocess, time\n"
        f"asked = subprocess.Popen({ASK!r} + ['sleeping'])\n"
        "while not os.path.exists('begun'): time.sleep(0.02)\n"
        "asked.kill(); asked.wait()\n"
        "pid = int(open('begun').read())\n"
        "for _ in range(3000):\n"
        "    try: os.kill(pid, 0)\n"
        "    except ProcessLookupError: print('gone'); break\n"
        "    time.sleep(0.02)\n"
    )
    assert under(tmp_path, code).stdout == "gone\n"


def test_children_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "sleeping.py").write_text("import time\nopen('begun', 'w').close()\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "compendium.frame.warm", *ASK, "sleeping"]
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    end = time.monotonic() + 120
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert "child" in {member.name() for member in family}
    process.send_signal(signal.SIGKILL)
    process.wait()
    gone, alive = psutil.wait_procs(family, 60)
    assert not alive


def test_notebooks_come_out_as_without_it(tmp_path):
    """Two notebooks of one small project, warm and cold: the same cells and the same pictures."""
    code = (
        "import matplotlib.pyplot as plt\nimport numpy as np\n"
        "fig, ax = plt.subplots()\nax.plot(np.arange(5) ** 2)\nplt.show()\npage.save_figure(fig, 'squares')\n"
        "page.cell('t', 'a', 'x', np.random.default_rng(seed).random())"
    )
    small_project(tmp_path, {"alienbench": "seed: 1\n"})
    for name in ("01_a", "02_b"):
        write_notebook(
            tmp_path / f"notebooks/alienbench/{name}.ipynb",
            {"figures": ["squares"]} if name == "01_a" else {},
            "seed = 1\n",
            PAGE.format(name=name, code=code if name == "01_a" else "page.cell('u', 'b', 'x', 2)"),
        )
    made = []
    for value in ("", "0"):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), warm.VARIABLE: value}
        command = [
            sys.executable,
            "-m",
            "compendium.frame.run",
            "--study",
            "alienbench",
            "--build",
            f"build/w{value}",
        ]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)
        assert ran.returncode == 0, ran.stderr
        assert "NOTE" not in ran.stderr and "Traceback" not in ran.stderr
        out = tmp_path / "build" / f"w{value}"
        drawn = next(out.rglob("squares.png"), None) or next(
            (tmp_path / "figures" / out.name).rglob("squares.png")
        )
        page = json.loads((out / "notebooks/alienbench/01_a.ipynb").read_text())
        shown = [list(output.get("data", {})) for cell in page["cells"] for output in cell.get("outputs", [])]
        made.append((sha256(drawn), (out / "cells.csv").read_bytes(), shown))
    assert made[0] == made[1] and ["image/png", "text/plain"] in [sorted(each) for each in made[0][2]]
