"""The small live run of every study, against our own models behind a real server, one of which gives nothing usable: it runs
to its end, and says which model that was wherever something is missing for it."""

import os
import subprocess
import sys

import pandas as pd
import pytest

from compendium.asking.simulated.faults import USELESS, Faults
from compendium.asking.simulated.server import serve
from compendium.frame.files import marks
from compendium.frame.paths import ROOT

WEAK = {  # study: (models that answer nothing of use, what the marks of the run say of it)
    "alienbench": (["openai/gpt-5.4"], "openai/gpt-5.4 gave nothing usable in judging"),
    "stories": (["deepseek/deepseek-v3.2"], ""),  # any text is a story: one, though asked for three
    "metanym": (["openai/gpt-4.1-nano"], "openai/gpt-4.1-nano gave nothing usable in playing"),
    "worldmodels": (
        ["qwen/qwen3.8-27b", "deepseek/deepseek-v4-flash-0731"],
        "qwen/qwen3.8-27b gave nothing usable in judging: none of",
    ),
    "create": (["qwen/qwen3-30b-a3b-instruct-2507"], ""),  # its answers are read as holding no path
}


@pytest.mark.parametrize("study", WEAK)
def test_a_model_that_gives_nothing_usable_stops_no_small_live_run(study, tmp_path):
    models, said = WEAK[study]
    with serve((study,), faults=Faults(useless=tuple(models))) as server:
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "compendium",
                "--profile",
                "live",
                "--study",
                study,
                "--smoke",
                "1",
                "--build",
                tmp_path,
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OPENROUTER_API_KEY": "sk-nothing-but-a-test",
                "COMPENDIUM_BASE_URL": server.base_url,
                "COMPENDIUM_CACHE": str(tmp_path / "cache"),
                "COMPENDIUM_REMOTE": "http://127.0.0.1:9",  # no archive, so no stories by people
            },
            capture_output=True,
            text=True,
        )
    assert run.returncode == 0, run.stderr[-3000:]
    assert f"{study}: cells " in run.stdout
    voids = [mark["why"] for mark in marks(tmp_path, "void")]
    assert any(why.startswith(said) for why in voids) if said else not voids
    cells = pd.read_csv(tmp_path / "cells.csv")
    gone = cells[cells["value"].isna()]
    assert gone["note"].notna().all(), "a missing cell says why"
    for folded in marks(tmp_path, "folded"):
        assert f"{folded['notebook']}" in run.stdout and folded["reason"] in run.stdout
        if study in ("metanym", "worldmodels"):
            assert said in folded["reason"]
            assert (gone["note"] == folded["reason"]).any()
    if study != "worldmodels" and said:
        assert any(USELESS in why for why in voids), "the first reply is quoted"
