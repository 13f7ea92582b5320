"""Is the model that answered the model that was asked?

Endpoints answer with the name of a dated snapshot ("gpt-5.4-2026-03-05" for "openai/gpt-5.4"), put the words
in another order ("claude-4.7-opus-20260416") or add a build ("llama-4-maverick-17b-128e-instruct"). Those are
the model asked for. Another version ("deepseek-v3.2" for "deepseek-v3"), size ("gpt-5-mini") or family is
not.
"""

import re
from collections import Counter
from functools import lru_cache

# Words that name a release or a way of serving, not another model.
_HARMLESS = {
    "preview",
    "latest",
    "instruct",
    "chat",
    "it",
    "free",
    "beta",
    "exp",
    "experimental",
    "hf",
    "fp8",
    "fp16",
    "bf16",
    "awq",
    "gptq",
    "nitro",
    "floor",
    "exacto",
    "online",
    "version",
    "release",
    "snapshot",
}
_DATE = re.compile(r"\d{4}|\d{6}|\d{8}|00\d")
_DAY_OR_MONTH = re.compile(r"0[1-9]|[12]\d|3[01]")
_SIZE = re.compile(r"\d+(?:x\d+)?[bmke]")


@lru_cache(maxsize=4096)
def same_model(asked: str, answered: str) -> bool:
    """True where `answered` can be the model `asked`: another spelling, a dated snapshot or a build of it."""
    wanted, found = _words(asked), _words(answered)
    extra, lacking = found - wanted, wanted - found
    if any(word not in _HARMLESS for word in lacking):
        return False
    has_size = any(_SIZE.fullmatch(word) for word in wanted)
    others = [
        word
        for word in extra.elements()
        if not (word in _HARMLESS or _DATE.fullmatch(word) or (_SIZE.fullmatch(word) and not has_size))
    ]
    # A month and a day come together; one short number more is another version (gpt-5 and gpt-5.12).
    return not others or (len(others) == 2 and all(_DAY_OR_MONTH.fullmatch(word) for word in others))


def _words(name: str) -> Counter:
    """The words of a model's name without its provider: "lab/claude-opus-4.6" has claude, opus, 4, 6."""
    return Counter(word for word in re.split(r"[^a-z0-9]+", name.lower().rsplit("/", 1)[-1]) if word)
