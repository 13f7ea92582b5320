import dataclasses

import pytest

from compendium.asking.errors import InvalidReply, LedgerError
from compendium.asking.ledger import Ledger
from compendium.asking.live import check_live
from compendium.asking.request import Request
from compendium.asking.simulated.reply import Reply
from compendium.asking.study import ask_all, asking
from compendium.frame.params import ParamsError
from tests.compendium.asking.loopback import Loopback
from tests.in_process import in_process

MODEL = "openai/gpt-6-luna"


def requests(count):
    return [
        Request(MODEL, [{"role": "user", "content": "Imagine a creature."}], seed=i, sample=i)
        for i in range(count)
    ]


def test_a_stage_keeps_its_replies_in_the_study_s_ledger_and_gives_what_the_simulator_gives(tmp_path):
    from compendium.studies.alienbench.simulated import respond

    replies, report = ask_all(
        "alienbench", requests(3), "writing", source="simulated", profile="demo", out=tmp_path
    )
    assert [reply.text for reply in replies] == [
        reply.text for reply in in_process(respond, requests(3)).replies
    ]
    assert report.total("valid") == 3
    with Ledger(tmp_path / "ledgers" / "alienbench.sqlite", readonly=True) as ledger:
        assert len(ledger) == 3


def test_a_ledger_of_another_name(tmp_path):
    with asking(
        "alienbench", {MODEL}, source="simulated", profile="demo", out=tmp_path, ledger="aside"
    ) as ask:
        assert ask(requests(1), "writing").replies[0].valid
    assert (tmp_path / "ledgers" / "aside.sqlite").is_file()


def test_an_unknown_source_is_named(tmp_path):
    with pytest.raises(ParamsError, match="source 'simulation' is not one of"):
        ask_all("alienbench", requests(1), "writing", source="simulation", profile="demo", out=tmp_path)


def test_in_process_asks_again_and_then_gives_up():
    def parse(text):
        if text != "good":
            raise InvalidReply("bad", "not good")
        return text

    said = iter(["bad", "good", "bad", "bad"])
    first, second = in_process(
        lambda body: Reply(next(said)), requests(2), parse=parse, retries_on_invalid=1
    ).replies
    assert (first.parsed, first.attempts, first.void_reason) == ("good", 2, None)
    assert second.parsed is None and second.attempts == 2 and second.text == "" and second.void_reason


def test_a_certificate_s_run_asks_no_endpoint(tmp_path, monkeypatch):
    """What the ledger holds is answered without a key and without a call; what it lacks is an error."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-canary-0123456789")
    asked = [dataclasses.replace(request, max_tokens=100) for request in requests(3)]
    options = {"source": "endpoint", "profile": "live", "out": tmp_path}
    with Loopback() as server:
        monkeypatch.setenv("COMPENDIUM_BASE_URL", server.url)
        said = ask_all("alienbench", asked[:2], "writing", **options)[0]
        assert len(server.log) == 2
        monkeypatch.setenv("COMPENDIUM_LEDGERS_ONLY", "1")
        monkeypatch.delenv("OPENROUTER_API_KEY")
        check_live("alienbench", out=tmp_path)
        again, report = ask_all("alienbench", asked[:2], "writing", **options)
        assert [reply.text for reply in again] == [reply.text for reply in said]
        assert report.total("from_ledger") == 2
        with pytest.raises(LedgerError, match="has no valid reply"):
            ask_all("alienbench", asked, "writing", **options)
        with pytest.raises(LedgerError, match="there is no such ledger"):
            ask_all("create", asked[:1], "writing", **options)
        assert len(server.log) == 2, "nothing was asked"
