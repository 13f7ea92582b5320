"""What an edit could move."""

import pytest

from compendium.frame.chain import notebooks
from compendium.frame.reach import Reach
from compendium.reader.what_if import main, reaching, report


@pytest.fixture(scope="module")
def books():
    return notebooks("all", "demo")


def test_who_reaches_a_function_and_who_takes_their_files(books):
    found = reaching("lib.agreement.krippendorff_alpha", books)
    assert found["alienbench_04_reliability"] == "reaches it"
    assert all(
        "lib.agreement.krippendorff_alpha" in book.reach.definitions
        for book in books
        if found.get(book.rule) == "reaches it"
    )
    first = reaching("compendium.studies.alienbench.simulated.respond", books)
    assert first["alienbench_01_generate"] == "reaches it"
    assert first["alienbench_03_scores"].startswith(("takes files of alienbench_01_generate", "reaches it"))


def test_a_module_counts_whole(books):
    whole, one = reaching("lib.agreement", books), reaching("lib.agreement.cohen_kappa", books)
    assert set(one) < set(whole)


def test_a_name_that_nothing_has_is_answered_with_near_ones(capsys):
    assert main(["lib.rank.spearman"]) == 2
    assert "FUNCTION=lib.rank.spearman: no function" in capsys.readouterr().err


def test_the_report_names_notebooks(tmp_path):
    lines = report("lib.ranks.spearman", "demo", tmp_path)
    assert "notebooks of profile demo stale" in lines[0] and "Run `make tables" in lines[-1]


def test_a_function_reaches_itself():
    assert "lib.ranks.spearman" in Reach([("x", "from lib.ranks import spearman\nspearman")]).definitions
