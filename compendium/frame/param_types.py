"""What each params key may hold: the table params/types.yaml (its head explains it), and the check against it."""

import difflib
import functools
import math

import yaml

from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA, PARAMS

TYPES = PARAMS / "types.yaml"
NAMES = {
    "text": "text",
    "whole": "a whole number",
    "number": "a number",
    "yes or no": "yes or no (true, false)",
    "list": "a list",
    "mapping": "a mapping (`key: value`)",
    "any": "anything",
}


class TypesError(ValueError):
    """A table of types that cannot be used; the message names it."""


@functools.cache
def table() -> dict:
    """The content of params/types.yaml: {study or "profile": {key: rule}}. Raises TypesError where it is not."""
    content = read_yaml(TYPES, TypesError, dict)
    if not all(isinstance(rules, dict) for rules in content.values()):
        raise TypesError(
            "params/types.yaml: should hold a mapping for each study: `B: {type: whole, least: 1}`"
        )
    return content


def problem(value, rule, params: dict, path: tuple = ()):
    """The first thing about `value` that its rule does not allow: (path of keys and indices, sentence), or None.

    Parameters
    ----------
    value : what a YAML file holds.
    rule : an entry of params/types.yaml.
    params : all values of the study, for rules that name another key (`among`).
    """
    rule, kind = _spelt_out(rule)
    if value is None and rule.get("or_null"):
        return None
    if not _is(kind, value) or _outside(rule, value) or _missing(rule, kind, value):
        return path, f"should be {wanted(rule)}, not {_shown(value)}"
    known = _known(rule, params)
    if known is not None and value not in known:
        near = difflib.get_close_matches(str(value), map(str, known), n=1)
        return path, (
            f"should be one of {', '.join(map(str, known))}, not {_shown(value)}"
            f"{f'; did you mean `{near[0]}`?' if near else ''}"
        )
    return _inside(rule, kind, value, params, path)


def wanted(rule) -> str:
    """A rule in words: "a whole number of at least 1"."""
    rule, kind = _spelt_out(rule)
    if "one_of" in rule:
        return f"one of {', '.join(map(str, rule['one_of']))}"
    name = NAMES[kind]
    if kind in ("text", "list", "mapping") and not rule.get("empty"):
        least = rule.get("entries", "one")
        name = {
            "text": "text that is not empty",
            "mapping": f"a mapping of at least {least} `key: value`",
            "list": f"a list of at least {least} {'entry' if least == 'one' else 'entries'}",
        }[kind]
    if "length" in rule:
        name = f"a list of {rule['length']} entries"
    words = {"least": "at least", "above": "more than", "most": "at most", "below": "less than"}
    bounds = [f"{word} {rule[bound]}" for bound, word in words.items() if bound in rule]
    return (
        f"{name}{' of ' if bounds else ''}{' and '.join(bounds)}{' or null' if rule.get('or_null') else ''}"
    )


def _spelt_out(rule) -> tuple[dict, str]:
    """(a rule as a mapping, the type it asks for): `text` alone is {type: text}."""
    rule = {"type": rule} if isinstance(rule, str) else rule
    return rule, rule.get("type") or ("mapping" if "fields" in rule else "any")


def _is(kind, value) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return {
        "text": isinstance(value, str),
        "whole": number and isinstance(value, int),
        "number": number,
        "yes or no": isinstance(value, bool),
        "list": isinstance(value, list),
        "mapping": isinstance(value, dict),
        "any": True,
    }[kind]


def _outside(rule, value) -> bool:
    return (
        ("least" in rule and value < rule["least"])
        or ("most" in rule and value > rule["most"])
        or ("above" in rule and value <= rule["above"])
        or ("below" in rule and value >= rule["below"])
    )


def _missing(rule, kind, value) -> bool:
    if kind not in ("text", "list", "mapping"):
        return False
    least = rule.get("entries", 0 if rule.get("empty") else 1)
    return len(value) < least or ("length" in rule and len(value) != rule["length"])


def _known(rule, params):
    """The values that a rule allows, or None where it allows any."""
    if "one_of" in rule:
        return rule["one_of"]
    if "among" in rule:
        return list(params.get(rule["among"]) or ())
    return None if "ids" not in rule else [name for place in rule["ids"] for name in _ids(place)]


def _inside(rule, kind, value, params, path):
    """The first problem with an entry of a list or mapping."""
    if kind == "list":
        entries = [(index, entry, rule.get("of", "any")) for index, entry in enumerate(value)]
    elif kind == "mapping":
        fields, optional = rule.get("fields"), rule.get("optional", ())
        for key in value:
            found = problem(key, rule.get("keys", "any"), params, (*path, key))
            if found is None and fields and key not in fields:
                found = (*path, key), f"unknown key; there are {', '.join(fields)}"
            if found:
                return found
        lacks = [name for name in fields or () if name not in value and name not in optional]
        if lacks:
            return path, f"lacks the key `{lacks[0]}`: {wanted(fields[lacks[0]])}"
        entries = [
            (key, entry, fields[key] if fields else rule.get("of", "any")) for key, entry in value.items()
        ]
    else:
        return None
    twice = _twice(rule.get("distinct"), kind, value)
    if twice:
        place, first, shared = twice
        return (*path, *place), f"should be another than that of `{first}`: {_shown(shared)} would name both"
    found = (problem(entry, inner, params, (*path, name)) for name, entry, inner in entries)
    return next(filter(None, found), None)


def _twice(distinct, kind, value):
    """(path, key of the first, what they share) of the first entry that is like one before it, or None."""
    seen = {}
    for name, entry in value.items() if kind == "mapping" else enumerate(value) if distinct else ():
        shared = entry.get(distinct) if isinstance(entry, dict) else entry
        if distinct and isinstance(shared, (str, int, float)) and seen.setdefault(shared, name) != name:
            return (name, distinct) if isinstance(entry, dict) else (name,), seen[shared], shared
    return None


@functools.cache
def _ids(place: str) -> tuple:
    """The ids that a file below data/ lists (a mapping's keys, `id` of a list's entries), or a folder's files.

    Raises TypesError for a place that does not hold any.
    """
    name, _, section = place.partition("#")
    if (DATA / name).is_dir():
        names = (path.stem for path in (DATA / name).glob("*.yaml"))
        return tuple(sorted(names, key=lambda stem: (len(stem), stem)))  # C2 before C10
    content = read_yaml(DATA / name, TypesError)
    content = content.get(section) if section and isinstance(content, dict) else content
    if isinstance(content, list):
        content = [entry.get("id") if isinstance(entry, dict) else entry for entry in content]
    if not content or isinstance(content, str):
        raise TypesError(f"data/{name}: lists no ids{f' under `{section}`' if section else ''}")
    return tuple(content)


def _shown(value) -> str:
    """A value as a YAML file would hold it."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    text = text.removesuffix("\n...\n").strip()
    return text if len(text) <= 60 else f"{text[:57]}…"
