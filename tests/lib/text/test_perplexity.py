"""Perplexity under a causal model that the test builds: whole, in windows, and at the edges."""

import numpy as np
import pytest

from lib.text import TextError
from lib.text.perplexity import CausalModel, perplexity, token_log_likelihoods, windows

torch = pytest.importorskip("torch")


class Letters:
    """A tokenizer: one number a letter, 0 for the start."""

    bos_token_id = 0

    def __call__(self, text, add_special_tokens):
        assert not add_special_tokens
        return {"input_ids": [1 + (ord(letter) % 30) for letter in text]}


@pytest.fixture(scope="module")
def model():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=32, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval()


def one_by_one(model, tokens, context):
    """ln P of each token given at most the `context` tokens before it (a call a token)."""
    result = []
    with torch.inference_mode():
        for place in range(1, len(tokens)):
            before = torch.tensor([tokens[max(0, place - context) : place]])
            result.append(torch.log_softmax(model(before).logits[0, -1], -1)[tokens[place]].item())
    return result


def test_whole_text_by_the_definition(model):
    tokens = [0, *np.random.default_rng(1).integers(1, 32, size=40)]
    found = token_log_likelihoods(tokens, model, window=64, stride=32)
    assert found == pytest.approx(one_by_one(model, tokens, 64), abs=1e-5)
    assert perplexity(found) == pytest.approx(np.exp(-np.mean(one_by_one(model, tokens, 64))), rel=1e-5)


def test_stride_one_gives_each_token_a_full_window(model):
    tokens = [0, *np.random.default_rng(2).integers(1, 32, size=50)]
    found = token_log_likelihoods(tokens, model, window=16, stride=1)
    # the first window scores its tokens with what there is; every later one brings one token, after 15 others
    assert found == pytest.approx(one_by_one(model, tokens, 15), abs=1e-5)


def test_windows_score_each_token_once():
    for count, window, stride in [(1, 8, 4), (2, 8, 4), (8, 8, 4), (9, 8, 4), (100, 16, 5), (33, 16, 15)]:
        scored = [place for _, first, stop in windows(count, window, stride) for place in range(first, stop)]
        assert scored == list(range(1, count))
        for start, first, stop in windows(count, window, stride):
            assert stop - start <= window and (start == 0 or first - start == window - stride)


def test_text_through_a_tokenizer(model):
    scorer = CausalModel(model=model, tokenizer=Letters(), window=64)
    assert scorer.tokens("abc")[0] == 0 and len(scorer.tokens("abc")) == 4
    assert (
        len(scorer.log_likelihoods("once upon a time")) == 16
    )  # with a start token the first letter is scored too
    long = "the rain in spain " * 20
    assert len(scorer.log_likelihoods(long)) == len(long)
    assert 1 < perplexity(scorer.log_likelihoods(long)) < 200


def test_an_even_model_is_as_unsure_as_its_vocabulary():
    assert perplexity(np.log(np.full(10, 1 / 7))) == pytest.approx(7)
    assert perplexity([0.0, 0.0]) == 1


@pytest.mark.parametrize(
    "act, says",
    [
        (lambda: perplexity([]), "no token to score"),
        (lambda: windows(10, 1, 1), "at least 2"),
        (lambda: windows(10, 8, 8), "stride below"),
        (lambda: CausalModel("/no/such/model"), "could not be loaded"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(TextError, match=says):
        act()


def test_an_empty_text(model):
    with pytest.raises(TextError, match="empty"):
        CausalModel(model=model, tokenizer=Letters()).log_likelihoods("  ")
