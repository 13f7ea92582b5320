"""The grammar: what is written can be read again, and nothing else is."""

import copy

import pytest
import yaml

from compendium.frame.chance import Stream
from compendium.studies.alienbench.ask import boundary_rules, prompts
from compendium.studies.alienbench.simulated.creatures import KINDS, SOURCE, Grammar, grammar

FORMS = ("essay", "sections", "fieldnotes", "dossier", "plain")


def kinds_drawn(number):
    """Some of the features, each with a kind, by the number."""
    stream = Stream("kinds", number)
    return {feature: stream.choice(KINDS) for feature in grammar().features if stream.uniform() < 0.7}


def write(number, kinds, form="essay", condition="baseline", words=300):
    return grammar().write(Stream("text", number), kinds, form=form, condition=condition, words=words)


@pytest.mark.parametrize("form", FORMS)
def test_a_text_says_what_it_was_told_to_say_and_nothing_more(form):
    for number in range(60):
        kinds = kinds_drawn(number)
        found = grammar().read(write(number, kinds, form, list(prompts())[number % 6]))
        # A text that describes nothing is read by tell-tale words, which a plot of asides may contain.
        assert not kinds or {feature: kind for feature, (kind, _) in found.items()} == kinds


def test_reading_survives_other_line_breaks():
    kinds = kinds_drawn(1)
    text = write(1, kinds, "dossier")
    assert grammar().read("  " + text.replace(" ", "\n")) == grammar().read(text)


def test_every_sentence_of_the_grammar_is_recognised_by_its_cue_alone():
    everything = [phrase for several in grammar().phrases.values() for phrase in several]
    assert len(everything) == 180 and {phrase.feature for phrase in everything} == set(boundary_rules())
    for phrase in everything:
        assert len(phrase.cue) >= 15
        assert grammar().read(f"x{phrase.cue}x") == {phrase.feature: (phrase.kind, phrase.gloss)}
        assert len(phrase.gloss.split()) <= 15  # the instrument's own limit for `feature_described`


def test_neither_openings_nor_asides_describe_a_feature():
    content = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    cues = [phrase.cue for several in grammar().phrases.values() for phrase in several]
    others = [
        *content["asides"],
        *content["closings"],
        *content["questions"],
        *(text for several in content["openings"].values() for text in several),
        *(text for entry in content["phrases"].values() for text in entry["elaborations"]),
    ]
    assert len(others) > 100
    assert not [text for text in others if any(cue in text for cue in cues)]


def test_texts_vary_and_keep_to_their_length():
    texts = [write(number, kinds_drawn(0), words=320) for number in range(40)]
    assert len(set(texts)) == 40
    assert all(290 < len(text.split()) < 380 for text in texts)
    assert len({text.split(".")[0] for text in texts}) > 30


def test_an_equal_stream_writes_an_equal_text():
    assert write(5, kinds_drawn(5)) == write(5, kinds_drawn(5))


def test_slots_are_all_filled():
    for form in FORMS:
        text = write(form, dict.fromkeys(grammar().features, "departure"), form, words=600)
        assert "{" not in text and "}" not in text


def test_a_text_of_another_origin_is_read_by_its_words():
    found = grammar().read("The beast is radially symmetric, walks on six legs and breeds by spores.")
    assert {feature: kind for feature, (kind, _) in found.items()} == {
        "symmetry": "departure",
        "locomotion": "typical",
        "reproduction": "departure",
    }
    assert grammar().read("Nothing to see.") == {}


def test_prompts_lead_to_their_conditions_and_unknown_ones_by_their_words():
    for condition, text in prompts().items():
        assert grammar().condition_of(f" {text}\n", prompts()) == condition
    dark = "Invent a beast for a place without light."
    assert grammar().condition_of(dark, prompts()) == "constrained_no_light"
    assert grammar().condition_of("Invent a beast.", prompts()) == "baseline"


def test_a_grammar_whose_sentences_cannot_be_told_apart_is_refused():
    content = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    double = copy.deepcopy(content)
    double["phrases"]["habitat"]["typical"][0]["text"] = double["phrases"]["symmetry"]["typical"][0]["text"]
    with pytest.raises(ValueError, match="cannot be told from"):
        Grammar(double)
    lacking = copy.deepcopy(content)
    del lacking["phrases"]["habitat"]["subtle_typical"]
    with pytest.raises(ValueError, match="phrases.habitat lacks sentences of kind 'subtle_typical'"):
        Grammar(lacking)
