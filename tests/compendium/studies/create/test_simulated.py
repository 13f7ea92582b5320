"""CREATE's simulated models and judges: what is planted comes out, and the same request gets the same
answer."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.asking.simulated.reply import RequestError
from compendium.frame.params import study_params
from compendium.studies.create import simulated as simulator
from compendium.studies.create.answers import PATH_COLUMNS
from compendium.studies.create.ask import (
    VARIATIONS,
    baseline_requests,
    generation_requests,
    judge_requests,
    prompts,
    question,
    rubric,
    writing_requests,
)
from compendium.studies.create.graph import build_queries, classes
from compendium.studies.create.judging import read_class_sizes, read_factuality, specificity
from compendium.studies.create.paths import fault, parse_answer, path_key
from compendium.studies.create.stages import baselines, build_benchmark, explore, judge
from tests.compendium.studies.create.small_study import ask, demo

MODELS = list(simulator.traits()["models"])


@pytest.fixture(scope="module")
def drawn():
    world = simulator.world()
    return build_queries(world, classes(world), 12, np.random.default_rng(3), per_class=1, least_chains=12)


def answer(model, query, variation="original", seed=1):
    reply = simulator.respond(
        {"model": model, "messages": [{"role": "user", "content": question(query, variation)}], "seed": seed}
    )
    return parse_answer(reply.text)


def test_the_same_request_has_the_same_reply(drawn):
    query = drawn[0][0]
    first = answer(MODELS[0], query).paths
    assert first and answer(MODELS[0], query).paths == first
    assert answer(MODELS[0], query, seed=2).paths != first and answer(MODELS[1], query).paths != first


def test_planted_rates_come_out(drawn):
    for model in MODELS:
        planted = simulator.traits()["models"][model]
        answers = [
            (query, path)
            for query, _ in drawn
            for seed in range(6)
            for path in answer(model, query, seed=seed).paths
        ]
        made_up = [
            not simulator.is_true(t) for query, path in answers if fault(path, query) == "" for t in path[:-1]
        ]
        assert np.mean(made_up) == pytest.approx(planted["hallucination"], abs=0.035)
        broken = np.mean([fault(path, query) != "" for query, path in answers])
        assert broken == pytest.approx(planted["broken"], abs=0.04)


def test_breadth_and_taste_order_the_models(drawn):
    counts = {
        m: np.mean([len(answer(m, q, seed=s).paths) for q, _ in drawn for s in range(4)]) for m in MODELS
    }
    taste = {
        m: np.mean([simulator.true_strength(p) for q, _ in drawn for p in answer(m, q).paths]) for m in MODELS
    }
    assert (
        counts["anthropic/claude-sonnet-4.6"]
        > counts["openai/gpt-4.1"]
        > counts["qwen/qwen3-30b-a3b-instruct-2507"]
    )
    assert taste["google/gemini-3-pro"] > taste["qwen/qwen3-30b-a3b-instruct-2507"]


def test_iterating_gives_other_paths(drawn):
    query = next(q for q, _ in drawn if len(simulator.candidates(q.head, q.relation, q.tail)) > 60)
    first = {"model": "openai/gpt-4.1", "messages": [{"role": "user", "content": question(query)}], "seed": 1}
    said = simulator.respond(first).text
    second = {
        **first,
        "messages": [
            *first["messages"],
            {"role": "assistant", "content": said},
            {"role": "user", "content": prompts()["iterate"].format(query=query.text)},
        ],
    }
    before = {path_key(path) for path in parse_answer(said).paths}
    after = {path_key(path) for path in parse_answer(simulator.respond(second).text).paths}
    assert after and len(before & after) <= 0.1 * len(before)


def test_verbalised_answers_state_probabilities(drawn):
    found = answer("openai/gpt-5-mini", drawn[1][0], "verbalized")
    assert found.paths and not np.isnan(found.probabilities).any()


def test_the_judge_errs_as_planted():
    planted = simulator.traits()["judges"]["openai/gpt-oss-120b"]
    true = sorted(simulator.world().facts)[::4]
    false = [
        (head, "sibling", tail)
        for head, relation, tail in true
        if not simulator.is_true((head, "sibling", tail))
    ]
    for triples, rate, right in (
        (true, planted["recall_factual"], True),
        (false, planted["recall_not_factual"], False),
    ):
        hits = []
        for request in judge_requests(
            [(i, (t,)) for i, t in enumerate(triples)], "openai/gpt-oss-120b", max_tokens=99, seed=1
        )[::2]:
            text = simulator.respond(request.content).text
            if "[]" not in text:
                hits.append(read_factuality(text, 1)[0] is right)
        assert np.mean(hits) == pytest.approx(rate, abs=0.05)


def test_class_sizes_are_the_graphs_with_error():
    triples = sorted(simulator.world().facts)[::7]
    pairs = []
    for request, triple in zip(
        judge_requests(
            [(i, (t,)) for i, t in enumerate(triples)], "openai/gpt-5-mini", max_tokens=99, seed=1
        )[1::2],
        triples,
    ):
        text = simulator.respond(request.content).text
        if "[]" not in text:
            pairs.append(
                (specificity(read_class_sizes(text, 1)[0]), specificity(simulator.world().class_size(triple)))
            )
    assert 0.7 < np.corrcoef(np.array(pairs, dtype=float).T)[0, 1] < 0.99


def test_malformed_judgements_are_asked_again_and_found():
    found = demo()
    assert not found.judged.loc[found.judged["valid"], "factual"].isna().any()


def test_unknown_models_are_refused():
    with pytest.raises(RequestError) as refused:
        simulator.respond(
            {"model": "nobody/none", "messages": [{"role": "user", "content": "three words: a, b, c."}]}
        )
    assert refused.value.status == 404


def test_all_prompts_are_claimed_and_models_listed(drawn):
    p = SimpleNamespace(**study_params("create"))
    asked = [
        *generation_requests(
            [drawn[0][0]], p.subjects, {"GPT-4.1": dict.fromkeys(VARIATIONS, 1)}, seed=1, n_resamples=2
        ),
        *writing_requests(drawn[:1], simulator.world(), model="openai/gpt-4o-mini", seed=1),
        *judge_requests([(0, drawn[0][1].triples)], p.judge, max_tokens=10, seed=1),
        *baseline_requests({"GPT-4.1": p.subjects["GPT-4.1"]}, seed=1, n_aut=1, n_dat=1),
    ]
    assert all(simulator.claims(request.content) for request in asked)
    assert {request.model for request in asked} <= set(simulator.models())
    assert not simulator.claims(
        {"model": "x", "messages": [{"role": "user", "content": "Describe an alien animal."}]}
    )


def test_resamples_begin_with_the_original(drawn):
    p = study_params("create")
    asked = generation_requests(
        [drawn[0][0]], p["subjects"], {"GPT-4.1": {"original": 1, "resample": 1}}, seed=1, n_resamples=3
    )
    assert len(asked) == 4 and asked[0] == asked[1] and len(set(asked)) == 3
    with pytest.raises(ValueError, match="not one of original"):
        question(drawn[0][0], "terse")


def test_the_demo_stage_by_stage():
    found, p = demo(), SimpleNamespace(**study_params("create"))
    assert len(found.queries) == p.n_queries and list(found.judged.columns) == PATH_COLUMNS
    assert [
        q for q, _ in zip(build_benchmark(p)[0], found.queries)
    ] == found.queries  # template and writer agree here
    assert set(found.asked["source"]) >= {
        "GPT-4.1",
        "GPT-5-mini (med) [iterate]",
        "GPT-5-mini (med) [resample]",
    }
    truth = found.judged[found.judged["valid"]]["triples"].map(lambda path: all(map(simulator.is_true, path)))
    factual = found.judged[found.judged["valid"]]["factual"]
    assert factual[~truth.astype(bool)].mean() < 0.15 < factual[truth.astype(bool)].mean()
    again, judgements, _ = judge(p, found.paths, ask)
    pd.testing.assert_frame_equal(again, found.judged)
    assert len(judgements) == len(found.judgements)


def test_traces_and_baselines():
    found, p = demo(), SimpleNamespace(**study_params("create"))
    key = next(iter(found.traces))
    counts = explore(p, {key: found.traces[key]}, ask).iloc[0]
    assert counts["entities"] > 3 and counts["relations"] > 1 and counts["triples"] >= counts["entities"] / 3
    p.subjects, p.n_aut, p.n_dat = {"GPT-4.1": p.subjects["GPT-4.1"]}, 1, 2
    replies = baselines(p, ask)
    assert replies.groupby("test").size().to_dict() == {"aut": 5, "dat": 2, "rat": 15}
    assert (replies.loc[replies["test"] == "rat", "answer"] != "").all()


def test_the_rubric_and_the_quoted_sentence_are_the_papers(mirror):
    paper = mirror.parent / "papers" / "create.txt"
    if not paper.is_file():
        pytest.skip("the paper's text does not lie beside the archive mirror")
    text = " ".join(paper.read_text(encoding="utf-8").split())
    for line in [*rubric().splitlines(), prompts()["be_creative"]]:
        assert " ".join(line.split()) in text


def test_judge_prompts_hold_the_path_as_json(drawn):
    request = judge_requests([(0, drawn[0][1].triples)], "m", max_tokens=9, seed=1)[0]
    text = request.messages[0]["content"]
    assert json.loads(text[text.index("Triples: ") + 9 :]) == [list(t) for t in drawn[0][1].triples]
    assert "{" in text and "{{" not in text
