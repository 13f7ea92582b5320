"""JSON inside a model's reply: found, and mended where mending invents nothing and drops nothing.

Mending may change punctuation only: fences, quotes, commas, comments, the spelling of true and null,
brackets that a complete answer forgot to close. `mend` proves it for each reply: the letters and digits of
the result are those of the text, in the same order. What is cut off, left out ("... the rest as above") or
given twice with different values is not mended: it is an InvalidReply with that reason.
"""

import ast
import json
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field

import json_repair

from lib.models.errors import InvalidReply

CLOSED = "brackets closed"

_THINK = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.S | re.I)
_THINK_END = re.compile(r"</(?:think|thinking|thought)>", re.I)
_THINK_START = re.compile(r"<(?:think|thinking|thought)>", re.I)
_ANSWER = re.compile(r"<answer>", re.I)
_ANSWER_END = re.compile(r"</answer>", re.I)
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.S)
_OBJECT = re.compile(r"""\{\s*(?:["'“‘}]|//|/\*|\#|[A-Za-z_][\w ]*["']?\s*:)""")
_LIST = re.compile(r"""\[\s*(?:[\[{"'“\]\d-]|true|false|null|None|//|/\*)""", re.I)
_OMISSION = re.compile(
    r"\.\.\.|…|\b(?:omitted|omit|brevity|remaining|remainder|the rest|rest of|and so on|etc|similarly|"
    r"same as|as above|more (?:items|features|entries|archetypes)|continue[sd]?)\b",
    re.I,
)
_ADJACENT = re.compile(r"""(?:'\s*'[^\s,:}\]]|"\s*"[^\s,:}\]])""")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_ATOM = re.compile(r"-(?=\d)|(?<=\d)\.(?=\d)|[^\W_]", re.U)
_HOOKS = {
    "object_pairs_hook": lambda pairs: _object(pairs),
    "parse_constant": lambda name: _no_constant(name),
}
_STRICT, _LOOSE = json.JSONDecoder(**_HOOKS), json.JSONDecoder(strict=False, **_HOOKS)


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
    spans = [match.span(1) for match in _FENCE.finditer(body)]
    fenced = {id(block) for block in blocks if any(a <= block.start < b for a, b in spans)}

    def rank(block):
        rich = isinstance(block.value, dict) or any(
            isinstance(item, (dict, list)) for item in block.value or ()
        )
        return (block.error is not None or rich, id(block) in fenced)

    if not blocks:
        raise InvalidReply("no JSON", "neither an object nor a list in the reply")
    best = max(rank(block) for block in blocks)
    chosen = [block for block in blocks if rank(block) == best]
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
    text = text.replace("\ufeff", "").replace("\u200b", "")
    stripped = _THINK.sub(" ", text)
    ends = list(_THINK_END.finditer(stripped))
    if ends:  # the opening tag was eaten by the endpoint's template
        stripped = stripped[ends[-1].end() :]
    start = _THINK_START.search(stripped)
    if start:
        before = stripped[: start.start()]
        if not (_OBJECT.search(before) or _LIST.search(before)):
            raise InvalidReply("thinking", "the reply ends inside its reasoning block")
        stripped = before
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
    blocks, place = [], 0
    while (place := _next_bracket(text, place)) >= 0:
        try:
            value, end = _STRICT.raw_decode(text, place)
            blocks.append(_Block(place, end, value))
        except (ValueError, RecursionError) as error:
            if not (_OBJECT if text[place] == "{" else _LIST).match(text, place):
                place += 1  # a brace in prose
                continue
            scan = _scan(text, place)
            end = len(text) if scan.end is None else scan.end
            block = _Block(place, end)
            try:
                if isinstance(error, InvalidReply):
                    raise error
                block.value, block.repairs = mend(text[place:end], scan)
            except InvalidReply as problem:
                block.error = problem
            blocks.append(block)
        place = end
    return blocks


def mend(span: str, scan=None) -> tuple:
    """(value, repairs) of text that is nearly JSON. Raises InvalidReply where mending would invent."""
    scan = _scan(span, 0) if scan is None else scan.moved(span)
    if any(_OMISSION.search(span[a:b]) for a, b in scan.comments) or scan.ellipses:
        raise InvalidReply("omission", "part of the answer is left out ('…') in the reply itself")
    repairs = set()
    if scan.comments:
        span = _without(span, scan.comments)
        repairs.add("comment removed")
        scan = _scan(span, 0)
    if scan.end is None:
        span = _close(span, scan)
        repairs.add(CLOSED)
    if '"' not in span and "“" in span:
        span = re.sub("[“”]", '"', span)
        repairs.add("curly quotes")
    tidy = _no_trailing_commas(span)
    for name, decoder, text in (
        ("", _STRICT, span),
        ("line break in a string", _LOOSE, span),
        ("trailing comma", _STRICT, tidy),
        ("trailing comma", _LOOSE, tidy),
    ):
        try:
            return decoder.decode(text.strip()), tuple(sorted((repairs | {name}) - {""}))
        except InvalidReply:
            raise
        except (ValueError, RecursionError):
            continue
    for name, read in (("Python literal", _python_literal), ("json-repair", _json_repair)):
        value = read(span)
        if value is not None and _only_punctuation_differs(value, span):
            return value, tuple(sorted(repairs | {name}))
    raise InvalidReply("malformed", "looks like JSON, but cannot be mended without guessing")


# finding ---------------------------------------------------------------------------------------------------


