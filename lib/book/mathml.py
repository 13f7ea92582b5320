"""A Sphinx extension: formulas as MathML, which browsers draw themselves (MathJax would come from another host)."""

import html

import latex2mathml.converter
from docutils import nodes


def _mathml(tex: str, display: str) -> str:
    try:
        return latex2mathml.converter.convert(" ".join(tex.split()), display=display)
    except Exception:  # the converter raises many kinds; the formula's source is better than no page
        return f"<code class='tex'>{html.escape(tex)}</code>"


def _inline(translator, node):
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f"<div class='formula'>{_mathml(node.astext(), 'block')}</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
