"""Rows to JSON-lines files and back, in the form the studies' authors released theirs."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from compendium.asking.errors import LedgerError
from compendium.frame.files import write_text_atomic
from compendium.frame.paths import shown


def export_jsonl(root, rows: Iterable) -> list:
    """Write rows to files below `root`: `rows` yields (path below root, dict), in the order they are to
    stand.

    A line is ASCII JSON with the keys in the row's order. Each file is written whole or not at all. Returns
    the paths, sorted.
    """
    files = {}
    for path, row in rows:
        files.setdefault(str(path), []).append(json.dumps(row) + "\n")
    return [write_text_atomic(Path(root) / path, "".join(lines)) for path, lines in sorted(files.items())]


def import_jsonl(root, pattern: str = "**/*.jsonl") -> Iterator:
    """Rows of the files below `root` that match `pattern`: yields (path below root, dict), files sorted.

    Raises LedgerError naming file and line where a line is no JSON object, and where no file matches.
    """
    root = Path(root)
    paths = sorted(root.glob(pattern))
    if not paths:
        raise LedgerError(f"{shown(root)}: holds no file {pattern}")
    for path in paths:
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise LedgerError(
                        f"{shown(path)}, line {number}: not a whole JSON object ({error})"
                    ) from None
                if not isinstance(row, dict):
                    raise LedgerError(
                        f"{shown(path)}, line {number}: should be a JSON object, is a {type(row).__name__}"
                    )
                yield path.relative_to(root).as_posix(), row
