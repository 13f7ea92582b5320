"""The book: its pages, their links, and what they say of a number."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from compendium.frame.paths import IDEAS, ROOT
from compendium.reader.book.gather import BookError, gather, study_facts
from compendium.reader.book.numbers import Numbers
from compendium.reader.book.pages import _question
from compendium.reader.book.reference import first_sentence
from compendium.reader.book.site import Sources, build

pytestmark = pytest.mark.filterwarnings("ignore:.*sphinx_book_theme.*")  # it calls what Sphinx will remove


def test_sphinx_has_nothing_to_complain_of(built):
    assert built.warnings == []


class Page(HTMLParser):
    """The links, loaded resources and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and values.get("src"):
            self.loads.append(values["src"])
        if tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loads.append(values["href"])


@pytest.fixture(scope="module")
def pages(built):
    root = built.index.parent
    return {
        path.relative_to(root).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in root.rglob("*.html")
        if "_static" not in path.parts
    }


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(built, pages):
    root = built.index.parent
    broken, abroad = [], []
    for name, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(urljoin(f"http://book/{name}", target))
            if urlsplit(target).scheme in ("http", "https", "mailto", "data"):
                abroad += [target] if target in page.loads and not target.startswith("data:") else []
                continue
            place = unquote(parts.path.lstrip("/")) or name
            anchor = unquote(parts.fragment)
            if (
                not (root / place).is_file()
                or anchor
                and place in pages
                and "=" not in anchor
                and anchor not in pages[place].ids
            ):
                broken.append((name, target))
    assert broken == [] and abroad == []
    for path in root.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import ['\"]?https?:", path.read_text(encoding="utf-8")), (
            path.name
        )


def test_a_printed_number_leads_to_its_cell_and_function_and_they_lead_back(pages):
    exhibit = pages["numbers/alienbench/table-7.html"]
    assert "../../notebooks/alienbench/04_agreement.html#cell-put" in exhibit.links
    assert "../../api/lib/agreement.html#krippendorff_alpha" in exhibit.links
    assert "total--alpha" in exhibit.ids
    assert any(
        link.startswith("../../numbers/alienbench/table-7.html")
        for link in pages["notebooks/alienbench/04_agreement.html"].links
    )
    api = pages["api/lib/agreement.html"].links
    assert any(link.startswith("../../numbers/alienbench/table-7.html") for link in api), (
        "a function knows its numbers"
    )
    assert "../../notebooks/alienbench/04_agreement.html#cell-alpha" in api, "and the cells that call it"


def test_the_study_page_holds_question_figure_table_and_counts(built):
    text = (built.index.parent / "studies" / "alienbench.html").read_text(encoding="utf-8")
    facts = study_facts()["alienbench"]
    assert (
        facts["question"].replace("'", "&#x27;") in text
        and "figure_1_radar.png" in text
        and "<b>Table 7.</b> Agreement." in text
    )
    assert re.search(r"class='bar' role='img' aria-label='agrees \d+, contradicts 1, not computed \d+'", text)
    key = re.search(r"<table class='key'>.*?</table>", text, re.S)[0]
    assert key.count("<tr><th><a") == key.count("class='s ") >= 1, "each chosen number says what it is"
    assert "beyond" in text, "numbers that the paper does not print are listed too"


def test_a_chapter_without_a_paper_has_its_page_and_no_verdicts(built):
    texts = {
        page: (built.index.parent / page).read_text(encoding="utf-8")
        for page in (
            "index.html",
            "studies/across.html",
            "verification.html",
            "numbers/across/across-alpha.html",
        )
    }
    article = re.search(r"<article.*?</article>", texts["studies/across.html"], re.S)[0]
    assert "across-alpha" in article and "class='bar'" not in article and "every number" not in article
    assert "1 study of machine creativity" in texts["index.html"]
    assert "1 notebook · 1 number<" in texts["index.html"]
    assert "<option value='across'>" not in texts["verification.html"]
    assert "not printed" in texts["numbers/across/across-alpha.html"]


def test_no_path_of_the_machine_and_formulas_as_mathml(built):
    text = (built.index.parent / "notebooks/alienbench/04_agreement.html").read_text(encoding="utf-8")
    assert str(ROOT) not in text and "build/x.csv" in text
    assert text.count("<math") == 3 and "\\frac" not in text


