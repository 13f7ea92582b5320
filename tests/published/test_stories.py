"""The transcription of the Stories paper, against its text and against arithmetic."""

import pandas as pd
import pytest
import yaml

from compendium.frame.cells import grid, published
from compendium.frame.paths import DATA
from compendium.studies.stories.data import DIMENSIONS, LEVELS
from compendium.studies.stories.stages import dimensions


@pytest.fixture(scope="module")
def printed():
    return published("stories")


@pytest.fixture(scope="module")
def paper(mirror):
    path = mirror.parent / "papers" / "stories.txt"
    if not path.is_file():
        pytest.skip("the paper's text does not lie beside the archive mirror")
    return path.read_text(encoding="utf-8").replace("$", "").replace("’", "'").replace("\\rho", "ρ")


def test_table_1_line_by_line(printed, paper):
    table, notes = grid(printed, "table-1"), grid(printed, "table-1", "note")
    for name in DIMENSIONS:
        cells = [name.capitalize()]
        for who in ("raters", "judge"):
            for kind in ("human_texts", "ai_texts"):
                cells.append(
                    f"{table.at[name, f'{who}:{kind}']:.2f}\\pm {table.at[name, f'{who}:{kind}_se']:.2f}"
                )
            p, bound = table.at[name, f"{who}:p"], str(notes.at[name, f"{who}:p"]).startswith("<")
            text = ("<" if bound else "") + f"{p:.3f}".removeprefix("0")
            cells.append(f"\\mathbf{{{text}}}" if p < 0.05 else text)
        line = "\t".join([*cells[:4], "", *cells[4:]])
        assert line in paper, line


def test_table_2_line_by_line(printed, paper):
    table = grid(printed, "table-2")
    for name, levels in LEVELS.items():
        for level in levels:
            row = table.loc[f"{name}={level}"]
            assert f"{level}\t{row['count']:.0f}\t{row['percent']:.1f}%" in paper
    features = pd.Series(table.index.str.split("=").str[0], index=table.index)
    assert set(table["count"].groupby(features).sum()) == {115} and len(table) == 20
    share = 100 * table["count"] / 115
    assert (share.round(1) == table["percent"]).all()


@pytest.mark.parametrize(
    "row, column, words",
    [
        ("creativity_index", "creativity", "Creativity (ρ=0.07)"),
        ("creativity_index", "largest_other", "exceed ρ=0.11"),
        ("perplexity", "effectiveness", "Effectiveness (ρ=-0.23)"),
        ("perplexity", "elaboration", "Elaboration (ρ=-0.21)"),
        ("cr_pos", "elaboration", "Elaboration (ρ=0.29)"),
        ("tau", "elaboration", "\\tau_{b}=0.31"),
        ("tau", "surprise", "\\tau_{b}=0.01"),
        ("tau", "surprise_p", "p=0.867"),
        ("tau", "creativity", "\\tau_{b}=0.23"),
    ],
)
def test_numbers_of_the_text(printed, paper, row, column, words):
    value = grid(printed, "text-results").at[row, column]
    assert words in paper and f"{value:g}" in words


def test_statuses_can_be_given(printed):
    assert not printed.duplicated(["exhibit", "row", "column"]).any() and len(printed) == 195
    assert (printed["kind"] == "bound").sum() == (printed["note"].str.startswith("<")).sum()


def test_definitions_are_word_for_word(paper):
    flat = " ".join(paper.split())
    for name, entry in dimensions().items():
        assert entry["definition"].strip().replace("’", "'") in flat, name
    assert list(dimensions()) == list(DIMENSIONS)


def test_nothing_prompted_pretends_to_be_the_papers():
    text = (DATA / "instruments" / "stories" / "prompts.yaml").read_text(encoding="utf-8")
    assert "this project's own" in text.replace("\n# ", " ") and set(yaml.safe_load(text)) == {
        "generation",
        "translation",
        "human_translation",
        "judge_system",
        "judge_user",
    }
