"""The simulated AlienBench study: its truth meets the printed numbers, its replies follow from the request
alone."""

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from compendium.asking.endpoint import Endpoint
from compendium.asking.ledger import Ledger
from compendium.asking.names import same_model
from compendium.asking.replies import labels_from_reply
from compendium.asking.simulated.reply import RequestError
from compendium.asking.simulated.server import serve
from compendium.asking.stage import run_stage
from compendium.frame.archive import Archive
from compendium.frame.cells import published
from compendium.frame.params import study_params
from compendium.studies.alienbench import data as alienbench
from compendium.studies.alienbench import simulated as simulator
from compendium.studies.alienbench.ask import (
    generation_requests,
    generations_frame,
    judge_prompt,
    judge_requests,
    labels_frame,
    prompts,
)
from compendium.studies.alienbench.simulated import margins
from compendium.studies.alienbench.simulated.creatures import DEPARTS, grammar
from compendium.studies.alienbench.simulated.truth import CONDITIONS, HUMAN, truth
from lib.agreement import krippendorff_alpha
from tests.compendium.studies.alienbench.small_study import simulated_study

FALSE_ALARM = 1e-4  # of each statistical test, if the fixed seeds were drawn anew


@pytest.fixture(scope="module")
def printed():
    return published("alienbench").set_index(["exhibit", "row", "column"])["value"]


@pytest.fixture(scope="module")
def demo():
    params = study_params("alienbench")
    folder = "data/demo/alienbench"
    return params, alienbench.load(
        f"{folder}/labels.csv.gz",
        f"{folder}/generations.csv.gz",
        judges=params["judges"],
        features=params["features"],
    )


def generation(model="x-ai/grok-4.7", condition="baseline", seed=1, **more):
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompts()[condition]}],
        "temperature": 1.0,
        "seed": seed,
        **more,
    }


def judging(text, judge="openai/gpt-5.4", **more):
    system, template = judge_prompt()
    return {
        "model": judge,
        "temperature": 0.0,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": template.replace("{description}", text)},
        ],
        **more,
    }


# the truth --------------------------------------------------------------------------------------------------


def test_expected_rates_meet_the_printed_margins(printed):
    known = truth()
    for row, model in enumerate(known.models[:-1]):
        for column, condition in enumerate(CONDITIONS):
            assert known.rates[row, column].sum() == pytest.approx(
                printed["table-3", model, condition], abs=1e-9
            )
        for column, wording in enumerate(known.conditions[6:], 6):
            assert known.rates[row, column].sum() == pytest.approx(
                printed["table-9-means", model, wording], abs=1e-9
            )
        for place, feature in enumerate(known.features):
            rate = 100 * known.rates[row, :6, place].mean()
            assert rate == pytest.approx(printed["table-6", feature, model], abs=0.1)
    for place, feature in enumerate(known.features):
        assert 100 * known.rates[-1, 0, place] == pytest.approx(printed["table-6", feature, HUMAN])


def test_expected_alphas_round_to_the_printed_ones(printed):
    alphas = truth().expected_alphas()
    for row in (*truth().features, "total"):
        assert round(alphas[row], 3) == pytest.approx(printed["table-7", row, "alpha"])
    for judge in truth().judges:
        assert round(alphas[f"without {judge}"], 2) == pytest.approx(printed["table-12", judge, "alpha"])


def expected_sd(rows, columns):
    """SD of a description's panel score, [model, condition], from the truth."""
    known = truth()
    zero, one = known.contested[:, rows, columns]
    rates, yes = known.rates[rows, columns], float(known.vote_odds @ known.votes.mean(axis=1))
    square = float(known.vote_odds @ known.votes.mean(axis=1) ** 2)
    mean_one, mean_zero = 1 - one * (1 - yes), zero * yes
    within = rates * (1 - one + one * square - mean_one**2) + (1 - rates) * (zero * square - mean_zero**2)
    slope, tie = mean_one - mean_zero, margins.covariances(known.states[rows, columns])
    return np.sqrt(within.sum(axis=2) + np.einsum("mcf,mcg,mcfg->mc", slope, slope, tie))


def test_expected_spreads_are_the_printed_ones_but_for_one_cell(printed):
    """The SD of a description's panel score; Qwen's under the detailed prompt is larger than its rates allow."""
    known, sd = truth(), expected_sd(slice(0, -1), slice(0, 6))
    wanted = np.array(
        [[printed["table-3", model, f"{c}_sd"] for c in CONDITIONS] for model in known.models[:-1]]
    )
    off = np.abs(sd - wanted)
    assert np.median(off) < 0.005
    assert np.sort(off.ravel())[-2] < 0.1 and off.max() < 0.6
    assert known.models[off.max(axis=1).argmax()] == "qwen/qwen3.8-27b"


