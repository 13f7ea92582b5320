"""The chain itself, on a project of three tiny notebooks: what runs, what runs again, and what is said when it cannot."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from lib.chain import ChainError, module_files, notebooks, read_notebook
from lib.paths import ROOT, STUDIES

BASE = 'profile = "demo"\nout = "build/lab"\n'
PAGE = 'from lib.page import Page\npage = Page("alienbench", "{name}", profile=profile, out=out)\n{code}\npage.close()'
BOOKS = {
    "01_a": ({"makes": ["alienbench/a.csv"]}, "B = 10\n",
             'import pandas as pd\npage.save_csv(pd.DataFrame({"x": [B]}), "alienbench/a.csv")\npage.cell("t", "a", "x", B)'),
    "02_b": ({"needs": {"a": "alienbench/a.csv"}}, 'a = ""\nseed = 1\n',
             'import pandas as pd\nfrom lib import numeric\npage.cell("t", "b", "x", pd.read_csv(a).x[0] + seed)'),
    "03_c": ({}, "seed = 1\n", 'page.cell("t", "c", "x", seed)'),
}


def write_notebook(path, meta, parameters, code):
    def cell(name, source, tags=()):
        return {"cell_type": "code", "id": name, "metadata": {"tags": list(tags)}, "source": source, "outputs": [],
                "execution_count": None}

    path.write_text(json.dumps({
        "cells": [cell("parameters", BASE + parameters, ["parameters"]), cell("code", code)],
        "metadata": {"compendium": {"study": path.parent.name, **meta},
                     "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of its own: this one's `lib` and Snakefile, three notebooks, two params keys."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "lib", folder / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("params", "notebooks/alienbench", "data/published"):
        (folder / name).mkdir(parents=True)
    for profile, source in (("demo", "simulated"), ("released", "archive"), ("live", "endpoint")):
        (folder / "params" / f"{profile}.yaml").write_text(f"source: {source}\n")
    (folder / "params" / "alienbench.yaml").write_text("B: 10\nseed: 1\n")
    (folder / "data" / "published" / "alienbench.csv").write_text(
        "study,exhibit,row,column,value,lo,hi,decimals,note,place,kind,tolerance,archive\n"
        "alienbench,t,a,x,10,,,0,,Table 1,exact,,same\n")
    for name, (meta, parameters, code) in BOOKS.items():
        write_notebook(folder / "notebooks" / "alienbench" / f"{name}.ipynb", meta, parameters,
                       PAGE.format(name=name, code=code))
    return folder


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder), "COMPENDIUM_MIRROR": ""}
    return subprocess.run([sys.executable, "-m", "lib.run", *arguments], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=200, check=False)


def stamps(folder):
    return {path.stem: path.stat().st_mtime_ns for path in (folder / "build/demo/notebooks/alienbench").glob("*.ipynb")}


def rerun(folder):
    """The notebooks that a run executes again."""
    before = stamps(folder)
    result = run(folder)
    assert result.returncode == 0, result.stderr
    return {name for name, stamp in stamps(folder).items() if stamp != before.get(name)}, result


def test_the_chain_runs_what_changed_and_nothing_else(project):
    ran, result = rerun(project)
    assert ran == {"01_a", "02_b", "03_c"}
    assert "alienbench: cells 3; printed 1: reproduced 0" in result.stdout
    cells = (project / "build/demo/cells.csv").read_text().splitlines()
    assert cells[2] == "alienbench,t,b,x,11,,,,,alienbench/02_b,code", "a number carries the cell that made it"
    assert 'cell-id=code' in (project / "build/demo/notebooks/alienbench/02_b.html").read_text()

    ran, result = rerun(project)
    assert ran == set() and "Nothing to do: all 3 notebooks of profile demo are up to date." in result.stdout

    (project / "params/alienbench.yaml").write_text("B: 11\nseed: 1\n")
    assert rerun(project)[0] == {"01_a", "02_b"}, "a params key: who names it, and who needs its files"

    (project / "lib/numeric.py").touch()
    assert rerun(project)[0] == {"02_b"}, "a lib module: who imports it"

    (project / "notebooks/alienbench/03_c.ipynb").touch()
    assert rerun(project)[0] == {"03_c"}, "a notebook: itself"


def test_a_failing_notebook_is_one_line_and_leaves_nothing_half(project):
    path = project / "notebooks/alienbench/04_d.ipynb"
    write_notebook(path, {}, "seed = 1\n", PAGE.format(name="04_d", code='page.cell("t", "d", "x", 1)\nraise KeyError("lost")'))
    result = run(project)
    path.unlink()
    assert result.returncode != 0
    assert "notebooks/alienbench/04_d.ipynb, cell code: KeyError: 'lost'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (project / "build/demo/cells/alienbench/04_d.csv").exists()


@pytest.mark.parametrize("text, message", [
    ("B: 10\nseed: 1\nsed: 2\n", "error: params/alienbench.yaml, line 3: unknown key `sed`; did you mean `seed`?"),
    ("B: 10\n", "error: notebooks/alienbench/02_b.ipynb: its parameter 'seed' is no key of params/alienbench.yaml"),
    ("B: 10\nseed: [\n", "error: params/alienbench.yaml: line 3"),
])
def test_bad_params_stop_the_chain_before_anything_runs(project, text, message):
    good = (project / "params/alienbench.yaml").read_text()
    (project / "params/alienbench.yaml").write_text(text)
    result = run(project)
    (project / "params/alienbench.yaml").write_text(good)
    assert result.returncode == 2 and result.stderr.startswith(message) and result.stderr.count("\n") == 1


def test_a_missing_mirror_is_said_before_anything_runs(project):
    environment = {**os.environ, "PYTHONPATH": str(project), "COMPENDIUM_MIRROR": "nowhere"}
    result = subprocess.run([sys.executable, "-m", "lib.run", "--profile", "released"], cwd=project, env=environment,
                            text=True, capture_output=True, check=False)
    assert result.returncode == 2 and "COMPENDIUM_MIRROR=nowhere: no such folder" in result.stderr


@pytest.mark.parametrize("meta, parameters, message", [
    ({"neds": {}}, "", "unknown metadata key compendium.neds"),
    ({"needs": {"labels": "x.csv"}}, "", "should set 'labels'"),
    ({"study": "stories"}, "", "lacks `compendium: {study: alienbench"),
])
def test_malformed_metadata_names_the_notebook(tmp_path, meta, parameters, message):
    path = tmp_path / "alienbench" / "01_x.ipynb"
    path.parent.mkdir()
    write_notebook(path, meta, parameters, "1")
    with pytest.raises(ChainError, match=message) as caught:
        read_notebook(path)
    assert "01_x.ipynb" in str(caught.value)


def test_what_a_module_imports_in_turn_counts():
    files = {os.path.relpath(path, ROOT) for path in module_files(frozenset({"lib.page"}))}
    assert {"lib/page.py", "lib/cells.py", "lib/files.py", "lib/paths.py"} <= files and "lib/verify.py" not in files


def test_every_committed_notebook_has_its_place():
    for study in STUDIES:
        for profile in ("demo", "released", "live"):
            books = notebooks(study, profile)
            assert [book.name for book in books] == sorted(book.name for book in books)
            for book in books:
                assert all((ROOT / name).exists() for name in book.code_inputs()), book.path
