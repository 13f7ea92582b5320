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

SCRIPT = re.compile(r"<script\b.*?</script>", re.S)


def to_html(executed: Path) -> str:
    """The page of an executed notebook (path of an .ipynb)."""
    book = clean_notebook(nbformat.read(executed, as_version=4))
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = with_mathml(cell.source)
    exporter = HTMLExporter(
        template_name="lab",
        mathjax_url="",
        require_js_url="",
        mermaid_js_url="",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    body, _ = exporter.from_notebook_node(book, resources={"metadata": {"name": executed.stem}})
    return SCRIPT.sub("", body)  # the template's scripts would fetch MathJax and Mermaid from other hosts


def with_mathml(markdown: str) -> str:
    """Markdown with its LaTeX formulas (`$…$`, `$$…$$`) turned into MathML; code is left alone."""

    def convert(found):
        tex = found["block"] or found["inline"]
        if not tex:
            return found[0]
        display = "block" if found["block"] else "inline"
        return latex2mathml.converter.convert(" ".join(tex.split()), display=display)

    return PIECES.sub(convert, markdown)
