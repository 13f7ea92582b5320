"""The machinery of repeated studies: draws follow the truth, and coverage, power and sizes come out as theory
says."""

import numpy as np
import pytest
from scipy import stats

from compendium.frame.files import read_csv
from compendium.studies.alienbench import calibration
from compendium.studies.alienbench.simulated.truth import CONDITIONS, HUMAN, truth
from lib import ranks
from lib.agreement import krippendorff_alpha

FALSE_ALARM = 1e-4


@pytest.fixture(scope="module")
def labels():
    return calibration.draw_labels(truth(), studies=40, n=30, rng=np.random.default_rng(11))


def test_draws_have_the_axes_and_the_rates_of_the_truth(labels):
    assert labels.shape == (40, 10, 6, 30, 3, 10) and set(np.unique(labels)) == {0, 1}
    panel = labels.mean(axis=(0, 3, 4))
    expected = truth().rates[:-1, :6]
    # A panel's mean label varies at most as a single label does.
    z = (panel - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-4) / (40 * 30))
    assert stats.norm.sf(np.abs(z).max()) * 2 * z.size > FALSE_ALARM


def test_draws_have_the_alphas_of_the_truth(labels):
    """Forty studies give the standard error of their mean; alpha's own bias at 1,800 units is far below it."""
    expected = truth().expected_alphas()
    totals = labels.sum(axis=-1).reshape(40, -1, 3).swapaxes(1, 2)
    cases = {"total": krippendorff_alpha(totals, "interval")}
    for place, judge in enumerate(truth().judges):
        cases[f"without {judge}"] = krippendorff_alpha(np.delete(totals, place, axis=1), "interval")
    for place, feature in enumerate(truth().features):
        cases[feature] = krippendorff_alpha(labels[..., place].reshape(40, -1, 3).swapaxes(1, 2), "nominal")
    for name, alphas in cases.items():
        t = (alphas.mean() - expected[name]) / (alphas.std(ddof=1) / np.sqrt(40))
        assert stats.t.sf(abs(t), 39) * 2 > FALSE_ALARM, name


def test_the_score_distribution_is_that_of_the_draws(labels):
    pmf = calibration.score_distribution(truth())
    assert pmf.shape == (10, 6, 31)
    np.testing.assert_allclose(pmf.sum(axis=-1), 1)
    np.testing.assert_allclose(pmf @ np.arange(31) / 3, calibration.expected_scores(truth()), atol=1e-9)
    sums = labels.sum(axis=(-1, -2), dtype=int)
    for at in ((0, 0), (4, 3), (9, 5)):
        counts = np.bincount(sums[:, at[0], at[1]].ravel(), minlength=31)
        likely = pmf[at] * counts.sum() >= 5
        observed = np.append(counts[likely], counts[~likely].sum())
        expected = np.append(pmf[at][likely], pmf[at][~likely].sum()) * counts.sum()
        assert stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue > FALSE_ALARM


def test_the_written_texts_follow_the_same_distribution():
    """The texts' panel sums against the exact distribution, all cells of the demo together."""
    generations, rows = (
        read_csv(f"data/demo/alienbench/{name}.csv.gz") for name in ("generations", "labels")
    )
    sums = rows.set_index("generation_id")[list(truth().features)].sum(axis=1).groupby(level=0).sum()
    pmf = calibration.score_distribution(truth())
    observed, expected = np.zeros(31), np.zeros(31)
    for (model, condition), group in generations.groupby(["model", "condition"]):
        if model != HUMAN and condition in CONDITIONS:
            at = truth().place(model, condition)
            observed += np.bincount(sums[group["generation_id"]].astype(int), minlength=31)
            expected += len(group) * pmf[at]
    assert observed.sum() == 1800
    # Cells are strata, so the statistic is at most chi-squared: the test is slow to alarm, never quick.
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_rank_biserial_of_distributions_is_that_of_all_pairs():
    first, second = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5])
    r = ranks.mann_whitney([0, 0, 1, 2], [0, 1, 2, 2]).r
    assert calibration.rank_biserial(first, second) == pytest.approx(r)
    assert calibration.rank_biserial(second, first) == pytest.approx(-r)


def test_effects_of_the_conditions_are_near_the_printed_ones():
    """Nothing was fitted to Table 3's pooled effects; that they come out says the spreads are right."""
    pmf = calibration.score_distribution(truth()).mean(axis=0)
    printed = truth_effects()
    for place, condition in enumerate(CONDITIONS[1:], 1):
        assert calibration.rank_biserial(pmf[0], pmf[place]) == pytest.approx(printed[condition], abs=0.02)


def truth_effects():
    from compendium.frame.cells import published

    table = published("alienbench")
    rows = table[(table["exhibit"] == "text-4.1") & (table["column"] == "r")]
    return rows.set_index("row")["value"]


