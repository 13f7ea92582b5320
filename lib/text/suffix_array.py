"""A suffix array over a corpus of word numbers: where does a phrase occur, and how long is the longest that
does?

Built by prefix doubling (Manber and Myers 1993) with NumPy sorts. At rest it takes 8 bytes a token, an int32
for the word and an int32 for its place in the order, and both are read from disk as they are needed.
"""

import numpy as np

from lib.text import TextError

PAD = -1  # beyond the end of corpus or query; smaller than any word, and equal to no word
END = 0  # between documents; no query holds it
MAX_TOKENS = 2**31 - 1


class SuffixArray:
    """tokens[place] (int32; words from 1 on, END = 0 between documents) and order[rank] (int32 places).

    Suffixes are in order by their first `depth` tokens; longer phrases cannot be looked up.
    """

    def __init__(self, tokens: np.ndarray, order: np.ndarray, depth: int):
        if len(tokens) != len(order):
            raise TextError(
                f"an index of {len(order)} places does not belong to a corpus of {len(tokens)} tokens"
            )
        self.tokens, self.order, self.depth = tokens, order, depth

    @classmethod
    def build(cls, tokens, depth: int = 16) -> "SuffixArray":
        """Sort the suffixes of tokens[place] by their first `depth` tokens.

        Raises TextError for an empty corpus, negative numbers, one of 2^31 tokens or more, or a depth below
        1.

        >>> SuffixArray.build([1, 2, 1, 2, 3]).order
        array([0, 2, 1, 3, 4], dtype=int32)
        """
        tokens = np.ascontiguousarray(tokens, dtype=np.int32)
        if not 0 < len(tokens) <= MAX_TOKENS or tokens.min() < 0:
            raise TextError(
                f"a corpus should hold 1 to {MAX_TOKENS} word numbers of at least 0, got {len(tokens)}"
                + (f", smallest {tokens.min()}" if len(tokens) else "")
            )
        if depth < 1:
            raise TextError(f"depth should be at least 1, got {depth}")
        return cls(tokens, _sorted_suffixes(tokens, depth), depth)

    @property
    def bytes_per_token(self) -> float:
        """What the index takes at rest.

        >>> SuffixArray.build([1, 2, 3]).bytes_per_token
        8.0
        """
        return (self.tokens.nbytes + self.order.nbytes) / len(self.tokens)

    def longest_matches(self, query, limit: int) -> np.ndarray:
        """matches[start]: the longest n-gram of query[word] that begins at `start` and occurs in the corpus.

        Lengths are capped at `limit` (at most `depth`). Words that the corpus lacks have any number that is
        no word of it, such as PAD. All starts are searched at once: log2(corpus) steps of a few NumPy calls
        each.

        >>> SuffixArray.build([1, 2, 1, 2, 3]).longest_matches([2, 3, 1], 4)
        array([2, 1, 1])
        """
        self._check(limit)
        grams = _grams(np.asarray(query, dtype=np.int32), limit)
        low = self._insertion(grams)
        best = np.zeros(len(grams), dtype=np.int64)
        for neighbour in (low - 1, low):  # the longest common prefix is with a neighbour in the order
            inside = (neighbour >= 0) & (neighbour < len(self.order))
            same = self._window(np.clip(neighbour, 0, len(self.order) - 1), limit) == grams
            same &= (grams > END) & inside[:, np.newaxis]
            best = np.maximum(best, np.where(same.all(axis=1), limit, same.argmin(axis=1)))
        return best

    def count(self, gram) -> int:
        """How often the n-gram gram[word] occurs (it must not be longer than `depth`).

        >>> SuffixArray.build([1, 2, 1, 2, 3]).count([1, 2])
        2
        """
        gram = np.asarray(gram, dtype=np.int32)
        self._check(len(gram))
        if (gram <= END).any():
            return 0
        first = self._insertion(gram[np.newaxis])
        after = self._insertion(gram[np.newaxis], after=True)
        return int(after[0] - first[0])

    def _check(self, length):
        if not 1 <= length <= self.depth:
            raise TextError(
                f"n-grams of 1 to {self.depth} words can be looked up in this index, not {length}: "
                "build it with a larger depth"
            )

    def _window(self, ranks, width):
        """corpus[query, offset]: the first `width` tokens of the suffixes at these ranks, PAD beyond the
        end.
        """
        places = self.order[ranks][:, np.newaxis].astype(np.int64) + np.arange(width)
        inside = places < len(self.tokens)
        return np.where(inside, self.tokens[np.where(inside, places, 0)], PAD)

    def _insertion(self, grams, after: bool = False):
        """rank[query] of the first suffix not below each n-gram, or with `after` of the first above all that
        start so.
        """
        low = np.zeros(len(grams), dtype=np.int64)
        high = np.full(len(grams), len(self.order), dtype=np.int64)
        rows = np.arange(len(grams))
        while (low < high).any():
            middle = (low + high) // 2
            corpus = self._window(np.minimum(middle, len(self.order) - 1), grams.shape[1])
            differs = corpus != grams
            first = differs.argmax(axis=1)
            below = corpus[rows, first] < grams[rows, first]
            if after:
                below |= ~differs.any(axis=1)
            searching = low < high
            low = np.where(searching & below, middle + 1, low)
            high = np.where(searching & ~below, middle, high)
        return low


def _grams(query, width):
    """grams[start, offset]: the words from each start on, PAD beyond the end."""
    padded = np.concatenate([query, np.full(width - 1, PAD, dtype=np.int32)])
    return np.lib.stride_tricks.sliding_window_view(padded, width)


def _sorted_suffixes(tokens, depth) -> np.ndarray:
    """order[rank], int32: suffixes by their first `depth` tokens, ties by their place."""
    n = len(tokens)
    span = int(tokens.max()) + 2  # with PAD as 0
    width = max(1, min(depth, int(62 // np.log2(span + 1))))  # tokens that one 64-bit key holds
    key = np.zeros(n, dtype=np.int64)
    for offset in range(width):
        key *= span
        key[: max(n - offset, 0)] += tokens[offset:].astype(np.int64) + 1
    while True:
        order = np.argsort(key, kind="stable").astype(np.int32)
        if width >= depth:
            return order
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.cumsum(np.concatenate([[0], np.diff(key[order]) != 0]))
        if rank[order[-1]] == n - 1:
            return order  # all suffixes differ already: the order is final
        key = rank * (n + 1)
        key[: max(n - width, 0)] += rank[width:] + 1
        width *= 2
