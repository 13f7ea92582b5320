"""Rendering tables from cells: one `Table` as HTML, LaTeX and CSV, so a number cannot differ between them."""

import html
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.frame.cells import CellsError, grid
from compendium.frame.files import without_escapes, write_text_atomic

LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)


@dataclass
class Table:
    """A table ready to print: `body` holds strings (index = row heads), `caption` says what it shows."""

    title: str
    caption: str
    body: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        return to_html(self)


def number(value, decimals: int = 2, lo=None, hi=None) -> str:
    """A number as tables print it: `5.14 [4.78, 5.51]`; an en dash where it is missing, no "-0.00"."""
    if value is None or pd.isna(value):
        return "–"
    text = f"{_whole(value, decimals):.{decimals}f}"
    if lo is None or hi is None or pd.isna(lo) or pd.isna(hi):
        return text
    return f"{text} [{_whole(lo, decimals):.{decimals}f}, {_whole(hi, decimals):.{decimals}f}]"


def p_text(p: float) -> str:
    """A p value as tables print it: three decimals, "< .001" below that, an en dash where it is missing."""
    return "–" if pd.isna(p) else "< .001" if p < 0.001 else f"{p:.3f}"


def from_cells(
    cells: pd.DataFrame, exhibit: str, *, decimals=2, rows=None, columns=None, intervals=True, percent=()
) -> pd.DataFrame:
    """One exhibit as strings.

    `decimals` is a number or {column: number}; `rows`, `columns` map ids to labels, choosing and ordering
    what is shown; `percent` names columns that get a % sign. Raises CellsError for an unknown exhibit and for two
    ids with one label, KeyError for a row or column that has no cells.
    """
    value, lo, hi = (grid(cells, exhibit, name) for name in ("value", "lo", "hi"))
    rows = rows or {name: name for name in value.index}
    columns = columns or {name: name for name in value.columns}
    for labels in (rows, columns):
        _refuse_twins(exhibit, labels)

    def entry(row, column):
        places = decimals.get(column, 2) if isinstance(decimals, dict) else decimals
        bounds = (lo.at[row, column], hi.at[row, column]) if intervals else (None, None)
        text = number(value.at[row, column], places, *bounds)
        return f"{text}%" if column in percent and text != "–" else text

    return pd.DataFrame(
        [[entry(row, column) for column in columns] for row in rows],
        index=pd.Index(rows.values(), name=""),
        columns=list(columns.values()),
        dtype=object,
    )


def _refuse_twins(exhibit: str, labels: dict) -> None:
    """Raise CellsError where two ids have one label: a reader could not tell them apart."""
    seen = {}
    for name, label in labels.items():
        if seen.setdefault(label, name) != name:
            raise CellsError(
                f"{exhibit}: {seen[label]!r} and {name!r} have the same label {label!r}; give each its own"
            )


def bold_best(body: pd.DataFrame, values: pd.DataFrame, best=np.nanmax) -> pd.DataFrame:
    """Mark the best entry of each column of `values` (same labels as `body`) with asterisks: `**5.14**`."""
    marked = body.copy()
    for column in values.columns:
        top = values[column] == best(values[column].to_numpy(dtype=float))
        marked.loc[top[top].index, column] = [f"**{text}**" for text in marked.loc[top[top].index, column]]
    return marked


def _esc(text) -> str:
    return html.escape(without_escapes(str(text)))


def to_html(table: Table) -> str:
    """The table as an HTML fragment."""

    def entry(text, tag):
        text = _esc(str(text))
        return f"<{tag}>{_bold(text, '<b>', '</b>')}</{tag}>"

    head = "".join(
        entry(name, "th")
        for name in ["" if table.body.index.name is None else table.body.index.name, *table.body.columns]
    )
    rows = "\n".join(
        "<tr>" + entry(name, "th") + "".join(entry(text, "td") for text in row) + "</tr>"
        for name, row in zip(table.body.index, table.body.to_numpy())
    )
    notes = "".join(f"<p class='note'>{_esc(note)}</p>" for note in table.notes)
    return (
        f"<figure class='table'><figcaption><b>{_esc(table.title)}.</b> {_esc(table.caption)}"
        f"</figcaption>\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>{notes}"
        "</figure>"
    )


def to_latex(table: Table) -> str:
    """The table as a LaTeX float (booktabs)."""

    def entry(text):
        return _bold(str(text).translate(LATEX), r"\textbf{", "}").replace("–", "--").replace("−", "$-$")

    lines = [
        " & ".join(entry(text) for text in (name, *row)) + r" \\"
        for name, row in zip(table.body.index, table.body.to_numpy())
    ]
    head = " & ".join(entry(text) for text in (table.body.index.name or "", *table.body.columns)) + r" \\"
    notes = [rf"\\[2pt] \footnotesize {entry(note)}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{entry(table.caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * table.body.shape[1]}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def write_table(table: Table, folder, name: str) -> list[Path]:
    """Write `<name>.html`, `.tex` and `.csv` below `folder`; return their paths."""
    folder = Path(folder)
    page = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{_esc(table.title)}</title>\n{STYLE}\n"
    )
    plain = table.body.replace(r"\*\*", "", regex=True)
    return [
        write_text_atomic(folder / f"{name}.html", page + to_html(table) + "\n</html>\n"),
        write_text_atomic(folder / f"{name}.tex", to_latex(table)),
        write_text_atomic(folder / f"{name}.csv", plain.to_csv(lineterminator="\n")),
    ]


def _whole(value, decimals):
    """The value, with a rounded-away minus sign dropped."""
    return 0.0 if abs(float(value)) < 0.5 * 10.0**-decimals else float(value)


def _bold(text: str, before: str, after: str) -> str:
    return f"{before}{text[2:-2]}{after}" if text.startswith("**") and text.endswith("**") else text


STYLE = """<style>
body{font:16px/1.5 system-ui,sans-serif;margin:2rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e3e6ea}
tr>:first-child{text-align:left} thead th{border-bottom:2px solid #1b1f24}
figcaption{max-width:60rem;margin-bottom:.6rem} .note{color:#555;font-size:.9em}
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#15181c}
th,td{border-color:#333a42}thead th{border-color:#e6e8eb}.note{color:#aaa}}
</style>"""
