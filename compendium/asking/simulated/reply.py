"""What a simulated model hands back, and how a request is named.

Sizes are counted as providers count them: tokens. The simulators have no tokenizer; a token is taken to be
three quarters of a word (`TOKENS_PER_WORD`), which is close to what English prose costs under common
tokenizers.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

TOKENS_PER_WORD = 4 / 3


class RequestError(ValueError):
    """A request that the endpoint refuses; `status` is the HTTP status it is refused with."""

    def __init__(self, message: str, status: int = 400, code: str = "invalid_request_error"):
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Reply:
    """One answer: `text`, why it ended, what it cost, and the name of the snapshot that wrote it.

    `completion_tokens` includes `reasoning_tokens`, as OpenAI-compatible endpoints report it. Counts left at
    None are estimated from the words of the request and of the text.
    """

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int = 0
    model: str | None = None

    def usage(self, request: dict) -> dict:
        """The `usage` object of the response to `request`."""
        prompt = self.prompt_tokens if self.prompt_tokens is not None else prompt_tokens(request)
        completion = self.completion_tokens if self.completion_tokens is not None else tokens(self.text)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }


def tokens(text: str) -> int:
    """Estimated tokens of a text: words x `TOKENS_PER_WORD`, rounded up; 0 for no text."""
    words = len(text.split())
    return -(-words * 4 // 3)


def message_text(message: dict) -> str:
    """The text of a chat message, whose content is a string or a list of text parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def prompt_tokens(request: dict) -> int:
    """Estimated tokens of all messages of a request."""
    return sum(tokens(message_text(message)) for message in request["messages"])


def last_user_text(request: dict) -> str:
    """The text of the last user message of a request; "" if there is none."""
    for message in reversed(request["messages"]):
        if message.get("role") == "user":
            return message_text(message)
    return ""


def request_key(request: dict) -> str:
    """Name of a request: 32 hexadecimal digits, equal for equal content whatever the order of its keys."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
