"""Creativity Index: how much of a text cannot be found, phrase by phrase, in a reference corpus.

L-uniqueness is the share of words that no n-gram (n >= L) of the text which occurs in the corpus contains;
the index sums it over L = 5 ... 12. Source: Lu et al. (2025); Stories paper, equations 1 and 2. The search is
exact.

An n-gram that occurs brings all its parts: a word is covered at L just if some n-gram of exactly L words
covers it. So one number a start suffices, the longest match from there on, and matches longer than the
largest L add nothing.
"""

import functools
import re
import unicodedata

import numpy as np

from lib.text import TextError
from lib.text.suffix_array import END, PAD, SuffixArray

SHORTEST, LONGEST = 5, 12  # a and b of equation 2
DEPTH = 16
_LETTERS = r"\w[\w\u0300-\u036f]*"  # an accent may stand as a character of its own (NFD)
_WORD = re.compile(rf"{_LETTERS}(?:['’]{_LETTERS})*|[^\w\s]")


class Words(list):
    """The words of a text as a list; a slice of it still knows how the text writes it (`as_written`)."""

    def __init__(self, words, text: str, first: int = 0):
        super().__init__(words)
        self.text, self.first = text, first

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if not isinstance(key, slice):
            return found
        start, _, step = key.indices(len(self))
        return Words(found, self.text, self.first + start) if step == 1 else found

    def as_written(self) -> str:
        """The part of the text from the first of the words to the last: capitals, blanks and quotes as there.

        >>> split("The Cat sat.")[1:3].as_written()
        'Cat sat'
        """
        if not self:
            return ""
        places = _places(self.text)
        return self.text[places[self.first][0] : places[self.first + len(self) - 1][1]]


def split(text: str) -> Words:
    """Words and punctuation marks, by one regular expression: fast enough for a corpus.

    Lower case, accents composed (NFC), apostrophes straight: two ways of writing a word are one.

    >>> split("It’s a Café!")
    ["it's", 'a', 'café', '!']
    """
    return Words([_plain(word) for word in _WORD.findall(text)], text)


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", word.lower().replace("’", "'"))


@functools.lru_cache(maxsize=8)
def _places(text: str) -> list:
    """places[word]: where each word of a text begins and ends."""
    return [found.span() for found in _WORD.finditer(text)]


def phrase(words) -> str:
    """Words as one text: as it was written, where they come from `split`; else with blanks between.

    >>> phrase(["a", "cat"])
    'a cat'
    """
    return words.as_written() if isinstance(words, Words) else " ".join(words)


def covered(matches, length: int) -> np.ndarray:
    """covered[word]: whether a corpus n-gram of at least `length` words contains the word.

    matches[start]: longest match from each start on.

    >>> covered([2, 0, 0], 2)
    array([ True,  True, False])
    """
    matches = np.asarray(matches)
    ends = np.where(matches >= length, np.arange(len(matches)) + matches, 0)
    return np.maximum.accumulate(ends) > np.arange(len(matches)) if len(matches) else np.zeros(0, dtype=bool)


def l_uniqueness(matches, length: int) -> float:
    """U_L (equation 1): share of words that no corpus n-gram of at least `length` words contains.

    Raises TextError for a text without words, or a length below 1.

    >>> round(l_uniqueness([2, 0, 0], 2), 3)
    0.333
    """
    if length < 1 or not len(matches):
        raise TextError(
            f"L-uniqueness needs at least one word and L >= 1, got {len(matches)} words, L = {length}"
        )
    return float(1.0 - covered(matches, length).mean())


def creativity_index(matches, shortest: int = SHORTEST, longest: int = LONGEST) -> float:
    """CI (equation 2): the sum of U_L for L = shortest ... longest; `longest` - `shortest` + 1 for a text all
    its own.

    matches[start] may be capped at `longest`. Raises TextError as `l_uniqueness`, or for an empty range.

    >>> creativity_index([0, 0, 0])
    8.0
    """
    if shortest > longest:
        raise TextError(f"the range of L is empty: {shortest} to {longest}")
    return float(sum(l_uniqueness(matches, length) for length in range(shortest, longest + 1)))


def dj_search(
    words, contains, shortest: int = SHORTEST, longest: int | None = None
) -> tuple[np.ndarray, int]:
    """matches[start] by DJ Search: two pointers that only move forward, and how many questions that took.

    For a back end that can only say whether a phrase occurs, such as infini-gram's: at most 2 x words
    questions.

    Parameters
    ----------
    words : the text, split.
    contains : list of words -> bool; must be true of every part of a phrase of which it is true.
    shortest : matches shorter than this are given as 0.
    longest : stop growing a match here (None: grow to the end).

    Source: Lu et al. (2025), section 3 (DJ Search).

    >>> dj_search(["a", "b", "c"], lambda words: words == ["a", "b"], shortest=2)[0]
    array([2, 0, 0])
    """
    words = words if isinstance(words, list) else list(words)
    matches, end, asked = np.zeros(len(words), dtype=np.int64), 0, 0
    for start in range(len(words) - shortest + 1):
        stop = len(words) if longest is None else min(len(words), start + longest)
        if end < start + shortest:  # nothing of this length is known to occur here
            asked += 1
            if not contains(words[start : start + shortest]):
                continue
            end = start + shortest
        while end < stop:
            asked += 1
            if not contains(words[start : end + 1]):
                break
            end += 1
        matches[start] = end - start
    return matches, asked


class NoWords(TextError):
    """A reference corpus without a single word."""


class LocalCorpus:
    """A reference corpus on this machine: its words, and a suffix array over them."""

    def __init__(self, vocabulary: dict, index: SuffixArray):
        self.vocabulary, self.index = vocabulary, index

    @classmethod
    def build(cls, texts, *, depth: int = DEPTH) -> "LocalCorpus":
        """Index texts (an iterable of strings); phrases do not run from one text into the next.

        Raises NoWords where there is no word at all.

        >>> len(LocalCorpus.build(["the cat sat on the mat"])) > 0
        True
        """
        vocabulary, parts = {}, []
        for text in texts:
            numbers = [vocabulary.setdefault(word, len(vocabulary) + 1) for word in split(text)]
            parts.append(np.array([*numbers, END], dtype=np.int32))
        if not vocabulary:
            raise NoWords("the reference corpus holds no words")
        return cls(vocabulary, SuffixArray.build(np.concatenate(parts), depth))

    def __len__(self):
        return len(self.index.tokens)

    def numbers(self, words) -> np.ndarray:
        """The corpus's numbers of words; PAD for a word it lacks.

        >>> LocalCorpus.build(["the cat sat"]).numbers(["cat", "dog"]).tolist()[1]
        -1
        """
        return np.array([self.vocabulary.get(word, PAD) for word in words], dtype=np.int32)

    def matches(self, words, longest: int = LONGEST) -> np.ndarray:
        """matches[start] of a split text, capped at `longest`; all starts at once.

        >>> LocalCorpus.build(["the cat sat on the mat"]).matches(split("a cat sat on a mat"))
        array([0, 3, 2, 1, 0, 1])
        """
        return self.index.longest_matches(self.numbers(words), longest)

    def contains(self, words) -> bool:
        """Whether the phrase occurs (for `dj_search`).

        >>> LocalCorpus.build(["the cat sat"]).contains(["cat", "sat"])
        True
        """
        return self.index.count(self.numbers(words)) > 0
