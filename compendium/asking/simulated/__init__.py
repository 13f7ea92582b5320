"""Simulated models behind an OpenAI-compatible endpoint, for the profile `demo` and for tests.

A study takes part with a module `compendium.studies.<study>.simulated` that has

    models() -> list of the model names it answers for
    respond(request) -> Reply or str      request: the decoded body of POST /v1/chat/completions

`respond` is a pure function of the request's content (model, messages, sampling parameters, seed). A sample
is told from another of the same request by its `seed`. `compendium.asking.simulated.server` puts such modules behind HTTP:

    with serve(["alienbench"]) as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="none")
"""
# Tested by tests/compendium/asking/simulated/test_server.py.

from compendium.asking.simulated.reply import Reply, RequestError

__all__ = ["Reply", "RequestError"]
