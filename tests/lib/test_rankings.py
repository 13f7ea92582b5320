"""Rankings under resampling."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.rankings import (
    consensus_means,
    mean_replicates,
    pair_p,
    paired_p,
    rank_intervals,
    rank_table,
    separated,
    win_share,
)


def test_paired_means_share_their_draws_and_unpaired_ones_do_not():
    rng = np.random.default_rng(1)
    easy = rng.normal(0, 5, 40)
    scores = np.column_stack([easy, easy + 1])
    paired = mean_replicates(scores, paired=True, B=500, rng=np.random.default_rng(2))
    alone = mean_replicates(scores, paired=False, B=500, rng=np.random.default_rng(2))
    assert np.allclose(paired[:, 1] - paired[:, 0], 1)
    assert (alone[:, 1] < alone[:, 0]).mean() > 0.1
    assert paired[:, 0].std() == pytest.approx(easy.std() / np.sqrt(40), rel=0.15)


def test_a_missing_unit_is_left_out_of_its_own_mean_alone():
    scores = np.array([[1.0, np.nan], [1.0, 7.0], [1.0, 7.0]])
    for paired in (True, False):
        drawn = mean_replicates(scores, paired=paired, B=200, rng=np.random.default_rng(3))
        assert (drawn[:, 0] == 1).all() and set(drawn[~np.isnan(drawn[:, 1]), 1]) == {7.0}
        assert np.isnan(drawn[:, 1]).any() == paired, "only a shared draw can miss all its units"
    with pytest.raises(ValueError, match="entrant 1 has no score"):
        mean_replicates(scores * [1, np.nan], paired=True, B=10, rng=np.random.default_rng(3))


@pytest.mark.parametrize("paired", [True, False])
def test_what_the_design_fixes_adds_no_doubt(paired):
    condition = np.repeat([0, 1], 30)
    scores = np.random.default_rng(8).normal(size=(60, 2)) + 10 * condition[:, None]
    loose = mean_replicates(scores, paired=paired, B=800, rng=np.random.default_rng(9))
    fixed = mean_replicates(scores, paired=paired, B=800, rng=np.random.default_rng(9), strata=condition)
    within = np.sqrt(sum(scores[condition == c, 0].var() for c in (0, 1)) / 4 / 30)
    assert fixed[:, 0].std() == pytest.approx(within, rel=0.1) and loose[:, 0].std() > 4 * within
    assert fixed.mean(axis=0) == pytest.approx(scores.mean(axis=0), abs=0.05)


def test_pair_p_is_twice_the_smaller_tail():
    p = pair_p(np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 2.0], [5.0, 2.0]]))
    assert p[0, 1] == p[1, 0] == 2 * (1 + 2) / 5 - 0.2 and np.isnan(p[0, 0])


def test_rank_table_by_hand():
    estimates = pd.Series([5.0, 9.0, 8.9], index=["c", "a", "b"])
    replicates = np.array([[5, 9, 8], [5, 8, 9], [5, 9, 8], [5, 9, 9]], dtype=float)
    table = rank_table(estimates, replicates)
    assert list(table.index) == ["a", "b", "c"] and list(table["rank"]) == [1, 2, 3]
    assert list(table["first"]) == [0.75, 0.5, 0.0], "tied firsts are both first"
    assert table["holds"].iloc[:2].tolist() == [(2 + 0.5) / 4, 1.0] and np.isnan(table["holds"].iloc[2])
    assert table[["rank_lo", "rank_hi"]].to_numpy().tolist() == [[1, 2], [1, 2], [3, 3]]
    assert (table["beats"] == 0).all(), "four replicates cannot show anything at 0.05"


def test_what_is_clear_after_holm_counts_for_both_sides():
    estimates = pd.Series([0.0, 10.0, 10.01])
    replicates = estimates.to_numpy() + np.random.default_rng(6).normal(size=(2000, 3))
    table = rank_table(estimates, replicates)
    assert table.loc[0, "beaten_by"] == 2 and table.loc[2, "beats"] == 1 and table.loc[1, "beaten_by"] == 0
    assert table.loc[2, "p_next"] > 0.5 and table.loc[1, "p_next"] < 0.01


def test_holm_over_all_pairs_is_stricter_than_each_pair_alone():
    p = np.array([[np.nan, 0.02, 0.03], [0.02, np.nan, 0.04], [0.03, 0.04, np.nan]])
    assert not separated(p).any() and separated(p, level=0.07).all(where=~np.eye(3, dtype=bool))


def test_win_share_of_unpaired_units_is_mann_whitney():
    rng = np.random.default_rng(7)
    first, second = rng.integers(0, 6, 20), rng.integers(1, 7, 20)
    share = win_share(np.column_stack([first, second]), paired=False)
    assert share[0] == pytest.approx(stats.mannwhitneyu(first, second).statistic / 400)
    assert share.sum() == pytest.approx(1)


def test_win_share_of_pairs_sees_what_means_hide():
    scores = np.array([[1.0, 2], [1, 2], [100, 2]])
    assert win_share(scores, paired=True) == pytest.approx([1 / 3, 2 / 3])
    assert np.isnan(win_share(np.array([[1.0, np.nan], [np.nan, 2.0]]), paired=True)).all()


def test_consensus_weighs_judges_that_share_an_axis():
    truth = np.array([1.0, 1, 5, 5, 9, 9])
    ratings = np.stack([truth, truth, truth, [9, 9, 1, 9, 1, 9]])
    means = consensus_means(ratings, np.array([0, 0, 1, 1, 2, 2]), 3)
    assert (np.diff(means) > 0).all()
    plain = ratings.mean(axis=0).reshape(3, 2).mean(axis=1)
    assert np.ptp(means) > np.ptp(plain), "the fourth judge pulls the plain means together"


def test_entrants_equal_but_for_rounding_share_every_win():
    scores = np.column_stack([np.full(30, 0.1 + 0.2), np.full(30, 0.3)])
    for paired in (True, False):
        assert win_share(scores, paired=paired).tolist() == [0.5, 0.5]
    assert paired_p(scores, B=200, rng=np.random.default_rng(1))[0, 1] == 1


def test_a_ranks_interval_goes_outward_and_leaves_out_what_is_undefined():
    drawn = np.column_stack([np.arange(40.0), np.full(40, 0.5), np.full(40, -1.0)])
    lo, hi = rank_intervals(drawn)  # the first entrant is second in one replicate of forty, 2.5 %
    assert lo.tolist() == [1, 1, 3] and hi.tolist() == [2, 2, 3]
    drawn[:20, 2] = np.nan
    assert rank_intervals(drawn)[0][2] == 3
    both = rank_table(pd.Series([19.5, 0.5, -1.0]), drawn)
    assert both["rank_lo"].tolist() == [1, 1, 3] and both["rank_hi"].tolist() == [2, 2, 3]
    assert rank_intervals([[1, 1], [1, 1]])[1].tolist() == [1, 1], "ties share the better rank"


def test_a_last_bit_decides_nothing():
    """0.1 + 0.2 and 0.3 are one number: on another processor the same sum may come out a bit apart."""
    a, b = np.full(50, 0.1 + 0.2), np.full(50, 0.3)
    either = [pair_p(np.column_stack(pair)) for pair in ((a, b), (b, a), (b, b))]
    assert all(np.array_equal(p, either[0], equal_nan=True) for p in either) and either[0][0, 1] == 1
    for pair in ((a, b), (b, a), (b, b)):
        table = rank_table(pd.Series([0.3, 0.3], ["x", "y"]), np.column_stack(pair))
        assert table["holds"].iloc[0] == 0.5 and (table["first"] == 1).all()


def test_a_replicate_in_which_one_is_undefined_is_left_out():
    replicates = np.array([[1.0, 2.0], [np.nan, 2.0], [1.0, 0.0]])
    assert rank_table(pd.Series([1.0, 2.0], ["x", "y"]), replicates)["holds"].iloc[0] == 0.5


@pytest.mark.parametrize("paired", [True, False])
def test_win_share_is_every_pair_counted(paired):
    scores = np.random.default_rng(11).integers(0, 5, (12, 4)) / 3
    scores[[2, 5], 1] = np.nan
    expected = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            pairs = [
                (a, b)
                for x, a in enumerate(scores[:, i])
                for y, b in enumerate(scores[:, j])
                if (x == y or not paired) and not np.isnan(a + b)
            ]
            expected[i, j] = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
    others = (expected.sum(axis=1) - 0.5) / 3
    assert win_share(scores, paired=paired) == pytest.approx(others)
