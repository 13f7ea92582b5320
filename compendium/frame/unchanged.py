"""Whether anything was touched since the chain last ended with all its work done.

Only Snakemake decides what is stale. Where no file that it would look at has another size or time than when it
last found everything done, it would find the same again: then it need not be asked, nor the code be read.
"""

import hashlib
import os
import sys
from pathlib import Path

from compendium.frame.files import write_text_atomic
from compendium.frame.own_files import followed
from compendium.frame.paths import ROOT

ROOMS = ("lib", "compendium", "notebooks", "params", "data", "Snakefile")


def inputs(books, params: dict, options: str) -> str:
    """One short text of everything that decides what runs: code, data, params, notebooks, files of one's own.

    Parameters
    ----------
    books : the notebooks of the run. params : {study: its params}. options : what was asked for, as one line.
    """
    own = [path for book in books for path in followed(book.study, book.values(params[book.study]))]
    own += [path for book in books for path in book.own.values()]
    named = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("COMPENDIUM_"))
    return _digest([options, sys.executable, sys.version, *named], [*_files(ROOMS), *dict.fromkeys(own)])


def outputs(books, out: Path) -> str:
    """The same of everything that these notebooks and the verification make."""
    made = [path for book in books for path in book.outputs(out)]
    return _digest([], [*made, *sorted(out.glob("*.csv")), *sorted(out.glob("*.html"))])


def remember(out: Path, study: str, seen: str) -> None:
    """Write down that with `seen` (inputs and outputs) everything was done."""
    write_text_atomic(_place(out, study), seen)


def done(out: Path, study: str, seen: str) -> bool:
    """Whether `seen` is what was written down last."""
    place = _place(out, study)
    return place.is_file() and place.read_text(encoding="utf-8") == seen


def _place(out: Path, study: str) -> Path:
    return out / "code" / f"done-{study}.txt"


def _files(rooms) -> list[Path]:
    found = []
    for room in rooms:
        place = ROOT / room
        for folder, inner, names in os.walk(place):
            inner[:] = [name for name in inner if name != "__pycache__"]
            found += [Path(folder, name) for name in names]
        found += [place] if place.is_file() else []
    return sorted(found)


def _digest(lines, paths) -> str:
    told = list(lines)
    for path in paths:
        try:
            now = path.stat()
            told.append(f"{path}\0{now.st_size}\0{now.st_mtime_ns}")
        except OSError:
            told.append(f"{path}\0none")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()
