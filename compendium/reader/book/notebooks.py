"""Executed notebooks as sources of the book: every cell gets an anchor, and says which numbers it made."""

import json
import re
from collections import Counter

from compendium.frame.escapes import clean_notebook
from compendium.frame.notebook_html import fold_label
from compendium.frame.paths import IDEAS, ROOT
from compendium.frame.reach import ROOMS
from compendium.frame.report import pill
from compendium.reader.book.gather import Executed, source
from compendium.reader.book.markup import anchor_of, esc, exhibit_title, link
from compendium.reader.book.numbers import Numbers, makers_html

# fenced code, a markdown link or image [words](target "title"), inline code: whichever comes first
PIECE = re.compile(
    r"```.*?```|(?P<image>!?)\[(?P<label>[^\]\n]*(?:\n[^\]\n]+)?)\]\((?P<target>"
    r"[^)\s]+)(?:\s+\"[^\"]*\")?\)|`[^`\n]*`",
    re.S,
)
FEW = 4  # numbers that a cell may have made for each of them to be named


def notebook_page(book: Executed) -> str:
    """A notebook's page, from the book's root."""
    return f"notebooks/{book.key}.html"


def notebook_source(numbers: Numbers, book: Executed, links: "Links") -> str:
    """A notebook for MyST-NB, its cells with anchors and notes on what they made."""
    content = clean_notebook(book.content)
    cells = []
    for place, cell in enumerate(content["cells"]):
        anchor = f"<a class='here' id='cell-{anchor_of(cell['id'])}'></a>"
        if cell["cell_type"] == "markdown":
            text = links.turn(source(cell), f"notebooks/{book.study}".rstrip("/"), notebook_page(book))
            cell["source"] = f"{anchor}\n\n{text}" if place else text
            cells.append(cell)
            if not place:
                cells.append(_markdown(f"{anchor}\n\n{_banner(numbers, book)}", "banner"))
            continue
        cells.append(_markdown(anchor, f"at-{cell['id']}"))
        tags = cell.setdefault("metadata", {}).setdefault("tags", [])
        folded = fold_label(cell)
        if folded:
            tags.append("hide-input")
            cell["metadata"]["mystnb"] = {"code_prompt_show": folded}
        cells.append(cell)
        made = _made(numbers, book, cell)
        if made:
            cells.append(_markdown(made, f"made-{cell['id']}"))
    content["cells"] = cells
    content["metadata"] = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


class Links:
    """Turns links into the project (to notebooks, modules, files) into links within the book.

    Parameters
    ----------
    pages : the book's pages, with ending, from its root. A link to a page that is not among them loses its
        target and keeps its words.
    """

    def __init__(self, pages):
        self.pages = set(pages)
        self.files = set()  # files of the project that the book must carry a copy of

    def turn(self, text: str, folder: str, page: str) -> str:
        """Markdown with its links turned; `folder` is where it stands in the project, `page` what it becomes.

        Links to other hosts and within the page stay, and so does code.
        """
        return PIECE.sub(lambda found: self._link(found, folder, page), text)

    def _link(self, found, folder, page) -> str:
        image, label, target = found["image"], found["label"], found["target"]
        if target is None:
            return found[0]
        place, _, anchor = target.partition("#")
        path = (ROOT / folder / place).resolve()
        if re.match(r"[a-z]+:|#", target) or not path.is_relative_to(ROOT):
            return found[0]
        goal = self._goal(path.relative_to(ROOT).as_posix(), path)
        if goal is None:
            return label
        address = link(page, goal) + (f"#{anchor}" if anchor else "")
        return (
            f'<img src="{esc(address)}" alt="{esc(label)}">'
            if image
            else f'<a href="{esc(address)}">{label}</a>'
        )

    def _goal(self, inside: str, path) -> str | None:
        """What stands in the book for a file of the project: a page, a copy, or nothing (None)."""
        if inside.startswith("notebooks/") and inside.endswith(".ipynb"):
            page = inside.removesuffix(".ipynb") + ".html"
        elif inside.split("/")[0] in ROOMS and inside.endswith(".py"):
            page = "api/" + inside.removesuffix(".py").replace("__init__", "index") + ".html"
        elif inside.endswith(".md") and path.parent in (ROOT, ROOT / "docs"):
            page = f"about/{path.stem.lower()}.html"
        elif path.is_file():
            self.files.add(inside)
            return f"files/{inside}"
        else:
            return None
        return page if page in self.pages else None


def _banner(numbers: Numbers, book: Executed) -> str:
    """The line under a notebook's title: its study, its place in the paper, what it made."""
    page = notebook_page(book)
    parts = []
    if book.study == IDEAS.name:
        parts.append(f"<a href='{link(page, 'ideas.html')}'>All ideas</a>")
    elif book.study:
        title = numbers.run.facts.get(book.study, {}).get("title", book.study)
        parts.append(f"<a href='{link(page, f'studies/{book.study}.html')}'>{esc(title)}</a>")
    if book.section:
        parts.append(f"paper: {esc(book.section)}")
    made = Counter(
        each.exhibit for (name, _), rows in numbers.by_cell.items() if name == book.key for each in rows
    )
    if made:
        exhibits = ", ".join(
            f"<a href='{link(page, numbers.exhibits[book.study][name][0].page.split('#')[0])}'>"
            f"{esc(exhibit_title(name))}</a> ({count})"
            for name, count in made.items()
        )
        parts.append(f"numbers made here: {exhibits}")
    return f"<p class='crumbs'>{' · '.join(parts)}</p>" if parts else ""


def _made(numbers: Numbers, book: Executed, cell: dict) -> str:
    """The note below a code cell: the numbers it made, each a link to its line, and the functions it
    called.
    """
    page = notebook_page(book)
    made = numbers.by_cell.get((book.key, cell["id"]), [])
    called = numbers.traces[book.key].called_in(cell["id"]) if book.key in numbers.traces else []
    called = [name for name in called if name in numbers.by_function]
    parts = []
    if 0 < len(made) <= FEW:
        parts += [
            f"<a href='{link(page, each.page)}'>{esc(exhibit_title(each.exhibit))} [{esc(each.row)}, "
            f"{esc(each.column)}]</a> {pill(each.outcome)}"
            for each in made
        ]
    elif made:
        parts += [
            f"<a href='{link(page, rows[0].page)}'>{esc(exhibit_title(name))}</a> ({len(rows)})"
            for name, rows in _grouped(made).items()
        ]
    if not made and not called:
        return ""
    says = [f"<span>Numbers: {' · '.join(parts)}</span>"] if parts else []
    if called:
        says.append(f"<span>Functions: {makers_html(numbers.library, called, page, most=6)}</span>")
    return f"<div class='made'>{' '.join(says)}</div>"


def _grouped(made) -> dict:
    groups = {}
    for each in made:
        groups.setdefault(each.exhibit, []).append(each)
    return groups


def _markdown(text: str, name: str) -> dict:
    return {"cell_type": "markdown", "id": anchor_of(name)[:64], "metadata": {}, "source": text}
