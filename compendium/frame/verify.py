"""Verification: join what was computed to what the papers print, and give every printed number one verdict.

`python -m compendium.frame.verify PROFILE STUDIES OUT CELLS…` writes cells.csv, derived.csv, verification.csv,
unprinted.csv, independent.csv and verification.html into OUT, with what earlier runs of other studies left there.
The words of a verdict, and how one is decided, are `compendium.frame.verdict`'s. What the papers' own files show
but the papers do not print as a number (a leaderboard, "Pass", a dash) goes to unprinted.csv and counts nowhere.
"""

import json
import sys
from pathlib import Path

import pandas as pd

from compendium.frame import compare, verdict
from compendium.frame.cells import ADDRESS, COMPUTED, PUBLISHED, CellsError, address, published, read_cells
from compendium.frame.chain import notebooks
from compendium.frame.files import UNVERIFIED, said, write_csv_atomic, write_jsonl, write_text_atomic
from compendium.frame.paths import ACROSS, DATA, STUDIES
from compendium.frame.paths import shown as shown_path
from compendium.frame.verdicts import verify

DERIVED = [*COMPUTED[:-2], "basis", "equation", *COMPUTED[-2:]]


def gather(paths, out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All notebooks' cells in one order: (computed from data, derived from printed numbers).

    `cell` is the id of the notebook cell that made the number, looked up in the executed notebook.
    Raises CellsError where two notebooks fill one address.
    """
    frames = [frame for frame in map(read_cells, sorted(map(str, paths))) if len(frame)]
    columns = [*COMPUTED[:-1], "basis", "equation", "execution"]
    everything = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    everything["equation"] = everything.get("equation", pd.Series("", everything.index)).fillna("")
    everything["cell"] = ""
    for name, rows in everything.groupby("notebook"):
        ids = _cell_ids(out / "notebooks" / f"{name}.ipynb")
        everything.loc[rows.index, "cell"] = [ids.get(str(count), "") for count in rows["execution"]]
    repeated = everything.duplicated([*ADDRESS, "basis"], keep=False)
    if repeated.any():
        alike = everything[repeated].groupby([*ADDRESS, "basis"], sort=False)
        both = next(iter(alike))[1]
        raise CellsError(
            f"{address(both.iloc[0])} is filled by {both['notebook'].iloc[0]} and again by "
            f"{both['notebook'].iloc[1]}"
        )
    data = everything["basis"] == "data"
    return everything.loc[data, COMPUTED], everything.loc[~data, DERIVED]


def summary(report: pd.DataFrame, computed: pd.DataFrame, study: str) -> str:
    """The closing line of a study: how many cells, how its printed numbers came out, what is on record."""
    closing = verdict.summary(report, study)
    if not (report["study"] == study).any():
        closing = "no paper of its own" if study == ACROSS else "not run whole, so nothing is compared"
    return f"{study}: cells {int((computed['study'] == study).sum())}; {closing}"


def summary_lines(out: Path) -> list[str]:
    """The closing lines of a finished run, read from its files."""
    report, computed = pd.read_csv(out / "verification.csv", low_memory=False), read_cells(out / "cells.csv")
    studies = dict.fromkeys([*report["study"], *computed["study"]])
    lines = [summary(report, computed, study) for study in studies]
    changed = pd.read_csv(out / "moved.csv") if (out / "moved.csv").is_file() else []
    if len(changed):
        counts = ", ".join(f"{study} {n}" for study, n in changed["study"].value_counts(sort=False).items())
        lines.append(
            f"Moved in the last run that changed anything: {counts} ({shown_path(out / 'moved.csv')})"
        )
    return lines


def _cell_ids(executed: Path) -> dict:
    """{execution count: cell id} of an executed notebook; empty where it is not there."""
    if not executed.is_file():
        return {}
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    return {str(cell["execution_count"]): cell["id"] for cell in cells if cell.get("execution_count")}


def moved(last: Path, computed: pd.DataFrame) -> pd.DataFrame:
    """How `computed` differs from the cells of the last run (columns `compendium.frame.compare.MOVED`); empty on a first run
    and, said on standard error, where that file cannot be used."""
    if not last.is_file():
        return compare.moved(computed, computed)
    try:
        return compare.moved(read_cells(last), computed)
    except CellsError as error:
        print(f"{error}: which numbers moved since the last run is not known", file=sys.stderr)
        return compare.moved(computed, computed)


def finished_elsewhere(profile: str, out: Path, studies, paths) -> tuple[list, list]:
    """(cells files beside `paths`, studies beside `studies`) that earlier runs have left in `out`: one report
    holds them all. A study counts where every notebook of it was run; the chapter across may have run a few
    alone."""
    given, found, partial = {Path(path).resolve() for path in paths}, {}, set()
    for book in notebooks("all", profile):
        path = (out / "cells" / book.study / f"{book.name}.csv").resolve()
        if path in given or path.is_file():
            found.setdefault(book.study, []).append(path)
        else:
            partial.add(book.study)
    more = [path for books in found.values() for path in books if path not in given]
    return more, [study for study in found if study not in partial and study not in studies]


def main(arguments) -> int:
    profile, studies, out, *paths = arguments
    out, studies = Path(out), studies.split(",")
    try:
        more, others = finished_elsewhere(profile, out, studies, paths)
        studies = [study for study in STUDIES if study in studies or study in others]
        computed, derived = gather([*paths, *more], out)
        printed, unread = printed_numbers(studies)
        studies = [study for study in studies if study not in unread]
        everything = verify(printed, computed, derived, profile)
        in_print = everything["print"] == "number"
        report = everything[in_print].reset_index(drop=True)
        from compendium.frame.report import page

        lines = [summary(report, computed, study) for study in studies]
        html = page(report, lines, studies, profile)
    except ValueError as error:
        print(f"verification: {error}", file=sys.stderr)
        return 1
    # Snakemake removes a rule's old outputs before it runs; this copy, no output of the rule, remembers them
    last = out / "cells" / "last_run.csv"
    try:
        write_csv_atomic(out / "moved.csv", moved(last, computed))
        write_csv_atomic(last, computed)
        write_csv_atomic(out / "cells.csv", computed)
        write_csv_atomic(out / "derived.csv", derived)
        write_csv_atomic(out / "unprinted.csv", everything[~in_print])
        write_csv_atomic(out / "independent.csv", verdict.independent(report))
        write_text_atomic(out / "verification.html", html)
        write_csv_atomic(out / "verification.csv", report)
        mark = out / UNVERIFIED / "printed.jsonl"
        mark.unlink(missing_ok=True)
        if unread:
            write_jsonl(mark, [{"study": study, "problem": problem} for study, problem in unread.items()])
    except OSError as error:
        print(f"verification: {said(error)}", file=sys.stderr)
        return 1
    return 0


def printed_numbers(studies) -> tuple[pd.DataFrame, dict]:
    """(the printed numbers of some studies, {study: what is wrong} of those whose file cannot be used).

    Raises CellsError where none of their files can.
    """
    frames, unread = [], {}
    for study in filter(_has_published, studies):
        try:
            frames.append(published(study))
        except CellsError as error:
            unread[study] = str(error)
    if unread and len(unread) == len(studies):
        raise CellsError("; ".join(unread.values()))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=PUBLISHED), unread


def _has_published(study: str) -> bool:
    return (DATA / "published" / f"{study}.csv").is_file()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
