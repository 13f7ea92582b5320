"""CREATE's numbers from judged paths: hand-made sets, agreement with slow versions, judgements read and
mapped."""

import json

import numpy as np
import pandas as pd
import pytest

from compendium.asking.errors import InvalidReply
from compendium.studies.create import scores
from compendium.studies.create.answers import PATH_COLUMNS
from compendium.studies.create.judging import (
    SIZE_LIMITS,
    JudgementError,
    read_class_sizes,
    read_factuality,
    read_trace,
    specificity,
)

ANGLES = {"a": 0.0, "b": 0.3, "c": 1.6, "d": 3.0}


def table(rows):
    """Rows (source, query, text, valid, factual, share, strength) as a table of paths."""
    filled = [
        [s, q, 0, i, (("x", "y", "z"),), v, "", f, share, 0.0, strength, strength, 2, False, text]
        for i, (s, q, text, v, f, share, strength) in enumerate(rows)
    ]
    return pd.DataFrame(filled, columns=PATH_COLUMNS)


@pytest.fixture
def vectors():
    matrix = np.array([[np.cos(angle), np.sin(angle)] for angle in ANGLES.values()], dtype=np.float32)
    return scores.TextVectors(np.array(list(ANGLES), dtype=object), matrix)


@pytest.fixture
def paths():
    return table(
        [
            ("m", 0, "a", True, 1, 1.0, 4),
            ("m", 0, "b", True, 1, 1.0, 5),
            ("m", 0, "c", True, 0, 0.5, 5),
            ("m", 0, "d", False, 1, 1.0, 5),
            ("m", 1, "c", True, 1, 1.0, 2),
            ("n", 0, "c", True, 1, 1.0, 4),
            ("n", 0, "a", True, np.nan, np.nan, np.nan),
        ]
    )


@pytest.fixture
def queries():
    return pd.DataFrame({"source": ["m", "m", "m", "n"], "query": [0, 1, 2, 0]})


def test_sets_hold_valid_and_factual_paths_only(paths, queries, vectors):
    sets = scores.path_sets(paths, queries, vectors)
    assert sets.keys.tolist() == [("m", 0), ("m", 1), ("m", 2), ("n", 0)]
    assert sets.quality.tolist() == [[4, 5], [2, 0], [0, 0], [4, 0]]
    lenient = scores.path_sets(paths, queries, vectors, at_least=0.5)
    assert lenient.quality[0].tolist() == [4, 5, 5]


def test_utility_by_hand(paths, queries, vectors):
    sets = scores.path_sets(paths, queries, vectors)
    d = 0.5 * (1 - np.cos(np.pi * ((1 - np.cos(0.3)) / 0.7) ** 2))
    found = scores.utilities(sets, [0.0, 1.0])
    np.testing.assert_allclose(found["0.0"], [5 + 4 * d, 2, 1, 4], atol=1e-5)
    assert scores.utilities(sets, [0.0], empty=np.nan)["0.0"].isna().tolist() == [False, False, True, False]


def test_rows_in_any_order_give_the_same(paths, queries, vectors):
    shuffled = paths.sample(frac=1, random_state=3)
    first, second = (scores.utilities(scores.path_sets(p, queries, vectors)) for p in (paths, shuffled))
    pd.testing.assert_frame_equal(first, second)


def test_summary_by_hand(paths, queries, vectors):
    found = scores.set_summary(scores.path_sets(paths, queries, vectors)).loc["m"]
    assert found["max_quality"] == pytest.approx((5 + 2 + 0) / 3)
    assert found["n_factual"] == pytest.approx(1)
    assert found["mean_length"] == 2
    assert found["mean_distance"] == pytest.approx(
        scores.path_sets(paths, queries, vectors).distance[0, 0, 1]
    )


