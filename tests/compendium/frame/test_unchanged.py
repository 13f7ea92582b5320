"""The shortcut of a run that has nothing to do: taken where nothing was touched, and nowhere else."""

import os
from types import SimpleNamespace

import pytest

from compendium.frame import unchanged
from tests.compendium.frame.test_chain import project, run  # noqa: F401


def started_snakemake(folder, *arguments):
    """Whether a run asked Snakemake (its log folder is new), and the run."""
    logs = folder / ".snakemake" / "log"
    before = set(logs.iterdir()) if logs.is_dir() else set()
    result = run(folder, *arguments)
    assert result.returncode == 0, result.stderr
    return set(logs.iterdir()) != before, result


def test_snakemake_is_asked_only_where_something_was_touched(project):  # noqa: F811
    assert started_snakemake(project)[0]
    asked, result = started_snakemake(project)
    assert not asked and "Nothing to do: all 3 notebooks" in result.stdout
    report = project / "build/demo/verification.csv"
    report.unlink()
    assert started_snakemake(project)[0] and report.is_file(), "a result that was deleted is made again"
    assert not started_snakemake(project)[0]
    assert started_snakemake(project, "--", "--forcerun", "alienbench_03_c")[0], "who asks for more gets it"
    (project / "params" / "types.yaml").touch()
    assert started_snakemake(project)[0]


@pytest.fixture
def books(tmp_path, monkeypatch):
    """A project of one file a room and a notebook with a file of one's own."""
    for room in unchanged.ROOMS[:-1]:
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.txt").write_text(room)
    (tmp_path / "Snakefile").write_text("rule")
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    own = tmp_path / "own.csv"
    own.write_text("1")
    monkeypatch.setattr(unchanged, "followed", lambda study, values: [own])
    return [
        SimpleNamespace(study="s", own={}, values=lambda params: {}, outputs=lambda out: [out / "made.csv"])
    ]


@pytest.mark.parametrize("name", ["lib/a.txt", "data/a.txt", "Snakefile", "own.csv"])
def test_every_kind_of_input_counts(books, tmp_path, name):
    first = unchanged.inputs(books, {"s": {}}, "demo")
    assert unchanged.inputs(books, {"s": {}}, "demo") == first
    os.utime(tmp_path / name, ns=(1, 1))
    assert unchanged.inputs(books, {"s": {}}, "demo") != first


def test_options_environment_and_outputs_count(books, tmp_path, monkeypatch):
    first = unchanged.inputs(books, {"s": {}}, "demo")
    assert unchanged.inputs(books, {"s": {}}, "live") != first
    monkeypatch.setenv("COMPENDIUM_MIRROR", "elsewhere")
    assert unchanged.inputs(books, {"s": {}}, "demo") != first
    empty = unchanged.outputs(books, tmp_path)
    (tmp_path / "made.csv").write_text("1")
    assert unchanged.outputs(books, tmp_path) != empty


def test_what_was_remembered_is_known_for_its_study_alone(tmp_path):
    assert not unchanged.done(tmp_path, "all", "x")
    unchanged.remember(tmp_path, "all", "x")
    assert unchanged.done(tmp_path, "all", "x") and not unchanged.done(tmp_path, "all", "y")
    assert not unchanged.done(tmp_path, "create", "x")
