"""The server: the interface it speaks, the same bytes in any order, and an end with its parent."""

import concurrent.futures
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import openai
import psutil
import pytest

from compendium.asking.simulated.__main__ import main
from compendium.asking.simulated.reply import Reply, RequestError, request_key
from compendium.asking.simulated.server import app, serve
from compendium.frame.paths import ROOT
from compendium.studies.alienbench import simulated as simulator
from compendium.studies.alienbench.ask import prompts


@pytest.fixture(scope="module")
def server():
    with serve("alienbench") as running:
        yield running


def generation(seed, model="x-ai/grok-4.7", condition="baseline"):
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompts()[condition]}],
        "temperature": 1.0,
        "seed": seed,
    }


def ask(server, body, method="POST", path="/v1/chat/completions"):
    connection = http.client.HTTPConnection(
        server.base_url.removeprefix("http://").removesuffix("/v1"), timeout=60
    )
    connection.request(method, path, body if isinstance(body, (str, bytes)) else json.dumps(body))
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def test_the_openai_client_gets_what_the_responder_says(server):
    client = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
    request = generation(3, "openai/gpt-6-astra")
    expected = simulator.respond(request)
    answer = client.chat.completions.create(**request)
    assert answer.choices[0].message.content == expected.text
    assert answer.choices[0].finish_reason == "stop" and answer.model == "openai/gpt-6-astra-20260903"
    assert answer.usage.completion_tokens == expected.completion_tokens
    assert answer.usage.completion_tokens_details.reasoning_tokens == expected.reasoning_tokens
    assert answer.usage.prompt_tokens > 0
    assert {model.id for model in client.models.list()} == set(simulator.models())


@pytest.mark.parametrize(
    "body, status, message",
    [
        ("{", 400, "not JSON"),
        ("[]", 400, "JSON object"),
        ({"messages": [{"role": "user", "content": "x"}]}, 400, "`model`"),
        ({"model": "x-ai/grok-4.7", "messages": []}, 400, "`messages`"),
        ({**generation(1), "stream": True}, 400, "`stream`"),
        ({**generation(1), "n": 3}, 400, "`n`"),
        ({**generation(1), "model": "acme/one"}, 404, "'acme/one' does not exist"),
        ({**generation(1), "model": "x-ai/grok-4.8"}, 404, "did you mean 'x-ai/grok-4.7'?"),
    ],
)
def test_a_request_that_cannot_be_answered_gets_one_clear_error(server, body, status, message):
    got, answer = ask(server, body)
    error = json.loads(answer)["error"]
    assert got == status and message in error["message"]
    assert (error["code"] == "model_not_found") == (status == 404)


def test_other_paths_and_methods_are_refused(server):
    assert ask(server, "", "GET")[0] == 405
    assert ask(server, "", "GET", "/v1/nothing")[0] == 404


def test_bodies_are_equal_in_any_order_and_under_concurrency(server):
    requests = [
        generation(seed, model)
        for seed in range(8)
        for model in ("x-ai/grok-4.7", "qwen/qwen3.8-27b", "human")
    ]
    expected = [ask(server, request) for request in requests]
    shuffled = list(enumerate(requests))
    random.Random(1).shuffle(shuffled)
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        for place, answer in pool.map(lambda job: (job[0], ask(server, job[1])), shuffled):
            assert answer == expected[place]
    with serve("alienbench") as another:  # another process, another order
        assert [ask(another, request) for request in reversed(requests)] == expected[::-1]


def test_the_log_holds_one_line_a_request(tmp_path):
    log = tmp_path / "served.jsonl"
    request = generation(5)
    with serve("alienbench", log=log) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="sk-canary", max_retries=0)
        client.chat.completions.create(**request, extra_headers={"x-stainless-retry-count": "4"})
        ask(server, {**request, "model": "acme/one"})
        ask(server, "{")
    first, second, third = [json.loads(line) for line in log.read_text().splitlines()]
    assert first == {
        "key": request_key(request),
        "model": "x-ai/grok-4.7",
        "seed": 5,
        "try": "4",
        "status": 200,
        "fault": None,
    }
    assert (second["status"], second["model"]) == (404, "acme/one") and (third["status"], third["key"]) == (
        400,
        "",
    )
    assert "canary" not in log.read_text()


