"""The verification page, in pieces that the report (one self-contained file) and the book both show.

`rows_json` makes the rows, `form` the filters, `overview` the counts, `findings_html` the papers against themselves;
static/verification.js draws, filters and searches.
"""

import html
import json
from collections import Counter
from pathlib import Path

import pandas as pd

from compendium.frame.cells import findings, held
from compendium.frame.files import without_escapes
from compendium.frame.params import study_params
from compendium.frame.tables import number
from compendium.frame.verdict import EVIDENCE, LOOKS, OUTCOMES, bound_sign, independent, stylesheet

PROFILE_NOTE = {
    "demo": "Profile demo: what is computed from data comes from simulated models whose truth is known. None of "
    "it reproduces the paper, and none claims to; only numbers that follow from the paper's own printed "
    "numbers have an outcome.",
    "released": "Profile released: computed from the archives that the authors published, where we hold them.",
    "live": "Profile live: computed from models asked now, not from the paper's run.",
}
SIDES = {"one place": "first", "the other": "second"}
KIND = {"contradiction": "contradicts", "reconcilable": "reconcilable", "oddity": "not computed"}
DIGITS = 12  # a leaderboard's file prints 16 decimals: more of a double is noise of its last bit
SCRIPT = Path(__file__).parent / "static" / "verification.js"


def page(report: pd.DataFrame, summaries, studies, profile: str) -> str:
    """The whole page as a string; asks nothing of any other host. `summaries` is {study: its closing line}."""
    lines = overview(report, [(study, study, "") for study in studies])
    named = labels(studies)
    rows = [
        row_of(
            row,
            named,
            "",
            f"notebooks/{row['notebook']}.html#cell-id={row['cell']}" if row["notebook"] else "",
        )
        for row in report.to_dict("records")
    ]
    return PAGE.format(
        profile=_esc(profile),
        body=form(profile, lines, [(study, study) for study in studies]),
        closing="".join(f"<li>{_esc(line)}</li>" for line in summaries),
        sections="".join(
            f"<h3>{_esc(study)}</h3>{findings_html(study)}" for study in studies if findings(study)
        ),
        style=f"<style>{stylesheet()}{STYLE}</style>",
        script=f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>",
        data=rows_json(rows),
    )


def row_of(row, named, anchor: str, made: str, makers: int = 0) -> list:
    """One printed number as the script reads it. `named` is {study: {id: label}}, `anchor` and `made` are links."""
    label = named.get(row["study"], {})
    return [
        row["study"],
        row["exhibit"],
        row["row"],
        row["column"],
        row["outcome"],
        row["evidence"],
        printed_text(row),
        computed_text(row),
        row["place"],
        "; ".join(filter(None, [row["note"], row["why"]])),
        anchor,
        made,
        makers,
        label.get(row["row"], ""),
        label.get(row["column"], ""),
    ]


def rows_json(rows, pages=None, sets=((),), functions=()) -> str:
    """What the script reads, as compact JSON that is safe inside a script element."""
    data = {
        "rows": rows,
        "pages": pages or {},
        "sets": [list(makers) for makers in sets],
        "functions": list(functions),
        "signs": {outcome: looks[1] for outcome, looks in LOOKS.items()},
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def labels(studies) -> dict:
    """{study: {id: the name people use}} from the studies' params: shown beside ids and searched."""
    return {study: _labels(study) for study in studies}


def overview(report: pd.DataFrame, studies) -> str:
    """A line a study as a table: its bar, its counts, the independent equations behind them, its findings.

    studies : (study, title, link or "") each.
    """
    behind = independent(report)
    rows = ""
    for study, title, link in studies:
        mine = report[report["study"] == study]
        if not len(mine):
            continue
        counts = Counter(mine["outcome"])
        head = f"<a href='{_esc(link)}'>{_esc(title)}</a>" if link else _esc(title)
        rows += (
            f"<tr><th>{head}</th><td>{bar(counts)}</td><td>{counts_line(counts)}"
            f"<br><small>{_esc(equations_line(behind, study))} {_esc(findings_line(study))} "
            f"{_esc(lost_line(study))}</small></td></tr>"
        )
    return rows


def equations_line(behind: pd.DataFrame, study: str) -> str:
    """How many independent equations stand behind the agreements: "agrees: 100 numbers, 10 equations." """
    mine = behind[behind["study"] == study]
    said = [
        f"{row.outcome} {row.rows:,} numbers, {row.equations:,} independent"
        for row in mine.itertuples()
        if row.rows != row.equations
    ]
    return f"{'; '.join(said)}." if said else ""


def findings_line(study: str) -> str:
    """What is on record of a paper against itself, counted by kind."""
    counts = Counter(entry["kind"] for entry in findings(study))
    words = {"contradiction": "contradictions", "reconcilable": "reconcilable places", "oddity": "oddities"}
    said = [f"{counts[kind]} {words[kind]}" for kind in words if counts[kind]]
    return f"On record: {', '.join(said)}." if said else ""


def lost_line(study: str) -> str:
    """Which exhibits are not in the list of printed numbers, because the text copy of the paper lost them."""
    lost = held(study).get("lost", [])
    return f"Not listed, lost by the text copy ({len(lost)}): {', '.join(lost)}." if lost else ""


def bar(counts: dict, label: str = "") -> str:
    """Counts of outcomes as one stacked bar, with the counts in words for readers who do not see it."""
    total = sum(counts.values()) or 1
    words = ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts.get(outcome))
    parts = "".join(
        f"<span class='{outcome.replace(' ', '-')}' style='flex-grow:{counts[outcome] / total:.4f}' "
        f"title='{outcome}: {counts[outcome]}'></span>"
        for outcome in OUTCOMES
        if counts.get(outcome)
    )
    return f"<div class='bar' role='img' aria-label='{_esc(label)}{words or 'nothing printed'}'>{parts}</div>"


