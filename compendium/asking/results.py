"""What a stage gives back: replies in the order of the requests, read from the ledger as they are wanted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from compendium.asking.errors import InvalidReply
from compendium.asking.reasoning import tell
from compendium.asking.replies import Parsed

DIGEST = 32  # bytes
READ = 256  # replies read at a time


@dataclass(slots=True)
class Reply:
    """One request's final reply.

    `text` is the reply's text without its reasoning ("" where void); `parsed` is what `parse` made of it (the `values` of a
    `Parsed`; without `parse` the text), None where void; `details` and `repairs` are those of a `Parsed`;
    `void_reason` says why there is no valid reply, None where there is. `attempts` counts the replies asked
    for until a valid one (re-asks: attempts - 1), `tries` the calls that the last of them took. `cost` is in
    dollars over all attempts, NaN where unknown; `latency` in seconds; token counts are those of the last
    attempt, `usage_estimated` says that the endpoint did not report them.
    """

    key: str
    request: object
    text: str
    parsed: object
    repairs: tuple
    void_reason: str | None
    model_requested: str
    model_resolved: str | None = None
    finish_reason: str | None = None
    prompt_tokens: float = math.nan
    completion_tokens: float = math.nan
    reasoning_tokens: float = math.nan
    usage_estimated: bool = False
    latency: float = math.nan
    attempts: int = 0
    tries: int = 0
    cost: float = math.nan
    sample: int = 0
    seed: int | None = None
    refusal: str | None = None
    reasoning: str | None = None
    call_id: str | None = None
    created: float = math.nan
    raw: str = field(default="", repr=False)  # the last attempt's text, also where it is void
    details: object = field(default=None, repr=False)

    @property
    def valid(self) -> bool:
        """Whether there is a reply that is what was asked for."""
        return self.void_reason is None


def verdict(row: dict, parse) -> tuple:
    """(`Parsed` or None, why the reply is invalid or None, of what kind) of one stored reply.

    A reply is judged by its text: a finish reason ("length", "content_filter") with a whole answer is an
    answer, and where there is none it is part of the reason. Raises what `parse` raises, save ValueError:
    that is its verdict.
    """
    text, finish = row["text"], row["finish_reason"]
    if not text.strip():
        return None, *_why_empty(row)
    if parse is None:
        if (
            finish == "content_filter"
        ):  # nobody looks inside, so a text that was stopped is not known to be whole
            return None, "refusal: stopped by a content filter", "refusal"
        told = tell(text)
        if told.open:
            return None, "thinking: the reply ends inside its reasoning block", "thinking"
        if not told.answer.strip():
            return None, "thinking: nothing but reasoning", "thinking"
        return Parsed(_answer(text)), None, None
    try:
        value = parse(text)
    except ValueError as error:
        kind = error.kind if isinstance(error, InvalidReply) else "invalid"
        reason = str(error) if isinstance(error, InvalidReply) else f"invalid: {_short(error)}"
        if finish not in (None, "stop"):
            kind = {"length": "truncated", "content_filter": "refusal"}.get(finish, kind)
            reason = f"{reason} (finish reason {finish})"
        return None, reason, kind
    return value if isinstance(value, Parsed) else Parsed(value), None, None


def judge(row: dict, parse) -> tuple:
    """(parsed, repairs, why it is invalid or None, of what kind) of one stored reply; see `verdict`."""
    found, reason, kind = verdict(row, parse)
    return (None, (), reason, kind) if found is None else (found.values, found.repairs, None, None)


def final_reply(rows: list, parse, last_attempt: int) -> tuple:
    """(row, its verdict, complete) of a request's stored attempts: the first valid one, else the last one
    stored.

    `complete` is False where there is no valid one yet and `last_attempt` is not reached: it is to be asked
    again.
    """
    row, found = None, None
    for row in (stored for stored in rows if stored["attempt"] <= last_attempt):
        found = verdict(row, parse)
        if found[1] is None:
            return row, found, True
    return row, found, row is not None and row["attempt"] >= last_attempt


def make_reply(
    key: bytes, request, model: str, rows: list, parse, last_attempt: int, unanswered: str | None
) -> Reply:
    """The `Reply` to a request from its stored attempts; `unanswered` says why there is none."""
    row, found, _ = final_reply(rows, parse, last_attempt)
    if row is None or unanswered is not None:
        return Reply(key.hex(), request, "", None, (), unanswered or "no reply", model, attempts=len(rows))
    parsed, reason, _ = found
    used = [each for each in rows if each["attempt"] <= row["attempt"]]
    cost = sum(math.nan if each["cost"] is None else each["cost"] for each in used)
    known = parsed or Parsed(None)
    return Reply(
        key=key.hex(),
        request=request,
        text=_answer(row["text"]) if reason is None else "",
        parsed=known.values,
        repairs=known.repairs,
        void_reason=reason,
        model_requested=row["model"],
        model_resolved=row["model_resolved"],
        finish_reason=row["finish_reason"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        reasoning_tokens=row["reasoning_tokens"],
        usage_estimated=bool(row["usage_estimated"]),
        latency=row["latency"],
        attempts=row["attempt"] + 1,
        tries=row["tries"],
        cost=cost,
        sample=row["sample"],
        seed=row["seed"],
        refusal=row["refusal"],
        reasoning=row["reasoning"],
        call_id=row["call_id"],
        created=row["created"],
        raw=row["text"],
        details=known.details,
    )


def _answer(text: str) -> str:
    """What of a reply may be judged and counted: all but its reasoning."""
    answer = tell(text).answer
    return text if answer == text else answer.strip()


def _why_empty(row) -> tuple:
    """(why there is no text, of what kind)."""
    if row["refusal"]:
        return f"refusal: {_short(row['refusal'])}", "refusal"
    if row["finish_reason"] == "content_filter":
        return "refusal: stopped by a content filter", "refusal"
    if row["finish_reason"] == "length":
        spent = " on reasoning" if row["reasoning_tokens"] or row["reasoning"] else ""
        return f"empty: all tokens were spent{spent} (finish reason length)", "empty"
    return "empty: no text", "empty"


class Replies(Sequence):
    """Replies in the order of the requests; reading them takes memory for a few hundred at a time."""

    def __init__(self, ledger, order: bytes, requests, models, parse, last_attempt: int, unanswered: dict):
        self._ledger, self._order, self._requests, self._models = ledger, order, requests, models
        self._parse, self._last, self._unanswered = parse, last_attempt, unanswered

    def __len__(self):
        return len(self._order) // DIGEST

    def __getitem__(self, place):
        if isinstance(place, slice):
            return list(self._read(range(*place.indices(len(self)))))
        place = range(len(self))[place]  # IndexError, and negative places count from the end
        return next(self._read(range(place, place + 1)))

    def __iter__(self):
        return self._read(range(len(self)))

    def __repr__(self):
        return f"<{len(self):,} replies>"

    def _read(self, places):
        for start in range(0, len(places), READ):
            some = places[start : start + READ]
            keys = [bytes(self._order[place * DIGEST : (place + 1) * DIGEST]) for place in some]
            stored = self._ledger.lookup(set(keys))
            for place, key in zip(some, keys, strict=True):
                request = self._requests[place] if self._requests is not None else None
                model = request.model if request is not None else self._models.get(key, "")
                yield make_reply(
                    key,
                    request,
                    model,
                    stored.get(key, []),
                    self._parse,
                    self._last,
                    self._unanswered.get(key),
                )


@dataclass
class StageResult:
    """`replies` (a `Replies`) and `report` (a `StageReport`) of one stage."""

    replies: Replies
    report: object

    def frame(self, text: bool = False) -> pd.DataFrame:
        """A row a request, in their order: the request's tags, model, sample, tokens, cost, attempts,
        void_reason.

        With `text` also the reply's text. Missing numbers are NaN.
        """
        rows = []
        for reply in self.replies:
            row = dict(reply.request.tag) if reply.request is not None else {}
            row.update({name: getattr(reply, name) for name in _FRAME})
            row["repairs"] = ", ".join(reply.repairs)
            if text:
                row["text"] = reply.text
            rows.append(row)
        return pd.DataFrame(rows)


_FRAME = (
    "key",
    "model_requested",
    "model_resolved",
    "sample",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "usage_estimated",
    "attempts",
    "cost",
    "latency",
    "void_reason",
)


def _short(error, limit=160) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
