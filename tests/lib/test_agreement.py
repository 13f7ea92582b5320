"""lib.agreement against published examples, a brute-force coincidence matrix, and other implementations."""

from itertools import permutations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score

from compendium.frame.paths import ROOT
from lib import numeric
from lib.agreement import cohen_kappa, krippendorff_alpha, krippendorff_alpha_interval, landis_koch
from lib.numeric import average_ranks
from lib.ranks import ranks

LEVELS = ("nominal", "ordinal", "interval", "ratio")
NAN = np.nan
RNG = np.random.default_rng(0)  # for calls that fail before they draw

# Krippendorff (2011), section C/D: four observers, twelve units, missing data. ratings[observer, unit]
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)
PRINTED = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}

ratings_arrays = hnp.arrays(
    float,
    st.tuples(st.integers(2, 4), st.integers(1, 7)),
    elements=st.sampled_from([0.0, 1.0, 2.0, 4.0, NAN]),
)


def difference(level, c, k, totals):
    """Squared metric difference as printed in Krippendorff (2011); totals maps value to its count."""
    if level == "nominal":
        return float(c != k)
    if level == "interval":
        return (c - k) ** 2
    if level == "ratio":
        return ((c - k) / (c + k)) ** 2 if c + k else 0.0
    low, high = min(c, k), max(c, k)
    between = sum(count for value, count in totals.items() if low <= value <= high)
    return (between - (totals[c] + totals[k]) / 2) ** 2 if c != k else 0.0


def brute_force_alpha(ratings, level):
    """Pairs of ratings, one by one: no coincidence matrix, no patterns."""
    units = [[value for value in unit if not np.isnan(value)] for unit in np.asarray(ratings).T]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [value for unit in units for value in unit]
    totals = {value: pooled.count(value) for value in pooled}
    observed = sum(
        difference(level, a, b, totals) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    )
    expected = sum(difference(level, a, b, totals) for a, b in permutations(pooled, 2))
    return 1 - (len(pooled) - 1) * observed / expected if expected else NAN


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_gives_the_published_example(level):
    assert round(krippendorff_alpha(FOUR_OBSERVERS, level), 3) == PRINTED[level]


def test_alpha_of_two_observers_and_binary_data_by_hand():
    # Krippendorff (2011), section A: ten units, alpha = 0.095
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    # four units differ: o01 = 4; n0 = 14, n1 = 6, n = 20: alpha = 1 - 19 * 4 / (14 * 6)
    assert krippendorff_alpha([first, second]) == pytest.approx(1 - 19 * 4 / (14 * 6), abs=1e-12)
    assert round(krippendorff_alpha([first, second]), 3) == 0.095


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=60, deadline=None)
@given(ratings=ratings_arrays)
def test_alpha_equals_brute_force(level, ratings):
    np.testing.assert_allclose(
        krippendorff_alpha(ratings, level), brute_force_alpha(ratings, level), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_equals_the_krippendorff_package(level):
    rng = np.random.default_rng(11)
    for _ in range(20):
        ratings = rng.integers(0, 6, size=(4, 30)).astype(float)
        ratings[rng.random(ratings.shape) < 0.2] = NAN
        assert krippendorff_alpha(ratings, level) == pytest.approx(
            krippendorff.alpha(ratings, level_of_measurement=level), abs=1e-10
        )


@settings(max_examples=60, deadline=None)
@given(ratings=ratings_arrays, level=st.sampled_from(LEVELS), data=st.data())
def test_alpha_does_not_depend_on_the_order_of_raters_or_units(ratings, level, data):
    raters = data.draw(st.permutations(range(ratings.shape[0])))
    units = data.draw(st.permutations(range(ratings.shape[1])))
    np.testing.assert_allclose(
        krippendorff_alpha(ratings[raters][:, units], level),
        krippendorff_alpha(ratings, level),
        rtol=1e-10,
        atol=1e-12,
    )


@settings(max_examples=40, deadline=None)
@given(ratings=ratings_arrays)
def test_levels_ignore_what_they_should(ratings):
    np.testing.assert_allclose(
        krippendorff_alpha(3 * ratings + 7, "interval"), krippendorff_alpha(ratings, "interval"), atol=1e-9
    )
    np.testing.assert_allclose(
        krippendorff_alpha(3 * ratings, "ratio"), krippendorff_alpha(ratings, "ratio"), atol=1e-9
    )
    np.testing.assert_allclose(
        krippendorff_alpha(np.exp(ratings), "ordinal"), krippendorff_alpha(ratings, "ordinal"), atol=1e-9
    )
    np.testing.assert_allclose(
        krippendorff_alpha(-ratings, "nominal"), krippendorff_alpha(ratings, "nominal"), atol=1e-9
    )


def test_interval_alpha_keeps_its_digits_far_from_zero():
    ratings = FOUR_OBSERVERS / 10
    assert krippendorff_alpha(ratings + 1e6, "interval") == pytest.approx(
        krippendorff_alpha(ratings, "interval"), abs=1e-7
    )


@pytest.mark.parametrize("level", LEVELS)
def test_perfect_agreement_is_one_and_one_value_is_undefined(level):
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]], level) == 1.0
    assert np.isnan(krippendorff_alpha(np.full((3, 5), 4.3), level))
    assert np.isnan(krippendorff_alpha([[1, NAN, 3], [NAN, 2, NAN]], level))  # no unit has two ratings
    assert np.isnan(krippendorff_alpha(np.full((3, 4), NAN), level))


