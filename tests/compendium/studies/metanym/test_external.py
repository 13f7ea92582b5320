"""The external check: correlations, ladder, regimes, propagated error, and the keyed test's audit."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compendium.frame.cells import grid, published
from compendium.studies.metanym.exam import (
    audit,
    key_balance,
    lenient_answer,
    merge_stages,
    score_replies,
    shuffled_options,
    strict_answer,
)
from compendium.studies.metanym.external import (
    all_combinations,
    bca_interval,
    composite,
    correlation,
    in_words,
    interval_replicates,
    ladder,
    least_squares,
    propagated_error,
    regimes,
    rounding_range,
)
from compendium.studies.metanym.game import MetanymError


def printed():
    cells = published("metanym")
    components = grid(cells, "table-2")[["GF", "GC", "EF", "EC"]]
    return cells, components, grid(cells, "table-12")["gpqa"]


def rng():
    return np.random.default_rng(0)


def test_correlations_agree_with_scipy():
    x, y = rng().normal(size=(2, 15))
    assert correlation(x, y) == pytest.approx(stats.pearsonr(x, y)[0])
    assert np.isnan(correlation([1, 1, 1], [1, 2, 3]))


def test_bca_interval_agrees_with_scipy():
    x, y = rng().normal(size=(2, 25))
    y = x + 0.7 * y
    mine = bca_interval(x, y, B=8000, rng=rng())
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b, axis=-1: correlation(a, b, axis),
        paired=True,
        method="BCa",
        n_resamples=8000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    np.testing.assert_allclose(mine, theirs, atol=0.02)


def test_line_by_hand():
    line = least_squares([0, 1, 2], [1, 3, 5])
    assert (line.slope, line.intercept, line.r) == (2, 1, pytest.approx(1))
    assert not np.isfinite(least_squares([1.0, 1.0], [1, 2]).slope)


def test_the_printed_ladder_comes_out_of_the_printed_components():
    cells, components, gpqa = printed()
    found, table = ladder(components, gpqa, B=200, rng=rng()), grid(cells, "table-9")
    for column in ("pearson", "spearman", "fisher_lo", "fisher_hi"):
        assert (np.abs(found[column] - table[column]) <= 0.005 + 1e-9).all(), column


def test_the_printed_regimes_come_out_of_the_printed_components():
    cells, components, gpqa = printed()
    found, table = regimes(components, gpqa), grid(cells, "table-11")
    assert (np.abs(found - table).drop(index="GF") <= 0.005 + 1e-9).all().all()
    assert (
        abs(found.at["GF", "leading_eight"] - table.at["GF", "leading_eight"]) < 0.01
    )  # from rounded components


def test_no_combination_beats_the_whole():
    _, components, gpqa = printed()
    found = all_combinations(components, gpqa)
    assert len(found) == 15 and found.iloc[0]["parts"] == "GF+GC+EF+EC"


def test_a_model_without_an_external_score():
    _, components, gpqa = printed()
    with pytest.raises(MetanymError, match="no external score for 'gpt-4o'"):
        ladder(components, gpqa.drop("gpt-4o"), B=10, rng=rng())
    with pytest.raises(MetanymError, match="no column 'XX'"):
        composite(components, ["XX"])


def test_propagated_error_by_cases():
    total = pd.Series(np.linspace(2, 7, 12), index=list("abcdefghijkl"))
    correct = pd.Series(np.rint(198 * (0.4 + 0.08 * (total - 2))), index=total.index)
    still = np.broadcast_to(total.to_numpy(), (2000, 12))
    found = propagated_error(total, still, correct, 198, rng=rng())
    # only the test's binomial error is left, and it scales the slope by nothing but chance
    slope = least_squares(total, 100 * correct / 198).slope
    assert found.at["measurement", "slope_lo"] < slope < found.at["measurement", "slope_hi"]
    assert found.at["models", "r_lo"] > 0.99 and found.at["both", "r_lo"] < found.at["models", "r_lo"]
    noisy = still + 0.6 * rng().normal(size=still.shape)
    wide = propagated_error(total, noisy, correct, 198, rng=rng())
    assert wide.at["measurement", "r_lo"] < found.at["measurement", "r_lo"]
    assert wide.at["measurement", "slope_hi"] < slope + 3  # error in x flattens the line


def test_replicates_that_a_printed_interval_stands_for():
    estimate = pd.Series([5.0, 7.0])
    drawn = interval_replicates(estimate, pd.Series([4.0, 7.0]), pd.Series([5.5, 7.0]), 40_000, rng())
    np.testing.assert_allclose(np.percentile(drawn[:, 0], [2.5, 97.5]), [4.0, 5.5], atol=0.03)
    assert (drawn[:, 1] == 7).all()


def test_rounding_range():
    found = rounding_range(lambda a: a.sum(axis=(-1, -2)), [[1.0, 2.0]], [0, 1], B=4000, rng=rng())
    assert found.value == 3 and 2.45 < found.lo < 2.55 and 3.45 < found.hi < 3.55


# the keyed test -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, strict, lenient",
    [
        ("So it is.\nAnswer: B", "B", "B"),
        ("**Answer: C**", "C", "C"),
        ("Answer: $D$\n\n", "D", "D"),
        ("The options A and B fail.\n$\\boxed{C}$", None, "C"),
        ("$\\boxed{\\text{A}}$", None, "A"),
        ("The correct answer is D.", None, "D"),
        ("Answer: A would be wrong.\nAnswer: B", "B", "B"),
        ("Answer: B\nI hope this helps.", None, "B"),
        ("A", None, "A"),
        ("An answer could be anything", None, None),
        ("<think>Answer: A</think>Answer: C", "C", "C"),
        ("<think>Answer: A", None, None),
        ("", None, None),
    ],
)
def test_answers_are_read(text, strict, lenient):
    assert strict_answer(text) == strict and lenient_answer(text) == lenient


def test_options_depend_on_the_index_alone():
    options = ["right", "x", "y", "z"]
    shown, key = shuffled_options(7, options)
    assert (
        shuffled_options(7, options) == (shown, key)
        and shown["ABCD".index(key)] == "right"
        and sorted(shown) == sorted(options)
    )
    keys = [shuffled_options(index, options)[1] for index in range(400)]
    assert key_balance(keys).p > 0.01
    with pytest.raises(MetanymError, match="four different options"):
        shuffled_options(0, ["a", "a", "b", "c"])


def replies(**texts):
    rows = [
        {"model": model, "question": number, "text": text, "key": "A", "prompt": "Pick one."}
        for model, said in texts.items()
        for number, text in enumerate(said)
    ]
    return pd.DataFrame(rows)


def test_scores_count_voids_as_wrong_and_without():
    found = score_replies(replies(ann=["Answer: A", "Answer: B", "so A it", "\\boxed{A}"])).loc["ann"]
    assert (found.n, found.correct, found.void, found.questionable) == (4, 2, 1, 1)
    assert (found.accuracy, found.accuracy_given, found.strict) == (50, pytest.approx(200 / 3), 25)


def test_only_void_replies_are_patched():
    first = replies(ann=["Answer: A", "hm", "hm"], bob=["Answer: B", "Answer: A", "Answer: A"])
    second = pd.DataFrame(
        [
            {"model": "ann", "question": 1, "text": "Answer: A", "key": "A"},
            {"model": "ann", "question": 2, "text": "hm again", "key": "A"},
        ]
    )
    patched, report = merge_stages(first, second)
    assert len(patched) == 6 and score_replies(patched).at["ann", "correct"] == 2
    assert dict(report.loc["ann", ["voids", "retried", "rescued", "residual"]].astype(int)) == {
        "voids": 2,
        "retried": 2,
        "rescued": 1,
        "residual": 1,
    }
    assert report.at["bob", "retried"] == 0
    with pytest.raises(MetanymError, match="bob was asked question 0 again"):
        merge_stages(first, pd.DataFrame([{"model": "bob", "question": 0, "text": "Answer: A", "key": "A"}]))


def test_the_papers_key_is_balanced():
    found = key_balance("A" * 48 + "B" * 51 + "C" * 47 + "D" * 52)
    assert found.p == pytest.approx(0.952, abs=0.001) and sum(found.counts.values()) == 198
    assert key_balance("A" * 90 + "B" * 36 + "C" * 36 + "D" * 36).p < 1e-6
    with pytest.raises(MetanymError):
        key_balance("ABE")


def test_the_audit_passes_and_fails_by_row():
    good = replies(ann=["Answer: A"], bob=["Answer: B"])
    found = audit(good, pd.Series({"ann": 1, "bob": 0})).set_index("check")["passed"]
    assert found.drop("the key is balanced").all()
    bad = pd.concat(
        [
            good,
            pd.DataFrame(
                [{"model": "ann", "question": 1, "text": "", "key": "B", "prompt": "The key is B."}]
            ),
        ]
    )
    found = audit(bad, pd.Series({"ann": 2, "bob": 0})).set_index("check")["passed"]
    assert not found["every model got every question"] and not found["no key enters a prompt"]
    assert not found["counts equal the published ones"]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda t: t.drop(columns="key"), "no column 'key'"),
        (lambda t: pd.concat([t, t]), "two replies to question 0"),
        (lambda t: t.assign(key="E"), "no letter from A to D"),
    ],
)
def test_replies_that_cannot_be_scored(change, words):
    with pytest.raises(MetanymError, match=words):
        score_replies(change(replies(ann=["Answer: A"])))


def test_what_the_text_says_of_the_agreement_follows_from_the_printed_tables():
    cells, components, gpqa = printed()
    found = in_words(components, gpqa, "claude-opus-4.5")
    texts = cells.set_index(["exhibit", "row", "column"])
    for address, value in found.items():
        row = texts.loc[address]
        half = 0.5 * 10.0 ** -row["decimals"] + 0.005  # the tables are rounded themselves
        assert abs(value - row["value"]) <= half, (address, value, row["value"])
    assert len(found) == 24


def test_what_the_text_says_of_models_that_do_not_play_is_left_out():
    _, components, gpqa = printed()
    found = in_words(
        components.drop(["gpt-4o", "claude-opus-4.0", "claude-opus-4.1"]), gpqa, "claude-opus-4.5"
    )
    assert not {"gpt-4o_family", "anthropic"} & {row for _, row, _ in found}
