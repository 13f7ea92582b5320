"""CREATE: files of answers taken apart into records, whatever their outer shape.

A record is one query's columns. It stands on a line of its own (JSON or Python text), in a JSON list, in an
object under a key or by query number, or crosswise (a column's values together, as table programs write it).
The file may be packed (.gz, .bz2), start with a byte-order mark, and end its lines as it likes.
"""

import bz2
import gzip
import json
import re
import zlib
from pathlib import Path

import numpy as np

from compendium.frame.paths import shown
from compendium.studies.create.errors import CreateError
from compendium.studies.create.paths import Pairs, decode

SUFFIXES = (".gz", ".bz2", ".jsonl", ".ndjson", ".json")
PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress}
# Column names are compared as `column_name` writes them, without their sample number; of several that fit,
# the first in the file that holds something counts.
ROLES = {
    "kept": r"(kept_|filtered_)?(paths|connections)",
    "all": r"(parsed|all|predicted|generated|extracted|model)_(paths|connections)",
    "reply": r"(raw_)?(path_|model_)?(prediction|response|answer|output|completion|generation|reply)s?(_raw)?",
    "valid": r"(is_|structural(ly)?_)?valid(ity)?(_?(per_?path|scores?|flags?))*",
    "reason": r"valid(ity)?_?reasons?",
    "factual_triples": r"parsed_(scores?_)?factual(ity)?(_scores?)?|(triple|relation)_factual(ity)?(_scores?)?"
    r"|factual(ity)?_(scores?_)?per_?(triple|relation)s?",
    "factual_path": r"(is_|path_)?factual(ity)?(_scores?)?(_per_?path)?",
    "factual_reply": r"raw_responses?_factual(ity)?|factual(ity)?_raw_responses?",
    "specific_triples": r"(raw_|triple_)?(salience|specificity|strength)(_scores?)?"
    r"|(salience|specificity|strength)_(scores?_)?per_?triples?",
    "specific_path": r"(min|path)_(salience|specificity|strength)(_scores?)?"
    r"|(salience|specificity|strength)_(scores?_)?per_?path",
    "specific_reply": r"(salience|specificity)_raw_responses?|raw_responses?_(salience|specificity)",
    "keep": r"ind(ices|exes|ex)_(to_keep|kept)|kee?pt?_(ind(ices|exes)|mask)",
}
PATHS = ("kept", "all", "reply")
NOTHING = ("", "nan", "none", "null", "n/a")  # what stands for a missing value, in lower case
QUERY_KEYS = {
    "index": ("index", "query_index", "query_id", "question_id", "qid", "id", "idx"),
    "text": ("query", "question", "natural_language_query", "query_text", "text"),
    "head": ("entity_a", "head", "head_entity", "start_entity", "entity1", "entity_1"),
    "relation": ("rel_b", "relation", "relation_b", "target_relation", "rel"),
    "tail": ("entity_b", "tail", "tail_entity", "target_entity", "end_entity", "entity2", "entity_2"),
}


def column_name(key) -> str:
    """A column's name as it is compared: "parsedPaths", "Parsed Paths" and "PARSED-PATHS" are parsed_paths."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key))
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def roles_of(key) -> list:
    """[(role, sample number)] that a column's name can have."""
    name, number = re.fullmatch(r"(.*?)_?(\d+)?", column_name(key)).groups()
    return [(role, int(number or 0)) for role, pattern in ROLES.items() if re.fullmatch(pattern, name)]


def source_of(path) -> str:
    """What a file's answers are called: its name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in SUFFIXES:
        name = Path(name).stem
    return name


def read_records(path) -> list:
    """[(place, {column: value})] of a file, one a query; place is "line 3", or "entry 3" of a list.

    Raises CreateError naming file and line: for a file that is missing, damaged or not text, and for text
    that is not JSON.
    """
    path = Path(path)
    values = _values(path, _text(path))
    if len(values) == 1:
        place, value = values[0]
        rows = _rows(value)
        if rows is not None:
            values = [(f"entry {number}", row) for number, row in enumerate(rows, 1)]
        elif not isinstance(value, Pairs):
            raise CreateError(
                f"{shown(path)}, {place}: should be a JSON object, not a {type(value).__name__}"
            )
    for place, value in values:
        if not isinstance(value, Pairs):
            raise CreateError(
                f"{shown(path)}, {place}: should be a JSON object, not a {type(value).__name__}"
            )
    return [(place, _columns(path, place, value)) for place, value in values]


def _text(path: Path) -> str:
    """The file's text, unpacked, its byte-order mark taken off."""
    try:
        data = path.read_bytes()
        for mark, unpack in PACKED.items():
            data = unpack(data) if data.startswith(mark) else data
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CreateError(
            f"{shown(path)}: cannot be read ({reason}); it should be JSON lines in UTF-8"
        ) from None
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CreateError(
            f"{shown(path)}, line {line}: cannot be read as text ({error.reason}); it should be "
            "JSON lines in UTF-8"
        ) from None


