"""Estimators against figures that others printed, each example named by its source; then against R, where R is at hand.

The printed figures hold everywhere; what R 4.2 gave for the same data is recorded beside them where print has fewer digits.
"""

import numpy as np
import pytest

from lib.agreement import cohen_kappa
from lib.correlation import benjamini_hochberg, correlate, rater_reliability
from lib.means import mean_interval
from lib.paired import paired_difference, sign_flip_p
from lib.proportions import wilson_interval
from lib.ranks import holm, kendall_tau_b, kruskal_wallis, mann_whitney, spearman
from lib.resampling import bootstrap
from lib.selection import permuted_correlations
from tests.lib.outside import ask_r

# Shrout and Fleiss (1979), Intraclass correlations, Table 2: six targets, four judges
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
# Cohen (1968), Weighted kappa, Table 1: two judges, 200 cases in three categories
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
# Efron and Tibshirani (1993), Table 3.1: LSAT and GPA of fifteen law schools
LSAT = [576, 635, 558, 578, 666, 580, 555, 661, 651, 605, 653, 575, 545, 572, 594]
LAW_BCA = (0.32294, 0.94075)
GPA = [3.39, 3.30, 2.81, 3.03, 3.44, 3.07, 3.00, 3.43, 3.36, 3.13, 3.12, 2.74, 2.76, 2.88, 2.96]
# Hollander and Wolfe (1973), p. 115: mucociliary efficiency; p. 69: permeability at term and before
MUCUS = [[2.9, 3.0, 2.5, 2.6, 3.2], [3.8, 2.7, 4.0, 2.4], [2.8, 3.4, 3.7, 2.2, 2.0]]
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
BEFORE = [1.15, 0.88, 0.90, 0.74, 1.21]
# Fisher (1935), The Design of Experiments, section 17: Darwin's maize, crossed less self-fertilised, eighths of an inch
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Benjamini and Hochberg (1995), section 3.1: fifteen tests of thrombolysis
THROMBOLYSIS = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
]
THROMBOLYSIS += [0.6528, 0.7590, 1.0]


def rng(seed=0):
    return np.random.default_rng(seed)


def pearson(pairs, axis=-1):
    centred = pairs - pairs.mean(axis=axis, keepdims=True)
    return (centred[0] * centred[1]).sum(axis=axis) / np.sqrt((centred**2).sum(axis=axis).prod(axis=0))


def judged():
    """Cohen's table as two judges' ratings."""
    return np.repeat([(a, b) for a in range(3) for b in range(3)], np.ravel(COHEN), axis=0).T


def test_icc_of_shrout_and_fleiss_1979():
    """ICC(1,1) = .17, ICC(1,4) = .44 (their Table 4); psych 2.2.9: .1657418, .4427971."""
    found = rater_reliability(SHROUT_FLEISS)
    assert (found.single, found.mean) == pytest.approx((0.1657418, 0.4427971), abs=5e-8)
    assert (round(found.single, 2), round(found.mean, 2)) == (0.17, 0.44)


def test_kappa_of_cohen_1968():
    """kappa = .492; psych 2.2.9: .4915254, with quadratic weights .4545455 (Fleiss and Cohen 1973)."""
    assert cohen_kappa(*judged()) == pytest.approx(0.492, abs=5e-4)
    assert cohen_kappa(*judged(), weights="quadratic") == pytest.approx(0.4545455, abs=5e-8)


def test_law_school_of_efron_and_tibshirani_1993():
    """r = .776 (section 3.2); BCa .95 by boot 1.3-28.1 with 200,000 replicates: .32294 to .94075."""
    found = bootstrap(np.array([LSAT, GPA]), pearson, B=20_000, rng=rng(1), method="bca")
    assert found.estimate == pytest.approx(0.776, abs=5e-4)
    assert (found.lo, found.hi) == pytest.approx(LAW_BCA, abs=0.015)


def test_tau_of_kendall_1948():
    """Rank Correlation Methods, section 3: two rankings with ties, tau-b = .859; R 4.2: .85895569."""
    first = [1, 2.5, 2.5, 4.5, 4.5, 6.5, 6.5, 8, 9.5, 9.5]
    second = [1, 2, 4.5, 4.5, 4.5, 4.5, 8, 8, 8, 10]
    assert kendall_tau_b(first, second) == pytest.approx(0.85895569, abs=5e-9)


