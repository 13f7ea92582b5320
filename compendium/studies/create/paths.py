"""Connection paths: chains of (head, relation, tail) triples, read from answers, checked and written as text.

CREATE, section 3.2: a path is structurally valid if every triple starts where the one before ended; it must
begin at the query's head entity and end in the required relation and tail. Whether it is true is another
question.
"""

import ast
import html
import json
import re
import unicodedata
from dataclasses import dataclass

from compendium.asking.json_text import MOST_BROKEN
from compendium.asking.mending import LONGEST_GUESS
from compendium.asking.reasoning import tell

TRIPLE_KEYS = (
    ("head", "subject", "source", "from", "entity1", "entity_1", "start", "h", "s"),
    ("relation", "relationship", "predicate", "rel", "edge", "r", "p"),
    ("tail", "object", "target", "to", "entity2", "entity_2", "end", "t", "o"),
)
NAME_KEYS = ("label", "name", "text", "entity", "value", "id")
PATH_KEYS = ("path", "triples", "chain", "connection")
SET_KEYS = ("paths", "answer", "answers", "connections")
RULES = ("chain", "shared")


class PathError(ValueError):
    """An answer or a path that cannot be read at all; the message says what would be right."""


@dataclass(frozen=True)
class Query:
    """What is asked: paths from `head` to any entity that stands in `relation` to `tail`. `class_relation`: what
    the two members of the class have in common that the query was made from, where that is known."""

    index: int
    head: str
    relation: str
    tail: str
    text: str = ""
    class_relation: str = ""


@dataclass(frozen=True)
class Answer:
    """What was read from one reply.

    paths : list of paths, each a tuple of triples, each triple a tuple of str (three, if it is well formed).
    probabilities : one float a path, NaN unless the reply gave one (verbalised sampling).
    problems : one sentence for everything that was not as asked; empty for a clean reply.
    """

    paths: list
    probabilities: list
    problems: list


def normalise(name: str) -> str:
    """A name as it is compared: lower case, single spaces, composed accents, no quotation marks around it."""
    text = unicodedata.normalize("NFC", str(name)).replace("’", "'")
    return re.sub(r"\s+", " ", text).strip().strip('"“”').strip().lower()


def path_key(path) -> tuple:
    """A path as it is compared with others: its names normalised."""
    return tuple(tuple(normalise(part) for part in triple) for triple in path)


def path_text(path) -> str:
    """A path as the text that is embedded (CREATE, "Distance function").

    The final triple is left out unless it is the only one (every answer ends alike), the first head too
    (every answer starts alike); lower case; the relation in brackets; ` | ` between triples:
    (A, born in, B), (B, home of, C), (C, occupation, poet) -> "[born in] b | b [home of] c".
    Raises PathError for a path without triples.
    """
    if not path:
        raise PathError("a path without triples has no text")
    kept = path[:-1] if len(path) > 1 else path
    parts = []
    for position, triple in enumerate(triple or ("",) for triple in kept):
        head, relation, tail = triple[0], " ".join(triple[1:-1]), triple[-1]
        parts.append(f"[{relation}] {tail}" if position == 0 else f"{head} [{relation}] {tail}")
    return " | ".join(parts).lower()


def fault(path, query: Query, rule: str = "chain") -> str:
    """Why a path is not structurally valid, or "" if it is.

    rule "chain": each triple starts where the one before ended, the first at the query's head, the last is
    (anything, relation, tail) of the query. rule "shared": neighbours need only share an entity, in any
    place, and the ends are not looked at (close to the validity flags in the released files, which let such
    paths pass).
    """
    if rule not in RULES:
        raise PathError(f"rule {rule!r} is not one of {', '.join(RULES)}")
    if not path:
        return "the path has no triples"
    for position, triple in enumerate(path):
        if len(triple) != 3:
            return f"triple {position} has {len(triple)} elements, should have 3 (head, relation, tail)"
        if not all(normalise(part) for part in triple):
            return f"triple {position} has an empty element"
    path = path_key(path)
    if rule == "shared":
        for position, (first, second) in enumerate(zip(path, path[1:])):
            if not {first[0], first[2]} & {second[0], second[2]}:
                return f"triples {position} and {position + 1} share no entity"
        return ""
    if path[0][0] != normalise(query.head):
        return f"starts at {path[0][0]!r}, should start at {normalise(query.head)!r}"
    for position, (first, second) in enumerate(zip(path, path[1:])):
        if first[2] != second[0]:
            return (
                f"breaks between triples {position} and {position + 1}: {first[2]!r} is followed by "
                f"{second[0]!r}"
            )
    if path[-1][1:] != (normalise(query.relation), normalise(query.tail)):
        return (
            f"ends in ({path[-1][1]}, {path[-1][2]}), should end in "
            f"({normalise(query.relation)}, {normalise(query.tail)})"
        )
    return ""


