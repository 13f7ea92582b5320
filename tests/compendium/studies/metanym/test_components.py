"""Components, totals, joint replicates, council, contests and guards."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from compendium.studies.metanym.components import (
    RATINGS,
    anchored_cosine,
    apart_weights,
    atom_table,
    check_scale,
    components,
    consistency_table,
    factual_matrix,
    joint_intervals,
    joint_replicates,
    undefined,
)
from compendium.studies.metanym.contest import (
    adjacent_resolved,
    ballast_table,
    contest,
    guards_hold,
    leaderboard,
    leaderboard_intervals,
    leaderboard_replicates,
    line_up,
    near_zero_edge,
    resolved_above,
    run_apart,
    select_council,
)
from compendium.studies.metanym.game import SUBJECTIVE, MetanymError, build_game
from tests.compendium.studies.metanym.games import ANCHOR, PLAYERS, game, ratings

COUNCIL, BALLAST = ["ann", "bob", "cid"], ["fay", "eve"]


def test_the_anchor_reads_seven_everywhere():
    table = components(game(), COUNCIL).table
    np.testing.assert_allclose(table.loc[ANCHOR], 7.0)


def test_totals_are_the_means_of_the_paper():
    table = components(game(), COUNCIL).table
    np.testing.assert_allclose(table["T"], table[["GF", "GC", "EF", "EC"]].mean(axis=1))
    np.testing.assert_allclose(table["E"], table[["EF", "EC"]].mean(axis=1))


def test_planted_judging_skill_is_recovered():
    found = components(game(), COUNCIL)
    assert list(found.loading.sort_values(ascending=False).index) == list(PLAYERS)


def test_components_written_out_once_more():
    one = game()
    found = components(one, COUNCIL)
    ratings_, target_of = factual_matrix(one)
    assert ratings_.shape == (6, 125) and np.isnan(ratings_).sum() == 125
    filled = np.where(np.isnan(ratings_), 7, ratings_)
    u, s, vt = np.linalg.svd(filled - filled.mean(axis=1, keepdims=True), full_matrices=False)
    u, v = u[:, 0] * np.sign(u[:, 0].sum()), vt[0] * np.sign(u[:, 0].sum())
    f = np.maximum(u, 0)
    consensus = f @ filled.mean(axis=1) / f.sum() + s[0] * (f @ u) / f.sum() * v
    assert found.table.at["dot", "EF"] == pytest.approx(7 * f[3] / f[0])
    assert found.table.at["dot", "GF"] == pytest.approx(
        consensus[target_of == PLAYERS[1:].index("dot")].mean()
    )
    r = consistency_table(one)
    votes = one.subjective[0, 2, :3, PLAYERS[1:].index("dot"), :, 0].mean(axis=1)
    weight = r["beauty"].to_numpy()[:3]
    assert found.quality.at["dot", "beauty"] == pytest.approx(weight @ votes / weight.sum())
    votes = one.structure[0, 2, [0, 2], PLAYERS[1:].index("bob")]  # bob's own vote is left out
    weight = r["structure"].to_numpy()[[0, 2]]
    assert found.quality.at["bob", "structure"] == pytest.approx(weight @ votes / weight.sum())


def test_judges_in_another_order_and_under_other_names():
    one, names = game(), dict(zip(PLAYERS, ["u", "v", "w", "x", "y", "z"]))
    base = components(one, COUNCIL).table
    turned = one.only(
        evaluators=["cid", "ann", "fay", "eve", "bob", "dot"], targets=["fay", "bob", "dot", "cid", "eve"]
    )
    pd.testing.assert_frame_equal(components(turned, COUNCIL[::-1]).table.loc[list(PLAYERS)], base)
    table = ratings().replace({"evaluator": names, "target": names})
    renamed = build_game(
        table, anchor_model="u", evaluators=list(names.values()), targets=list(names.values())[1:]
    )
    np.testing.assert_allclose(components(renamed, ["u", "v", "w"]).table, base)


def test_a_judges_constant_shift_moves_no_evaluator_rating():
    table = ratings()
    table.loc[table.evaluator == "dot", ["pc1", "pc2", "pc3", "pc4", "pc5", "beauty"]] += 1
    # the own portfolio's columns are filled with 7, so the shift shows there alone: fill with the own mean
    # instead
    shifted = build_game(table, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])
    base, other = components(game(), COUNCIL, "row_mean"), components(shifted, COUNCIL, "row_mean")
    np.testing.assert_allclose(other.loading, base.loading, atol=1e-12)
    np.testing.assert_allclose(other.consistency["beauty"], base.consistency["beauty"], atol=1e-12)


def test_a_council_member_who_does_not_evaluate():
    with pytest.raises(MetanymError, match="council member 'zoe' does not evaluate"):
        components(game(), ["ann", "zoe"])
    with pytest.raises(MetanymError, match="no members"):
        components(game(), [])


def test_an_anchor_without_signal():
    table = ratings()
    table.loc[table.evaluator == ANCHOR, ["pc1", "pc2", "pc3", "pc4", "pc5"]] = 7
    flat = build_game(table, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])
    with pytest.raises(MetanymError, match="the anchor ann has no factual loading"):
        components(flat, COUNCIL)


def test_a_flat_judge_reads_zero_and_one_without_a_standard_is_undefined():
    table = ratings()
    flat = table.evaluator == "fay"
    table.loc[flat, ["pc1", "pc2", "pc3", "pc4", "pc5"]] = 7
    table.loc[flat, ["beauty", "intelligence", "distinctness", "length"]] = 7
    found = components(
        build_game(table, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:]), COUNCIL
    ).table
    assert (
        abs(found.at["fay", "EF"]) < 0.3
        and np.isnan(found.at["fay", "EC"])
        and np.isnan(found.at["fay", "T"])
    )
    assert found.drop(index="fay").notna().all().all()


def test_pooling_runs_stacks_columns_and_keeps_the_sweep_of_run_one():
    one = game(runs=(1, 2, 3))
    assert factual_matrix(one)[0].shape == (6, 375)
    np.testing.assert_allclose(consistency_table(one), consistency_table(one.only(runs=[1])))


@pytest.mark.parametrize("options", [{}, {"runs": (1, 2, 3)}, {"archetypes": 4}])
def test_drawing_every_atom_once_is_the_point_estimate(options):
    one = game(**options)
    point, table = components(one, COUNCIL), atom_table(one, axes=(*SUBJECTIVE, "factual"))
    drawn = joint_replicates(table, np.ones((2, table.n_atoms)), COUNCIL)
    for name in RATINGS:
        np.testing.assert_allclose(drawn[name][1], point.table[name], atol=1e-9, err_msg=name)
    np.testing.assert_allclose(drawn["consistency"][0], point.consistency[list(SUBJECTIVE)], atol=1e-9)
    np.testing.assert_allclose(
        drawn["axis_consistency"]["factual"][0], point.consistency["factual"], atol=1e-9
    )
    assert drawn["gap"][0] == pytest.approx(point.axis.gap)


def test_replicates_equal_games_with_repeated_archetypes():
    one = game()
    table = atom_table(one)
    rng = np.random.default_rng(0)
    # draws in which every portfolio keeps five archetypes can be written as games of their own
    for _ in range(5):
        pick = rng.integers(0, 5, size=(5, 5))
        counts = np.zeros((5, 5))
        for t in range(5):
            counts[t] = np.bincount(pick[t], minlength=5)
        factual, subjective = one.factual.copy(), one.subjective.copy()
        for t in range(5):
            factual[:, :, :, t], subjective[:, :, :, t] = (
                one.factual[:, :, :, t, pick[t]],
                one.subjective[:, :, :, t, pick[t]],
            )
        again = replace(one, factual=factual, subjective=subjective)
        drawn = joint_replicates(table, counts.reshape(1, -1), COUNCIL)
        point = components(again, COUNCIL)
        for name in ("GC", "EC"):
            np.testing.assert_allclose(drawn[name][0], point.table[name], atol=1e-9)
        assert drawn["gap"][0] == pytest.approx(point.axis.gap)


def test_a_structural_score_counts_once_or_as_drawn():
    table = atom_table(game())
    counts = np.ones((1, 25))
    counts[0, :5] = [5, 0, 0, 0, 0]
    counts[0, 5:10] = [9, 0, 0, 0, 0]
    once, drawn = (
        joint_replicates(table, counts, COUNCIL, structure)["consistency"][0, :, -1]
        for structure in ("once", "drawn")
    )
    np.testing.assert_allclose(once, components(game(), COUNCIL).consistency["structure"], atol=1e-9)
    assert not np.allclose(once, drawn)
    with pytest.raises(MetanymError, match="structure='twice'"):
        joint_replicates(table, counts, COUNCIL, "twice")


def test_a_portfolio_that_was_not_drawn_is_missing():
    table = atom_table(game())
    counts = np.ones((1, 25))
    counts[0, :5] = 0
    drawn = joint_replicates(table, counts, COUNCIL)
    assert np.isnan(drawn["GF"][0, 1]) and np.isnan(drawn["T"][0, 1]) and np.isfinite(drawn["EF"][0]).all()


def test_intervals_hold_the_estimate_and_repeat_with_their_seed():
    first, again = (joint_intervals(game(), COUNCIL, B=300, rng=np.random.default_rng(5)) for _ in range(2))
    for name in ("T", "EF", "GF", "loading"):
        frame = first[name]
        assert ((frame.lo <= frame.estimate + 1e-9) & (frame.estimate <= frame.hi + 1e-9)).mean() > 0.8
        pd.testing.assert_frame_equal(frame, again[name])
    assert (first["T"].loc[ANCHOR] == 7).all()


def test_a_smaller_game_has_wider_intervals():
    wide = joint_intervals(game(), COUNCIL, B=300, rng=np.random.default_rng(0))["loading"]
    narrow = joint_intervals(game(runs=(1, 2, 3)), COUNCIL, B=300, rng=np.random.default_rng(0))["loading"]
    assert (narrow.hi - narrow.lo).mean() < (wide.hi - wide.lo).mean()


def test_cosine_of_equal_and_opposite_profiles():
    r = pd.DataFrame({axis: [0.9, 0.6, 0.3] for axis in SUBJECTIVE}, index=["ann", "bob", "cid"])
    evaluation = 7 * r / 0.9
    same = evaluation.drop("ann")
    np.testing.assert_allclose(anchored_cosine(same, r, "ann"), 1.0)
    np.testing.assert_allclose(anchored_cosine(14 - same, r, "ann"), -1.0)


def test_line_up_of_contests():
    one = game()
    assert line_up(one, "dot", COUNCIL, BALLAST) == (
        ["ann", "bob", "cid", "dot"],
        ["bob", "cid", "fay", "eve", "dot"],
    )
    assert line_up(one, "bob", COUNCIL, BALLAST) == (COUNCIL, ["bob", "cid", "fay", "eve"])
    assert line_up(one, "fay", COUNCIL, BALLAST) == ([*COUNCIL, "fay"], ["bob", "cid", "fay", "eve"])
    assert line_up(one, None, COUNCIL, []) == (COUNCIL, ["bob", "cid"])


def test_leaderboard_takes_each_model_from_its_own_contest():
    table, guards = leaderboard(game(), COUNCIL, BALLAST)
    assert list(table["T"]) == sorted(table["T"], reverse=True)
    held = contest(game(), "dot", COUNCIL, BALLAST)
    np.testing.assert_allclose(table.loc["dot", list(RATINGS)].astype(float), held.estimates.table.loc["dot"])
    assert guards.at["dot", "gap"] == held.gap and table.at["bob", "seat"] and not table.at["dot", "seat"]


def test_a_later_run_takes_its_consistencies_from_the_sweep():
    one = game(runs=(1, 2))
    alone = leaderboard(one.only(runs=[2]), COUNCIL, BALLAST)[0]
    with_sweep = leaderboard(one.only(runs=[2]), COUNCIL, BALLAST, sweep=one)[0].loc[alone.index]
    assert alone["EC"].isna().all() and with_sweep["T"].notna().all()
    np.testing.assert_allclose(with_sweep["EF"].astype(float), alone["EF"].astype(float))
    pooled = leaderboard(one, COUNCIL, BALLAST)[0].loc[alone.index]
    np.testing.assert_allclose(with_sweep["EC"].astype(float), pooled["EC"].astype(float))


def test_leaderboard_replicates_start_from_the_leaderboard():
    one = game(runs=(1, 2))
    table = atom_table(one)
    drawn = leaderboard_replicates(table, np.ones((1, table.n_atoms)), COUNCIL, BALLAST)
    point, guards = leaderboard(one, COUNCIL, BALLAST)
    for name in RATINGS:
        np.testing.assert_allclose(drawn[name][0], point.loc[list(one.models), name].astype(float), atol=1e-9)
    np.testing.assert_allclose(drawn["gap"][0], guards.loc[list(one.models), "gap"], atol=1e-9)
    np.testing.assert_allclose(drawn["spread"][0], guards.loc[list(one.models), "spread"], atol=1e-9)


def test_leaderboard_intervals_and_a_resolved_challenge():
    frames, drawn = leaderboard_intervals(game(), COUNCIL, BALLAST, B=200, rng=np.random.default_rng(0))
    assert (frames["T"].lo <= frames["T"].hi).all()
    drawn = {**drawn, "models": PLAYERS}
    assert resolved_above(drawn, "ann", "fay") and not resolved_above(drawn, "fay", "ann")
    assert not resolved_above(drawn, "ann", "ann")


@pytest.mark.parametrize(
    "gap, spread, hold",
    [(2.0, 2.6, True), (5.0, 3, True), (1.99, 3, False), (5.01, 3, False), (3, 2.5, False)],
)
def test_guards(gap, spread, hold):
    assert bool(guards_hold(gap, spread)) is hold


def test_near_zero_band_splits_where_the_loadings_break():
    loadings = pd.Series([0.58, 0.55, 0.37, 0.35, 0.28, 0.13, 0.09, 0.0], index=list("abcdefgh"))
    edge, low = near_zero_edge(loadings, loadings + 0.05)
    assert low == ["h", "g", "f"] and edge == pytest.approx(0.18)
    with pytest.raises(MetanymError, match="at least two"):
        near_zero_edge(loadings[:1], loadings[:1])


def test_both_gates_seat_the_council():
    loading = pd.DataFrame(
        {
            "estimate": [0.6, 0.5, 0.4, 0.1, 0.05],
            "lo": [0.5, 0.4, 0.12, 0.05, 0],
            "hi": [0.7, 0.6, 0.5, 0.15, 0.1],
        },
        index=list("abcde"),
    )
    frame = select_council(loading, pd.Series([0.9, 0.7, 0.9, 0.95, 0.1], index=list("abcde")))
    assert list(frame.index[frame["seat"]]) == ["a"]
    assert list(frame["clear_of_band"]) == [True, True, False, False, False]


def test_adjacent_ranks_whose_intervals_do_not_touch():
    frame = pd.DataFrame({"estimate": [7, 5, 4.8], "lo": [7, 4.6, 4.4], "hi": [7, 5.4, 5.2]})
    assert adjacent_resolved(frame) == [(1, 2)]


def test_ballast_table_compares_compositions():
    seats, guards = ballast_table(game(), COUNCIL, ["dot"], BALLAST, sizes=(0, 2))
    assert list(seats.columns) == [0, 2, "all"] and list(seats.index) == COUNCIL
    assert (seats.loc[ANCHOR] == 7).all()
    deviation = np.abs(seats[2] - seats["all"]).mean()
    assert guards.at[2, "deviation"] == pytest.approx(deviation) and guards.at[2, "swing"] == 0


def test_weights_that_keep_each_groups_number_of_draws():
    owner = np.array([0, 2, 2, 0, 0, 1])
    weights = apart_weights(owner, 400, np.random.default_rng(0))
    for group, size in ((0, 3), (1, 1), (2, 2)):
        assert (weights[:, owner == group].sum(axis=1) == size).all()
    assert np.abs(weights.mean(axis=0) - 1).max() < 0.15 and weights[:, 0].max() == 3


def test_a_game_without_a_scale_is_refused_and_what_is_undefined_is_said():
    flat = ratings()
    flat.loc[flat.evaluator == "fay", ["beauty", "intelligence", "distinctness", "length", "structure"]] = 7
    build = {"anchor_model": ANCHOR, "evaluators": PLAYERS, "targets": PLAYERS[1:]}
    said = undefined(build_game(flat, **build))
    assert said.endswith("from fay (beauty, intelligence, distinctness, length, structure, collapsed)")
    assert undefined(game()) == "" and check_scale(game()) is None
    with pytest.raises(MetanymError, match="reference pinned at 7: consistency"):
        check_scale(game(anchors=(7,)))
    with pytest.raises(MetanymError, match="the anchor ann keeps no order of archetypes"):
        check_scale(
            build_game(
                flat.assign(**{axis: flat[axis].where(flat.evaluator != ANCHOR, 7) for axis in SUBJECTIVE}),
                **build,
            )
        )


def test_a_run_apart_has_its_own_sevens_beside_the_first_runs_other_anchors():
    two = ratings(runs=(1, 2))
    short = two[~((two["run"] == 2) & (two["target"] == "fay") & (two["archetype"] > 1))]
    one = build_game(short, anchor_model=ANCHOR, evaluators=PLAYERS, targets=PLAYERS[1:])
    part, ballast = run_apart(one, 2, ["fay", "eve", "dot"])
    assert ballast == ["eve", "dot"] and run_apart(one, 1, ["fay", "eve", "dot"])[1] == ["fay", "eve"]
    assert part.runs == part.sweep_runs == (2,)
    np.testing.assert_array_equal(part.at("factual"), one.only(runs=[2]).at("factual"))
    for anchor in (5, 6, 8):
        np.testing.assert_array_equal(part.at("beauty", anchor), one.only(runs=[1]).at("beauty", anchor))
    first, _ = run_apart(one, 1, ["fay"])
    np.testing.assert_array_equal(first.factual, one.only(runs=[1]).factual)