def test_kruskal_wallis_and_mann_whitney_of_hollander_and_wolfe_1973():
    """H = .771, p = .68; U = 35 of 50, one-sided p = .1272, so .2544 two-sided."""
    assert kruskal_wallis(MUCUS) == pytest.approx((0.77143, 0.68), abs=1e-4)
    found = mann_whitney(BEFORE, AT_TERM)
    assert found.U == 35 and found.p == pytest.approx(2 * 0.1272, abs=2e-4) and found.r == pytest.approx(0.4)


def test_fourteen_and_more_flips_of_fisher_1935():
    """Of the 32,768 sign flips of Darwin's fifteen differences 863 give a sum of 314 or more: p = 1726/32768 = .0527; by
    Student's t .0497."""
    p, how = sign_flip_p(MAIZE, B=200_000, rng=rng(2))
    assert how == "sign flips, 200000 drawn" and p == pytest.approx(1726 / 32768, abs=0.002)
    found = paired_difference(np.zeros(15), MAIZE, B=50, rng=rng(3))
    assert found.estimate == pytest.approx(314 / 15) and found.lo == pytest.approx(0.03120, abs=5e-5)
    assert mean_interval(MAIZE, B=50, rng=rng(3))[1] == found.lo


def test_thrombolysis_of_benjamini_and_hochberg_1995():
    """Bonferroni's procedure rejects the three smallest, theirs at q = .05 the four smallest."""
    assert (holm(THROMBOLYSIS) < 0.05).sum() == 3 and (benjamini_hochberg(THROMBOLYSIS) < 0.05).sum() == 4
    assert benjamini_hochberg(THROMBOLYSIS)[3] == pytest.approx(0.0095 * 15 / 4)


