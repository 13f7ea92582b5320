"""Nearly JSON made JSON, where mending invents nothing and drops nothing.

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
from dataclasses import dataclass

import json_repair

from compendium.asking.errors import InvalidReply

CLOSED = "brackets closed"
# Python's parser and json_repair do not promise time in proportion to the length: they see no more than this.
LONGEST_GUESS, DEEPEST_GUESS = 50_000, 64  # characters, and brackets inside brackets

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
STRICT, LOOSE = json.JSONDecoder(**_HOOKS), json.JSONDecoder(strict=False, **_HOOKS)


def mend(span: str, scan=None) -> tuple:
    """(value, repairs) of text that is nearly JSON. Raises InvalidReply where mending would invent."""
    scan = read_brackets(span, 0) if scan is None else scan.moved()
    if any(_OMISSION.search(span[a:b]) for a, b in scan.comments) or scan.ellipses:
        raise InvalidReply("omission", "part of the answer is left out ('…') in the reply itself")
    repairs = set()
    if scan.comments:
        span = _without(span, scan.comments)
        repairs.add("comment removed")
        scan = read_brackets(span, 0)
    if scan.end is None:
        span = _close(span, scan)
        repairs.add(CLOSED)
    if '"' not in span and "“" in span:
        span = re.sub("[“”]", '"', span)
        repairs.add("curly quotes")
    tidy = _no_trailing_commas(span)
    for name, decoder, text in (
        ("", STRICT, span),
        ("line break in a string", LOOSE, span),
        ("trailing comma", STRICT, tidy),
        ("trailing comma", LOOSE, tidy),
    ):
        try:
            return decoder.decode(text.strip()), tuple(sorted((repairs | {name}) - {""}))
        except InvalidReply:
            raise
        except (ValueError, RecursionError):
            continue
    if len(span) > LONGEST_GUESS or scan.depth > DEEPEST_GUESS:
        raise InvalidReply("malformed", "looks like JSON, but is too long or too nested to be mended")
    for name, read in (("Python literal", _python_literal), ("json-repair", _json_repair)):
        value = read(span)
        if value is not None and _only_punctuation_differs(value, span):
            return value, tuple(sorted(repairs | {name}))
    raise InvalidReply("malformed", "looks like JSON, but cannot be mended without guessing")


@dataclass
class Scan:
    """One bracketed piece: where it ends (None: never), the brackets still open there, whether inside a
    string; comments and ellipses outside strings; how many objects and lists were opened, and how many inside one
    another at most."""

    start: int
    end: int | None
    open: list
    in_string: bool
    comments: list
    ellipses: list
    opened: Counter
    depth: int

    def moved(self):
        """The same with places counted from the piece's own start."""
        shift = lambda place: None if place is None else place - self.start  # noqa: E731
        return Scan(
            0,
            shift(self.end),
            self.open,
            self.in_string,
            [(shift(a), shift(b)) for a, b in self.comments],
            [shift(p) for p in self.ellipses],
            self.opened,
            self.depth,
        )


def read_brackets(text: str, start: int) -> Scan:
    """Follow brackets from `start`, past strings and comments, however they are quoted."""
    stack, quote, comments, ellipses, opened, depth = [], None, [], [], Counter(), 0
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
            depth = max(depth, len(stack))
        elif char in "}]":
            opener = "{" if char == "}" else "["
            while (
                stack and stack.pop() != opener
            ):  # a bracket that was never closed inside is closed with its parent
                pass
            if not stack:
                return Scan(start, place + 1, [], False, comments, ellipses, opened, depth)
        if not quote and not char.isspace():
            before = char
        place += 1
    return Scan(start, None, stack, quote is not None, comments, ellipses, opened, depth)


def _close(span, scan):
    """Close the brackets of a piece that ends right after a complete value, else it is cut off."""
    text = re.sub(r"\s*`*\s*\Z", "", span)
    if scan.in_string or text[-1:] not in ('"', "}", "]"):
        raise InvalidReply("truncated", "the reply stops in the middle of its JSON")
    text += "".join("}" if opener == "{" else "]" for opener in reversed(scan.open))
    try:
        LOOSE.decode(text)
    except (ValueError, RecursionError):
        raise InvalidReply("truncated", "the reply stops in the middle of its JSON") from None
    return text


def _without(text, spans):
    places = [0, *(place for span in spans for place in span), len(text)]
    return " ".join(text[start:end] for start, end in zip(places[::2], places[1::2], strict=True))


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
    return (
        value if isinstance(value, (dict, list)) and _shapes(value) == read_brackets(span, 0).opened else None
    )


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
