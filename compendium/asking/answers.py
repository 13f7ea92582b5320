"""What came back: the body of a response read by meaning, whatever a provider's spelling.

Everything that makes a body unusable is a `Fault` with a kind. A body that is usable can still be a refusal,
an empty text or half a text: that is for the stage to judge, with the finish reason at hand.
"""

import json
import math
import re
from dataclasses import dataclass

from compendium.asking.budget import prompt_token_guess, text_token_guess

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


def read_body(body: str, request) -> Answer:
    """The answer in the body of a 200 response to `request`. Raises Fault where there is none."""
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
    finish = choice.get("finish_reason")
    finish = _FINISH.get(str(finish).lower(), str(finish).lower()) if finish else None
    answer = Answer(
        text,
        reasoning,
        _text(message.get("refusal")) or None,
        finish,
        _name(content.get("model")),
        0,
        0,
        0,
        False,
        None,
        _name(content.get("id")),
    )
    _put_usage(answer, content.get("usage"), request)
    return answer


def _put_usage(answer, usage, request):
    """Tokens as reported; where a count is missing it is estimated and the answer says so."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    # Endpoints that send a usage block of zeros do not count; a prompt is never empty.
    prompt = prompt or None
    completion = None if not completion and answer.text else completion
    answer.usage_estimated = prompt is None or completion is None
    answer.prompt_tokens = prompt_token_guess(request.messages) if prompt is None else prompt
    if completion is None:
        completion = text_token_guess(answer.text) + text_token_guess(answer.reasoning or "")
    answer.completion_tokens = completion
    answer.reasoning_tokens = _count(details.get("reasoning_tokens", usage.get("reasoning_tokens"))) or 0
    cost = usage.get("cost")
    good = isinstance(cost, (int, float)) and not isinstance(cost, bool) and math.isfinite(cost) and cost > 0
    answer.reported_cost = float(cost) if good else None


def _text(content) -> str:
    """Text of a message: a string, or a list of parts of which the text parts count."""
    if isinstance(content, list):
        content = "".join(part.get("text") or "" if isinstance(part, dict) else str(part) for part in content)
    if not isinstance(content, str):
        return ""
    # Half a surrogate pair (an emoji cut in two) has no UTF-8: it could be neither stored nor sent to a
    # judge.
    return _HALF_PAIR.sub("\ufffd", content)


def _name(value):
    return value if isinstance(value, str) and value else None


def _count(value):
    good = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= 0
    )
    return int(value) if good else None


def _error_text(error) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "unspecified"
    return " ".join(str(error or "unspecified").split())[:200]
