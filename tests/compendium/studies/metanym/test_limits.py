"""Authority, vendors left out, the consensus judge, and the planted games of the open questions."""

from dataclasses import replace

import numpy as np
import pytest

from compendium.studies.metanym.components import components, factual_matrix
from compendium.studies.metanym.game import SUBJECTIVE, MetanymError
from compendium.studies.metanym.limits import (
    authority,
    authority_total,
    axis_matrix,
    axis_recovery,
    bloc_curve,
    consensus_gap,
    consensus_judge,
    identification_power,
    null_ratios,
    planted,
    self_fill_check,
    skewed_standing,
    vendor_left_out,
)
from lib.spectral import two_sided
from tests.compendium.studies.metanym.games import PLAYERS, game

COUNCIL = ["ann", "bob", "cid"]


def rng(seed=0):
    return np.random.default_rng(seed)


def test_authority_is_one_svd_an_axis():
    found = authority(game())
    assert list(found.columns) == list(SUBJECTIVE) and (found >= 0).all().all()
    np.testing.assert_allclose(found["beauty"], two_sided(axis_matrix(game(), "beauty")).loadings)
    assert axis_matrix(game(), "structure").shape == (6, 5) and axis_matrix(game(), "length").shape == (6, 25)


def test_authority_takes_the_place_of_consistency():
    base, other = components(game(), COUNCIL).table, authority_total(game(), COUNCIL)
    np.testing.assert_allclose(other[["GF", "GC", "EF"]], base[["GF", "GC", "EF"]])
    assert other.at["ann", "EC"] == pytest.approx(7) and not np.allclose(other["EC"], base["EC"])
    np.testing.assert_allclose(other["T"], other[["GF", "GC", "EF", "EC"]].mean(axis=1))


def test_vendors_left_out():
    vendors = dict(zip(PLAYERS, "xxyyzz"))
    table, ranks = vendor_left_out(game(), vendors)
    assert list(table.columns) == ["all", "x", "y", "z"] and list(ranks.index) == ["x", "y", "z"]
    matrix, target_of = factual_matrix(game())
    alone = two_sided(matrix[2:]).consensus
    assert table.at["bob", "x"] == pytest.approx(alone[target_of == 0].mean())
    with pytest.raises(MetanymError, match="no vendor is given for 'fay'"):
        vendor_left_out(game(), dict(zip(PLAYERS[:-1], "xxyyz")))


def test_filling_checks():
    found = self_fill_check(game())
    assert 0 < found["loading"] < 0.2 and found["rank"] > 0.7
    gap = consensus_gap(game())
    assert gap["r"] > 0.9 and gap["deviation"] < 0.5


def test_shared_judgement_stands_above_the_null():
    one = game()
    found = null_ratios(one, B=200, rng=rng())
    shuffled = replace(one, factual=rng(1).permuted(one.factual, axis=4).transpose(0, 1, 2, 3, 5, 4))
    assert found["sigma1"] > 1.15 > 1.1 > null_ratios(shuffled, B=200, rng=rng())["sigma1"]


def test_a_judge_who_reproduces_the_consensus():
    one = game()
    loadings = two_sided(factual_matrix(one)[0]).loadings
    found = consensus_judge(one, 0.0, B=3, rng=rng())
    # its row is kappa v, so its loading before scaling is sum f^2 / sum f, whatever the axis
    np.testing.assert_allclose(found, 7 * (loadings @ loadings) / loadings.sum() / loadings[0])


def test_dissent_costs_competence():
    means = [consensus_judge(game(), share, B=200, rng=rng()).mean() for share in (0, 0.1, 0.3, 0.5)]
    assert means == sorted(means, reverse=True) and means[-1] < 0.35 * means[0]
    with pytest.raises(MetanymError, match="from 0 to 1"):
        consensus_judge(game(), 1.2, B=2, rng=rng())


def test_planted_ratings_are_whole_numbers_on_the_scale():
    drawn = planted([1, 0.5], skewed_standing(30, rng()), rng(), B=10)
    assert drawn.shape == (10, 2, 30) and ((drawn >= 1) & (drawn <= 10) & (drawn == np.rint(drawn))).all()
    standing = skewed_standing(500, rng())
    assert (
        standing.mean() == pytest.approx(0) and standing.std() == pytest.approx(1) and np.median(standing) > 0
    )


def test_recovery_equals_one_svd_at_a_time():
    standing = skewed_standing(40, rng())
    drawn = planted([1.2, 0.8, 0.4, 0.2], standing, rng(), B=15)
    found = axis_recovery(drawn, standing)
    for table, gap, truth, loading in zip(drawn, found["gap"], found["truth"], found["loading"]):
        one = two_sided(table)
        assert gap == pytest.approx(one.gap) and truth == pytest.approx(
            np.corrcoef(one.right, standing)[0, 1]
        )
        np.testing.assert_allclose(loading, one.loadings, atol=1e-9)


def test_more_judges_and_items_identify_the_axis():
    found = identification_power([4, 24], [25, 200], competence=1.0, B=60, rng=rng()).set_index(
        ["n_judges", "n_items"]
    )
    assert found.at[(24, 200), "truth"] > found.at[(4, 25), "truth"] and found.at[(24, 200), "passes"] > 0.9
    assert found.at[(24, 200), "skill"] > 0.6


def test_a_bloc_can_make_an_identified_axis_that_is_wrong():
    found = bloc_curve(12, [0, 6], [0.0, 2.0], competence=0.7, n_items=150, B=60, rng=rng()).set_index(
        ["bloc", "bias"]
    )
    assert found.at[(6, 2.0), "misled"] > 0.9 and found.at[(6, 2.0), "passes"] > 0.9
    assert found.at[(6, 2.0), "truth"] < 0.5 < found.at[(0, 2.0), "truth"]
    assert found.at[(6, 0.0), "misled"] == 0
