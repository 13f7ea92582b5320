"""A Sphinx extension: formulas as MathML, which browsers draw themselves (MathJax would come from another
host).
"""
# Tested by tests/compendium/reader/book/test_book.py.

import html

import latex2mathml.converter
from docutils import nodes

LONG = 30  # characters of LaTeX beyond which an inline formula gets a line of its own on a phone


def mathml(tex: str, display: str = "inline") -> str:
    """LaTeX as MathML; what the converter cannot read stays LaTeX."""
    try:
        return latex2mathml.converter.convert(" ".join(tex.split()), display=display)
    except Exception:  # the converter raises many kinds; the formula's source is better than no page
        return f"<code class='tex'>{html.escape(tex)}</code>"


def _inline(translator, node):
    text = mathml(node.astext())
    wide = len(node.astext()) > LONG
    translator.body.append(f"<span class='long-formula'>{text}</span>" if wide else text)
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f"<div class='formula'>{mathml(node.astext(), 'block')}</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
