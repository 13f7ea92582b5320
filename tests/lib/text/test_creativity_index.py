"""Creativity Index: by hand, by brute force, and through every back end."""

import json
import sys

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.text import TextError
from lib.text.creativity_index import LocalCorpus, covered, creativity_index, dj_search, l_uniqueness, split
from lib.text.infinigram import InfiniGramAPI, InfiniGramEngine

letters = st.lists(st.sampled_from("abc"), min_size=1, max_size=30)


def occurs(corpus, gram):
    return any(corpus[at : at + len(gram)] == gram for at in range(len(corpus) - len(gram) + 1))


def uniqueness_by_definition(words, corpus, length):
    """Equation 1 as it is written: a word counts unless some n-gram (n >= L) that contains it is in the
    corpus.
    """
    kept = 0
    for place in range(len(words)):
        found = any(
            start <= place < stop and occurs(corpus, words[start:stop])
            for start in range(len(words))
            for stop in range(start + length, len(words) + 1)
        )
        kept += not found
    return kept / len(words)


def test_by_hand():
    corpus = LocalCorpus.build(["the old man and the sea was calm"])
    words = split("I saw the old man and the dog")
    matches = corpus.matches(words)
    assert matches.tolist() == [0, 0, 5, 4, 3, 2, 1, 0]
    # "the old man and the" (5 words) is known: 3 of 8 words are new at L = 5, all are at L = 6 and above
    assert l_uniqueness(matches, 5) == 3 / 8
    assert l_uniqueness(matches, 6) == 1
    assert creativity_index(matches) == pytest.approx(3 / 8 + 7)


@settings(max_examples=150, deadline=None)
@given(letters, letters, st.integers(1, 6))
def test_l_uniqueness_is_the_definition(words, corpus, length):
    local = LocalCorpus.build([" ".join(corpus)])
    expected = uniqueness_by_definition(words, corpus, length)
    assert l_uniqueness(local.matches(words, longest=12), length) == pytest.approx(expected)


@settings(max_examples=150, deadline=None)
@given(letters, letters, st.integers(1, 5))
def test_dj_search_finds_the_longest_matches(words, corpus, shortest):
    local = LocalCorpus.build([" ".join(corpus)])
    found, asked = dj_search(words, local.contains, shortest, longest=12)
    expected = local.matches(words, longest=12)
    assert found.tolist() == np.where(expected >= shortest, expected, 0).tolist()
    assert asked <= 2 * len(words)


def test_dj_search_asks_little():
    rng = np.random.default_rng(3)
    words = [str(number) for number in rng.integers(0, 40, size=400)]
    local = LocalCorpus.build([" ".join(words[50:350])])
    found, asked = dj_search(words, local.contains, longest=12)
    assert asked < 2 * 400 and found[50] == 12
    assert creativity_index(found) == creativity_index(local.matches(words))


def test_phrases_do_not_run_across_texts():
    corpus = LocalCorpus.build(["one two three", "four five six"])
    assert corpus.matches(["three", "four"]).tolist() == [1, 1]
    assert not corpus.contains(["three", "four"])


def test_unknown_words_end_a_match():
    corpus = LocalCorpus.build(["a b c d"])
    assert corpus.matches(["a", "b", "zebra", "c", "d"]).tolist() == [2, 1, 0, 2, 1]


def test_a_copied_text_scores_zero_and_a_new_one_the_most():
    text = " ".join(f"w{number}" for number in range(40))
    assert creativity_index(LocalCorpus.build([text]).matches(split(text))) == 0
    assert creativity_index(LocalCorpus.build(["other words entirely"]).matches(split(text))) == 8


def test_more_corpus_never_raises_the_index():
    rng = np.random.default_rng(4)
    texts = [" ".join(map(str, rng.integers(0, 4, size=60))) for _ in range(6)]
    words = split(" ".join(map(str, rng.integers(0, 4, size=80))))
    values = [creativity_index(LocalCorpus.build(texts[:count]).matches(words)) for count in range(1, 7)]
    assert values == sorted(values, reverse=True) and values[0] > values[-1]


def test_covered_spans():
    assert covered([0, 3, 0, 0, 2, 0], 2).tolist() == [False, True, True, True, True, True]
    assert covered([0, 3, 0, 0, 2, 0], 3).tolist() == [False, True, True, True, False, False]