def parse_answer(reply: str) -> Answer:
    """The paths of one reply, from its last <answer> block where it has one.

    Takes what models really send: a <think> block before, a fence instead of the tag, a tag never closed, an
    answer cut off half-way (the paths that are complete are kept, nothing is filled in), a Python literal
    instead of JSON, a path given as text. Exact repeats are dropped. Every such thing is named in `problems`.
    Raises PathError where `reply` is no text.
    """
    if not isinstance(reply, str):
        raise PathError(f"a reply should be text, not {type(reply).__name__}")
    problems = []
    text, _, unfinished = tell(reply)
    if unfinished:
        problems.append("the <think> block is never closed, so there is no answer after it")
        text = text if "<answer>" in text else ""
    if not text.strip():
        return Answer([], [], problems or ["the reply is empty"])
    block = _answer_block(text, problems)
    value = _leading_value(block, problems)
    if value is None:
        paths, odds = _complete_paths(block)
        said = f"complete paths kept: {len(paths)}" if paths else "no path could be read"
        problems.append(f"the answer is not whole JSON: {said}")
    else:
        paths, odds = read_paths(value, problems)
    return _without_repeats(paths, odds, problems)


def read_paths(value, problems: list) -> tuple[list, list]:
    """Paths and their stated probabilities from a decoded value, by shape: {"1": path, …}, [path, …], one
    path, or any of these as JSON or Python text. What is no path is named in `problems`."""
    value = decode(value)
    if isinstance(value, Pairs):
        for key in SET_KEYS:
            if key in value.keys() and len(value.items) == 1:
                return read_paths(value.get(key), problems)
        if any(key in value.keys() for key in PATH_KEYS):
            value = [value]
        else:
            repeated = len(value.items) - len(set(value.keys()))
            if repeated:
                problems.append(f"{repeated} path numbers are given twice; every path is kept")
            value = [item for _, item in value.items]
    elif isinstance(value, list) and value and _is_triple(value[0]) and not any(map(_is_path, value)):
        problems.append("the answer is one bare path, not a set of paths")
        value = [value]
    if not isinstance(value, list):
        problems.append(f"expected paths, found {type(value).__name__}")
        return [], []
    paths, odds = [], []
    for number, item in enumerate(value, 1):
        item, chance = decode(item), float("nan")
        if isinstance(item, Pairs):
            chance = _probability(item)
        path = read_path(item)
        if not path:
            problems.append(f"path {number} is {'empty' if path == () else 'no list of triples'}")
            continue
        paths.append(path)
        odds.append(chance)
    return paths, odds


def read_path(value):
    """One path as a tuple of triples, by shape; None where it is no path, () for an empty one.

    Takes a list of triples; {"path": …}; {"0": triple, …}; {"entities": [A, B, C], "relations": [r, s]}; one
    bare triple; a flat chain [A, r, B, s, C]; and text: "(A, r, B), (B, s, C)", "A | r | B; B | s | C",
    "A -> r -> B -> s -> C".
    """
    value = decode(value)
    if isinstance(value, Pairs):
        named = next((value.get(key) for key in PATH_KEYS if key in value.keys()), None)
        if named is not None:
            return read_path(named)
        if {"entities", "relations"} <= set(value.keys()):
            names, links = (decode(value.get(key)) for key in ("entities", "relations"))
            if not (isinstance(names, list) and isinstance(links, list) and len(names) == len(links) + 1):
                return None
            return tuple(tuple(map(clean_name, triple)) for triple in zip(names, links, names[1:]))
        bare = any(key in value.keys() for key in TRIPLE_KEYS[1])
        value = [value] if bare else [item for _, item in value.items]
    if isinstance(value, str):
        return _path_of_text(value)
    if not isinstance(value, list):
        return None
    triples = tuple(read_triple(part) for part in value)
    if len(triples) > 1 and all(len(triple) == 1 for triple in triples) and _is_triple(value):
        return _chain([triple[0] for triple in triples]) or triples
    return () if not any(triples) else triples


def _chain(names: list):
    """(A, r, B, s, C) as triples; None for a number of names that makes none."""
    triples = tuple(tuple(names[start : start + 3]) for start in range(0, len(names) - 2, 2))
    return (triples or None) if len(names) % 2 else None


def _path_of_text(text: str):
    """A path that is written out; None where it cannot be told what is an entity and what a relation."""
    pieces = re.findall(r"\(([^()]+)\)", text) or re.split(r"\s*[;\n]\s*", text.strip().strip(";"))
    triples = tuple(read_triple(piece) for piece in pieces)
    if triples and all(len(triple) == 3 for triple in triples):
        return triples
    return _chain([clean_name(name) for name in re.split(r"\s*(?:->|→|\|)\s*", text.strip())])


def clean_name(value) -> str:
    """A name as text: single spaces, character entities (`&amp;`) undone, what no file can hold (lone
    surrogates) replaced; of an object its label; nothing ("") for a missing one."""
    if isinstance(value, (dict, Pairs)):
        value = decode(value)
        named = [value.get(key) for key in NAME_KEYS if key in value.keys()]
        value = named[0] if named else " ".join(str(item) for _, item in value.items)
    if value is None or isinstance(value, float) and value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = re.sub(
        r"&(#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);", lambda found: html.unescape(found[0]), str(value)
    )
    return re.sub(r"[\s\x00-\x1f]+", " ", re.sub("[\ud800-\udfff]", "\ufffd", text)).strip()


