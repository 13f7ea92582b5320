"""Which endpoint answers for each model, under which name, and what that model does not take."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from compendium.asking.endpoint import Endpoint
from compendium.asking.request import Request

AS_ASKED = "as asked"


@dataclass(frozen=True)
class Model:
    """How one model is to be asked.

    Parameters
    ----------
    endpoint : name of the endpoint that serves it; "": the profile's own.
    name : what that endpoint calls it; None: the name that the study gives it.
    temperature, top_p : in place of what the study asks for; None: not sent. max_tokens: likewise, never None.
    seed : whether seeds are sent. system : whether it has a system role; else that text opens the first message.
    stream : whether replies are asked for as a stream (for endpoints that have no other).
    reasoning_effort, extra : further fields of the request's body.
    aliases : other names that it may answer as.
    max_tokens_name : the field that bounds a reply, where it is not max_tokens.

    What changes the question (temperature, max_tokens, system, extra) is part of what the ledger keeps; how it travels
    (name, seed, stream, max_tokens_name) is not.
    """

    endpoint: str = ""
    name: str | None = None
    temperature: float | str | None = AS_ASKED
    top_p: float | str | None = AS_ASKED
    max_tokens: int | None = None
    seed: bool = True
    system: bool = True
    stream: bool = False
    reasoning_effort: str | None = None
    extra: Mapping = field(default_factory=dict)
    aliases: tuple = ()
    max_tokens_name: str | None = None

    def shape(self, request: Request) -> Request:
        """The request as this model can be asked it; itself where nothing changes."""
        changes = {
            name: value
            for name in ("temperature", "top_p")
            if (value := getattr(self, name)) != AS_ASKED and value != getattr(request, name)
        }
        if self.max_tokens and self.max_tokens != request.max_tokens:
            changes["max_tokens"] = self.max_tokens
        if not self.system and any(message["role"] == "system" for message in request.messages):
            changes["messages"] = _without_system(request.messages)
        effort = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        if effort or self.extra:
            changes["extra"] = {**request.extra, **effort, **self.extra}
        return dataclasses.replace(request, **changes) if changes else request

    def sent(self, body: dict) -> dict:
        """The body as it travels."""
        body = {**body, **({"model": self.name} if self.name else {})}
        if not self.seed:
            body.pop("seed", None)
        if self.stream:
            body.update(stream=True, stream_options={"include_usage": True})
        return body


PLAIN = Model()


@dataclass(frozen=True)
class Directory:
    """The endpoints of a run by name ("": the one that serves every model that names no other), and its models."""

    endpoints: Mapping
    models: Mapping = field(default_factory=dict)

    def model(self, name: str) -> Model:
        """How a model is to be asked."""
        return self.models.get(name, PLAIN)

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint that serves a model."""
        return self.endpoints[self.model(name).endpoint]

    def shaped(self, requests):
        """Requests as their models can be asked them: a list for a list, else one after the other."""
        if not self.models:
            return requests
        made = (self.model(request.model).shape(request) for request in requests)
        return list(made) if isinstance(requests, (list, tuple)) else made


def directory_of(endpoint) -> Directory:
    """A lone `Endpoint` as a directory of it; a directory itself."""
    return endpoint if isinstance(endpoint, Directory) else Directory({"": endpoint})


def _without_system(messages) -> list:
    """Messages with the system's text at the head of the first one that a user says."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [dict(message) for message in messages if message["role"] != "system"]
    first = next((message for message in rest if message["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": system}, *rest]
    first["content"] = f"{system}\n\n{first['content']}"
    return rest


def _words(value) -> str:
    return value if isinstance(value, str) else ""


def from_stream(text: str) -> str:
    """The body of one completion from a stream of its pieces (server-sent events); other text as it is."""
    if not text.lstrip().startswith(("data:", ":", "event:")):
        return text
    whole, said, thought = {}, [], []
    finish = refusal = None
    ended = False
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name != "data":
            continue
        if value.strip() == "[DONE]":
            ended = True
            continue
        try:
            piece = json.loads(value)
        except (ValueError, RecursionError):
            return value  # no JSON: the reader of bodies says so
        if not isinstance(piece, dict) or piece.get("error"):
            return value
        whole.update({key: piece[key] for key in ("id", "model", "usage") if piece.get(key) is not None})
        for choice in piece.get("choices") or ():
            choice = choice if isinstance(choice, dict) else {}
            delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
            said.append(_words(delta.get("content")))
            thought.append(_words(delta.get("reasoning_content") or delta.get("reasoning")))
            refusal = delta.get("refusal") or refusal
            finish = choice.get("finish_reason") or finish
    if not ended and finish is None:
        return text  # broken off: no whole body
    message = {"role": "assistant", "content": "".join(said), "refusal": refusal}
    if any(thought):
        message["reasoning_content"] = "".join(thought)
    return json.dumps({**whole, "choices": [{"index": 0, "finish_reason": finish, "message": message}]})
