"""Named endpoints, and what each model does not take: one test a kind of quirk, against servers that have it."""

import json
import shutil
import ssl
import subprocess
from types import SimpleNamespace

import pytest

from compendium.asking import listing, live, sources
from compendium.asking.connection import authorities
from compendium.asking.directory import Directory, Model, from_stream
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import EndpointError
from compendium.asking.ledger import Ledger
from compendium.asking.live import check_live, estimate_study, main
from compendium.asking.request import Request
from compendium.asking.sources import budget_for, live_directory, price_of
from compendium.asking.stage import run_stage
from compendium.asking.study import asking
from compendium.frame import params
from compendium.frame.params import ParamsError
from compendium.studies.alienbench.stages import planned
from tests.compendium.asking.loopback import Loopback, completion, echo

SYSTEM = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How many?"}]


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """write(text) -> the project's params with this as params/live.yaml; runs, accounts and ledgers in `tmp_path`."""
    place = tmp_path / "params"
    place.mkdir()
    for path in params.PARAMS.glob("*.yaml"):
        (place / path.name).write_text(path.read_text())
    for module in (params, sources):
        monkeypatch.setattr(module, "PARAMS", place)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-nothing-but-a-test")
    monkeypatch.setenv(sources.ACCOUNTS, str(tmp_path / "accounts"))
    monkeypatch.delenv(sources.URL_VARIABLE, raising=False)
    monkeypatch.setattr(live, "run_folder", lambda *_: tmp_path / "run")
    listing._listed.cache_clear()
    return lambda text: (place / "live.yaml").write_text(text)


BASE = """source: endpoint
budget: {dollars: 5.0}
prices: {default: {input: 5.0, output: 25.0}}
endpoint: {base_url: "https://far.example/v1"}
"""


def ask_in(tmp_path, requests, where, **options):
    with Ledger(tmp_path / "l.sqlite") as ledger:
        result = run_stage(where.shaped(requests), where, ledger, **options)
        return list(result.replies), result.report


def one(server, model: Model, **settings):
    return Directory({"": Endpoint(server.url, None, backoff=0.001, **settings)}, {"m": model})


def sent(tmp_path, model: Model, request=None, answer=echo, **settings):
    """(the one body that a server got, the reply's text)."""
    with Loopback(answer) as server:
        request = request or Request("m", SYSTEM, temperature=0.0, top_p=0.9, max_tokens=7, seed=3)
        (reply,), _ = ask_in(tmp_path, [request], one(server, model, **settings))
        assert reply.valid, reply.void_reason
        return server.log[-1], reply


@pytest.mark.parametrize(
    ("model", "lacking", "there"),
    [
        (Model(), [], {"temperature": 0.0, "top_p": 0.9, "max_tokens": 7, "seed": 3}),
        (Model(temperature=None, top_p=None), ["temperature", "top_p"], {"seed": 3}),
        (Model(temperature=1.0), [], {"temperature": 1.0}),
        (Model(seed=False), ["seed"], {"temperature": 0.0}),
        (Model(max_tokens=99), [], {"max_tokens": 99}),
        (Model(max_tokens_name="max_completion_tokens"), ["max_tokens"], {"max_completion_tokens": 7}),
        (Model(reasoning_effort="low"), [], {"reasoning_effort": "low"}),
        (Model(extra={"provider": {"order": ["a"]}}), [], {"provider": {"order": ["a"]}}),
        (Model(name="my-deployment"), [], {"model": "my-deployment"}),
        (Model(system=False), [], {"messages": [{"role": "user", "content": "Be brief.\n\nHow many?"}]}),
    ],
)
def test_what_a_model_does_not_take_is_not_sent(tmp_path, model, lacking, there):
    body, _ = sent(tmp_path, model)
    assert not set(lacking) & set(body)
    assert {name: body[name] for name in there} == there


def test_the_field_that_bounds_a_reply_may_be_the_endpoint_s(tmp_path):
    body, _ = sent(tmp_path, Model(), max_tokens_name="max_new_tokens")
    assert body["max_new_tokens"] == 7 and "max_tokens" not in body


def test_a_re_ask_of_a_model_without_seeds_sends_none(tmp_path):
    with Loopback(lambda body, tries: completion("seven" if tries else "", "m")) as server:
        requests = [Request("m", SYSTEM, seed=3)]
        (reply,), _ = ask_in(tmp_path, requests, one(server, Model(seed=False)))
    assert reply.text == "seven" and [("seed" in body) for body in server.log] == [False, False]


