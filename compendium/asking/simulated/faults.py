"""Faults on demand: what networks, gateways and models do wrong, at a stated rate.

Whether a try is disturbed depends on the request's content and on how often it was tried, not on time or on
other requests. After `patience` disturbed tries in a row a request is answered, so a client that tries again
gets, in the end, the reply it would have had from an undisturbed server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from compendium.asking.simulated.reply import Reply
from compendium.frame.chance import digest, uniform

KINDS = ("rate_limit", "server_error", "slow", "dropped", "truncated", "malformed", "wrong_model")
USELESS = "I am sorry, but I would rather not judge this one."


@dataclass(frozen=True)
class Faults:
    """What to disturb.

    Parameters
    ----------
    rate : share of tries disturbed on their way, 0 to 1, each with one of `kinds`: rate_limit (429 with
        Retry-After), server_error (500), slow (answered after `slow_s`), dropped (the connection closes
        without an answer), truncated (closes within the body), malformed (200, half a JSON object),
        wrong_model (another model's name).
    reply_rate : share of tries whose answer, where it is JSON, comes as models spoil it: `reply_kinds`.
    useless : models that never answer anything of use.
    patience : disturbed tries in a row, of each sort, after which a request is let through.
    retry_after, slow_s : seconds.
    seed : another seed disturbs other tries.

    Raises ValueError for a rate outside [0, 1] or an unknown kind.
    """

    rate: float = 0.0
    kinds: tuple = KINDS
    reply_rate: float = 0.0
    reply_kinds: tuple = ()
    useless: tuple = ()
    patience: int = 2
    retry_after: float = 0.05
    slow_s: float = 0.25
    seed: int = 0

    def __post_init__(self):
        object.__setattr__(self, "reply_kinds", tuple(self.reply_kinds) or REPLY_KINDS)
        for name in ("rate", "reply_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {getattr(self, name)!r}")
        for name, known in (("kinds", KINDS), ("reply_kinds", REPLY_KINDS)):
            for kind in getattr(self, name):
                if kind not in known:
                    raise ValueError(f"{name}: unknown fault {kind!r}; known: {', '.join(known)}")
        if self.patience < 0:
            raise ValueError(f"patience is a number of tries, not {self.patience!r}")

    def on_the_way(self, key: str, attempt: int) -> str | None:
        """The fault that meets try `attempt` (from 0) of a request on its way, or None."""
        return self._drawn("way", self.rate, self.kinds, key, attempt)

    def in_the_reply(self, key: str, attempt: int) -> str | None:
        """How the JSON answer to try `attempt` of a request is spoilt, or None."""
        return self._drawn("reply", self.reply_rate, self.reply_kinds, key, attempt)

    def _drawn(self, sort, rate, kinds, key, attempt):
        in_a_row = 0
        for past in range(attempt):
            hit = uniform(self.seed, sort, key, past) < rate and in_a_row < self.patience
            in_a_row = in_a_row + 1 if hit else 0
        if in_a_row >= self.patience or uniform(self.seed, sort, key, attempt) >= rate:
            return None
        return kinds[digest(self.seed, sort, key, attempt, "kind", size=1)[0] % len(kinds)]


def spoil(reply: Reply, kind: str) -> Reply:
    """A JSON reply as a careless model would have sent it; other replies come back as they are.

    The kinds of `REPAIRABLE` still hold the whole answer; those of `LOST` do not (ask again).
    """
    try:
        content = json.loads(reply.text)
    except ValueError:
        return reply
    if not isinstance(content, dict):
        return reply
    text, finish = _SPOILERS[kind](content, json.dumps(content, indent=1, ensure_ascii=False))
    return Reply(
        text,
        finish or reply.finish_reason,
        reply.prompt_tokens,
        reply.completion_tokens,
        reply.reasoning_tokens,
        reply.model,
    )


def useless(reply: Reply) -> Reply:
    """A reply that answers nothing."""
    return Reply(USELESS, "stop", reply.prompt_tokens, None, 0, reply.model)


def _words_for_booleans(value):
    if isinstance(value, dict):
        return {key: _words_for_booleans(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_words_for_booleans(item) for item in value]
    return str(value) if isinstance(value, bool) else value


def _with_trailing_commas(text):
    *lines, last = text.splitlines()
    return "\n".join([*(line if line.rstrip()[-1] in ",{[" else line + "," for line in lines), last])


def _without_last(content):
    return dict(list(content.items())[:-1])


def _first_of(content, comment):
    head = json.dumps(dict(list(content.items())[:1]), indent=1, ensure_ascii=False)
    return head[:-2] + ",\n " + comment + "\n}"


_SPOILERS = {
    # The whole answer is there.
    "fence": lambda content, text: (f"```json\n{text}\n```", None),
    "plain_fence": lambda content, text: (f"```\n{text}\n```", None),
    "prose": lambda content, text: (f"Certainly! Here is the analysis.\n\n{text}\n\nAnything else?", None),
    "think": lambda content, text: (f"<think>\nThe text is odd, so I read it twice.\n</think>\n{text}", None),
    "answer_tag": lambda content, text: (f"<answer>\n{text}", None),
    "trailing_commas": lambda content, text: (_with_trailing_commas(text), None),
    "single_quotes": lambda content, text: (repr(content), None),
    "string_booleans": lambda content, text: (
        json.dumps(_words_for_booleans(content), ensure_ascii=False),
        None,
    ),
    "nested": lambda content, text: (json.dumps({"result": content}, ensure_ascii=False), None),
    "extra_field": lambda content, text: (
        json.dumps({**content, "overall_impression": "striking"}, ensure_ascii=False),
        None,
    ),
    "two_blocks": lambda content, text: (
        f"```\nI read the description and then fill in the form.\n```\n\n```json\n{text}\n```",
        None,
    ),
    # The whole answer is not there, whatever is done about it.
    "empty": lambda content, text: ("", None),
    "refusal": lambda content, text: ("I can't help with that.", "content_filter"),
    "half": lambda content, text: (text[: len(text) // 2], "length"),
    "omitted": lambda content, text: (_first_of(content, "/* the others omitted for brevity */"), None),
    "missing_field": lambda content, text: (json.dumps(_without_last(content), ensure_ascii=False), None),
    "schema_echo": lambda content, text: (_first_of(content, '"next_feature": {...}'), None),
    "placeholders": lambda content, text: (json.dumps(dict.fromkeys(content), ensure_ascii=False), None),
}
REPLY_KINDS = tuple(_SPOILERS)
LOST = ("empty", "refusal", "half", "omitted", "missing_field", "schema_echo", "placeholders")
REPAIRABLE = tuple(kind for kind in REPLY_KINDS if kind not in LOST)