@pytest.mark.parametrize(
    "count, total, lo, hi",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_of_newcombe_1998(count, total, lo, hi):
    """Two-sided confidence intervals for the single proportion, Table I, method 3."""
    assert wilson_interval(count, total) == pytest.approx((lo, hi), abs=5e-5)


def r_list(values):
    return "c(" + ", ".join("NA" if np.isnan(v) else repr(float(v)) for v in np.ravel(values)) + ")"


def test_r_ranks(tmp_path):
    """cor, cor.test, kruskal.test, wilcox.test and p.adjust of R on twenty samples, tied or not."""
    draws, script, ours = rng(4), "", []
    for number in range(20):
        if number % 2:
            a, b = draws.normal(size=12), draws.normal(size=12)
        else:
            a, b = draws.integers(0, 5, (2, 12)).astype(float)
        exact = "TRUE" if number % 2 else "FALSE"
        p = draws.uniform(0, 0.2, 6)
        script += f"""a <- {r_list(a)}; b <- {r_list(b)}; p <- {r_list(p)}
        out <- c(cor(a, b, method="spearman"), cor(a, b, method="kendall"),
          suppressWarnings(cor.test(a, b, method="kendall", exact={exact})$p.value),
          kruskal.test(list(a, b))$statistic, kruskal.test(list(a, b))$p.value,
          suppressWarnings(wilcox.test(b, a, exact={exact})$p.value), p.adjust(p, "holm"), p.adjust(p, "BH"))
        say(out)
        """
        tau = correlate(a, b, "kendall")
        tests = (*kruskal_wallis([a, b]), mann_whitney(a, b).p)
        if number % 2:  # scipy's rule: exact only where one sample has at most 8 units
            tests = (*tests[:2], float("nan"))
        ours.append([spearman(a, b), *tau[:2], *tests, *holm(p), *benjamini_hochberg(p)])
    theirs = ask_r(script, tmp_path).reshape(20, -1)
    ours = np.array(ours)
    seen = ~np.isnan(ours)
    assert seen.mean() > 0.9 and ours[seen] == pytest.approx(theirs[seen], abs=1e-9)


def test_r_boot(tmp_path):
    """BCa of the law schools by boot.ci; both are Monte Carlo."""
    theirs = ask_r(
        f"""set.seed(1); d <- data.frame(a={r_list(LSAT)}, b={r_list(GPA)})
        found <- boot(d, function(d, i) cor(d$a[i], d$b[i]), R=20000)
        say(boot.ci(found, type="bca")$bca[4:5])""",
        tmp_path,
        ["boot"],
    )
    found = bootstrap(np.array([LSAT, GPA]), pearson, B=20_000, rng=rng(5), method="bca")
    assert (found.lo, found.hi) == pytest.approx(tuple(theirs), abs=0.02)


def test_r_psych(tmp_path):
    """ICC and cohen.kappa of psych."""
    theirs = ask_r(
        f"""x <- matrix({r_list(SHROUT_FLEISS)}, ncol=4, byrow=TRUE); k <- matrix({r_list(COHEN)}, 3, byrow=TRUE)
        icc <- ICC(x, lmer=FALSE)$results$ICC; kappa <- cohen.kappa(k)
        say(icc[1], icc[4], kappa$kappa, kappa$weighted.kappa)""",
        tmp_path,
        ["psych"],
    )
    found = rater_reliability(SHROUT_FLEISS)
    ours = [found.single, found.mean, cohen_kappa(*judged()), cohen_kappa(*judged(), weights="quadratic")]
    assert ours == pytest.approx(list(theirs), abs=1e-9)


def test_r_irr(tmp_path):
    """Krippendorff's alpha of irr, at three levels, four observers with missing ratings."""
    from lib.agreement import krippendorff_alpha

    ratings = rng(6).integers(1, 6, (4, 15)).astype(float)
    ratings[0, :4] = ratings[2, 9:12] = np.nan
    theirs = ask_r(
        f"""x <- matrix({r_list(ratings)}, nrow=4, byrow=TRUE)
        for (level in c("nominal", "ordinal", "interval", "ratio")) say(kripp.alpha(x, level)$value)""",
        tmp_path,
        ["irr"],
    )
    ours = [krippendorff_alpha(ratings, level) for level in ("nominal", "ordinal", "interval", "ratio")]
    assert ours == pytest.approx(list(theirs), abs=1e-6)


def test_r_coin(tmp_path):
    """Sign flips as coin's test of paired samples (blocks of two), and shuffles as its permutation test of ranks; both
    Monte Carlo."""
    other = [2.0, 9, 4, 7, 1, 8, 3, 6, 5, 12, 10, 15, 11, 14, 13]
    theirs = ask_r(
        f"""set.seed(1); d <- {r_list(MAIZE)}
        pair <- data.frame(y=c(rep(0, 15), d), x=factor(rep(1:2, each=15)), b=factor(rep(1:15, 2)))
        n <- approximate(nresample=200000)
        one <- pvalue(oneway_test(y ~ x | b, pair, distribution=n))
        two <- pvalue(spearman_test(a ~ b, data.frame(a=d, b={r_list(other)}), distribution=n))
        say(one, two)""",
        tmp_path,
        ["coin"],
    )
    assert sign_flip_p(MAIZE, B=200_000, rng=rng(7))[0] == pytest.approx(theirs[0], abs=0.003)
    assert permuted_correlations([other], MAIZE, B=200_000, rng=rng(8)).p[0] == pytest.approx(
        theirs[1], abs=0.006
    )


def test_r_mean(tmp_path):
    """t.test of R, and the clusters' formula written out in R."""
    values, labels = np.round(rng(9).normal(size=14), 4), np.repeat(range(5), [4, 1, 3, 3, 3])
    theirs = ask_r(
        f"""v <- {r_list(values)}; g <- {r_list(labels)}
        r <- tapply(v - mean(v), g, sum); e <- sqrt(5/4 * sum(r^2)) / 14
        say(t.test(v)$conf.int, mean(v) + qt(c(.025, .975), 4) * e)""",
        tmp_path,
    )
    ours = [
        *mean_interval(values, B=5, rng=rng())[1:],
        *mean_interval(values, B=5, rng=rng(), clusters=labels)[1:],
    ]
    assert ours == pytest.approx(list(theirs), abs=1e-9)
