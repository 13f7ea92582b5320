"""An executed notebook as one page: anchors for cells (`#cell-id=…`), formulas as MathML, no other host asked."""

import re
from pathlib import Path

import latex2mathml.converter
import nbformat
from nbconvert import HTMLExporter

from compendium.frame.escapes import clean_notebook

# code (fenced, then inline) comes first, so that a dollar inside it is left alone
PIECES = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$(?P<block>.+?)\$\$"
    r"|(?<![\\$\w])\$(?P<inline>[^$\n]+?(?:\n[^$\n]+?)?)\$(?![\d$])",
    re.S,
)

# what a folded cell is for, by its tag
FOLDS = {
    "parameters": "Parameters",
    "injected-parameters": "The values that this run handed over",
    "setup": "Setup: what is imported and loaded",
    "cells": "Bookkeeping: the numbers put at their addresses",
}
TEMPLATE = """{% extends 'lab/index.html.j2' %}
{% block input_group %}{% if cell.metadata.folded %}<details class="folded">
<summary>{{ cell.metadata.folded }}</summary>{{ super() }}</details>{% else %}{{ super() }}{% endif %}
{% endblock %}"""
SCRIPT = re.compile(r"<script\b.*?</script>", re.S)


def to_html(executed: Path) -> str:
    """The page of an executed notebook (path of an .ipynb)."""
    book = clean_notebook(nbformat.read(executed, as_version=4))
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = with_mathml(cell.source)
        else:
            cell.metadata["folded"] = fold_label(cell)
    exporter = HTMLExporter(
        template_name="lab",
        raw_template=TEMPLATE,
        mathjax_url="",
        require_js_url="",
        mermaid_js_url="",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    body, _ = exporter.from_notebook_node(book, resources={"metadata": {"name": executed.stem}})
    return SCRIPT.sub("", body)  # the template's scripts would fetch MathJax and Mermaid from other hosts


def fold_label(cell: dict) -> str:
    """What a code cell is folded under: "" where its code is in sight.

    Folded are those with JupyterLab's `source_hidden`, and the values that papermill put in.
    """
    meta = cell.get("metadata", {})
    tags = [tag for tag in meta.get("tags", []) if tag in FOLDS]
    hidden = meta.get("jupyter", {}).get("source_hidden", False) or "injected-parameters" in tags
    return (FOLDS[tags[0]] if tags else "Code") if hidden else ""


def with_mathml(markdown: str) -> str:
    """Markdown with its LaTeX formulas (`$…$`, `$$…$$`) turned into MathML; code is left alone."""

    def convert(found):
        tex = found["block"] or found["inline"]
        if not tex:
            return found[0]
        display = "block" if found["block"] else "inline"
        return latex2mathml.converter.convert(" ".join(tex.split()), display=display)

    return PIECES.sub(convert, markdown)
