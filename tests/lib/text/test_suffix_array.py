"""The suffix array against a sort of the suffixes and a scan of the corpus."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.text import TextError
from lib.text.suffix_array import END, PAD, SuffixArray

corpora = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def longest_by_scan(corpus, query, limit):
    """The longest n-gram from each start that occurs in the corpus, by trying all of them."""
    result = []
    for start in range(len(query)):
        best = 0
        for length in range(1, min(limit, len(query) - start) + 1):
            gram = list(query[start : start + length])
            if END in gram or PAD in gram:
                break
            if any(list(corpus[at : at + length]) == gram for at in range(len(corpus) - length + 1)):
                best = length
        result.append(best)
    return result


@settings(max_examples=150, deadline=None)
@given(corpora, st.integers(1, 9))
def test_order_is_that_of_the_sorted_suffixes(corpus, depth):
    index = SuffixArray.build(np.array(corpus), depth)
    expected = sorted(range(len(corpus)), key=lambda at: (corpus[at : at + depth], at))
    assert [corpus[at : at + depth] for at in index.order] == [corpus[at : at + depth] for at in expected]
    assert sorted(index.order) == list(range(len(corpus)))


@settings(max_examples=200, deadline=None)
@given(corpora, st.lists(st.sampled_from([PAD, 1, 2, 3, 9]), min_size=1, max_size=20), st.integers(1, 6))
def test_longest_matches_equal_a_scan(corpus, query, limit):
    index = SuffixArray.build(np.array(corpus), 6)
    assert index.longest_matches(np.array(query), limit).tolist() == longest_by_scan(corpus, query, limit)


@settings(max_examples=150, deadline=None)
@given(corpora, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_count_equals_a_scan(corpus, gram):
    index = SuffixArray.build(np.array(corpus), 5)
    expected = sum(corpus[at : at + len(gram)] == gram for at in range(len(corpus) - len(gram) + 1))
    assert index.count(gram) == expected


def test_large_word_numbers_take_several_rounds():
    rng = np.random.default_rng(1)
    corpus = rng.integers(1, 2**30, size=300)
    corpus[100:140] = corpus[20:60]  # a long repeat: the first round cannot tell the two apart
    index = SuffixArray.build(corpus, 40)
    expected = sorted(range(300), key=lambda at: tuple(corpus[at : at + 40]))
    assert index.order.tolist() == expected
    assert index.longest_matches(corpus[20:60], 40)[0] == 40


def test_two_words_of_four_bytes_a_token():
    assert SuffixArray.build(np.random.default_rng(2).integers(1, 50, size=5000)).bytes_per_token == 8


@pytest.mark.parametrize("tokens, depth, says", [([], 4, "0"), ([1, -2], 4, "-2"), ([1, 2], 0, "depth")])
def test_what_cannot_be_indexed(tokens, depth, says):
    with pytest.raises(TextError, match=says):
        SuffixArray.build(np.array(tokens, dtype=np.int64), depth)


def test_limits_are_told():
    index = SuffixArray.build(np.array([1, 2, 3]), 4)
    with pytest.raises(TextError, match="1 to 4 words"):
        index.longest_matches(np.array([1]), 5)
    with pytest.raises(TextError, match="1 to 4 words"):
        index.count([1, 1, 1, 1, 1])
