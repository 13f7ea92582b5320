"""Wilson intervals, quartiles, spread within pairs, deltas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.proportions import median_iqr, paired_deltas, self_consistency, wilson_interval, within_pair_sd


def test_wilson_against_the_textbook():
    lo, hi = wilson_interval(8, 10)  # a standard worked example: 0.4902 to 0.9433
    assert (lo, hi) == pytest.approx((0.4902, 0.9433), abs=5e-5)


def test_wilson_agrees_with_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    k, n = np.array([0, 1, 124, 134, 135]), np.array([5, 9, 135, 135, 135])
    lo, hi = wilson_interval(k, n)
    theirs = proportion_confint(k, n, method="wilson")
    assert np.allclose(lo, theirs[0], atol=1e-12) and np.allclose(hi, theirs[1], atol=1e-12)


@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_holds_the_share_and_mirrors(n, share, confidence):
    k = round(n * share)
    lo, hi = wilson_interval(k, n, confidence)
    assert 0 <= lo <= k / n <= hi <= 1
    other = wilson_interval(n - k, n, confidence)
    assert (1 - hi, 1 - lo) == pytest.approx(other)


def test_wilson_edges():
    lo, hi = wilson_interval(0, 0)
    assert np.isnan(lo) and np.isnan(hi)
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson_interval(3, 2)


def test_median_and_quartiles():
    assert median_iqr([1, 2, 3, 4, np.nan]) == (2.5, 1.75, 3.25)
    assert all(np.isnan(value) for value in median_iqr([np.nan]))


def test_within_pair_sd_by_hand():
    found = within_pair_sd([[1, 2, 3], [0.5, 0.5, np.nan], [0.2, np.nan, np.nan]])
    assert found[:2] == pytest.approx([1.0, 0.0]) and np.isnan(found[2])


def test_deltas_leave_out_what_has_no_partner():
    table = pd.DataFrame(
        {"item": list("aabb") + ["c"], "condition": ["w", "l", "w", "l", "l"], "value": [1, 3, 2, 1, 9]}
    )
    found = paired_deltas(table, "w", "l")
    assert found["item"].tolist() == ["a", "b"] and found["delta"].tolist() == [2, -1]
    with pytest.raises(ValueError, match="item 'a' has the condition 'w' twice"):
        paired_deltas(pd.concat([table, table.iloc[:1]]), "w", "l")


def test_self_consistency_is_the_mean_over_pairs():
    assert self_consistency([1, 2, 4], lambda a, b: abs(a - b)) == pytest.approx(2.0)
    assert np.isnan(self_consistency([1], lambda a, b: 1.0))


@pytest.mark.parametrize("confidence", [95, 0, 1, -0.5])
def test_wilson_refuses_a_confidence_that_is_none(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson_interval(3, 10, confidence=confidence)
