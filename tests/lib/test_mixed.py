"""The mixed model against statsmodels, against a closed form, and on data whose variances are known."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lib.mixed import crossed_model


def simulate(rng, stories=40, raters=25, rows=260, effect=0.4, story=0.5, rater=0.7, noise=0.8):
    which, who = rng.integers(0, stories, rows), rng.integers(0, raters, rows)
    ai = (np.arange(stories) % 2)[which]
    y = (
        3
        + effect * ai
        + rng.normal(0, story, stories)[which]
        + rng.normal(0, rater, raters)[who]
        + rng.normal(0, noise, rows)
    )
    return y, pd.DataFrame({"intercept": 1.0, "ai": ai}), {"story": which, "rater": who}


def test_equals_statsmodels():
    import statsmodels.formula.api as smf

    y, fixed, groups = simulate(np.random.default_rng(1), rows=150)
    ours = crossed_model(y, fixed, groups)
    frame = pd.DataFrame({"y": y, "ai": fixed["ai"], **groups, "all": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = smf.mixedlm(
            "y ~ ai",
            frame,
            groups="all",
            re_formula="0",
            vc_formula={"rater": "0 + C(rater)", "story": "0 + C(story)"},
        ).fit(reml=True)
    assert ours.fixed.loc["ai", "estimate"] == pytest.approx(theirs.fe_params["ai"], abs=2e-3)
    assert ours.fixed.loc["ai", "se"] == pytest.approx(theirs.bse_fe["ai"], abs=2e-3)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-2)
    assert [ours.variances["rater"], ours.variances["story"]] == pytest.approx(theirs.vcomp, abs=0.02)
    assert ours.variances["residual"] == pytest.approx(theirs.scale, abs=0.01)


def test_balanced_one_way_is_the_analysis_of_variance():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(30), 4)
    y = rng.normal(0, 1, 30)[groups] + rng.normal(0, 0.5, 120)
    fit = crossed_model(y, pd.DataFrame({"intercept": np.ones(120)}), {"unit": groups})
    means = y.reshape(30, 4).mean(axis=1)
    within = ((y - means[groups]) ** 2).sum() / 90
    between = (4 * means.var(ddof=1) - within) / 4
    assert fit.variances["residual"] == pytest.approx(within, rel=1e-4)
    assert fit.variances["unit"] == pytest.approx(between, rel=1e-4)
    assert fit.fixed.loc["intercept", "estimate"] == pytest.approx(y.mean())


def test_intervals_cover_the_planted_effect():
    rng, hits, shares = np.random.default_rng(3), 0, []
    for _ in range(40):
        fit = crossed_model(*simulate(rng, rows=140))
        hits += fit.fixed.loc["ai", "lo"] <= 0.4 <= fit.fixed.loc["ai", "hi"]
        shares.append(fit.share("rater"))
    assert 34 <= hits <= 40
    assert np.mean(shares) == pytest.approx(0.49 / (0.25 + 0.49 + 0.64), abs=0.06)


def test_no_variance_between_groups_is_found_as_none():
    rng = np.random.default_rng(4)
    y = rng.normal(size=200)
    fit = crossed_model(y, pd.DataFrame({"intercept": np.ones(200)}), {"story": np.arange(200) % 50})
    assert fit.share("story") < 0.15
    assert fit.variances["residual"] + fit.variances["story"] == pytest.approx(y.var(ddof=1), rel=0.05)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda y, X, g: (np.append(y[:-1], np.nan), X, g), "complete rows"),
        (lambda y, X, g: (y[:-1], X, g), "as many"),
        (lambda y, X, g: (y, X.assign(twice=2 * X["ai"]), g), "depend on each other"),
    ],
)
def test_bad_input(change, says):
    with pytest.raises(ValueError, match=says):
        crossed_model(*change(*simulate(np.random.default_rng(5), rows=60)))
