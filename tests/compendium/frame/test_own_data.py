"""Data of one's own in the place of what models were asked for."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from compendium.frame.cells import read_cells
from compendium.frame.chain import notebooks
from compendium.frame.own_data import DataError, with_own
from compendium.frame.paths import ROOT
from lib.agreement import krippendorff_alpha

JUDGES = {"anna": 0.05, "ben": 0.1}
MODELS = ("lab/a", "lab/b")
CONDITIONS = (
    "baseline",
    "departure_primed",
    "constrained_no_light",
    "constrained_high_gravity",
    "constrained_ammonia",
)


def given(folder, **files):
    for name, content in files.items():
        path = folder / "alienbench" / name.replace("_csv", ".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder)


def test_what_is_given_is_read_and_nobody_is_asked(tmp_path):
    books = notebooks("alienbench", "demo")
    used, left_out = with_own(books, given(tmp_path, labels_csv="", generations_csv=""))
    assert [book.name for book in left_out] == ["01_generate", "02_judge"]
    scores = next(book for book in used if book.name == "03_scores")
    assert scores.own == {name: tmp_path / "alienbench" / f"{name}.csv" for name in ("labels", "generations")}
    assert not {"labels", "generations"} & set(scores.needs)
    assert set(scores.own) <= set(scores.parameters)


def test_what_needs_a_file_that_is_nobody_s_is_left_out(tmp_path):
    used, left_out = with_own(notebooks("alienbench", "demo"), given(tmp_path, generations_csv=""))
    needing = {b.name for b in notebooks("alienbench", "demo") if "alienbench/labels.csv" in b.needs.values()}
    assert needing and needing <= {book.name for book in left_out}


def test_a_packed_file_serves_and_other_studies_run_as_ever(tmp_path):
    books = notebooks("all", "demo")
    for name in ("labels", "generations"):
        (tmp_path / "alienbench").mkdir(exist_ok=True)
        shutil.copy(ROOT / f"data/demo/alienbench/{name}.csv.gz", tmp_path / "alienbench")
    used, left_out = with_own(books, str(tmp_path))
    assert {book.study for book in left_out} == {"alienbench"}
    assert with_own(books, "") == (books, [])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no folder of data for alienbench"),
        (
            {"label_csv": ""},
            "label.csv: no notebook of alienbench reads such a file; those that are read: .*labels.csv",
        ),
    ],
)
def test_a_folder_that_cannot_be_used(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        with_own(notebooks("alienbench", "demo"), given(tmp_path, **files))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """This project with two models and two human judges in params/alienbench.yaml, and their 200 descriptions."""
    folder = tmp_path_factory.mktemp("own")
    for name in ("lib", "compendium", "params", "data", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", folder)
    path = folder / "params/alienbench.yaml"
    text = path.read_text(encoding="utf-8")
    start, end = text.index("subjects:"), text.index("# Prompt conditions")
    roster = "subjects:\n  lab/a: {label: A, weights: open}\n  lab/b: {label: B, weights: open}\njudges: {anna: Anna, ben: Ben}\n"
    text = text[:start] + roster + text[end:]
    path.write_text(text.replace("  detailed_description: Detailed description\n", ""), encoding="utf-8")
    features = list(pd.read_csv(ROOT / "data/demo/alienbench/labels.csv.gz", nrows=1).columns[5:])
    rows = [(f"g{i}", MODELS[i % 2], CONDITIONS[i // 2 % 5], i // 10) for i in range(200)]
    rng = np.random.default_rng(3)
    truth = rng.random((200, len(features))) < 0.5
    said = {judge: truth ^ (rng.random(truth.shape) < slips) for judge, slips in JUDGES.items()}
    labels = [(*row, judge, *map(int, said[judge][i])) for judge in JUDGES for i, row in enumerate(rows)]
    keys = ["generation_id", "model", "condition", "sample_index"]
    place = folder / "mine/alienbench"
    place.mkdir(parents=True)
    pd.DataFrame(rows, columns=keys).to_csv(place / "generations.csv", index=False)
    pd.DataFrame(labels, columns=[*keys, "judge", *features]).to_csv(place / "labels.csv", index=False)
    return folder, said, features


def test_two_human_judges_and_200_descriptions_give_their_agreement(project):
    folder, said, features = project
    targets = [
        f"build/demo-smoke/cells/alienbench/{name}.csv" for name in ("04_reliability", "10_human_baseline")
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "compendium",
            "--study",
            "alienbench",
            "--smoke",
            "1",
            "--data",
            "mine",
            "--",
            *targets,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert (
        "With the data in mine, these are left out: alienbench/01_generate, alienbench/02_judge" in run.stderr
    )
    assert "Folded away: alienbench/10_human_baseline: no descriptions by people" in run.stdout
    cells = (
        read_cells(folder / targets[0]).query("exhibit == 'table-7'").set_index(["row", "column"])["value"]
    )
    for number, feature in enumerate(features):
        ratings = np.array([said[judge][:, number] for judge in JUDGES], dtype=float)
        assert cells[feature, "alpha"] == pytest.approx(krippendorff_alpha(ratings), abs=1e-9)
    totals = np.array([said[judge].sum(axis=1) for judge in JUDGES], dtype=float)
    assert cells["total", "alpha"] == pytest.approx(krippendorff_alpha(totals, "interval"), abs=1e-9)