def stream(*words, finish="stop", usage=(10, 5), done=True, **delta):
    """The bytes of a streamed completion, a comment line in front as some gateways send."""
    pieces = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": word, **delta}}]}
        for word in words
    ]
    pieces.append({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    pieces.append(
        {
            "id": "c",
            "model": "m",
            "choices": [],
            "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]},
        }
    )
    text = ": PROCESSING\n\n" + "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)
    return (text + ("data: [DONE]\n\n" if done else "")).encode()


def test_a_model_that_only_streams_is_read_whole(tmp_path):
    def answer(body, tries):
        assert body["stream"] is True and body["stream_options"] == {"include_usage": True}
        return 200, {}, stream("Sev", "en.")

    body, reply = sent(tmp_path, Model(stream=True), answer=answer)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("Seven.", 10, 5)


def test_that_it_only_streams_is_learnt_from_its_refusal(tmp_path):
    refusal = {
        "error": {"message": "This model only supports stream mode, please enable the stream parameter"}
    }

    def answer(body, tries):
        return (200, {}, stream("Seven.")) if body.get("stream") else (400, {}, refusal)

    with Loopback(answer) as server:
        replies, report = ask_in(tmp_path, [Request("m", SYSTEM)], one(server, Model()))
    assert replies[0].text == "Seven." and ("m", "replies come as a stream") in report.adapted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (stream("a", "b", finish="length").decode(), {"content": "ab", "finish": "length"}),
        (stream("a", reasoning_content="hm").decode(), {"content": "a", "reasoning": "hm"}),
        (stream("a").decode().replace("\n\n", "\r\n\r\n"), {"content": "a"}),
        (stream("a", done=False).decode(), {"content": "a"}),
    ],
)
def test_a_stream_put_together(text, message):
    body = json.loads(from_stream(text))
    (choice,) = body["choices"]
    assert choice["message"]["content"] == message["content"]
    assert choice["finish_reason"] == message.get("finish", "stop")
    assert choice["message"].get("reasoning_content") == message.get("reasoning")
    assert body["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize(
    "text", ["", "{}", "data: {", 'data: {"error": {"message": "overloaded"}}', "data: 7\n\n", "data: {}\n\n"]
)
def test_what_is_no_whole_stream_is_no_completion(text):
    assert "choices" not in from_stream(text)


def test_a_wrong_name_is_told_at_the_second_reply_with_the_line_to_write(tmp_path):
    with Loopback(lambda body, tries: completion("x", "m-mini")) as server:
        where = Directory({"": Endpoint(server.url, None, backoff=0.001, concurrency=1, simulated=False)})
        with pytest.raises(EndpointError) as caught:
            ask_in(tmp_path, [Request("m", SYSTEM, sample=i) for i in range(9)], where)
        assert len(server.log) == 2, "not paid for again and again"
        assert "asked for 'm'" in str(caught.value) and "answered as m-mini" in str(caught.value)
        assert "write in params/live.yaml: models: {m: {aliases: [m-mini]}}" in str(caught.value)
        (reply,), _ = ask_in(
            tmp_path / "again", [Request("m", SYSTEM)], one(server, Model(aliases=["m-mini"]))
        )
    assert reply.model_resolved == "m-mini"


def test_a_deployment_may_answer_as_itself(tmp_path):
    _, reply = sent(
        tmp_path, Model(name="my-deployment"), answer=lambda b, t: completion("x", "my-deployment")
    )
    assert reply.model_resolved == "my-deployment"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "Unsupported value: 'temperature' does not support 0 with this model.",
            "models: {m: {temperature: null}}",
        ),
        (
            "Developer instruction is not enabled for models/gemma: no system role",
            "models: {m: {system: false}}",
        ),
        ("System role not supported", "models: {m: {system: false}}"),
    ],
)
def test_a_refusal_of_what_the_question_holds_says_which_line_mends_it(tmp_path, said, line):
    with Loopback(lambda body, tries: (400, {}, {"error": {"message": said}})) as server:
        with pytest.raises(EndpointError, match="write in params/live.yaml: ") as caught:
            ask_in(tmp_path, [Request("m", SYSTEM, temperature=0.0)], one(server, Model()))
    assert line in str(caught.value)


def test_what_changes_the_question_is_kept_and_what_changes_its_way_is_not():
    request = Request("m", SYSTEM, temperature=0.0, seed=3)
    for model in (Model(name="x"), Model(seed=False), Model(stream=True), Model(max_tokens_name="y")):
        assert model.shape(request) is request
    for model in (
        Model(temperature=None),
        Model(system=False),
        Model(extra={"a": 1}),
        Model(reasoning_effort="low"),
    ):
        assert model.shape(request).key != request.key


# several endpoints -----------------------------------------------------------------------------------------------------


