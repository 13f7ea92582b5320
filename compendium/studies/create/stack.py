"""CREATE: several files of answers as one table; the same query has the same number in all of them."""
# Tested by tests/compendium/studies/create/test_quirks.py.

from glob import has_magic
from pathlib import Path

import pandas as pd

from compendium.frame.own_files import files_at
from compendium.frame.paths import from_root, shown
from compendium.studies.create.answers import load_answers
from compendium.studies.create.errors import CreateError
from compendium.studies.create.paths import normalise
from compendium.studies.create.records import SUFFIXES, source_of


def answer_files(place) -> list:
    """The file at `place`, or every file of answers in the folder there or that the pattern matches, sorted; a
    relative place counts from the project's root. Raises CreateError where there is none."""
    path = from_root(place)
    if not path.is_dir() and not has_magic(str(place)):
        return [path]
    found = [file for file in files_at(str(place)) if file.suffix.lower() in SUFFIXES]
    if not found:
        what = "this folder holds" if path.is_dir() else "this pattern matches"
        raise CreateError(f"{shown(path)}: {what} no file of answers ({', '.join(SUFFIXES)})")
    return found


def load_stack(files) -> tuple:
    """(paths, queries, problems, left_out) of all files, one below the other; left_out is {(source, reason):
    how often}.

    A query is the same in two files if head, relation and tail are, and has the first file's number in both
    (files number their queries as they like). Raises CreateError for two files with one name, and for a file
    that cannot be read.
    """
    loaded, problems, left_out, places, taken = [], [], {}, {}, set()
    known = {}  # (head, relation, tail) -> numbers, in order of appearance
    for file in map(Path, files):
        source = source_of(file)
        if source in places:
            raise CreateError(
                f"{shown(file)}: is called {source!r} as {shown(places[source])} is; files need "
                "names of their own"
            )
        places[source] = file
        answers = load_answers(file)
        numbers, used, moved = {}, set(), 0
        for row in answers.queries.itertuples():
            ends = tuple(map(normalise, (row.head, row.relation, row.tail)))
            free = [number for number in known.get(ends, []) if number not in used]
            number = row.query if row.query in free else free[0] if free else row.query
            if not free and number in taken:
                number = max(taken) + 1
            numbers[row.query] = number
            moved += number != row.query
            used.add(number)
            taken.add(number)
            if number not in known.setdefault(ends, []):
                known[ends].append(number)
        if moved:
            problems.append(
                f"{file.name}: {moved} queries carry other numbers than in the files before: matched "
                "by head, relation and tail"
            )
        loaded.append(
            (
                answers.paths.assign(query=answers.paths["query"].map(numbers)),
                answers.queries.assign(query=answers.queries["query"].map(numbers)),
            )
        )
        problems += answers.problems
        left_out |= {(source, reason): count for reason, count in answers.left_out.items()}
    paths, queries = (pd.concat(frames, ignore_index=True) for frames in zip(*loaded))
    return paths, queries, problems, left_out
