"""Lexical and semantic diversity of one text: expectation-adjusted distinct words, distance between
sentences.

Sources: Liu et al. (2022) for EAD; Kirk et al. (2024) for SBERT-Div; Stories paper, equations 7 to 10.
"""

import numpy as np

from lib.text import TextError


def expected_distinct(length: int, vocabulary: int) -> float:
    """Distinct words expected among `length` words drawn evenly from `vocabulary` words (equation 7,
    right).

    >>> round(expected_distinct(2, 10), 2)
    1.9
    """
    if vocabulary < 1 or length < 1:
        raise TextError(
            f"a text of {length} words and a vocabulary of {vocabulary} give no expectation; both should "
            "be at least 1"
        )
    # log1p keeps the digits that 1 - 1/V loses for a large vocabulary
    return float(-vocabulary * np.expm1(length * np.log1p(-1 / vocabulary))) if vocabulary > 1 else 1.0


def ead(words, vocabulary: int) -> float:
    """Expectation-adjusted distinct words (equation 7): distinct words over those expected by chance.

    words[word]: tokens, already lower-cased where case should not count; vocabulary: its size V, e.g.
    `len(vocabulary_of(texts))`. The value can pass 1: a text may repeat itself less than chance would.
    Raises TextError for no words, or a vocabulary smaller than the text's own.

    >>> round(ead(["a", "b", "a"], 100), 3)
    0.673
    """
    words = list(words)
    distinct = len(set(words))
    if vocabulary < distinct:
        raise TextError(f"the vocabulary has {vocabulary} words, fewer than the text's own {distinct}")
    return distinct / expected_distinct(len(words), vocabulary)


def vocabulary_of(texts) -> set:
    """The distinct words of texts[text][word].

    >>> sorted(vocabulary_of([["a", "b"], ["b"]]))
    ['a', 'b']
    """
    return {word for text in texts for word in text}


def mean_pairwise_similarity(vectors) -> float:
    """Mean cosine over all pairs of vectors[sentence, dimension] (equations 8 and 9). NaN for fewer than two.

    By the identity (sum u)^2 = K + 2 * sum of pairs for unit vectors: no K x K matrix is made.

    >>> mean_pairwise_similarity([[1, 0], [0, 1]])
    0.0
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    count = len(vectors)
    if count < 2:
        return float("nan")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise TextError("a zero vector has no direction: a sentence was embedded to nothing")
    total = (vectors / lengths).sum(axis=0)
    return float((total @ total - count) / (count * (count - 1)))


def sbert_diversity(vectors, *, single: float = 0.0) -> float:
    """SBERT-Div (equation 10): 1 - mean pairwise cosine of a text's sentence vectors[sentence, dimension].

    A text of one sentence has no pairs; it gets `single`. The archive gives such texts 0 (nothing to diverge
    from). Raises TextError for a text without sentences or a zero vector.

    >>> sbert_diversity([[1, 0], [0, 1]])
    1.0
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not len(vectors):
        raise TextError(f"vectors[sentence, dimension] are needed, got shape {vectors.shape}")
    similarity = mean_pairwise_similarity(vectors)
    return single if np.isnan(similarity) else 1.0 - similarity
