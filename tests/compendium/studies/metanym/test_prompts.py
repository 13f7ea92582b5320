"""The instruments: filled in one pass, and the un-anchored form as the paper derives it."""

import pytest

from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.prompts import (
    evaluation_prompt,
    generation_prompt,
    gpqa_prompt,
    raw_prompt,
    template,
    unanchored_form,
)


def test_the_unanchored_form_follows_from_the_anchored_one():
    assert unanchored_form(template("evaluation_anchored.md")) == template("evaluation_unanchored.md")


def test_nothing_of_the_calibration_is_left_in_it():
    text = template("evaluation_unanchored.md")
    for word in ("Reference", "ANCHOR", "calibration", "Target"):
        assert word not in text
    assert text.startswith("# Score these. You are evaluating contest submissions.\n")


def test_the_six_criteria_are_the_same_in_all_three():
    for criterion in (
        "Each sentence is factually correct",
        "span very different domains. Metanyms are far from synonymous",
        "impressive length",
        "very different system structures",
    ):
        assert criterion in generation_prompt() and criterion in template("evaluation_anchored.md")
        assert criterion in template("evaluation_unanchored.md")


def test_places_are_filled_once():
    text = evaluation_prompt("TARGET with {ANCHOR_SCORE} in it", "REFERENCE {TARGET_SUBMISSION}", 6)
    assert "pre-scored at **6/10" in text and "Equal to the Reference = 6." in text
    assert "TARGET with {ANCHOR_SCORE} in it" in text and "REFERENCE {TARGET_SUBMISSION}" in text
    assert text.count("TARGET with") == 1 and text.index("REFERENCE") < text.index("TARGET with")


def test_a_batch_names_its_submissions():
    text = raw_prompt({"S01": "first text", "S02": "second text"})
    assert "### Submission S01\n\nfirst text" in text and "### Submission S02\n\nsecond text" in text


def test_a_question():
    assert gpqa_prompt("Why?", ["w", "x", "y", "z"]).rstrip().endswith("A) w\nB) x\nC) y\nD) z")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: evaluation_prompt("t", "r", 11), "anchor must lie on the rating scale"),
        (lambda: evaluation_prompt("t", " ", 7), "portfolio 'reference' is empty"),
        (lambda: raw_prompt({}), "at least one submission"),
        (lambda: raw_prompt({"S01": ""}), "portfolio 'S01' is empty"),
        (lambda: gpqa_prompt("Why?", ["a"]), "four options"),
        (lambda: template("nothing.md"), "no such instrument"),
        (lambda: unanchored_form("text"), "item 1"),
    ],
)
def test_what_cannot_be_asked(call, words):
    with pytest.raises(MetanymError, match=words):
        call()
