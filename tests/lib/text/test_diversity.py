"""EAD and SBERT-Div: by hand and as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.text import TextError
from lib.text.diversity import (
    ead,
    expected_distinct,
    mean_pairwise_similarity,
    sbert_diversity,
    vocabulary_of,
)
from lib.text.ngram_model import NgramModel
from lib.text.perplexity import perplexity


def test_expectation_by_hand():
    # two draws from two words: 1 with chance 1/2, 2 with chance 1/2
    assert expected_distinct(2, 2) == pytest.approx(1.5)
    assert expected_distinct(3, 4) == pytest.approx(4 * (1 - (3 / 4) ** 3))
    assert expected_distinct(7, 1) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30))
def test_expectation_is_that_of_random_draws(length, vocabulary):
    assert expected_distinct(length, vocabulary) == pytest.approx(
        vocabulary * (1 - (1 - 1 / vocabulary) ** length)
    )
    assert expected_distinct(length, vocabulary) <= min(length, vocabulary) + 1e-9


def test_expectation_keeps_its_digits_for_a_large_vocabulary():
    assert expected_distinct(3, 10**12) == pytest.approx(3 - 3 / 10**12, abs=1e-14)


def test_ead_by_hand():
    words = "the cat and the dog and the bird".split()
    assert ead(words, 5) == pytest.approx(5 / (5 * (1 - 0.8**8)))
    assert len(vocabulary_of([words, ["a", "cat"]])) == 6


def test_ead_of_words_drawn_evenly_is_one():
    rng = np.random.default_rng(5)
    values = [ead(rng.integers(0, 400, size=300), 400) for _ in range(200)]
    assert np.mean(values) == pytest.approx(1, abs=0.01)


def test_ead_bad_input():
    with pytest.raises(TextError, match="fewer than the text's own 2"):
        ead(["a", "b"], 1)
    with pytest.raises(TextError, match="0 words"):
        ead([], 10)


def test_similarity_by_hand():
    vectors = np.array([[1.0, 0], [0, 2.0], [3.0, 0]])  # cosines 0, 1, 0
    assert mean_pairwise_similarity(vectors) == pytest.approx(1 / 3)
    assert sbert_diversity(vectors) == pytest.approx(2 / 3)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(0, 1000))
def test_similarity_is_the_mean_over_pairs(count, seed):
    vectors = np.random.default_rng(seed).normal(size=(count, 5))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [unit[i] @ unit[j] for i in range(count) for j in range(i)]
    assert mean_pairwise_similarity(vectors) == pytest.approx(np.mean(pairs))


def test_one_sentence_has_no_pairs():
    assert np.isnan(mean_pairwise_similarity(np.ones((1, 3))))
    assert sbert_diversity(np.ones((1, 3))) == 0
    assert sbert_diversity(np.ones((1, 3)), single=1.0) == 1


def test_vectors_bad_input():
    with pytest.raises(TextError, match="sentence"):
        sbert_diversity(np.zeros((0, 3)))
    with pytest.raises(TextError, match="zero vector"):
        sbert_diversity(np.zeros((2, 3)))


def test_ngram_model_by_hand():
    model = NgramModel([["a", "b", "a"]], order=1)
    # 3 words, 2 kinds, V = 2: P(a) = (2 + 2/3) / 5
    assert model.probability("a") == pytest.approx((2 + 2 / 3) / 5)
    assert model.probability("never") == pytest.approx((0 + 2 / 3) / 5)
    assert perplexity(model.log_likelihoods(["a"])) == pytest.approx(5 / (2 + 2 / 3))


def test_ngram_model_is_a_distribution():
    model = NgramModel([["a", "b", "a", "c"], ["b", "a"]], order=3)
    for history in ((), ("a",), ("b", "a"), ("z", "z")):
        total = sum(model.probability(word, history) for word in [*model.vocabulary, "unseen"])
        assert total == pytest.approx(1)


def test_known_text_is_less_perplexing():
    model = NgramModel([["the", "cat", "sat", "on", "the", "mat"]] * 3, order=3)
    assert perplexity(model.log_likelihoods(["the", "cat", "sat"])) < perplexity(
        model.log_likelihoods(["mat", "on", "cat"])
    )
    with pytest.raises(TextError, match="at least one word"):
        NgramModel([[]])
