"""CREATE: a page to browse in: each query's strong paths, the unusual ones first."""

import html
import re

import pandas as pd

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1d2733}
h1{font-size:1.5rem}h2{font-size:1.02rem;margin:2rem 0 .4rem;border-top:1px solid #dfe4ea;padding-top:1rem}
.bar{position:sticky;top:0;background:#fff;padding:.6rem 0;display:flex;gap:.6rem;flex-wrap:wrap}
input,select{font:inherit;padding:.25rem .4rem;border:1px solid #b9c2cc;border-radius:4px}
li{margin:.35rem 0}.who{color:#5b6672;font-size:.85em}.rel{color:#0a6d55}.num{font-variant-numeric:tabular-nums}
.nu{display:inline-block;width:3.2rem;height:.5rem;margin:0 .3rem;background:#e7ebef;
border-radius:2px;overflow:hidden}
.nu i{display:block;height:100%;background:#0072b2}#count{align-self:center;color:#5b6672}
li.hidden,section.hidden{display:none}"""
SCRIPT = """const [f,s,n,c]=['find','source','nu','count'].map(name=>document.getElementById(name));
function show(){let all=0;const w=f.value.toLowerCase();
document.querySelectorAll('section').forEach(q=>{let k=0;q.querySelectorAll('li').forEach(l=>{
const on=l.textContent.toLowerCase().includes(w)&&(!s.value||l.dataset.source===s.value)
&&+l.dataset.nu>=+n.value;l.classList.toggle('hidden',!on);k+=on});all+=k;q.classList.toggle('hidden',!k)});
c.textContent=all?all+' shown':'nothing fits: lower ν or clear the name'}
[f,s,n].forEach(e=>e.addEventListener('input',show));show();"""


def browse_page(strong: pd.DataFrame, queries: pd.DataFrame, labels: dict, title: str) -> str:
    """The page as HTML, complete in itself.

    strong : paths with columns source, query, triples, strength, nu (as `create_scores.distinctiveness` gives
        them).
    queries : columns query, text; labels : {source: how it is called}.
    """
    texts = dict(zip(queries["query"], queries["text"]))
    sections = []
    for query, rows in strong.sort_values(
        ["query", "nu", "strength"], ascending=[True, False, False]
    ).groupby("query"):
        items = "\n".join(_item(row, labels) for row in rows.itertuples())
        sections.append(
            f"<section><h2>{html.escape(str(texts.get(query, query)))}</h2>\n<ul>\n{items}\n</ul></section>"
        )
    options = "".join(
        f'<option value="{html.escape(name)}">{html.escape(labels.get(name, name))}</option>'
        for name in dict.fromkeys(strong["source"])
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{html.escape(title)}</h1>
<p>{len(strong)} paths that are valid, factual and stronger than the bar. σ is the specificity of the weakest
triple, ν the distance to the nearest path that any other model gave to the same query (the bar): 0 if another
found the same, 1 if none came near. The unusual ones stand first.</p>
<div class="bar"><input id="find" placeholder="find a name" aria-label="find a name">
<select id="source" aria-label="model"><option value="">all models</option>{options}</select>
<label>ν at least <input id="nu" type="number" min="0" max="1" step="0.1" value="0"></label>
<span id="count" role="status"></span></div>
{chr(10).join(sections)}
<script>{SCRIPT}</script></body></html>
"""


def _item(row, labels: dict) -> str:
    names = [html.escape(row.triples[0][0])]
    for before, triple in zip((None, *row.triples), row.triples):
        relation = html.escape(" ".join(triple[1:-1]))
        start = "" if before is None or triple[0] == before[-1] else f" ({html.escape(triple[0])})"
        names.append(f'{start} <span class="rel">— {relation} →</span> {html.escape(triple[-1])}')
    nu = 1.0 if pd.isna(row.nu) else row.nu
    label = re.sub(r", \d+ queries$", "", labels.get(row.source, row.source))
    return (
        f'<li data-source="{html.escape(row.source)}" data-nu="{nu:.3f}">{"".join(names)} '
        f'<span class="who num">σ {row.strength:.0f} · ν {nu:.2f}'
        f'<span class="nu"><i style="width:{100 * nu:.0f}%"></i></span>{html.escape(label)}</span></li>'
    )