def test_distinctiveness_looks_at_other_sources_only(paths, vectors):
    strong = scores.distinctiveness(paths, vectors, above=3)
    assert strong[["source", "text"]].values.tolist() == [["m", "a"], ["m", "b"], ["n", "c"]]
    # m's a: n gave a too (unjudged, but valid): distance 0; n's c: m gave c too
    assert strong["nu"].iloc[0] == 0 and strong["nu"].iloc[2] == 0 and 0 < strong["nu"].iloc[1] < 1
    by_source = scores.distinctiveness_table(strong)
    assert by_source.loc["m", "n_paths"] == 2 and by_source.loc["m", "mean_strength"] == 4.5
    assert by_source.loc["m", "nu_max"] == strong["nu"].iloc[1]
    alone = scores.distinctiveness(paths[paths["source"] == "m"], vectors)
    assert alone["nu"].isna().all()
    assert scores.distinctiveness(paths, vectors, queries=[7]).empty


def test_threshold_curve_falls(paths, queries, vectors):
    curve = scores.threshold_curve(paths, queries, vectors, [0.0, 0.5, 1.0])
    assert curve.loc["m", "0"] == curve.loc["m", "0.5"] >= curve.loc["m", "1"]
    full = scores.utilities(scores.path_sets(paths, queries, vectors), [1.0]).groupby(level="source").mean()
    np.testing.assert_allclose(curve["1"], full.loc[curve.index].iloc[:, 0])


def test_mean_and_pairs(queries):
    index = pd.MultiIndex.from_product([["m", "n", "o"], range(30)], names=["source", "query"])
    rng = np.random.default_rng(0)
    values = pd.Series(rng.normal(size=90) + np.repeat([0, 2, 2], 30), index=index)
    mean, lo, hi = scores.mean_utility(values.to_frame("1.0"), 500, rng)
    assert (lo["1.0"] < mean["1.0"]).all() and (mean["1.0"] < hi["1.0"]).all()
    assert mean.loc["n", "1.0"] == pytest.approx(values["n"].mean())
    found = scores.pairwise_differences(
        values[~((index.get_level_values(0) == "o") & (index.get_level_values(1) > 19))], 2000, rng
    )
    assert found.index.tolist() == ["m|n", "m|o", "n|o"] and found["n"].tolist() == [30, 20, 20]
    assert found.loc["m|n", "difference"] == pytest.approx(values["n"].mean() - values["m"].mean())
    assert (
        found.loc["m|n", "p_bonferroni"] == pytest.approx(3 * found.loc["m|n", "p"])
        and found.loc["m|n", "p_bonferroni"] < 0.05
    )
    assert found.loc["n|o", "p"] > 0.05


def test_order_gap_brackets_the_best(vectors):
    rows = table([("m", 0, text, True, 1, 1.0, quality) for text, quality in zip("abcd", (3, 3, 2, 5))])
    sets = scores.path_sets(rows, pd.DataFrame({"source": ["m", "m"], "query": [0, 1]}), vectors)
    found = scores.order_gap(sets, 1.0, limit=10)
    assert found.loc[("m", 0), "greedy"] <= found.loc[("m", 0), "best"] <= found.loc[("m", 0), "bound"]
    assert found.loc[("m", 1), ["greedy", "best", "bound"]].isna().all()
    assert np.isnan(scores.order_gap(sets, 1.0, limit=3).loc[("m", 0), "best"])


def test_confusion_by_hand():
    truth = [1, 1, 1, 1, 0, 0, np.nan]
    said = [1, 1, 1, 0, 0, 1, 1]
    found = scores.confusion_rates(truth, said)
    assert found["n"] == 6 and found["accuracy"] == pytest.approx(4 / 6)
    assert found["recall_factual"] == 0.75 and found["recall_not_factual"] == 0.5
    assert found["precision_factual"] == 0.75 and found["precision_not_factual"] == 0.5
    assert found["balanced_accuracy"] == 0.625 and found["f1_factual"] == 0.75
    assert np.isnan(scores.confusion_rates([1, 1], [1, 1])["recall_not_factual"])
    with pytest.raises(ValueError, match="one length"):
        scores.confusion_rates([1], [1, 0])