def read_triple(value) -> tuple:
    """One triple as a tuple of str, from [head, relation, tail], {"head": …}, or "head | relation | tail".

    A value with another number of elements keeps them all: `fault` then says so.
    """
    value = decode(value)
    if isinstance(value, Pairs):
        named = [next((value.get(key) for key in keys if key in value.keys()), None) for keys in TRIPLE_KEYS]
        value = (
            [part for part in named if part is not None] if any(named) else [item for _, item in value.items]
        )
    if isinstance(value, str):
        inner = value.strip().strip("()")
        for separator in ("|", "->", "—", ";", ","):
            if inner.count(separator) == 2:
                value = inner.split(separator)
                break
        else:
            value = [value]
    if not isinstance(value, (list, tuple)):
        value = [value]
    return tuple(map(clean_name, value))


class Pairs:
    """A JSON object that keeps keys given twice."""

    def __init__(self, items):
        self.items = list(items)

    def keys(self):
        return [str(key).lower() for key, _ in self.items]

    def get(self, key):
        return next(item for name, item in self.items if str(name).lower() == key)


def decode(value):
    """A value with the text form undone: JSON or a Python literal inside a string is read (objects as
    `Pairs`, tuples as lists), up to three layers deep; a string that holds neither stays as it is."""
    for _ in range(3):
        if not isinstance(value, str):
            break
        text = value.strip()
        if not text or text[0] not in "[{(\"'":
            break
        found = _literal(text)
        if found is None or found == value:
            break
        value = found
    if isinstance(value, tuple):
        return list(value)
    return Pairs(value.items()) if isinstance(value, dict) else value


def _literal(text: str):
    """`text` as JSON, else as a Python literal (JSON's null, true, false and NaN allowed in it), else
    None."""
    try:
        return json.loads(text, object_pairs_hook=Pairs)
    except (ValueError, RecursionError):
        pass
    if len(text) > LONGEST_GUESS:
        return None
    python = re.sub(r"\b(null|nan|NaN)\b(?=\s*[,\]\)}])", "None", text)
    python = re.sub(r"\b(true|false)\b(?=\s*[,\]\)}])", lambda found: found[0].capitalize(), python)
    for form in (text, python):
        try:
            return ast.literal_eval(form)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _leading_value(block: str, problems: list):
    """The object or list a block starts with, or None where it is not whole; text after it is named."""
    value = decode(block)
    if not isinstance(value, str):
        return value
    try:
        value, end = json.JSONDecoder(object_pairs_hook=Pairs).raw_decode(block)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str):
        return None
    problems.append(f"text follows the answer: {block[end:].strip()[:40]!r}")
    return value


def _answer_block(text: str, problems: list) -> str:
    """The part of a reply that holds its answer."""
    if "<answer>" in text:
        block = text[text.rindex("<answer>") + len("<answer>") :]
        if "</answer>" in block:
            block = block[: block.index("</answer>")]
        else:
            problems.append("the <answer> tag is never closed")
    else:
        problems.append("there is no <answer> tag")
        block = text
    fences = re.findall(r"```[a-zA-Z]*\s*\n(.*?)(?:```|\Z)", block, flags=re.S)
    if fences:
        block = fences[-1]
    start = re.search(r"[{\[]", block)
    return block[start.start() :].strip() if start else block.strip()


def _complete_paths(block: str) -> tuple[list, list]:
    """Paths of a broken or cut-off block: every `"number": [[…], …]` that can be read whole."""
    reader, paths, position = json.JSONDecoder(), [], 0
    opening = re.compile(r"\[\s*(?=\[)")
    broken = 0
    while broken < MOST_BROKEN and (found := opening.search(block, position)):
        try:
            item, position = reader.raw_decode(block, found.start())
        except (ValueError, RecursionError):
            position, broken = found.end(), broken + 1
            continue
        if _is_path(item):
            paths.append(tuple(read_triple(part) for part in item))
        else:
            position = found.end()
    return paths, [float("nan")] * len(paths)


def _without_repeats(paths: list, odds: list, problems: list) -> Answer:
    seen, kept = {}, []
    for number, path in enumerate(paths, 1):
        first = seen.setdefault(path_key(path), number)
        if first == number:
            kept.append(number - 1)
        else:
            problems.append(f"path {number} repeats path {first}: dropped")
    return Answer([paths[i] for i in kept], [odds[i] for i in kept], problems)


def _probability(item: Pairs) -> float:
    for key in ("probability", "prob", "p"):
        if key in item.keys():
            text = str(item.get(key)).strip()
            try:
                return float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
            except ValueError:
                return float("nan")
    return float("nan")


def _is_triple(value) -> bool:
    value = decode(value)
    return (
        isinstance(value, list)
        and bool(value)
        and not any(isinstance(decode(part), (list, Pairs)) for part in value)
    )


def _is_path(value) -> bool:
    value = decode(value)
    return (
        isinstance(value, list)
        and bool(value)
        and all(_is_triple(part) or isinstance(decode(part), Pairs) for part in value)
    )