def test_people_spread_and_are_judged_as_in_the_released_extractions(mirror):
    """The paper prints their rates alone; what is set beside those is what its own hundred descriptions show."""
    params = study_params("alienbench", "released")
    features, judges = list(params["features"]), list(params["judges"])
    generations, labels, _ = alienbench.load_archive(
        Archive("alienbench", mirror),
        subjects=list(params["subjects"])[:1],
        judges=judges,
        features=features,
        samples={"baseline": 1},
    )
    human = alienbench.from_tables(generations, labels, judges=judges, features=features).of([HUMAN])
    released, people = human.scores(), grammar().people
    assert round(released.std(ddof=1), 2) == people["sd"]
    for place, feature in enumerate(features):
        assert (
            round(krippendorff_alpha(human.values[:, :, place].T, "nominal"), 2) == people["alphas"][feature]
        )
    assert expected_sd(slice(-1, None), slice(0, 1))[0, 0] == pytest.approx(people["sd"], abs=0.005)
    alphas = truth().people_alphas()
    assert alphas["total"] == pytest.approx(krippendorff_alpha(human.totals().T, "interval"), abs=0.02)


def test_simulated_people_are_as_the_truth_says():
    known, params = truth(), {**study_params("alienbench"), "subjects": {}, "n_human": 1500}
    generations, labels = simulated_study(params)
    human = alienbench.from_tables(
        generations, labels, judges=list(params["judges"]), features=list(params["features"])
    ).of([HUMAN])
    scores = human.scores()
    assert scores.mean() == pytest.approx(known.rates[-1, 0].sum(), abs=4 * scores.std() / 1500**0.5)
    assert scores.std() == pytest.approx(grammar().people["sd"], abs=0.1)
    found = {
        feature: krippendorff_alpha(human.values[:, :, place].T, "nominal")
        for place, feature in enumerate(human.features)
    }
    found["total"] = krippendorff_alpha(human.totals().T, "interval")
    assert found == pytest.approx(known.people_alphas(), abs=0.12)
    assert found["total"] == pytest.approx(known.people_alphas()["total"], abs=0.03)


def test_contested_sentences_move_no_margin():
    """P(x = 1) and the panel's expected label are one number, whatever the judges' errors."""
    known = truth()
    asked = np.isfinite(known.rates)
    zero, one = known.contested
    yes = float(known.vote_odds @ known.votes.mean(axis=1))
    panel = known.rates * (1 - one * (1 - yes)) + (1 - known.rates) * zero * yes
    np.testing.assert_allclose(panel[asked], known.rates[asked], atol=1e-12)
    assert (known.contested[:, asked] >= 0).all() and (known.contested[:, asked] <= 1).all()


def test_judges_err_to_different_sides():
    """Claude never misses a departure, Gemini never invents one: as their order in the released extractions."""
    invents, misses = truth().error_rates()
    order = [
        truth().judges.index(judge)
        for judge in ("anthropic/claude-opus-4.6", "openai/gpt-5.4", "google/gemini-3.1-pro-preview")
    ]
    assert (np.diff(invents[order], axis=0) < 0).all() and (np.diff(misses[order], axis=0) > 0).all()


def test_a_cell_that_is_not_asked_is_an_error():
    with pytest.raises(ValueError, match="no simulated texts of model 'human' under condition 'departure_p"):
        truth().place(HUMAN, "departure_primed")


# the demo's own study, written and read --------------------------------------------------------------------


def test_scores_of_the_written_texts_have_the_expected_means(demo):
    """60 cells of 30 texts: the sum of squared z values is chi-squared with 60 degrees of freedom."""
    params, labels = demo
    study, known = labels.of(params["subjects"], params["conditions"]), truth()
    z = []
    for (model, condition), rows in study.generations.groupby(["model", "condition"]).groups.items():
        scores, at = study.scores()[rows], known.place(model, condition)
        x = margins.patterns(10)
        mean = known.rates[at].sum()
        sd = max(0.25, np.sqrt(known.states[at] @ (x.sum(axis=1) - mean) ** 2))
        z.append((scores.mean() - mean) / (sd / np.sqrt(len(scores))))
    assert len(z) == 60
    assert stats.chi2.sf(np.sum(np.square(z)), 60) > FALSE_ALARM