@dataclass
class _Scan:
    """One bracketed piece: where it ends (None: never), the brackets still open there, whether inside a
    string; comments and ellipses outside strings; how many objects and lists were opened."""

    start: int
    end: int | None
    open: list
    in_string: bool
    comments: list
    ellipses: list
    opened: Counter

    def moved(self, span):
        """The same with places counted from the piece's own start."""
        shift = lambda place: None if place is None else place - self.start  # noqa: E731
        return _Scan(
            0,
            shift(self.end),
            self.open,
            self.in_string,
            [(shift(a), shift(b)) for a, b in self.comments],
            [shift(p) for p in self.ellipses],
            self.opened,
        )


def _scan(text: str, start: int) -> _Scan:
    """Follow brackets from `start`, past strings and comments, however they are quoted."""
    stack, quote, comments, ellipses, opened = [], None, [], [], Counter()
    place, before, size = start, "", len(text)
    while place < size:
        char = text[place]
        if quote:
            if char == "\\":
                place += 1
            elif char == quote and (
                quote == '"' or re.match(r"\s*(?:[,:}\]]|\Z)", text[place + 1 : place + 40])
            ):
                quote, before = None, char
        elif char == '"' or (char == "'" and before in "{[,:"):
            quote = char
        elif char == "#" or text.startswith(("//", "/*"), place):
            stop = text.find("*/", place) if text.startswith("/*", place) else text.find("\n", place)
            stop = size if stop < 0 else stop + (2 if text.startswith("/*", place) else 0)
            comments.append((place, stop))
            place = stop
            continue
        elif char == "…" or text.startswith("...", place):
            ellipses.append(place)
        elif char in "{[":
            stack.append(char)
            opened[char] += 1
        elif char in "}]":
            opener = "{" if char == "}" else "["
            while (
                stack and stack.pop() != opener
            ):  # a bracket that was never closed inside is closed with its parent
                pass
            if not stack:
                return _Scan(start, place + 1, [], False, comments, ellipses, opened)
        if not quote and not char.isspace():
            before = char
        place += 1
    return _Scan(start, None, stack, quote is not None, comments, ellipses, opened)


def _next_bracket(text, place):
    found = [at for at in (text.find("{", place), text.find("[", place)) if at >= 0]
    return min(found) if found else -1


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


# mending ---------------------------------------------------------------------------------------------------


def _close(span, scan):
    """Close the brackets of a piece that ends right after a complete value, else it is cut off."""
    text = re.sub(r"\s*`*\s*\Z", "", span)
    if scan.in_string or text[-1:] not in ('"', "}", "]"):
        raise InvalidReply("truncated", "the reply stops in the middle of its JSON")
    text += "".join("}" if opener == "{" else "]" for opener in reversed(scan.open))
    try:
        _LOOSE.decode(text)
    except (ValueError, RecursionError):
        raise InvalidReply("truncated", "the reply stops in the middle of its JSON") from None
    return text


def _without(text, spans):
    for start, end in reversed(spans):
        text = text[:start] + " " + text[end:]
    return text


def _no_trailing_commas(text):
    """`text` without commas that nothing follows, outside of strings."""
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda match: match.group(1) or "", text, flags=re.S)


def _python_literal(span):
    if _ADJACENT.search(span):  # Python would join the two texts that a missing comma leaves side by side
        return None
    try:
        with warnings.catch_warnings():  # Python warns of escapes such as "\\d"; a reply may hold any
            warnings.simplefilter("ignore")
            tree = ast.parse(span.strip(), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                _object(
                    [
                        (ast.literal_eval(key), ast.literal_eval(value))
                        for key, value in zip(node.keys, node.values, strict=True)
                    ]
                )
        return _json_like(ast.literal_eval(tree))
    except InvalidReply:
        raise
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _json_repair(span):
    """What `json_repair` makes of it, unless it added or dropped an object or a list."""
    try:
        value = json_repair.loads(span, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) and _shapes(value) == _scan(span, 0).opened else None


def _shapes(value) -> Counter:
    """How many objects ("{") and lists ("[") a value is made of."""
    count, waiting = Counter(), [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (dict, list)):
            count["{" if isinstance(item, dict) else "["] += 1
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return count


def _json_like(value):
    """A Python literal as JSON would hold it; None where JSON cannot."""
    if isinstance(value, dict):
        pairs = [(key, _json_like(item)) for key, item in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else None
    if isinstance(value, (list, tuple)):
        return [_json_like(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float)) else None


def _only_punctuation_differs(value, span) -> bool:
    """Whether letters and digits of `value` are those of `span`, in order, and no empty value is made up."""
    source = _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else (" " if match[2] in "nrtbf" else match[2]), span
    )
    empties = len(re.findall(r"""""|''|\[\s*\]|\{\s*\}""", source))
    parts, empty = [], []
    _spell(value, parts, empty)
    given = re.sub(r"\bnone\b", "null", source.lower())
    return (
        _atoms(" ".join(parts).lower().replace("none", "null")) == _atoms(given.replace("none", "null"))
        and len(empty) <= empties
    )


def _spell(value, parts, empty):
    if isinstance(value, dict):
        for key, item in value.items():
            parts.append(key)
            _spell(item, parts, empty)
    elif isinstance(value, list):
        for item in value:
            _spell(item, parts, empty)
    else:
        parts.append("null" if value is None else str(value))
    if value in ("", [], {}):
        empty.append(value)


def _atoms(text) -> str:
    return "".join(_ATOM.findall(text))


def _object(pairs) -> dict:
    """A dict of the pairs. Raises InvalidReply where one key has two values."""
    result = {}
    for key, value in pairs:
        if key in result and result[key] != value:
            raise InvalidReply("repeated key", f"{key!r} is given twice with different values")
        result[key] = value
    return result


def _no_constant(name):
    raise InvalidReply("malformed", f"{name} is not a number that JSON has")