def test_each_model_is_asked_at_its_own_endpoint_at_that_one_s_pace(tmp_path):
    requests = [Request(name, SYSTEM, sample=i) for i in range(12) for name in ("near", "far")]
    with Loopback(lambda body, tries: 0.02) as home, Loopback(lambda body, tries: 0.02) as away:
        endpoints = {
            "": Endpoint(away.url, None, concurrency=6),
            "home": Endpoint(home.url, None, concurrency=1),
        }
        replies, report = ask_in(tmp_path, requests, Directory(endpoints, {"near": Model(endpoint="home")}))
        assert {body["model"] for body in home.log} == {"near"} and len(home.log) == 12 and home.most == 1
        assert {body["model"] for body in away.log} == {"far"} and len(away.log) == 12 and away.most <= 6
    assert [reply.model_requested for reply in replies] == ["near", "far"] * 12
    assert report.total("valid") == report.total("calls") == 24


def test_what_stops_at_one_endpoint_stops_the_stage(tmp_path):
    refused = (401, {}, {"error": {"message": "no such key"}})
    with Loopback() as home, Loopback(lambda body, tries: refused) as away:
        endpoints = {"": Endpoint(away.url, None), "home": Endpoint(home.url, None)}
        where = Directory(endpoints, {"near": Model(endpoint="home")})
        with pytest.raises(EndpointError, match="no such key"):
            ask_in(tmp_path, [Request(name, SYSTEM) for name in ("near", "far")], where)


def test_a_local_server_is_a_host_like_others(tmp_path, profile):
    """It gets no simulator's patience, and its replies are kept apart from another address's."""
    profile(
        BASE
        + "endpoints: {home: {base_url: 'http://127.0.0.1:9/v1', key_env: null}}\nmodels: {m: {endpoint: home}}\n"
    )
    endpoint = live_directory("live").endpoint("m")
    assert endpoint.loopback and not endpoint.simulated
    assert (endpoint.first_backoff, endpoint.patience_s) == (0.5, 120.0)
    assert Endpoint("http://127.0.0.1:9/v1").patience_s == 5.0, "our own simulated models"


def test_a_study_asks_where_the_profile_says(tmp_path, profile):
    with Loopback() as home, Loopback() as away:
        text = BASE.replace("https://far.example/v1", away.url).replace('"}', '", key_env: null}')
        profile(
            text
            + f"endpoints: {{home: {{base_url: '{home.url}', key_env: null}}}}\n"
            + "models: {lab/near: {endpoint: home, name: tiny, temperature: null, aliases: [tiny]}}\n"
        )
        requests = [Request(name, SYSTEM, temperature=0.0, max_tokens=5) for name in ("lab/near", "lab/far")]
        with asking(
            "alienbench", ["lab/near", "lab/far"], source="endpoint", profile="live", out=tmp_path
        ) as ask:
            replies = [reply.text for reply in ask(requests, "judging", progress=False).replies]
    assert len(replies) == 2
    assert [(body["model"], "temperature" in body) for body in home.log] == [("tiny", False)]
    assert [(body["model"], "temperature" in body) for body in away.log] == [("lab/far", True)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "models: {m: {endpoint: hom}}",
            r"live.yaml: models: m: there is no endpoint `hom` under `endpoints` \(there: none\)",
        ),
        (
            "models: {m: {temprature: 1}}",
            "models.m.temprature` unknown key; there are endpoint, name, temperature",
        ),
        ("models: {m: {seed: 7}}", "models.m.seed` should be yes or no"),
        (
            "endpoints: {home: {base_url: nowhere}}",
            "live.yaml: endpoints: home: base_url should be like https",
        ),
        (
            "endpoints: {home: {base_url: 'https://a.b', pace: 3}}",
            "endpoints: home: .*pace.*known keys: base_url",
        ),
        (
            "endpoints: {home: {base_url: 'https://a.b', prices: some}}",
            "home: prices should be {input: …, output: …}, listed",
        ),
    ],
)
def test_a_directory_that_cannot_be(profile, more, message):
    profile(f"{BASE}{more}\n")
    with pytest.raises(ParamsError, match=message):
        live_directory("live")


# prices ----------------------------------------------------------------------------------------------------------------


def test_where_a_price_is_from(profile):
    profile(
        BASE.replace("prices: {", "prices: {own/m: {input: 1, output: 2}, no/m: unknown, ")
        + "endpoints:\n"
        + "  home: {base_url: 'http://127.0.0.1:9/v1'}\n"
        + "  paid: {base_url: 'https://a.b/v1', prices: {input: 3, output: 4}}\n"
        + "  dark: {base_url: 'https://c.d/v1', prices: unknown}\n"
        + "models: {near/m: {endpoint: home}, paid/m: {endpoint: paid}, dark/m: {endpoint: dark}}\n"
    )
    assert price_of("own/m", "live")[0] == {"input": 1, "output": 2}
    assert price_of("near/m", "live") == ({"input": 0.0, "output": 0.0}, "on this machine")
    assert price_of("paid/m", "live")[0] == {"input": 3, "output": 4}
    assert price_of("any/m", "live")[0] == {"input": 5.0, "output": 25.0}
    for name in ("no/m", "dark/m"):
        with pytest.raises(
            ParamsError, match=f"the price of {name} is unknown .*prices: {{{name}: {{input: …"
        ):
            budget_for("live", [name])


