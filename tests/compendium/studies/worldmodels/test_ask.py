"""The world-model study's stages: requests, reading replies, simulated models, lanes, tables."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.asking.errors import InvalidReply
from compendium.asking.simulated.reply import RequestError
from compendium.frame.chance import Stream
from compendium.frame.params import study_params
from compendium.studies.worldmodels import ask as study
from compendium.studies.worldmodels import locations, scores, stages, tables
from compendium.studies.worldmodels import simulated as simulator
from compendium.studies.worldmodels.posg import edits, sandbox
from compendium.studies.worldmodels.posg.lanes import lane_one
from compendium.studies.worldmodels.posg.match import compare
from compendium.studies.worldmodels.posg.model import canonical_json, from_document, relabel
from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.simulated import respond, text
from tests.in_process import in_process

MODELS = ("openai/gpt-5.6-sol", "meta-llama/llama-3.3-70b-instruct")


def ask(requests, label: str = "", **options):
    """As `asking` yields it."""
    return in_process(respond, requests, **options)


@pytest.fixture(scope="module")
def p():
    made = SimpleNamespace(**study_params("worldmodels"))
    made.subjects = {model: made.subjects[model] for model in MODELS}
    made.games, made.situations, made.cultures = ["G1", "G4"], ["S3"], ["C1", "C9"]
    return made


@pytest.fixture(scope="module")
def cultural(p):
    """A cultural track alone: JSON, so nothing has to be run."""
    small = SimpleNamespace(**{**vars(p), "games": [], "situations": []})
    replies, _ = stages.generate(small, ask)
    candidates, documents = stages.judge(replies)
    return SimpleNamespace(
        replies=replies, candidates=candidates, documents=documents, games=tables.games_of(documents)
    )


# -- requests ------------------------------------------------------------------------------------------


def test_one_prompt_many_seeds(p):
    requests = study.generation_requests(p)
    assert len(requests) == 2 * (2 * 3 + 1 * 3 + 2 + 5)
    same = [r for r in requests if r.tag["case"] == "G1" and r.model == MODELS[0]]
    assert (
        len({json.dumps(r.messages) for r in same}) == 1
        and len({r.seed for r in same}) == len({r.key for r in same}) == 3
    )
    assert all(r.temperature == 0 for r in requests if r.tag["track"] == "game")
    assert all(r.temperature == 0.7 for r in requests if r.tag["track"] == "cultural")


def test_prompts_carry_the_case_and_the_contract():
    user = study.messages(corpus()["G6"])[1]["content"]
    assert (
        corpus()["G6"].text in user
        and "def transition(" in user
        and "{" not in user.replace("{player: action}", "").replace("{next state: probability}", "")
    )
    user = study.messages(corpus()["C9"], "india")[1]["content"]
    assert "Crowded India" in user and '"terminal_states"' in user


def test_a_repair_hands_back_text_and_problem(p):
    first = study.generation_requests(p)[0]
    again = study.repair_request(first, "class X: pass", "probe: it leaks")
    assert [m["role"] for m in again.messages] == ["system", "user", "assistant", "user"]
    assert (
        "probe: it leaks" in again.messages[-1]["content"]
        and again.tag["round"] == 1
        and first.tag["round"] == 0
    )


# -- reading replies ----------------------------------------------------------------------------------


def test_python_strict_and_recovered():
    module = "class Model(AbstractPOSG):\n    pass\n"
    assert study.read_python(module) == (module, "strict", "")
    fenced = f"Here it is.\n```python\n{module}```\nand a note\n```\nprint(1)\n```"
    assert study.read_python(fenced) == (module, "recovered", "fence removed")
    assert study.read_python("I would rather not.")[1] == "void"


def test_json_strict_and_recovered():
    assert study.read_json('{"a": 1}') == ({"a": 1}, "strict", "")
    document, how, what = study.read_json('Sure:\n```json\n{"a": 1}\n```')
    assert (document, how) == ({"a": 1}, "recovered") and "fence" in what
    for void in (
        "no",
        "[1, 2]",
        '{"a": 1',
        '{"a": 1, "a": 2}',
        '{"states": ["x", /* the others omitted */ ]}',
    ):
        assert study.read_json(void)[1] == "void", void


def test_flags_are_read_or_refused():
    assert study.read_flags('{"flags": [{"feature": "x", "kind": "omission", "evidence": "e"}]}').values == {
        "x": "omission"
    }
    assert study.read_flags('```json\n{"flags": []}\n```').values == {}
    for wrong in ('{"flags": {}}', '{"flags": [{"feature": "x", "kind": "bad"}]}', "[]", '{"flags": ["x"]}'):
        with pytest.raises(InvalidReply):
            study.read_flags(wrong)


# -- simulated models -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        edits.split_endings,
        edits.unfold,
        edits.make_certain,
        *[
            lambda g, f=f: f(g, Stream("t", g.name))
            for f in (
                edits.add_action,
                edits.add_chance,
                edits.drop_action,
                edits.merge_endings,
                edits.drop_player,
                edits.restyle,
            )
        ],
    ],
)
def test_every_change_of_every_case_is_a_valid_game(change):
    for scenario in corpus().values():
        made = change(scenario.game)
        assert lane_one(made.document()).valid, scenario.id


def test_restyling_only_renames():
    for scenario in corpus().values():
        match = compare(scenario.game, edits.restyle(scenario.game, Stream("style", scenario.id)))
        assert match.f1 == 1.0, scenario.id


def test_the_four_bid_candidate_has_the_printed_counts():
    game = edits.four_bids()
    assert lane_one(game.document()).valid and game.size()["states"] == 101
    assert sum("tie" in state and state not in game.terminals for state in game.states) == 16


def test_python_text_is_the_game():
    backend, _ = sandbox.isolation()
    for name in ("G6", "S4"):
        verdict = sandbox.run_candidate(
            text.python_text(corpus()[name].game), allow_unisolated=backend is None
        )
        found = from_document(verdict.document)
        assert canonical_json(found).replace('"name": ""', f'"name": "{name}"') == canonical_json(
            corpus()[name].game
        )


@pytest.mark.parametrize("gate", ["contract", "probe", "audit"])
def test_broken_json_fails_at_its_gate_and_not_before(gate):
    for number in range(12):
        one = lane_one(
            json.loads(text.broken_json(corpus()["C9"].game, gate, Stream("broken", gate, number)))
        )
        assert not one.valid
        for earlier in ("contract", "probe", "audit")[: ("contract", "probe", "audit").index(gate)]:
            assert one.passed(earlier), (gate, number, one.first_problem)
        assert not one.passed(gate)


@pytest.mark.parametrize("gate, status", [("contract", "contract"), ("probe", "probe"), ("audit", "audit")])
def test_broken_python_fails_at_its_gate(gate, status):
    trust = sandbox.isolation()[0] is None
    sources = [text.broken_python(corpus()["G3"].game, gate, Stream("broken", gate, n)) for n in range(4)]
    for verdict in stages.lanes([("game", source) for source in sources], trust=trust):
        assert not verdict.one.valid and verdict.problem
        assert verdict.one.passed("probe") is (gate == "audit")


def test_the_simulator_answers_by_content_alone(p):
    requests = study.generation_requests(p)
    first = [simulator.respond(r.body()).text for r in requests]
    assert first == [simulator.respond(r.body()).text for r in reversed(requests)][::-1]
    assert len(set(first)) > len(first) / 2
    assert all(simulator.claims(r.body()) for r in requests)


def test_any_simulated_model_can_be_the_judge(p, cultural):
    """A live run names a judge of its own; at the simulator's address it flags as the demo's does."""
    chosen = cultural.candidates[cultural.candidates["id"].isin(cultural.games)]
    requests = {
        judge: study.judge_requests(chosen, cultural.documents, judge=judge, seed=1)
        for judge in ("simulated/judge", MODELS[0])
    }
    said = {judge: [simulator.respond(r.body()).text for r in asked] for judge, asked in requests.items()}
    assert said["simulated/judge"] == said[MODELS[0]] and all(
        study.read_flags(text) for text in said[MODELS[0]]
    )


def test_the_simulator_refuses_what_it_does_not_know(p):
    body = study.generation_requests(p)[0].body()
    with pytest.raises(RequestError, match="no case of the corpus"):
        simulator.respond({**body, "messages": [{"role": "user", "content": "Hello"}]})
    with pytest.raises(RequestError, match="no simulated model"):
        simulator.respond({**body, "model": "nobody/nothing"})
    assert not simulator.claims({"messages": [{"role": "user", "content": "Hello"}]})


def test_planted_rates_come_out():
    """Over all games and many seeds the share of each structure is near its weight."""
    model = "openai/gpt-5.6-sol"
    kinds = [
        simulator.structure(model, corpus()[g], "", seed)[0] for g in ("G5", "G8") for seed in range(400)
    ]
    planted = simulator.traits()["models"][model]["game"]
    exact = planted["exact"] * simulator.traits()["ease"]["G5"]
    expected = exact / (exact + planted["over"] + planted["omit"])
    assert 0.2 < np.mean([kind == "exact" for kind in kinds]) < 1
    assert set(kinds) == {"exact", "over", "omit"} and expected > 0.5


def test_hostile_replies_are_clean_verdicts():
    backend, _ = sandbox.isolation()
    if backend is None:
        pytest.skip("no isolation here: hostile code is not run")
    for deed in ("reads a file", "opens a socket", "starts a process", "takes all memory"):
        verdict = sandbox.run_candidate(text.hostile_python(deed))
        assert verdict.status in ("error", "memory") and verdict.document is None


# -- stages -----------------------------------------------------------------------------------------------


def test_cultural_stage_keeps_strict_and_recovered_apart(cultural):
    table = cultural.candidates
    assert len(table) == 2 * (2 + 5) and set(table["round"]) == {0}
    llama = table[table["model"] == MODELS[1]]
    assert (llama["parse"] != "strict").all() and (llama["recovery"].str.len() > 0).all()
    assert set(cultural.documents) == set(table.loc[table["probe"], "id"])


def test_in_demo_nothing_depends_on_the_order(p, cultural):
    small = SimpleNamespace(**{**vars(p), "games": [], "situations": [], "cultures": p.cultures[::-1]})
    replies, _ = stages.generate(small, ask)
    merged = replies.merge(cultural.replies, on="id", suffixes=("", "_before"))
    assert len(merged) == len(replies) and (merged["text"] == merged["text_before"]).all()


def test_repairs_are_rows_of_their_own(p, monkeypatch):
    """A model whose first reply fails is asked again, at most as often as allowed; with JSON, so without a sandbox."""
    bad, good = (
        text.broken_json(corpus()["C9"].game, "probe", Stream("r")),
        text.json_text(corpus()["C9"].game),
    )
    small = SimpleNamespace(
        **{
            **vars(p),
            "games": [],
            "situations": [],
            "cultures": ["C9"],
            "variants": {},
            "conditions": {"located": ""},
            "repair_rounds": {"cultural": [2]},
        }
    )
    asked = []

    def ask(requests, label, **_):
        asked.append((label, len(requests)))
        answers = [good if r.model == MODELS[0] and r.tag["round"] == 1 else bad for r in requests]
        return SimpleNamespace(
            replies=[SimpleNamespace(valid=True, text=a, raw=a) for a in answers], report=None
        )

    replies, _ = stages.generate(small, ask)
    assert asked == [("generating", 2), ("repairing", 2), ("repairing", 1)]
    assert replies.groupby("model")["round"].max().to_dict() == {MODELS[0]: 1, MODELS[1]: 2}
    candidates, _ = stages.judge(replies)
    assert scores.first_pass(candidates, "cultural")["lane1"].sum() == 0
    assert candidates.loc[candidates["round"] == 1, "lane1"].tolist() == [True, False]


def test_tables_survive_a_round_trip(tmp_path, cultural):
    path = tables.write_documents(tmp_path / "models.jsonl", cultural.documents)
    assert tables.read_documents(path) == cultural.documents
    cultural.candidates.to_csv(tmp_path / "candidates.csv", index=False)
    again = tables.load(tmp_path / "candidates.csv", path, ("cultural",))
    pd.testing.assert_frame_equal(again.candidates, cultural.candidates, check_dtype=False)


def test_judge_flags_most_faults_and_few_others(cultural):
    said, _ = stages.flags(
        cultural.candidates[cultural.candidates["id"].isin(cultural.games)],
        cultural.documents,
        ask,
        judge="simulated/judge",
        seed=1,
    )
    present = tables.presence_table(
        cultural.candidates[cultural.candidates["id"].isin(cultural.games)], cultural.games
    )
    both = said.merge(present, on=["id", "case", "feature"])
    truth = {
        (case, name): label for case in ("C1", "C9") for name, _, label in study.features(corpus()[case])
    }
    label = [truth[case, name] for case, name in zip(both["case"], both["feature"])]
    wrong = [
        (want == "must" and not has) or (want == "must_not" and has)
        for want, has in zip(label, both["present"])
    ]
    flagged = both["flag"] != ""
    assert flagged[np.array(wrong)].mean() > 0.5 and flagged[~np.array(wrong)].mean() < 0.15


# -- tables --------------------------------------------------------------------------------------------------


def scored(rows):
    return pd.DataFrame(rows, columns=["id", "model", "case", "run", "f1", "coverage", "precision", "same"])


def test_table_2_and_6_by_hand():
    same, other = corpus()["G4"].game, corpus()["G1"].game
    games = {"a": same, "b": relabel(same, np.random.default_rng(0)), "c": other, "d": same}
    valid = scored(
        [
            ["a", "m", "G4", 1, 1.0, 1.0, 1.0, True],
            ["b", "m", "G4", 2, 1.0, 1.0, 1.0, True],
            ["c", "m", "G1", 1, 0.4, 0.5, 0.3, False],
            ["d", "m", "G1", 2, 0.8, 0.9, 0.7, False],
        ]
    )
    two = scores.table_2(valid).loc["m"]
    assert (two["f1"], two["median"], two["exact"]) == pytest.approx((0.8, 0.9, 2))
    six = scores.table_6(valid, games, horizon=3).loc["m"]
    assert six["equivalent"] == 1 and six["mean_sd"] == pytest.approx(0.5 * 0.4 / np.sqrt(2))
    assert six["median_range"] == pytest.approx(0.2)


def test_table_3_keeps_first_and_final_apart():
    rows = [["m", "G1", 1, 0, False, False], ["m", "G1", 1, 1, True, True], ["m", "G2", 1, 0, True, True]]
    table = scores.table_3(pd.DataFrame(rows, columns=["model", "case", "run", "round", "contract", "lane1"]))
    assert table.loc["1"].to_dict() == {
        "first_pass_valid": 1,
        "first_pass_of": 2,
        "first_pass_percent": 50.0,
        "final_valid": 2,
        "final_of": 2,
        "attempts": 3,
    }
    assert table.loc["all"].equals(table.loc["1"])


def test_table_7_is_exact_but_for_the_finer_toys():
    table = scores.table_7(horizon=3)
    assert (table["f1"] < 1).sum() == 4 and table.index[table["f1"] < 1].tolist() == [
        "T2.1",
        "T2.2",
        "T3.2",
        "T4.3",
    ]
    assert (table[["lane1", "lane3", "overall"]] == 1).all().all()


def test_consequence_levels_by_hand():
    game = corpus()["C9"].game
    assert locations.consequence(game, edits.restyle(game, Stream("x"))) == "LOW"
    assert locations.consequence(game, edits.merge_endings(game, Stream("x"))) == "EXT"
    more = edits.add_action(game, Stream("x"), words=("stall",))
    assert locations.consequence(game, more) == "EXT"  # the new action has an ending of its own
    fewer = edits.rebuild(
        game,
        {
            **game.transitions,
            "policy_is_rumour": {
                joint: row
                for joint, row in game.transitions["policy_is_rumour"].items()
                if "seat_as_requested" not in joint
            },
        },
        {**game.actions, "policy_is_rumour": (("ask_host",), *game.actions["policy_is_rumour"][1:])},
    )
    assert (
        locations.consequence(game, fewer) == "LOW"
    )  # the robot can still seat as requested, in the other state
    none = edits.rebuild(
        fewer,
        {
            **fewer.transitions,
            "policy_is_real": {
                joint: row
                for joint, row in fewer.transitions["policy_is_real"].items()
                if "seat_as_requested" not in joint
            },
        },
        {**fewer.actions, "policy_is_real": (("ask_host",), *fewer.actions["policy_is_real"][1:])},
    )
    assert locations.consequence(game, none) == "HIGH" and set(none.terminals) == set(game.terminals)


def test_location_tables_by_hand():
    rows = [
        ["m", "C1", "anonymised", 0.8],
        ["m", "C1", "located", 0.9],
        ["m", "C2", "located", 0.5],
        ["n", "C1", "located", 0.7],
    ]
    table = pd.DataFrame(rows, columns=["model", "case", "condition", "semantic"])
    deltas = locations.location_deltas(table)
    assert (
        deltas.at["C1", "m"] == pytest.approx(0.1)
        and np.isnan(deltas.at["C2", "m"])
        and np.isnan(deltas.at["C1", "n"])
    )
    panel = locations.located_scores(table)["panel"]
    assert panel["C1"] == pytest.approx(0.8) and panel["C2"] == pytest.approx(0.5)


def test_shortest_way():
    assert locations.shortest_way(corpus()["C13"].game, ["false case acted"]) == 3
    assert np.isnan(locations.shortest_way(corpus()["C13"].game, ["promoted"]))
