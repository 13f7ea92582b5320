"""The survey without a browser: what it stores, what it refuses, and that it is blind, anonymous and
resumable.
"""

import json
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from compendium.frame.paths import ROOT
from compendium.studies.stories.data import (
    DIMENSIONS,
    LEVELS,
    SHEET,
    TEXTS,
    StoriesError,
    ratings_frame,
    write_texts,
)
from compendium.studies.stories.survey import SurveyError
from compendium.studies.stories.survey.app import create_app, form, open_store
from compendium.studies.stories.survey.store import Store

TEXT_ROWS = [
    (
        number,
        language,
        "human" if number < 3 else "GPT-5.2",
        f"Prompt {number}",
        f"Text {number} in {language}.",
    )
    for number in range(1, 5)
    for language in ("en", "it")
]
ANSWERS = {
    "consent": True,
    "language": "en",
    "native_language": "Italian",
    "gender": "Female",
    "age": 30,
    "education": "PhD",
    "experience": "Often",
}
SCORES = dict(zip(DIMENSIONS, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 3], strict=True))


@pytest.fixture
def texts():
    return pd.DataFrame(TEXT_ROWS, columns=TEXTS)


@pytest.fixture
def store(tmp_path, texts):
    store = open_store(tmp_path / "survey.sqlite")
    assert store.add_texts(texts) == 4
    return store


@pytest.fixture
def client(store):
    with TestClient(create_app(store), base_url="http://localhost") as client:
        client.headers["X-Form-Token"] = client.get("/api/form").json()["token"]
        yield client


def begin(client, **changes):
    answer = client.post("/api/sessions", json={**ANSWERS, **changes})
    assert answer.status_code == 200, answer.json()
    return answer.json()["session"]


def test_a_whole_survey(client, store, texts):
    token, seen = begin(client), []
    for number in range(4):
        story = client.get(f"/api/sessions/{token}/story").json()
        assert story["rated"] == number and story["text"].endswith("in en.")
        seen.append(story["text"])
        kept = client.post(
            f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": SCORES}
        )
        assert kept.json() == {"rated": number + 1}
    assert sorted(seen) == [f"Text {number} in en." for number in range(1, 5)]
    assert client.get(f"/api/sessions/{token}/story").json() == {"story": None, "rated": 4}
    sheet = store.sheet()
    assert list(sheet.columns) == SHEET and len(sheet) == 4
    assert sorted(sheet["text_id"]) == [1, 3, 5, 7] and set(sheet["age"]) == {30}
    ratings = ratings_frame(sheet, texts)
    assert (ratings[list(DIMENSIONS)].to_numpy() == list(SCORES.values())).all()
    assert set(ratings["language"]) == {"en"}


def test_order_is_random_and_differs_between_raters(client):
    first = {client.get(f"/api/sessions/{begin(client)}/story").json()["text"] for _ in range(40)}
    assert len(first) > 1


def test_blind_and_anonymous(client, store):
    token = begin(client)
    story = client.get(f"/api/sessions/{token}/story").json()
    assert set(story) == {"handle", "prompt", "text", "language", "rated"}
    assert "human" not in json.dumps(story) and "GPT" not in json.dumps(story)
    with sqlite3.connect(store.path) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(sessions)")]
        session = database.execute("SELECT session FROM sessions").fetchone()[0]
    assert not {"ip", "address", "agent", "name", "email"} & set(columns)
    assert session != token  # the sheet that is published does not let anyone go on with the session


def test_resumes_with_the_same_story_and_switches_language(client):
    token = begin(client)
    one, two = (client.get(f"/api/sessions/{token}/story").json() for _ in range(2))
    assert one == two
    italian = client.get(f"/api/sessions/{token}/story", params={"language": "it"}).json()
    assert italian["prompt"] == one["prompt"] and italian["text"].endswith("in it.")
    assert client.get(f"/api/sessions/{token}").json() == {"language": "it", "rated": 0, "finished": False}


def test_the_same_rating_sent_twice_counts_once(client, store):
    token = begin(client)
    story = client.get(f"/api/sessions/{token}/story").json()
    for _ in range(3):
        answer = client.post(
            f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": SCORES}
        )
        assert answer.json() == {"rated": 1}
    assert len(store.sheet()) == 1


def test_many_at_once_lose_nothing(client, store):
    tokens = [begin(client) for _ in range(12)]
    problems = []

    def rate(token):
        for _ in range(4):
            story = client.get(f"/api/sessions/{token}/story").json()
            answer = client.post(
                f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": SCORES}
            )
            if answer.status_code != 200:
                problems.append(answer.json())

    threads = [threading.Thread(target=rate, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(store.sheet()) == 48


@pytest.mark.parametrize(
    "changes, field, says",
    [
        ({"consent": False}, "consent", "agree"),
        ({"language": "fr"}, "language", "en, it"),
        ({"language": None}, "language", "en, it"),
        ({"age": 17}, "age", "18"),
        ({"age": "old"}, "age", "whole number"),
        ({"age": "3²"}, "age", "whole number"),
        ({"gender": ""}, "gender", "gender"),
        ({"education": None}, "education", "education"),
        ({"experience": "x" * 61}, "experience", "60"),
    ],
)
def test_answers_that_cannot_be_taken(client, changes, field, says):
    answer = client.post("/api/sessions", json={**ANSWERS, **changes})
    assert answer.status_code == 400 and answer.json()["field"] == field and says in answer.json()["error"]


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"value": 6}, "from 1 to 5, not 6"),
        ({"value": 0}, "not 0"),
        ({"value": None}, "value should be"),
        ({"value": 2.5}, "2.5"),
        ({"value": True}, "True"),
        ({"value": "3"}, "'3'"),
    ],
)
def test_ratings_out_of_range(client, store, changes, says):
    token = begin(client)
    story = client.get(f"/api/sessions/{token}/story").json()
    answer = client.post(
        f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": {**SCORES, **changes}}
    )
    assert answer.status_code == 400 and answer.json()["field"] == "value" and says in answer.json()["error"]
    assert store.sheet().empty