def _values(path: Path, text: str) -> list:
    """[(place, value)] of the JSON values that stand one after the other, commas between them allowed."""
    reader, found, position, line = json.JSONDecoder(object_pairs_hook=Pairs), [], 0, 1
    gap = re.compile(r"[\s,]*")
    while (start := gap.match(text, position).end()) < len(text):
        line += text.count("\n", position, start)
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        try:
            value, position = reader.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            value, position = decode(text[start:end]), end  # a line may also be Python text
            if isinstance(value, str):
                kind = "starts as a JSON list but is none" if text[start] == "[" else "not JSON"
                raise CreateError(
                    f"{shown(path)}, line {line}: {kind} ({error}); each line should hold one query "
                    "as a JSON object"
                ) from None
        found.append((f"line {line}", decode(value)))
        line += text.count("\n", start, position)
    return found


def _rows(value):
    """The records inside one outer value, or None where the value is a record itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Pairs) or not value.items:
        return None
    columns = {str(key).lower(): item for key, item in value.items}
    if isinstance(columns.get("columns"), list) and isinstance(columns.get("data"), list):
        return [Pairs(zip(columns["columns"], row)) for row in columns["data"]]
    inner = [item for _, item in value.items]
    if _is_record(value):
        heads = next((item for key, item in value.items if column_name(key) in QUERY_KEYS["head"]), None)
        if isinstance(heads, list) and all(
            isinstance(item, list) and len(item) == len(heads) for item in inner
        ):
            return [Pairs((key, item[row]) for key, item in value.items) for row in range(len(heads))]
        if isinstance(heads, Pairs) and all(isinstance(item, Pairs) for item in inner):
            return [
                Pairs((key, dict(item.items).get(row)) for key, item in value.items) for row, _ in heads.items
            ]
        return None
    if all(isinstance(item, Pairs) and _is_record(item) for item in inner):
        return [Pairs([*item.items, ("query_index", key)]) for key, item in value.items]
    lists = [item for item in inner if isinstance(item, list) and item and isinstance(item[0], Pairs)]
    lists += [rows for item in inner if isinstance(item, Pairs) and (rows := _rows(item))]
    return lists[0] if len(lists) == 1 else None


def _is_record(value: Pairs) -> bool:
    return any(role in PATHS for key, _ in value.items for role, _ in roles_of(key))


def _columns(path: Path, place: str, record: Pairs) -> dict:
    """A record's columns; those inside an object that is no column itself are lifted out of it."""
    names = [key for key, _ in record.items]
    twice = next((key for key in names if names.count(key) > 1), None)
    if twice is not None:
        raise CreateError(f"{shown(path)}, {place}: the column {twice!r} is given twice; once would be right")
    columns, queue = {}, list(record.items)
    for key, value in queue:
        if isinstance(value, Pairs) and (column_name(key) in QUERY_KEYS["text"] or not roles_of(key)):
            queue += value.items
        else:
            columns.setdefault(key, value)
    return columns


def by_triple(marks, mark, role: str):
    """(list by triple or None, value of the whole path or None), whichever of two columns they stand in."""
    lists, single = [], None
    for value in (marks, mark):
        value = listed(decode(value), role)
        if isinstance(value, list):
            lists.append(value)
        elif not missing(value):
            single = value
    return next((value for value in lists if value), None), single


def listed(value, role: str):
    """An object that stands for a list as the list: by number ("1", "path 2", in the numbers' order), or under
    a word such as "judgments"; of the roles in `PATHS` also by any names. Anything else as it is."""
    if not isinstance(value, Pairs):
        return value
    words = ("judgments", "judgements", "scores", "labels", "paths")
    inside = next((decode(value.get(word)) for word in words if word in value.keys()), None)
    if isinstance(inside, list):
        return inside
    numbers = [re.search(r"(\d+)$", str(key)) for key, _ in value.items]
    if all(numbers):
        return [
            item
            for _, item in sorted(
                zip((int(n[1]) for n in numbers), (item for _, item in value.items)),
                key=lambda entry: entry[0],
            )
        ]
    if role not in PATHS:
        return value
    one = any(key in value.keys() for key in ("path", "triples", "entities"))
    return [value] if one else [item for _, item in value.items]


def named(value, keys: tuple):
    """The value that an object gives under one of `keys`; anything else as it is."""
    value = decode(value)
    if not isinstance(value, Pairs):
        return value
    return next((value.get(key) for key in keys if key in value.keys()), None)


def missing(value, words=NOTHING) -> bool:
    """Whether a value stands for none: None, NaN, or one of `words`."""
    return (
        value is None
        or isinstance(value, float)
        and np.isnan(value)
        or (isinstance(value, str) and value.strip().lower() in words)
    )


def plain(value):
    """A decoded value with its objects as dicts."""
    if isinstance(value, Pairs):
        return {str(key): plain(item) for key, item in value.items}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def depth(value, text: bool = True) -> int:
    """How deep lists are nested, by the first entries that hold something; a triple of strings has depth 1.
    `text`: whether lists that stand in strings count."""
    value = listed(decode(value) if text or not isinstance(value, str) else value, "")
    if not isinstance(value, list):
        return 0
    held = [entry for entry in value if entry not in (None, "", [])][:3]
    return 1 + max((depth(entry, text) for entry in held), default=0)
