"""The small pieces of HTML and MyST that every page is made of."""
# Tested by tests/compendium/reader/book/test_book.py.

import html
import re
from posixpath import dirname, relpath

from compendium.frame.files import without_escapes

FENCE = "`" * 8
LONG_NOTE = 90  # characters


def esc(text) -> str:
    """Text safe inside an element or a quoted attribute."""
    return html.escape(without_escapes(str(text)), quote=True)


def soft(text) -> str:
    """An id as HTML that may break after its slashes, dashes and underscores, not inside a word."""
    return re.sub(r"([/_.-])(?=\w)", r"\1<wbr>", esc(text))


def value_html(text: str) -> str:
    """A number with its interval, as HTML that may break between the two only."""
    value, bracket, bounds = text.partition(" [")
    return esc(value) + (f" <span class='bounds'>[{esc(bounds)}</span>" if bracket else "")


def note_html(text: str) -> str:
    """A note below a number's place; all but the first words of a long one is folded."""
    if len(text) <= LONG_NOTE:
        return f"<small>{esc(text)}</small>"
    cut = text.rfind(" ", 0, LONG_NOTE - 20)
    return f"<details class='note'><summary>{esc(text[:cut])}</summary>{esc(text[cut:])}</details>"


def raw(text: str) -> str:
    """HTML set into a MyST page as it is."""
    return f"{FENCE}{{raw}} html\n{text}\n{FENCE}\n"


def link(page: str, target: str) -> str:
    """The relative address of `target` (page, without or with anchor) from `page`, both from the book's
    root.
    """
    place, _, anchor = target.partition("#")
    path = relpath(place, dirname(page) or ".")
    return f"{path}#{anchor}" if anchor else path


def anchor_of(*parts) -> str:
    """Words as an anchor: letters, digits, dots and dashes stay, all else becomes a dash."""
    return "--".join(re.sub(r"[^\w.-]+", "-", str(part)).strip("-") or "x" for part in parts)


def counted(count: int, word: str, words: str = "") -> str:
    """`1 notebook`, `2 notebooks`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def folded(links, between: str) -> str:
    """The links that do not fit, behind "3 more"; empty where there are none."""
    if not links:
        return ""
    return f" <details class='more'><summary>{len(links)} more</summary>{between.join(links)}</details>"


def exhibit_title(exhibit: str) -> str:
    """`table-10-loo` → Table 10 (loo), `text-4.1` → Text, section 4.1."""
    kind, _, rest = exhibit.partition("-")
    number, _, part = rest.partition("-")
    more = f" ({part.replace('-', ' ')})" if part else ""
    if kind in ("table", "figure") and number:
        return f"{kind.capitalize()} {number}{more}"
    if kind == "text" and number:
        return (
            f"Text, section {number}{more}"
            if re.match(r"[\d.A-Z]+$", number)
            else f"Text, {rest.replace('-', ' ')}"
        )
    return exhibit