def test_tables_behind_printed_rates_are_all_there_are():
    rates = scores.confusion_rates([1] * 7 + [0] * 4, [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1])
    printed = {
        name: round(rates[name], 2)
        for name in ("recall_factual", "precision_factual", "recall_not_factual", "precision_not_factual")
    }
    found = scores.tables_behind(11, printed)
    assert (5, 2, 1, 3) in set(map(tuple, found[["tp", "fn", "fp", "tn"]].to_numpy().tolist()))
    brute = []
    for tp, fn, fp in np.ndindex(12, 12, 12):
        tn = 11 - tp - fn - fp
        if tn < 0 or 0 in (tp + fn, tp + fp, tn + fp, tn + fn):
            continue
        values = (tp / (tp + fn), tp / (tp + fp), tn / (tn + fp), tn / (tn + fn))
        if all(abs(a - b) <= 0.005 for a, b in zip(values, printed.values())):
            brute.append((tp, fn, fp, tn))
    assert found[["tp", "fn", "fp", "tn"]].to_numpy().tolist() == [list(row) for row in brute]


def test_vectors_are_stored_and_found(tmp_path, vectors):
    vectors.save(tmp_path / "v.npz")
    again = scores.TextVectors.load(tmp_path / "v.npz")
    assert np.array_equal(again.rows(["d", "a"]), vectors.rows(["d", "a"]))
    with pytest.raises(KeyError):
        again.rows(["nowhere"])


def test_specificity_at_its_limits():
    assert specificity([1, 10, 11, 99, 100, 499, 500, 4999, 5000, 1e9]).tolist() == [
        5,
        5,
        4,
        4,
        3,
        3,
        2,
        2,
        1,
        1,
    ]
    assert np.isnan(specificity([np.nan])).all()
    with pytest.raises(ValueError, match="0 or more"):
        specificity([-1])
    with pytest.raises(ValueError, match="four rising"):
        specificity([1], limits=[1, 2, 2, 3])


@pytest.mark.parametrize(
    "reply",
    [
        '[{"judgment": 150}, {"judgment": "1,500"}]',
        '{"judgments": [150, "~1500"]}',
        '```json\n{"explanation": "…", "judgments": [150, 1500]}\n```',
        "[150, 1500]",
        'Sizes:\n```\n[{"explanation": "a", "judgment": 150}, {"judgment": 1500}]\n```',
    ],
)
def test_class_sizes_in_many_dresses(reply):
    assert read_class_sizes(reply, 2) == [150, 1500]


@pytest.mark.parametrize(
    "read, reply, words",
    [
        (read_class_sizes, "[150]", "1 class sizes for 2"),
        (read_class_sizes, '[{"judgment": "many"}, {"judgment": 2}]', "'many' is no number"),
        (read_class_sizes, "[-5, 3]", "0 or more"),
        (read_class_sizes, '[{"size of class": 4}, {"judgment": 2}]', "lacks its judgment"),
        (read_class_sizes, "I cannot.", "no JSON"),
        (read_factuality, '{"judgments": ["hallucinated"]}', "1 verdicts for 2"),
        (read_factuality, '{"judgments": ["hallucinated", "perhaps"]}', "'perhaps' is neither"),
        (read_factuality, '{"verdict": 1}', "no list of judgments"),
    ],
)
def test_unusable_judgements_are_named(read, reply, words):
    with pytest.raises(InvalidReply, match=words):
        read(reply, 2)


def test_verdicts():
    assert read_factuality('{"judgments": ["not hallucinated", "Hallucinated"]}', 2) == [True, False]


def test_traces():
    found = read_trace(
        '{"entities": ["A", "a ", "B"], "relations": ["r"], "triples": [["A", "r", "B"], ["a", "R", "b"]]}'
    )
    assert [len(found[name]) for name in ("entities", "relations", "triples")] == [2, 1, 1]
    with pytest.raises(JudgementError, match="'triples' is missing"):
        read_trace('{"entities": [], "relations": []}')


def test_limits_separate_every_released_judgement(mirror):
    """The released estimates and scores, 1,762 replies, through our own reading and limits."""
    n = 0
    for path in sorted((mirror / "create" / "data").glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            row = json.loads(line)
            for sizes, facts, given, marks in zip(
                row["salience_raw_responses_0"],
                row["raw_responses_factuality_0"],
                row["raw_salience_scores_0"],
                row["parsed_scores_factuality_0"],
            ):
                if given:
                    assert specificity(read_class_sizes(sizes, len(given)), SIZE_LIMITS).tolist() == given
                    assert read_factuality(facts, len(given)) == [mark == 1 for mark in marks]
                    n += len(given)
    assert n == 6507
