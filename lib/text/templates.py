"""Syntactic templates: how often a text repeats its own sequences of part-of-speech tags.

Sources: Shaib et al. (2024), "Detection and measurement of syntactic templates in generated text"; Shaib et
al. (2025) for the compression ratio; Stories paper, equations 4 to 6.
"""

import gzip
import io
from collections import Counter

import numpy as np

from lib.text import TextError

RELEASED_NAME = "compressed"  # the file name that the `diversity` package writes into its gzip header


def cr_pos(tags, *, as_released: bool = False) -> float:
    """Compression ratio of a text's tag sequence tags[word] (equation 4): bytes before over bytes after gzip.

    Higher means more repetitive. `as_released` computes what the stories archive holds instead: there the tag
    string went to the `diversity` package, which expects a list and so puts a space between all its
    *characters*, and which compresses the compressed bytes once more; the ratio is rounded to three decimals.
    Raises TextError for a text without tags.

    >>> cr_pos(["DT", "NN", "VBD"] * 40) > 1
    True
    """
    line = " ".join(_tags(tags))
    if not as_released:
        content = line.encode()
        return len(content) / len(gzip.compress(content, mtime=0))
    content = " ".join(line).encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(f"{RELEASED_NAME}.gz", "wb", fileobj=buffer, mtime=0) as file:
        file.write(gzip.compress(content, mtime=0))
    return round(len(content) / len(buffer.getvalue()), 3)


def common_templates(sentence_tags, *, length: int = 4, top_n: int | None = 100, tau: int = 1) -> list[tuple]:
    """The templates of one text: its most frequent tag n-grams, most frequent first.

    Parameters
    ----------
    sentence_tags : tags[sentence][word]; n-grams do not cross sentences. One long sequence is `[tags]`.
    length : tags in a template (n).
    top_n : how many templates at most, ties in the order of first appearance; None: all.
    tau : a template appears at least this often (the paper's definition says "at least tau times").

    The archive's values come from length 4, top_n 100 (the default of the `diversity` package) and tau 1.
    Raises TextError for a length or tau below 1.

    >>> common_templates([["DT", "NN", "VB"]] * 3, length=2)
    [('DT', 'NN'), ('NN', 'VB')]
    """
    if length < 1 or tau < 1 or (top_n is not None and top_n < 1):
        raise TextError(f"length, tau and top_n should be at least 1, got {length}, {tau}, {top_n}")
    counts = Counter(gram for tags in sentence_tags for gram in _grams(list(tags), length))
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])[:top_n]
    return [gram for gram, count in ordered if count >= tau]


def coverage(tags, templates) -> np.ndarray:
    """k[word]: how many template instances encompass each word of tags[word] (instances overlap).

    `templates` may differ in length. Raises TextError for a text without tags.

    >>> coverage(["DT", "NN", "VB"], [("DT", "NN")])
    array([1, 1, 0])
    """
    tags = _tags(tags)
    k = np.zeros(len(tags), dtype=np.int64)
    for length in sorted({len(template) for template in templates}):
        wanted = {tuple(template) for template in templates if len(template) == length}
        for start, gram in enumerate(_grams(tags, length)):
            if gram in wanted:
                k[start : start + length] += 1
    return k


def template_rate(k) -> float:
    """Share of words that lie in at least one template instance (equation 5); k[word] from `coverage`.

    >>> template_rate([2, 0])
    0.5
    """
    return float((np.asarray(k) > 0).mean())


def templates_per_token(k) -> float:
    """Template instances a word lies in, on average (equation 6); k[word] from `coverage`.

    >>> templates_per_token([2, 0])
    1.0
    """
    return float(np.asarray(k).mean())


def _grams(tags, length):
    return zip(*(tags[offset:] for offset in range(length)), strict=False)


def _tags(tags):
    tags = list(tags)
    if not tags:
        raise TextError("a text without words has no templates")
    return tags
