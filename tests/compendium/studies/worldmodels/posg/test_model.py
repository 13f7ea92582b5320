"""POSG: JSON form, loading, validation, canonical JSON, renaming; Lane 1's gates."""

import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from compendium.studies.worldmodels.posg.abstract import AbstractPOSG, WorldModelError, state_label, tabulate
from compendium.studies.worldmodels.posg.contract import satisfies_schema
from compendium.studies.worldmodels.posg.lanes import lane_one, state_graph
from compendium.studies.worldmodels.posg.model import (
    POSG,
    SCHEMA,
    PosgError,
    canonical_json,
    from_document,
    relabel,
    schema_problems,
)
from compendium.studies.worldmodels.posg.scenarios import corpus
from tests.compendium.studies.worldmodels.posg.posg_games import chain, pennies, table


def document(**changes):
    made = json.loads(canonical_json(corpus()["T4.2"].game))
    made.update(changes)
    return made


def test_json_round_trip_keeps_everything():
    for scenario in corpus().values():
        again = from_document(json.loads(canonical_json(scenario.game)))
        assert canonical_json(again) == canonical_json(scenario.game)
        assert again.size() == scenario.game.size() and again.depths() == scenario.game.depths()
        assert schema_problems(again.document()) == []


def test_canonical_json_forgets_order_only():
    game = corpus()["G9"].game
    shuffled = document(**{})
    shuffled = json.loads(canonical_json(game))
    rng = np.random.default_rng(1)
    for key in ("players", "states", "transitions"):
        shuffled[key] = [shuffled[key][i] for i in rng.permutation(len(shuffled[key]))]
    assert canonical_json(from_document(shuffled)) == canonical_json(game)
    other = json.loads(canonical_json(game))
    other["transitions"][0]["outcomes"][0]["probability"] = 0.25
    assert canonical_json(from_document(other)) != canonical_json(game)


def test_observations_may_depend_on_the_transition():
    made = document()
    row = made["transitions"][0]
    row["outcomes"][0]["observations"] = {"left": "bang"}
    game = from_document(made)
    joint = tuple(row["joint_action"][p] for p in game.players)
    target = row["outcomes"][0]["state"]
    assert game.observation("left", row["state"], joint, target) == "bang"
    assert game.observation("right", row["state"], joint, target) == target
    assert canonical_json(from_document(json.loads(canonical_json(game)))) == canonical_json(game)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"players": []}, "players"),
        ({"initial_state": "nowhere"}, "initial_state: 'nowhere' is not among the states"),
        ({"terminal_states": ["gone"]}, "terminal_states: 'gone' is not among the states"),
        ({"states": ["facing", "facing"]}, "states"),
        ({"extra": 1}, "extra"),
        ({"actions": {}}, "the non-terminal state"),
        ({"observations": {"left": {}}}, "observations.left: nothing for the state"),
    ],
)
def test_a_bad_document_is_one_clear_error(change, said):
    with pytest.raises(PosgError, match="the model: ") as error:
        from_document(document(**change))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda row: row["joint_action"].pop("left"), "joint_action should name the players"),
        (lambda row: row["joint_action"].update(left="fly"), "'fly' is not an action of left"),
        (lambda row: row.update(state="nowhere"), "the state 'nowhere' is not among the states"),
        (
            lambda row: row["outcomes"][0].update(state="nowhere"),
            "the outcome 'nowhere' is not among the states",
        ),
        (lambda row: row["outcomes"][0].update(probability=-1), "minimum"),
        (lambda row: row["outcomes"][0].update(probability="half"), "is not of type 'number'"),
    ],
)
def test_a_bad_transition_is_named(edit, said):
    made = document()
    edit(made["transitions"][0])
    with pytest.raises(PosgError) as error:
        from_document(made)
    assert said in str(error.value)


