"""Numbers recomputed from printed ones, each compared where it is printed."""

import numpy as np
import pandas as pd

from compendium.frame.cells import findings
from compendium.frame.verdict import decide
from lib.rounding import AuditError, units_off


class Recount:
    """Numbers recomputed from printed ones, each put on the page at its printed address and compared there.

    Parameters
    ----------
    page : a `compendium.frame.page.Page`; every `put` becomes its `derived` cell.
    printed : the study's published numbers, as `compendium.frame.cells.published` gives them.

    A value is the one that the printed midpoints give; what their rounding allows goes into `lo` and `hi` (see
    `compendium.frame.page.Page.derived`), and is never moved towards the printed number.
    """

    def __init__(self, page, printed: pd.DataFrame):
        self.page, self.printed = page, printed
        self._at = printed.set_index(["exhibit", "row", "column"])
        self._findings = {tuple(key): one for one in findings(page.study) for key in one["rows"]}
        self._rows = []

    def put(self, exhibit, row, column, value, *, lo=None, hi=None, note="", equation="", repeats=False):
        """Put one recomputed number. Raises AuditError where the paper prints none at that address."""
        key = (exhibit, str(row), str(column))
        if key not in self._at.index:
            raise AuditError(f"nothing is printed at {exhibit}[{row}, {column}]; put what the paper prints")
        line = self._at.loc[key]
        self.page.derived(*key, value, lo=lo, hi=hi, note=note, equation=equation, repeats=repeats)
        found = {
            name: np.nan if bound is None else float(bound)
            for name, bound in (("value", value), ("lo", lo), ("hi", hi))
        } | {"note": note, "basis": "repeated" if repeats else "printed"}
        verdict = decide(line, None, found, self.page.profile, self._findings.get(key))
        decimals = int(line["decimals"])
        units = float(units_off(found["value"], line["value"], decimals))
        self._rows.append(
            [*key, line["value"], found["value"], decimals, line["kind"], units, verdict.outcome, note]
        )

    def put_range(self, exhibit, row, column, found, **more):
        """Put a `lib.rounding.Printed`: the value from printed midpoints, with what rounding allows."""
        self.put(exhibit, row, column, found.value, lo=found.lo, hi=found.hi, **more)

    def put_table(self, exhibit, frame: pd.DataFrame, *, equation=None, **more):
        """Put a whole table: index = rows, columns = columns; `equation` names the relation of a (row, column)."""
        for row in frame.index:
            for column in frame.columns:
                named = equation(row, column) if equation else ""
                self.put(exhibit, row, column, frame.at[row, column], equation=named, **more)

    def put_same(self, row, column, value, *, exhibits=None, **more):
        """Put one number wherever it is printed under this row and column (or in `exhibits` alone)."""
        places = self.printed[(self.printed["row"] == row) & (self.printed["column"] == column)]["exhibit"]
        chosen = [name for name in places if exhibits is None or name in exhibits]
        if not chosen:
            raise AuditError(f"nothing is printed at [{row}, {column}] of any exhibit; give what is printed")
        for exhibit in chosen:
            self.put(exhibit, row, column, value, **more)

    def comparison(self) -> pd.DataFrame:
        """What was put so far, a line each; `units`: printed minus recomputed in units of the last digit."""
        columns = [
            "exhibit",
            "row",
            "column",
            "printed",
            "recomputed",
            "decimals",
            "kind",
            "units",
            "outcome",
            "note",
        ]
        return pd.DataFrame(self._rows, columns=columns)

    def rest(self) -> pd.DataFrame:
        """The printed numbers that were not recomputed."""
        done = {tuple(row[:3]) for row in self._rows}
        keys = self.printed[["exhibit", "row", "column"]].apply(tuple, axis=1)
        return self.printed[~keys.isin(done)]
