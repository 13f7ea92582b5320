"""The pages between the numbers and the notebooks: the front page, the studies, the exercises, the prose."""

import re
from collections import Counter
from pathlib import Path

from compendium.frame.cells import findings
from compendium.frame.paths import IDEAS, ROOT
from compendium.frame.report import PROFILE_NOTE, bar, counts_line, overview, pill
from compendium.reader.book.gather import source
from compendium.reader.book.markup import counted, esc, exhibit_title, link, raw, value_html
from compendium.reader.book.mathml import mathml
from compendium.reader.book.notebooks import Links
from compendium.reader.book.numbers import Numbers, exhibit_page, findings_source

TABLE = re.compile(r"<figure class='table'>.*?</figure>", re.S)
# what of Markdown stands inside a sentence: code, a formula, a link, emphasis
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\$(?P<tex>[^$]+)\$|\[(?P<label>[^\]]+)\]\([^)]*\)"
    r"|(?<!\w)(?P<mark>\*\*?|__?)(?=\S)(?P<emphasis>.+?)(?<=\S)(?P=mark)(?!\w)"
)
OPENING = 240  # characters of an exercise that the list shows
EXERCISE = re.compile(r"^#+\s+(Exercise.*)$", re.M)


def front_source(numbers: Numbers, titles: dict) -> str:
    """The front page. `titles` is {page: title} of the prose pages, for its last list."""
    run = numbers.run
    printed = Counter(each.outcome for each in numbers.all if each.outcome)
    papers = sum(1 for study in run.studies if len(run.of(study)))
    cards = "".join(_card(numbers, study) for study in run.studies)
    ways = (
        (
            "Review",
            "verification.html",
            "Did it come out?",
            "One line for every printed number: what the paper says, what "
            "was computed, the verdict, and a link to the cell that made it.",
        ),
        (
            "Read",
            "exercises.html",
            "Learn it",
            "The notebooks from top to bottom: question, formula, an example by hand, "
            "figure, meaning, exercise with a folded solution.",
        ),
        (
            "Build on it",
            "api/overview.html",
            "Use the estimators",
            "Each a tested function with shapes, source and the numbers that rest on it.",
        ),
    )
    paths = "".join(
        f"<a class='way' href='{target}'><b>{title}</b><span>{says}</span><em>{call} →</em></a>"
        for title, target, call, says in ways
    )
    prose = "".join(f"<li><a href='{page}.html'>{esc(title)}</a></li>" for page, title in titles.items())
    body = (
        f"<p class='lead'>{counted(papers, 'study', 'studies')} of machine creativity and model "
        f"judgement, executed from the first model call to the last printed number. "
        f"{sum(printed.values()):,} printed numbers, each with a verdict.</p>"
        f"<p class='profile'>{esc(PROFILE_NOTE[run.profile])}</p>{bar(printed)}<p>{counts_line(printed)}</p>"
        f"<div class='ways'>{paths}</div>"
    )
    return (
        f"# A re-executed compendium\n\n{raw(body)}\n## The "
        f"studies\n\n{raw(f'<div class=cards>{cards}</div>')}\n"
        f"## About this book\n\n{raw(f'<ul>{prose}</ul>')}\n"
    )


def study_source(numbers: Numbers, study: str, figure: tuple[str, str] | None) -> str:
    """A study's page: question, verdicts, result in one figure, a few numbers, notebooks, exhibits, tables.

    `figure` is (its place in the book, its caption).
    """
    run, page = numbers.run, f"studies/{study}.html"
    facts = run.facts.get(study, {})
    counts = numbers.counts(study)
    paper = (
        f"<a href='{esc(facts['url'])}'>{esc(facts['paper'])}</a>"
        if facts.get("url")
        else esc(facts.get("paper", ""))
    )
    parts = [
        f"# {facts.get('title', study)}\n",
        raw(
            f"<p class='question'>{esc(facts.get('question', ''))}</p><p class='crumbs'>{paper}</p>"
            + (
                f"<table class='verdicts'>{overview(run.of(study), [(study, 'Its numbers', '')])}</table>"
                f"<p><a href='{link(page, 'verification.html')}#study={study}'>every number</a></p>"
                if counts
                else ""
            )
        ),
    ]
    if figure:
        place, caption = figure
        parts.append(
            raw(
                f"<figure class='result'><img src='{link(page, place)}' alt='{esc(caption)}'>"
                f"<figcaption>{esc(caption)}</figcaption></figure>"
            )
        )
    parts += [
        _key_numbers(numbers, study, page),
        "## Notebooks, in reading order\n",
        raw(_notebook_list(numbers, study, page)),
        "## Numbers by exhibit\n",
        raw(_exhibit_list(numbers, study, page)),
        _tables(run, study),
    ]
    if findings(study):
        parts.append(findings_source(study, "The paper against itself"))
    return "\n".join(part for part in parts if part)


def exercises_source(numbers: Numbers) -> str:
    """Every exercise, by study, with a link to where it stands."""
    parts = ["# Exercises\n\nEach notebook leaves one, with a folded solution: guess first, then unfold.\n"]
    for study in (*numbers.run.studies, IDEAS.name):
        rows = [
            (book, cell)
            for book in numbers.run.books(study)
            for cell in book.content["cells"]
            if cell["cell_type"] == "markdown" and EXERCISE.search(source(cell))
        ]
        if rows:
            parts.append(f"## {numbers.run.facts.get(study, {}).get('title', study.capitalize())}\n")
            parts.append(
                raw(
                    "<ol class='exercises'>"
                    + "".join(
                        f"<li><a href='notebooks/{book.key}.html#cell-{esc(cell['id'])}'>"
                        f"{esc(book.title)}</a>"
                        f"<span>{_question(source(cell))}</span></li>"
                        for book, cell in rows
                    )
                    + "</ol>"
                )
            )
    return "\n".join(parts)


