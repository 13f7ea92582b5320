"""The survey's web side: a static page, and the few resources it talks to (JSON in, JSON out).

    GET  /                                the page
    GET  /api/form                        wording, questions and qualities in both languages
    POST /api/sessions                    begin: {consent, language, native_language, gender, age, education,
    experience}
    GET  /api/sessions/{token}            {language, rated, finished}
    GET  /api/sessions/{token}/story      {handle, prompt, text, language, rated} or {story: null};
    ?language=it switches
    POST /api/sessions/{token}/ratings    {story: handle, scores: {dimension: 1-5}}
    POST /api/sessions/{token}/finish

An error is {error, field} with a status of 4xx. What changes anything (POST) must come from the page itself: the form
carries a token that a cookie (SameSite, out of scripts' reach) confirms, and is sent back as X-Form-Token; Host and
Origin must be the survey's own. No request and no answer is logged: an address is not kept anywhere.
"""

import functools
import hmac
import json
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.stories.data import StoriesError
from compendium.studies.stories.survey import SurveyError
from compendium.studies.stories.survey.store import QUESTIONS, Store

STATIC = Path(__file__).parent / "static"
INSTRUMENTS = DATA / "instruments" / "stories"
LARGEST_BODY = 20_000
HOSTS = ("127.0.0.1", "localhost")
COOKIE, TOKEN = "survey-form", re.compile(r"[0-9a-f]{32}")
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
}


def open_store(path, balanced: bool = False) -> Store:
    """A store for real use: unguessable session numbers and handles, the time in UTC, a random pick."""
    return Store(
        path,
        fresh=lambda: secrets.token_hex(16),
        pick=secrets.randbelow,
        balanced=balanced,
        now=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    )


def create_app(store: Store, hosts=HOSTS) -> Starlette:
    """The ASGI application over a store; it answers to the names in `hosts` and no other."""

    def resource(act, needs_body=False):
        async def endpoint(request):
            try:
                if request.method == "POST":
                    _check_sender(request, hosts)
                body = await _body(request) if needs_body else None
                content = await run_in_threadpool(act, request, body)
            except (SurveyError, StoriesError) as error:
                said = {"error": str(error), "field": getattr(error, "field", "")}
                return JSONResponse(said, getattr(error, "status", 400), headers=HEADERS)
            return JSONResponse(content, headers=HEADERS)

        return endpoint

    def token(request):
        return request.path_params["token"]

    async def whole_form(request):
        mine = request.cookies.get(COOKIE, "")
        mine = mine if TOKEN.fullmatch(mine) else secrets.token_hex(16)  # two tabs share one
        answer = JSONResponse({**form(), "token": mine}, headers=HEADERS)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, mine, httponly=True, samesite="strict", secure=secure, path="/")
        return answer

    def story(request, _):
        found = store.story(token(request), request.query_params.get("language"))
        return {**(found or {"story": None}), "rated": store.status(token(request))["rated"]}

    def finish(request, _):
        store.finish(token(request))
        return {"finished": True}

    return Starlette(
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)],
        routes=[
            Route("/", lambda _: FileResponse(STATIC / "index.html", headers=HEADERS)),
            Route("/api/form", whole_form),
            Route(
                "/api/sessions",
                resource(lambda _, body: {"session": store.begin(body)}, True),
                methods=["POST"],
            ),
            Route("/api/sessions/{token}", resource(lambda request, _: store.status(token(request)))),
            Route("/api/sessions/{token}/story", resource(story)),
            Route(
                "/api/sessions/{token}/ratings",
                resource(
                    lambda request, body: {
                        "rated": store.rate(token(request), body.get("story"), body.get("scores"))
                    },
                    True,
                ),
                methods=["POST"],
            ),
            Route("/api/sessions/{token}/finish", resource(finish), methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
    )


@functools.cache
def form() -> dict:
    """Everything the page shows, in both languages: wording, qualities, questions with their options."""
    wording = read_yaml(INSTRUMENTS / "form.yaml")
    entries = read_yaml(INSTRUMENTS / "dimensions.yaml")
    qualities = {
        "en": [{name: entry[name].strip() for name in ("id", "label", "definition")} for entry in entries],
        "it": [{"id": entry["id"], **entry["it"]} for entry in entries],
    }
    options = {
        "en": {name: {value: value for value in values} for name, values in wording["options"].items()},
        "it": wording["options"],
    }
    return {
        "languages": wording["languages"],
        "questions": list(QUESTIONS),
        "wording": {language: wording[language] for language in wording["languages"]},
        "qualities": qualities,
        "options": options,
    }


def _check_sender(request, hosts) -> None:
    """Raise SurveyError (403) for a request that another site's page sent."""
    origin = request.headers.get("origin")
    if origin is not None:
        try:
            place = urlsplit(origin)
            own = place.netloc == request.headers.get("host") or (
                place.scheme == "https" and place.hostname in set(hosts) - set(HOSTS)
            )
        except ValueError:
            own = False
        if not own:
            raise SurveyError("this was sent by another site", "form", 403)
    cookie, sent = request.cookies.get(COOKIE, ""), request.headers.get("x-form-token", "")
    if not (TOKEN.fullmatch(cookie) and hmac.compare_digest(cookie.encode(), sent.encode())):
        raise SurveyError("this form is too old; reload the page", "form", 403)


async def _body(request) -> dict:
    """What a request holds, measured while it comes: no more than LARGEST_BODY is ever kept."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > LARGEST_BODY:
            raise SurveyError("the answer is too long", status=413)
    try:
        content = json.loads(bytes(raw))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise SurveyError("the answer should be a JSON object")
    return content
