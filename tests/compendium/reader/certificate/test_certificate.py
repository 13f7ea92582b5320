"""Certificates: what they state, that they can be checked, and that a re-run's changes are named."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pandas as pd
import pytest
import yaml
from rocrate.rocrate import ROCrate

from compendium.frame.compare import compare, in_words, moved
from compendium.frame.files import sha256
from compendium.frame.paths import ROOT
from compendium.reader.certificate.bundle import opened, read
from compendium.reader.certificate.facts import CertificateError
from tests.small_project import BASE, PAGE, small_project, write_notebook

CODE = (
    'import matplotlib\nmatplotlib.use("agg")\nimport matplotlib.pyplot as plt\n'
    'page.cell("t", "a", "x", seed)\npage.cell("t", "b", "x", 2 * seed, lo=1, hi=4)\n'
    'page.save_figure(plt.figure(figsize=(1, 1)), "dot")'
)


def run(folder, *arguments):
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "COMPENDIUM_MIRROR": "",
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of two studies with a notebook each, one of them run and certified."""
    folder = small_project(
        tmp_path_factory.mktemp("project"),
        {"alienbench": "seed: 1\n", "create": "seed: 1\n"},
        "alienbench,t,a,x,1,,,0,,Table 1,exact,,whole,number\nalienbench,t,c,x,9,,,0,,Table 1,exact,,none held,number\n",
        ("CITATION.cff", "requirements.lock", "pyproject.toml"),
    )
    shutil.copy(ROOT / "data/sources.csv", folder / "data")
    shutil.copy(ROOT / "data/blobs.csv", folder / "data")
    book = folder / "notebooks/alienbench/01_a.ipynb"
    write_notebook(book, {"figures": ["dot"]}, "seed = 1\n", PAGE.format(name="01_a", code=CODE))
    write_notebook(folder / "notebooks/create/01_a.ipynb", {}, "seed = 1\n", "never = run")
    assert BASE in book.read_text().replace("\\n", "\n").replace('\\"', '"')
    assert run(folder, "compendium", "--profile", "released", "--study", "alienbench").returncode == 0
    said = run(
        folder,
        "compendium.reader.certificate",
        "write",
        "--profile",
        "released",
        "--checker",
        "A. Reader <0000-0001-2345-6789>",
    )
    assert said.returncode == 0, said.stderr
    return folder


@pytest.fixture
def facts(project):
    return yaml.safe_load((project / "build/released/certificate/codecheck.yml").read_text())


def test_it_states_what_was_made_and_how_it_came_out(project, facts):
    assert [entry["file"] for entry in facts["manifest"]] == [
        "cells.csv",
        "derived.csv",
        "verification.csv",
        "unprinted.csv",
        "independent.csv",
        "cells/alienbench/01_a.csv",
        "figures/alienbench/dot.png",
        "figures/alienbench/dot.svg",
    ]
    for entry in facts["manifest"]:
        held = project / "build/released/certificate" / entry["file"]
        assert hashlib.sha256(held.read_bytes()).hexdigest() == entry["sha256"]
    assert (
        facts["verdicts"]["alienbench"]["equal"] == 1 and facts["verdicts"]["alienbench"]["not computed"] == 1
    )
    assert facts["codechecker"] == [{"name": "A. Reader", "ORCID": "0000-0001-2345-6789"}]
    assert facts["run"]["coverage"] == {
        "alienbench": {"notebooks": 1, "executed": 1},
        "create": {"notebooks": 1, "executed": 0},
    }
    assert facts["summary"] == (
        "Covers alienbench, executed from first notebook to last; 2 printed numbers: 1 equal, 1 not computed. "
        "Not covered, because not or not wholly executed: create."
    )
    assert facts["parameters"] == {"alienbench": {"seed": 1}}
    assert facts["run"]["notebooks"] == 1 and facts["run"]["notebook_seconds"] > 0
    assert facts["environment"]["packages"]["numpy"] == __import__("numpy").__version__


def test_it_states_the_archives(facts):
    commits = pd.read_csv(ROOT / "data/sources.csv", dtype=str).groupby("archive")["commit"].first()
    files = pd.read_csv(ROOT / "data/blobs.csv")
    pinned = files[files["archive"] == "alienbench"]
    archive = facts["archives"][0]
    assert (archive["archive"], archive["files"]) == ("alienbench", len(pinned))
    assert archive["bytes"] == pinned["bytes"].sum()
    assert archive["commit"] == [commits["alienbench"]]


def test_it_names_no_machine(project):
    folder = project / "build/released/certificate"
    for name in ("codecheck.yml", "certificate.html", "ro-crate-metadata.json"):
        text = (folder / name).read_text()
        assert str(project) not in text and os.uname().nodename not in text.split(), name