def test_one_unit():
    # ratings 1 and 2: two differing ordered pairs observed, two expected, n - 1 = 1, so alpha = 1 - 1 * 2 / 2
    assert krippendorff_alpha([[1], [2]], "nominal") == 0.0
    assert np.isnan(krippendorff_alpha([[1], [1]], "nominal"))


def test_a_judge_without_ratings_changes_nothing():
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 3, size=(3, 40)).astype(float)
    padded = np.vstack([ratings, np.full((1, 40), NAN)])
    for level in LEVELS:
        assert krippendorff_alpha(padded, level) == krippendorff_alpha(ratings, level)


def test_leading_axes_are_a_batch():
    rng = np.random.default_rng(3)
    ratings = rng.integers(0, 2, size=(2, 5, 3, 20)).astype(float)
    batch = krippendorff_alpha(ratings)
    assert batch.shape == (2, 5)
    assert batch[1, 3] == krippendorff_alpha(ratings[1, 3])
    intervals = krippendorff_alpha_interval(ratings[0], "nominal", B=50, rng=rng)
    assert intervals.lo.shape == (5,)
    assert (intervals.lo <= intervals.hi).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: krippendorff_alpha([1, 2, 3]), "rater, unit"),
        (lambda: krippendorff_alpha([[1, 2], [1, 2]], "cardinal"), "unknown level 'cardinal'"),
        (lambda: krippendorff_alpha([[-1, 2], [1, 2]], "ratio"), ">= 0"),
        (lambda: krippendorff_alpha_interval(FOUR_OBSERVERS, "nominal", B=0, rng=RNG), "replicates"),
        (lambda: krippendorff_alpha_interval(FOUR_OBSERVERS, "nominal", B=9, rng=7), "Generator"),
        (
            lambda: krippendorff_alpha_interval(FOUR_OBSERVERS, "ratio", B=9, rng=RNG, confidence=9),
            "confidence",
        ),
        (lambda: cohen_kappa([1, 2], [1, 2, 3]), "one set of units"),
        (lambda: cohen_kappa([1, 2], [1, 2], weights="cubic"), "'cubic'"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("level", LEVELS)
def test_bootstrap_equals_resampling_units_one_by_one(level):
    """The interval's distribution is that of alpha on resampled columns, drawn the long way."""
    rng = np.random.default_rng(5)
    ratings = rng.integers(1, 5, size=(3, 40)).astype(float)
    ratings[1] = np.where(rng.random(40) < 0.7, ratings[0], ratings[1])
    ratings[2, :6] = NAN
    drawn = rng.integers(0, 40, size=(1500, 40))
    long_way = [krippendorff_alpha(ratings[:, row], level) for row in drawn]
    found = krippendorff_alpha_interval(ratings, level, B=20_000, rng=rng)
    assert found.estimate == krippendorff_alpha(ratings, level)
    error = 5 * np.std(long_way) / np.sqrt(1500) * 2.2  # five standard errors of a 2.5 % quantile
    np.testing.assert_allclose([found.lo, found.hi], np.quantile(long_way, [0.025, 0.975]), atol=error)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_chunks_do_not_change_a_bit(monkeypatch, level, scale):
    ratings = FOUR_OBSERVERS * scale
    whole = krippendorff_alpha_interval(ratings, level, B=137, rng=np.random.default_rng(9))
    monkeypatch.setattr(numeric, "CHUNK_CELLS", 11 * 16)
    assert krippendorff_alpha_interval(ratings, level, B=137, rng=np.random.default_rng(9)) == whole


def test_undefined_replicates_are_left_out_and_undefined_alpha_has_no_interval():
    nearly_constant = np.zeros((2, 6))
    nearly_constant[:, 0] = 1  # a third of the replicates miss the only unit that differs
    found = krippendorff_alpha_interval(nearly_constant, "nominal", B=200, rng=np.random.default_rng(0))
    assert found == (1.0, 1.0, 1.0)
    constant = krippendorff_alpha_interval(np.ones((2, 6)), "nominal", B=20, rng=np.random.default_rng(0))
    assert np.isnan(constant).all()


def test_interval_covers_a_known_alpha():
    """Binary labels that each judge flips with chance q: population alpha is (1 - 2q)**2 at base rate 1/2."""
    rng = np.random.default_rng(12)
    flip, truth = 0.1, (1 - 2 * 0.1) ** 2
    covered = 0
    for _ in range(200):
        state = rng.random(150) < 0.5
        ratings = np.where(rng.random((3, 150)) < flip, ~state, state).astype(float)
        found = krippendorff_alpha_interval(ratings, "nominal", B=400, rng=rng)
        covered += found.lo <= truth <= found.hi
    assert 0.89 <= covered / 200 <= 0.99


def test_kappa_by_hand():
    # Cohen's layout: 50 proposals, yes/yes 20, yes/no 5, no/yes 10, no/no 15: p_o = 0.70, p_e = 0.50
    first = [1] * 25 + [0] * 25
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(first, second) == pytest.approx((0.70 - 0.50) / (1 - 0.50), abs=1e-12)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30))
def test_kappa_equals_scikit_learn(weights, pairs):
    first, second = np.array(pairs).T
    ours = cohen_kappa(first, second, weights)
    if len(set(first) | set(second)) == 1:
        assert np.isnan(ours)
    else:
        theirs = cohen_kappa_score(first, second, weights=weights, labels=[1, 2, 3, 4, 5])
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_kappa_leaves_out_missing_pairs_and_unused_categories_keep_their_distance():
    assert cohen_kappa([1, 0, NAN, 1], [1, 0, 1, NAN]) == cohen_kappa([1, 0], [1, 0]) == 1.0
    assert np.isnan(cohen_kappa([NAN], [1]))
    first, second = [1, 1, 5, 5, 2], [1, 5, 5, 2, 2]
    with_gap = cohen_kappa(first, second, "linear")
    assert with_gap != pytest.approx(cohen_kappa([1, 1, 3, 3, 2], [1, 3, 3, 2, 2], "linear"))
    theirs = cohen_kappa_score(first, second, weights="linear", labels=[1, 2, 3, 4, 5])
    assert with_gap == pytest.approx(theirs)


