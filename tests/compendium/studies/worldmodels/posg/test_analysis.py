"""Structure, criteria, annotation, bisimulation, planning."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compendium.frame.chance import Stream
from compendium.studies.worldmodels.posg.annotation import (
    AnnotationError,
    adjudicate,
    annotator_kappa,
    blank_sheet,
    faults,
    flag_quality,
    read_sheet,
)
from compendium.studies.worldmodels.posg.bisimulation import (
    endings_of,
    quotient,
    quotient_or_none,
    same_behaviour,
    signature,
)
from compendium.studies.worldmodels.posg.criteria import (
    CriterionError,
    criteria_features,
    criteria_reference,
    endings,
    holds,
    mentions,
    semantics,
)
from compendium.studies.worldmodels.posg.edits import drop_action, four_bids, split_endings, unfold
from compendium.studies.worldmodels.posg.features import multiset_agreement
from compendium.studies.worldmodels.posg.match import compare
from compendium.studies.worldmodels.posg.model import PosgError, relabel
from compendium.studies.worldmodels.posg.planning import (
    chances,
    channel_capacity,
    empowerment,
    planning_regret,
    profile,
    reach_probability,
    reachability,
    reversibility,
)
from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.posg.structure import (
    differences,
    outcome_entropy,
    properties,
    structure_profile,
)
from tests.compendium.studies.worldmodels.posg.posg_games import chain, pennies, random_game, table

# -- structure -----------------------------------------------------------------------------------------


def test_profile_by_hand():
    profile = structure_profile(corpus()["T2.2"].game)
    # hall: two successors; at_dead_lift: two; dock: one. Five joint actions, one of them a chance of 3/4 and 1/4.
    assert (profile["states"], profile["terminals"], profile["joint_actions"], profile["transitions"]) == (
        4,
        1,
        5,
        6,
    )
    assert profile["branching_mean"] == pytest.approx(5 / 3) and profile["branching_max"] == 2
    assert profile["components"] == 3 and profile["largest_component"] == 2 and profile["depth"] == 2
    assert profile["entropy_mean"] == pytest.approx(outcome_entropy([0.75, 0.25]) / 5)
    assert profile["choice_share"] == pytest.approx(2 / 3) and profile["stochastic_share"] == pytest.approx(
        1 / 5
    )


def test_entropy_of_a_coin_is_one_bit():
    assert outcome_entropy([0.5, 0.5]) == 1.0 and outcome_entropy([1.0, 0.0]) == 0.0


def test_properties_and_differences():
    assert properties(pennies()) == {
        "multiple_players": True,
        "stochastic": False,
        "player_choice": True,
        "multi_step": False,
    }
    assert properties(chain(2)) == {
        "multiple_players": False,
        "stochastic": False,
        "player_choice": False,
        "multi_step": True,
    }
    found = differences(corpus()["G6"].game, four_bids())
    assert found["terminal_count"] and found["extra_states"] and found["extra_transitions"]
    assert not found["missing_states"] and not found["player_count"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_profile_does_not_depend_on_names(seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 7, 2, actions=(2, 3))
    before, after = structure_profile(game), structure_profile(relabel(game, rng))
    assert before == pytest.approx(after)


# -- criteria --------------------------------------------------------------------------------------------


def test_words_match_beginnings():
    assert mentions("consult_host", ["consult"]) and mentions("ConsultsHost", ["consult"])
    assert mentions("take the main lift", ["main lift"]) and not mentions("main_service_lift", ["main lift"])
    assert not mentions("reconsult", ["consult"]) and not mentions("", ["x"])


def test_every_case_of_the_corpus_meets_its_own_criteria():
    for scenario in corpus().values():
        found = semantics(scenario.game, scenario.criteria)
        assert found.coverage == found.avoidance == found.score == 1.0, scenario.id


@pytest.mark.parametrize(
    "criterion, true",
    [
        ({"id": "x", "player": ["robot"]}, True),
        ({"id": "x", "player": ["nurse"]}, False),
        ({"id": "x", "action": ["ask"], "of": ["robot"]}, True),
        ({"id": "x", "action": ["ask"], "of": ["staff"]}, False),
        ({"id": "x", "terminal": ["mixed"]}, True),
        ({"id": "x", "state": ["venue objects"]}, True),
        ({"id": "x", "anywhere": ["rumour"]}, True),
        ({"id": "x", "choice": ["staff"]}, True),
        ({"id": "x", "players_at_least": 4}, False),
        ({"id": "x", "terminals_at_least": 3}, True),
        ({"id": "x", "stochastic": True}, True),
        ({"id": "x", "hidden": False}, False),
        ({"id": "x", "irreversible": True}, True),
        ({"id": "x", "leads": {"action": ["insist"], "terminal": ["called off"]}}, True),
        ({"id": "x", "leads": {"action": ["insist"], "terminal": ["separate"]}}, False),
    ],
)
def test_predicates_on_the_seating_case(criterion, true):
    assert holds(corpus()["C9"].game, criterion) is true


@pytest.mark.parametrize(
    "criterion",
    [
        {"id": "x"},
        {"player": ["x"]},
        {"id": "x", "player": ["a"], "state": ["b"]},
        {"id": "x", "colour": ["red"]},
    ],
)
def test_malformed_criteria_are_named(criterion):
    with pytest.raises(CriterionError, match="should have an id and one of"):
        holds(pennies(), criterion)


def test_omission_and_invention_are_told_apart():
    criteria = {
        "expect": [{"id": "eva", "player": ["eva"]}, {"id": "ref", "player": ["referee"]}],
        "avoid": [{"id": "cheat", "action": ["heads"]}],
        "sensitive": ["tails", "gender"],
    }
    found = semantics(pennies(), criteria)
    assert found.expected == {"eva": True, "ref": False} and found.broken == {"cheat": True}
    assert (found.coverage, found.avoidance, found.score, found.sensitive) == (0.5, 0.0, 0.0, ("tails",))
    partly = semantics(pennies(), {"expect": criteria["expect"], "avoid": []})
    assert partly.score == pytest.approx(math.sqrt(0.5))


def test_criteria_derived_agreement():
    for scenario in corpus().values():
        if scenario.criteria["expect"]:
            found = multiset_agreement(
                criteria_reference(scenario.criteria), criteria_features(scenario.game, scenario.criteria)
            )
            assert found["f1"] == 1.0, scenario.id
    scenario = corpus()["C6"]
    whole = multiset_agreement(
        criteria_reference(scenario.criteria), criteria_features(scenario.game, scenario.criteria)
    )
    assert whole == {"coverage": 1.0, "precision": 1.0, "f1": 1.0}
    less = multiset_agreement(
        criteria_reference(scenario.criteria), criteria_features(pennies(), scenario.criteria)
    )
    assert less["coverage"] < 0.3 and less["precision"] < 0.5


def test_endings_follow_what_play_can_still_reach():
    found = endings(corpus()["T1.2"].game)
    assert found["lamp_on"] == found["lamp_off"] == {"touched", "burnt"} and found["burnt"] == {"burnt"}


# -- annotation ------------------------------------------------------------------------------------------


def annotations(first, second):
    return pd.DataFrame({"case": "C1", "feature": list("abcd"), "first": first, "second": second})


def test_adjudication_by_hand():
    table_ = annotations(
        ["must", "must", "plausible", "must_not"], ["must", "plausible", "plausible", "must"]
    )
    third = pd.DataFrame({"case": ["C1", "C1"], "feature": ["b", "d"], "label": ["plausible", "must_not"]})
    settled = adjudicate(table_, third)
    assert settled["label"].tolist() == ["must", "plausible", "plausible", "must_not"]
    assert settled["settled"].tolist() == ["agreed", "adjudicated", "agreed", "adjudicated"]
    # two of four agree; chance agreement is (2x2 + 1x2 + 1x0) / 16 = 6/16: kappa = (1/2 - 3/8) / (5/8) = 1/5
    assert annotator_kappa(table_) == pytest.approx(0.2)


def test_annotations_that_cannot_be_used():
    with pytest.raises(AnnotationError, match="C1, a: second is 'maybe'"):
        adjudicate(
            annotations(["must"] * 4, ["maybe"] + ["must"] * 3),
            pd.DataFrame(columns=["case", "feature", "label"]),
        )
    with pytest.raises(AnnotationError, match="C1, b: the annotators differ"):
        adjudicate(
            annotations(["must"] * 4, ["must", "plausible", "must", "must"]),
            pd.DataFrame(columns=["case", "feature", "label"]),
        )


def handed_out():
    return pd.DataFrame(
        {"case": "C1", "text": "A dinner, at a place.", "feature": list("ab"), "words": ["a host", "a law"]}
    )


def filled(tmp_path, **changes):
    sheet = blank_sheet(handed_out()).assign(
        first=["must", "must"], second=["must", "must_not"], third=["", "plausible"]
    )
    path = tmp_path / "sheet.csv"
    sheet.assign(**changes).to_csv(path, index=False)
    return path


def test_a_filled_in_sheet_is_adjudicated(tmp_path):
    annotations_, third = read_sheet(filled(tmp_path), handed_out())
    assert adjudicate(annotations_, third)[["label", "settled"]].values.tolist() == [
        ["must", "agreed"],
        ["plausible", "adjudicated"],
    ]
    assert blank_sheet(handed_out())[["first", "second", "third"]].eq("").all().all()


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"second": ["must", ""]}, "sheet.csv, line 3: second is '', should be one of must"),
        ({"feature": ["a", "a"]}, "C1, a is listed twice"),
        ({"feature": ["a", "z"]}, "C1, z is listed and is not a feature"),
        ({"case": ["C1", "C9"]}, "is listed"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_one_clear_error(tmp_path, changes, said):
    with pytest.raises(AnnotationError, match=said):
        read_sheet(filled(tmp_path, **changes), handed_out())


def test_a_file_that_is_no_sheet_is_named(tmp_path):
    with pytest.raises(AnnotationError, match="none.csv: not a sheet"):
        read_sheet(tmp_path / "none.csv", handed_out())
    (tmp_path / "other.csv").write_text("case,feature\nC1,a\n")
    with pytest.raises(AnnotationError, match="lacks the column"):
        read_sheet(tmp_path / "other.csv", handed_out())
    blank_sheet(handed_out()).iloc[:1].assign(first="must", second="must").to_csv(
        tmp_path / "short.csv", index=False
    )
    with pytest.raises(AnnotationError, match="C1, b is listed nowhere"):
        read_sheet(tmp_path / "short.csv", handed_out())


def test_faults_and_flags_by_hand():
    labels = pd.DataFrame(
        {"case": "C1", "feature": list("abcd"), "label": ["must", "must_not", "plausible", "must"]}
    )
    present = pd.DataFrame({"case": "C1", "feature": list("abcd"), "present": [False, True, True, True]})
    found = faults(labels, present)
    assert found["fault"].tolist() == ["omission", "unsupported", "", ""]
    quality = flag_quality([True, False, True, False], found["fault"] != "")
    assert quality == {"precision": 0.5, "recall": 0.5, "flags": 2, "faults": 2}
    nothing = flag_quality([False] * 4, [False] * 4)
    assert math.isnan(nothing["precision"]) and math.isnan(nothing["recall"])


# -- bisimulation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["T2.1", "T3.2"])
def test_finer_grain_vanishes_in_the_quotient(case):
    """The toy candidates split states that behave alike; their quotients match the reference's better or exactly."""
    scenario = corpus()[case]
    raw = compare(scenario.game, scenario.candidate).f1
    coarse = compare(quotient(scenario.game), quotient(scenario.candidate)).f1
    assert coarse > raw
    assert case != "T2.1" or coarse == 1.0


