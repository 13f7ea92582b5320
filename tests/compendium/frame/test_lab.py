"""JupyterLab is started on this checkout: its code first on the path, its notebooks, its first page."""

import os
import sys

from compendium.frame import lab
from compendium.frame.paths import NOTEBOOKS, ROOT


def test_lab_finds_this_checkouts_code_and_opens_the_first_page(monkeypatch):
    started = []
    monkeypatch.setattr(os, "execv", lambda program, command: started.append((program, command)))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    lab.main([])
    lab.main(["--no-browser"])
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)
    (program, first), (_, second) = started
    assert program == sys.executable and first[1:] == [
        "-m",
        "jupyterlab",
        f"--notebook-dir={ROOT}",
        str(NOTEBOOKS / "00_start_here.ipynb"),
    ]
    assert second[-1] == "--no-browser"


def test_another_checkouts_code_is_refused(monkeypatch, capsys):
    def elsewhere():
        raise ValueError("this is another checkout")

    monkeypatch.setattr(lab, "check_place", elsewhere)
    monkeypatch.setattr(os, "execv", lambda *_: None)
    assert lab.main([]) == 2 and "error: this is another checkout" in capsys.readouterr().err