def test_requests_that_make_no_sense(client):
    token = begin(client)
    story = client.get(f"/api/sessions/{token}/story").json()
    assert client.get("/api/sessions/nobody/story").status_code == 404
    for scores in ([3] * 11, "3", 3, None):
        answer = client.post(
            f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": scores}
        )
        assert answer.status_code == 400 and answer.json()["field"] == "scores"
    missing = client.post(f"/api/sessions/{token}/ratings", json={"story": "nothing", "scores": SCORES})
    assert missing.status_code == 404
    other = begin(client)
    client.get(f"/api/sessions/{other}/story")
    for _ in range(20):  # a story that this session was not given
        mine = client.get(f"/api/sessions/{other}/story").json()
        if mine["handle"] != story["handle"]:
            answer = client.post(
                f"/api/sessions/{other}/ratings", json={"story": story["handle"], "scores": SCORES}
            )
            assert answer.status_code == 409 and "reload" in answer.json()["error"]
            break
        other = begin(client)
    assert client.post("/api/sessions", content=b"not json").status_code == 400
    assert client.post("/api/sessions", content=b"{" + b" " * 30_000).status_code == 413


def test_finish_keeps_what_was_rated(client, store):
    token = begin(client)
    story = client.get(f"/api/sessions/{token}/story").json()
    client.post(f"/api/sessions/{token}/ratings", json={"story": story["handle"], "scores": SCORES})
    assert client.post(f"/api/sessions/{token}/finish", json={}).json() == {"finished": True}
    assert client.get(f"/api/sessions/{token}").json()["finished"] and len(store.sheet()) == 1


def test_texts_that_cannot_be_rated(store, texts):
    for changes, says in [
        ({"text": " "}, "empty"),
        ({"language": "fr"}, "'fr'"),
        ({"language": None}, "language is missing"),
    ]:
        row = {**dict(zip(TEXTS, TEXT_ROWS[0], strict=True)), "story": 9, **changes}
        with pytest.raises(StoriesError, match=says):
            store.add_texts(pd.DataFrame([row]))
    with pytest.raises(SurveyError, match="another text"):
        store.add_texts(texts.assign(text=texts["text"] + " changed"))
    assert store.add_texts(texts) == 4


def test_form_has_both_languages_and_the_papers_dimensions():
    content = form()
    for language in ("en", "it"):
        assert [quality["id"] for quality in content["qualities"][language]] == list(DIMENSIONS)
        assert all(quality["definition"] for quality in content["qualities"][language])
        assert len(content["wording"][language]["scale"]) == 5
        assert content["options"][language].keys() == content["options"]["en"].keys()
    assert content["wording"]["en"].keys() == content["wording"]["it"].keys()
    for name, levels in LEVELS.items():
        if name != "age":
            assert set(levels) <= set(content["options"]["en"][name])


def test_page_and_headers(client):
    page = client.get("/")
    assert page.status_code == 200 and "script" in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/static/form.js").status_code == 200


def test_repeats_to_the_letter(tmp_path, texts):
    sheets = []
    for name in "ab":
        rng, numbers = np.random.default_rng(7), iter(range(10_000))
        store = Store(
            tmp_path / f"{name}.sqlite",
            fresh=lambda: f"{next(numbers):06d}",
            now=lambda: "2026-01-25 18:50:38",
            pick=lambda n: int(rng.integers(n)),
        )
        store.add_texts(texts)
        token = store.begin(ANSWERS)
        while (story := store.story(token)) is not None:
            store.rate(token, story["handle"], SCORES)
        sheets.append(store.sheet())
    assert sheets[0].equals(sheets[1]) and len(sheets[0]) == 4


def test_balanced_picks_reach_every_story_first(tmp_path, texts):
    store = open_store(tmp_path / "survey.sqlite", balanced=True)
    store.add_texts(texts)
    for _ in range(8):
        token = store.begin(ANSWERS)
        store.rate(token, store.story(token)["handle"], SCORES)
    assert store.sheet()["text_id"].value_counts().tolist() == [2, 2, 2, 2]


def test_command_line(tmp_path, texts, store):
    token = store.begin(ANSWERS)
    store.rate(token, store.story(token)["handle"], SCORES)
    command = [sys.executable, "-m", "compendium.studies.stories.survey", "export", "--db", str(store.path)]
    for ending in ("xlsx", "csv"):
        done = subprocess.run(
            [*command, "--out", str(tmp_path / f"sheet.{ending}")], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0 and done.stdout.startswith("1 ratings")
    read = pd.read_excel(tmp_path / "sheet.xlsx")
    assert list(read.columns) == SHEET and ratings_frame(read, texts)["creativity"].tolist() == [3]
    wrong = subprocess.run(
        [*command, "--out", str(tmp_path / "sheet.pdf")], cwd=ROOT, capture_output=True, text=True
    )
    assert wrong.returncode == 1 and "xlsx or .csv" in wrong.stderr
    path = write_texts(tmp_path / "texts.jsonl", texts)
    path.write_text(path.read_text() + "{broken\n")
    bad = subprocess.run(
        [
            sys.executable,
            "-m",
            "compendium.studies.stories.survey",
            "serve",
            "--db",
            str(tmp_path / "x.sqlite"),
            "--texts",
            str(path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert bad.returncode == 1 and "line 9" in bad.stderr
