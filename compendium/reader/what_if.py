"""What an edit could move: `python -m compendium.reader.what_if lib.ranks.spearman` (`make what-if FUNCTION=…`).

Read from the code, as the chain reads it (`compendium.frame.reach`): the notebooks that can reach the function, the
notebooks that take those notebooks' files, and, where a run of the profile is at hand, the numbers they compute. An edit of
the function can move these numbers and no others.
"""

import argparse
import difflib
import sys

import pandas as pd

from compendium.frame.cells import ADDRESS, published, read_cells
from compendium.frame.chain import notebooks
from compendium.frame.params import PROFILES, run_folder
from compendium.frame.paths import DATA, ROOT
from compendium.frame.reach import ROOMS, read_module


def reaching(function: str, books) -> dict:
    """{rule: why} of the notebooks that an edit of `function` (or of a whole module) makes stale, in their order.

    `why` is "reaches it" or the files of which notebooks it takes. Raises ValueError for a name that nothing has.
    """
    if function not in _known():
        near = difflib.get_close_matches(function, _known(), 3, 0.5)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise ValueError(f"FUNCTION={function}: no function, class or module of {' or '.join(ROOMS)}{hint}")
    inside = f"{function}." if read_module(function) else function
    makers = {
        made: book.rule for book in books for made in (*book.makes, f"cells/{book.study}/{book.name}.csv")
    }
    found = {}
    for book in books:
        names = book.reach.definitions
        takes = [makers[place] for place in book.needs.values() if makers.get(place) in found]
        if function in names or any(name.startswith(inside) for name in names if inside.endswith(".")):
            found[book.rule] = "reaches it"
        elif takes:
            found[book.rule] = f"takes files of {', '.join(dict.fromkeys(takes))}"
    return found


def numbers(rules, books, out) -> pd.DataFrame:
    """What the last run's notebooks among `rules` computed: their cells, `printed` where a paper prints one there."""
    frames = []
    for book in books:
        path = out / "cells" / book.study / f"{book.name}.csv"
        if book.rule in rules and path.is_file():
            cells = read_cells(path)[ADDRESS].drop_duplicates().assign(rule=book.rule)
            print_run = (DATA / "published" / f"{book.study}.csv").is_file()
            known = (
                set(published(book.study)[ADDRESS].itertuples(index=False, name=None)) if print_run else ()
            )
            cells["printed"] = [row in known for row in cells[ADDRESS].itertuples(index=False, name=None)]
            frames.append(cells)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def report(function: str, profile: str, out) -> list[str]:
    """The lines that `make what-if` prints."""
    books = notebooks("all", profile)
    found = reaching(function, books)
    cells = numbers(found, books, out)
    lines = [f"{function}: an edit makes {len(found)} of {len(books)} notebooks of profile {profile} stale"]
    for rule, why in found.items():
        mine = cells[cells["rule"] == rule] if len(cells) else cells
        printed = mine[mine["printed"]] if len(mine) else mine
        exhibits = ", ".join(dict.fromkeys(printed["exhibit"])) if len(printed) else ""
        counts = f"; {len(mine)} numbers, {len(printed)} of them printed" if len(mine) else ""
        lines.append(f"  {rule}: {why}{counts}{f' ({exhibits})' if exhibits else ''}")
    if found and not len(cells):
        lines.append(f"Run `make tables PROFILE={profile}` once, and the numbers are named too.")
    return lines


def _known() -> list[str]:
    names = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            module = (
                path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
            )
            names += [module, *(f"{module}.{name}" for name in read_module(module).definitions if name)]
    return names


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="make what-if", description=__doc__.splitlines()[0])
    parser.add_argument("function", help="a function, class or module: lib.ranks.spearman")
    parser.add_argument("--profile", default="demo", choices=PROFILES)
    options = parser.parse_args(arguments)
    try:
        print("\n".join(report(options.function, options.profile, run_folder(options.profile, False, ""))))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
