"""The survey under attack, and under people: what is sent by others, what breaks a sheet, and kill -9."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openpyxl
import pandas as pd
import pytest
from starlette.testclient import TestClient

from compendium.frame.paths import ROOT
from compendium.studies.stories.data import TEXTS, write_texts
from compendium.studies.stories.survey.app import COOKIE, LARGEST_BODY, create_app, open_store
from tests.compendium.studies.stories.survey.test_survey import ANSWERS, SCORES, TEXT_ROWS, begin

PEOPLE, EACH = 1000, 1


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "survey.sqlite")
    store.add_texts(pd.DataFrame(TEXT_ROWS, columns=TEXTS))
    return store


@pytest.fixture
def client(store):
    # an error of the server's own would be raised here; a browser would see 500
    with TestClient(create_app(store), base_url="http://localhost", raise_server_exceptions=False) as client:
        client.headers["X-Form-Token"] = client.get("/api/form").json()["token"]
        yield client


# what a sheet must not hold -------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\x1b[31m", "\x7f", "\u202e", "\ud800", "\n"])
def test_control_characters_are_refused(client, letter):
    body = json.dumps({**ANSWERS, "native_language": f"Ital{letter}ian"})
    answer = client.post("/api/sessions", content=body)
    assert answer.status_code == 400 and answer.json()["field"] == "native_language"


@pytest.mark.parametrize("word", ["فارسی\u200cزبان", "Français", "日本語", "O'odham"])
def test_the_letters_of_every_language_are_taken(client, word):
    assert begin(client, native_language=word)


def test_what_an_older_survey_let_in_breaks_no_export(store, tmp_path):
    token = store.begin(
        {**ANSWERS, "native_language": "=1+1", "gender": "-2", "education": "+3", "experience": "@A1"}
    )
    store.rate(token, store.story(token)["handle"], SCORES)
    with store._open() as database:
        database.execute("UPDATE sessions SET education = ?", ("\x0bbell\x07",))
    sheet = openpyxl.load_workbook(store.export(tmp_path / "s.xlsx")).active
    head = [cell.value for cell in sheet[1]]
    row = dict(zip(head, sheet[2]))
    assert {cell.data_type for cell in sheet[2]} <= {"s", "n"}, "no cell is a formula"
    assert row["native_languge"].value == "=1+1" and row["native_languge"].quotePrefix
    assert row["education"].value == r"\x0bbell\x07" and row["age"].value == 30
    read = pd.read_csv(store.export(tmp_path / "s.csv"), dtype=str)
    assert read.loc[0, ["native_languge", "gender", "experience"]].tolist() == ["'=1+1", "'-2", "'@A1"]
    assert read.loc[0, "education"] == r"\x0bbell\x07"


# what is sent ---------------------------------------------------------------------------------------------


def test_a_body_is_measured_while_it_comes(client):
    """An endless body is left after the limit, not kept."""
    given = 0

    def endless():
        nonlocal given
        while given < 50 * LARGEST_BODY:
            given += 1000
            yield b" " * 1000

    assert client.post("/api/sessions", content=endless()).status_code == 413


def test_a_server_takes_no_more_than_the_limit(server):
    """Over a socket, without a length: the answer comes before the body has ended."""
    port, _ = server()
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        cookie = "a" * 32
        line.sendall(
            f"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nTransfer-Encoding: chunked\r\n"
            f"Cookie: {COOKIE}={cookie}\r\nX-Form-Token: {cookie}\r\n\r\n".encode()
        )
        line.sendall(b"7530\r\n" + b" " * 30_000 + b"\r\n")  # and no end
        line.settimeout(10)
        assert line.recv(100).startswith(b"HTTP/1.1 413")


ODD = [
    None,
    True,
    -1,
    1.5,
    10**4000,
    "9" * 5000,
    "",
    "\ud800",
    "\x00",
    [],
    [[]],
    {},
    {"a": []},
    ["en"],
    "é" * 70,
]


@pytest.mark.parametrize("name", [*ANSWERS, "story", "scores", "authenticity"])
def test_odd_values_are_400_and_never_500(client, name):
    token = begin(client)
    for value in ODD:
        if name in ANSWERS:
            answer = client.post("/api/sessions", content=json.dumps({**ANSWERS, name: value}))
        else:
            body = {"story": "x", "scores": dict(SCORES)}
            (body["scores"] if name in SCORES else body)[name] = value
            answer = client.post(f"/api/sessions/{token}/ratings", content=json.dumps(body))
        taken = name == "consent" and value is True
        assert answer.status_code in ((200,) if taken else (400, 404)), (name, value)
        assert len(answer.content) < 300


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 20_000,
        b'{"a":' * 3_000,
        b'{"age": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe",
        b'"\\ud800"',
        b"NaN",
        b"[]",
        b"",
        b"null",
    ],
)
def test_bodies_that_are_no_object_are_400(client, body):
    for path in ("/api/sessions", f"/api/sessions/{begin(client)}/ratings"):
        assert client.post(path, content=body).status_code == 400


@pytest.mark.parametrize(
    "path", ["/api/sessions/%00", "/api/sessions/%ed%a0%80/story", "/api/sessions/" + "x" * 5000]
)
def test_odd_addresses_are_404(client, path):
    assert client.get(path).status_code == 404
    token = begin(client)
    assert client.get(f"/api/sessions/{token}/story?language=%ed%a0%80").status_code == 400


def test_nothing_is_rated_after_the_end(client, store):
    token = begin(client)
    first = client.get(f"/api/sessions/{token}/story").json()
    path = f"/api/sessions/{token}/ratings"
    client.post(path, json={"story": first["handle"], "scores": SCORES})
    second = client.get(f"/api/sessions/{token}/story").json()
    client.post(f"/api/sessions/{token}/finish")
    late = client.post(path, json={"story": second["handle"], "scores": SCORES})
    assert late.status_code == 409 and "finished" in late.json()["error"]
    again = client.post(path, json={"story": first["handle"], "scores": SCORES})
    assert again.json() == {"rated": 1}, "a resend of what was kept before is no error"
    assert client.get(f"/api/sessions/{token}/story").json() == {"story": None, "rated": 1}
    assert len(store.sheet()) == 1


# who sends it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:9999", "http://localhost.evil.example", "http://[", ""],
)
def test_another_site_cannot_send(client, store, origin):
    answer = client.post("/api/sessions", json=ANSWERS, headers={"Origin": origin})
    assert answer.status_code == 403
    with store._open() as database:
        assert database.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert (
        client.post("/api/sessions", json=ANSWERS, headers={"Origin": "http://localhost"}).status_code == 200
    )


def test_another_host_s_name_is_not_answered(store):
    app = create_app(store, ("127.0.0.1", "localhost", "survey.example.org"))
    for name, status in (("evil.example", 400), ("localhost.evil.example", 400), ("survey.example.org", 200)):
        with TestClient(app, base_url=f"http://{name}") as client:
            assert client.get("/").status_code == client.get("/api/form").status_code == status
    with TestClient(app, base_url="http://127.0.0.1:8765") as behind:  # a proxy that speaks TLS for it
        behind.headers["X-Form-Token"] = behind.get("/api/form").json()["token"]
        headers = {"Origin": "https://survey.example.org"}
        assert behind.post("/api/sessions", json=ANSWERS, headers=headers).status_code == 200


def test_a_form_s_token_is_asked_for_and_its_cookie_is_kept_from_scripts_and_other_sites(client):
    given = client.get("/api/form").headers["set-cookie"].lower()
    assert "httponly" in given and "samesite=strict" in given and "secure" not in given
    assert client.get("/api/form").json()["token"] == client.headers["X-Form-Token"], "two tabs share one"
    for sent in ("", "0" * 32, "é"):
        answer = client.post("/api/sessions", json=ANSWERS, headers={"X-Form-Token": sent.encode()})
        assert answer.status_code == 403 and "reload" in answer.json()["error"]
    client.cookies.clear()
    assert client.post("/api/sessions", json=ANSWERS).status_code == 403
    assert (
        client.post(
            "/api/sessions", json=ANSWERS, headers={"Cookie": f"{COOKIE}=", "X-Form-Token": ""}
        ).status_code
        == 403
    )


def test_the_answers_are_its_owner_s_alone(store, tmp_path):
    store.begin(ANSWERS)
    for path in [
        *tmp_path.glob("survey.sqlite*"),
        store.export(tmp_path / "a.csv"),
        store.export(tmp_path / "a.xlsx"),
    ]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    store.path.chmod(0o644)  # an older survey's
    open_store(store.path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_git_ignores_answers_and_keys():
    for name in (".env", "survey.sqlite", "a/b.sqlite-wal"):
        said = subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False)
        if said.returncode == 128:
            pytest.skip("not a git checkout")
        assert said.returncode == 0, name


# many people, and kill -9 ---------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """start() -> (port, process): the survey as it is served; the same port and database each time."""
    texts = write_texts(tmp_path / "texts.jsonl", pd.DataFrame(TEXT_ROWS, columns=TEXTS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []

    def start():
        command = [sys.executable, "-m", "compendium.studies.stories.survey", "serve", "--port", str(port)]
        command += ["--texts", str(texts), "--db", str(tmp_path / "live.sqlite")]
        running.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return port, running[-1]
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the survey did not start")

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_many_people_at_once_under_kill_nine_lose_and_double_nothing(server, tmp_path):
    port, process = server()
    confirmed, lock, form = [], threading.Lock(), "a" * 32
    headers = {"Cookie": f"{COOKIE}={form}", "X-Form-Token": form}

    def ask(method, path, body=None):
        """The answer, asked again until one comes: what a person's page does when the button is pressed again."""
        for _ in range(600):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                line.request(method, path, json.dumps(body), headers)
                answer = line.getresponse()
                content = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)
                continue
            finally:
                line.close()
            assert answer.status == 200, content
            return content
        raise AssertionError("the survey did not come back")

    def person(number):
        token = ask("POST", "/api/sessions", {**ANSWERS, "native_language": f"Person {number}"})["session"]
        for _ in range(EACH):
            story = ask("GET", f"/api/sessions/{token}/story")
            scores = {**SCORES, "novelty": 1 + number % 5}
            ask("POST", f"/api/sessions/{token}/ratings", {"story": story["handle"], "scores": scores})
            with lock:
                confirmed.append((f"Person {number}", story["text"], 1 + number % 5))

    with ThreadPoolExecutor(50) as pool:
        people = [pool.submit(person, number) for number in range(PEOPLE)]
        for share in (0.2, 0.5, 0.8):
            while len(confirmed) < share * PEOPLE * EACH and not all(each.done() for each in people):
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            _, process = server()
        for each in people:
            each.result()
    sheet = open_store(tmp_path / "live.sqlite").sheet()
    kept = list(sheet[["native_languge", "text_evaluated", "novelty"]].itertuples(index=False, name=None))
    assert len(confirmed) == PEOPLE * EACH and sorted(kept) == sorted(confirmed)