@pytest.mark.parametrize(
    "act, says",
    [
        (lambda: LocalCorpus.build(["", "  "]), "no words"),
        (lambda: l_uniqueness([], 5), "at least one word"),
        (lambda: l_uniqueness([1], 0), "L = 0"),
        (lambda: creativity_index([1, 2], 6, 5), "empty"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(TextError, match=says):
        act()


class Fake:
    """What the infini-gram interface answers, over a small corpus, with a fault first."""

    def __init__(self, text, faults=()):
        self.text, self.faults, self.asked = text, list(faults), []

    def __call__(self, request):
        if self.faults:
            return self.faults.pop(0)
        body = json.loads(request.content)
        self.asked.append(body)
        return httpx.Response(
            200, json={"count": f" {self.text} ".count(f" {body['query']} "), "approx": False}
        )


def api(fake):
    return InfiniGramAPI("some_index", client=httpx.Client(transport=httpx.MockTransport(fake)), wait=0.0)


def test_infinigram_interface_gives_the_same_index():
    text = "the old man and the sea was calm"
    fake = Fake(text, [httpx.Response(503, text="busy"), httpx.Response(429, json={"error": "slow down"})])
    words = split("I saw the old man and the sea today")
    found, _ = dj_search(words, api(fake).contains, longest=12)
    local = LocalCorpus.build([text])
    assert creativity_index(found) == creativity_index(local.matches(words))
    assert fake.asked[0] == {"index": "some_index", "query_type": "count", "query": "I saw the old man"}


WRITTEN = (
    "“Don’t go,” said the Captain; “it’s Rene\u0301e’s cafe\u0301 — isn't it?”\n\nShe laughed  twice, and left the "
    "well-known house on 5th Street before ANYBODY could say “I’m sorry…” to her."
)


@pytest.mark.parametrize("text", [WRITTEN, WRITTEN.replace("’", "'"), "Perché no? " + WRITTEN])
def test_a_text_that_stands_in_the_corpus_word_for_word_has_no_creativity(text):
    """Capitals, punctuation, line ends, curly apostrophes and accents of their own: all as the corpus writes them."""
    corpus = f"Before it. {text} After it."

    def answer(request):
        return httpx.Response(200, json={"count": corpus.count(json.loads(request.content)["query"])})

    found, _ = dj_search(split(text), api(answer).contains, longest=12)
    assert creativity_index(found) == 0
    assert creativity_index(LocalCorpus.build([corpus]).matches(split(text))) == 0
    lower, _ = dj_search(list(split(text)), api(answer).contains, longest=12)
    assert creativity_index(lower) > 0, "the interface does not fold"


def test_words_know_how_they_were_written():
    words = split("The  Old man's\nsea, İstanbul!")
    assert words == ["the", "old", "man's", "sea", ",", "i̇stanbul", "!"]
    assert (
        words[1:4].as_written() == "Old man's\nsea" and words[1:][1:5].as_written() == "man's\nsea, İstanbul"
    )
    assert words[2:2].as_written() == "" and type(words[::2]) is list
    assert split("CAFE\u0301 l’eau") == split("café l'eau") == ["café", "l'eau"]


def test_infinigram_remembers():
    fake = Fake("a b c")
    search = api(fake)
    assert search.contains(["a", "b"]) and search.contains(["a", "b"]) and len(fake.asked) == 1


def test_infinigram_refusal_is_told_at_once():
    calls = []

    def refuse(request):
        calls.append(request)
        return httpx.Response(400, json={"error": "no such index"})

    with pytest.raises(TextError, match="no such index"):
        api(refuse).contains(["a"])
    assert len(calls) == 1


def test_infinigram_out_of_reach_is_told():
    def away(request):
        raise httpx.ConnectError("no route")

    with pytest.raises(TextError, match=r"infini-gram \(some_index\) gave no count for 'a b': ConnectError"):
        api(away).contains(["a", "b"])


def test_infinigrams_engine_that_is_not_installed_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "infini_gram", None)
    monkeypatch.setitem(sys.modules, "infini_gram.engine", None)
    with pytest.raises(TextError, match="pip install infini-gram, or use LocalCorpus"):
        InfiniGramEngine(tmp_path, str.split, end=0)
