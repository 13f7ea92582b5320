"""A row of the printed numbers, for tests of verdicts and of verification."""

import numpy as np


def printed(**changes):
    row = dict(
        study="alienbench",
        exhibit="table-3",
        row="m",
        column="overall",
        value=5.14,
        lo=np.nan,
        hi=np.nan,
        decimals=2,
        note="",
        place="Table 3",
        kind="exact",
        tolerance=np.nan,
        archive="whole",
        print="number",
    )
    return row | changes
