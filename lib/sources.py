"""Where replies come from: simulated models on loopback, or any OpenAI-compatible endpoint; one code path for both."""

import os
from contextlib import contextmanager

from lib.models import Budget, Endpoint
from lib.params import ParamsError, profile_params
from lib.paths import PARAMS, from_root, shown

SOURCES = ("simulated", "archive", "endpoint")
URL_VARIABLE = "COMPENDIUM_BASE_URL"


def check_source(source: str) -> str:
    """`source` itself. Raises ParamsError where it is not one of `SOURCES`."""
    if source not in SOURCES:
        raise ParamsError(f"source {source!r} is not one of {', '.join(SOURCES)} (params/<profile>.yaml, `source`)")
    return source


@contextmanager
def endpoint_for(source: str, study: str, profile: str):
    """Yield the `Endpoint` that answers for `study`: a simulator of its own, or the one params/<profile>.yaml names.

    Raises ParamsError where the profile names none.
    """
    if check_source(source) == "simulated":
        from lib.simulate.server import serve  # a live run needs no simulator

        with serve((study,)) as server:
            yield Endpoint(server.base_url, key_env=None, concurrency=32)
    else:
        yield live_endpoint(profile)


def live_endpoint(profile: str) -> Endpoint:
    """The endpoint of params/<profile>.yaml; COMPENDIUM_BASE_URL, where set, takes the place of its base_url.

    Raises ParamsError for a missing section or an unknown key.
    """
    settings = dict(profile_params(profile).get("endpoint") or {})
    if os.environ.get(URL_VARIABLE):
        settings["base_url"] = os.environ[URL_VARIABLE]
    if not settings:
        raise ParamsError(f"{shown(PARAMS / f'{profile}.yaml')}: lacks the section `endpoint: {{base_url: …}}`")
    try:
        return Endpoint(**settings)
    except TypeError as error:
        known = ", ".join(Endpoint.__dataclass_fields__)
        raise ParamsError(f"{shown(PARAMS / f'{profile}.yaml')}: endpoint: {error}; known keys: {known}") from None


def budget_for(profile: str, models, out) -> Budget | None:
    """The budget of a live profile: its ceilings and prices, counted over every ledger of the run; None for others.

    A model without a price of its own gets `prices: default`. Raises ParamsError for an unknown key.
    """
    settings = profile_params(profile)
    if settings.get("source") != "endpoint":
        return None
    prices = dict(settings.get("prices") or {})
    default = prices.pop("default", None)
    for model in models:
        if default is not None:
            prices.setdefault(model, default)
    try:
        return Budget(**(settings.get("budget") or {}), prices=prices, beside=from_root(out) / "ledgers")
    except TypeError as error:
        raise ParamsError(f"{shown(PARAMS / f'{profile}.yaml')}: budget: {error}; known keys: dollars, tokens, calls, "
                          "per_model, default_max_tokens") from None
