"""The chapter across the studies: its place in the chain, its panels, rankings and designs."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.frame import chain, verdicts, verify
from compendium.frame.cells import COVERS, FINDINGS, findings, published
from compendium.frame.chain import notebooks
from compendium.frame.paths import ACROSS, STUDIES
from compendium.studies.across.data import ORDER, Panel, Ranking, Studies
from compendium.studies.across.designs import FIELDS, counts, coverage, designs
from compendium.studies.across.panels import competence, describe, panels
from compendium.studies.across.rankings import by_estimator, headline, rankings, replicates_of
from lib.agreement import krippendorff_alpha

FILES = {
    "labels": "l",
    "generations": "g",
    "candidates": "c",
    "documents": "d",
    "judgements": "k",
    "utility": "u",
}


@pytest.mark.parametrize("profile", ["demo", "released", "live"])
def test_the_chapter_brings_along_what_it_takes_and_no_more(profile):
    books = notebooks(ACROSS, profile)
    chapter = [book for book in books if book.study == ACROSS]
    assert (
        chapter == [book for book in notebooks("all", profile) if book.study == ACROSS] and len(chapter) >= 4
    )
    made = {made for book in books for made in book.makes}
    assert {needed for book in books for needed in book.needs.values()} <= made
    assert "09_tables" not in {book.name for book in books}, "tables of a study are not needed"
    for study in ORDER:
        assert {book.study for book in notebooks(study, profile)} == {study}


def test_what_a_profile_cannot_give_is_left_out():
    wants = {name for book in notebooks(ACROSS, "demo") for name in book.wants}
    given = {name for book in notebooks(ACROSS, "released") for name in book.needs}
    assert {"candidates", "matches"} <= wants and "labels" in given
    assert not {"candidates", "matches"} & given, "world models released nothing"


def test_every_wanted_file_is_made_in_the_demo():
    made = {made for book in notebooks("all", "demo") for made in book.makes}
    for book in notebooks(ACROSS, "demo"):
        assert set(book.wants.values()) <= made, book.path


def test_a_wanted_file_is_no_params_key(tmp_path):
    book = chain.Notebook(
        path=tmp_path / "01_x.ipynb",
        study=ACROSS,
        wants={"labels": "alienbench/labels.csv"},
        parameters=("profile", "labels", "seed"),
    )
    assert book.values({"seed": 3}) == {"seed": 3}
    with pytest.raises(chain.ChainError, match="'seed' is no key of params/across.yaml"):
        book.values({})


def test_a_study_run_in_part_is_not_compared(tmp_path):
    books = notebooks("alienbench", "demo")
    for book in books[:-1]:
        path = tmp_path / "cells" / book.study / f"{book.name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    given = [tmp_path / "cells" / "alienbench" / f"{books[0].name}.csv"]
    more, whole = verify.finished_elsewhere("demo", tmp_path, [ACROSS], given)
    assert whole == [] and len(more) == len(books) - 2
    (tmp_path / "cells" / "alienbench" / f"{books[-1].name}.csv").write_text("")
    assert verify.finished_elsewhere("demo", tmp_path, [ACROSS], given)[1] == ["alienbench"]
    assert verify.finished_elsewhere("demo", tmp_path, ["alienbench"], given)[1] == []


def test_the_closing_line_of_what_is_not_compared():
    nothing = pd.DataFrame(columns=verdicts.REPORT)
    computed = pd.DataFrame({"study": [ACROSS, ACROSS, "create"]})
    assert verify.summary(nothing, computed, ACROSS) == "across: cells 2; no paper of its own"
    assert (
        verify.summary(nothing, computed, "create")
        == "create: cells 1; not run whole, so nothing is compared"
    )


def test_describe_by_hand():
    ratings = np.array([[1, 2, 2, np.nan], [1, 3, 2, 5], [1, 2, np.nan, np.nan]], dtype=float)
    facts = describe(ratings)
    assert facts["pairable"] == 3 and facts["each"] == pytest.approx(8 / 3) and facts["used"] == 3
    assert facts["same"] == pytest.approx((3 + 1 + 1) / (3 + 3 + 1)) and facts["commonest"] == 4 / 8
    assert describe(np.array([[1.0, np.nan], [np.nan, 2]]))["pairable"] == 0


def panel(ratings, level="interval"):
    judges = tuple(f"j{i}" for i in range(len(ratings)))
    return Panel("create", "p", "P", level, judges, "units", np.asarray(ratings, float))


def test_competence_by_hand():
    ratings = [[2, 2, -2, -2], [1, 1, -1, -1], [1, -1, 1, -1]]
    judges, whole = competence(panel(ratings), 50, np.random.default_rng(1))
    assert judges["loading"].tolist() == pytest.approx([2 / 5**0.5, 1 / 5**0.5, 0])
    assert judges["relative"].tolist() == pytest.approx([1, 0.5, 0])
    assert whole["gap"] == pytest.approx(5**0.5) and whole["share"] == pytest.approx(20 / 24)
    assert judges["with others"].iloc[0] == pytest.approx(np.corrcoef(ratings[0], [1, 0, 0, -1])[0, 1])
    assert judges["without"].iloc[2] == pytest.approx(krippendorff_alpha(ratings[:2], "interval"))
    assert (judges["without"].iloc[2] > whole["alpha"]).all()


def test_a_judge_of_one_answer_has_no_correlation():
    judges, _ = competence(panel([[1, 2, 3, 4], [1, 2, 3, 5], [3, 3, 3, 3]]), 20, np.random.default_rng(1))
    assert np.isnan(judges["with others"].iloc[2]) and judges["loading"].iloc[2] == 0


def ranking(scores, **more):
    frame = pd.DataFrame(scores)
    return Ranking("create", "r", "R", "units", frame, more.pop("paired", True), **more)


def test_estimators_and_the_headline():
    one = ranking({"skewed": [0.0, 0, 30], "steady": [5.0, 5, 6]})
    table = by_estimator(one)
    assert table.loc["skewed"].tolist()[:4] == pytest.approx([10, 10, 0, 1 / 3])
    said = headline(table)
    assert said["leaders"].tolist() == [["skewed"], ["skewed"], ["steady"], ["steady"], []]
    assert said["place"].tolist()[:4] == [1, 1, 2, 2] and said["tau"].tolist()[:4] == [1, 1, -1, -1]
    assert np.isnan(said.loc["consensus", ["tau", "place"]].astype(float)).all()


def test_who_is_not_graded_has_no_place_and_takes_none():
    own = pd.Series({"anchor": 9.0, "a": 5.0, "b": 4.0})
    one = ranking({"a": [1.0, 2], "b": [3.0, 4]}, own=own, replicates=np.tile(own, (3, 1)))
    said = headline(by_estimator(one))
    assert said.loc["mean", "leaders"] == ["b"] and said.loc["mean", "place"] == 2
    assert replicates_of(one, B=5, rng=np.random.default_rng(0)).shape == (3, 3)


def test_ties_at_the_top_are_all_named():
    said = headline(by_estimator(ranking({"a": [1.0], "b": [1.0], "c": [0.0]})))
    assert said.loc["own", "leaders"] == ["a", "b"]


def test_judges_that_share_an_axis_count_in_the_consensus():
    ratings = np.array([[1.0, 5], [1, 5], [5, 1]])
    one = ranking({"a": [7 / 3], "b": [11 / 3]}, ratings=ratings, group_of=np.array([0, 1]))
    consensus = by_estimator(one)["consensus"]
    assert consensus["b"] - consensus["a"] > 11 / 3 - 7 / 3


@pytest.mark.parametrize("profile", ["released", "live"])
def test_nothing_is_simulated_outside_the_demo(profile):
    studies = Studies(profile)
    assert studies.alienbench is studies.stories is studies.metanym is studies.worldmodels is None
    assert studies.judgements is None and studies.utility() is None
    rng = np.random.default_rng
    assert panels(studies, rng=rng) == [] and rankings(studies, B=10, rng=rng) == []


def test_a_study_without_all_its_files_is_absent():
    some = Studies("released", **FILES, matches="")
    assert some.absent("candidates", "documents", "matches") and not some.absent("labels", "generations")
    assert Studies("demo").absent("labels")


@pytest.mark.parametrize("runs, names", [((1, 2), ["repeat-lane1", "repeat-f1"]), ((1,), [])])
def test_one_run_is_no_repetition(runs, names):
    game = pd.DataFrame(
        [(run, model, case, True, 0.5) for run in runs for model in "ab" for case in ("G1", "G2")],
        columns=["run", "model", "case", "lane1", "f1"],
    )
    alone = SimpleNamespace(
        alienbench=None, stories=None, metanym=None, worldmodels=game, judgements=None, profile="live"
    )
    found = panels(alone, rng=np.random.default_rng)
    assert [one.name for one in found] == names and all(one.ratings.shape == (len(runs), 4) for one in found)


def test_alienbench_gives_a_panel_a_feature_and_one_of_the_score():
    files = {name: f"data/demo/alienbench/{name}.csv.gz" for name in ("labels", "generations")}
    studies, p = Studies("demo", **files), Studies("demo").params("alienbench")
    alone = SimpleNamespace(
        alienbench=studies.alienbench,
        stories=None,
        metanym=None,
        worldmodels=None,
        profile="live",
        judgements=None,
        utility=lambda: None,
        params=studies.params,
    )
    found = panels(alone, rng=np.random.default_rng)
    assert [one.name for one in found] == ["total", *p.features]
    assert np.allclose(np.sum([one.ratings for one in found[1:]], axis=0), found[0].ratings, equal_nan=True)
    score = rankings(alone, B=10, rng=None)[0]
    assert score.estimates.to_dict() == pytest.approx(
        {name: values.mean() for name, values in studies.alienbench.by("model", p.subjects).items()}
    )


def test_designs_are_told_alike():
    found = designs()
    assert tuple(found) == ORDER == tuple(name for name in STUDIES if name != ACROSS)
    assert all(len(entry["steps"]) == 3 and all(entry[name] for name in FIELDS) for entry in found.values())


def test_counts_by_hand():
    sizes = counts()
    assert sizes.loc["alienbench"].tolist() == [10, 1800, 3, 54000]
    assert sizes.loc["stories"].tolist() == [105, 200, 1, 6600]
    assert sizes.loc["metanym"].tolist() == [12, 825, 12, 3 * 11 * 11 * (25 + 20 + 1)]
    assert sizes.loc["worldmodels", "units"] == 5 * (20 * 3 + 14 * 2 + 2 * 3)


def test_coverage_counts_each_printed_number_once():
    table = coverage()
    assert (table[list(COVERS)].sum(axis=1) == table["printed"]).all()
    assert table.loc["metanym", "printed"] == len(published("metanym"))
    assert table.loc["create", "printed"] < 100, "a leaderboard file is not print"
    assert table.loc["stories", list(FINDINGS)].sum() == len(findings("stories"))
