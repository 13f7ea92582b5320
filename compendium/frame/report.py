"""The verification page: one self-contained HTML file, filterable, each number a link to the cell that made it."""

import html
import json

import pandas as pd

from compendium.frame.cells import bound_sign, contradictions
from compendium.frame.params import study_params
from compendium.frame.tables import number
from compendium.frame.verify import STATUSES, summary

MEANING = {
    "reproduced": "computed from the released data, equal at the printed rounding",
    "within": "a Monte Carlo quantity, inside its stated tolerance",
    "differs": "computed from the released data, and not equal",
    "derived": "recomputed from other numbers the same paper prints",
    "other run": "the data at hand are not the run the paper reports",
    "no data": "no released file at hand covers it, or it is a constant or choice of the design",
}
PROFILE_NOTE = {
    "demo": "Profile demo: what is computed from data comes from simulated models whose truth is known. None of "
    "it reproduces the paper, and none claims to; only numbers derived from the paper's own printed "
    "numbers have a verdict.",
    "released": "Profile released: computed from the archives that the authors published.",
    "live": "Profile live: computed from models asked now, not from the paper's run.",
}


def page(report: pd.DataFrame, computed: pd.DataFrame, studies, profile: str) -> str:
    """The whole page as a string; asks nothing of any other host."""
    lines = "".join(f"<li>{html.escape(summary(report, computed, study))}</li>" for study in studies)
    meanings = "".join(
        f"<dt><span class='s {status.replace(' ', '-')}'>{status}</span></dt><dd>{text}</dd>"
        for status, text in MEANING.items()
    )
    sections = "".join(_contradictions(study) for study in studies)
    return PAGE.format(
        profile=html.escape(profile),
        note=html.escape(PROFILE_NOTE[profile]),
        lines=lines,
        meanings=meanings,
        studies=_options(studies),
        statuses=_options(STATUSES),
        sections=sections,
        style=STYLE,
        script=SCRIPT,
        exhibits=_options(dict.fromkeys(report["exhibit"])),
        data=_data(report),
    )


def _options(names) -> str:
    return "".join(f"<option>{html.escape(str(name))}</option>" for name in names)


def _data(report: pd.DataFrame) -> str:
    """The rows as compact JSON, safe inside a script element; the last entry is what only the search reads."""
    rows, labels = [], {study: _labels(study) for study in dict.fromkeys(report["study"])}
    for row in report.to_dict("records"):
        link = f"notebooks/{row['notebook']}.html#cell-id={row['cell']}" if row["notebook"] else ""
        said = "; ".join(filter(None, [row["note"], row["remark"]]))
        rows.append(
            [
                row["study"],
                row["exhibit"],
                row["row"],
                row["column"],
                row["status"],
                row["verdict"],
                printed_text(row),
                computed_text(row),
                row["place"],
                said,
                link,
                " ".join(labels[row["study"]].get(row[end], "") for end in ("row", "column")),
            ]
        )
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _labels(study: str) -> dict:
    """{id: the name people use} from the study's params, so that a search for either finds the number."""
    found = {}
    for value in study_params(study).values():
        if isinstance(value, dict):
            named = {
                key: entry.get("label") if isinstance(entry, dict) else entry for key, entry in value.items()
            }
            found.update({str(key): name for key, name in named.items() if isinstance(name, str)})
    return found


def printed_text(row) -> str:
    """A printed number (a row of the report) as the paper has it: `5.14 [4.78, 5.51]`, `< 0.001`."""
    decimals = 0 if pd.isna(row["decimals"]) else int(row["decimals"])
    text = number(row["value"], decimals, row["lo"], row["hi"])
    return f"{bound_sign(row['note'])} {text}" if row["kind"] == "bound" else text


def computed_text(row) -> str:
    """The computed number with two more digits than printed, so that a near miss can be seen."""
    value = row["computed"]
    if pd.isna(value):
        return ""
    decimals = 0 if pd.isna(row["decimals"]) else int(row["decimals"])
    if decimals or value != round(value):  # a count that is a whole number is shown as one
        decimals += 2
    if value and abs(value) < 10.0**-decimals:
        return f"{value:.2e}"
    return number(value, decimals, row["computed_lo"], row["computed_hi"])


def _contradictions(study: str) -> str:
    found = contradictions(study)
    if not found:
        return ""
    items = "".join(
        "<tr><td><b>{title}</b><br>{finding}</td><td>{a}<br><small>{pa}</small></td>"
        "<td>{b}<br><small>{pb}</small></td></tr>".format(
            title=html.escape(str(one["title"])),
            finding=html.escape(str(one["finding"])),
            a=_quote(one["first"]),
            pa=html.escape(str(one["first"]["place"])),
            b=_quote(one["second"]),
            pb=html.escape(str(one["second"]["place"])),
        )
        for one in found
    )
    return (
        f"<h3>{html.escape(study)}: {len(found)} places that disagree or seem to</h3>"
        "<div class='scroll'><table class='against'><thead><tr><th>What</th>"
        f"<th>One place</th><th>The other</th></tr></thead><tbody>{items}</tbody></table></div>"
    )


