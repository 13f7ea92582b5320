"""Findings: each quotation stands in its paper, whole; each row is a printed number; each accusation says what was tried."""

import html
import re

import pytest

from compendium.frame.cells import findings, held, published

STUDIES = ("alienbench", "stories", "metanym", "worldmodels", "create")
ENTRIES = [(study, entry) for study in STUDIES for entry in findings(study)]
IDS = [f"{study}:{entry['id']}" for study, entry in ENTRIES]


def squeezed(text: str) -> str:
    """A text without what a copy adds or loses: blanks, emphasis marks, links, kinds of apostrophe and of dash."""
    text = html.unescape(text).translate(str.maketrans("’‘−", "''-"))
    return re.sub(r"[\s*_$\\{}]", "", text)


@pytest.fixture(scope="session")
def papers(mirror):
    folder = mirror.parent / "papers"
    if not folder.is_dir():
        pytest.skip("the papers' texts do not lie beside the archive mirror")
    return {study: squeezed((folder / f"{study}.txt").read_text(encoding="utf-8")) for study in STUDIES}


@pytest.mark.parametrize("study, entry", ENTRIES, ids=IDS)
def test_quotations_stand_in_the_paper_whole(papers, study, entry):
    for side in (entry["first"], entry["second"]):
        if "quote" in side:
            assert squeezed(side["quote"]) in papers[study], side["place"]
            assert re.match(r"[A-Z“\"(]", side["quote"]) and re.search(r"[.?!][”\")]*$", side["quote"]), side


@pytest.mark.parametrize("study, entry", ENTRIES, ids=IDS)
def test_a_finding_names_printed_numbers_and_what_was_tried(study, entry):
    known = set(map(tuple, published(study)[["exhibit", "row", "column"]].to_numpy()))
    assert {tuple(map(str, row)) for row in entry["rows"]} <= known
    assert entry["kind"] == "oddity" or entry["tried"]
    if entry["kind"] == "contradiction":
        assert len(entry["tried"]) >= 2 and entry["independent"], (
            "more than one convention, and what else bears on it"
        )


@pytest.mark.parametrize("study", STUDIES)
def test_ids_and_rows_stand_once(study):
    entries = findings(study)
    rows = [tuple(row) for entry in entries for row in entry["rows"]]
    assert len({entry["id"] for entry in entries}) == len(entries) >= 7 and len(set(rows)) == len(rows)


@pytest.mark.parametrize("study", STUDIES)
def test_what_is_not_whole_says_what_is_at_hand(study):
    used = set(published(study).query("kind != 'design'")["archive"]) - {"whole"}
    assert used <= set(held(study)), f"{study}: a sentence for each evidence that its numbers name"
