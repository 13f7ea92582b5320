"""Sentences that are shown as they are where they hold, and struck out where they do not."""

import numpy as np
import pytest

from compendium.frame.page import Page
from compendium.frame.params import PROFILES
from compendium.frame.prose import of_profile


def cell(kind, *tags):
    return {"cell_type": kind, "metadata": {"tags": list(tags)}, "source": "x"}


@pytest.fixture
def shown(monkeypatch):
    """What pages display, in order."""
    found = []
    monkeypatch.setattr("IPython.display.display", lambda each: found.append(each.data))
    return found


def test_a_sentence_that_does_not_hold_is_struck_out(shown):
    page = Page("alienbench", "03_scores")
    page.says(f"The mean is {2.5:.1f}.")
    page.holds("All are higher.", np.bool_(True), "Two are not.")
    page.holds(" All are higher. ", False, "Two are not.")
    page.holds("All are higher.", False)
    assert shown == [
        "The mean is 2.5.",
        "All are higher.",
        "~~All are higher.~~ Two are not.",
        "~~All are higher.~~",
    ]


@pytest.mark.parametrize("said", [np.nan, None, 1, "yes", np.array([True, False])])
def test_what_is_no_truth_value_is_refused(shown, said):
    with pytest.raises(TypeError, match="'All.' holds should be True or False"):
        Page("alienbench", "03_scores").holds("All.", said)
    assert not shown


def test_prose_of_another_profile_is_left_out_and_code_stays():
    cells = [
        cell("markdown"),
        cell("markdown", "demo"),
        cell("markdown", "released", "paper"),
        cell("markdown", "demo", "live"),
        cell("code", "released"),
    ]
    kept = {profile: of_profile(cells, profile, PROFILES) for profile in PROFILES}
    assert kept["demo"] == [cells[0], cells[1], cells[3], cells[4]]
    assert kept["released"] == [cells[0], cells[2], cells[4]]
    assert kept["live"] == [cells[0], cells[3], cells[4]]
