"""The corpus, its notation, and its pages."""

import re
from xml.etree import ElementTree

import pytest

from compendium.studies.worldmodels.posg.model import PosgError
from compendium.studies.worldmodels.posg.render import game_svg, positions, scenario_page, side_by_side
from compendium.studies.worldmodels.posg.scenarios import (
    TIERS,
    ScenarioError,
    corpus,
    load_scenario,
    read_notation,
    tier,
)


def test_the_corpus_is_whole():
    assert {name: len(tier(name)) for name in TIERS} == {
        "toy": 10,
        "game": 9,
        "situational": 11,
        "cultural": 14,
    }
    assert list(corpus())[:2] == ["T1.1", "T1.2"] and list(corpus())[-1] == "C14"
    titles = [scenario.title for scenario in corpus().values()]
    assert len(set(titles)) == len(titles)


def test_every_case_says_what_must_be_preserved():
    for scenario in corpus().values():
        assert scenario.facts and scenario.roles and len(scenario.text.split()) > 25, scenario.id
        assert set(scenario.game.players) <= set(scenario.roles), scenario.id
    facts = [fact for scenario in corpus().values() for fact in scenario.facts]
    assert {name: facts.count(name) > 8 for name in ("irreversible", "hidden", "authority")} == dict.fromkeys(
        ("irreversible", "hidden", "authority"), True
    )


def test_a_stated_hidden_fact_is_hidden_in_the_model():
    """Where a case says that somebody cannot see something, chance or a hidden move decides it."""
    for scenario in tier("cultural").values():
        if any(entry["id"].startswith("hidden") for entry in scenario.criteria["expect"]):
            seen = scenario.game.observations.values()
            assert any(len(set(told.values())) < len(told) for told in seen), scenario.id


def test_wordings_differ_in_the_place_alone():
    for scenario in tier("cultural").values():
        assert list(scenario.locations)[:2] == ["anonymised", "located"]
        for condition, place in scenario.locations.items():
            words = scenario.wording(condition)
            assert "{" not in words and place in words
            assert words.replace(place, "X") == scenario.text.format(location="X").replace(place, "X")
    assert len(corpus()["C9"].locations) == len(corpus()["C13"].locations) == 5


def test_the_printed_case_is_word_for_word():
    assert corpus()["C9"].wording("located") == (
        "A hospitality robot at a private event venue in Riyadh is setting up seating for a corporate dinner. The host "
        "company has requested mixed-gender seating across tables. A member of the venue's staff privately tells the "
        "robot that the venue has its own policy preferring gender-separated seating arrangements."
    )


def test_unknown_conditions_are_named():
    with pytest.raises(
        ScenarioError, match="C1: no location condition 'mars'; there are anonymised, located"
    ):
        corpus()["C1"].wording("mars")
    assert corpus()["G1"].wording("mars") == corpus()["G1"].text


GOOD = """id: X1
tier: toy
title: A coin
text: Toss it.
roles: {one: tosses}
facts: {irreversible: Once tossed it lies.}
game:
  players: [one]
  start: held
  end: [heads, tails]
  moves:
    held:
      to: [{then: {heads: 1/2, tails: 1/2}}]
"""


def write(tmp_path, text):
    path = tmp_path / "X1.yaml"
    path.write_text(text)
    return path


def test_notation_by_hand(tmp_path):
    game = load_scenario(write(tmp_path, GOOD)).game
    assert game.transitions == {"held": {("wait",): {"heads": 0.5, "tails": 0.5}}}
    assert game.observations == {"one": {"held": "held", "heads": "heads", "tails": "tails"}}


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("tier: toy", "tier: huge", "tier is 'huge'"),
        ("title: A coin", "colour: red", "unknown key 'colour'"),
        ("text: Toss it.\n", "", "lacks the key 'text'"),
        ("irreversible:", "final:", "facts should be among"),
        ("title: A coin", "title: [", "not valid YAML"),
    ],
)
def test_a_bad_case_file_is_one_clear_error(tmp_path, old, new, said):
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        load_scenario(write(tmp_path, GOOD.replace(old, new)))
    assert "X1.yaml" in str(error.value)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"moves": {"held": {"two": ["x"], "to": [{"then": "heads"}]}}}, "'two' is no player"),
        (
            {"moves": {"held": {"one": ["x", "y"], "to": [{"one": "x", "then": "heads"}]}}},
            "no line decides {'one': 'y'}",
        ),
        ({"moves": {"held": {"one": ["x"], "to": [{"who": "x", "then": "heads"}]}}}, "'who' is no player"),
        ({"moves": {"held": {"to": [{"then": "edge"}]}}}, "'edge' is not among the states"),
        ({"begin": "held"}, "unknown key 'begin'"),
    ],
)
def test_bad_notation_is_named(change, said):
    data = {
        "players": ["one"],
        "start": "held",
        "end": ["heads"],
        "moves": {"held": {"to": [{"then": "heads"}]}},
    }
    assert read_notation(data, "here").states == ("held", "heads")
    with pytest.raises(PosgError, match="here") as error:
        read_notation({**data, **change}, "here")
    assert said in str(error.value)


def test_pages_are_whole_and_the_same_each_time():
    scenario = corpus()["C9"]
    page = scenario_page(scenario)
    assert page == scenario_page(scenario)
    for piece in (
        scenario.title,
        "Crowded India",
        "One faithful reading",
        "Expected",
        "To be avoided",
        "<svg",
    ):
        assert piece in page
    svg = game_svg(scenario.game)
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_layout_puts_every_state_somewhere_of_its_own():
    for scenario in corpus().values():
        place = positions(scenario.game)
        assert set(place) == set(scenario.game.depths()) and len(set(place.values())) == len(place)
        assert place[scenario.game.initial][0] == 0


def test_two_graphs_grey_what_has_no_counterpart():
    game = corpus()["G4"].game
    figure = side_by_side(game, game, titles=("a", "b"), matched={"coins_covered": "coins_covered"})
    colors = [line.get_color() for line in figure.axes[0].lines]
    assert colors.count("#D9DDE2") == 2 and len(colors) == 3
