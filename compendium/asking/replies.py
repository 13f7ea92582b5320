"""From a reply's text to values: labels of features (a score: `compendium.asking.scores`, a list: `….items`).

Each parser takes the text of a reply and returns a `Parsed`, or raises InvalidReply with a kind for the
counts and a detail for the reader. They accept other spellings of what was asked for; they never fill in what
is missing. A parser for `run_stage(parse=...)` is one of these with its arguments bound, e.g.
`functools.partial(labels_from_reply, features=FEATURES)`.
"""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import Parsed, answer_text, around, extract_json, json_blocks
from compendium.asking.mending import CLOSED

__all__ = [
    "Parsed",
    "extract_json",
    "object_with",
    "labels_from_reply",
    "as_label",
    "as_number",
    "is_placeholder",
    "list_in_cell",
    "plain",
]

_TRUE, _FALSE = {"true", "yes", "1", "1.0"}, {"false", "no", "0", "0.0"}
_NUMBER = re.compile(r"([+-]?\d+(?:[.,]\d+)?)(?:\s*(?:/|out of)\s*(\d+(?:\.0)?))?")
_PLACEHOLDER = re.compile(
    r"(?:n/?a\b.*|none|null|unknown|tbd|placeholder\b.*|missing\b.*|omitted\b.*|not provided|"
    r"\.\.\.|…|-+|\?+|)",
    re.I | re.S,
)
_NAMES = ("name", "feature", "dimension", "id", "key", "criterion", "label")
DEEPEST = 4  # levels of wrapping that are looked through: {"result": {"features": {...}}}


# values ----------------------------------------------------------------------------------------------------


def as_label(value) -> bool:
    """True or False from true, "True", "yes", 1 and the like. Raises InvalidReply("not a label") else."""
    text = str(value).strip().strip(".").lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidReply("not a label", f"{value!r} is neither true nor false")


def as_number(value, lo: float = -math.inf, hi: float = math.inf, whole: bool = False) -> float:
    """A number from 7, "7", 7.0, "7/10" (where `hi` is 10), "7,5", "**7**".

    Raises InvalidReply: "not a number", "out of range" (outside lo … hi, or "7/5" where `hi` is 10), "not
    whole".
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidReply("not a number", f"{value!r}")
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip().strip("*").strip())
        if not match:
            raise InvalidReply("not a number", f"{value!r}")
        if match[2] is not None and float(match[2]) != hi:
            raise InvalidReply("out of range", f"{value!r} is on another scale than {lo:g} to {hi:g}")
        value = match[1].replace(",", ".")
    try:
        number = float(value)
    except OverflowError:  # an integer of some hundred digits
        number = math.inf if value > 0 else -math.inf
    if not lo <= number <= hi:  # also NaN
        raise InvalidReply("out of range", f"{number:g} is not in {lo:g} to {hi:g}")
    if whole and not number.is_integer():
        raise InvalidReply("not whole", f"{number:g}")
    return number


def is_placeholder(text) -> bool:
    """Whether a text stands for something that is missing: "N/A", "Missing …", "...", "" or null."""
    return text is None or (isinstance(text, str) and bool(_PLACEHOLDER.fullmatch(text.strip())))


def list_in_cell(cell: str) -> list:
    """The list that a cell holds as JSON or as a Python literal. Raises InvalidReply("not a list")."""
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(cell)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if isinstance(value, (list, tuple)):
            return list(value)
    raise InvalidReply("not a list", f"{str(cell)[:60]!r}")


# objects with wanted keys ----------------------------------------------------------------------------------


def object_with(
    text: str, wanted: Sequence[str], names: Sequence[str] = _NAMES, alone: bool = False
) -> Parsed:
    """The object in a reply that holds all of the `wanted` keys: `values` is {wanted key: its value, ...} in
    their order.

    Keys may be spelled otherwise ("Sensory Organs" for "sensory_organs"), the object may be wrapped
    ({"result": {...}}), be JSON inside a string, or be a list of objects that name their key under one of
    `names`. Further keys are left in `details`. Of several blocks the last that holds all of them counts;
    `alone`: an earlier one must not say something else (a quoted example and a verdict look the same).
    Raises InvalidReply: what `extract_json` raises, "missing" (which keys), "conflict" (a later block with
    only some of the keys says something else), "repeated" (one key twice in a list).
    """
    wanted = tuple(wanted)
    fast = _as_asked(text, wanted)
    if fast is not None:
        return fast
    body, repairs = answer_text(text)
    blocks = json_blocks(body)
    if not blocks:
        raise InvalidReply("no JSON", "neither an object nor a list in the reply")
    later, fewest, problem = [], None, None
    for block in reversed(blocks):
        if block.error is not None:
            if block.error.kind in ("truncated", "omission"):
                raise block.error  # the last word is incomplete; an earlier draft does not stand in for it
            problem = problem or block.error
            continue
        found, notes = _hold(block.value, wanted, names)
        lacking = [key for key in wanted if key not in found]
        if lacking and CLOSED in block.repairs:
            raise InvalidReply("truncated", f"the reply stops before {', '.join(lacking)}")
        if lacking:
            later.append(found)
            fewest = lacking if fewest is None or len(lacking) < len(fewest) else fewest
            continue
        if alone:
            place = blocks.index(block)
            later += [_hold(each.value, wanted, names)[0] for each in blocks[:place] if each.error is None]
        if any(key in part and part[key] != found[key] for part in later for key in wanted):
            raise InvalidReply("conflict", "two blocks of the reply say different things")
        details = {key: value for key, value in found.items() if key not in wanted}
        notes = notes | ({"extra keys"} if details else set())
        return Parsed(
            {key: found[key] for key in wanted},
            tuple(sorted({*repairs, *block.repairs, *notes, *around(body, block)})),
            details,
        )
    if problem is not None and fewest in (None, list(wanted)):
        raise problem
    raise InvalidReply("missing", ", ".join(fewest))


def _as_asked(text, wanted):
    """The common case, fast: the text is the object, its keys those wanted."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and value.keys() == set(wanted):
        return Parsed({key: value[key] for key in wanted}, (), {})
    return None


