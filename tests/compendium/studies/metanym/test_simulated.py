"""Simulated players: pure, planted, and as malformed as real ones; the stages that ask them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from compendium.asking.errors import InvalidReply
from compendium.asking.simulated.reply import RequestError
from compendium.frame.params import study_params
from compendium.studies.metanym import simulated, stages
from compendium.studies.metanym.ask import judge_requests
from compendium.studies.metanym.components import components
from compendium.studies.metanym.evaluation import parse_evaluation
from compendium.studies.metanym.exam import score_replies
from compendium.studies.metanym.game import MetanymError, build_game, check_game
from compendium.studies.metanym.load import load_game
from compendium.studies.metanym.portfolio import check_portfolio, parse_portfolio
from compendium.studies.metanym.prompts import evaluation_prompt, generation_prompt
from compendium.studies.metanym.stages import (
    exam,
    judge,
    planned,
    play,
    raw_pass,
    read_portfolios,
    write_portfolios,
)
from tests.compendium.studies.metanym.games import ask_here, demo_game


def ask(model, prompt, **options):
    return simulated.respond({"model": model, "messages": [{"role": "user", "content": prompt}], **options})


@pytest.fixture(scope="module")
def p():
    return SimpleNamespace(**study_params("metanym"))


@pytest.fixture
def here(monkeypatch):
    """The stages ask in this process, without a server."""
    monkeypatch.setattr(stages, "ask_all", ask_here)


@pytest.fixture(scope="module")
def demo():
    return demo_game()


def test_a_portfolio_is_as_asked_but_for_the_planted_short_one():
    for model in simulated.models():
        text = ask(model, generation_prompt(), seed=3).text
        codes = {check.code for check in check_portfolio(parse_portfolio(text))}
        assert codes <= ({"archetypes"} if "nano" in model else set())


def test_the_same_request_gets_the_same_reply_and_another_run_another_one():
    model = simulated.models()[1]
    assert ask(model, generation_prompt(), seed=1) == ask(model, generation_prompt(), seed=1)
    assert ask(model, generation_prompt(), seed=1).text != ask(model, generation_prompt(), seed=2).text


def test_planted_errors_are_what_a_reader_can_see():
    wrong = {}
    for model in simulated.models():
        archetypes = [
            a for run in range(6) for a in parse_portfolio(simulated.write_portfolio(model, run)).archetypes
        ]
        cells = [
            (domain.lower(), slot, metanym)
            for a in archetypes
            for slot, row in a.table.items()
            for domain, metanym in row.items()
        ]
        wrong[model] = np.mean(
            [simulated.world()["domains"][domain][slot] != metanym for domain, slot, metanym in cells]
        )
    for model, share in wrong.items():
        assert share == pytest.approx(simulated.player(model)["error"], abs=0.05)


def test_a_higher_anchor_moves_the_scores_up():
    texts = [simulated.write_portfolio(model, 1) for model in simulated.models()[:2]]
    means = []
    for anchor in (5, 8):
        found = parse_evaluation(
            ask(simulated.models()[2], evaluation_prompt(texts[1], texts[0], anchor), seed=0).text
        )
        means.append(np.nanmean(found.scores))
    assert 2 < means[1] - means[0] < 4


def test_lapses_of_every_kind_are_read_or_refused():
    scores = {
        "scores": {
            "Target": {
                "archetypal_contexts": [
                    {
                        "name": str(k),
                        "factual_per_pc": [7] * 5,
                        "beauty": 6,
                        "intelligence": 6,
                        "instantiation_distinctness": 6,
                        "impressive_length": 6,
                    }
                    for k in range(5)
                ],
                "structural_diversity": 6,
            }
        }
    }
    outcome = {}
    for lapse in simulated.LAPSES:
        text = simulated._spoilt("prose", json.loads(json.dumps(scores)), lapse)
        try:
            outcome[lapse] = len(parse_evaluation(text, least=4).names)
        except InvalidReply as reason:
            outcome[lapse] = reason.kind
    assert outcome.pop("omission") == "omission"
    assert set(outcome.values()) == {5}


def test_unknown_players_and_prompts():
    with pytest.raises(RequestError):
        ask("nobody/at-all", generation_prompt())
    with pytest.raises(RequestError):
        ask(simulated.models()[0], "Hello")
    assert not simulated.claims({"messages": [{"role": "user", "content": "Hello"}]})


def test_a_full_game_recovers_what_was_planted(p, demo):
    game = build_game(
        demo[1],
        anchor_model=p.anchor_model,
        evaluators=list(p.players),
        targets=[name for name in p.players if name != p.anchor_model],
        zeros=p.zeros,
    )
    assert (len(game.evaluators), len(game.targets), len(game.anchors), len(game.runs)) == (12, 11, 4, 3)
    assert {finding.code for finding in check_game(game)} <= {"flat_judge", "short_portfolio", "lost_call"}
    found = components(game, p.council)
    traits = {name: simulated.player(entry["slug"]) for name, entry in p.players.items()}
    eye = np.array([traits[name]["eye"] for name in game.evaluators])
    honest = np.array(["fills" not in traits[name] or traits[name]["eye"] > 0.3 for name in game.evaluators])
    assert np.corrcoef(eye[honest], found.loading[honest])[0, 1] > 0.95
    targets = list(game.targets)
    assert (
        np.corrcoef([traits[name]["error"] for name in targets], found.table.loc[targets, "GF"])[0, 1] < -0.8
    )
    assert (
        np.corrcoef([traits[name]["craft"] for name in targets], found.table.loc[targets, "GC"])[0, 1] > 0.9
    )
    assert found.axis.gap > 2


def test_nobody_is_asked_about_the_own_or_the_reference(p, demo):
    requests = judge_requests(p, demo[0])
    assert len(requests) == (12 * 11 - 11) * 6
    assert all(r.tag["evaluator"] != r.tag["target"] and r.tag["target"] != p.anchor_model for r in requests)
    with pytest.raises(MetanymError, match="has no portfolio in run 1"):
        judge_requests(p, demo[0][demo[0]["model"] != p.anchor_model])


def test_the_unanchored_pass_rates_everyone_elses(p, demo, here):
    table = raw_pass(p, demo[0], source="simulated").table
    seen = table.drop_duplicates(["evaluator", "target"])
    assert (
        len(seen) == 12 * 11 and (seen["evaluator"] != seen["target"]).all() and (table["anchor"] == 0).all()
    )


def test_the_keyed_test_goes_in_two_stages(p, here):
    stage, second = exam(p, simulated.questions(48), source="simulated")
    scores = score_replies(stage.table)
    assert len(stage.table) == 48 * 12 and (scores["n"] == 48).all()
    assert second.at["gemini-3.1-pro", "voids"] > 10 and second["residual"].sum() == 0
    key = [simulated.player(entry["slug"])["key"] for entry in p.players.values()]
    assert np.corrcoef(key, scores.loc[list(p.players), "accuracy"])[0, 1] > 0.85
    assert scores.at["gemini-3.1-pro", "questionable"] > 0


def test_over_http_it_is_the_same_game(p, tmp_path, monkeypatch):
    small = SimpleNamespace(
        **{**vars(p), "players": dict(list(p.players.items())[:3]), "runs": [1], "anchors": [6, 7]}
    )
    with monkeypatch.context() as patched:
        patched.setattr(stages, "ask_all", ask_here)
        written = play(small, source="simulated").table
        rated = judge(small, written, source="simulated").table
    there = play(small, source="simulated", out=tmp_path)
    assert written.equals(there.table) and there.report.total("requests") == 3
    assert rated.equals(judge(small, written, source="simulated", out=tmp_path).table)
    assert len(rated) == 5 * 2 * 5 - 2 * 5
    again = judge(small, written, source="simulated", out=tmp_path)
    assert again.report.total("from_ledger") == 8 and again.report.total("calls") == 0


def test_portfolios_are_kept(p, demo, tmp_path):
    path = write_portfolios(tmp_path / "portfolios.jsonl", demo[0])
    assert read_portfolios(path).equals(demo[0])
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(MetanymError, match="bad.jsonl, line 1: not a whole JSON object"):
        read_portfolios(tmp_path / "bad.jsonl")


def test_what_a_live_run_would_ask(p, demo, tmp_path):
    counts = {stage: len(requests) for stage, requests in planned(p, tmp_path).items()}
    assert counts == {"playing": 36, "un-anchored pass": 12, "judging": 726, "keyed test": 576}
    write_portfolios(tmp_path / "metanym" / "portfolios.jsonl", demo[0])
    again = planned(p, tmp_path)["judging"]
    assert [request.key for request in again] == [request.key for request in judge_requests(p, demo[0])]


def test_a_game_from_its_file(p, demo, tmp_path):
    demo[1].to_csv(tmp_path / "ratings.csv", index=False)
    game = load_game(tmp_path / "ratings.csv", p)
    same = build_game(
        demo[1],
        anchor_model=p.anchor_model,
        evaluators=list(p.players),
        targets=list(game.targets),
        zeros=p.zeros,
    )
    assert game.runs == (1, 2, 3) and np.array_equal(game.factual, same.factual, equal_nan=True)


def test_a_void_reply_is_counted_and_left_out(p, demo, here, monkeypatch):
    small = SimpleNamespace(
        **{**vars(p), "players": dict(list(p.players.items())[:3]), "runs": [1], "anchors": [7]}
    )
    answer = simulated.respond

    def broken(request):
        silent = request["model"] == p.players["gemini-3.1-pro"]["slug"]
        return simulated.Reply("I would rather not.") if silent else answer(request)

    monkeypatch.setattr(simulated, "respond", broken)
    stage = judge(small, demo[0][demo[0]["model"].isin(small.players)], source="simulated")
    assert list(stage.voids["evaluator"]) == ["gemini-3.1-pro"] and "no JSON" in stage.voids["why"].iloc[0]
    assert set(stage.table["evaluator"]) == {"claude-opus-4.5", "claude-opus-4.1"}
