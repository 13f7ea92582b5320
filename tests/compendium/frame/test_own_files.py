"""Files that params name: what they lead to, and that the chain follows them."""

import os
import subprocess
import sys

import pytest

from compendium.frame import own_files
from compendium.frame.own_files import files_at, followed
from tests.small_project import small_project, write_notebook

TREE = ("a.jsonl", "b.json", "deep/er/c.jsonl", "deep/.hidden/d.jsonl", ".e.jsonl", "odd {x} #1.jsonl")


@pytest.fixture
def tree(tmp_path):
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("", ["a.jsonl", "b.json", "deep/er/c.jsonl", "odd {x} #1.jsonl"]),
        ("*.jsonl", ["a.jsonl", "odd {x} #1.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "deep/er/c.jsonl", "odd {x} #1.jsonl"]),
        ("deep", ["deep/er/c.jsonl"]),
        ("b.json", ["b.json"]),
        ("none", []),
        ("none/*", []),
    ],
)
def test_a_file_a_folder_or_a_pattern(tree, place, found):
    assert [path.relative_to(tree).as_posix() for path in files_at(str(tree / place))] == found


def test_only_keys_that_name_files_are_followed(tree, monkeypatch):
    rules = {"x": {"answers": {"type": "list", "of": "text", "files": True}, "model": "text"}}
    monkeypatch.setattr(own_files.param_types, "table", lambda: rules)
    values = {
        "answers": ["released", str(tree / "a.jsonl"), str(tree / "*.jsonl")],
        "model": str(tree / "b.json"),
    }
    names = [path.name for path in followed("x", values)]
    assert names == ["a.jsonl", "a.jsonl", "odd {x} #1.jsonl"]


CODE = """
from compendium.frame.own_files import files_at
page.cell("t", "a", "x", sum(len(path.read_text()) for place in answers for path in files_at(place)))
with open("../../ran.txt", "a") as told:
    told.write("x")
"""


def test_a_changed_a_new_and_a_lost_file_make_the_notebook_stale(tmp_path):
    mine = tmp_path / "mine {x}"
    mine.mkdir()
    (mine / "a.jsonl").write_text("12\n")
    project = small_project(tmp_path / "project", {"create": f"answers: ['{mine}/*.jsonl']\n"})
    book = project / "notebooks/create/01_a.ipynb"
    write_notebook(book, {}, "answers = []\n", PAGE)

    def runs() -> int:
        done = subprocess.run(
            [sys.executable, "-m", "compendium", "--study", "create", "--cores", "1"],
            cwd=project,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(project)},
        )
        assert done.returncode == 0, done.stderr
        return len((project / "ran.txt").read_text())

    assert (runs(), runs()) == (1, 1)
    (mine / "a.jsonl").write_text("other\n")
    os.utime(mine / "a.jsonl", (4e9, 4e9))
    assert runs() == 2
    os.utime(mine / "a.jsonl", (1e9, 1e9))
    (mine / "b.jsonl").write_text("new\n")
    assert runs() == 3
    (mine / "b.jsonl").unlink()
    assert runs() == 4


PAGE = (
    "from compendium.frame.page import Page\n"
    f'page = Page("create", "01_a", profile=profile, out=out)\n{CODE}\npage.close()'
)