def test_rates_of_the_written_texts_are_the_expected_ones(demo):
    params, labels = demo
    study = labels.of(params["subjects"], params["conditions"])
    rates = study.rates(params["subjects"]).to_numpy()
    expected = truth().rates[:-1, :6].mean(axis=1)
    z = (rates - expected) / np.sqrt(
        (truth().rates[:-1, :6] * (1 - truth().rates[:-1, :6])).mean(axis=1) / 180
    )
    assert stats.norm.sf(np.abs(z).max()) * 2 * z.size > FALSE_ALARM


def test_alphas_of_the_written_texts_are_the_expected_ones(demo):
    """Standard errors from twenty parts of the study (texts in turn), so the difference is a t value."""
    params, labels = demo
    study, expected = labels.of(params["subjects"], params["conditions"]), truth().expected_alphas()
    for row in ("total", *study.features):
        ratings, level = study.totals(), "interval"
        if row != "total":
            ratings, level = study.values[:, :, study.features.index(row)], "nominal"
        parts = [krippendorff_alpha(ratings[part::20].T, level) for part in range(20)]
        error = np.std(parts, ddof=1) / np.sqrt(20)
        t = (krippendorff_alpha(ratings.T, level) - expected[row]) / error
        assert stats.t.sf(abs(t), 19) * 2 > FALSE_ALARM, row


def test_tokens_give_the_printed_score_per_100_tokens():
    """In expectation: E[score] E[1/tokens], for the models whose interval the paper prints."""
    known = truth()
    centre, spread = known.log_tokens[:-1].T
    density = 100 * known.rates[:-1, :6].sum(axis=2).mean(axis=1) * np.exp(-centre + spread**2 / 2)
    wanted = [known.printed["table-3", model, "per_100_tokens"][0] for model in known.models[:-1]]
    np.testing.assert_allclose(density, wanted, rtol=1e-9)


def test_lengths_of_the_written_texts_follow(demo):
    """Log tokens of texts no cap has cut: normal with the fitted mean and SD."""
    params, labels = demo
    table, known = labels.generations, truth()
    for model in ("x-ai/grok-4.7", "meta-llama/llama-4-maverick", "anthropic/claude-opus-5.5"):
        centre, spread = known.log_tokens[known.models.index(model)]
        logs = np.log(table.loc[table["model"] == model, "completion_tokens"].to_numpy())
        logs = logs[logs < np.log(params["max_tokens"])]
        bound = stats.norm.cdf((np.log(params["max_tokens"]) - centre) / spread)
        assert (
            stats.kstest(logs, lambda v: stats.norm.cdf((v - centre) / spread) / bound).pvalue > FALSE_ALARM
        ), model


def test_the_labels_of_a_text_are_those_of_what_it_was_told_to_say():
    for seed in range(60):
        request = generation(seed=seed)
        kinds = simulator.draw_kinds(
            truth(),
            request["model"],
            "baseline",
            simulator._sampling_key(request),
            grammar().writers[request["model"]].reticence,
        )
        text = simulator.respond(request).text
        by_judge = {judge: simulator.labels_of(text, judge) for judge in truth().judges}
        for feature in truth().features:
            votes = [labels[feature] for labels in by_judge.values()]
            kind = kinds.get(feature)
            if kind in ("subtle_departure", "subtle_typical"):
                assert 0 < sum(votes) < 3
            else:
                assert votes == [kind is not None and DEPARTS[kind]] * 3


# replies ----------------------------------------------------------------------------------------------------


def test_every_model_answers_and_under_its_own_snapshot():
    assert set(study_params("alienbench")["subjects"]) | {HUMAN} == set(grammar().writers)
    assert set(study_params("alienbench")["judges"]) == set(grammar().judges) == set(truth().judges)
    for model in simulator.models():
        request = judging("It rolls.", model) if model in grammar().judges else generation(model)
        reply = simulator.respond(request)
        assert reply.text and reply.finish_reason == "stop" and same_model(model, reply.model)


def test_replies_do_not_depend_on_order_or_on_what_else_is_asked():
    requests = [
        generation(model, condition, seed)
        for model in list(grammar().writers)[:-1]
        for condition in ("baseline", "constrained_ammonia")
        for seed in (3, 4)
    ]
    requests += [
        judging(simulator.respond(request).text, judge)
        for request in requests[:6]
        for judge in grammar().judges
    ]
    expected = [simulator.respond(request) for request in requests]
    simulator._reading.cache_clear()
    shuffled = list(enumerate(requests))
    random.Random(5).shuffle(shuffled)
    with ThreadPoolExecutor(8) as pool:
        for place, reply in pool.map(lambda job: (job[0], simulator.respond(job[1])), shuffled):
            assert reply == expected[place]


