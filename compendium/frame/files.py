"""Reading with one clear error, packed (.gz) or not; writing whole: to a temporary name, then moved."""

import gzip
import hashlib
import json
import os
import re
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import yaml

from compendium.frame.paths import from_root, shown

TEMPORARY = ".part"  # marks the temporary files, so that those of a killed run can be told and removed
DEEPEST = 50  # levels of nesting in a YAML file; Python's own stack ends at some hundreds
MOST_DIGITS = 100  # characters of a number
MOST_VALUES = 1_000_000  # values in a YAML file, each alias counted as all that it stands for
PACKED = ".gz"
UNLIKE_ITSELF = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")  # 0400, 1:30


class FileError(ValueError):
    """A file that cannot be read; the message names it and what would be right."""


def read_utf8(path, error=FileError, what: str = "a text file") -> str:
    """The text of a UTF-8 file, newlines as "\\n", a byte order mark passed over; unpacked where it ends in .gz.
    A relative path is taken from the project's root.

    Raises `error` (a ValueError) for a missing file, a folder, or bytes that are no UTF-8, naming the file and
    what it should be (`what`: "a YAML file").
    """
    path = from_root(path)
    try:
        with (gzip.open if path.suffix == PACKED else open)(path, "rt", encoding="utf-8-sig") as handle:
            return handle.read()
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error(f"{shown(path)}: cannot be read ({reason}); it should be {what}") from None
    except UnicodeDecodeError as problem:
        byte, line = problem.object[problem.start], problem.object[: problem.start].count(b"\n") + 1
        raise error(
            f"{shown(path)}: not UTF-8 (byte {problem.start + 1} is {byte:#x}) in line {line}; "
            f"it should be {what} saved as UTF-8"
        ) from None


def read_csv(path, columns=(), error=FileError, **options):
    """A table that a notebook is given, as a DataFrame: of the chain, of data/demo (packed), or one of your own.

    A relative path is taken from the project's root; `options` are those of pandas. Raises `error`, naming the
    file, where it is missing or no CSV, or lacks one of `columns`.
    """
    import pandas as pd  # slow to import: not before a run's first error could be said

    path = from_root(path)
    try:
        frame = pd.read_csv(path, **options)
    except (OSError, EOFError, zlib.error, ValueError) as problem:
        reason = " ".join(str(getattr(problem, "strerror", None) or problem).split())
        raise error(f"{shown(path)}: cannot be read ({reason}); it should be a CSV file") from None
    for name in columns:
        if name not in frame.columns:
            there = ", ".join(map(str, frame.columns))
            raise error(f"{shown(path)}: lacks the column {name!r}; it has {there}")
    return frame


def read_bytes(path) -> bytes:
    """What a file holds, unpacked where it ends in .gz. Raises OSError where it cannot be read."""
    content = from_root(path).read_bytes()
    return gzip.decompress(content) if Path(path).suffix == PACKED else content


def read_yaml(path, error=FileError, kind=(dict, list)):
    """What a YAML file holds: a mapping or a list, as `kind` says (dict: an empty file is an empty mapping).

    Raises `error` as `read_utf8`, and for malformed YAML (with its line), a key given twice, a number that YAML
    1.1 reads in base 8 or 60 (0400, 1:30), content of another kind, and what no file of ours would hold: more than
    DEEPEST levels, MOST_VALUES values or MOST_DIGITS digits.
    """
    text = read_utf8(path, error, "a YAML file")
    try:
        content = yaml.load(text, Loader=_Careful)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(problem, "problem", None) or " ".join(str(problem).split())
        start = getattr(problem, "context_mark", None)
        if mark and start and start.line < mark.line:  # noticed there, made here
            what += f", in what begins in line {start.line + 1}"
        raise error(f"{shown(path)}:{where}: not valid YAML: {what}") from None
    content = kind() if content is None and isinstance(kind, type) else content
    if not isinstance(content, kind):
        wanted = "a list of `- ` entries" if kind is list else "`key: value` lines"
        held = "nothing" if content is None else f"a {type(content).__name__}"
        raise error(f"{shown(path)}: should hold {wanted}, but holds {held}")
    return content


def read_jsonl(path, error=FileError, keys=(), what: str = "JSON lines") -> list[dict]:
    """The objects of a JSON-lines file, one a line; empty lines are passed over.

    Raises `error` as `read_utf8`, and naming file and line for one that is cut off, no object, or lacks one of
    `keys`.
    """
    rows = []
    for number, line in enumerate(
        read_utf8(path, error, what).split("\n"), 1
    ):  # splitlines() cuts at U+2028 too
        if not line.strip():
            continue
        where = f"{shown(path)}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            said = getattr(problem, "msg", None) or "too deep, or a number too long"
            raise error(f"{where}: not a whole JSON object ({said}); each line should hold one") from None
        if not isinstance(row, dict):
            raise error(f"{where}: should be a JSON object, is a {type(row).__name__}")
        lacking = [key for key in keys if key not in row]
        if lacking:
            raise error(f"{where}: lacks {lacking[0]!r}; each line should hold {', '.join(keys)}")
        rows.append(row)
    return rows


