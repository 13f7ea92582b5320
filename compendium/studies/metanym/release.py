"""What the authors released, in either shape: a table of numbers a run, or their own folders of judges' replies.

Both give one equal table of ratings (columns KEYS and SCORES of `compendium.studies.metanym.game`, sorted by KEYS).
Runs: the first at anchors 5 to 8, two later ones at 7, and the un-anchored pass over the first run's portfolios, whose
`anchor` is 0 here.
"""

import io
from pathlib import PurePosixPath

import pandas as pd

from compendium.frame.archive import Archive
from compendium.frame.files import read_utf8
from compendium.frame.paths import shown
from compendium.studies.metanym.game import KEYS, MetanymError
from compendium.studies.metanym.ratings import read_replies, read_table

UNANCHORED = 0
# {run: its table}, {run: {folder of replies: anchor}}
TABLES = {1: "ratings_run1.csv", 2: "ratings_run2.csv", 3: "ratings_run3.csv"}
FOLDERS = {
    1: {
        "replies/probe_K_anchor5_20260529T030442Z": 5,
        "replies/probe_K_anchor6_20260529T032518Z": 6,
        "replies/probe_K_20260529T014133Z": 7,
        "replies/probe_K_anchor8_20260529T033755Z": 8,
    },
    2: {"replies/probe_K_anchor7_20260619T015828Z": 7},
    3: {"replies/probe_K_anchor7_20260619T040659Z": 7},
}
RAW_TABLE, RAW_FOLDERS = "ratings_unanchored.csv", {"replies/probe_J_20260529T005230Z": UNANCHORED}
EXAM = ("gpqa_selfadministered.csv", "replies/gpqa_selfadministered.csv")
COUNTS = {"n_total": "n", "n_correct": "correct", "n_void": "void"}


def load_archive(roster, spelling=None, strict: bool = True, mirror=None, runs=(1, 2, 3)) -> pd.DataFrame:
    """The released anchored ratings of some runs, names as the paper spells them.

    Raises ArchiveError where neither shape is at hand, MetanymError for a run that was not released and as
    `read_table` and `read_replies`.
    """
    absent = [run for run in runs if run not in TABLES]
    if absent or not len(runs):
        raise MetanymError(
            f"runs: {', '.join(map(str, runs)) or 'none'}; released are {', '.join(map(str, TABLES))}"
        )
    archive, options = (
        Archive("metanym", mirror=mirror or None),
        dict(roster=roster, spelling=spelling, strict=strict),
    )
    parts = [_load(archive, TABLES[run], FOLDERS[run], run, options) for run in runs]
    return pd.concat(parts, ignore_index=True)


def load_unanchored(roster, spelling=None, strict: bool = True, mirror=None) -> pd.DataFrame:
    """The released un-anchored ratings (section 4.1), run 1, `anchor` 0; all portfolios are graded, the later
    anchor's too. Raises as `load_archive`."""
    archive, options = (
        Archive("metanym", mirror=mirror or None),
        dict(roster=roster, spelling=spelling, strict=strict),
    )
    return _load(archive, RAW_TABLE, RAW_FOLDERS, 1, options)


def load_exam(roster, spelling=None, mirror=None) -> pd.DataFrame:
    """The self-administered GPQA Diamond: models x n, correct, void, accuracy (per cent, voids wrong),
    accuracy_given (per cent of the replies that are not void).

    Raises ArchiveError where it is not at hand, MetanymError for a model without a line or counts that cannot be.
    """
    archive = Archive("metanym", mirror=mirror or None)
    path = archive.path(archive.first(*EXAM))
    lines = read_utf8(path, MetanymError, "a CSV file").splitlines(keepends=True)
    lines = [line for line in lines if not line.lstrip('"').startswith("#")]
    frame = pd.read_csv(io.StringIO("".join(lines)))
    lacking = [name for name in ("model", *COUNTS) if name not in frame]
    if lacking:
        raise MetanymError(f"{shown(path)}: has no column {lacking[0]!r}")
    frame["model"] = frame["model"].replace(spelling or {})
    table = frame.set_index("model").rename(columns=COUNTS)[list(COUNTS.values())]
    wanting = [name for name in roster if list(table.index).count(name) != 1]
    if wanting:
        raise MetanymError(f"{shown(path)}: should have one line for {wanting[0]!r}")
    table = table.loc[list(roster)]
    wrong = (table["correct"] < 0) | (table["void"] < 0) | (table["correct"] + table["void"] > table["n"])
    if wrong.any():
        raise MetanymError(f"{shown(path)}: {wrong.idxmax()} has more answers than questions")
    answered = table["n"] - table["void"]
    return table.assign(
        accuracy=100 * table["correct"] / table["n"], accuracy_given=100 * table["correct"] / answered
    )


def _load(archive: Archive, table: str, folders: dict, run: int, options: dict) -> pd.DataFrame:
    anchor = UNANCHORED if UNANCHORED in folders.values() else None
    if archive.first(table, *folders) == table:
        ratings = read_table(archive.path(table), run=run, anchor=anchor, **options)
    else:
        files = [(archive.path(name), value) for name, value in _evaluations(archive, folders)]
        ratings, _ = read_replies(files, run=run, **options)
    return ratings.sort_values(list(KEYS), ignore_index=True)


def _evaluations(archive: Archive, folders: dict) -> list:
    """[(path in the archive, anchor)] of all replies in some folders; ArchiveError where a folder is not there."""
    found = []
    for folder, anchor in folders.items():
        names = archive.files(f"{archive.first(folder)}/")
        found += [(name, anchor) for name in names if PurePosixPath(name).match("eval_*_x_*.json")]
    return found
