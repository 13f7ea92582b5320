"""Printed numbers that nothing printed determines, but something bounds: means of concave scores, and what a
semantic score can be.

F1 is a concave function of coverage and precision, and the geometric mean one of coverage and avoidance. So the
mean of such a score over candidates is never more than the score of the means (Jensen's inequality).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from compendium.studies.worldmodels.printed import CULTURAL_RUNS, GAMES, MODELS, harmonic


def bounds(printed: pd.DataFrame) -> pd.DataFrame:
    """Columns exhibit, row, column, printed, at_most, holds, how.

    printed : as compendium.frame.cells.published gives it. `at_most` takes the inputs at the upper end of their rounding,
    `holds` the printed number at its lower end: what does not hold cannot be explained by rounding.
    """
    table = printed.set_index(["exhibit", "row", "column"])
    value, half = table["value"], 0.5 * 10.0 ** -table["decimals"].astype(float)
    rows = []
    for target, sources, function, how in _bounds():
        most = float(function(np.array([min(1.0, value[source] + half[source]) for source in sources])))
        rows.append([*target, value[target], most, bool(value[target] - half[target] <= most + 1e-12), how])
    return pd.DataFrame(rows, columns=["exhibit", "row", "column", "printed", "at_most", "holds", "how"])


def possible_semantics(scores) -> pd.DataFrame:
    """Which whole-number ratios k/n, n <= 16, a printed score could be the square root of, rounded to four
    decimals and then, halves up, to the three that are printed (2/3 is printed as .817).

    Returns score, k, n for the smallest fitting n of each score, NaN where none fits. Nearly every entry of
    Table 14 fits, which shows that the semantic score is the geometric mean of coverage and an avoidance of
    one; the arithmetic and the harmonic mean would give other numbers.
    """
    rows = []
    for score in sorted(set(np.round(scores, 3))):
        fits = [
            (n, k)
            for n in range(1, 17)
            for k in range(n + 1)
            if abs(np.floor(round(np.sqrt(k / n), 4) * 1000 + 0.5 + 1e-9) / 1000 - score) < 1e-9
        ]
        n, k = min(fits, default=(np.nan, np.nan))
        rows.append([score, k, n])
    return pd.DataFrame(rows, columns=["score", "k", "n"])


def _bounds() -> list[tuple[tuple, list[tuple], Callable, str]]:
    means = {"table-2": MODELS, "table-4": (*MODELS, "all"), "table-11": CULTURAL_RUNS}
    pairs = [(exhibit, row) for exhibit, rows in means.items() for row in rows]
    made = [
        (
            (exhibit, row, "f1"),
            [(exhibit, row, "coverage"), (exhibit, row, "precision")],
            harmonic,
            "mean F1 <= F1 of mean coverage and mean precision",
        )
        for exhibit, row in pairs
    ]
    parts = ("semantic_coverage", "semantic_avoidance")
    made += [
        (
            ("table-11", run, "semantic"),
            [("table-11", run, part) for part in parts],
            lambda v: np.sqrt(v.prod()),
            "mean semantic score <= geometric mean of the means",
        )
        for run in CULTURAL_RUNS
    ]
    made += [
        (
            ("table-9", model, f"{game}:f1"),
            [("table-9", model, f"{game}:coverage")],
            lambda v: 2 * v[0] / (1 + v[0]),
            "mean F1 <= F1 at this coverage and a precision of 1",
        )
        for model in MODELS
        for game in GAMES
    ]
    return made
