"""A Sphinx extension: what many pages share is made once a build, and not once a page."""
# Tested by tests/compendium/reader/book/test_book.py.

import functools
from pathlib import Path
from posixpath import dirname

from sphinx.search.en import SearchEnglish

TEMPLATES = Path(__file__).parent / "templates"


class Stems(SearchEnglish):
    """English stems for the search index; each word is stemmed once."""

    def __init__(self, options):
        super().__init__(options)
        self.stem = functools.cache(super().stem)


def _share_contents(app, page, template, context, doctree, kept):
    """Give the template its side bar: pages outside the table of contents (numbers, modules) share one a
    folder.
    """
    alone = "orphan" not in app.env.metadata.get(page, {})
    key = ("page", page) if alone else ("folder", dirname(page))

    def contents(make, **options):
        if key not in kept:
            kept[key] = str(make(**options))
        return kept[key]

    context["shared_contents"] = contents


def setup(app):
    app.add_search_language(Stems)
    app.connect("html-page-context", functools.partial(_share_contents, kept={}), priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
