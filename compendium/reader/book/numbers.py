"""The numbers of a run, each with its verdict, the cell that made it and the functions behind it; their
pages.
"""

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.frame.cells import contradictions
from compendium.frame.report import MEANING, PROFILE_NOTE, computed_text, printed_text
from compendium.frame.tables import number
from compendium.frame.verify import STATUSES
from compendium.reader.book.api import Library
from compendium.reader.book.gather import Run
from compendium.reader.book.markup import (
    anchor_of,
    bar,
    counts_line,
    esc,
    exhibit_title,
    folded,
    link,
    note_html,
    pill,
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
    status: str = ""
    verdict: str = ""
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
        """{status: printed numbers that have it} of a study or one of its exhibits."""
        return Counter(
            each.status
            for each in self.all
            if each.study == study and each.status and exhibit in (None, each.exhibit)
        )

    def _printed(self):
        for row in self.run.report.to_dict("records"):
            note = "; ".join(filter(None, [row["note"], row["remark"]]))
            yield self._with_makers(
                Number(
                    row["study"],
                    row["exhibit"],
                    row["row"],
                    row["column"],
                    printed_text(row),
                    computed_text(row),
                    row["status"],
                    row["verdict"],
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
    counts = Counter(each.status for each in rows if each.status)
    head = raw(
        f"<p class='crumbs'><a href='{link(page, f'studies/{study}.html')}'>{esc(title)}</a> · "
        f"<a href='{link(page, 'verification.html')}#study={study}&amp;exhibit={esc(exhibit)}'>in the "
        f"verification "
        f"table</a></p>{bar(counts)}<p>{counts_line(counts)}</p>"
    )
    body = "".join(_line(numbers, each, page) for each in rows)
    table = raw(
        "<div class='wide'><table class='numbers exhibit'><thead><tr><th>Row</th><th>Column</th><th>Printed</th>"
        "<th>Computed</th><th>Status</th><th>Made by</th><th>In the paper; note</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
    return f"# {title}: {exhibit_title(exhibit)}\n\n{head}\n{table}"


def verification_source(numbers: Numbers) -> str:
    """The verification page: every printed number, to be searched and filtered; the rows come from a script
    beside it.
    """
    run = numbers.run
    lines = "".join(
        f"<tr><th><a href='studies/{study}.html'>{esc(run.facts.get(study, {}).get('title', study))}</a></th>"
        f"<td>{bar(numbers.counts(study))}</td><td>{counts_line(numbers.counts(study))}</td></tr>"
        for study in run.studies
        if len(run.of(study))
    )
    meanings = "".join(f"<dt>{pill(status)}</dt><dd>{esc(text)}</dd>" for status, text in MEANING.items())
    studies = "".join(
        f"<option value='{study}'>{esc(run.facts.get(study, {}).get('title', study))}</option>"
        for study in run.studies
        if len(run.of(study))
    )
    statuses = "".join(f"<option>{status}</option>" for status in (*STATUSES, "contradicts"))
    body = FORM.format(
        note=esc(PROFILE_NOTE[run.profile]),
        lines=lines,
        meanings=meanings,
        studies=studies,
        statuses=statuses,
    )
    against = "\n".join(
        contradictions_source(study, run.facts.get(study, {}).get("title", study), level=3)
        for study in run.studies
        if contradictions(study)
    )
    return (
        f"# Did the printed numbers come out?\n\n{raw(body)}\n## The papers against themselves\n\n{against}"
    )


def verification_script(numbers: Numbers) -> str:
    """The rows of the verification page as a script (pages opened from a folder may not fetch)."""
    functions, sets = {}, {}
    rows = []
    for each in numbers.all:
        if not each.status:
            continue
        makers = tuple(functions.setdefault(name, len(functions)) for name in each.makers[:3])
        rows.append(
            [
                each.study,
                each.exhibit,
                each.row,
                each.column,
                each.status,
                each.verdict,
                each.printed,
                each.computed,
                each.place,
                each.note,
                each.anchor,
                each.made_at,
                sets.setdefault(makers, len(sets)),
            ]
        )
    pages = {
        study: {exhibit: exhibit_page(study, exhibit) for exhibit in exhibits}
        for study, exhibits in numbers.exhibits.items()
    }
    data = {
        "rows": rows,
        "pages": pages,
        "sets": [list(makers) for makers in sets],
        "functions": [
            [numbers.library.functions[name].anchor, numbers.library.link(name), name] for name in functions
        ],
    }
    return f"window.NUMBERS = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"


def contradictions_source(study: str, title: str, level: int = 2) -> str:
    """The recorded contradictions of a paper with itself, as one table."""
    found = contradictions(study)
    rows = "".join(
        f"<tr><td><b>{esc(one['title'])}</b><br>{esc(one['finding'])}</td>"
        + "".join(
            f"<td>“{esc(one[side]['quote'])}”<br><small>{esc(one[side]['place'])}</small></td>"
            for side in ("first", "second")
        )
        + "</tr>"
        for one in found
    )
    heading = f"{'#' * level} {title}: {len(found)} places\n\n" if found else ""
    return heading + (
        raw(
            "<div class='wide'><table class='against'><thead><tr><th>What</th><th>One place</th>"
            f"<th>The other</th></tr></thead><tbody>{rows}</tbody></table></div>"
        )
        if found
        else ""
    )


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
    cells = (
        ("Row", soft(each.row)),
        ("Column", soft(each.column)),
        ("Printed", value_html(each.printed)),
        ("Computed", value),
        ("Status", pill(each.status) + (f" {pill(each.verdict)}" if each.verdict else "")),
        ("Made by", made + makers_html(numbers.library, each.makers, page)),
        ("In the paper", esc(each.place) + note_html(each.note)),
    )
    return (
        f"<tr id='{each.anchor}'>"
        + "".join(f"<td data-label='{name}'>{text}</td>" for name, text in cells)
        + "</tr>"
    )


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


FORM = """<p class="lead">{note}</p>
<table class="verdicts">{lines}</table>
<details><summary>What the statuses mean</summary><dl class="meanings">{meanings}</dl></details>
<form id="filters" aria-label="Filter the numbers">
<label>Study <select id="study"><option value="">all</option>{studies}</select></label>
<label>Exhibit <select id="exhibit"><option value="">all</option></select></label>
<label>Status <select id="status"><option value="">all</option>{statuses}</select></label>
<label class="grow">Search
<input id="text" type="search" placeholder="model, feature, place … ( / )" autocomplete="off"></label>
<output id="count" aria-live="polite"></output></form>
<p class="keys"><kbd>/</kbd> search · <kbd>j</kbd> <kbd>k</kbd> next and previous number · <kbd>Enter</kbd>
the cell that made it · <kbd>f</kbd> its function · <kbd>Esc</kbd> clear</p>
<div class="wide"><table id="rows" class="numbers"><thead><tr><th>Address</th><th>Printed</th>
<th>Computed</th><th>Status</th><th>Made by</th>
<th>In the paper; note</th></tr></thead><tbody></tbody></table></div>
<p><button id="more" type="button" hidden>Show all rows</button></p>
<noscript><p>The table needs scripts; the pages of the studies list the same numbers without.</p></noscript>
<script src="_static/numbers.js"></script><script src="_static/verification.js"></script>"""
