"""Watching: what counts as a save, and a run at each."""

import os
import subprocess
import sys
import time

from compendium.frame.paths import ROOT
from compendium.frame.watch import WATCHED, changed, state
from tests.small_project import PAGE, small_project, write_notebook


def test_a_save_is_seen_and_what_editors_leave_is_not(tmp_path):
    for name in WATCHED[:-1]:
        (tmp_path / name).mkdir()
    (tmp_path / "Snakefile").write_text("")
    module = tmp_path / "lib" / "a.py"
    module.write_text("x = 1\n")
    before = state(tmp_path)
    (tmp_path / "lib" / ".a.py.swp").write_text("")
    (tmp_path / "lib" / "__pycache__").mkdir()
    (tmp_path / "lib" / "__pycache__" / "a.pyc").write_text("")
    assert changed(before, state(tmp_path)) == []
    os.utime(module, ns=(1, 1))
    (tmp_path / "params" / "new.yaml").write_text("")
    assert [name.rsplit("/", 1)[-1] for name in changed(before, state(tmp_path))] == ["a.py", "new.yaml"]


def test_each_save_runs_what_it_can_move(tmp_path):
    small_project(tmp_path, {"alienbench": "seed: 1\n"})
    book = tmp_path / "notebooks/alienbench/01_a.ipynb"
    code = "from lib import numeric\npage.cell('t', 'a', 'x', seed)"
    write_notebook(book, {}, "seed = 1\n", PAGE.format(name="01_a", code=code))
    with open(tmp_path / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "compendium.frame.watch", "--study", "alienbench"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": "1"},
            stdout=said,
            stderr=said,
        )

    def wait_for(text, times=1):
        end = time.monotonic() + 240
        while (tmp_path / "said").read_text().count(text) < times:
            assert time.monotonic() < end, (tmp_path / "said").read_text()
            assert process.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.1)

    try:
        wait_for("Watching")
        (tmp_path / "params/alienbench.yaml").write_text("seed: 2\n")
        wait_for("Watching", 2)
    finally:
        process.terminate()
        process.wait(60)
    text = (tmp_path / "said").read_text()
    assert "Saved: params/alienbench.yaml" in text and "moved: alienbench/t[a, x] was 1, is 2" in text
    assert ROOT != tmp_path
