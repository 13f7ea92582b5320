"""Perplexity of a text under a causal language model, with a sliding window for texts longer than the model's
context.

Source: Stories paper, equation 3.
"""

import math

import numpy as np

from lib.text import TextError, needed


def perplexity(log_likelihoods) -> float:
    """exp of the mean negative log-likelihood over log_likelihoods[token] (natural logarithms).

    Raises TextError for a text of which no token could be scored.

    >>> round(perplexity([np.log(0.5), np.log(0.5)]), 6)
    2.0
    """
    values = np.asarray(log_likelihoods, dtype=np.float64)
    if not values.size:
        raise TextError(
            "no token to score: the text is empty, or one token for a model without a start token"
        )
    return math.exp(-values.mean())


def windows(count: int, window: int, stride: int) -> list[tuple[int, int, int]]:
    """(start, first, stop) of each window over `count` tokens: tokens first ... stop - 1 are scored in the
    context from `start` on. Each token but number 0 is scored once, with at least window - stride tokens
    before it (where there are so many).

    Raises TextError for a window below 2 or a stride outside 1 ... window - 1.

    >>> windows(10, 6, 3)
    [(0, 1, 6), (3, 6, 9), (6, 9, 10)]
    """
    if window < 2 or not 1 <= stride < window:
        raise TextError(
            f"a window of at least 2 tokens and a stride below it are needed, got {window} and {stride}"
        )
    parts, first = [], 1
    while first < count:
        start = 0 if first == 1 else first - (window - stride)
        stop = min(start + window, count)
        parts.append((start, first, stop))
        first = stop
    return parts


def token_log_likelihoods(tokens, model, *, window: int, stride: int) -> np.ndarray:
    """ln P(token | tokens before it in its window) for tokens[1:], under a Hugging Face causal model.

    tokens : token numbers, beginning with the model's start token where it has one (it is context, and not
        scored).
    Raises TextError as `windows` does.

    >>> token_log_likelihoods([1, 5, 7], model, window=512, stride=256)  # doctest: +SKIP
    """
    import torch

    tokens = torch.as_tensor(list(tokens), dtype=torch.long)
    found = []
    with torch.inference_mode():
        for start, first, stop in windows(len(tokens), window, stride):
            part = tokens[start:stop][None].to(model.device)
            logits = model(part).logits[0].float()
            scored = torch.log_softmax(logits[first - start - 1 : stop - start - 1], dim=-1)
            found.append(scored.gather(1, part[0, first - start :, None])[:, 0].cpu().numpy())
    return np.concatenate(found).astype(np.float64) if found else np.zeros(0)


class CausalModel:
    """A Hugging Face causal model with its tokenizer, as something that scores texts.

    Parameters
    ----------
    name : a model of the hub or a folder; or `model` and `tokenizer` themselves.
    window : tokens of context; None: what the model's configuration says.
    stride : how far a window moves on; None: half a window.
    """

    def __init__(self, name: str | None = None, *, model=None, tokenizer=None, window=None, stride=None):
        if model is None:
            needed("torch")
            needed("transformers")
            from transformers import AutoModelForCausalLM, AutoTokenizer

            try:
                model, tokenizer = (
                    AutoModelForCausalLM.from_pretrained(name),
                    AutoTokenizer.from_pretrained(name),
                )
            except (OSError, ValueError) as error:
                raise TextError(
                    f"perplexity model {name!r} could not be loaded ({type(error).__name__}): name a causal "
                    "model of the Hugging Face hub or a folder with one"
                ) from None
        self.model, self.tokenizer = model.eval(), tokenizer
        self.window = window or getattr(model.config, "max_position_embeddings", None) or 2048
        self.stride = stride or self.window // 2

    def tokens(self, text: str) -> list[int]:
        """The text's token numbers, after the start token where the tokenizer has one.

        >>> CausalModel("gpt2").tokens("a cat")  # doctest: +SKIP
        """
        numbers = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        start = getattr(self.tokenizer, "bos_token_id", None)
        return numbers if start is None else [start, *numbers]

    def log_likelihoods(self, text: str) -> np.ndarray:
        """ln P of each scored token of a text. Raises TextError for a blank text.

        >>> CausalModel("gpt2").log_likelihoods("a cat")  # doctest: +SKIP
        """
        if not isinstance(text, str) or not text.strip():
            raise TextError("the text is empty: a metric needs at least one word")
        return token_log_likelihoods(self.tokens(text), self.model, window=self.window, stride=self.stride)
