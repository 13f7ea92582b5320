"""CREATE: what stands between judged paths and the notebooks: loading, readings of the definition,
validation, browsing."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.asking.live import estimate_study
from compendium.frame.params import study_params
from compendium.studies.create import baselines as create_baselines
from compendium.studies.create import data as create_data
from compendium.studies.create import validation
from compendium.studies.create.answers import load_answers
from compendium.studies.create.browse import browse_page
from compendium.studies.create.scores import TextVectors, distinctiveness, path_sets, utilities
from compendium.studies.create.simulated import is_true
from compendium.studies.create.tables import to_csv_frame
from tests.compendium.studies.create.small_study import demo

NGRAMS = "char-ngrams"  # no network to load: these tests are about everything else


@pytest.fixture(scope="module")
def data():
    folder = "data/demo/create"
    return create_data.load(f"{folder}/judged.csv.gz", f"{folder}/queries.csv.gz", model=NGRAMS)


def test_base_prompts_and_models_are_told_apart():
    names = [
        "GPT-5 (med)",
        "GPT-5 (med) [iterate]",
        "GPT-4.1_model_name_gpt-4.1_variation_iterate",
        "GPT-4.1_model_name_gpt-4.1_variation_original",
        "GPT-5 (med)_model_name_gpt-5",
    ]
    assert create_data.base_sources(names) == [names[0], names[3], names[4]]
    assert create_data.model_of(names[1]) == names[0]
    assert create_data.model_of(names[2]) == create_data.model_of(names[3]) != names[2]
    other = "res_gptoss120b_{}_1_medium_0.7_16384_gemini-3_1-pro-preview"
    assert [
        create_data.variation_of(other.format(name)) for name in ("original", "iterate", "be_creative")
    ] == ["original", "iterate", "be_creative"]
    assert (
        len({create_data.model_of(other.format(name)) for name in ("original", "resample", "verbalised")})
        == 1
    )


def test_files_give_back_what_was_written(tmp_path, data):
    to_csv_frame(demo().judged).to_csv(tmp_path / "judged.csv", index=False)
    demo().asked.to_csv(tmp_path / "queries.csv", index=False)
    data.vectors.save(tmp_path / "vectors.npz")
    again = create_data.load(tmp_path / "judged.csv", tmp_path / "queries.csv", tmp_path / "vectors.npz")
    first, second = (utilities(path_sets(d.paths, d.queries, d.vectors)) for d in (data, again))
    pd.testing.assert_frame_equal(first, second)
    assert again.sources == data.sources


def test_each_reading_changes_one_thing(data):
    found = create_data.definitions(create_data.originals(data), 1.0)
    assert (found["weakest"] <= found["released"] + 1e-9).all()
    assert (found["code"] <= found["released"] + 1e-9).all()
    assert (found["code-weakest"] <= found["weakest"] + 1e-9).all()
    assert (found["chain"] <= found["released"] + 1e-9).all()
    assert (found["zero"] <= found["released"] + 1e-9).all()
    np.testing.assert_allclose(found["plain"], found["released"])  # at patience 1 both discounts are 1
    at_zero = create_data.definitions(create_data.originals(data), 0.0)
    assert (at_zero["plain"] <= 5).all() and (at_zero["plain"] < at_zero["released"]).all()


def test_validity_is_counted_by_rule(data):
    rules = create_data.validity_rules(data)
    assert (rules["flagged"] == rules["chains"]).all()  # the demo's flags are the chain rule itself
    assert rules["paths"].sum() == len(data.paths)


def test_released_flags_let_other_paths_pass(mirror):
    answers = load_answers(mirror / "create/data/GPT-4.1_model_name_gpt-4.1_variation_original.jsonl")
    rules = create_data.validity_rules(
        SimpleNamespace(paths=answers.paths, queries=answers.queries.assign(source=answers.source))
    )
    assert rules.iloc[0].to_dict() == {
        "paths": 346,
        "flagged": 329,
        "chains": 229,
        "shared": 319,
        "right_end": 275,
    }


def test_projected_interval_by_hand():
    index = pd.MultiIndex.from_product([["a", "b"], range(4)], names=["source", "query"])
    frame = pd.DataFrame({"1.0": [9, 11, 9, 11, 18, 22, 18, 22]}, index=index, dtype=float)
    half, cv = create_data.projected_half_width([10.0], frame, 100)
    assert cv == pytest.approx(np.sqrt(4 / 3) / 10)
    assert half[0] == pytest.approx(1.959964 * cv)


def test_annotators_and_labels(data):
    rng = np.random.default_rng(0)
    rated = validation.annotated_paths(demo().judgements, 40, rng)
    assert len(rated) == 40 and rated[["judge", "annotator_1", "annotator_2"]].isin(range(1, 6)).all(
        axis=None
    )
    found = validation.agreement(rated, "judge", 200, rng)
    assert found["alpha"].lo < found["alpha"].estimate < found["alpha"].hi and 0.3 < found["pearson_mean"] < 1
    triples = validation.labelled_triples(demo().judgements, 200, rng)
    assert not triples.duplicated(validation.TRIPLE).any()
    assert [float(is_true(tuple(t))) for t in triples[validation.TRIPLE].to_numpy()] == triples[
        "truth"
    ].tolist()
    table = validation.judge_table({"perfect": triples.assign(verdict=triples["truth"]), "judge": triples})
    assert table.loc["perfect"].eq(1).all() and 0.7 < table.loc["judge", "balanced_accuracy"] < 0.97


def test_a_judge_takes_away_and_never_adds_truth(data):
    truth = validation.true_utilities(data, [0.0, 1.0])
    found = utilities(path_sets(data.paths, data.queries, data.vectors), [0.0, 1.0])
    table = validation.recovery(truth, found)
    assert (table["ratio"] < 1).all() and table.loc["1.0", "ratio"] < table.loc["0.0", "ratio"]
    assert (table["r"] > 0.2).all()
    perfect = validation.recovery(truth, truth)
    np.testing.assert_allclose(perfect[["r", "ratio", "rho_sources"]], 1)


def test_rated_sets_follow_the_truth(data):
    truth = validation.true_utilities(data, [1.0])["1.0"]
    ratings = validation.rated_sets(truth, truth, 999, np.random.default_rng(1))
    assert len(ratings) == len(truth) and ratings["mean"].between(1, 5).all()
    assert 0.3 < np.corrcoef(ratings["mean"], ratings["metric"])[0, 1] < 0.95


def test_the_page_shows_every_path_and_no_raw_markup(data):
    strong = distinctiveness(data.paths, data.vectors)
    odd = strong.head(1).assign(triples=[(("<b>Ada</b>", "a & b", "Bo"), ("Bo", "x", '"q"'))])
    page = browse_page(pd.concat([strong, odd]), data.queries, {}, "Paths")
    assert page.count("<li ") == len(strong) + 1
    assert "<b>Ada</b>" not in page and "&lt;b&gt;Ada" in page and "a &amp; b" in page
    assert set(re.findall(r'data-source="(.*?)"', page)) == set(strong["source"])
    first = page[page.index("<section>") : page.index("</section>")]
    nus = [float(value) for value in re.findall(r'data-nu="([\d.]+)"', first)]
    assert nus == sorted(nus, reverse=True)


def test_baseline_replies_are_scored():
    replies = pd.DataFrame(
        [
            ["m", "rat", "a, b, c", 0, "Fire.", "fire"],
            ["m", "rat", "a, b, c", 1, "a fire", "fire"],
            ["m", "aut", "brick", 0, "door stop\nbrick", ""],
            ["m", "aut", "brick", 1, "", ""],
            ["m", "dat", "", 0, "\n".join(["cat"] * 7), ""],
            ["m", "dat", "", 1, "\n".join("abcdefg"), ""],
        ],
        columns=["source", "test", "item", "sample", "reply", "answer"],
    )
    found = create_baselines.score(replies, NGRAMS)["score"].tolist()
    assert found[:2] == [1, 0] and 0 < found[2] < 1 and np.isnan(found[3])
    assert np.isnan(found[4]) and 0 < found[5] <= 1  # seven times one word is one word


def test_vectors_of_many_models_share_a_file(tmp_path):
    from compendium.studies.create.scores import load_vectors, save_vectors

    both = {name: TextVectors.of(["a b", "c d"], NGRAMS) for name in ("x/y", "z")}
    save_vectors(tmp_path / "v.npz", both)
    again = load_vectors(tmp_path / "v.npz")
    assert set(again) == {"x/y", "z"} and np.array_equal(again["z"].rows(["c d"]), both["z"].rows(["c d"]))


def test_a_live_run_can_be_estimated(tmp_path):
    frame = estimate_study("create", out=tmp_path)
    p = study_params("create", "live")
    answers = sum(
        n * (p["n_resamples"] if name == "resample" else 1)
        for runs in p["runs"].values()
        for name, n in runs.items()
    )
    assert frame.loc["generating", "calls"].sum() <= answers
    assert frame.loc["judging", "calls"].sum() > 10 * frame.loc["generating", "calls"].sum()
    assert 0 < frame.loc[("total", ""), "cost"] < frame.loc[("total", ""), "most"]
