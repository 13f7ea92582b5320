"""A model's reasoning told from its answer: `<think>` and its kin, closed, left open, or with one tag eaten.

What is inside a string of whole JSON is never a tag: a judge may write about tags.
"""

import json
import re
from typing import NamedTuple

_NAMES = r"(?:\w{1,12}:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|inner_monologue)"
_TAG = re.compile(
    rf"<\s{{0,3}}(?P<end>/?)\s{{0,3}}(?P<name>{_NAMES})(?:\s[^<>\n]{{0,80}})?>"
    r"|\[(?P<end2>/?)(?P<name2>THINK)\]|◁(?P<end3>/?)(?P<name3>think)▷",
    re.I,
)
# The channels of gpt-oss, where a server hands them on as they are.
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,80}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call)\|>")
_BRACKET = re.compile(r"[{\[]")
_MOST_TRIES = 100  # brackets that may be looked behind for JSON


class Told(NamedTuple):
    """`answer`: what stands outside of the reasoning; `reasoning`: what stands inside, "" for none; `open`:
    whether the reply ends inside it, so that what came before is no last word."""

    answer: str
    reasoning: str
    open: bool


def tell(text: str) -> Told:
    """Take a reply apart. A closing tag alone ends reasoning that began with the reply (the opening tag was
    eaten by the server's template); an opening tag alone begins reasoning that never ends.

    Takes time in proportion to the reply's length.
    """
    channels = list(_CHANNEL.finditer(text))
    if channels:
        return _channels(text, channels)
    tags = list(_TAG.finditer(text))
    if not tags:
        return Told(text, "", False)
    strings = _whole_json(text)
    tags = [tag for tag in tags if not any(start < tag.start() < end for start, end in strings)]
    last = {}
    for place, tag in enumerate(tags):
        last[_name(tag), _ends(tag)] = place
    outside, inside, start, within = [], [], 0, None
    for place, tag in enumerate(tags):
        if within is None and not _ends(tag):
            outside.append(text[start : tag.start()])
            if last.get((_name(tag), True), -1) < place:
                return Told(" ".join(outside), "\n".join([*inside, text[tag.end() :]]).strip(), True)
            within, start = _name(tag), tag.end()
        elif within is None:  # never opened: all before it was reasoning
            inside = [*inside, *outside, text[start : tag.start()]]
            outside, start = [], tag.end()
        elif _ends(tag) and _name(tag) == within:
            inside.append(text[start : tag.start()])
            within, start = None, tag.end()
    return Told(
        " ".join([*outside, text[start:]]), "\n".join(part for part in inside if part.strip()).strip(), False
    )


def _channels(text, channels) -> Told:
    """Of the last message of the channel "final", if it is the last of all; else reasoning without an end."""
    said = []
    starts = [found.start() for found in channels[1:]]
    for found, after in zip(channels, [*starts, len(text)], strict=True):
        end = _CHANNEL_END.search(text, found.end(), after)
        said.append((found[1].lower(), text[found.end() : end.start() if end else after]))
    reasoning = "\n".join(words for channel, words in said if channel != "final").strip()
    ended = said[-1][0] == "final"
    return Told(said[-1][1] if ended else "", reasoning, not ended)


def _name(tag) -> str:
    return (tag["name"] or tag["name2"] or tag["name3"]).lower()


def _ends(tag) -> bool:
    return bool(tag["end"] or tag["end2"] or tag["end3"])


def _whole_json(text) -> list:
    """[(start, end)] of the outermost pieces that are JSON as they stand."""
    spans, place, tries, decoder = [], 0, 0, json.JSONDecoder()
    while tries < _MOST_TRIES and (found := _BRACKET.search(text, place)):
        try:
            end = decoder.raw_decode(text, found.start())[1]
            spans.append((found.start(), end))
        except (ValueError, RecursionError):
            tries, end = tries + 1, found.end()
        place = end
    return spans