def _quote(side) -> str:
    return f"“{html.escape(str(side['quote']))}”"


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Verification ({profile})</title>{style}</head><body>
<h1>Did the printed numbers come out?</h1>
<p class="lead">{note}</p>
<ul class="summary">{lines}</ul>
<details><summary>What the statuses mean</summary><dl>{meanings}</dl></details>
<form id="filters" onsubmit="return false">
<label>Study <select id="study"><option value="">all</option>{studies}</select></label>
<label>Exhibit <select id="exhibit"><option value="">all</option>{exhibits}</select></label>
<label>Status <select id="status"><option value="">all</option>{statuses}
<option>contradicts</option></select></label>
<label>Search <input id="text" type="search" placeholder="model, feature, place …"></label>
<output id="count" aria-live="polite"></output></form>
<div class="scroll"><table id="rows"><thead><tr><th>Address</th><th>Printed</th><th>Computed</th><th>Status</th>
<th>Where in the paper</th><th>Note</th></tr></thead><tbody></tbody></table></div>
<p><button id="more" hidden>Show all rows</button></p>
<h2 id="contradictions">Where the papers disagree with themselves, or seem to</h2>
{sections}
<script type="application/json" id="data">{data}</script>
{script}</body></html>
"""

STYLE = """<style>
:root{--ink:#1b1f24;--paper:#fff;--line:#dfe3e8;--soft:#f5f6f8;--link:#0b5cad}
@media(prefers-color-scheme:dark){
:root{--ink:#e6e8eb;--paper:#14171b;--line:#333a42;--soft:#1d2228;--link:#7ab8f5}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:76rem;margin:0 auto;padding:1.5rem}
h1{margin:.2rem 0}.lead{max-width:48rem}a{color:var(--link)}
.summary{font-variant-numeric:tabular-nums;padding-left:1.1rem}
form{position:sticky;top:0;background:var(--paper);padding:.6rem 0;display:flex;gap:.8rem;flex-wrap:wrap;
align-items:end;border-bottom:1px solid var(--line);z-index:1}
label{font-size:.85rem;display:grid}
select,input,button{font:inherit;padding:.25rem .4rem;color:inherit;background:var(--soft);
border:1px solid var(--line);border-radius:4px;max-width:15rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
thead th{background:var(--soft)}td small{opacity:.75}
#rows td:nth-child(2),#rows td:nth-child(3){white-space:nowrap}.against td{width:33%}
.s{border-radius:999px;padding:.05rem .55rem;font-size:.85rem;white-space:nowrap;background:#dde1e6;color:#1b1f24}
.reproduced,.agrees{background:#bfe6d2}.within{background:#d6eec2}
.differs,.contradicts{background:#f6c6bd}.other-run{background:#e8e0f2}
.derived{background:#cfe3f5}.scroll{overflow-x:auto}dt{margin-top:.4rem}
</style>"""

SCRIPT = """<script>
const rows=JSON.parse(document.getElementById('data').textContent),body=document.querySelector('#rows tbody'),
get=id=>document.getElementById(id),
esc=t=>String(t).replace(/[&<>"]/g,c=>({'&':'&amp;','<':'&lt;','>':'&gt;','"':'&quot;'}[c]));
const LIMIT=400;let all=false;
function mark(s){return `<span class="s ${s.replace(' ','-')}">${s}</span>`}
function line(r){const name=`${esc(r[0])} / <b>${esc(r[1])}</b> [${esc(r[2])}, ${esc(r[3])}]`,
 value=r[10]&&r[7]?`<a href="${esc(r[10])}">${esc(r[7])}</a>`:esc(r[7]);
 const status=mark(r[4])+(r[5]?' '+mark(r[5]):''),cells=[name,esc(r[6]),value,status,esc(r[8]),esc(r[9])];
 return `<tr>${cells.map(c=>`<td>${c}</td>`).join('')}</tr>`}
function show(){const said=get('text').value.toLowerCase(),table=said.match(/^\\s*(table|figure)[ -]?(\\d+)\\b/),
 q=said.replace(table?table[0]:'','').split(/\\s+/).filter(Boolean),
 st=get('study').value,ex=get('exhibit').value,s=get('status').value;
 const hit=rows.filter(r=>(!st||r[0]===st)&&(!ex||r[1]===ex)&&(!s||r[4]===s||r[5]===s)
  &&(!table||(r[1]+'-').startsWith(`${table[1]}-${table[2]}-`))
  &&q.every(w=>r.join(' ').toLowerCase().includes(w)));
 body.innerHTML=hit.slice(0,all?hit.length:LIMIT).map(line).join('');
 get('count').textContent=`${hit.length} of ${rows.length} printed numbers`;
 get('more').hidden=all||hit.length<=LIMIT;
 const p=new URLSearchParams();
 for(const k of ['study','exhibit','status','text'])if(get(k).value)p.set(k,get(k).value);
 history.replaceState(null,'',p.size?'#'+p:'#');}
const start=new URLSearchParams(location.hash.slice(1));
for(const k of ['study','exhibit','status','text']){
 if(start.get(k))get(k).value=start.get(k);get(k).addEventListener('input',show)}
get('more').addEventListener('click',()=>{all=true;show()});show();
</script>"""
