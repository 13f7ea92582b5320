"""The estimators' numbers are the same on processors old and new; `make portable` asks the same of the whole chain."""

import json
import os
import subprocess
import sys
from functools import lru_cache

import pytest

from compendium.frame.paths import ROOT
from tests.chain.portable import OLD, VARIANTS, contents, differences


@lru_cache
def estimated(variant: str | None = None) -> dict:
    settings = VARIANTS[variant] if variant else {}
    kept = {name: value for name, value in os.environ.items() if name not in OLD}
    done = subprocess.run(
        [sys.executable, "-m", "tests.chain.estimators"],
        cwd=ROOT,
        env={**kept, **settings},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return estimated()


@pytest.mark.parametrize("variant", ["prescott", "haswell", "threads4"])
def test_estimators_are_the_same_under_other_kernels(here, variant):
    there = estimated(variant)
    different = [name for name, values in here["results"].items() if values != there["results"][name]]
    assert here["results"].keys() == there["results"].keys() and not different


def test_an_old_processors_kernels_are_other_kernels(here):
    """Otherwise the test above would compare a processor with itself."""
    there = estimated("prescott")
    if not OLD["NPY_DISABLE_CPU_FEATURES"]:
        pytest.skip("numpy found nothing beyond its baseline on this processor")
    assert here["kernels"] != there["kernels"]


def test_a_last_digit_is_a_difference(tmp_path):
    for folder, value in (("one", "0.3"), ("other", "0.30000000001")):
        (tmp_path / folder / "cells").mkdir(parents=True)
        (tmp_path / folder / "cells" / "a.csv").write_text(f"row,value\nmean,{value}\n")
    one, other = contents(tmp_path / "one"), contents(tmp_path / "other")
    assert differences(one, one) == []
    assert differences(one, other) == ["cells/a.csv: mean,0.3 | mean,0.30000000001"]
    assert differences(one, {}) == ["cells/a.csv: made by one run alone"]