def test_batched_mann_whitney_equals_the_one_of_lib_ranks():
    rng = np.random.default_rng(3)
    first = rng.multinomial(40, [0.4, 0.3, 0.2, 0.1], 12)
    second = rng.multinomial(30, [0.2, 0.3, 0.3, 0.2], 12)
    r, p = calibration.mann_whitney_of_counts(first, second)
    for at in range(12):
        one = ranks.mann_whitney(np.repeat(np.arange(4), first[at]), np.repeat(np.arange(4), second[at]))
        assert (r[at], p[at]) == pytest.approx((one.r, one.p), rel=1e-9)
    assert calibration.mann_whitney_of_counts([5, 0], [7, 0])[1] == 1


def test_coverage_counts_the_intervals_that_hold():
    found = calibration.coverage([1.0, 2.0, 3.0, 4.0], [0, 1, 3, 3.5], [2, 1.5, 4, 5], 1.5)
    assert found.share == 0.5 and found.bias == 1.0 and found.width == 1.25
    assert found.lo < 0.5 < found.hi


def test_stratified_intervals_cover_where_pooled_ones_are_wide():
    """Strata that differ: the pooled interval carries their differences, the stratified one does not."""
    rng = np.random.default_rng(8)
    values = rng.normal(np.arange(6)[:, None], 1.0, (400, 6, 40))
    found = calibration.coverage(*calibration.stratified_bootstrap(values, B=400, rng=rng), 2.5)
    assert stats.binomtest(round(found.share * 400), 400, 0.94).pvalue > FALSE_ALARM
    assert found.width == pytest.approx(2 * 1.96 / np.sqrt(240), rel=0.05)


def test_power_is_the_level_at_no_effect_and_rises():
    curve = calibration.power_curve(
        truth(), [0.0, 0.1, 0.2, 0.3], n=30, alpha=0.05, studies=800, rng=np.random.default_rng(6)
    )
    # Models are strata with n texts each, which only makes the test cautious: the level is a ceiling.
    assert curve.loc[0.0, "lo"] <= 0.05
    assert (np.diff(curve["power"]) > 0).all() and curve.loc[0.3, "power"] > 0.99
    with pytest.raises(ValueError, match="an effect between 0 and 0.97"):
        calibration.power_curve(truth(), [0.99], n=5, alpha=0.05, studies=2, rng=np.random.default_rng(6))


def test_larger_studies_are_better(labels):
    table = calibration.design_quality(labels, truth(), [5, 15, 30])
    assert list(table.columns) == ["samples", "judges", "rmse", "rho", "best"] and len(table) == 9
    full = table[table["judges"] == 3]
    assert (np.diff(full["rmse"]) < 0).all() and (np.diff(full["rho"]) > 0).all()
    at_30 = table[table["samples"] == 30]
    assert (np.diff(at_30["rmse"]) < 0).all()
    with pytest.raises(ValueError, match="between 1 and 30"):
        calibration.design_quality(labels, truth(), [31])


def test_samples_for_a_half_width_give_it(labels):
    needed = calibration.samples_for_half_width(truth(), 0.25)
    scores = calibration.panel_scores(labels)
    spread = scores.mean(axis=(2, 3)).std(axis=0, ddof=1) * np.sqrt(30 / needed.to_numpy())
    # 40 studies know an SD to 11 %; ceilings and ten models leave room above.
    assert np.allclose(1.96 * spread, 0.25, rtol=0.45) and abs((1.96 * spread).mean() / 0.25 - 1) < 0.12
    with pytest.raises(ValueError, match="above 0"):
        calibration.samples_for_half_width(truth(), 0.0)


def test_draws_that_cannot_be_made_are_refused():
    for wrong in ({"studies": 0, "n": 1}, {"studies": 1, "n": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            calibration.draw_labels(truth(), **wrong, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="no simulated texts"):
        calibration.draw_labels(truth(), studies=1, n=1, rng=np.random.default_rng(0), conditions=("noon",))


def test_the_three_sorts_of_intervals_hold_the_truth(labels):
    """Nominal 95 %: none may cover clearly less; the pooled interval, whose sample holds six conditions,
    more."""
    rng, B = np.random.default_rng(21), 200
    scores = calibration.score_coverage(labels, truth(), B=B, rng=rng)
    alphas = calibration.alpha_coverage(labels, truth(), B=B, rng=rng)
    effects = calibration.effect_coverage(labels, truth(), B=B, rng=rng)
    for frame, rows in ((scores["pooled"], 10), (scores["stratified"], 10), (alphas, 11), (effects, 5)):
        assert len(frame) == rows and (frame["lo"] <= frame["coverage"]).all() and (frame["width"] > 0).all()
        held = int(round(frame["coverage"].sum() * len(labels)))
        # Intervals of one study share its descriptions, so they count as a third of independent ones.
        assert stats.binom.cdf(held // 3, rows * len(labels) // 3, 0.92) > FALSE_ALARM
    assert scores["pooled"]["coverage"].mean() > 0.985
    assert (scores["pooled"]["width"] > 1.3 * scores["stratified"]["width"]).all()
    assert (effects["bias"].abs() < 0.02).all() and (alphas["bias"].abs() < 0.01).all()