def test_histories_vanish_in_the_quotient():
    """Whole histories and endings split by where they were reached from: gone once endings go by their words."""
    for case in ("G2", "G3", "S4", "C9"):
        game = corpus()[case].game
        label = endings_of(game)
        for finer in (unfold(game, most=200), split_endings(game)):
            assert compare(game, finer, horizon=99).f1 < 1
            assert compare(quotient(game, label=label), quotient(finer, label=label), horizon=99).same, case


def test_endings_go_by_their_longest_words():
    label = endings_of(
        table(("one",), "a", ["won", "won_late"], {"a": ((("x", "y"),), {("x",): "won", ("y",): "won_late"})})
    )
    assert [label(name) for name in ("WonLate_1", "won_after_a", "lost")] == ["won_late", "won", "lost"]


def test_endings_stay_apart_unless_asked():
    game = split_endings(corpus()["G3"].game)
    assert len([s for s in quotient(game).states if s in game.terminals]) == len(game.terminals)
    merged = quotient(game, label=lambda end: "over")
    assert len(merged.terminals) == 1


def test_actions_that_do_the_same_are_one():
    twice = table(
        ("one",), "a", ["b", "c"], {"a": ((("x", "y", "z"),), {("x",): "b", ("y",): "b", ("z",): "c"})}
    )
    assert quotient(twice).actions["a"] == (("x", "z"),)
    assert quotient(twice, merge_actions=False).actions["a"] == (("x", "y", "z"),)
    assert same_behaviour(
        twice, table(("one",), "a", ["b", "c"], {"a": ((("u", "v"),), {("u",): "c", ("v",): "b"})})
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_quotient_is_idempotent_and_no_larger(seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 8, 2)
    once = quotient(game)
    assert len(once.states) <= len(game.depths())
    assert quotient(once).size() == once.size()
    assert quotient(relabel(game, rng)).size() == once.size()
    assert compare(once, quotient(relabel(game, rng)), horizon=99).f1 == 1.0


def test_too_many_actions_are_named():
    def wide(share):
        return table(
            ("one",),
            "a",
            ["b"],
            {
                "a": (
                    (tuple(f"x{i}" for i in range(9)),),
                    {(f"x{i}",): {"b": 1 - share(i), "a": share(i)} for i in range(9)},
                )
            },
        )

    with pytest.raises(PosgError, match="too many actions alike .*: 9"):
        quotient(wide(lambda i: 0.5), merge_actions=False)
    assert quotient_or_none(wide(lambda i: 0.5), merge_actions=False) is None
    assert quotient_or_none(wide(lambda i: 0.5)).actions["a"] == (("x0",),)
    # nine that differ need no trying out
    apart = wide(lambda i: i / 100)
    assert quotient(apart, merge_actions=False).size() == apart.size()


def one_move(moves, targets):
    """Three players and one joint move; `targets` in the order of the joint actions."""
    return table(
        ("x", "y", "z"), "s", ["l", "r"], {"s": (moves, dict(zip(itertools.product(*moves), targets)))}
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_signatures_are_equal_exactly_where_some_renaming_of_actions_makes_them_so(seed):
    rng, classes = np.random.default_rng(seed), {"s": 0, "l": 1, "r": 2}
    moves = (("a", "b", "c"), ("d", "e"), ("f", "g"))
    games = [
        one_move(moves, ["lr"[rng.integers(2)] if rng.random() < 0.4 else "l" for _ in range(12)])
        for _ in range(2)
    ]
    shuffled = tuple(tuple(rng.permutation(mine).tolist()) for mine in moves)
    games.append(
        one_move(
            shuffled, [next(iter(games[0].transitions["s"][joint])) for joint in itertools.product(*shuffled)]
        )
    )
    found = [signature(game, "s", classes, merge_actions=False) for game in games]
    tried = [
        min(
            tuple(tuple(game.transitions["s"][joint]) for joint in itertools.product(*order))
            for order in itertools.product(*map(itertools.permutations, game.actions["s"]))
        )
        for game in games
    ]
    assert found[0] == found[2] and tried[0] == tried[2]
    assert (found[0] == found[1]) is (tried[0] == tried[1])


# -- planning ----------------------------------------------------------------------------------------------


def test_reachability_by_hand():
    """T2.1: firm grips reach the shelf with 4/5; soft grips, tried again and again, for certain."""
    assert reachability(corpus()["T2.1"].game) == pytest.approx({"on_shelf": 1.0, "cracked": 0.2}, abs=1e-6)
    value, policy = reach_probability(corpus()["T2.1"].game, {"on_shelf"})
    assert value["on_table"] == pytest.approx(1.0, abs=1e-6) and policy["on_table"] == ("grip_softly",)


@pytest.mark.parametrize("chance", [1e-3, 1e-10, 1e-200])
def test_a_small_chance_for_ever_is_certain(chance):
    moves = {"a": ((("try", "wait"),), {("try",): {"w": chance, "a": 1 - chance}, ("wait",): "a"})}
    game = table(("one",), "a", ["w", "l"], {**moves})
    value, policy = reach_probability(game, {"w"})
    assert value["a"] == 1.0 and policy["a"] == ("try",)


def test_reachability_of_a_gamble():
    game = table(
        ("one",),
        "a",
        ["w", "l"],
        {"a": ((("bet", "quit"),), {("bet",): {"w": 0.25, "a": 0.25, "l": 0.5}, ("quit",): "l"})},
    )
    assert reachability(game) == pytest.approx({"w": 1 / 3, "l": 1.0}, abs=1e-8)


def test_chances_too_small_to_wait_for_are_solved():
    """A way out taken once in ten thousand tries: certain in the end, though value iteration would take ages."""
    game = table(
        ("one",),
        "a",
        ["out", "lost"],
        {
            "a": (
                (("try", "stop"),),
                {("try",): {"a": 0.9999, "out": 0.00008, "lost": 0.00002}, ("stop",): "lost"},
            )
        },
    )
    assert reachability(game) == pytest.approx({"out": 0.8, "lost": 1.0}, abs=1e-9)
    assert chances(game, {"a": [("try",), ("stop",)]}, {"out"})["a"] == pytest.approx(
        0.00004 / (0.00005 + 0.5), abs=1e-9
    )


def test_reversibility_by_hand():
    # T1.2: on <-> off can be returned from, the two touches cannot: 2 of 4 steps. A touch forecloses: 2 of 4 moves.
    assert reversibility(corpus()["T1.2"].game) == {"returnable": 0.5, "foreclosing": 0.5}
    assert reversibility(chain(3)) == {"returnable": 0.0, "foreclosing": 0.0}


def test_channel_capacity_of_known_channels():
    assert channel_capacity(np.eye(4)) == pytest.approx(2.0, abs=1e-6)
    assert channel_capacity(np.array([[0.9, 0.1], [0.1, 0.9]])) == pytest.approx(
        1 - outcome_entropy([0.9, 0.1]), abs=1e-6
    )
    erasure = np.array([[0.7, 0.3, 0.0], [0.0, 0.3, 0.7]])
    assert channel_capacity(erasure) == pytest.approx(0.7, abs=1e-6)
    assert channel_capacity(np.array([[0.2, 0.8]])) == 0.0


def test_empowerment_by_hand():
    # alone at the locked door: three actions, three different next states
    assert empowerment(corpus()["T1.1"].game, "robot") == pytest.approx(math.log2(3), abs=1e-5)
    # matching pennies: against a fair coin no choice matters
    assert empowerment(pennies(), "eva") == pytest.approx(0.0, abs=1e-6)
    # two steps at the lamp: on, off, touched, burnt are all within reach
    assert empowerment(corpus()["T1.2"].game, "robot", steps=2) == pytest.approx(math.log2(3), abs=1e-5)
    assert empowerment(corpus()["T1.2"].game, "robot", state="burnt", steps=2) == 0.0


def test_a_wrong_model_costs_nothing_where_it_is_right():
    for case in ("T2.1", "G3", "C9"):
        game = corpus()[case].game
        other = relabel(game, np.random.default_rng(3))
        match = compare(game, other, horizon=99)
        assert planning_regret(game, other, match) == pytest.approx(
            dict.fromkeys(reachability(game), 0.0), abs=1e-6
        )
        assert profile(game) == pytest.approx(profile(other), abs=1e-5)


def test_a_missing_option_costs_its_ending():
    game = corpus()["T1.1"].game
    poorer = game
    for seed in range(9):
        poorer = drop_action(game, Stream("drop", seed))
        if "opened" not in poorer.states:
            break
    assert "opened" not in poorer.states
    regret = planning_regret(game, poorer, compare(game, poorer))
    assert regret["opened"] > 0.2 and regret["left"] == pytest.approx(0.0, abs=1e-9)


def test_empowerment_refuses_what_it_cannot_enumerate():
    rows = {(f"x{i}",): {f"s{j}": 1 / 6 for j in range(6)} for i in range(3)}
    moves = {"a": ((("x0", "x1", "x2"),), rows)}
    for j in range(6):
        moves[f"s{j}"] = ((tuple(f"y{k}" for k in range(6)),), {(f"y{k}",): f"t{j}{k}" for k in range(6)})
    game = table(("one",), "a", [f"t{j}{k}" for j in range(6) for k in range(6)], moves)
    with pytest.raises(PosgError, match="ask for fewer steps"):
        empowerment(game, "one", steps=2)
    view = profile(game, steps=2)
    assert (
        math.isnan(view["empowerment_mean"])
        and math.isnan(view["empowerment_least"])
        and view["endings"] == 36
    )
