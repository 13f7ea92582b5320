"""The numbers of a run, each with its verdict, the cell that made it and the functions behind it; their
pages.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.frame.cells import findings
from compendium.frame.report import (
    bar,
    computed_text,
    counts_line,
    findings_html,
    form,
    labels,
    overview,
    pill,
    printed_text,
    row_of,
    rows_json,
)
from compendium.frame.tables import number
from compendium.reader.book.api import Library
from compendium.reader.book.gather import Run
from compendium.reader.book.markup import (
    anchor_of,
    esc,
    exhibit_title,
    folded,
    link,
    note_html,
    raw,
    soft,
    value_html,
)
from compendium.reader.book.trace import Trace


@dataclass
class Number:
    """One number: its address, what is printed and computed, its verdict, and where it was made."""

    study: str
    exhibit: str
    row: str
    column: str
    printed: str = ""
    computed: str = ""
    outcome: str = ""
    evidence: str = ""
    place: str = ""
    note: str = ""
    notebook: str = ""
    cell: str = ""
    makers: tuple = ()
    anchor: str = ""

    @property
    def page(self) -> str:
        """Where it is listed, from the book's root."""
        return f"{exhibit_page(self.study, self.exhibit)}#{self.anchor}"

    @property
    def made_at(self) -> str:
        """The notebook cell that made it, from the book's root; empty where nothing did."""
        return f"notebooks/{self.notebook}.html#cell-{anchor_of(self.cell)}" if self.notebook else ""


def exhibit_page(study: str, exhibit: str) -> str:
    """The page that lists an exhibit's numbers."""
    return f"numbers/{study}/{anchor_of(exhibit)}.html"


class Numbers:
    """All numbers of a run, and the ways to look them up."""

    def __init__(self, run: Run, library: Library):
        self.run, self.library = run, library
        self.labels = labels(run.studies)
        self.traces = {key: Trace(book.code(), library) for key, book in run.notebooks.items()}
        self.all = [*self._printed(), *self._unprinted()]
        self.exhibits, self.by_cell, self.by_function = {}, {}, {}
        for each in self.all:
            self.exhibits.setdefault(each.study, {}).setdefault(each.exhibit, []).append(each)
            if each.notebook:
                self.by_cell.setdefault((each.notebook, each.cell), []).append(each)
            for name in each.makers:
                self.by_function.setdefault(name, []).append(each)
        for exhibits in self.exhibits.values():
            for rows in exhibits.values():
                _name_anchors(rows)

    def counts(self, study: str, exhibit: str | None = None) -> dict:
        """{outcome: printed numbers that have it} of a study or one of its exhibits."""
        return Counter(
            each.outcome
            for each in self.all
            if each.study == study and each.outcome and exhibit in (None, each.exhibit)
        )

    def in_print(self) -> pd.DataFrame:
        """The report's rows that the papers print as numbers."""
        return self.run.report[self.run.report["print"] == "number"]

    def _printed(self):
        for row in self.run.report.to_dict("records"):
            note = "; ".join(filter(None, [row["note"], row["why"]]))
            yield self._with_makers(
                Number(
                    row["study"],
                    row["exhibit"],
                    row["row"],
                    row["column"],
                    printed_text(row),
                    computed_text(row),
                    row["outcome"] if row["print"] == "number" else "",
                    row["evidence"],
                    row["place"],
                    note,
                    row["notebook"],
                    row["cell"],
                )
            )

    def _unprinted(self):
        """What was computed beyond what the papers print."""
        keys = ["study", "exhibit", "row", "column"]
        known = set(map(tuple, self.run.report[keys].to_numpy()))
        for row in self.run.computed.to_dict("records"):
            if tuple(row[name] for name in keys) not in known:
                text = number(row["value"], _digits(row["value"]), row["lo"], row["hi"])
                yield self._with_makers(
                    Number(
                        *(row[name] for name in keys),
                        computed=text,
                        note=row["note"],
                        notebook=row["notebook"],
                        cell=row["cell"],
                    )
                )

    def _with_makers(self, each: Number) -> Number:
        trace = self.traces.get(each.notebook)
        if trace is not None and each.cell:
            each.makers = tuple(trace.makers(each.cell, each.exhibit, each.row, each.column))
        return each