def ideas_source(books) -> str:
    """The pages of ideas: what each is called, and what it asks."""
    lines = "".join(
        f"<li><a href='notebooks/{book.key}.html'>{esc(book.said['title'])}</a><span>{esc(book.said['asks'])}</span></li>"
        for book in books
    )
    return (
        "# Ideas\n\nA page an idea that several studies lean on: a picture, an example for pencil and paper, the rule in a "
        f"few lines, and what it does not mean.\n\n{raw(f'<ol class=exercises>{lines}</ol>')}"
    )


def prose_files() -> dict:
    """{page: file} of the prose: README, CONTRIBUTING, CHANGELOG and what lies in docs/."""
    places = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    return {f"about/{path.stem.lower()}": path for path in places if path.is_file()}


def prose_source(page: str, path: Path, links: Links) -> str:
    """A page of prose, its links turned."""
    return links.turn(
        path.read_text(encoding="utf-8"), path.parent.relative_to(ROOT).as_posix(), f"{page}.html"
    )


def title_of(text: str) -> str:
    """The first heading of a page's source."""
    return next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), "Untitled")


def _card(numbers: Numbers, study: str) -> str:
    facts = numbers.run.facts.get(study, {})
    counts = numbers.counts(study)
    made = sum(len(rows) for rows in numbers.exhibits.get(study, {}).values())
    said = counted(sum(counts.values()), "printed number") if counts else counted(made, "number")
    return (
        f"<a class='card' href='studies/{study}.html'><b>{esc(facts.get('title', study))}</b>"
        f"<span>{esc(facts.get('question', ''))}</span>{bar(counts) if counts else ''}"
        f"<small>{counted(len(numbers.run.books(study)), 'notebook')} · {said}</small></a>"
    )


def _key_numbers(numbers: Numbers, study: str, page: str) -> str:
    """The few numbers that docs/studies.yaml picks: {label, at: [exhibit, row, column]}."""
    known = {(each.exhibit, each.row, each.column): each for each in numbers.all if each.study == study}
    rows = []
    for entry in numbers.run.facts.get(study, {}).get("numbers", []):
        each = known.get(tuple(map(str, entry["at"])))
        if each is not None and (each.computed or each.printed):
            rows.append(
                f"<tr><th><a href='{link(page, each.page)}'>{esc(entry['label'])}</a></th>"
                f"<td class='n'>{value_html(each.printed) or '–'}</td><td class='n'>"
                f"{value_html(each.computed) or '–'}</td><td>{pill(each.outcome, each.evidence)}</td></tr>"
            )
    if not rows:
        return ""
    return raw(
        "<table class='key'><thead><tr><th></th><th>the paper prints</th><th>computed here</th>"
        "<th>outcome</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _notebook_list(numbers: Numbers, study: str, page: str) -> str:
    made = Counter(each.notebook for each in numbers.all if each.notebook)
    return (
        "<ul class='notebooks'>"
        + "".join(
            f"<li><a href='{link(page, f'notebooks/{book.key}.html')}'>{esc(book.title)}</a> <small>"
            f"{esc(book.section)}"
            f"{' · ' + counted(made[book.key], 'number') if made[book.key] else ''}</small></li>"
            for book in numbers.run.books(study)
        )
        + "</ul>"
    )


def _exhibit_list(numbers: Numbers, study: str, page: str) -> str:
    rows = "".join(
        f"<tr><th><a href='{link(page, exhibit_page(study, exhibit))}'>{esc(exhibit_title(exhibit))}</a></th>"
        f"<td>{bar(counts) if counts else ''}</td><td>{counts_line(counts)}</td>"
        f"<td class='n'>{len(found)}</td></tr>"
        for exhibit, found in numbers.exhibits.get(study, {}).items()
        for counts in [numbers.counts(study, exhibit)]
    )
    return f"<div class='wide'><table class='verdicts'>{rows}</table></div>"


def _tables(run, study: str) -> str:
    """The study's rendered tables, each folded."""
    parts = []
    for path in run.tables(study):
        found = TABLE.search(path.read_text(encoding="utf-8"))
        if found:
            title = re.search(r"<figcaption>(.*?)</figcaption>", found[0], re.S)
            words = re.sub(r"<[^>]+>", "", title[1] if title else path.stem)
            parts.append(
                f"<details class='table'><summary>{words}</summary><div class='wide'>{found[0]}</div>"
                f"</details>"
            )
    return f"## Tables\n\n{raw(''.join(parts))}" if parts else ""


def _question(text: str) -> str:
    """An exercise's first words as HTML, without its solution."""
    body = " ".join(EXERCISE.split(text, maxsplit=1)[-1].split("<details")[0].split())
    parts, left, end = [], OPENING, 0
    for found in [*INLINE.finditer(body), None]:
        plain = body[end : found.start() if found else None]
        if len(plain) > left:
            return "".join([*parts, esc(plain[: max(0, plain.rfind(" ", 0, left))]), " …"])
        parts.append(esc(plain))
        if found:
            code, tex = found["code"], found["tex"]
            inside = found["label"] or found["emphasis"] or code or tex
            parts.append(f"<code>{esc(code)}</code>" if code else mathml(tex) if tex else esc(inside))
            left, end = left - len(plain) - len(inside), found.end()
    return "".join(parts)
