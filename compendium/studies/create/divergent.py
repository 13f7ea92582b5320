"""Three tests of human creativity, scored for models (CREATE, appendix K; Wenger and Kenett 2025).

Remote associates (RAT): one word that goes with three others; accuracy. Alternative uses (AUT): how far the
uses lie from the object. Divergent association (DAT): how far ten nouns lie from each other. Distances are
cosine distances of word vectors; the paper takes GloVe's, which `read_glove` reads; the demo takes the
sentence embeddings at hand.
"""

import re
from pathlib import Path

import numpy as np

from compendium.frame.paths import shown

LIST_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d+[.):])\s*")


class DivergentError(ValueError):
    """A reply or a vector file that cannot be used; the message says what would be right."""


def read_list(reply: str) -> list[str]:
    """The entries of a reply, one a line (or split at commas where it is one line); marks, numbers and
    repeats dropped.

    A line that ends in a colon is an introduction, no entry.
    """
    lines = [line for line in str(reply).splitlines() if line.strip() and not line.rstrip().endswith(":")]
    if len(lines) == 1:
        lines = re.split(r"[,;]", lines[0])
    entries = [LIST_MARK.sub("", line).strip(" .\"'`*").lower() for line in lines]
    return list(dict.fromkeys(entry for entry in entries if entry))


def rat_correct(reply: str, answer: str) -> bool:
    """Whether a reply names the answer and nothing else (case, marks and a plural s aside)."""
    words = re.findall(r"[a-z']+", str(reply).lower())
    answer = answer.lower()
    forms = {answer} if answer.endswith("s") else {answer, f"{answer}s"}
    if answer.endswith("s") and not answer.endswith("ss"):
        forms.add(answer[:-1])  # the answer is itself a plural; brass and princess are not
    return len(words) == 1 and words[0] in forms


def aut_originality(prompt, uses) -> float:
    """Mean cosine distance between an object and its uses: prompt[dimension], uses[use, dimension], unit
    vectors.

    NaN for no use.
    """
    uses = np.atleast_2d(np.asarray(uses, dtype=float))
    return float((1 - uses @ np.asarray(prompt, dtype=float)).mean()) if uses.size else float("nan")


def dat_originality(words, least: int = 7) -> float:
    """Mean cosine distance over all pairs of words[word, dimension], unit vectors (Olson et al. 2021 print it
    × 100).

    NaN for fewer than `least` words: the test is scored on seven of the ten.
    """
    words = np.atleast_2d(np.asarray(words, dtype=float))
    if len(words) < max(least, 2):
        return float("nan")
    rows, columns = np.triu_indices(len(words), k=1)
    return float((1 - words @ words.T)[rows, columns].mean())


def read_glove(path, words) -> dict:
    """{word: unit vector} of those `words` that a GloVe text file holds (a word and its numbers on each
    line).

    Reads line by line: the file may be gigabytes. Raises DivergentError naming the line where numbers are
    missing.
    """
    path, wanted, found, size = Path(path), {word.lower() for word in words}, {}, None
    try:
        handle = path.open(encoding="utf-8")
    except OSError as error:
        raise DivergentError(
            f"{shown(path)}: cannot be read ({error.strerror}); it should be a GloVe text file"
        ) from None
    with handle:
        for line, text in enumerate(handle, 1):
            word, _, numbers = text.rstrip().partition(" ")
            if word not in wanted:
                continue
            try:
                vector = np.array(numbers.split(), dtype=float)
            except ValueError:
                vector = np.empty(0)
            size = size or len(vector)
            if not len(vector) or len(vector) != size or not np.linalg.norm(vector):
                raise DivergentError(
                    f"{shown(path)}, line {line}: {word!r} should be followed by {size or 'its'} numbers"
                )
            found[word] = vector / np.linalg.norm(vector)
    return found
