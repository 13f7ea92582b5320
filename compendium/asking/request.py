"""What is asked: a request, its canonical form and its name.

A request's name (`key`) is a hash of exactly what is sent and of the sample's index. It depends on nothing
else (not on time, order, endpoint or metadata), so a run that is started again recognises every reply it has
already paid for.
"""

import difflib
import functools
import hashlib
import json
import math
import numbers
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from compendium.asking.errors import RequestError

OPTIONAL = ("temperature", "top_p", "max_tokens", "seed")
SEED_RANGE = 2**31  # providers take 32-bit seeds; the sign bit stays clear


@dataclass(frozen=True, eq=False)
class Request:
    """One question to one model.

    Parameters
    ----------
    model : the name the endpoint knows, e.g. "openai/gpt-5.4".
    messages : chat messages, each a mapping with "role" and "content".
    temperature, top_p, max_tokens, seed : sent where not None.
    sample : index of this sample among those of the same content (0, 1, ...); not sent. Give samples
        different seeds too: an endpoint that honours seeds answers the same content with the same text.
    extra : further fields of the request's body, e.g. {"reasoning": {"effort": "low"}}.
    tag : anything the study wants to carry along (condition, item); no part of the key.

    Raises RequestError for a field of a wrong kind.
    """

    model: str
    messages: tuple
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    sample: int = 0
    extra: dict = field(default_factory=dict)
    tag: dict = field(default_factory=dict)

    def __post_init__(self):
        put = functools.partial(object.__setattr__, self)  # the way to fill a frozen dataclass
        put("messages", _checked_messages(self.messages))
        put("extra", dict(self.extra))
        put("tag", dict(self.tag))
        if not isinstance(self.model, str) or not self.model.strip():
            raise RequestError(f"model should be a model's name, not {self.model!r}")
        put("max_tokens", _whole("max_tokens", self.max_tokens, least=1))
        put("seed", _whole("seed", self.seed))
        put("sample", _whole("sample", self.sample, least=0, optional=False))
        for name in ("temperature", "top_p"):
            put(name, _measure(name, getattr(self, name)))
        clash = {"model", "messages", "stream", *OPTIONAL} & set(self.extra)
        if clash:
            raise RequestError(
                f"extra holds {sorted(clash)[0]!r}, which is not an extra field: "
                "give it by its own name (replies are never streamed)"
            )

    @property
    def content(self) -> dict:
        """What is sent, with names as in the chat completions interface."""
        body = {"model": self.model, "messages": [dict(message) for message in self.messages]}
        body.update({name: getattr(self, name) for name in OPTIONAL if getattr(self, name) is not None})
        return {**body, **self.extra}

    @cached_property
    def digest(self) -> bytes:
        """The key as 32 bytes: SHA-256 of the canonical content and the sample's index."""
        return hashlib.sha256(f"{canonical_json(self.content)}\n{self.sample}".encode()).digest()

    @property
    def key(self) -> str:
        """The key as 64 hexadecimal digits."""
        return self.digest.hex()

    def body(self, attempt: int = 0) -> dict:
        """What attempt 0, 1, ... sends: the content, and from the second attempt on a seed of its own.

        A re-ask must not repeat the seed: an endpoint that honours it would repeat the reply. The new seed
        follows from the key and the attempt alone, so that a re-ask is the same whoever makes it and when.
        """
        if attempt == 0:
            return self.content
        fresh = hashlib.sha256(self.digest + attempt.to_bytes(4, "big")).digest()
        return {**self.content, "seed": int.from_bytes(fresh[:4], "big") % SEED_RANGE}

    def __eq__(self, other):
        return isinstance(other, Request) and self.digest == other.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return f"Request({self.model!r}, sample={self.sample}, key={self.key[:12]}…)"


def known(table: Mapping, key, what: str):
    """table[key], for ids that params name. Raises RequestError naming an id that the table lacks, and the
    nearest."""
    if key in table:
        return table[key]
    near = difflib.get_close_matches(str(key), map(str, table), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(str, table))}"
    raise RequestError(f"{what} {key!r} is not known: {hint}")


def canonical_json(value) -> str:
    """JSON with sorted keys and no spaces, in which 1 and 1.0 are the same number.

    Raises RequestError for a number or a text that JSON lacks and for a value that is no JSON.
    """
    try:
        text = json.dumps(
            _whole_floats(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        text.encode()  # half a surrogate pair has no UTF-8, so it could be neither sent nor stored
        return text
    except (TypeError, ValueError) as error:
        raise RequestError(f"the request's content cannot be written as JSON: {error}") from None


def _whole_floats(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_floats(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_floats(item) for item in value]
    return value


def _checked_messages(messages) -> tuple:
    if isinstance(messages, (str, bytes, dict)) or not messages:
        raise RequestError(
            "messages should be a list of {'role': ..., 'content': ...}, with at least one of them"
        )
    for place, message in enumerate(messages):
        if (
            not isinstance(message, dict)
            or not isinstance(message.get("role"), str)
            or "content" not in message
        ):
            raise RequestError(f"message {place} should be a dict with 'role' and 'content', not {message!r}")
    return tuple(dict(message) for message in messages)


def _whole(name, value, least=None, optional=True):
    """`value` as an int (numpy's integers too), or the error that says what it should be."""
    if value is None and optional:
        return None
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        bound = f" of at least {least}" if least is not None else ""
        raise RequestError(
            f"{name} should be a whole number{bound}{' or None' if optional else ''}, not {value!r}"
        )
    return number


def _measure(name, value):
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not math.isfinite(value)
        or value < 0
    ):
        raise RequestError(f"{name} should be a number of at least 0 or None, not {value!r}")
    return float(value)
