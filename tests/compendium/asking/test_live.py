from types import SimpleNamespace

import pandas as pd
import pytest

from compendium.asking import live, sources
from compendium.asking.errors import BudgetError, EndpointError
from compendium.asking.live import check_live, estimate_study, live_studies, main
from compendium.asking.sources import budget_for, live_directory
from compendium.frame import params
from compendium.frame.params import ParamsError, check_source
from compendium.frame.paths import STUDIES
from compendium.studies.alienbench import stages as alienbench_stages
from compendium.studies.create import stages as create_stages
from compendium.studies.create.tables import to_csv_frame
from compendium.studies.metanym import stages as metanym_stages

KEY = "sk-canary-0123456789"


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """The project's own params, with a live profile that a test may change."""
    for path in params.PARAMS.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    for module in (params, sources):
        monkeypatch.setattr(module, "PARAMS", tmp_path)
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.delenv(sources.URL_VARIABLE, raising=False)
    monkeypatch.setenv(sources.ACCOUNTS, str(tmp_path / "accounts"))
    monkeypatch.setattr(live, "run_folder", lambda *_: tmp_path / "run")  # no ledgers of another run
    return tmp_path / "live.yaml"


def test_the_estimate_counts_every_call(profile, tmp_path):
    frame = estimate_study("alienbench", out=tmp_path)
    p = params.study_params("alienbench", "live")
    descriptions = len(p["subjects"]) * (6 * p["n_samples"] + 5 * p["n_samples_paraphrase"])
    assert frame.loc["generating", "calls"].sum() == descriptions
    assert frame.loc["judging", "calls"].sum() == descriptions * len(p["judges"])
    total = frame.loc[("total", "")]
    assert 0 < total["cost"] < total["most"]


def test_a_smaller_study_costs_less(profile, tmp_path):
    assert (
        estimate_study("alienbench", smoke=True, out=tmp_path).loc[("total", ""), "cost"]
        < estimate_study("alienbench", out=tmp_path).loc[("total", ""), "cost"] / 5
    )


@pytest.mark.parametrize("study", STUDIES[:5])
def test_a_small_live_run_of_every_study_is_small(profile, tmp_path, monkeypatch, study):
    """Under 150 calls and under a dollar at the prices that are shipped."""
    monkeypatch.setenv("COMPENDIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COMPENDIUM_REMOTE", "http://127.0.0.1:9")  # no archive is needed
    total = estimate_study(study, smoke=True, out=tmp_path).loc[("total", "")]
    assert 0 < total["calls"] < 150
    assert 0 < total["cost"] < 1


def test_tokens_are_expected_by_model_then_by_stage(profile, tmp_path):
    def tokens(stage, model):
        row = estimate_study("alienbench", smoke=True, out=tmp_path).loc[(stage, model)]
        return row["completion_tokens"] / row["calls"]

    assert tokens("judging", "openai/gpt-5.4") == 300
    text = profile.read_text()
    profile.write_text(text.replace("default: 1000", "default: 1000\n  openai/gpt-5.4: 77"))
    assert tokens("judging", "openai/gpt-5.4") == 77
    assert tokens("judging", "google/gemini-3.1-pro-preview") == 300


