"""Bad input on the notebooks' own path: what can go on goes on and says what is missing; the rest stops with one
clear error."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium.asking.names import same_model
from compendium.asking.simulated.reply import Reply
from compendium.frame.archive import ArchiveError
from compendium.frame.params import study_params
from compendium.studies.metanym import simulated, stages
from compendium.studies.metanym.evaluation import JSON_KEYS
from compendium.studies.metanym.game import SCORES, MetanymError
from compendium.studies.metanym.ratings import read_table
from compendium.studies.metanym.stages import write_portfolios
from lib.spectral import SpectralError
from tests.compendium.studies.metanym.games import ask_here, demo_game
from tests.compendium.studies.metanym.notebook_path import cells_of, run_notebook

RATED = (
    "03_factual",
    "04_consistency",
    "05_council",
    "06_contest",
    "07_external",
    "10_robustness",
    "14_limits",
    "13_leaderboard",
)
SOME = ("03_factual", "06_contest", "07_external", "13_leaderboard")
FLAT, SEAT, ANCHOR = "claude-sonnet-4", "gemini-2.5-flash", "claude-opus-4.5"
CONTEXTS = list(SCORES[:5])


@pytest.fixture(autouse=True)
def asked_here(monkeypatch):
    monkeypatch.setattr(stages, "ask_all", ask_here)


@pytest.fixture(scope="module")
def demo():
    p = SimpleNamespace(**{**study_params("metanym"), "runs": [1, 2]})
    return p, *demo_game(p.runs)


def chain(ratings, folder, names=RATED, **parameters) -> dict:
    """{notebook: what it printed} of every notebook that reads ratings, given this table of them."""
    path = folder / "ratings.csv"
    ratings.to_csv(path, index=False)
    if "06_contest" in names:
        parameters = {"leaderboard": str(folder / "metanym" / "leaderboard.csv"), **parameters}
    return {name: run_notebook(name, folder, ratings=str(path), **parameters) for name in names}


def flattened(ratings, judge, columns=SCORES):
    ratings = ratings.copy()
    ratings.loc[ratings["evaluator"] == judge, list(columns)] = 7
    return ratings


@pytest.mark.parametrize("judge", [FLAT, SEAT])
def test_a_judge_who_rates_everything_seven_goes_through_the_chain(demo, tmp_path, judge):
    said = chain(flattened(demo[2], judge), tmp_path, RATED if judge == SEAT else SOME)
    board, factual = cells_of(tmp_path, "06_contest"), cells_of(tmp_path, "03_factual")
    assert (
        factual.at[("table-4", judge, "EF"), "value"] == 0
        and board.at[("table-2", judge, "EF"), "value"] == 0
    )
    lost = board.loc["table-2"].xs("T", level="column")
    assert list(lost.index[lost["value"].isna()]) == [judge]
    assert judge in lost.at[judge, "note"] and "one rating throughout" in lost.at[judge, "note"]
    for name in ("07_external", "13_leaderboard"):
        assert f"without a total: {demo[0].players[judge]['label']}" in said[name]
    assert np.isfinite(cells_of(tmp_path, "07_external").at[("text-4.5", "T", "pearson"), "value"])


def test_two_identical_judges_go_through_the_chain(demo, tmp_path):
    pair = ["gpt-4.1-mini", "gpt-4o"]
    ratings = demo[2][~(demo[2]["evaluator"].isin(pair) & demo[2]["target"].isin(pair))]
    one = ratings[ratings["evaluator"] == pair[0]]
    ratings = pd.concat([ratings[ratings["evaluator"] != pair[1]], one.assign(evaluator=pair[1])])
    chain(ratings, tmp_path, SOME)
    found = cells_of(tmp_path, "03_factual").loc["table-4"].xs("loading", level="column")["value"]
    assert found[pair[0]] == pytest.approx(found[pair[1]], abs=1e-9) and found[pair[0]] > 0


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda t: t[t["target"] != "gpt-4o"], "portfolio of gpt-4o is missing in run 1"),
        (lambda t: t[(t["target"] != "gpt-4o") | (t["run"] == 1)], "portfolio of gpt-4o is missing in run 2"),
        (lambda t: t[t["evaluator"] != ANCHOR], f"evaluator {ANCHOR} rated no portfolio"),
        (lambda t: t[t["anchor"] != 7], "no rating has the reference pinned at 7"),
        (lambda t: t[t["anchor"] == 7], "every rating has the reference pinned at 7"),
        (lambda t: t[:0], "no rating has the reference pinned at 7"),
        (
            lambda t: t.assign(beauty=t["beauty"].where(t.index != 5, 11)),
            r"ratings.csv, line 7: beauty is 11",
        ),
        (
            lambda t: t.assign(evaluator=t["evaluator"].replace(FLAT, "claude-sonnet")),
            "did you mean 'claude-sonnet-4'",
        ),
        (lambda t: flattened(t, ANCHOR), f"the anchor {ANCHOR} has no factual loading"),
        (lambda t: flattened(t, ANCHOR, SCORES[5:]), f"the anchor {ANCHOR} keeps no order"),
    ],
)
def test_ratings_that_stop_every_notebook_with_the_same_sentence(demo, tmp_path, change, words):
    for name in RATED:
        with pytest.raises(MetanymError, match=words):
            chain(change(demo[2]), tmp_path, [name])
    assert not (tmp_path / "cells").exists()


def test_a_game_in_which_nobody_tells_contexts_apart(demo, tmp_path):
    ratings = demo[2].copy()
    ratings[CONTEXTS] = 7
    with pytest.raises(SpectralError, match="every judge gives every item the same rating"):
        chain(ratings, tmp_path, ["03_factual"])


@pytest.mark.parametrize(
    "count, words",
    [(1, "1 judge.*takes at least 3"), (2, "2 judge.*takes at least 3"), (3, "a council of 2")],
)
def test_fewer_than_three_judges(demo, tmp_path, count, words):
    players = dict(list(demo[0].players.items())[:count])
    part = demo[2][demo[2]["evaluator"].isin(players) & demo[2]["target"].isin(players)]
    seats = list(players)[:2]
    with pytest.raises(MetanymError, match=words):
        chain(part, tmp_path, ["06_contest"], players=players, council=seats, ballast=seats[-1:])


def test_four_judges_are_a_game(demo, tmp_path):
    players = dict(list(demo[0].players.items())[:4])
    part = demo[2][demo[2]["evaluator"].isin(players) & demo[2]["target"].isin(players)]
    chain(part, tmp_path, RATED[:4], players=players, council=list(players)[:3], ballast=list(players)[-1:])
    assert cells_of(tmp_path, "06_contest").loc["table-2"].xs("T", level="column")["value"].notna().all()


# replies, on the path of 01_play and 02_judge -----------------------------------------------------------


def answering(monkeypatch, change) -> None:
    """Let the simulated players answer `change(request, text asked, answer as ever)`."""
    answer = simulated.respond
    monkeypatch.setattr(
        simulated, "respond", lambda request: change(request, request["messages"][-1]["content"], answer)
    )


def judged(demo, folder, anchors=(7,)) -> str:
    """What 02_judge prints when it asks the simulated players about the first run."""
    path = write_portfolios(folder / "portfolios.jsonl", demo[1])
    return run_notebook(
        "02_judge", folder, source="simulated", portfolios=str(path), runs=[1], anchors=list(anchors)
    )


def slug(demo, name) -> str:
    return demo[0].players[name]["slug"]


def with_rating(rating) -> Reply:
    """An evaluation with one number throughout."""
    entry = {"name": "A", "factual_per_pc": [rating] * 5, **dict.fromkeys(JSON_KEYS.values(), rating)}
    block = {"scores": {"Target": {"archetypal_contexts": [entry] * 5, "structural_diversity": rating}}}
    return Reply(f"```json\n{json.dumps(block)}\n```")


def test_replies_that_say_seven_throughout(demo, tmp_path, monkeypatch):
    answering(
        monkeypatch,
        lambda request, text, answer: (
            with_rating(7)
            if "pre-scored at" in text and same_model(request["model"], slug(demo, FLAT))
            else answer(request)
        ),
    )
    assert f"{FLAT} rates every context 7" in judged(demo, tmp_path, anchors=[6, 7])
    chain(read_table(tmp_path / "metanym" / "ratings.csv"), tmp_path, ["03_factual"])
    assert cells_of(tmp_path, "03_factual").at[("table-4", FLAT, "EF"), "value"] == 0


def test_two_judges_with_one_voice(demo, tmp_path, monkeypatch):
    one, other = "gpt-4.1-mini", "gpt-4o"

    def change(request, text, answer):
        copied = "pre-scored at" in text and same_model(request["model"], slug(demo, other))
        return answer({**request, "model": slug(demo, one)} if copied else request)

    answering(monkeypatch, change)
    assert f"{one} and {other} agree on all" in judged(demo, tmp_path)


def test_a_rating_of_eleven_is_asked_again_and_then_void(demo, tmp_path, monkeypatch):
    asked = []

    def change(request, text, answer):
        if "pre-scored at" in text and same_model(request["model"], slug(demo, FLAT)) and target in text:
            asked.append(text)
            return with_rating(11)
        return answer(request)

    target = demo[1].set_index(["run", "model"]).at[(1, "gpt-4o"), "text"].strip()
    answering(monkeypatch, change)
    said = judged(demo, tmp_path)
    assert f"run 1: {FLAT} returned no usable ratings of gpt-4o at anchor 7" in said and "1 void" in said
    assert len(asked) == 1 + demo[0].retries_on_invalid
    target = "# Score this submission"  # now whatever it is asked about
    with pytest.raises(MetanymError, match=f"evaluator {FLAT} rated no portfolio in run 1"):
        judged(demo, tmp_path)


def test_a_batch_that_one_judge_does_not_answer(demo, tmp_path, monkeypatch):
    answering(
        monkeypatch,
        lambda request, text, answer: (
            Reply("I would rather not.")
            if text.startswith("# Score these.") and same_model(request["model"], slug(demo, ANCHOR))
            else answer(request)
        ),
    )
    assert "highest:" in judged(demo, tmp_path)
    raw = cells_of(tmp_path, "02_judge").loc["text-4.1"].xs("unanchored", level="column")["value"]
    assert raw.drop("separation").notna().all() and len(raw) == len(demo[0].players) + 1


@pytest.mark.parametrize(
    "silent, words",
    [
        ("gpt-4o", "portfolio of gpt-4o is missing in run 1"),
        (ANCHOR, f"the anchor model {ANCHOR} has no portfolio in run 1: nothing can be pinned"),
    ],
)
def test_a_player_who_writes_nothing(demo, tmp_path, monkeypatch, silent, words):
    answering(
        monkeypatch,
        lambda request, text, answer: (
            Reply("I would rather not.")
            if text.startswith("# Make more") and same_model(request["model"], slug(demo, silent))
            else answer(request)
        ),
    )
    assert "1 void" in run_notebook("01_play", tmp_path, source="simulated", runs=[1])
    with pytest.raises(MetanymError, match=words):
        run_notebook(
            "02_judge",
            tmp_path,
            source="simulated",
            runs=[1],
            anchors=[7],
            portfolios=str(tmp_path / "metanym" / "portfolios.jsonl"),
        )


def test_the_released_table_is_refused_when_it_is_not_the_pinned_one(demo, tmp_path, mirror):
    kept = (mirror / "metanym" / "ratings_run1.csv").read_text(encoding="utf-8")
    (tmp_path / "metanym").mkdir()
    (tmp_path / "metanym" / "ratings_run1.csv").write_text(kept.replace(",7,", ",11,", 1), encoding="utf-8")
    with pytest.raises(ArchiveError, match="ratings_run1.csv"):
        run_notebook(
            "02_judge",
            tmp_path / "out",
            source="archive",
            mirror=str(tmp_path),
            portfolios=str(write_portfolios(tmp_path / "portfolios.jsonl", demo[1])),
        )
