"""Prose is true of the numbers beside it, in every profile: what it claims is computed, or its tag says why it may stand.

`python -m compendium.frame.claims notebooks/<study>/NN_x.ipynb` lists the places of one notebook.
"""

from pathlib import Path

import pytest

from compendium.frame.claims import faults
from compendium.frame.paths import NOTEBOOKS
from compendium.frame.refresh import committed

# Not clean yet, a notebook a line. One that is clean must go from the list, and none may come.
LISTED = set(Path(__file__).with_name("unclean.txt").read_text(encoding="utf-8").split())
PATHS = {path.relative_to(NOTEBOOKS).with_suffix("").as_posix(): path for path in committed()}


@pytest.mark.parametrize("name", PATHS)
def test_prose_claims_nothing_that_is_not_computed(name):
    found = faults(PATHS[name])
    if name in LISTED:
        assert found, f"{name} is clean: take it from the list"
    else:
        assert found == []


def test_the_list_names_notebooks():
    assert set(PATHS) >= LISTED
