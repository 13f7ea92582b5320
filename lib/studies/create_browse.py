"""CREATE: a page to browse in: each query's strong paths, the unusual ones first."""

import html

import pandas as pd

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1d2733}
h1{font-size:1.5rem}h2{font-size:1.02rem;margin:2rem 0 .4rem;border-top:1px solid #dfe4ea;padding-top:1rem}
.bar{position:sticky;top:0;background:#fff;padding:.6rem 0;display:flex;gap:.6rem;flex-wrap:wrap}
input,select{font:inherit;padding:.25rem .4rem;border:1px solid #b9c2cc;border-radius:4px}
li{margin:.35rem 0}.who{color:#5b6672;font-size:.85em}.rel{color:#0a6d55}.num{font-variant-numeric:tabular-nums}
li.hidden,section.hidden{display:none}"""
SCRIPT = """const f=document.getElementById('find'),s=document.getElementById('source'),n=document.getElementById('nu');
function show(){const w=f.value.toLowerCase();document.querySelectorAll('section').forEach(q=>{let k=0;
q.querySelectorAll('li').forEach(l=>{const on=l.textContent.toLowerCase().includes(w)&&(!s.value||l.dataset.source===s.value)
&&+l.dataset.nu>=+n.value;l.classList.toggle('hidden',!on);k+=on});q.classList.toggle('hidden',!k)})}
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
    options = "".join(f'<option value="{html.escape(name)}">{html.escape(labels.get(name, name))}</option>'
                      for name in dict.fromkeys(strong["source"]))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{html.escape(title)}</h1>
<p>{len(strong)} paths that are valid, factual and stronger than the bar. σ is the specificity of the weakest triple, ν the
distance to the nearest path that any other model gave to the same query: 0 if another found the same, 1 if none came near.</p>
<div class="bar"><input id="find" placeholder="find a name" aria-label="find a name">
<select id="source" aria-label="model"><option value="">all models</option>{options}</select>
<label>ν at least <input id="nu" type="number" min="0" max="1" step="0.1" value="0"></label></div>
{chr(10).join(sections)}
<script>{SCRIPT}</script></body></html>
"""


def _item(row, labels: dict) -> str:
    names = [html.escape(row.triples[0][0])]
    for triple in row.triples:
        relation = html.escape(" ".join(triple[1:-1]))
        start = "" if triple is row.triples[0] or triple[0] == before else f" ({html.escape(triple[0])})"
        names.append(f'{start} <span class="rel">— {relation} →</span> {html.escape(triple[-1])}')
        before = triple[-1]
    nu = 1.0 if pd.isna(row.nu) else row.nu
    return (
        f'<li data-source="{html.escape(row.source)}" data-nu="{nu:.3f}">{"".join(names)} <span class="who num">σ {row.strength:.0f}, '
        f"ν {nu:.2f}, {html.escape(labels.get(row.source, row.source))}</span></li>"
    )
