"""Sentences, words and tags: as NLTK 3.9 splits them, as each tagger gives them, and what is refused."""

import pytest

from lib.text import TextError
from lib.text.sentence_vectors import sentence_vectors
from lib.text.tagging import available, tag_sentences, tag_words
from lib.text.tokens import sentences, words


def test_sentences():
    text = 'Dr. Smith went home. "Was he tired?" she asked.\n\nHe was, as Mr. Hall said. '
    assert sentences(text) == [
        "Dr. Smith went home.",
        '"Was he tired?"',
        "she asked.",
        "He was, as Mr. Hall said.",
    ]
    assert sentences("Ciao. Come stai?", "italian") == ["Ciao.", "Come stai?"]


def test_words_are_penn_treebank_tokens():
    assert words("They can't go. It's 5 o'clock!") == [
        "They",
        "ca",
        "n't",
        "go",
        ".",
        "It",
        "'s",
        "5",
        "o'clock",
        "!",
    ]
    # NLTK up to 3.9.2 keeps an opening apostrophe on its word: the archive's counts rest on that
    assert words("'It was,' he said.") == ["'It", "was", ",", "'", "he", "said", "."]


@pytest.mark.parametrize(
    "act, says",
    [
        (lambda: sentences("  \n"), "empty"),
        (lambda: words(None), "NoneType"),
        (lambda: sentences("a", "klingon"), "'klingon'"),
        (lambda: tag_words([[]]), "text 0 has no words"),
        (lambda: tag_words([["a"]], "magic"), "unknown tagger 'magic'"),
        (lambda: sentence_vectors(["a"], precision="float8"), "unknown precision"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(TextError, match=says):
        act()


def test_one_tag_a_word():
    texts = [words("The old dog slept."), words("She runs quickly and they can't stop.")]
    tags = tag_words(texts)
    assert [len(own) for own in tags] == [len(own) for own in texts]
    assert tags[0] == ["DT", "JJ", "NN", "VBD", "."] and "MD" in tags[1]


def test_sentences_are_tagged_by_themselves():
    tags = tag_sentences(["The dog slept. She ran.", "Rain fell."])
    assert [len(own) for own in tags] == [2, 1]
    assert tags[0][1] == ["PRP", "VBD", "."]


@pytest.mark.skipif(not available("perceptron"), reason="the package textblob-aptagger is not installed")
def test_perceptron_tagger():
    assert tag_words([words("The old dog slept in the garden.")], "perceptron")[0] == [
        "DT",
        "JJ",
        "NN",
        "VBD",
        "IN",
        "DT",
        "NN",
        ".",
    ]


@pytest.mark.skipif(available("nltk"), reason="NLTK's tagger data are installed here")
def test_nltks_tagger_says_how_to_get_its_data():
    with pytest.raises(TextError, match="nltk.downloader"):
        tag_words([["a"]], "nltk")
