"""Pages of the library: what each function says of itself, its source, and the numbers and cells that rest
on it.
"""

import html
import re
from collections import Counter

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from compendium.reader.book.api import Function, Library, Module
from compendium.reader.book.markup import anchor_of, esc, exhibit_title, folded, link, raw
from compendium.reader.book.numbers import Numbers

LEXER, FORMATTER = PythonLexer(), HtmlFormatter(nowrap=True)
SECTION = re.compile(r"^([A-Z][\w ]+)\n-{3,}$", re.M)
MOST = 12  # uses listed before the rest is folded


def module_source(numbers: Numbers, module: Module, callers: dict) -> str:
    """The page of one module. `callers` is {function: [(notebook key, cell id)]}."""
    page = f"{module.page}.html"
    parts = [f"# {module.name}\n", raw(docstring_html(module.doc))]
    for function in module.functions:
        level = "###" if function.kind == "method" else "##"
        parts.append(f"{level} `{function.anchor}`\n")
        parts.append(raw(_entry(numbers, function, page, callers.get(function.name, []))))
    return "\n".join(parts)


def index_source(library: Library, numbers: Numbers) -> str:
    """The list of modules, each with its first sentence and how many numbers rest on it."""
    counts = Counter(
        library.functions[name].module for name, rows in numbers.by_function.items() for _ in rows
    )
    rows = "".join(
        f"<tr><th><a href='{link('api/overview.html', module.page + '.html')}'><code>"
        f"{esc(module.name)}</code></a></th>"
        f"<td>{_inline(first_sentence(module.doc))}</td><td class='n'>"
        f"{counts[module.name] or ''}</td></tr>"
        for module in library.modules.values()
        if module.functions
    )
    return (
        "# The library\n\nEvery estimator is a tested function of the package `lib`; `compendium` is "
        "the machinery around them. The last column "
        "counts the numbers "
        "that rest on a module's functions, directly or on the way.\n\n"
        + raw(
            "<div class='wide'><table class='modules'><thead><tr><th>Module</th><th>What it holds</th><th>"
            "Numbers</th></tr>"
            f"</thead><tbody>{rows}</tbody></table></div>"
        )
    )


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    words = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[.?!]) (?=[A-Z`])", words)[0]


def docstring_html(doc: str) -> str:
    """A docstring as HTML: paragraphs, NumPy-style sections as definition lists, indented blocks as they
    are.
    """
    pieces = SECTION.split(doc)
    parts = [_paragraphs(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.append(f"<p class='section'>{esc(title)}</p>{_definitions(body)}")
    return "".join(parts)


def _entry(numbers: Numbers, function: Function, page: str, cells) -> str:
    source = highlight(function.source, LEXER, FORMATTER)
    return (
        f"<a class='here' id='{esc(function.anchor)}'></a><pre class='signature'>"
        f"{esc(function.signature)}</pre>"
        f"{docstring_html(function.doc)}{_uses(numbers, function, page, cells)}"
        f"<details class='source'><summary>Source ({esc(_file(numbers.library, function))}, line "
        f"{function.line})"
        f"</summary><div class='highlight'><pre>{source}</pre></div></details>"
    )


def _uses(numbers: Numbers, function: Function, page: str, cells) -> str:
    """Back to the numbers: the exhibits that rest on the function, and the cells that call it."""
    groups = {}
    for each in numbers.by_function.get(function.name, []):
        groups.setdefault((each.study, each.exhibit), []).append(each)
    exhibits = [
        f"<a href='{link(page, rows[0].page)}'>{esc(study)}: {esc(exhibit_title(exhibit))}</a> ({len(rows)})"
        for (study, exhibit), rows in groups.items()
    ]
    called = [
        f"<a href='{link(page, f'notebooks/{key}.html#cell-{anchor_of(cell)}')}'>{esc(key)}, {esc(cell)}</a>"
        for key, cell in cells
    ]
    says = [("Numbers that rest on it", exhibits), ("Called in", called)]
    return "".join(f"<p class='uses'><b>{title}:</b> {_some(links)}</p>" for title, links in says if links)


def _some(links) -> str:
    return " · ".join(links[:MOST]) + folded(links[MOST:], " · ")


def _file(library: Library, function: Function) -> str:
    path = library.modules[function.module].path
    return "/".join(path.parts[-len(function.module.split(".")) - (path.name == "__init__.py") :])


def _paragraphs(text: str) -> str:
    blocks = [block for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]
    return "".join(
        f"<pre>{esc(block)}</pre>"
        if all(line.startswith("    ") for line in block.splitlines())
        else f"<p>{_inline(block)}</p>"
        for block in blocks
    )


def _definitions(text: str) -> str:
    """`name : meaning` with indented lines that go on, as a definition list; anything else stays a
    paragraph.
    """
    entries = []
    for line in text.strip("\n").splitlines():
        if line[:1].strip() and " : " in line:
            name, _, meaning = line.partition(" : ")
            entries.append([name, meaning])
        elif line.strip() and entries and line[:1].isspace():
            entries[-1][1] += " " + line.strip()
        elif line.strip():
            entries.append(["", line.strip()])
    listed = "".join(
        f"<dt><code>{esc(name)}</code></dt><dd>{_inline(meaning)}</dd>"
        if name
        else f"</dl><p>{_inline(meaning)}</p><dl class='arguments'>"
        for name, meaning in entries
    )
    return f"<dl class='arguments'>{listed}</dl>".replace("<dl class='arguments'></dl>", "")


def _inline(text: str) -> str:
    """Words with their `code` marked."""
    pieces = re.split(r"``?([^`]+)``?", html.unescape(text))
    return "".join(
        f"<code>{esc(piece)}</code>" if place % 2 else esc(piece) for place, piece in enumerate(pieces)
    )
