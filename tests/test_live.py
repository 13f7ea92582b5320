import pytest

from lib import live, params, sources
from lib.live import check_live, estimate_study, main
from lib.models import BudgetError, EndpointError
from lib.params import ParamsError
from lib.sources import budget_for, check_source, live_endpoint

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
    assert estimate_study("alienbench", smoke=True, out=tmp_path).loc[("total", ""), "cost"] < \
        estimate_study("alienbench", out=tmp_path).loc[("total", ""), "cost"] / 5


def test_no_live_run_without_a_key(profile, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY")
    with pytest.raises(EndpointError, match="the environment variable OPENROUTER_API_KEY is not set"):
        check_live("alienbench", out=tmp_path)


def test_no_live_run_above_the_ceiling(profile, tmp_path):
    with pytest.raises(BudgetError, match=r"not started: the estimate is \$.* above the ceiling of \$25"):
        check_live("alienbench", out=tmp_path)
    check_live("alienbench", smoke=True, out=tmp_path)


def test_the_command_prints_stages_and_ceiling(profile, capsys):
    assert main(["--study", "alienbench"]) == 0
    shown = capsys.readouterr().out
    assert "generating" in shown and "judging" in shown and "Ceiling" in shown and KEY not in shown


def test_unknown_keys_are_named(profile):
    profile.write_text(profile.read_text().replace("key_env:", "key_enw:"))
    with pytest.raises(ParamsError, match="endpoint: .*key_enw.*known keys: base_url"):
        live_endpoint("live")
    profile.write_text(profile.read_text().replace("dollars: 25.0", "dolars: 25.0"))
    with pytest.raises(ParamsError, match="budget: .*dolars"):
        budget_for("live", ["m"], "build/live")
    with pytest.raises(ParamsError, match="lacks the section `endpoint"):
        live_endpoint("demo")
    with pytest.raises(ParamsError, match="source 'archives' is not one of"):
        check_source("archives")


def test_the_url_may_come_from_the_environment(profile, monkeypatch):
    monkeypatch.setenv(sources.URL_VARIABLE, "http://127.0.0.1:9/v1")
    assert live_endpoint("live").base_url == "http://127.0.0.1:9/v1"


def test_models_without_a_price_of_their_own_get_the_default(profile):
    budget = budget_for("live", ["a/b"], "build/live")
    assert budget.prices["a/b"] == {"input": 5.0, "output": 25.0} and budget.dollars == 25.0
    assert budget_for("demo", ["a/b"], "build/demo") is None


def test_a_study_without_live_stages_says_so(profile):
    with pytest.raises(ParamsError, match="study nothing has no live stages"):
        live._planner("nothing")