def test_the_bundle_is_an_ro_crate(project, tmp_path, facts):
    with zipfile.ZipFile(project / "build/released/certificate-released.zip") as archive:
        archive.extractall(tmp_path)
    crate = ROCrate(tmp_path)
    hashes = {entity.id: entity.get("sha256") for entity in crate.data_entities}
    assert {entry["file"]: entry["sha256"] for entry in facts["manifest"]}.items() <= hashes.items()
    action = crate.get("#run")
    assert action.type == "CreateAction" and action["endTime"] == facts["run"]["ended"]
    assert action["agent"]["name"] == "A. Reader"
    assert json.loads((tmp_path / "ro-crate-metadata.json").read_text())["@context"].startswith(
        "https://w3id.org/ro/crate/"
    )


def test_a_rerun_confirms_and_a_change_is_named(project):
    bundle = "build/released/certificate-released.zip"
    same = run(project, "compendium.reader.certificate", "verify", bundle)
    assert same.returncode == 0, same.stdout + same.stderr
    assert same.stdout.splitlines()[-1] == "8 of 8 exhibits equal: the run is confirmed"

    (project / "params/alienbench.yaml").write_text("seed: 3\n")
    try:
        changed = run(project, "compendium.reader.certificate", "verify", bundle)
    finally:
        (project / "params/alienbench.yaml").write_text("seed: 1\n")
    assert changed.returncode == 1
    said = changed.stdout
    assert (
        "changed: cells/alienbench/01_a.csv: alienbench/t[a, x] was 1, is 3; alienbench/t[b, x] was 2 [1, "
        "4], is 6 [1, 4]" in said
    )
    assert "note: code: params/alienbench.yaml changed\n" in said
    assert "note: parameters: alienbench.seed was 1, is 3\n" in said
    assert "note: verdicts: alienbench.equal was 1, is 0\n" in said
    assert "figures/alienbench/dot.png" not in said, "what is equal is not named"


def test_a_certificate_that_was_altered_is_refused(project, tmp_path):
    folder = tmp_path / "altered"
    shutil.copytree(project / "build/released/certificate", folder)
    path = folder / "cells.csv"
    path.write_text(path.read_text().replace("alienbench,t,a,x,1", "alienbench,t,a,x,2"))
    with pytest.raises(
        CertificateError, match="cells.csv: the copy in the bundle is not the one that codecheck.yml lists"
    ):
        read(folder)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("verify", "nowhere.zip"), "error: nowhere.zip: there is no such file"),
        (("verify", "compendium/frame/paths.py"), "error: compendium/frame/paths.py: is no certificate"),
        (("verify", ""), "error: say which: make verify-certificate FILE="),
        (
            ("write", "--profile", "demo"),
            "error: build/demo/verification.csv: no such file; run `make tables PROFILE=demo` first",
        ),
    ],
)
def test_bad_input_is_one_line(project, arguments, message):
    said = run(project, "compendium.reader.certificate", *arguments)
    assert said.returncode == 2 and said.stderr.startswith(message) and said.stderr.count("\n") == 1


def test_zip_folder_and_file_are_the_same_certificate(project):
    places = ("certificate-released.zip", "certificate", "certificate/codecheck.yml")
    found = []
    for place in places:
        with opened(project / "build/released" / place) as folder:
            found.append(read(folder)["manifest"])
    assert found[0] == found[1] == found[2]


# comparing
# -----------------------------------------------------------------------------------------------------------


def cells(*rows):
    return pd.DataFrame(
        [["s", "t", row, "c", value, float("nan"), float("nan"), note] for row, value, note in rows],
        columns=["study", "exhibit", "row", "column", "value", "lo", "hi", "note"],
    )


def test_moved_numbers_are_told_from_gone_and_new_ones():
    before = cells(("a", 1.0, ""), ("b", float("nan"), "undefined"), ("c", 3.0, ""), ("d", 4.0, ""))
    after = cells(("a", 1.5, ""), ("b", float("nan"), "undefined"), ("d", 4.0, "so"), ("e", 5.0, ""))
    assert in_words(moved(before, after)) == [
        "s/t[a, c] was 1, is 1.5",
        "s/t[c, c] is gone",
        "s/t[d, c] has another note",
        "s/t[e, c] is new",
    ]
    assert moved(before, before).empty


def test_missing_and_new_exhibits_are_told(tmp_path):
    for name, text in (
        ("old/a.tex", "1\n2\n3\n"),
        ("new/a.tex", "1\n2\n4\n"),
        ("old/b.csv", "x\n"),
        ("new/c.csv", "y\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    manifest = {
        side: [{"file": path.name, "sha256": sha256(path)} for path in sorted((tmp_path / side).iterdir())]
        for side in ("old", "new")
    }
    found = compare(tmp_path / "old", manifest["old"], manifest["new"], lambda name: tmp_path / "new" / name)
    assert [(change.file, change.kind) for change in found] == [
        ("a.tex", "changed"),
        ("b.csv", "missing"),
        ("c.csv", "new"),
    ]
    assert found[0].detail == "1 of 3 lines, the first is line 3"