def test_the_estimate_refuses_what_the_run_would(profile, capsys, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY")
    assert main(["--study", "alienbench", "--smoke", "1"]) == 2
    shown = capsys.readouterr().out
    assert "would be refused: the environment variable OPENROUTER_API_KEY is not set" in shown
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setattr(live, "checked_books", lambda *_: params.study_params("nonsense"))
    assert main(["--study", "alienbench", "--smoke", "1"]) == 2
    assert "would be refused: study 'nonsense' is not one of" in capsys.readouterr().out


def test_no_live_run_without_a_key(profile, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY")
    with pytest.raises(EndpointError, match="the environment variable OPENROUTER_API_KEY is not set"):
        check_live("alienbench", out=tmp_path)


def test_no_live_run_above_the_ceiling(profile, tmp_path):
    with pytest.raises(BudgetError, match=r"not started: the estimate is \$.* above the ceiling of \$25"):
        check_live("alienbench", out=tmp_path)
    check_live("alienbench", smoke=True, out=tmp_path)


def test_the_command_prints_stages_and_ceiling(profile, capsys):
    assert main(["--study", "alienbench", "--smoke", "1"]) == 0
    assert main(["--study", "alienbench"]) == 2, "as `make tables` would refuse it"
    shown = capsys.readouterr().out
    assert (
        "generating" in shown
        and "judging" in shown
        and "Ceiling" in shown
        and "would be refused" in shown
        and KEY not in shown
    )


def test_an_estimate_follows_the_params_and_not_what_an_earlier_run_left(profile, tmp_path):
    """Of every study: more is asked for than was written, or something else, and the estimate counts all of it."""
    p = SimpleNamespace(**params.study_params("alienbench", "live", smoke=True))
    counts = {stage: len(asked) for stage, asked in alienbench_stages.planned(p, tmp_path).items()}
    request = alienbench_stages.planned(p, tmp_path)["generating"][0]
    alienbench_stages.write_texts(
        tmp_path / "alienbench" / "texts.jsonl",
        {request.key[:32]: "A written creature.", "of another run": "Gone."},
    )
    judging = alienbench_stages.planned(p, tmp_path)["judging"]
    models = len(p.subjects)
    descriptions = models * (len(p.conditions) * p.n_samples + (len(p.wordings) - 1) * p.n_samples_paraphrase)
    assert counts == {"generating": descriptions, "judging": descriptions * len(p.judges)}
    assert len(judging) == counts["judging"]
    assert sum("A written creature." in asked.messages[1]["content"] for asked in judging) == len(p.judges)
    p.n_samples += 1
    more = models * len(p.conditions) * len(p.judges)
    assert len(alienbench_stages.planned(p, tmp_path)["judging"]) == counts["judging"] + more

    players = SimpleNamespace(**params.study_params("metanym", "live"))
    whole = {stage: len(asked) for stage, asked in metanym_stages.planned(players, tmp_path).items()}
    metanym_stages.write_portfolios(
        tmp_path / "metanym/portfolios.jsonl",
        pd.DataFrame(
            [(1, players.anchor_model, "Written.", ""), (1, "gone", "Of another roster.", "")],
            columns=metanym_stages.PORTFOLIO,
        ),
    )
    again = metanym_stages.planned(players, tmp_path)
    assert {stage: len(asked) for stage, asked in again.items()} == whole
    assert all("Written." in asked.messages[0]["content"] for asked in again["judging"])


def test_create_judges_the_paths_that_are_written(profile, tmp_path):
    p = SimpleNamespace(**params.study_params("create", "live"))
    whole = create_stages.planned(p, tmp_path)
    first = whole["generating"][0].tag
    path = (("Ada", "knows", "Bo"), ("Bo", "knows", "Cy"))
    rows = [
        (create_stages.source_name(first["source"], first["variation"]), first["query"], path),
        ("gone", first["query"], path[::-1]),
    ]
    frame = pd.DataFrame(rows, columns=["source", "query", "triples"]).reindex(
        columns=create_stages.PATH_COLUMNS
    )
    (tmp_path / "create").mkdir()
    to_csv_frame(frame.assign(valid=True)).to_csv(tmp_path / "create/paths.csv", index=False)
    again = create_stages.planned(p, tmp_path)
    assert len(whole["judging"]) - len(again["judging"]) == 2 * (create_stages.PATHS_EXPECTED - 1)
    asked = [request.messages[0]["content"] for request in again["judging"]]
    assert sum("Cy" in text for text in asked) == 2
    assert {stage: len(asked) for stage, asked in again.items() if stage != "judging"} == {
        stage: len(asked) for stage, asked in whole.items() if stage != "judging"
    }


def test_what_world_models_would_cost(profile, tmp_path):
    frame, p = estimate_study("worldmodels", out=tmp_path), params.study_params("worldmodels", "live")
    games = len(p["subjects"]) * p["runs"] * (len(p["games"]) + len(p["situations"]))
    flagged = frame.loc["flagging", "calls"].sum()
    assert frame.loc["generating", "calls"].sum() == games + flagged > games


def test_every_study_of_the_profile_can_be_estimated():
    assert set(live_studies("all")) == {"alienbench", "stories", "metanym", "worldmodels", "create"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("key_env:", "key_enw:", "endpoint: .*key_enw.*known keys: base_url"),
        ("dollars: 25.0", "dolars: 25.0", "budget: unknown key `dolars`; known keys: dollars"),
        ("dollars: 25.0", "calls: 10", "budget: `dollars` is missing: .*the word none for no ceiling"),
        ("dollars: 25.0", "dollars:", "budget: `dollars` is missing"),
        ("dollars: 25.0", "dollars: -1", "dollars: should be a number of at least 0 or None, not -1"),
        ("dollars: 25.0", "dollars: .inf", "dollars: should be a number"),
        ("dollars: 25.0", "dollars: many", "dollars: should be a number"),
        ("dollars: 25.0", "{dollars: 25.0, default_max_tokens: -5}", "default_max_tokens: should be"),
        ("dollars: 25.0", "{dollars: 25.0, per_model: {a/b: 5}}", "per_model, a/b: should be"),
        ("input: 5.0", "input: -5.0", "prices, .*, input: should be a number of at least 0, not -5.0"),
        ("default: {input: 5.0, output: 25.0}", "default: 5", "prices, .*: should be {input: …, output: …}"),
        (", output: 25.0}", ", outputs: 25.0}", "prices, .*: should be {input: …, output: …}"),
        (
            "default: 1000",
            "default: -10",
            ".*`expected_tokens.default` should be a number of more than 0, not -10",
        ),
        ("default: 1000", "default: some", ".*`expected_tokens.default` should be a number"),
        ("timeout: 180", "timeout: .inf", "endpoint: timeout should be a number of seconds"),
    ],
)
def test_a_live_profile_that_cannot_be(profile, tmp_path, old, new, message):
    text = profile.read_text()
    if new.startswith("{"):
        old, new = text[text.index("budget:") : text.index("# Dollars per million")], f"budget: {new}\n\n"
    assert old in text
    profile.write_text(text.replace(old, new))
    with pytest.raises(ParamsError, match=f"live.yaml.*: {message}"):
        check_live("alienbench", out=tmp_path)


def test_no_ceiling_where_the_word_none_says_so(profile, tmp_path):
    profile.write_text(profile.read_text().replace("dollars: 25.0", "dollars: none"))
    assert budget_for("live", ["a/b"]).dollars is None
    check_live("alienbench", out=tmp_path)


@pytest.mark.parametrize("setting", [f"key_env: {KEY}", f"base_url: {KEY}", "key_env: sk_or_v1_99"])
def test_a_pasted_key_is_refused_and_never_shown(profile, tmp_path, capsys, setting):
    lines = [
        f"  {setting}" if line.strip().startswith(setting.split(":")[0]) else line
        for line in profile.read_text().splitlines()
    ]
    profile.write_text("\n".join(lines))
    with pytest.raises(
        ParamsError, match="should be (the NAME of an environment variable|like https:)"
    ) as caught:
        check_live("alienbench", out=tmp_path)
    assert setting.split(": ")[1] not in str(caught.value)


def test_a_source_that_is_none_and_a_profile_without_an_endpoint():
    with pytest.raises(ParamsError, match="lacks the section `endpoint"):
        live_directory("demo")
    with pytest.raises(ParamsError, match="source 'archives' is not one of"):
        check_source("archives")


def test_the_url_may_come_from_the_environment(profile, monkeypatch):
    monkeypatch.setenv(sources.URL_VARIABLE, "http://127.0.0.1:9/v1")
    assert live_directory("live").endpoints[""].base_url == "http://127.0.0.1:9/v1"


def test_models_without_a_price_of_their_own_get_the_default(profile):
    budget = budget_for("live", ["a/b"])
    assert budget.prices["a/b"] == {"input": 5.0, "output": 25.0} and budget.dollars == 25.0
    assert budget_for("demo", ["a/b"]) is None


def test_the_estimate_of_a_second_turn_counts_the_first(tmp_path):
    p = SimpleNamespace(**params.study_params("create", "live"))
    second = create_stages.planned(p, tmp_path)["iterating"]
    assert second
    assert all(len(request.messages[1]["content"]) > 100 for request in second)


def test_a_study_without_live_stages_says_so(profile, tmp_path, monkeypatch):
    monkeypatch.delattr(alienbench_stages, "planned")
    assert "alienbench" not in live_studies("all")
    with pytest.raises(ParamsError, match="study alienbench has no live stages"):
        estimate_study("alienbench", out=tmp_path)


def test_one_study_that_cannot_be_estimated_does_not_hide_the_others(profile, capsys, monkeypatch):
    def broken(p, out):
        raise ParamsError("no such file")

    monkeypatch.setattr(alienbench_stages, "planned", broken)
    monkeypatch.setattr(live, "live_studies", lambda _: ["alienbench", "metanym"])
    assert main(["--study", "all", "--smoke", "1"]) == 2
    shown = capsys.readouterr()
    assert "error: alienbench: no such file" in shown.err
    assert "metanym: what a live run would still ask" in shown.out
