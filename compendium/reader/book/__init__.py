"""The book: one static site of a finished run (`python -m compendium.reader.book --profile demo`, or `make book`).

`gather` reads the run, `trace` finds the `lib` functions behind each number, `pages` and its neighbours
write the pages' sources, and `site` lets Sphinx with MyST-NB (Jupyter Book's own engine) turn them into
HTML. The result asks no other host for anything.
"""
# Tested by tests/compendium/reader/book/test_book.py.
