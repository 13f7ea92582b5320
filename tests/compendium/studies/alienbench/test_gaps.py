"""AlienBench's notebooks where something is missing: few models, few judges, void texts and void labels.

Their code cells run here as they stand, one after the other, with the numbers of draws made small.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.frame.params import study_params
from compendium.studies.alienbench import stages as alienbench_stages
from compendium.studies.alienbench.data import HUMAN, from_tables
from tests.compendium.studies.alienbench.small_study import simulated_study
from tests.run_notebook import run_notebook

NAMES = (
    "03_scores",
    "04_reliability",
    "05_ablation_prompts",
    "06_ablation_features",
    "07_ablation_judges",
    "08_figures",
    "10_human_baseline",
)
SMALL = {"B": 20, "B_min_k": 5, "power_simulations": 20}
P = study_params("alienbench")
MODELS, JUDGES, FEATURES = list(P["subjects"]), list(P["judges"]), list(P["features"])


@pytest.fixture(scope="module")
def study():
    return simulated_study({**P, "n_samples": 3, "n_samples_paraphrase": 2, "n_human": 8})


def run(name, tmp_path, study, **given):
    """Execute a notebook's code cells; (cells by address, what was printed)."""
    generations, labels = study
    generations.to_csv(tmp_path / "generations.csv", index=False)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    given = {
        **SMALL,
        **given,
        "out": str(tmp_path),
        "labels": str(tmp_path / "labels.csv"),
        "generations": str(tmp_path / "generations.csv"),
    }
    said = run_notebook("alienbench", name, **given)
    cells = pd.read_csv(tmp_path / f"cells/alienbench/{name}.csv", keep_default_na=False)
    return cells.set_index(["exhibit", "row", "column"]), said


def without(study, generations=None, labels=None):
    """The study without some generations (mask to keep), and with some label rows void (mask)."""
    table, given = study
    table = table if generations is None else table[generations]
    given = given[given["generation_id"].isin(table["generation_id"])].copy()
    if labels is not None:
        given.loc[labels(given), FEATURES] = np.nan
    return table, given


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_two_models_and_two_judges_of_whom_one_is_no_judge_of_the_panel(name, tmp_path, study):
    """The smallest study there may be, and a model whose provider's judge is not asked."""
    own = dict(zip(MODELS, (JUDGES[0], "not/asked")))
    cells, _ = run(
        name,
        tmp_path,
        study,
        judges={judge: P["judges"][judge] for judge in JUDGES[:2]},
        subjects={model: {**P["subjects"][model], "judge": judge} for model, judge in own.items()},
    )
    gone = cells[cells["value"] == ""]
    assert (gone["note"] != "").all()
    if name == "03_scores":
        note = cells.at[("text-4.1", "open_weight", "mean_overall"), "note"]
        assert note == "no usable reply for it, or none of its kind"
    if name == "07_ablation_judges":
        assert set(cells.loc["table-13"].index.get_level_values("row")) == {MODELS[0]}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_void_texts_void_labels_a_silent_model_and_a_silent_judge(name, tmp_path, study):
    table, rng = study[0], np.random.default_rng(0)
    silent, judge = MODELS[4], JUDGES[2]
    kept = (table["model"] != silent) & (rng.random(len(table)) > 0.1)
    kept |= (table["model"] == HUMAN) | (table["sample_index"] == 1) & (table["model"] != silent)
    holes = without(study, kept, lambda given: (given["judge"] == judge) | (rng.random(len(given)) < 0.05))
    cells, said = run(name, tmp_path, holes)
    assert f"WARNING: no usable reply of or about {silent}; left out below" in said
    assert (cells.loc[cells["value"] == "", "note"] != "").all()
    if name == "03_scores":
        heard = [model for model in MODELS if model != silent]
        rates = cells.loc["table-6"]["value"].astype(float).unstack().loc[FEATURES, heard]
        scores = cells.loc["table-3"].xs("overall", level="column")["value"].astype(float)
        np.testing.assert_allclose(rates.sum() / 100, scores[rates.columns])
    if name == "07_ablation_judges":
        assert cells.at[("table-11", judge, "rho"), "note"] == f"void: {judge}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ("04_reliability", "07_ablation_judges", "10_human_baseline"))
def test_one_judge_of_use_has_nobody_to_agree_with(name, tmp_path, study):
    cells, _ = run(name, tmp_path, without(study, labels=lambda given: given["judge"] != JUDGES[0]))
    alphas = cells[(cells.index.get_level_values("column") == "alpha") & (cells["value"] == "")]
    assert (
        len(alphas) and alphas["note"].str.contains("needs two judges whose replies can be used|void").all()
    )


@pytest.mark.parametrize("name", ("03_scores", "07_ablation_judges"))
def test_a_study_without_labels_says_the_least_it_needs(name, tmp_path, study):
    with pytest.raises(
        ValueError, match="at least two models need a description that a judge labelled; without"
    ):
        run(name, tmp_path, without(study, labels=lambda given: slice(None)))


def test_models_that_write_nothing_stop_the_first_notebook_with_one_sentence(tmp_path, monkeypatch):
    void = SimpleNamespace(void_reason="refusal: I would rather not", text="", completion_tokens=0)
    monkeypatch.setattr(
        alienbench_stages, "ask_all", lambda _, requests, *__, **___: ([void] * len(requests), None)
    )
    p = SimpleNamespace(**{**P, "n_samples": 1, "n_samples_paraphrase": 1, "n_human": 1})
    with pytest.raises(
        ValueError, match="none of 111 requests for a description got one; the first: refusal: I w"
    ):
        alienbench_stages.generate(p, source="simulated", profile="demo", out=tmp_path)


def test_a_score_and_its_rates_rest_on_the_same_replies(study):
    table, given = without(study, labels=lambda given: given.index % 7 == 0)
    given.loc[given.index[1], FEATURES[0]] = np.nan  # a reply that lacks one label counts for neither
    whole = from_tables(table, given, judges=JUDGES, features=FEATURES)
    scores = pd.Series(whole.scores()).groupby(whole.generations["model"]).mean()
    np.testing.assert_allclose(whole.rates(MODELS).sum(axis=1), scores[MODELS])
    padded = whole.padded(MODELS[:2], np.arange(len(table), dtype=float))
    assert padded.shape[0] == 2 and np.nanmax(padded[0]) < np.nanmin(padded[1])