PATHS = [
    ("players",),
    ("players", 0),
    ("states",),
    ("states", 0),
    ("initial_state",),
    ("terminal_states",),
    ("actions",),
    ("actions", "facing"),
    ("actions", "facing", "left"),
    ("actions", "facing", "left", 0),
    ("transitions",),
    ("transitions", 0),
    ("transitions", 0, "state"),
    ("transitions", 0, "joint_action"),
    ("transitions", 0, "joint_action", "left"),
    ("transitions", 0, "outcomes"),
    ("transitions", 0, "outcomes", 0),
    ("transitions", 0, "outcomes", 0, "state"),
    ("transitions", 0, "outcomes", 0, "probability"),
    ("observations",),
    ("observations", "left"),
    ("observations", "left", "facing"),
    ("name",),
]
JUNK = [
    None,
    True,
    0,
    1,
    -1,
    2,
    0.5,
    "",
    "x",
    "x" * 201,
    "x" * 401,
    [],
    ["x"],
    ["x", "x"],
    [1],
    {},
    {"x": "y"},
    {"x": 1},
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_the_quick_check_agrees_with_the_schema(path):
    """Every part of a document replaced by everything that it should not be, and by some that it may."""
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    verdicts = set()
    for junk in [*JUNK, "removed", "added"]:
        made = place = document(name="T4.2")
        for key in path[:-1]:
            place = place[key]
        if junk == "removed" and isinstance(place, dict):
            del place[path[-1]]
        elif junk == "added" and isinstance(place, dict):
            place["surplus"] = ["x"]
        else:
            place[path[-1]] = junk
        assert satisfies_schema(made) == validator.is_valid(made), (path, junk)
        verdicts.add(satisfies_schema(made))
    assert False in verdicts


def test_no_number_is_no_probability():
    made = document()
    made["transitions"][0]["outcomes"][0]["probability"] = float("nan")
    assert schema_problems(made) == ["transitions: a probability is not a number"]
    assert not lane_one(made).passed("contract")


@pytest.mark.parametrize(
    "edit",
    [
        lambda made: made.update(name="\ud800"),
        lambda made: made["states"].append("\udc00"),
        lambda made: made["observations"]["left"].update({"\ud800": "x"}),
        lambda made: made["observations"]["left"].update(facing="a\ud800"),
        lambda made: made["transitions"][0]["joint_action"].update({"\ud800": "x"}),
    ],
)
def test_half_a_character_is_no_text(edit):
    """JSON can spell it, no file can hold it: it must not get as far as being written."""
    made = document()
    edit(made)
    one = lane_one(made)
    assert not satisfies_schema(made) and not one.passed("contract") and "surrogate" in one.first_problem
    assert satisfies_schema(document(name="\U0001f916 und Größe"))
    made["observations"]["\ud800"] = 3  # a complaint that has to name the key
    assert all(said.encode() for said in schema_problems(made))


@pytest.mark.parametrize(
    "edit, said",
    [
        (
            lambda made: made["observations"].update(ghost={}),
            "observations: 'ghost' is not among the players",
        ),
        (
            lambda made: made["observations"]["left"].update(ghost="x"),
            "observations.left: 'ghost' is not among the states",
        ),
        (
            lambda made: made["transitions"][0]["outcomes"][0].update(observations={"ghost": "boo"}),
            "transitions.0: observations: 'ghost' is not among the players",
        ),
    ],
)
def test_observations_name_what_is_declared(edit, said):
    made = document()
    edit(made)
    assert lane_one(made).first_problem == f"probe: {said}"
    with pytest.raises(PosgError, match=said.replace(".", r"\.")):
        from_document(made)


def test_more_joint_actions_than_can_be_listed_are_counted_not_walked():
    """Eight players with 64 actions each: 64 to the eighth joint actions, in a document of a few kilobytes."""
    who = [f"p{i}" for i in range(8)]
    wide = {player: [f"a{i}" for i in range(64)] for player in who}
    made = {
        "players": who,
        "states": ["s", "e"],
        "initial_state": "s",
        "terminal_states": ["e"],
        "actions": {"s": wide},
        "transitions": [],
        "observations": {player: {"s": "s", "e": "e"} for player in who},
    }
    one = lane_one(made)
    assert one.passed("contract") and f"{64**8} pairs" in one.first_problem and one.game is None
    # the same out of reach is for the audit
    made["states"].append("far")
    made["actions"] = {"far": wide, "s": {player: ["wait"] for player in who}}
    made["transitions"] = [
        {
            "state": "s",
            "joint_action": dict.fromkeys(who, "wait"),
            "outcomes": [{"state": "e", "probability": 1}],
        }
    ]
    for seen in made["observations"].values():
        seen["far"] = "far"
    one = lane_one(made)
    assert one.passed("probe") and not one.valid and one.unreachable == 1 and 0 < one.coverage < 1e-9


def test_relabel_is_the_same_game():
    game = corpus()["C9"].game
    other = relabel(game, np.random.default_rng(0))
    assert other.size() == game.size() and set(other.states).isdisjoint(game.states)
    assert sorted(other.depths().values()) == sorted(game.depths().values())
    assert {len(set(seen.values())) for seen in other.observations.values()} == {
        len(set(seen.values())) for seen in game.observations.values()
    }


def test_lane_one_passes_every_reference():
    for scenario in corpus().values():
        one = lane_one(scenario.game.document())
        assert one.valid and one.coverage == 1 and one.unreachable == one.dead == 0, scenario.id


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, {"players": 3}])
def test_anything_at_all_may_be_handed_in(junk):
    one = lane_one(junk)
    assert not one.passed("contract") and one.game is None and one.first_problem.startswith("contract: ")


def lane_of(edit):
    made = document()
    edit(made)
    return lane_one(made)


