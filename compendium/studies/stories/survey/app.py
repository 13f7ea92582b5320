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

An error is {error, field} with a status of 4xx. No request and no answer is logged: an address is not kept
anywhere.
"""

import functools
import secrets
from datetime import UTC, datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
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


def create_app(store: Store) -> Starlette:
    """The ASGI application over a store."""

    def resource(act, needs_body=False):
        async def endpoint(request):
            try:
                body = await _body(request) if needs_body else None
                content = await run_in_threadpool(act, request, body)
            except (SurveyError, StoriesError) as error:
                said = {"error": str(error), "field": getattr(error, "field", "")}
                return JSONResponse(said, getattr(error, "status", 400), headers=HEADERS)
            return JSONResponse(content, headers=HEADERS)

        return endpoint

    def token(request):
        return request.path_params["token"]

    def story(request, _):
        found = store.story(token(request), request.query_params.get("language"))
        return {**(found or {"story": None}), "rated": store.status(token(request))["rated"]}

    def finish(request, _):
        store.finish(token(request))
        return {"finished": True}

    return Starlette(
        routes=[
            Route("/", lambda _: FileResponse(STATIC / "index.html", headers=HEADERS)),
            Route("/api/form", resource(lambda *_: form())),
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
                        "rated": store.rate(token(request), str(body.get("story")), body.get("scores"))
                    },
                    True,
                ),
                methods=["POST"],
            ),
            Route("/api/sessions/{token}/finish", resource(finish), methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
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


async def _body(request) -> dict:
    raw = await request.body()
    if len(raw) > LARGEST_BODY:
        raise SurveyError("the answer is too long", status=413)
    try:
        content = await request.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise SurveyError("the answer should be a JSON object")
    return content