def test_it_is_ready_soon_and_gone_with_its_block():
    start = time.monotonic()
    with serve("alienbench") as server:
        ready = time.monotonic() - start
        assert psutil.pid_exists(server.pid) and server.pid != os.getpid()
    assert ready < 60  # a quarter of a second on an idle machine; this one may be busy
    assert not psutil.pid_exists(server.pid)


def test_it_ends_when_its_parent_is_killed():
    script = (
        "import sys, time; from compendium.asking.simulated.server import serve\n"
        "with serve() as s: print(s.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs([child], timeout=60)
    assert not alive


def test_no_key_of_the_environment_reaches_it(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-canary-77")
    with serve("alienbench") as server:
        environment = psutil.Process(server.pid).environ()
    assert "OPENROUTER_API_KEY" not in environment and "sk-canary-77" not in str(environment)


def test_what_cannot_be_served_is_one_error():
    with (
        pytest.raises(ValueError, match="no simulator compendium/studies/weather/simulated.py"),
        serve("weather"),
    ):
        pass
    with pytest.raises(ValueError, match="no simulator"):
        app(("weather",))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(RuntimeError, match="did not start: .*in use"), serve(port=taken.getsockname()[1]):
            pass


class Echo:
    """A study of the tests: answers with the model's name, claims questions that start with its word."""

    def __init__(self, word):
        self.word = word

    def models(self):
        return ["shared", self.word]

    def claims(self, request):
        return request["messages"][0]["content"].startswith(self.word)

    def respond(self, request):
        if request["messages"][0]["content"].endswith("!"):
            raise RequestError("too loud", 422)
        return f"{self.word} answers" if self.word == "one" else Reply("two answers", model="two-2026")


def in_process(application, body):
    """(status, decoded body) of one request to an ASGI application, without a socket."""
    import asyncio

    sent = []

    async def run():
        async def receive():
            return {"type": "http.request", "body": json.dumps(body).encode()}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "raw_path": b"",
            "query_string": b"",
            "headers": [],
            "root_path": "",
            "app": None,
        }
        await application(scope, receive, send)

    asyncio.run(run())
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_model_of_several_studies_is_answered_by_the_one_that_claims_the_question():
    application = app((Echo("one"), Echo("two")))

    def answer(content, model="shared"):
        status, body = in_process(
            application, {"model": model, "messages": [{"role": "user", "content": content}]}
        )
        return status, body["choices"][0]["message"]["content"] if status == 200 else body["error"]["message"]

    assert answer("one: hello") == (200, "one answers")
    assert answer("two: hello") == (200, "two answers")
    assert answer("anything", "one") == (200, "one answers")
    assert answer("one!") == (422, "too loud")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--faults", "3"], "rate is a share between 0 and 1, not 3.0"),
        (["--reply-faults", "nan"], "reply_rate is a share between 0 and 1, not nan"),
        (
            ["--studies", "weather"],
            "no simulator compendium/studies/weather/simulated.py for study 'weather'",
        ),
        (["--studies", "../x"], "no simulator"),
        (["--studies", "margins"], "no simulator compendium/studies/margins/simulated.py"),
        (["--port", "99999999"], "--port: "),
        (["--log", "no/such/folder/log"], "--log no/such/folder/log: No such file or directory"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert (
        shown.err.startswith("error: ")
        and message in shown.err
        and shown.err.count("\n") == 1
        and not shown.out
    )


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["--port", str(taken.getsockname()[1])]) == 2
    assert "Address already in use" in capsys.readouterr().err