def write_jsonl(path, rows, ascii: bool = False) -> Path:
    """Write dicts as JSON lines, keys in their order, whole or not at all; `ascii` escapes all other letters."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        for row in rows:
            handle.write(json.dumps(row, ensure_ascii=ascii) + "\n")
    return Path(path)


UNVERIFIED = "unverified"  # the folder of marks of studies whose printed numbers could not be read


def marks(out: Path, kind: str) -> list[dict]:
    """The marks of a kind in a run's folder, sorted by file."""
    return [mark for path in sorted((Path(out) / kind).glob("*.jsonl")) for mark in read_jsonl(path)]


class _Careful(yaml.SafeLoader):
    """YAML within bounds, in which a key given twice is an error (the second would silently win)."""

    def __init__(self, stream):
        super().__init__(stream)
        self._depth, self._sizes = 0, {}

    def _check_number(self, node, index):
        """Refuse 0400, which YAML 1.1 reads as 256, and 1:30, which it reads as 90; `index`: its key, or its place."""
        numeric = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if numeric and len(node.value) <= MOST_DIGITS and UNLIKE_ITSELF.fullmatch(node.value):
            read = super().construct_object(node)
            key = f"`{index.value}` " if isinstance(index, yaml.ScalarNode) else ""
            raise _no(
                f"{key}should not be {node.value}, which YAML 1.1 reads as {read}: write the number in "
                "base 10 without a leading 0, or quote it",
                node,
            )

    def compose_node(self, parent, index):
        event = self.peek_event()
        self._depth += 1
        if self._depth > DEEPEST:
            raise _no(f"more than {DEEPEST} levels of nesting", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            self._check_number(node, index)
        if id(node) not in self._sizes:
            if isinstance(event, yaml.AliasEvent):
                raise _no(f"the alias *{event.anchor} stands inside what it names", event)
            inner = getattr(node, "value", ()) if not isinstance(node, yaml.ScalarNode) else ()
            parts = [part for each in inner for part in (each if isinstance(each, tuple) else (each,))]
            self._sizes[id(node)] = 1 + sum(self._sizes[id(part)] for part in parts)
            if self._sizes[id(node)] > MOST_VALUES:
                raise _no(f"more than {MOST_VALUES} values", event)
        return node

    def construct_object(self, node, deep=False):
        numeric = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if numeric and len(node.value) > MOST_DIGITS:
            raise _no(f"a number of {len(node.value)} digits", node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError):  # 2026-13-45, !!bool x, !!int ""
            raise _no(f"a value that is no {node.tag.rpartition(':')[2]}", node) from None

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise _no(f"the key {key!r} is given twice", key_node)
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


def _no(what: str, at) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, what, at.start_mark)


def parse_json(text: str, path, error=FileError, what: str = "a JSON file"):
    """What the JSON `text` of the file `path` says. Raises `error`, naming the file, for anything else, nesting
    beyond Python's stack and integers beyond its limit included.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise error(f"{shown(path)}: nested too deeply; it should be {what}") from None
    except ValueError as problem:
        raise error(f"{shown(path)}: not {what} ({problem})") from None


def sha256(path) -> str:
    """A file's SHA-256, in hexadecimal digits. Raises OSError where it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def said(error: OSError) -> str:
    """An error of the file system as one line that names the file: full disk, no permission, read-only."""
    return ": ".join(filter(None, [error.filename and shown(error.filename), error.strerror or str(error)]))


@contextmanager
def atomic_write(path, suffix=""):
    """Yield a temporary path beside `path`; move it there on success, remove it on an error.

    A reader sees the old file or the new one, never half of either. `suffix` (".png") is for writers
    that choose a format by the name. An OSError names `path`, not the temporary file.
    """
    path, temporary = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=f"{TEMPORARY}{suffix}"
        )
        os.close(handle)
        temporary = Path(name)
        yield temporary
        # mkstemp makes files private; the finished file gets the ordinary mode of this process.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None or Path(str(error.filename)).name.startswith(f".{path.name}."):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder) -> list[Path]:
    """Remove the temporary files that killed runs have left below `folder`, and return what they were.

    Only for a folder that no run is at work in.
    """
    found = [path for path in sorted(Path(folder).rglob(f".*{TEMPORARY}*")) if path.is_file()]
    for path in found:
        path.unlink(missing_ok=True)
    return found


def write_text_atomic(path, text: str) -> Path:
    """Write `text` (UTF-8, newlines as given) to `path` whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
    return Path(path)


def write_csv_atomic(path, frame, index: bool = False) -> Path:
    """Write a DataFrame as CSV whole or not at all; floats keep 12 significant digits.

    Twelve digits hold every number a paper could print and hide the last bits, in which linear algebra
    differs from one processor to the next.
    """
    with atomic_write(path) as temporary:
        frame.to_csv(temporary, index=index, float_format="%.12g", lineterminator="\n")
    return Path(path)


# strings to the terminal (OSC, DCS, SOS, PM, APC) to their end; then sequences, those of colour told apart; then the rest
_STRING = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\x1b|\n|$))"
)
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def without_escapes(text: str, colours: bool = False) -> str:
    """`text` without terminal escapes, control characters and marks that turn the direction of writing; `colours`
    keeps the sequences of colour, which a page shows as colours."""
    text = _SEQUENCE.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", _STRING.sub("", text))
    if not colours:
        return _CONTROL.sub("", _COLOUR.sub("", text))
    pieces = re.split(f"({_COLOUR.pattern})", text)
    return "".join(piece if place % 2 else _CONTROL.sub("", piece) for place, piece in enumerate(pieces))