def exhibit_source(numbers: Numbers, study: str, exhibit: str) -> str:
    """The page of one exhibit: a line a number, linked to its cell and its functions."""
    rows, page = numbers.exhibits[study][exhibit], exhibit_page(study, exhibit)
    title = numbers.run.facts.get(study, {}).get("title", study)
    counts = Counter(each.outcome for each in rows if each.outcome)
    head = raw(
        f"<p class='crumbs'><a href='{link(page, f'studies/{study}.html')}'>{esc(title)}</a> · "
        f"<a href='{link(page, 'verification.html')}#study={study}&amp;exhibit={esc(exhibit)}'>in the "
        f"verification "
        f"table</a></p>{bar(counts)}<p>{counts_line(counts)}</p>"
    )
    body = "".join(_line(numbers, each, page) for each in rows)
    table = raw(
        "<div class='wide'><table class='numbers exhibit'><thead><tr><th>Row</th><th>Column</th><th>Printed</th>"
        "<th>Computed</th><th>Outcome, evidence</th><th>Made by</th><th>In the paper; why</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
    return f"# {title}: {exhibit_title(exhibit)}\n\n{head}\n{table}"


def verification_source(numbers: Numbers) -> str:
    """The verification page: every printed number, to be searched and filtered; the rows come from a script
    beside it.
    """
    run = numbers.run
    shown = [study for study in run.studies if len(run.of(study))]
    titles = {study: run.facts.get(study, {}).get("title", study) for study in shown}
    lines = overview(numbers.in_print(), [(study, titles[study], f"studies/{study}.html") for study in shown])
    body = form(run.profile, lines, list(titles.items()))
    scripts = "".join(f"<script src='_static/{name}.js'></script>" for name in ("numbers", "verification"))
    against = "\n".join(findings_source(study, titles[study], level=3) for study in shown)
    return (
        f"# Did the printed numbers come out?\n\n{raw(body + scripts)}\n"
        f"## The papers against themselves\n\n{against}"
    )


def verification_script(numbers: Numbers) -> str:
    """The rows of the verification page as a script (pages opened from a folder may not fetch)."""
    functions, sets, rows = {}, {(): 0}, []
    named = numbers.labels
    lines = numbers.run.report.to_dict("records")
    for line, each in zip(lines, numbers.all):
        if each.outcome:
            makers = tuple(functions.setdefault(name, len(functions)) for name in each.makers[:3])
            rows.append(row_of(line, named, each.anchor, each.made_at, sets.setdefault(makers, len(sets))))
    pages = {
        study: {exhibit: exhibit_page(study, exhibit) for exhibit in exhibits}
        for study, exhibits in numbers.exhibits.items()
    }
    links = [[numbers.library.functions[name].anchor, numbers.library.link(name), name] for name in functions]
    return f"window.NUMBERS = {rows_json(rows, pages, sets, links)};\n"


def findings_source(study: str, title: str, level: int = 2) -> str:
    """What is on record of a paper against itself, one column of prose; empty where nothing is."""
    if not findings(study):
        return ""
    return f"{'#' * level} {title}\n\n{raw(findings_html(study))}"


def makers_html(library: Library, makers, page: str, most: int = 3) -> str:
    """Links to functions, nearest first; those beyond `most` are folded."""
    links = [
        f"<a href='{link(page, library.link(name))}' title='{esc(name)}'><code>"
        f"{esc(library.functions[name].anchor)}</code></a>"
        for name in makers
    ]
    return " ".join(links[:most]) + folded(links[most:], " ")


def _line(numbers: Numbers, each: Number, page: str) -> str:
    made = (
        f"<a href='{link(page, each.made_at)}'>{soft(each.notebook.split('/')[-1])}</a> "
        if each.made_at
        else ""
    )
    value = (
        f"<a href='{link(page, each.made_at)}'>{value_html(each.computed)}</a>"
        if each.made_at and each.computed
        else value_html(each.computed)
    )
    named = numbers.labels.get(each.study, {})
    cells = (
        ("Row", _named(each.row, named)),
        ("Column", _named(each.column, named)),
        ("Printed", value_html(each.printed)),
        ("Computed", value),
        ("Outcome", pill(each.outcome, each.evidence)),
        ("Made by", made + makers_html(numbers.library, each.makers, page)),
        ("In the paper", esc(each.place) + note_html(each.note)),
    )
    return (
        f"<tr id='{each.anchor}'>"
        + "".join(f"<td data-label='{name}'>{text}</td>" for name, text in cells)
        + "</tr>"
    )


def _named(name: str, named: dict) -> str:
    """An id with the label that people use before it, where there is another."""
    label = named.get(name, name)
    return soft(name) if label == name else f"{esc(label)} <small>{soft(name)}</small>"


def _name_anchors(rows):
    taken = set()
    for each in rows:
        name = base = anchor_of(each.row, each.column)
        count = 1
        while name in taken:
            count += 1
            name = f"{base}--{count}"
        taken.add(name)
        each.anchor = name


def _digits(value) -> int:
    """Decimals that show about four digits of a number nobody printed."""
    if pd.isna(value) or value == round(value):
        return 0
    return int(np.clip(3 - np.floor(np.log10(abs(value))), 0, 8))
