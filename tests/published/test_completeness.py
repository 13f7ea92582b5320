"""Every result that the running text of a paper prints is listed at its section: the text is read again by program.

A number may be a result where it has a decimal point or a thousands comma, stands before "%", or on either side of
a slash between digits. What is none is excepted below, by study, section and number, each with its reason. Table
bodies are lines of numbers, not sentences; their rows are compared in the tests of each study.
"""

import html
import re

import pytest

from compendium.frame.cells import held, published

STUDIES = ("alienbench", "stories", "metanym", "worldmodels", "create")
NUMBER = re.compile(
    r"(?<![\w./])\d*\.\d+(?![\w.]*\d)|(?<![\w.])\d{1,3}(?:,\d{3})+(?!\d)|\d+(?= ?%)|\d+(?=/\d)|(?<=\d/)\d+"
)
HEADING = re.compile(r"(?:Appendix )?([1-9](?:\.\d+)*|[A-G](?:\.\d+)*)[.:]?\s+[A-Z“]")
# the version of a model, or the number of a section, a table or a figure, stands behind one of these
NAMED = re.compile(
    r"(GPT|gpt|laude|opus|Opus|Sonnet|sonnet|Haiku|emini|lama|wen|Grok|DeepSeek|V|Maverick|OLMo"
    r"|§+|ection|Table|Appendix|Figure|Fig)[-. ]?$"
)
LEVEL = "the level of an interval, not a result"
EXCEPT = {
    ("metanym", "abstract", "65"): "what another paper found of experts",
    ("metanym", "6", "74.9"): "another company's figures",
    ("metanym", "6", "70"): "another company's figures",
    ("metanym", "6", "79.6"): "another company's figures",
    ("metanym", "6", "75.4"): "another company's figures",
    **{("metanym", section, "95"): LEVEL for section in ("3.4", "4.1", "A.1", "A.4")},
    ("worldmodels", "7", "95"): LEVEL,
    ("worldmodels", "B.2", "2"): "of three, in a note to Table 9; the count is its row's",
    ("create", "E.3", "95"): LEVEL,
    ("create", "E.3", "10000"): "in appendix J.1, whose heading the text copy lost; listed there",
    ("create", "E.3", ".05"): "in appendix J.1, whose heading the text copy lost; listed there",
}


def plain(number: str) -> str:
    """One spelling for 0.50, .5 and 0.5; 1,800 and 1800."""
    number = number.replace(",", "").lstrip("+-")
    return (number.rstrip("0").rstrip(".") if "." in number else number).lstrip("0") or "0"


def paragraphs(text: str):
    """(section, paragraph) of the running text, references left out."""
    section = "abstract"
    for paragraph in re.split(r"\n\s*\n", text):
        flat = re.sub(r"\s+", " ", re.sub(r"[*_$\\#]", "", paragraph).replace("−", "-")).strip()
        flat = re.sub(r" \. (\d)", r" .\1", re.sub(r"(\d) \. ?(\d)", r"\1.\2", flat))
        heading = HEADING.match(flat)
        if heading and len(flat) < 90:
            section = heading[1]
        elif flat in ("Abstract", "References"):
            section = flat.lower()
        elif section != "references" and len(flat) >= 60 and " . . . " not in flat:
            sentences = re.search(r"[\w)\]%]\. [A-Z]|[.:]$", flat)
            if sentences and sum(map(str.isalpha, flat)) >= 0.62 * len(flat) and "http" not in flat:
                yield section, flat


def belongs(exhibit: str, section: str) -> bool:
    place = exhibit.removeprefix("text-").split("-")[0]
    return place == section or place.startswith(f"{section}.") or section.startswith(f"{place}.")


def unlisted(study: str, text: str):
    """(section, number, its surroundings) of every number of the running text that is not listed at its section."""
    listed = {}
    for row in published(study).to_dict("records"):
        for value in (row["value"], row["lo"], row["hi"]):
            if value == value:
                listed.setdefault(plain(f"{value:.{int(row['decimals'])}f}"), set()).add(row["exhibit"])
    for section, paragraph in paragraphs(text):
        caption = re.match(r"(Table|Figure) \d", paragraph)
        for found in NUMBER.finditer(paragraph):
            number, before = plain(found[0]), paragraph[: found.start()]
            here = listed.get(number, set())
            if study == "stories":  # its sections have no numbers
                section = "any"
                known = any(name.startswith("text-") for name in here)
            else:
                known = any(name.startswith("text-") and belongs(name, section) for name in here)
            if not known and not (caption and here) and not NAMED.search(before[-9:]):
                yield section, number, before[-40:] + found[0]


@pytest.mark.parametrize("study", STUDIES)
def test_no_number_of_the_running_text_is_missing(mirror, study):
    path = mirror.parent / "papers" / f"{study}.txt"
    if not path.is_file():
        pytest.skip("the paper's text does not lie beside the archive mirror")
    found = list(unlisted(study, html.unescape(path.read_text(encoding="utf-8"))))
    assert [each for each in found if (study, *each[:2]) not in EXCEPT] == []
    used = {(study, *each[:2]) for each in found}
    assert {key for key in EXCEPT if key[0] == study} <= used, "an exception that excepts nothing"


@pytest.mark.parametrize("study, lost", [("metanym", 4), ("create", 11), ("stories", 6)])
def test_tables_that_the_text_copy_lost_are_named_and_not_listed(study, lost):
    names = held(study)["lost"]
    assert len(names) == len(set(names)) == lost
    tables = {name.lower().replace(" ", "-") for name in names if name.startswith("Table")}
    assert not tables & set(published(study).query("print == 'number'")["exhibit"])