def _hold(value, wanted, names, depth=0) -> tuple:
    """({key: value} with wanted keys under their own names, what that took) of the part that holds most."""
    if isinstance(value, str) and depth and value.strip()[:1] in ("{", "["):
        try:
            inner = extract_json(value)
        except InvalidReply:
            return {}, set()
        found, notes = _hold(inner.values, wanted, names, depth)
        return found, notes | set(inner.repairs) | {"JSON in a string"}
    if isinstance(value, list):
        value, notes = _by_name(value, names), {"list of features"}
    else:
        notes = set()
    if not isinstance(value, dict):
        return {}, set()
    found, renamed = _renamed(value, wanted)
    notes = notes | ({"keys renamed"} if renamed else set())
    if depth >= DEEPEST or all(key in found for key in wanted):
        return found, notes
    parts = [
        _hold(item, wanted, names, depth + 1)
        for item in value.values()
        if isinstance(item, (dict, list, str))
    ]
    parts = [(inner, extra) for inner, extra in parts if all(key in inner for key in wanted)]
    if parts and all(inner == parts[0][0] for inner, _ in parts):
        return parts[0][0], notes | parts[0][1] | {"unwrapped"}
    return found, notes


def _by_name(items, names):
    """A list of objects as one: by the name each gives itself, or merged where each is {name: value}."""
    result = {}
    for item in items:
        if not isinstance(item, dict):
            return None
        own = next((name for name in names if isinstance(item.get(name), str)), None)
        pairs = {item[own]: {key: value for key, value in item.items() if key != own}} if own else item
        for key, value in pairs.items():
            if key in result and result[key] != value:
                raise InvalidReply("repeated", f"{key!r} is given twice with different values")
            result[key] = value
    return result


def _renamed(value, wanted) -> tuple:
    """`value` with wanted keys under their own names, and whether any was spelled otherwise."""
    asked = {plain(key): key for key in wanted}
    result, renamed = {}, False
    for key, item in value.items():
        target = (
            key
            if key in wanted
            else asked.get(plain(key)) or asked.get(plain(key).lstrip("0123456789")) or key
        )
        if target in result and result[target] != item:
            raise InvalidReply("repeated key", f"{target!r} is given twice with different values")
        renamed |= target != key
        result[target] = item
    return result, renamed


@lru_cache(maxsize=65536)
def plain(key) -> str:
    """A key's letters and digits in lower case: two spellings of one name have the same."""
    return re.sub(r"[^a-z0-9]", "", str(key).lower())


def _distinct(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result


def _refuse(name):
    raise ValueError(f"{name} is no JSON")


# labels of features ----------------------------------------------------------------------------------------


class Label(BaseModel):
    """What a judge says of one feature: what it saw, whether that departs, and why."""

    model_config = ConfigDict(extra="ignore")
    feature_described: str = ""
    is_departure: Annotated[bool, BeforeValidator(as_label)]
    reasoning: str = ""


_LABEL_KEYS = {
    "isdeparture": "is_departure",
    "departure": "is_departure",
    "departs": "is_departure",
    "featuredescribed": "feature_described",
    "described": "feature_described",
    "description": "feature_described",
    "reasoning": "reasoning",
    "reason": "reasoning",
    "justification": "reasoning",
}


def labels_from_reply(text: str, features: Sequence[str]) -> Parsed:
    """Labels of features (AlienBench, appendix B): `values` is {feature: bool} for every one of `features`,
    in order.

    `details` is {feature: {"feature_described", "is_departure", "reasoning"}}; texts a judge left out are "".
    Raises InvalidReply: what `object_with` raises, "not a label", and "placeholder" for the schema copied as
    an answer.
    """
    answer = object_with(text, features)
    repairs, values, details = set(answer.repairs), {}, {}
    for feature, said in answer.values.items():
        label, notes = _label(feature, said)
        repairs |= notes
        values[feature] = label.is_departure
        details[feature] = label.model_dump()
    return Parsed(values, tuple(sorted(repairs)), details)


def _label(feature, said):
    notes = set()
    if not isinstance(said, Mapping):
        said = {"is_departure": said}
        notes.add("bare label")
    known = {}
    for key, value in said.items():
        name = _LABEL_KEYS.get(plain(key))
        if name is None:
            notes.add("extra keys")
            continue
        if name in known and known[name] != value:
            raise InvalidReply("repeated key", f"{feature}: {name} is given twice with different values")
        if name != key:
            notes.add("keys renamed")
        known[name] = value
    if known.get("is_departure") is None:
        raise InvalidReply("missing", f"{feature}: is_departure")
    if str(known.get("feature_described")).strip() in ("...", "…"):
        raise InvalidReply("placeholder", f"{feature}: the schema is copied, not filled in")
    if not isinstance(known["is_departure"], bool):
        notes.add("label respelled")
    texts = {name: known[name] for name in ("feature_described", "reasoning") if known.get(name) is not None}
    if len(texts) < 2 and "bare label" not in notes:
        notes.add("text missing")
    try:
        label = Label(
            is_departure=known["is_departure"],
            **{name: value if isinstance(value, str) else json.dumps(value) for name, value in texts.items()},
        )
    except ValidationError:  # pydantic wraps the reason; say it in our own words
        raise InvalidReply(
            "not a label", f"{feature}: {known['is_departure']!r} is neither true nor false"
        ) from None
    return label, notes
