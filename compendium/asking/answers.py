"""What came back: the body of a response read by meaning, whatever a provider's spelling.

Everything that makes a body unusable is a `Fault` with a kind. A body that is usable can still be a refusal,
an empty text or half a text: that is for the stage to judge, with the finish reason at hand.
"""

import json
import math
import re
from dataclasses import dataclass

from compendium.asking.budget import prompt_token_bound, text_token_guess

FAULTS = (
    "rate limited",
    "server error",
    "timeout",
    "no connection",
    "connection dropped",
    "truncated body",
    "malformed body",
    "error in body",
    "wrong model",
)
MOST_TOKENS = 10_000_000  # of one call; no model has a context a tenth as long
MOST_DOLLARS = 10_000.0  # of one call
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_FINISH = {
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "max_length": "length",
    "safety": "content_filter",
    "refusal": "content_filter",
}


class Fault(Exception):
    """A try that gave no reply. `kind` is one of FAULTS; `charged` says whether it may be billed all the
    same.

    `wait` is the seconds the endpoint asks for, or None; `spent` its own account of tokens and cost, where
    given.
    """

    def __init__(self, kind, detail="", wait=None, charged=False, spent=None):
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.detail, self.wait, self.charged, self.spent = kind, detail, wait, charged, spent


class GaveUp(Exception):
    """No reply to one request in this run; the message says why. The next run asks again."""


@dataclass(slots=True)
class Answer:
    """One usable response: text ("" for none), refusal and reasoning where given, and what it used."""

    text: str
    reasoning: str | None
    refusal: str | None
    finish_reason: str | None
    model_resolved: str | None
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    usage_estimated: bool
    reported_cost: float | None
    call_id: str | None


def read_body(body: str, request, default_max_tokens: int | None = None) -> Answer:
    """The answer in the body of a 200 response to `request`. Raises Fault where there is none.

    A count of tokens that is missing, negative or absurd is taken as the most that it could be: a byte of the
    prompt a token, and `max_tokens` (of a request without one `default_max_tokens`) of completion.
    """
    try:
        content = json.loads(body.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Fault("malformed body", f"not JSON ({error})", charged=True) from None
    if not isinstance(content, dict):
        raise Fault("malformed body", "JSON, but no object", charged=True)
    if content.get("error"):  # some gateways report an upstream failure with status 200
        raise Fault("error in body", _error_text(content["error"]), charged=True)
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Fault("malformed body", "no choices", charged=True)
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Fault("malformed body", "no message", charged=True)
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise Fault("error in body", _error_text(choice.get("error")), charged=True)
    text = _text(message.get("content"))
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning")) or None
    finish = _name(choice.get("finish_reason"), "finish_reason")
    finish = _FINISH.get(finish.lower(), finish.lower()) if finish else None
    answer = Answer(
        text,
        reasoning,
        _text(message.get("refusal")) or None,
        finish,
        _name(content.get("model"), "model"),
        0,
        0,
        0,
        False,
        None,
        _name(content.get("id"), "id"),
    )
    _put_usage(answer, content.get("usage"), request, default_max_tokens)
    return answer


def _put_usage(answer, usage, request, default_max_tokens):
    """Tokens as reported; where a count cannot be it is the most that was reserved, and the answer says so."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    # Endpoints that send a usage block of zeros do not count; a prompt is never empty.
    prompt = prompt or None
    completion = None if not completion and answer.text else completion
    answer.usage_estimated = prompt is None or completion is None
    if prompt is None:
        prompt = prompt_token_bound(request.messages, request.extra)
    answer.prompt_tokens = prompt
    if completion is None:
        most = request.max_tokens if request.max_tokens is not None else default_max_tokens
        completion = text_token_guess(answer.text) + text_token_guess(answer.reasoning or "")
        completion = max(completion, most or 0)
    answer.completion_tokens = completion
    answer.reasoning_tokens = _count(details.get("reasoning_tokens", usage.get("reasoning_tokens"))) or 0
    try:
        cost = _number(usage.get("cost"))
    except OverflowError:
        raise Fault("malformed body", "a cost of some hundred digits", charged=True) from None
    answer.reported_cost = cost if cost is not None and 0 < cost <= MOST_DOLLARS else None


def _text(content) -> str:
    """Text of a message: a string, or a list of parts of which the text parts count."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        parts = ["" if part is None else part for part in parts]  # a part of reasoning, an image
        if not all(isinstance(part, str) for part in parts):
            raise Fault("malformed body", "a part of the text is no text", charged=True)
        content = "".join(parts)
    if not isinstance(content, str):
        return ""
    # Half a surrogate pair (an emoji cut in two) has no UTF-8: it could be neither stored nor sent to a
    # judge.
    return _HALF_PAIR.sub("\ufffd", content)


def _name(value, field):
    """A short name, None where there is none. Raises Fault for one that could not be stored."""
    if not isinstance(value, str) or not value:
        return None
    if _HALF_PAIR.search(value):
        raise Fault("malformed body", f"half a character in `{field}`", charged=True)
    return value


def _number(value):
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if good and math.isfinite(value) else None


def _count(value):
    """A number of tokens, or None for what cannot be one."""
    try:
        number = _number(value)
    except OverflowError:
        return None
    return int(number) if number is not None and 0 <= number <= MOST_TOKENS else None


def _error_text(error) -> str:
    """The upstream's own words on one line; what does not print (escapes of a terminal) does not get through."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "unspecified"
    text = " ".join(str(error or "unspecified")[:2000].split())[:200]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