def test_prices_that_an_endpoint_lists(profile, monkeypatch):
    entries = [
        {"id": "m", "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
        {"id": "silent"},
        {"id": "odd", "pricing": {"prompt": "free", "completion": "-1"}},
    ]

    class Answer:
        def raise_for_status(self):
            pass

        def json(self):
            return {"data": entries}

    asked = []
    monkeypatch.setattr(listing.httpx, "get", lambda url, **how: asked.append(url) or Answer())
    profile(BASE.replace('far.example/v1"', 'far.example/v1", prices: listed'))
    price, source = price_of("m", "live")
    assert price == pytest.approx({"input": 3.0, "output": 15.0}) and source == "the endpoint's /models"
    for name in ("silent", "odd", "absent"):
        with pytest.raises(ParamsError, match=f"the price of {name} is unknown"):
            price_of(name, "live")
    assert asked == ["https://far.example/v1/models"], "once"
    listing._listed.cache_clear()
    entries[:] = [7, {"no": "id"}]
    with pytest.raises(EndpointError, match="https://far.example/v1/models: gives no list of models"):
        price_of("m", "live")


def test_the_estimate_has_a_line_a_model(profile, capsys):
    original = (sources.PARAMS / "live.yaml").read_text()
    profile(
        original
        + "endpoints: {home: {base_url: 'http://127.0.0.1:9/v1', key_env: null}}\n"
        + "models: {mistralai/ministral-14b-2512: {endpoint: home}}\n"
    )
    assert main(["--study", "alienbench", "--smoke", "1"]) == 0
    shown = capsys.readouterr().out
    assert (
        "mistralai/ministral-14b-2512 at http://127.0.0.1:9/v1: $0 in, $0 out a million tokens (on this machine)"
        in shown
    )
    assert "openai/gpt-5.4 at https://openrouter.ai/api/v1: $5 in, $25 out a million tokens (" in shown


def test_the_key_of_every_endpoint_that_is_asked_must_be_there(profile, tmp_path, monkeypatch):
    original = (sources.PARAMS / "live.yaml").read_text()
    ends = "endpoints: {lab: {base_url: 'https://lab.example/v1', key_env: LAB_KEY}}\n"
    profile(original + ends)
    check_live("alienbench", smoke=True, out=tmp_path)  # nobody is asked there
    profile(original + ends + "models: {openai/gpt-5.4: {endpoint: lab}}\n")
    with pytest.raises(EndpointError, match="the environment variable LAB_KEY is not set"):
        check_live("alienbench", smoke=True, out=tmp_path)


def test_the_estimate_knows_a_reply_to_a_question_as_it_was_asked(profile, tmp_path):
    original = (sources.PARAMS / "live.yaml").read_text()
    model = "mistralai/ministral-14b-2512"
    with Loopback() as server:
        profile(
            original.replace("https://openrouter.ai/api/v1", server.url)
            + f"models: {{{model}: {{temperature: null}}}}\n"
        )
        small = SimpleNamespace(**params.study_params("alienbench", "live", True))
        requests = [asked for asked in planned(small, tmp_path)["generating"] if asked.model == model]
        before = estimate_study("alienbench", smoke=True, out=tmp_path).loc["generating", "calls"]
        with asking("alienbench", [model], source="endpoint", profile="live", out=tmp_path) as ask:
            ask(requests[:3], "generating", progress=False)
        assert all("temperature" not in body for body in server.log)
        after = estimate_study("alienbench", smoke=True, out=tmp_path).loc["generating", "calls"]
    assert dict(before - after) == {name: 3 * (name == model) for name in before.index}


# TLS -------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_ssl_cert_file_is_honoured(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Loopback(tls=context) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")

        def ask(name):
            where = Directory({"": Endpoint(url, None, backoff=0.001, max_retries=1)})
            (reply,), _ = ask_in(tmp_path / name, [Request("m", SYSTEM)], where)
            return reply

        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        assert "CERTIFICATE_VERIFY_FAILED" in ask("no").void_reason
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert ask("yes").valid
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    with pytest.raises(EndpointError, match="SSL_CERT_FILE=.*gone.pem: cannot be read as certificates"):
        authorities()
