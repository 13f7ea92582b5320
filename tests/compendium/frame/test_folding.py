"""A notebook that has nothing to work on in a live run is folded away with the reason, and what needs it too."""

import json

import pandas as pd
import pytest

from compendium.frame import folding
from compendium.frame.cells import read_cells
from compendium.frame.chain import read_notebook
from compendium.frame.execute import main as execute
from compendium.frame.files import write_jsonl
from compendium.frame.page import Page
from tests.small_project import PAGE, write_notebook

CANNOT = "from compendium.frame.folding import Folded\nraise Folded('nobody rated')"


@pytest.fixture
def notebook(tmp_path_factory):
    """write(name, meta, code, parameters) -> the path of a numbered notebook."""
    folder = tmp_path_factory.mktemp("given") / "alienbench"
    folder.mkdir()

    def write(name, meta, code, parameters=""):
        path = folder / f"{name}.ipynb"
        write_notebook(path, meta, parameters, PAGE.format(name=name, code=code))
        read_notebook.cache_clear()
        return path

    return write


def run(path, out, profile="live", **values):
    target = out / "notebooks/alienbench" / path.name
    return execute([str(path), str(target), json.dumps({"profile": profile, "out": str(out), **values})])


def test_a_notebook_without_input_and_what_needs_it_are_folded_away(notebook, tmp_path, capsys):
    first = notebook("96_first", {"makes": ["alienbench/r.csv"], "figures": ["f"], "tables": ["t"]}, CANNOT)
    second = notebook(
        "97_second", {"needs": {"r": "alienbench/r.csv"}}, "raise RuntimeError('is not run')", 'r = ""\n'
    )
    assert run(first, tmp_path) == 0
    assert run(second, tmp_path, r=str(tmp_path / "alienbench/r.csv")) == 0
    for name in ("96_first", "97_second"):
        cells = read_cells(tmp_path / "cells" / "alienbench" / f"{name}.csv")
        assert list(cells["note"]) == ["nobody rated"] and cells["value"].isna().all()
        assert "Folded away in this run" in (tmp_path / f"notebooks/alienbench/{name}.ipynb").read_text()
    drawn = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert {"alienbench/r.csv", "tables/alienbench/t.tex", "tables/alienbench/t.html"} <= set(drawn)
    assert folding.summary(tmp_path, {"alienbench"}) == [
        "Folded away: alienbench/96_first, alienbench/97_second: nobody rated"
    ]


def test_a_folded_notebook_that_can_run_is_no_longer_folded(notebook, tmp_path):
    path = notebook("96_first", {}, CANNOT)
    assert run(path, tmp_path) == 0 and folding.summary(tmp_path, {"alienbench"})
    notebook("96_first", {}, "page.cell('e', 'r', 'c', 1)")
    assert run(path, tmp_path) == 0
    assert folding.summary(tmp_path, {"alienbench"}) == []
    assert list(read_cells(tmp_path / "cells/alienbench/96_first.csv")["value"]) == [1.0]


def test_other_profiles_fold_nothing(notebook, tmp_path, capsys):
    assert run(notebook("96_first", {}, CANNOT), tmp_path, profile="demo") == 1
    assert "Folded: nobody rated" in capsys.readouterr().err


def test_an_error_is_folded_only_where_a_model_gave_nothing_usable(notebook, tmp_path, capsys):
    path = notebook("96_first", {}, "{}['f1']")
    assert run(path, tmp_path) == 1
    assert "KeyError: 'f1'" in capsys.readouterr().err
    write_jsonl(tmp_path / "void/x.jsonl", [{"study": "alienbench", "why": "lab/m gave nothing usable"}])
    assert run(path, tmp_path) == 0
    (line,) = folding.summary(tmp_path, {"alienbench"})
    assert line.endswith("lab/m gave nothing usable (met as KeyError: 'f1')")


@pytest.mark.parametrize("name", folding.STOPS)
def test_what_asking_again_can_mend_is_never_folded(tmp_path, name):
    write_jsonl(tmp_path / "void/x.jsonl", [{"study": "alienbench", "why": "lab/m gave nothing usable"}])
    assert folding.reason_after(name, "…", tmp_path, "alienbench") == ""


def test_cells_of_a_live_run_say_why_they_are_missing_and_what_they_lack(tmp_path):
    page = Page("alienbench", "03_scores", profile="live", out=str(tmp_path))
    page.cell("e", "few", "c", float("nan"))
    page.cell("e", "none", "c", float("-inf"))
    write_jsonl(tmp_path / "void/x.jsonl", [{"study": "alienbench", "why": "lab/m gave nothing usable"}])
    page.cell("e", "void", "c", None)
    page.cell("e", "there", "c", 1.0, note="as counted")
    write_jsonl(tmp_path / "missing/x.jsonl", [{"study": "alienbench", "stage": "judging"}])
    page.derived("e", "printed", "c", 2.0)
    page.close()
    cells = pd.read_csv(page.cells_path).set_index("row")["note"]
    lacks = "replies missing in judging"
    assert cells["few"] == cells["none"] == f"undefined: too few replies or models in this run; {lacks}"
    assert cells["void"] == f"lab/m gave nothing usable; {lacks}"
    assert cells["there"] == f"as counted; {lacks}"
    assert pd.isna(cells["printed"]), "the paper's own numbers rest on no reply of ours"
