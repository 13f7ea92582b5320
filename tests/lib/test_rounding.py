"""Printed-number arithmetic against worked examples, brute force and hand counts."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compendium.frame.cells import read_cells
from compendium.frame.page import Page
from compendium.frame.recount import Recount
from lib.rounding import (
    AuditError,
    Printed,
    agrees,
    consistent_mean,
    consistent_sd,
    detectable_rank_biserial,
    exact_counts,
    grim_power,
    normal_interval,
    normal_rank_biserial,
    pooled_sd,
    possible_counts,
    printed_correlation,
    printed_difference,
    printed_mean,
    printed_range,
    printed_ratio,
    rank_biserial_p,
    rank_moves,
    spearman_null_exact,
    spearman_values,
    units_off,
)


def test_grim_worked_example():
    # Brown and Heathers (2017): a mean of 3.45 of whole numbers from 20 people is fine, 5.19 from 28 is not
    assert consistent_mean(3.45, 2, 20)
    assert not consistent_mean(5.19, 2, 28)
    assert [bool(consistent_mean(5.18, 2, 28)), bool(consistent_mean(5.21, 2, 28))] == [True, True]


@given(st.integers(1, 60), st.data())
def test_a_true_mean_is_always_consistent(n, data):
    count = data.draw(st.integers(0, 10 * n))
    decimals = data.draw(st.integers(0, 3))
    first, last = possible_counts(round(count / n, decimals), decimals, n)
    assert first <= count <= last


@given(st.integers(1, 40), st.integers(0, 400), st.integers(1, 2))
def test_counts_are_those_that_print_alike(n, tenths, decimals):
    printed = tenths / 10**decimals
    first, last = possible_counts(printed, decimals, n)
    brute = [c for c in range(0, 45 * n) if bool(agrees(c / n, printed, decimals))]
    assert list(range(max(first, 0), last + 1)) == brute


def test_percentages_of_labels():
    assert tuple(map(int, possible_counts(59.3, 1, 540, scale=100))) == (320, 320)
    # 321 of 540 is 59.44 and 322 is 59.63: nothing prints as 59.5
    assert consistent_mean([59.4, 59.5, 59.6], 1, 540, scale=100).tolist() == [True, False, True]
    assert grim_power(1, 540, scale=100) == pytest.approx(0.46)
    assert grim_power(2, 1000) == 0


def test_exact_counts_and_their_refusals():
    table = pd.DataFrame({"a": [15.7, 47.7], "b": [59.3, 96.1]}, index=["x", "y"])
    counts = exact_counts(table, 1, {"a": 300, "b": 540}, scale=100)
    assert counts.to_dict() == {"a": {"x": 47, "y": 143}, "b": {"x": 320, "y": 519}}
    with pytest.raises(AuditError, match="x, a: 15.7 stands for no count of 294"):
        exact_counts(table, 1, {"a": 294, "b": 540}, scale=100)
    with pytest.raises(AuditError, match="x, a: 15.7 stands for 3 counts of 2000"):
        exact_counts(table, 1, 2000, scale=100)


LISTS = st.lists(st.integers(0, 9), min_size=3, max_size=12)


@given(LISTS, st.sampled_from([0, 1]), st.sampled_from([1, 1 / 3]))
def test_a_true_sd_is_always_consistent(values, ddof, step):
    sd = round(float(np.std(np.array(values) * step, ddof=ddof)), 2)
    assert consistent_sd(sd, 2, sum(values), len(values), step, ddof)


def test_sd_by_brute_force():
    # every possible standard deviation of five numbers 0..4 with sum 7, at three decimals
    possible = {round(float(np.std(v, ddof=1)), 3) for v in product(range(5), repeat=5) if sum(v) == 7}
    consistent = {sd / 1000 for sd in range(0, 3001) if consistent_sd(sd / 1000, 3, 7, 5)}
    assert possible <= consistent
    assert not consistent_sd(0.9, 3, 7, 5)
    with pytest.raises(ValueError, match="needs more than 1 values"):
        consistent_sd(0.5, 2, 1, 1)


def test_ranges_units_and_agreement():
    assert printed_range(2.5, 1) == (pytest.approx(2.45), pytest.approx(2.55))
    assert units_off(4.835, 4.84, 2) == pytest.approx(0.5)
    assert agrees(4.835, 4.84, 2) and agrees(4.835, 4.83, 2) and not agrees(4.8349, 4.84, 2)
    assert agrees([0.1, 0.2], [0.1, 0.3], [1, 1]).tolist() == [True, False]


def test_mean_difference_ratio_and_mad():
    mean = printed_mean([1.0, 2.0, 4.0], 1)
    assert mean == pytest.approx((7 / 3, 7 / 3 - 0.05, 7 / 3 + 0.05))
    assert mean.allows(2.4, 1) and mean.allows(2.3, 1) and not mean.allows(2.5, 1)
    drop = printed_difference(0.913, 0.93, 3, 2)
    assert drop == pytest.approx((-0.017, -0.0225, -0.0115))
    assert drop.allows(-0.01, 2) and drop.allows(-0.02, 2) and not drop.allows(0.0, 2)
    assert printed_ratio(5.42, 0.60, 2, 2, scale=100) == pytest.approx((903.333, 895.041, 911.765), abs=1e-3)
    with pytest.raises(ValueError, match="positive"):
        printed_ratio(1.0, 0.0, 1, 1)


def test_correlation_is_exact_without_printed_ties():
    first, second = [1.2, 3.4, 2.2, 5.0], [0.1, 0.4, 0.6, 0.9]
    found = printed_correlation(first, second)
    assert found.lo == found.hi == found.value == pytest.approx(0.8)
    assert printed_correlation(first, second, "kendall").value == pytest.approx(4 / 6)


@given(st.permutations(range(5)), st.permutations(range(5)), st.sampled_from(["spearman", "kendall"]))
def test_correlation_range_holds_the_truth_behind_rounding(first, second, method):
    unrounded = np.array(first) * 0.04 + 0.011, np.array(second) * 0.3
    truth = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[method](*unrounded).statistic
    found = printed_correlation(*(np.round(column, 1) for column in unrounded), method)
    assert found.lo - 1e-12 <= truth <= found.hi + 1e-12


def test_correlation_range_of_one_tie_by_hand():
    # y prints two equal numbers: 1 2 2 may be 1 2 3, 1 3 2 or a tie
    found = printed_correlation([1, 2, 3], [1, 2, 2])
    assert (found.lo, found.hi) == (pytest.approx(0.5), pytest.approx(1.0))
    assert found.value == pytest.approx(np.sqrt(3) / 2)


def test_correlation_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="should be"):
        printed_correlation([1, 2], [1, 2], "pearson")
    with pytest.raises(ValueError, match="same length"):
        printed_correlation([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="too many hidden orders"):
        printed_correlation([1] * 7, range(7))
    with pytest.raises(ValueError, match="more than 20000 orders"):
        printed_correlation([1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 1, 1, 2, 2, 2, 3, 3, 3])


def test_lattice_of_rho():
    assert spearman_values(0.89, 2, 10) == pytest.approx([1 - 108 / 990])
    assert spearman_values(1.00, 2, 10).tolist() == [1.0]
    assert len(spearman_values(0.995, 3, 10)) == 0


def test_rank_moves_by_brute_force():
    brute = {
        (sum((a - b) ** 2 for a, b in enumerate(p)), sum(a != b for a, b in enumerate(p)))
        for p in permutations(range(6))
    }
    assert rank_moves(6, 70) == brute
    assert rank_moves(6, 8) == {pair for pair in brute if pair[0] <= 8}
    assert (2, 2) in rank_moves(10, 2) and (2, 4) not in rank_moves(10, 4)


def test_exact_null_of_rho():
    rho, probability = spearman_null_exact(6)
    every = np.array([stats.spearmanr(range(6), p).statistic for p in permutations(range(6))])
    assert probability.sum() == pytest.approx(1)
    for value, share in zip(rho, probability, strict=True):
        assert share == pytest.approx(np.mean(np.abs(every - value) < 1e-9))
    # critical value for ten pairs in every table: P(rho >= 0.648) = 0.0245, P(rho >= 0.636) = 0.0272
    rho, probability = spearman_null_exact(10)
    assert probability[rho > 0.648].sum() == pytest.approx(0.0245, abs=5e-5)
    assert probability[rho > 0.636].sum() == pytest.approx(0.0272, abs=5e-5)
    with pytest.raises(ValueError, match="between 2 and 12"):
        spearman_null_exact(13)


def test_pooled_sd_and_normal_interval():
    rng = np.random.default_rng(3)
    groups = [rng.normal(m, s, size=n) for m, s, n in ((1, 0.5, 8), (4, 2, 12), (2, 1, 5))]
    summary = [[g.mean() for g in groups], [g.std(ddof=1) for g in groups], [len(g) for g in groups]]
    union = np.concatenate(groups)
    assert pooled_sd(*summary) == pytest.approx(union.std())
    assert pooled_sd(*summary, ddof=1) == pytest.approx(union.std(ddof=1))
    assert normal_interval(1.0, 2.0, 16) == pytest.approx((1, 1 - 0.98, 1 + 0.98), abs=1e-4)


def test_normal_rank_biserial_against_simulation():
    rng = np.random.default_rng(4)
    means, sds, other_means, other_sds = [1.0, 3.0], [1.0, 2.0], [2.0, 4.0], [0.5, 1.5]
    draw = [
        np.concatenate([rng.normal(m, s, 2000) for m, s in zip(*pair, strict=True)])
        for pair in ((means, sds), (other_means, other_sds))
    ]
    u = stats.mannwhitneyu(draw[1], draw[0]).statistic
    simulated = 2 * u / 4000**2 - 1
    assert normal_rank_biserial(means, sds, other_means, other_sds) == pytest.approx(simulated, abs=0.03)
    assert normal_rank_biserial(*map(pd.Series, ([1], [1], [1], [2]))) == pytest.approx(0)


def test_detectable_effect_has_its_power():
    # a check of the formula by simulation: normal shifts of the size that corresponds to r
    n, alpha, power = 60, 0.05, 0.8
    r = detectable_rank_biserial(n, n, alpha, power)
    shift = np.sqrt(2) * stats.norm.ppf((r + 1) / 2)
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(2, 800, n))
    p = stats.mannwhitneyu(first, second + shift, axis=1).pvalue
    assert np.mean(p < alpha) == pytest.approx(power, abs=0.04)


def test_p_value_behind_r():
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=40), rng.normal(0.5, 1, size=60)
    test = stats.mannwhitneyu(second, first, use_continuity=False, method="asymptotic")
    assert rank_biserial_p(2 * test.statistic / 2400 - 1, 40, 60) == pytest.approx(test.pvalue)
    tied = stats.mannwhitneyu(second.round(), first.round(), use_continuity=False, method="asymptotic")
    assert rank_biserial_p(2 * tied.statistic / 2400 - 1, 40, 60) > tied.pvalue


def test_printed_is_a_plain_tuple():
    assert Printed(1.0, 0.5, 1.5).allows(1.5, 1) and not Printed(1.0, 0.5, 1.4).allows(1.6, 1)


@pytest.fixture
def recount(tmp_path):
    """A recount of four printed numbers: two exact, one a bound, one Monte Carlo with an interval."""
    columns = ["exhibit", "row", "column", "value", "lo", "hi", "decimals", "note", "kind", "tolerance"]
    printed = pd.DataFrame(
        [
            ["table-1", "a", "mean", 0.33, np.nan, np.nan, 2, "", "exact", np.nan],
            ["text-1", "a", "mean", 0.34, np.nan, np.nan, 2, "", "exact", np.nan],
            ["text-1", "test", "p", 0.001, np.nan, np.nan, 3, "<", "bound", np.nan],
            ["text-1", "a", "ci", 0.3, 0.1, 0.5, 1, "", "monte-carlo", 0.02],
        ],
        columns=columns,
    )
    return Recount(Page("alienbench", "12_audit", out=tmp_path), printed)


def test_recount_compares_at_the_printed_address(recount):
    recount.put_same("a", "mean", 1 / 3)
    recount.put("text-1", "test", "p", 0.0004)
    recount.put("text-1", "a", "ci", 0.31, lo=0.12, hi=0.56)
    found = recount.comparison()
    assert list(found["outcome"]) == ["agrees", "not computed", "agrees", "agrees"], (
        "no finding, no accusation"
    )
    assert found["units"].iloc[:2].tolist() == pytest.approx([-1 / 3, 2 / 3])
    assert recount.rest().empty
    recount.page.close()
    written = read_cells(recount.page.cells_path)
    assert set(written["basis"]) == {"printed"} and len(written) == 4


def test_recount_tells_what_it_left_and_refuses_unprinted_addresses(recount):
    recount.put_same("a", "mean", 1 / 3, exhibits=["table-1"])
    recount.put_table("text-1", pd.DataFrame({"ci": [0.3]}, index=["a"]))
    assert list(recount.comparison()["outcome"]) == ["agrees", "not computed"], "an interval needs its bounds"
    assert recount.rest()[["exhibit", "column"]].to_numpy().tolist() == [["text-1", "mean"], ["text-1", "p"]]
    with pytest.raises(AuditError, match=r"nothing is printed at table-1\[b, mean\]"):
        recount.put("table-1", "b", "mean", 1)
    with pytest.raises(AuditError, match=r"nothing is printed at \[b, mean\] of any exhibit"):
        recount.put_same("b", "mean", 1)
