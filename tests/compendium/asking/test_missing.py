"""A stage that lacks replies stops and says why, in the server's words; what is missing is asked by the next run."""

import json

import pytest

from compendium.asking.errors import MissingReplies
from compendium.asking.request import Request
from compendium.asking.study import asking
from compendium.frame.files import read_jsonl
from compendium.frame.run import _take_up_missing
from tests.compendium.asking.loopback import Loopback, completion

REQUESTS = [
    Request(f"lab/model-{i % 2}", [{"role": "user", "content": f"number {i}"}], max_tokens=5, sample=i)
    for i in range(10)
]
LIMITED = (429, {}, {"error": {"message": "Rate limit reached for model-1 in organization x"}})


@pytest.fixture
def server(monkeypatch, tmp_path):
    """An endpoint of the profile live on this machine; `limited` models answer nothing but 429."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-nothing-but-a-test")
    limited = set()

    def answer(body, tries):
        return LIMITED if body["model"] in limited else completion("fine", body["model"])

    with Loopback(answer) as opened:
        monkeypatch.setenv("COMPENDIUM_BASE_URL", opened.url)
        opened.limited = limited
        yield opened


def ask(out, parse=None, count=10):
    with asking(
        "alienbench", ["lab/model-0", "lab/model-1"], source="endpoint", profile="live", out=out
    ) as each:
        return each(REQUESTS[:count], "judging", parse=parse, progress=False).report


def test_a_model_that_is_rate_limited_stops_the_stage_and_is_asked_by_the_next(server, tmp_path):
    server.limited.add("lab/model-1")
    with pytest.raises(MissingReplies) as raised:
        ask(tmp_path)
    said = str(raised.value)
    assert "judging: 5 of 10 requests got no reply: lab/model-1 5 (first: no reply in 6 tries" in said
    assert "Rate limit reached for model-1 in organization x" in said
    assert "lab/model-0" not in said
    server.limited.clear()
    server.log.clear()
    assert ask(tmp_path).total("valid") == 10
    assert [body["model"] for body in server.log] == ["lab/model-1"] * 5


def test_what_is_accepted_is_marked_and_taken_up_by_the_next_run(server, tmp_path, monkeypatch):
    server.limited.add("lab/model-1")
    monkeypatch.setenv("COMPENDIUM_ACCEPT_MISSING", "1")
    assert ask(tmp_path).total("valid") == 5
    (mark,) = (tmp_path / "missing").iterdir()
    (row,) = read_jsonl(mark)
    assert (row["study"], row["stage"]) == ("alienbench", "judging")
    assert "5 of 10 requests got no reply" in row["missing"]

    class Book:
        def __init__(self, study, name, *parameters):
            self.study, self.name, self.parameters = study, name, parameters

    books = [
        Book("alienbench", "02_judge", "source"),
        Book("alienbench", "03_scores"),
        Book("stories", "02", "source"),
    ]
    made = [tmp_path / "cells" / book.study / f"{book.name}.csv" for book in books]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _take_up_missing(books, tmp_path)
    assert [path.exists() for path in made] == [False, True, True]
    server.limited.clear()
    assert ask(tmp_path).total("valid") == 10
    assert list((tmp_path / "missing").iterdir()) == []


def test_all_void_stops_before_the_next_stage_and_shows_the_first_reply(server, tmp_path):
    with pytest.raises(MissingReplies) as raised:
        ask(tmp_path, parse=json.loads)
    said = str(raised.value)
    assert "judging: not one of 10 replies is what was asked for; the first, of lab/model-0, is void" in said
    assert said.count("'fine'") == 1


def test_a_few_void_replies_of_a_weak_model_stop_nothing(server, tmp_path):
    assert ask(tmp_path, parse=json.loads, count=4).total("void") == 4


def test_a_model_of_which_nothing_can_be_used_is_marked_with_its_first_reply(server, tmp_path):
    ask(tmp_path, parse=json.loads, count=4)
    rows = read_jsonl(next((tmp_path / "void").iterdir()))
    assert [row["model"] for row in rows] == ["lab/model-0", "lab/model-1"]
    assert rows[0]["why"].startswith(
        "lab/model-0 gave nothing usable in judging: 2 of 2 replies void, the first ("
    )
    assert rows[0]["why"].endswith(": 'fine'")
    ask(tmp_path, count=4)
    assert list((tmp_path / "void").iterdir()) == []