def test_samples_differ_by_seed_but_not_at_temperature_0():
    texts = {simulator.respond(generation(seed=seed)).text for seed in range(10)}
    assert len(texts) == 10
    cold = {simulator.respond({**generation(seed=seed), "temperature": 0}).text for seed in range(10)}
    assert len(cold) == 1
    assert simulator.respond(generation(top_p=0.5)).text != simulator.respond(generation()).text


def test_a_cap_on_tokens_cuts_text_first_at_a_word():
    whole = simulator.respond(generation("mistralai/ministral-14b-2512"))
    assert whole.completion_tokens > whole.reasoning_tokens >= 0
    cut = simulator.respond(generation("mistralai/ministral-14b-2512", max_tokens=100))
    assert cut.finish_reason == "length" and cut.completion_tokens <= 100
    assert whole.text.startswith(cut.text) and len(cut.text.split()) == 75
    capped = simulator.respond(
        generation("mistralai/ministral-14b-2512", max_tokens=whole.completion_tokens - 1)
    )
    assert capped.text == whole.text and capped.completion_tokens == whole.completion_tokens - 1


def test_a_judge_answers_what_the_instrument_asks():
    text = simulator.respond(generation()).text
    reply = simulator.respond(judging(text))
    features = list(study_params("alienbench")["features"])
    parsed = labels_from_reply(reply.text, features)
    assert not parsed.repairs and parsed.values == simulator.labels_of(text, "openai/gpt-5.4")
    assert all(
        len(entry["feature_described"].split()) <= 15 and entry["reasoning"].endswith(".")
        for entry in json.loads(reply.text).values()
    )
    two = simulator.respond(
        {
            **judging(text),
            "messages": [
                {"role": "user", "content": f'{text}\nAnswer as JSON: {{"habitat": ..., "cognition": ...}}'}
            ],
        }
    )
    assert list(json.loads(two.text)) == ["habitat", "cognition"]


def test_a_judge_reads_the_text_and_not_the_rules_around_it():
    nothing = json.loads(simulator.respond(judging("It is nice.")).text)
    assert not any(entry["is_departure"] for entry in nothing.values())
    spores = json.loads(simulator.respond(judging("It sheds spores and rolls downhill.")).text)
    departing = [feature for feature, entry in spores.items() if entry["is_departure"]]
    assert departing == ["locomotion", "reproduction"]


def test_an_unknown_model_is_refused():
    with pytest.raises(RequestError, match="'acme/one' does not exist") as caught:
        simulator.respond(generation("acme/one"))
    assert caught.value.status == 404


# in process and over HTTP -----------------------------------------------------------------------------------


def test_the_study_in_process_equals_the_chain_over_http(tmp_path):
    params = {**study_params("alienbench"), "n_samples": 2, "n_samples_paraphrase": 1, "n_human": 3}
    params["subjects"] = dict(list(params["subjects"].items())[3:6])
    generations, labels = simulated_study(params)
    requests = generation_requests(
        params["subjects"],
        Counter(
            {
                **dict.fromkeys(params["conditions"], 2),
                **{wording: 1 for wording in params["wordings"] if wording != "baseline"},
            }
        ),
        seed=params["seed"],
        temperature=params["temperature"],
        max_tokens=params["max_tokens"],
        n_human=3,
    )
    with serve("alienbench") as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        endpoint = Endpoint(server.base_url, key_env=None, concurrency=8)
        made, texts = generations_frame(
            requests, run_stage(requests, endpoint, ledger, progress=False).replies
        )
        asked = judge_requests(made, texts, params["judges"], max_tokens=params["judge_max_tokens"])
        features = list(params["features"])
        replies = run_stage(
            asked, endpoint, ledger, progress=False, parse=lambda text: labels_from_reply(text, features)
        ).replies
        given = labels_frame(asked, replies, features)
    assert len(made) == 3 * (6 * 2 + 5) + 3 and len(given) == 3 * len(made)
    assert generations.equals(made)
    assert labels.equals(given)


def test_another_seed_is_another_study_of_the_same_design():
    params = {**study_params("alienbench"), "n_samples": 1, "n_samples_paraphrase": 1, "n_human": 1}
    first, second = (simulated_study(params, seed=seed) for seed in (1, 2))
    assert first[0][["model", "condition"]].equals(second[0][["model", "condition"]])
    assert not first[1].equals(second[1])