@pytest.mark.parametrize(
    "value, band",
    [
        (-0.3, "Poor"),
        (0.0, "Poor"),
        (0.1999, "Poor"),
        (0.20, "Fair"),
        (0.40, "Moderate"),
        (0.422, "Moderate"),
        (0.60, "Good"),
        (0.7999, "Good"),
        (0.80, "Excellent"),
        (0.944, "Excellent"),
        (1.0, "Excellent"),
        (1 - 0.6, "Moderate"),
        (1 - 0.2 - 1e-13, "Excellent"),
        (0.6 - 2e-12, "Moderate"),
        (0.3 - 0.1, "Fair"),
        (NAN, "Undefined"),
    ],
)
def test_bands(value, band):
    assert landis_koch(value) == band


def test_bands_are_those_the_paper_prints():
    printed = pd.read_csv(ROOT / "data" / "published" / "alienbench.csv")
    alphas = printed[(printed["exhibit"] == "table-7") & (printed["column"] == "alpha")]
    assert len(alphas) == 11
    assert ("band: " + alphas["value"].map(landis_koch)).tolist() == alphas["note"].tolist()


def test_one_category_written_twice_is_one():
    ratings = [[0.1 + 0.2, 1.0, 0.3, 2.0], [0.3, 1.0, 0.1 + 0.2, 2.0]]
    assert krippendorff_alpha(ratings, "nominal") == 1
    assert cohen_kappa(*ratings) == 1
    assert np.isnan(krippendorff_alpha([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]], "nominal")), (
        "nothing could disagree"
    )


@pytest.mark.parametrize(
    "dtype, values",
    [("Int64", [1, 2, None, 3]), ("boolean", [True, False, None, True]), ("string", ["1", "2", None, "3"])],
)
def test_pandas_missing_is_missing(dtype, values):
    second = [1, 2, 2, 1]
    with_na = np.array([pd.array(values, dtype=dtype).to_numpy(dtype=object), np.array(second, dtype=object)])
    plain = [[np.nan if value is None else float(value) for value in values], second]
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(with_na, level) == pytest.approx(krippendorff_alpha(plain, level))
    assert average_ranks(pd.array(values, dtype=dtype)) == pytest.approx(average_ranks(plain[0]), nan_ok=True)
    assert ranks(pd.Series(values, dtype=dtype), method="competition") == pytest.approx(
        ranks(plain[0], method="competition"), nan_ok=True
    )


def test_infinite_ratings_are_refused():
    with pytest.raises(ValueError, match="infinite"):
        krippendorff_alpha([[1, np.inf], [1, 2]], "interval")