def counts_line(counts: dict) -> str:
    """The same counts as a row of marks."""
    return " ".join(
        f"<span class='count'>{pill(outcome)} {counts[outcome]}</span>"
        for outcome in OUTCOMES
        if counts.get(outcome)
    )


def pill(outcome: str, evidence: str = "") -> str:
    """An outcome as a labelled mark (the sign in it tells it apart without colour), and the evidence beside it."""
    if not outcome:
        return "<span class='s not-printed'>not printed</span>"
    sign = f"<i aria-hidden='true'>{LOOKS[outcome][1]}</i>"
    on = f" <span class='on'>{_esc(evidence)}</span>" if evidence else ""
    return f"<span class='s {outcome.replace(' ', '-')}'>{sign} {outcome}</span>{on}"


def form(profile: str, lines: str, studies) -> str:
    """The page from its overview down to the empty table. `studies` is (study, title) each."""
    meanings = "".join(
        f"<dt>{pill(outcome)}</dt><dd>{_esc(looks[0])}</dd>" for outcome, looks in LOOKS.items()
    )
    on = "".join(f"<dt><b>{word}</b></dt><dd>{_esc(text)}</dd>" for word, text in EVIDENCE.items())
    return FORM.format(
        note=_esc(PROFILE_NOTE[profile]),
        lines=lines,
        meanings=meanings + on,
        studies="".join(f"<option value='{study}'>{_esc(title)}</option>" for study, title in studies),
        outcomes="".join(f"<option>{outcome}</option>" for outcome in OUTCOMES),
        evidence="".join(f"<option>{word}</option>" for word in EVIDENCE),
    )


def findings_html(study: str) -> str:
    """The findings on a paper against itself: prose in one column, both places quoted."""
    return "".join(
        "<section class='finding' id='finding-{id}'><h4>{pill} {title}</h4>{first}{second}<p>{finding}</p>"
        "{tried}{independent}</section>".format(
            id=_esc(entry["id"]),
            pill=f"<span class='s {KIND[entry['kind']].replace(' ', '-')}'>{entry['kind']}</span>",
            title=_esc(entry["title"]),
            first=_side(entry["first"]),
            second=_side(entry["second"]),
            finding=_esc(" ".join(str(entry["finding"]).split())),
            tried="<p>Tried:</p><ul>" + "".join(f"<li>{_esc(one)}</li>" for one in entry["tried"]) + "</ul>"
            if entry["tried"]
            else "",
            independent=f"<p>Bearing on it: {_esc(entry['independent'])}</p>" if entry["independent"] else "",
        )
        for entry in findings(study)
    )


def findings_table(study: str) -> pd.DataFrame:
    """What is on record of a paper against itself, for a notebook: a row a finding."""
    found = findings(study)
    rows = [
        {
            "kind": entry["kind"],
            **{name: f"{_plain(entry[side])} ({entry[side]['place']})" for name, side in SIDES.items()},
            "finding": " ".join(entry["finding"].split()),
        }
        for entry in found
    ]
    return pd.DataFrame(rows, index=pd.Index([entry["title"] for entry in found], name="about"))


def printed_text(row) -> str:
    """A printed number (a row of the report) as the paper has it: `5.14 [4.78, 5.51]`, `< 0.001`."""
    decimals = 0 if pd.isna(row["decimals"]) else int(row["decimals"])
    text = number(row["value"], decimals, row["lo"], row["hi"])
    return f"{bound_sign(row['note'])} {text}" if row["kind"] == "bound" else text


