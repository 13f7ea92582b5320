"""Stories: the study's metrics of texts, with the settings that reproduce the archive's values."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd

from compendium.studies.stories.data import METRICS
from lib.text import TextError
from lib.text.creativity_index import LONGEST, SHORTEST, creativity_index, split
from lib.text.diversity import ead, sbert_diversity, vocabulary_of
from lib.text.perplexity import perplexity
from lib.text.sentence_vectors import sentence_vectors
from lib.text.tagging import tag_sentences, tag_words
from lib.text.templates import common_templates, coverage, cr_pos, template_rate, templates_per_token
from lib.text.tokens import sentences, words

TEMPLATE_LENGTH, TOP_TEMPLATES, TAU = 4, 100, 1
# Distinct lower-cased words in the 400 texts that the authors measured; it is the only whole number that
# gives their EAD values. The texts released since have 25,809: the Italian ones were revised.
RELEASED_VOCABULARY = 26231


def compute_metrics(
    texts,
    corpus=None,
    *,
    scorer=None,
    shortest: int = SHORTEST,
    longest: int = LONGEST,
    vocabulary: int | None = None,
    tagger: str = "spacy",
    length: int = TEMPLATE_LENGTH,
    top_n: int | None = TOP_TEMPLATES,
    tau: int = TAU,
    precision: str = "exact",
    cache=None,
    workers: int = 1,
) -> pd.DataFrame:
    """The seven metrics of texts[text]: one row a text, columns METRICS; a metric without its means is left
    out.

    Parameters
    ----------
    corpus : reference of the Creativity Index, `LocalCorpus` or anything with matches(words, longest); None: left
        out.
    shortest, longest : the range of L of the Creativity Index.
    scorer : language model of perplexity, anything with log_likelihoods(text); None: left out.
    vocabulary : V of EAD; None: the distinct words of these texts.
    tagger : of the text whose words the templates cover ("spacy", "perceptron", "nltk").
    length, top_n, tau : of templates.
    precision, cache : of the sentence vectors (lib.text.sentence_vectors).
    workers : processes that share the tagging and embedding, each with one thread.

    Raises TextError, naming the text's number, for one that is empty.
    """
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise TextError(f"text {number}: the text is empty; a metric needs at least one word")
    settings = {
        "syntax": dict(tagger=tagger, length=length, top_n=top_n, tau=tau),
        "semantic": dict(precision=precision, cache=cache),
    }
    parts = [texts[start::workers] for start in range(max(1, min(workers, len(texts))))]
    if len(parts) > 1:
        with ProcessPoolExecutor(len(parts), mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(_read, part, settings, 1) for part in parts]
            columns = _counted(texts, corpus, scorer, (shortest, longest), vocabulary)
            found = [part.result() for part in waiting]
    else:
        columns = _counted(texts, corpus, scorer, (shortest, longest), vocabulary)
        found = [_read(parts[0], settings)]
    for name in found[0]:
        columns[name] = np.empty(len(texts))
        for start, part in enumerate(found):
            columns[name][start :: len(parts)] = part[name]
    return pd.DataFrame({name: columns[name] for name in METRICS if name in columns}, dtype=float)


def _read(texts, settings, threads: int | None = None) -> dict:
    """What needs a tagger and an encoder: {metric: value[text]}, in this process."""
    if threads:
        import torch

        torch.set_num_threads(threads)
    return {**syntax(texts, **settings["syntax"]), "sbert_diversity": semantic(texts, **settings["semantic"])}


def syntax(
    texts,
    *,
    tagger: str = "spacy",
    length: int = TEMPLATE_LENGTH,
    top_n: int | None = TOP_TEMPLATES,
    tau: int = TAU,
    as_released: bool = False,
) -> dict:
    """cr_pos, template_rate, template_per_token: {metric: value[text]}.

    `as_released`: CR-POS as the archive's script computed it, not as equation 4 defines it.

    As in the archive: templates are sought by the `diversity` package's means (spaCy's words and tags,
    sentence by sentence), then looked for in the tags that `tagger` gives the text's Treebank words.
    """
    tags = tag_words([words(text) for text in texts], tagger)
    found = {name: np.empty(len(texts)) for name in ("cr_pos", "template_rate", "template_per_token")}
    for number, (own, parts) in enumerate(zip(tags, tag_sentences(texts), strict=True)):
        k = coverage(own, common_templates(parts, length=length, top_n=top_n, tau=tau))
        found["cr_pos"][number] = cr_pos(own, as_released=as_released)
        found["template_rate"][number] = template_rate(k)
        found["template_per_token"][number] = templates_per_token(k)
    return found


def semantic(texts, *, precision: str = "exact", cache=None) -> np.ndarray:
    """SBERT-Div of texts[text]; English sentences (Punkt), all-MiniLM-L6-v2."""
    parts = [sentences(text) for text in texts]
    vectors = sentence_vectors([part for own in parts for part in own], precision=precision, cache=cache)
    ends = np.cumsum([len(own) for own in parts])
    return np.array(
        [sbert_diversity(vectors[end - len(own) : end]) for own, end in zip(parts, ends, strict=True)]
    )


def lexical(texts, vocabulary: int | None = None) -> np.ndarray:
    """EAD of texts[text] over lower-cased Treebank words; V is `vocabulary`, or the distinct words of these
    texts.
    """
    lowered = [words(text.lower()) for text in texts]
    size = vocabulary or len(vocabulary_of(lowered))
    return np.array([ead(own, size) for own in lowered])


def _counted(texts, corpus, scorer, lengths, vocabulary) -> dict:
    """What needs the words alone: {metric: value[text]}."""
    columns = {"ead": lexical(texts, vocabulary)}
    if corpus is not None:
        columns["creativity_index"] = np.array(
            [creativity_index(corpus.matches(split(text), lengths[1]), *lengths) for text in texts]
        )
    if scorer is not None:
        columns["perplexity"] = np.array([perplexity(scorer.log_likelihoods(text)) for text in texts])
    return columns


def closeness(computed: pd.DataFrame, archive: pd.DataFrame) -> pd.DataFrame:
    """How near computed metrics come to the archive's, over texts both have (same index).

    One row a metric: texts, `equal` (share within 1e-6), `bias` and `mae` (means of computed - archive and of
    its size), `largest` difference, and `rho` (Spearman), which is what the paper's correlations depend on.
    """
    from lib.ranks import spearman

    rows = {}
    for name in computed.columns:
        ours, theirs = computed[name].to_numpy(float), archive.loc[computed.index, name].to_numpy(float)
        gap = ours - theirs
        rows[name] = {
            "texts": len(gap),
            "equal": float((np.abs(gap) < 1e-6).mean()),
            "bias": gap.mean(),
            "mae": np.abs(gap).mean(),
            "largest": np.abs(gap).max(),
            "rho": spearman(ours, theirs),
        }
    return pd.DataFrame(rows).T