def test_gates_apart():
    def dangling(made):
        made["transitions"][0]["outcomes"][0]["state"] = "nowhere"

    def unsummed(made):
        made["transitions"][0]["outcomes"][0]["probability"] = 0.9

    def within(made):
        made["transitions"][0]["outcomes"][0]["probability"] = 1 - 5e-10

    def beyond(made):
        made["transitions"][0]["outcomes"][0]["probability"] = 1 - 5e-9

    def uncovered(made):
        made["transitions"].pop(0)

    def leaking(made):
        made["transitions"].append(
            {
                "state": "collided",
                "joint_action": {"left": "x", "right": "x"},
                "outcomes": [{"state": "facing", "probability": 1}],
            }
        )

    for edit, said in (
        (dangling, "is not among the states"),
        (unsummed, "sum to 0.9, should be 1"),
        (beyond, "should be 1"),
        (uncovered, "no transition from"),
        (leaking, "leads to 'facing'"),
    ):
        one = lane_of(edit)
        assert one.passed("contract") and not one.passed("probe") and not one.valid and one.game is None
        assert said in one.first_problem, edit.__name__
    assert lane_of(within).valid


def test_audit_finds_what_the_probe_lets_pass():
    def lonely(made):
        made["states"].append("lonely")
        made["terminal_states"].append("lonely")
        for seen in made["observations"].values():
            seen["lonely"] = "lonely"

    def trapped(made):
        for entry in made["transitions"]:
            if entry["state"] == "right_remains":
                entry["outcomes"] = [{"state": "right_remains", "probability": 1}]

    def unoffered(made):
        made["transitions"].append(
            {
                "state": "facing",
                "joint_action": {"left": "fly", "right": "wait"},
                "outcomes": [{"state": "facing", "probability": 1}],
            }
        )

    one = lane_of(lonely)
    assert (
        one.passed("probe")
        and not one.valid
        and one.unreachable == 1
        and "cannot be reached" in one.first_problem
    )
    one = lane_of(trapped)
    assert one.passed("probe") and not one.valid and one.dead == 1
    assert "no terminal state can be reached from 'right_remains'" in one.first_problem
    one = lane_of(unoffered)
    assert one.passed("probe") and not one.valid and "'fly' is not an action" in one.first_problem


def test_absorbing_self_loops_are_understood():
    made = document()
    made["transitions"].append(
        {
            "state": "collided",
            "joint_action": {"left": "wait", "right": "wait"},
            "outcomes": [{"state": "collided", "probability": 1}],
        }
    )
    assert lane_one(made).valid and canonical_json(from_document(made)) == canonical_json(
        corpus()["T4.2"].game
    )


def test_cycles_are_counted_not_condemned():
    one = lane_one(corpus()["T1.2"].game.document())
    assert one.valid and one.cyclic == 2
    assert lane_one(chain(3).document()).cyclic == 0
    assert sorted(state_graph(chain(2)).edges) == [("c0", "c1"), ("c1", "c2")]


class Walk(AbstractPOSG):
    """A three-step walk with a coin at the end, states as tuples."""

    def players(self):
        return ["walker"]

    def initial_state(self):
        return ("at", 0)

    def is_terminal(self, state):
        return state[0] != "at"

    def actions(self, state, player):
        return ["on", "off"]

    def transition(self, state, joint_action):
        if joint_action["walker"] == "off":
            return {("left", state[1]): 1}
        return {("at", state[1] + 1): 1.0} if state[1] < 2 else {("won", 2): 0.5, ("lost", 2): 0.5}

    def observation(self, player, state, joint_action, next_state):
        return next_state[0]


def test_python_form_tabulates_to_a_valid_game():
    game = from_document(tabulate(Walk()))
    assert lane_one(game.document()).valid
    assert game.size() == {"players": 1, "states": 8, "terminals": 5, "joint_actions": 6, "transitions": 7}
    assert game.initial == "('at', 0)" and game.observations["walker"]["('won', 2)"] == "won"


def test_python_form_says_what_is_wrong():
    class Endless(Walk):
        def transition(self, state, joint_action):
            return {("at", state[1] + 1): 1.0}

    with pytest.raises(WorldModelError, match="more than 50 reachable states"):
        tabulate(Endless(), max_states=50)

    class Listed(Walk):
        def transition(self, state, joint_action):
            return [("at", 1)]

    with pytest.raises(WorldModelError, match=r"transition\(\"\('at', 0\)\", .*gave a list"):
        tabulate(Listed())
    with pytest.raises(TypeError, match="abstract"):
        AbstractPOSG()


def test_declared_states_reach_the_audit():
    class Wide(Walk):
        def declared_states(self):
            return [("at", 0), ("never", 9)]

    one = lane_one(tabulate(Wide()))
    assert not one.valid  # the declared state has no transitions, observations or way to it


def test_state_labels():
    assert state_label("a b") == "a b" and state_label((1, "x")) == "(1, 'x')" and state_label(True) == "True"
    for odd in ([1], {1}, ("x", [1]), b"x", type("T", (str,), {})("x")):
        with pytest.raises(WorldModelError, match="states are text"):
            state_label(odd)


def test_a_game_by_hand():
    game = pennies()
    assert isinstance(game, POSG) and game.joint_actions("covered")[0] == ("heads", "heads")
    assert game.joint_actions("match") == [] and game.successors("covered") == ["match", "differ"]
    assert table(("one",), "a", ["a"], {}).depths() == {"a": 0}
