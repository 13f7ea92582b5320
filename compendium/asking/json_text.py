"""JSON inside a model's reply: found among reasoning, fences, tags and prose; mended (`compendium.asking.mending`).

Replies come from strangers: every step takes time in proportion to a reply's length.
"""

import bisect
import re
from dataclasses import dataclass, field

from compendium.asking.errors import InvalidReply
from compendium.asking.mending import CLOSED, STRICT, mend, read_brackets
from compendium.asking.reasoning import tell

LONGEST = 1_000_000  # characters of a reply; the longest that these studies asked for have a tenth of that
MOST_BROKEN = 30  # pieces of a reply that are nearly JSON; an answer is one

_ANSWER = re.compile(r"<answer>", re.I)
_ANSWER_END = re.compile(r"</answer>", re.I)
FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.S)
_BRACKET = re.compile(r"[{\[]")
_OBJECT = re.compile(r"""\{\s*(?:["'“‘}]|//|/\*|\#|[A-Za-z_][\w ]*["']?\s*:)""")
_LIST = re.compile(r"""\[\s*(?:[\[{"'“\]\d-]|true|false|null|None|NaN|Infinity|//|/\*)""", re.I)


@dataclass(frozen=True)
class Parsed:
    """What a reply says: `values`, what was mended (`repairs`, sorted), and `details` around them."""

    values: object
    repairs: tuple = ()
    details: object = field(default=None, compare=False)


@dataclass
class _Block:
    """A piece of the reply that looks like JSON: its place, and its value or the error that it is."""

    start: int
    end: int
    value: object = None
    repairs: tuple = ()
    error: InvalidReply | None = None


def extract_json(text: str, last: bool = True) -> Parsed:
    """The JSON object or list in a reply: `values` is a dict or list.

    Reasoning blocks, `<answer>` tags, fences and prose around it are ignored. Of several the `last` (else the
    first) counts; those inside fences before bare ones, objects and nested lists before flat lists such as
    "[1]". Raises InvalidReply: "no JSON", "truncated", "omission", "malformed", "repeated key".
    """
    body, repairs = answer_text(text)
    blocks = json_blocks(body)
    spans = [match.span(1) for match in FENCE.finditer(body)]
    starts = [start for start, _ in spans]

    def rank(block):
        rich = isinstance(block.value, dict) or any(
            isinstance(item, (dict, list)) for item in block.value or ()
        )
        fence = bisect.bisect_right(starts, block.start) - 1
        return (block.error is not None or rich, fence >= 0 and block.start < spans[fence][1])

    if not blocks:
        raise InvalidReply("no JSON", "neither an object nor a list in the reply")
    ranked = [(rank(block), block) for block in blocks]
    best = max(rank for rank, _ in ranked)
    chosen = [block for rank, block in ranked if rank == best]
    chosen = chosen[-1] if last else chosen[0]
    if chosen.error is not None:
        raise chosen.error
    if CLOSED in chosen.repairs:  # without knowing what was asked for nobody knows that this is all of it
        raise InvalidReply("truncated", "the reply stops before its last bracket")
    return Parsed(chosen.value, tuple(sorted({*repairs, *chosen.repairs, *around(body, chosen)})))


def answer_text(text: str) -> tuple:
    """(the reply without its reasoning and outside of `<answer>` tags, what that took).

    Raises InvalidReply("thinking") where a reasoning block is never closed and nothing that looks like JSON
    precedes it.
    """
    repairs = set()
    if len(text) > LONGEST:
        raise InvalidReply("too long", f"{len(text):,} characters; at most {LONGEST:,} are read")
    text = text.replace("\ufeff", "").replace("\u200b", "")
    stripped, _, unfinished = tell(text)
    if unfinished and not (_OBJECT.search(stripped) or _LIST.search(stripped)):
        raise InvalidReply("thinking", "the reply ends inside its reasoning block")
    if stripped != text:
        repairs.add("reasoning removed")
    tags = list(_ANSWER.finditer(stripped))
    if tags:
        inner = stripped[tags[-1].end() :]
        end = _ANSWER_END.search(inner)
        inner = inner[: end.start()] if end else inner
        if "{" in inner or "[" in inner:
            stripped = inner
            repairs.add("answer tag" if end else "answer tag not closed")
    return stripped, repairs


def json_blocks(text: str) -> list:
    """Every outermost piece of `text` that looks like JSON, in order; each with its value or its error.

    The last one may be cut off: its error then has the kind "truncated".
    """
    blocks, place, broken = [], 0, 0
    while bracket := _BRACKET.search(text, place):
        place = bracket.start()
        if not (_OBJECT if bracket[0] == "{" else _LIST).match(text, place):
            place += 1  # a bracket in prose
            continue
        try:
            value, end = STRICT.raw_decode(text, place)
            block = _Block(place, end, value)
        except (ValueError, RecursionError) as error:
            broken += 1
            block = _mended(text, place, error if isinstance(error, InvalidReply) else None)
        if broken > MOST_BROKEN:
            problem = InvalidReply("malformed", f"more than {MOST_BROKEN} pieces that are nearly JSON")
            block = _Block(place, len(text), error=problem)
        blocks.append(block)
        place = block.end
    return blocks


def _mended(text, place, problem) -> _Block:
    """The piece that starts at `place`; `problem` says why it cannot be mended, None where that is to be seen."""
    scan = read_brackets(text, place)
    block = _Block(place, len(text) if scan.end is None else scan.end, error=problem)
    if problem is None:
        try:
            block.value, block.repairs = mend(text[place : block.end], scan)
        except InvalidReply as problem:
            block.error = problem
    return block


def around(body, block) -> set:
    """Names for what stood around the block that was taken."""
    outside = body[: block.start] + body[block.end :]
    found = set()
    if "```" in outside:
        found.add("fence removed")
        outside = re.sub(r"```[ \t]*[\w+-]*", "", outside)
    if outside.strip():
        found.add("prose ignored")
    return found
