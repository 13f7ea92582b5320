"""Verification: join what was computed to what the papers print, and give every printed number one status.

`python -m compendium.frame.verify PROFILE STUDIES OUT CELLS…` writes cells.csv, derived.csv, verification.csv and
verification.html into OUT, with what earlier runs of other studies left there. Statuses:

reproduced   computed from the released data, equal at the printed rounding
within       a Monte Carlo quantity, inside the tolerance stated with the printed number
differs      computed from the released data, and not equal
derived      recomputed from other numbers the same paper prints (column `verdict`: agrees or contradicts)
other run    the data at hand are not the run the paper reports (another roster, or simulated models)
no data      nothing at hand covers it
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.frame import compare
from compendium.frame.cells import (
    ADDRESS,
    COMPUTED,
    PUBLISHED,
    CellsError,
    address,
    agreement,
    published,
    read_cells,
)
from compendium.frame.chain import notebooks
from compendium.frame.files import said, write_csv_atomic, write_text_atomic
from compendium.frame.paths import ACROSS, DATA, STUDIES
from compendium.frame.paths import shown as shown_path

WITHOUT = {"none": "no released file at hand covers it", "design": "a constant or choice of the design"}
STATUSES = ("reproduced", "within", "differs", "derived", "other run", "no data")
REPORT = [
    *ADDRESS,
    "status",
    "verdict",
    "value",
    "lo",
    "hi",
    "decimals",
    "computed",
    "computed_lo",
    "computed_hi",
    "place",
    "kind",
    "tolerance",
    "note",
    "remark",
    "notebook",
    "cell",
]


def gather(paths, out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All notebooks' cells in one order: (computed from data, derived from printed numbers).

    `cell` is the id of the notebook cell that made the number, looked up in the executed notebook.
    Raises CellsError where two notebooks fill one address.
    """
    frames = [frame for frame in map(read_cells, sorted(map(str, paths))) if len(frame)]
    columns = [*COMPUTED[:-1], "basis", "execution"]
    everything = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
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
    data = everything[everything["basis"] != "printed"]
    derived = everything[everything["basis"] == "printed"]
    return data[COMPUTED], derived[COMPUTED]


def verify(
    printed: pd.DataFrame, computed: pd.DataFrame, derived: pd.DataFrame, profile: str
) -> pd.DataFrame:
    """The verdict on every printed number (columns `REPORT`), in the printed order.

    `printed` as `compendium.frame.cells.published` gives it; `computed` and `derived` as `gather` does.
    """
    by_data, by_print = _by_address(computed), _by_address(derived)
    rows = [
        _verdict(row, by_data.get(_key(row)), by_print.get(_key(row)), profile)
        for row in printed.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=REPORT)


def summary(report: pd.DataFrame, computed: pd.DataFrame, study: str) -> str:
    """The closing line of a study: how many cells, and how many printed numbers have which status."""
    mine = report[report["study"] == study]
    counts = mine["status"].value_counts()
    against = int((mine["verdict"] == "contradicts").sum())
    parts = [f"{status} {counts.get(status, 0)}" for status in STATUSES]
    parts[STATUSES.index("derived")] += f" ({against} contradict)" if against else ""
    closing = f"printed {len(mine)}: {', '.join(parts)}"
    if not len(mine):
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


def _verdict(row, found, again, profile: str) -> dict:
    """One row of the report for one printed number."""
    verdict, remark = "", ""
    if row["archive"] == "same" and profile == "released" and found is not None:
        # a notebook that could not compute it says why in its note
        nothing = np.isnan(found["value"]) and not np.isnan(row["value"])
        status, shown = "no data" if nothing else agreement(row, found), found
    elif again is not None and not (np.isnan(again["value"]) and not np.isnan(row["value"])):
        status, shown = "derived", again
        verdict = "contradicts" if agreement(row, again) == "differs" else "agrees"
    elif row["archive"] in WITHOUT and not (profile == "demo" and found is not None):
        status, shown, remark = "no data", None, WITHOUT[row["archive"]]
    elif row["archive"] == "same" and profile == "released":
        status, shown, remark = "no data", None, "the archive covers it, but no notebook computed it"
    elif row["archive"] == "same" and found is None:
        status, shown = "no data", None
    else:
        status, shown = "other run", found
        remark = {"demo": "simulated models", "live": "models asked now"}.get(profile, "")
    source = again if status == "derived" else found
    return {
        **{
            name: row[name]
            for name in (*ADDRESS, "value", "lo", "hi", "decimals", "place", "kind", "tolerance", "note")
        },
        "status": status,
        "verdict": verdict,
        "remark": "; ".join(filter(None, [remark, shown["note"] if shown is not None else ""])),
        **{
            f"computed{end}": np.nan if shown is None else shown[name]
            for name, end in (("value", ""), ("lo", "_lo"), ("hi", "_hi"))
        },
        "notebook": "" if source is None else source["notebook"],
        "cell": "" if source is None else source["cell"],
    }


def _by_address(frame) -> dict:
    return {_key(row): row for row in frame.to_dict("records")}


def _key(row) -> tuple:
    return tuple(row[name] for name in ADDRESS)


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
        printed = [published(study) for study in studies if _has_published(study)]
        printed = pd.concat(printed, ignore_index=True) if printed else pd.DataFrame(columns=PUBLISHED)
        report = verify(printed, computed, derived, profile)
        from compendium.frame.report import page

        html = page(report, computed, studies, profile)
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
        write_text_atomic(out / "verification.html", html)
        write_csv_atomic(out / "verification.csv", report)
    except OSError as error:
        print(f"verification: {said(error)}", file=sys.stderr)
        return 1
    return 0


def _has_published(study: str) -> bool:
    return (DATA / "published" / f"{study}.csv").is_file()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
