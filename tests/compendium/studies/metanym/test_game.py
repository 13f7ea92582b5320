"""Building a game from ratings, what is refused, and what a reader is warned of."""

import numpy as np
import pandas as pd
import pytest

from compendium.studies.metanym.game import (
    AXES,
    MetanymError,
    build_game,
    check_game,
    generation_rating,
    overall_scores,
)
from tests.compendium.studies.metanym.games import ANCHOR, PLAYERS, game, ratings


def test_axes_and_their_labels():
    one = game(runs=(1, 2))
    assert one.factual.shape == (2, 4, 6, 5, 5, 5) and one.subjective.shape == (2, 4, 6, 5, 5, 4)
    assert one.structure.shape == (2, 4, 6, 5)
    assert one.runs == (1, 2) and one.anchors == (5, 6, 7, 8) and one.sweep_runs == (1,)
    assert one.targets == PLAYERS[1:] and one.anchor_index == 0


def test_each_rating_lands_in_its_place():
    table = ratings()
    row = table[
        (table.anchor == 6) & (table.evaluator == "cid") & (table.target == "eve") & (table.archetype == 3)
    ].iloc[0]
    one = game()
    place = (0, 1, 2, PLAYERS[1:].index("eve"))
    np.testing.assert_array_equal(
        one.factual[place][2], row[["pc1", "pc2", "pc3", "pc4", "pc5"]].astype(float)
    )
    assert one.structure[place] == row["structure"]
    assert (one.sweep("structure")[place] == row["structure"]).all()
    assert one.at("beauty", 6)[0, 2, PLAYERS[1:].index("eve"), 2, 0] == row["beauty"]


def test_grades_of_the_own_and_of_the_anchors_portfolio_are_left_out():
    table = ratings()
    own = table[(table.evaluator == "bob") & (table.target == "cid")].assign(target="bob", pc1=10)
    reference = table[(table.evaluator == "bob") & (table.target == "cid")].assign(target=ANCHOR, pc1=10)
    one = build_game(
        pd.concat([table, own, reference]), anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:]
    )
    np.testing.assert_array_equal(one.factual, game().factual)
    assert np.isnan(one.factual[0, :, 1, 0]).all()


def test_archetypes_after_the_fifth_are_left_out():
    table = ratings()
    sixth = table[table.archetype == 5].assign(archetype=6, pc1=1, beauty=1)
    one = build_game(pd.concat([table, sixth]), anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])
    np.testing.assert_array_equal(one.factual, game().factual)


@pytest.mark.parametrize("zeros, expected", [("missing", np.nan), ("counted", 0.0)])
def test_a_zero_is_missing_or_the_number_it_is(zeros, expected):
    table = ratings()
    table.loc[0, "beauty"] = 0
    one = build_game(table, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:], zeros=zeros)
    assert np.array_equal(one.subjective[0, 0, 0, 0, 0, 0], expected, equal_nan=True)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda t: t[t.evaluator != ANCHOR], "evaluator ann rated no portfolio in run 1"),
        (lambda t: t[t.target != "dot"], "portfolio of dot is missing in run 1"),
        (lambda t: t[t.evaluator != "eve"], "evaluator eve rated no portfolio in run 1"),
        (lambda t: t[t.anchor != 7], "no rating has the reference pinned at 7"),
        (lambda t: t.loc[[0, *t.index]], "rates archetype 1 of bob twice in run 1 at anchor 5"),
    ],
)
def test_games_that_cannot_be(change, words):
    with pytest.raises(MetanymError, match=words):
        build_game(change(ratings()), anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])


def test_an_absent_anchor_model():
    with pytest.raises(MetanymError, match="the anchor 'zoe' is not among the evaluators"):
        build_game(ratings(), anchor_model="zoe")


def test_an_unknown_way_with_zeros():
    with pytest.raises(MetanymError, match="zeros='dropped'"):
        build_game(ratings(), anchor_model=ANCHOR, zeros="dropped")


def test_parts_of_a_game():
    one = game(runs=(1, 2)).only(
        evaluators=["cid", "ann", "bob"], targets=["eve", "bob"], runs=[2], anchors=[7]
    )
    assert one.factual.shape == (1, 1, 3, 2, 5, 5) and one.anchor_index == 1
    whole = game(runs=(1, 2))
    np.testing.assert_array_equal(one.factual[0, 0, 0, 0], whole.factual[1, 2, 2, PLAYERS[1:].index("eve")])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"evaluators": ["bob", "cid"]}, "must stay among the evaluators"),
        ({"targets": ["gus"]}, "no target 'gus'"),
        ({"runs": [3]}, "no run 3"),
    ],
)
def test_parts_that_cannot_be(options, words):
    with pytest.raises(MetanymError, match=words):
        game().only(**options)


def test_unknown_axis_and_anchor():
    with pytest.raises(MetanymError, match="axis 'truth' is not one of factual"):
        game().at("truth")
    with pytest.raises(MetanymError, match="nobody rated with the reference pinned at 9"):
        game().at("beauty", 9)


def findings(table):
    one = build_game(table, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])
    return {finding.code: finding.message for finding in check_game(one)}


def test_a_clean_game_has_no_findings():
    assert findings(ratings()) == {}


def test_a_judge_who_rates_everything_seven():
    table = ratings()
    table.loc[table.evaluator == "fay", ["pc1", "pc2", "pc3", "pc4", "pc5"]] = 7
    assert "fay rates every context 7" in findings(table)["flat_judge"]


def test_two_identical_judges():
    table = ratings()
    a, b = (
        table[table.evaluator == "bob"].set_index(["anchor", "target", "archetype"]),
        table.evaluator == "cid",
    )
    for index in table[b].index:
        key = tuple(table.loc[index, ["anchor", "target", "archetype"]])
        if key in a.index:
            table.loc[index, ["pc1", "pc2", "pc3", "pc4", "pc5"]] = a.loc[
                key, ["pc1", "pc2", "pc3", "pc4", "pc5"]
            ].to_numpy()
    assert "bob and cid agree on all 75 contexts" in findings(table)["identical_judges"]


def test_a_lost_call_and_a_short_portfolio():
    table = ratings()
    lost = (table.evaluator == "bob") & (table.target == "cid") & (table.anchor == 7)
    short = (table.target == "eve") & (table.archetype == 5)
    found = findings(table[~lost & ~short])
    assert "bob returned no usable ratings of cid" in found["lost_call"]
    assert "archetype 5 of eve" in found["short_portfolio"]


def test_a_game_without_a_sweep():
    assert "no run was rated at two anchor values" in findings(ratings(anchors=(7,)))["no_sweep"]


def test_overall_scores_by_hand():
    table = ratings()
    mine = table[(table.anchor == 7) & (table.evaluator == "bob") & (table.target == "dot")]
    axes = [
        mine[["pc1", "pc2", "pc3", "pc4", "pc5"]].to_numpy().mean(),
        *(mine[axis].mean() for axis in AXES[1:]),
    ]
    found = overall_scores(game())
    assert found[1, PLAYERS[1:].index("dot")] == pytest.approx(np.mean(axes))
    assert np.isnan(found[1, PLAYERS[1:].index("bob")])


def test_generation_rating_is_the_councils_mean():
    scores = overall_scores(game())
    found = generation_rating(game(), ["ann", "bob", "dot"])
    assert found["dot"] == pytest.approx(scores[[0, 1], PLAYERS[1:].index("dot")].mean())
    assert found["eve"] == pytest.approx(scores[[0, 1, 3], PLAYERS[1:].index("eve")].mean())
