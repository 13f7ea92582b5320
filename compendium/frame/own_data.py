"""Data of one's own in the place of what models were asked for: `make tables DATA=folder`.

`folder`/<study>/ holds files named as in data/demo/<study>/ (labels.csv, ratings.csv, …; packed or not), of the same columns.
Whoever is in them stands in params, as ever. Of such a study no notebook that asks runs, and none that needs a file
which is then nobody's.
"""

from dataclasses import replace
from pathlib import Path

from compendium.frame.files import PACKED
from compendium.frame.paths import from_root, shown


class DataError(ValueError):
    """A folder of one's own data that cannot be used; the message names it and what would be right."""


def with_own(books, folder: str) -> tuple[list, list]:
    """(the notebooks that run with the data in `folder`, each with its files under `own`; the notebooks left out).

    `books` as `compendium.frame.chain.notebooks` gives them; all of them where `folder` is "". Raises DataError for a folder
    that is not there, holds nothing for their studies, or holds a file that no notebook of its study reads.
    """
    if not folder:
        return list(books), []
    place = from_root(folder)
    given = {}
    for study in dict.fromkeys(book.study for book in books):
        read = {needed for book in books if book.study == study for needed in book.needs.values()}
        given |= _files(
            place / study, study, sorted(needed for needed in read if needed.startswith(f"{study}/"))
        )
    if not given:
        names = ", ".join(dict.fromkeys(book.study for book in books))
        raise DataError(f"DATA={folder}: holds no folder of data for {names} (as data/demo/<study>/ shows)")
    studies = {name.split("/")[0] for name in given}
    kept = [book for book in books if book.study not in studies or "source" not in book.parameters]
    made = None
    while made != len(kept):  # what needs what is nobody's goes, and what needs that
        made = len(kept)
        there = {*given, *(name for book in kept for name in book.makes), *(_cells(book) for book in kept)}
        kept = [book for book in kept if there.issuperset(book.needs.values())]
    used = [
        replace(
            book,
            needs={name: needed for name, needed in book.needs.items() if needed not in given},
            own={name: given[needed] for name, needed in book.needs.items() if needed in given},
        )
        for book in kept
    ]
    return used, [book for book in books if book not in kept]


def _cells(book) -> str:
    return f"cells/{book.study}/{book.name}.csv"


def _files(place: Path, study: str, read) -> dict:
    """{needed: the file in `place` that takes its place}."""
    if not place.is_dir():
        return {}
    found = {}
    for path in sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith(".")):
        name = f"{study}/{path.name.removesuffix(PACKED)}"
        if name not in read:
            names = ", ".join(needed.split("/")[1] for needed in read)
            raise DataError(
                f"{shown(path)}: no notebook of {study} reads such a file; those that are read: {names}"
            )
        found[name] = path
    return found
