"""Tables of rates and joint distributions that meet their margins."""

import numpy as np
import pytest

from compendium.studies.alienbench.simulated import margins


@pytest.fixture
def design():
    """Margins of a table that exists: rates[model, condition, feature] of three models."""
    rng = np.random.default_rng(4)
    rates = margins.logistic(rng.normal(0, 1.5, (3, 5, 1)) + rng.normal(0, 1.2, (3, 1, 6)))
    return rates, rates.sum(axis=2), rates.mean(axis=1)


def test_additive_rates_recover_an_additive_table(design):
    rates, rows, columns = design
    fitted, effects = margins.additive_rates(rows, columns)
    np.testing.assert_allclose(fitted, rates, atol=1e-8)
    np.testing.assert_allclose(margins.shifted_rates(effects, rows), rates, atol=1e-8)


def test_margins_that_disagree_by_their_rounding_keep_the_row_sums(design):
    _, rows, columns = design
    fitted, _ = margins.additive_rates(rows, columns.round(3))
    np.testing.assert_allclose(fitted.sum(axis=2), rows, atol=1e-9)
    np.testing.assert_allclose(fitted.mean(axis=1), columns, atol=2e-3)


def test_a_model_that_is_met_already_waits_for_the_others_without_a_warning(design):
    """The first model's Newton step is exactly 0 from the start, the others' are not."""
    _, rows, columns = design
    rows, columns = np.vstack([np.full(5, 1.5), rows]), np.vstack([np.full(6, 0.25), columns])
    with np.errstate(all="raise"):
        fitted, _ = margins.additive_rates(rows, columns)
        np.testing.assert_allclose(fitted[0], 0.25, atol=1e-12)
        rates, weights = np.array([np.full(4, 0.5), np.full(4, 0.3)]), np.ones((2, 4))
        p = margins.joint_states(rates, weights, np.array([1.0, 1.4]))
    np.testing.assert_allclose(p[0], 1 / 16, atol=1e-12)
    np.testing.assert_allclose(fitted[1:].sum(axis=2), rows[1:], atol=1e-9)


def test_margins_out_of_range_or_reach_are_refused():
    with pytest.raises(ValueError, match="strictly between 0"):
        margins.additive_rates([[2.0, 0.5]], [[0.5, 1.2]])
    with pytest.raises(ValueError, match="strictly between 0"):
        margins.shifted_rates(np.zeros((1, 4)), [[4.0]])


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.8])
def test_joint_states_meet_rates_and_variance(factor):
    rng = np.random.default_rng(9)
    rates = rng.uniform(0.1, 0.9, (4, 7))
    weights = rng.uniform(0.7, 1.0, (4, 7))
    variance = factor * (weights**2 * rates * (1 - rates)).sum(axis=1)
    p = margins.joint_states(rates, weights, variance, ridge=1e-9)
    x = margins.patterns(7)
    assert p.shape == (4, 128) and (p >= 0).all()
    np.testing.assert_allclose(p @ x, rates, atol=1e-9)
    total = x @ weights.T  # total[state, cell]
    spread = np.array([p[c] @ total[:, c] ** 2 - (p[c] @ total[:, c]) ** 2 for c in range(4)])
    np.testing.assert_allclose(spread, variance, rtol=1e-6)
    if factor == 1.0:  # no more than the marginals need: independent features
        np.testing.assert_allclose(
            p, np.prod(np.where(x, rates[:, None], 1 - rates[:, None]), axis=2), atol=1e-7
        )


def test_a_variance_that_cannot_be_is_met_as_far_as_it_goes():
    rates, weights = np.array([[0.1, 0.5, 0.9]]), np.ones((1, 3))
    largest = margins.largest_variance(rates, weights)
    p = margins.joint_states(rates, weights, 5 * largest)
    x = margins.patterns(3).sum(axis=1)
    spread = p[0] @ x**2 - (p[0] @ x) ** 2
    assert spread == pytest.approx(margins.NEAREST_TO_FULL_DEPENDENCE * largest[0], rel=0.02)
    np.testing.assert_allclose(p @ margins.patterns(3), rates, atol=1e-9)


def test_largest_variance_is_that_of_one_common_draw():
    rates, weights = np.array([[0.2, 0.5, 0.7]]), np.array([[1.0, 0.5, 2.0]])
    draws = np.linspace(0, 1, 200_001)[:, None] < rates
    assert margins.largest_variance(rates, weights)[0] == pytest.approx(
        (draws * weights).sum(axis=1).var(), rel=1e-3
    )


def test_covariances_equal_those_of_the_patterns():
    p = np.random.default_rng(2).dirichlet(np.ones(8))
    x = margins.patterns(3)
    np.testing.assert_allclose(margins.covariances(p), np.cov(x.T, aweights=p, ddof=0), atol=1e-12)