def test_a_second_build_parses_only_what_changed(built, out, library):
    parsed = out / ".book" / "doctrees"
    before = {path: path.stat().st_mtime_ns for path in parsed.rglob("*.doctree")}
    path = out / "notebooks" / "alienbench" / "05_more.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(' More"', ' More\\n\\nEven more."'), encoding="utf-8")
    try:
        again = build(gather("released", out), library)
    finally:
        path.write_text(text, encoding="utf-8")
    assert "Even more" in (again.index.parent / "notebooks/alienbench/05_more.html").read_text(
        encoding="utf-8"
    )
    assert {
        path.relative_to(parsed).as_posix() for path in before if path.stat().st_mtime_ns != before[path]
    } == {"notebooks/alienbench/05_more.doctree"}


def test_the_exercises_are_gathered(out, library):
    source = Sources(gather("released", out), library).files()["exercises.md"]
    assert (
        "04_agreement.html#cell-exercise" in source
        and "Would a copy raise <math" in source
        and "<mi>&#x003C1;</mi>" in source
        and "</math> in <code>a_b</code>?</span>" in source
        and "copies" not in source
    )


def test_the_pages_of_ideas_are_a_chapter_and_no_study(built, pages):
    """They stand in the book as committed, whatever the run was of."""
    listed = pages["ideas.html"].links
    for path in IDEAS.glob("*.ipynb"):
        assert f"notebooks/ideas/{path.stem}.html" in listed
        assert "../../ideas.html" in pages[f"notebooks/ideas/{path.stem}.html"].links
    assert "studies/ideas.html" not in pages and "ideas.html" in pages["index.html"].links
    exercises = pages["exercises.html"].links
    assert "notebooks/ideas/bootstrap.html#cell-exercise" in exercises


@pytest.mark.parametrize(
    "text, shown",
    [
        ("## Exercise\n\nOf 2 * 3 * 4, *why*?", "Of 2 * 3 * 4, why?"),
        ("## Exercise 1\n\n[There](x) < `a*b*c`\n<details>No</details>", "There &lt; <code>a*b*c</code>"),
        ("## Exercise\n\n" + "word " * 60, " ".join(["word"] * 48) + " …"),
    ],
)
def test_an_exercise_opens_with_its_question(text, shown):
    assert _question(text) == shown


def test_a_page_knows_its_place_and_pages_outside_share_a_side_bar(built):
    root = built.index.parent
    bars = {
        page: re.search(r'<nav class="bd-links.*?</nav>', (root / page).read_text(encoding="utf-8"), re.S)[0]
        for page in (
            "notebooks/alienbench/04_agreement.html",
            "notebooks/alienbench/05_more.html",
            "numbers/alienbench/table-7.html",
            "numbers/alienbench/table-3.html",
            "api/lib/agreement.html",
        )
    }
    current = {page: re.findall(r'class="toctree-l2 current', bar) for page, bar in bars.items()}
    assert [len(found) for found in current.values()] == [1, 1, 0, 0, 0]
    first, second, table, other, module = bars.values()
    assert first != second and table == other
    assert "../../verification.html" in table and '"../../verification.html' in module


def test_numbers_carry_their_verdicts(out, library):
    numbers = Numbers(gather("released", out), library)
    rows = {each.row: each for each in numbers.exhibits["alienbench"]["table-7"] if each.column == "alpha"}
    outcomes = [each.outcome for each in rows.values()]
    assert outcomes.count("contradicts") == 1 and outcomes.count("agrees") == len(rows) - 1
    assert rows["total"].makers == ("lib.agreement.krippendorff_alpha",)
    beyond = numbers.exhibits["alienbench"]["beyond"][0]
    assert (beyond.outcome, beyond.computed, beyond.makers) == ("", "0.5123", ("lib.agreement.cohen_kappa",))


@pytest.mark.parametrize(
    "doc, first",
    [
        ("", ""),
        ("One line.", "One line."),
        ("What it\nholds (it\nwraps). More of it.\n\nElse.", "What it holds (it wraps)."),
        ("Without a stop\n\nElse.", "Without a stop"),
        ("At 97.5 % of e.g. ten. More.", "At 97.5 % of e.g. ten."),
    ],
)
def test_a_module_is_listed_with_its_whole_first_sentence(doc, first):
    assert first_sentence(doc) == first


def test_without_a_run_the_command_says_what_to_do(tmp_path):
    with pytest.raises(BookError, match="run `make tables PROFILE=demo` first"):
        gather("demo", tmp_path)


def test_an_unknown_key_of_the_studies_file_is_named(tmp_path):
    path = tmp_path / "studies.yaml"
    path.write_text("alienbench: {titel: x}\n")
    with pytest.raises(BookError, match="alienbench: unknown key 'titel'"):
        study_facts(path)
