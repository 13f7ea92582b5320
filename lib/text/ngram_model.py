"""A small language model of words: trigrams backed off by Witten and Bell's rule. It needs no download,
learns in a second, and gives perplexity a meaning where no large model is at hand (the demo, and examples to
check by hand).

P(w | h) = (c(h w) + T(h) P(w | h')) / (c(h) + T(h)), with T(h) the number of different words seen after h,
and h' the history without its first word; the empty history backs off to 1 / (V + 1), the +1 for a word never
seen. Source: Witten and Bell (1991).
"""

from collections import Counter, defaultdict

import numpy as np

from lib.text import TextError

START = "<s>"


class NgramModel:
    """Counts of n-grams of words up to `order`; texts[text][word] to learn from, already split."""

    def __init__(self, texts, order: int = 3):
        if order < 1:
            raise TextError(f"order should be at least 1, got {order}")
        self.order = order
        self._after: dict = defaultdict(Counter)
        for text in texts:
            padded = [START] * (order - 1) + list(text)
            for place in range(order - 1, len(padded)):
                for size in range(order):
                    self._after[tuple(padded[place - size : place])][padded[place]] += 1
        self.vocabulary = frozenset(self._after.get((), ()))
        if not self.vocabulary:
            raise TextError("a language model needs at least one word to learn from")
        self._totals = {history: counts.total() for history, counts in self._after.items()}

    def probability(self, word: str, history=()) -> float:
        """P(word | the last order - 1 words of history).

        >>> NgramModel([["a", "b"]], order=1).probability("a")
        0.41666666666666663
        """
        history = tuple(history)[-(self.order - 1) :] if self.order > 1 else ()
        value = 1.0 / (len(self.vocabulary) + 1)
        for size in range(len(history) + 1):
            counts = self._after.get(history[len(history) - size :])
            if counts is None:
                break  # a longer history was not seen either
            kinds, total = len(counts), self._totals[history[len(history) - size :]]
            value = (counts[word] + kinds * value) / (total + kinds)
        return value

    def log_likelihoods(self, words) -> np.ndarray:
        """ln P of each of words[word], given those before it in the text.

        >>> NgramModel([["a", "b"]]).log_likelihoods(["a", "b"]).round(3)
        array([-0.158, -0.158])
        """
        padded = [START] * (self.order - 1) + list(words)
        return np.array(
            [
                np.log(self.probability(padded[place], padded[:place]))
                for place in range(self.order - 1, len(padded))
            ]
        )
