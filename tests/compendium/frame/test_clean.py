"""A notebook that was run again elsewhere, with the same result, is no change to git."""

import json
import os
import subprocess
import sys

import pytest

from compendium.frame import clean
from compendium.frame.paths import ROOT
from compendium.frame.refresh import committed


def rerun(text):
    """The notebook as JupyterLab or nbconvert of another machine leaves it."""
    book = json.loads(text)
    book["metadata"]["language_info"] = {"name": "python", "version": "3.13.1"}
    book["metadata"]["kernelspec"]["display_name"] = "compendium"
    book["metadata"]["papermill"] = {"duration": 3.2}
    for cell in book["cells"]:
        cell["metadata"]["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
        cell["metadata"]["papermill"] = {"status": "completed"}
    return json.dumps(book, indent=2)


@pytest.mark.parametrize("path", committed(), ids=lambda path: path.stem)
def test_committed_notebooks_are_as_the_filter_leaves_them(path):
    text = path.read_text(encoding="utf-8")
    assert clean.clean(text) == text
    assert clean.clean(rerun(text)) == text


@pytest.mark.parametrize(
    "text", ["", "no notebook", "[]", "{}", '{"cells": 3, "metadata": {}}', "[" * 100_000]
)
def test_what_is_no_notebook_stays_as_it_is(text):
    assert clean.clean(text) == text


def test_git_sees_no_change_after_a_re_run_and_one_after_an_edit(tmp_path, monkeypatch):
    monkeypatch.setattr(clean, "ROOT", tmp_path)
    text = committed()[0].read_text(encoding="utf-8")

    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        ).stdout

    git("init", "-q")
    clean.install()
    assert sys.executable in git("config", "filter.notebook.clean")
    (tmp_path / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    book = tmp_path / "book.ipynb"
    book.write_text(text, encoding="utf-8")
    git("add", "-A")
    git("commit", "-qm", "first")
    book.write_text(rerun(text), encoding="utf-8")
    assert git("diff", "--stat") == ""
    book.write_text(text.replace("Start here", "Begin here", 1), encoding="utf-8")
    assert "book.ipynb" in git("diff", "--stat")


def test_outside_git_nothing_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(clean, "ROOT", tmp_path)
    clean.install()
    assert list(tmp_path.iterdir()) == []
