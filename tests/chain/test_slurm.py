"""The chain on a real Slurm of one node: the same cells, byte for byte, as on the local machine."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from compendium.frame.paths import ROOT
from tests.chain.one_node import one_node, reason
from tests.small_project import PAGE, small_project, write_notebook

CODE = (
    "import pandas as pd\n"
    'page.save_csv(pd.DataFrame({"x": page.rng(B, "x").normal(size=3)}), "alienbench/a.csv")\n'
    'page.cell("t", "a", "x", page.rng(B, "y").normal())'
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = small_project(
        tmp_path_factory.mktemp("project"),
        {"alienbench": "B: 10\n"},
        "alienbench,t,a,x,10,,,0,,Table 1,exact,,whole,number\n",
    )
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    path = folder / "notebooks/alienbench/01_a.ipynb"
    write_notebook(path, {"makes": ["alienbench/a.csv"]}, "B = 10\n", PAGE.format(name="01_a", code=CODE))
    return folder


@pytest.fixture(scope="module")
def slurm():
    why = reason()
    if why:
        pytest.skip(f"no Slurm can be started: {why}")
    try:
        with one_node() as folder:
            yield folder
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no Slurm can be started: {error}")


def run(project, build, *options):
    environment = {**os.environ, "PYTHONPATH": str(project), "COMPENDIUM_MIRROR": "", "VERBOSE": "1"}
    command = [sys.executable, "-m", "compendium", "--build", str(project / "build" / build), *options]
    return subprocess.run(
        command, cwd=project, env=environment, text=True, capture_output=True, timeout=500, check=False
    )


@pytest.fixture(scope="module")
def local(project):
    result = run(project, "local")
    assert result.returncode == 0, result.stderr
    return project / "build/local"


def jobs_ended(slurm):
    """How many jobs the controller has seen end well."""
    return len(re.findall(r"_job_complete: JobId=\d+ WEXITSTATUS 0", (slurm / "slurmctld.log").read_text()))


# seconds between looks, as short as a test can bear
QUICK = ("--seconds-between-status-checks", "1", "--latency-wait", "10", "--default-resources", "runtime=5")


@pytest.mark.parametrize(
    "profile, options",
    [("slurm", ("--slurm-init-seconds-before-status-checks", "1")), ("cluster-generic", ())],
)
def test_the_chain_gives_the_same_bytes_on_slurm(project, local, slurm, profile, options):
    before = jobs_ended(slurm)
    result = run(project, profile, "--cores", "8", "--", "--profile", f"profiles/{profile}", *QUICK, *options)
    assert result.returncode == 0, result.stderr + (slurm / "slurmctld.log").read_text()[-3000:]
    assert jobs_ended(slurm) - before == 2, "the notebook and the verification were jobs of Slurm"
    for name in ("cells.csv", "verification.csv", "cells/alienbench/01_a.csv", "alienbench/a.csv"):
        assert (project / "build" / profile / name).read_bytes() == (local / name).read_bytes(), name