def computed_text(row) -> str:
    """The computed number with two more digits than printed, so that a near miss can be seen; at most twelve."""
    value = row["computed"]
    if pd.isna(value):
        return ""
    decimals = 0 if pd.isna(row["decimals"]) else int(row["decimals"])
    if decimals or value != round(value):  # a count that is a whole number is shown as one
        decimals = min(decimals + 2, DIGITS)
    if value and abs(value) < 10.0**-decimals:
        return f"{value:.2e}"
    return number(value, decimals, row["computed_lo"], row["computed_hi"])


def _labels(study: str) -> dict:
    found = {}
    for value in study_params(study).values():
        if isinstance(value, dict):
            named = {
                key: entry.get("label") if isinstance(entry, dict) else entry for key, entry in value.items()
            }
            found.update({str(key): name for key, name in named.items() if isinstance(name, str)})
    return found


def _side(side) -> str:
    return f"<blockquote>{_esc(_plain(side))}<br><small>{_esc(side['place'])}</small></blockquote>"


def _plain(side) -> str:
    return f"“{side['quote']}”" if "quote" in side else str(side["shows"])


def _esc(text) -> str:
    return html.escape(without_escapes(str(text)), quote=True)


FORM = """<p class="lead">{note}</p>
<div class="wide"><table class="verdicts">{lines}</table></div>
<details><summary>What the words mean</summary><dl class="meanings">{meanings}</dl></details>
<form id="filters" aria-label="Filter the numbers">
<label>Study <select id="study"><option value="">all</option>{studies}</select></label>
<label>Exhibit <select id="exhibit"><option value="">all</option></select></label>
<label>Outcome <select id="outcome"><option value="">all</option>{outcomes}</select></label>
<label>Evidence <select id="evidence"><option value="">all</option>{evidence}</select></label>
<label class="grow">Search
<input id="text" type="search" placeholder="0.551, table 12, model … ( / )" autocomplete="off"></label>
<output id="count" aria-live="polite"></output></form>
<p class="keys"><kbd>/</kbd> search · <kbd>j</kbd> <kbd>k</kbd> next and previous number · <kbd>Enter</kbd>
the cell that made it · <kbd>f</kbd> its function · <kbd>Esc</kbd> clear</p>
<div class="wide"><table id="rows" class="numbers"><thead><tr><th>Address</th><th>Printed</th>
<th>Computed</th><th>Outcome, evidence</th><th>Made by</th>
<th>In the paper; why</th></tr></thead><tbody></tbody></table></div>
<p><button id="more" type="button" hidden>Show all rows</button></p>
<noscript><p>The table needs scripts; verification.csv holds the same numbers.</p></noscript>"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Verification ({profile})</title>{style}</head><body>
<h1>Did the printed numbers come out?</h1>
{body}
<details><summary>The run in lines</summary><ul class="summary">{closing}</ul></details>
<h2 id="findings">The papers against themselves</h2>
{sections}
<script type="application/json" id="data">{data}</script>
{script}</body></html>
"""

STYLE = """
:root{--ink:#1b1f24;--paper:#fff;--rule:#dfe3e8;--card:#f5f6f8;--link:#0b5cad}
@media(prefers-color-scheme:dark){
:root{--ink:#e6e8eb;--paper:#14171b;--rule:#333a42;--card:#1d2228;--link:#7ab8f5}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:76rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{margin:.2rem 0}.lead,.finding{max-width:48rem}a{color:var(--link)}blockquote{margin:.4rem 0;
border-left:3px solid var(--rule);padding-left:.8rem}.finding h4{margin:1.2rem 0 .3rem}
form{position:sticky;top:0;background:var(--paper);padding:.6rem 0;display:flex;gap:.8rem;flex-wrap:wrap;
align-items:end;border-bottom:1px solid var(--rule);z-index:1}
label{font-size:.85rem;display:grid}.grow{flex:1 1 12rem}.keys{font-size:.82rem;opacity:.8}
select,input,button{font:inherit;padding:.25rem .4rem;color:inherit;background:var(--card);
border:1px solid var(--rule);border-radius:4px;min-width:0;max-width:100%}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.verdicts td:nth-child(2){width:12rem}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top}
thead th{background:var(--card)}small{opacity:.8}td small{display:block}.on{font-size:.82rem;opacity:.85}
.at{outline:2px solid var(--link)}.wide{overflow-x:auto}dt{margin-top:.4rem}
@media(max-width:760px){form{position:static}thead{display:none}
.numbers tr{display:block;border:1px solid var(--rule);border-radius:8px;margin:.6rem 0;padding:.3rem}
.numbers td,.verdicts tr,.verdicts th,.verdicts td{display:block;border:0;padding:.1rem .3rem;width:auto!important}
.numbers td:empty,.keys{display:none}.numbers td[data-label]::before{content:attr(data-label) ": ";opacity:.8}}
"""
