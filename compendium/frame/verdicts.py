"""Every printed number's verdict, as a table: what `compendium.frame.verify` writes of a whole run, and what a notebook
asks about its own study (it needs no chain for that)."""

# Tested by tests/compendium/frame/test_verify.py.

import numpy as np
import pandas as pd

from compendium.frame import verdict
from compendium.frame.cells import ADDRESS, findings, held

REPORT = [
    *ADDRESS,
    "value",
    "computed",
    "evidence",
    "outcome",
    "why",
    "lo",
    "hi",
    "decimals",
    "computed_lo",
    "computed_hi",
    "place",
    "kind",
    "tolerance",
    "print",
    "note",
    "finding",
    "equation",
    "notebook",
    "cell",
]


def verify(
    printed: pd.DataFrame, computed: pd.DataFrame, derived: pd.DataFrame, profile: str
) -> pd.DataFrame:
    """The verdict on every printed number (columns `REPORT`), in the printed order.

    `printed` as `compendium.frame.cells.published` gives it; `computed` and `derived` as `gather` does.
    """
    by_data, by_print = _by_address(computed), _by_address(derived)
    recorded, at_hand = {}, {}
    for study in dict.fromkeys(printed["study"]):
        at_hand[study] = held(study)
        recorded |= {(study, *key): one for one in findings(study) for key in one["rows"]}
    rows = []
    for row in printed.to_dict("records"):
        key = _key(row)
        again = by_print.get(key)
        made = verdict.decide(row, by_data.get(key), again, profile, recorded.get(key), at_hand[row["study"]])
        rows.append(_line(row, made, verdict.equation_of(row, again)))
    return pd.DataFrame(rows, columns=REPORT)


def _line(row, made: verdict.Verdict, equation: str) -> dict:
    """One row of the report."""
    kept = (*ADDRESS, "value", "lo", "hi", "decimals", "place", "kind", "tolerance", "print", "note")
    shown = made.shown or {"value": np.nan, "lo": np.nan, "hi": np.nan, "notebook": "", "cell": ""}
    return {
        **{name: row[name] for name in kept},
        **{f"computed{end}": shown[name] for name, end in (("value", ""), ("lo", "_lo"), ("hi", "_hi"))},
        **{name: getattr(made, name) for name in ("evidence", "outcome", "why", "finding")},
        "equation": equation,
        **{name: shown[name] for name in ("notebook", "cell")},
    }


def _by_address(frame) -> dict:
    return {_key(row): row for row in frame.to_dict("records")}


def _key(row) -> tuple:
    return tuple(row[name] for name in ADDRESS)
