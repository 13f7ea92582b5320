"""Where replies come from, by one code path: simulated models on loopback, or any OpenAI-compatible endpoint."""

import os
from contextlib import contextmanager
from pathlib import Path

from compendium.asking.budget import Budget
from compendium.asking.directory import Directory, Model
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError, EndpointError
from compendium.asking.listing import listed
from compendium.frame.params import LEDGERS_ONLY, ParamsError, check_source, profile_params
from compendium.frame.paths import PARAMS, from_root, shown

ACCOUNTS = "COMPENDIUM_ACCOUNTS"  # the folder of the accounts, where it is not the project's own
URL_VARIABLE = "COMPENDIUM_BASE_URL"
CEILINGS = ("dollars", "tokens", "calls", "per_model", "default_max_tokens")
FREE = {"input": 0.0, "output": 0.0}
NO_CEILING = "none"  # what `budget: dollars:` says where a live run shall have no ceiling in dollars


def ledgers_only() -> bool:
    """Whether this process may ask no endpoint: a certificate of a live run is checked from its ledgers."""
    return bool(os.environ.get(LEDGERS_ONLY))


@contextmanager
def endpoint_for(source: str, study: str, profile: str):
    """Yield what answers for `study`: an `Endpoint` of simulated models, or the `Directory` of params/<profile>.yaml.

    Raises ParamsError where the profile names none.
    """
    if check_source(source) == "simulated":
        from compendium.asking.simulated.server import serve  # a live run needs no simulator

        with serve((study,)) as server:
            yield Endpoint(server.base_url, key_env=None, concurrency=32)
    else:
        yield live_directory(profile)


def live_directory(profile: str) -> Directory:
    """The endpoints of params/<profile>.yaml (`endpoint`, and by name `endpoints`), and how its `models` are asked.

    Where the variable COMPENDIUM_BASE_URL is set it takes the place of the base_url of `endpoint`. Raises ParamsError for a
    missing section, an unknown key, a value that cannot be, and a model at an endpoint that is not there.
    """
    settings, file = profile_params(profile), shown(PARAMS / f"{profile}.yaml")
    endpoints = {
        name: _endpoint(given, f"{file}: endpoints: {name}")
        for name, given in settings.get("endpoints", {}).items()
    }
    own = dict(settings.get("endpoint", {}))
    if os.environ.get(URL_VARIABLE):
        own["base_url"] = os.environ[URL_VARIABLE]
    if not own and not endpoints:
        raise ParamsError(f"{file}: lacks the section `endpoint: {{base_url: …}}`")
    if own:
        endpoints[""] = _endpoint(own, f"{file}: endpoint")
    models = {name: Model(**(given or {})) for name, given in settings.get("models", {}).items()}
    for name, model in models.items():
        if model.endpoint not in endpoints:
            there = ", ".join(filter(None, endpoints)) or "none"
            raise ParamsError(
                f"{file}: models: {name}: there is no endpoint `{model.endpoint}` under `endpoints` (there: {there})"
            )
    return Directory(endpoints, models)


def _endpoint(settings, where: str) -> Endpoint:
    try:
        return Endpoint(**{"simulated": False, **settings})
    except TypeError as error:
        known = ", ".join(name for name in Endpoint.__dataclass_fields__ if name != "simulated")
        raise ParamsError(f"{where}: {error}; known keys: {known}") from None
    except EndpointError as error:
        raise ParamsError(f"{where}: {error}") from None


def account_path(profile: str) -> Path:
    """The one account of a profile on this machine: accounts/<profile>.sqlite, or below COMPENDIUM_ACCOUNTS."""
    return from_root(os.environ.get(ACCOUNTS) or "accounts") / f"{profile}.sqlite"


def price_of(model: str, profile: str) -> tuple:
    """(dollars per million tokens {"input", "output"} of a model or None, where they are from).

    Its own under `prices`, else its endpoint's `prices` (`listed`: what that endpoint's /models says), else 0 on this
    machine, else `prices: default`. Raises ParamsError where the price is `unknown` or is not listed.
    """
    settings, file = profile_params(profile), shown(PARAMS / f"{profile}.yaml")
    prices, where = settings.get("prices", {}), live_directory(profile)
    if where.model(model).endpoint not in where.endpoints:
        raise ParamsError(f"{file}: {model} names no endpoint, and there is no section `endpoint`")
    endpoint = where.endpoint(model)
    if model in prices:
        price, source = prices[model], f"{file}, prices"
    elif endpoint.prices == "listed":
        price, source = (
            listed(endpoint).get(where.model(model).name or model, "unknown"),
            "the endpoint's /models",
        )
    elif endpoint.prices is not None:
        price, source = endpoint.prices, f"{file}, endpoints"
    elif endpoint.loopback:
        price, source = FREE, "on this machine"
    else:
        price, source = prices.get("default"), f"{file}, prices: default"
    if price == "unknown":
        raise ParamsError(
            f"{file}: the price of {model} is unknown ({source}); write what it costs in dollars per million tokens: "
            f"prices: {{{model}: {{input: …, output: …}}}}"
        )
    return price, source


def budget_for(profile: str, models) -> Budget | None:
    """A live profile's ceilings and prices, counted on its one account; None for other profiles.

    Prices are those of `price_of`. Raises ParamsError for an unknown key, a price or
    ceiling that is no number of at least 0, and a live profile without a ceiling in dollars: whoever wants none
    says so (`dollars: none`).
    """
    settings = profile_params(profile)
    if settings.get("source") != "endpoint":
        return None
    file, ceilings = shown(PARAMS / f"{profile}.yaml"), dict(settings.get("budget", {}))
    for key in set(ceilings) - set(CEILINGS):
        raise ParamsError(f"{file}: budget: unknown key `{key}`; known keys: {', '.join(CEILINGS)}")
    if ceilings.get("dollars") is None:
        raise ParamsError(
            f"{file}: budget: `dollars` is missing: give the most that a live run may cost in "
            "dollars, or the word none for no ceiling"
        )
    if ceilings["dollars"] == NO_CEILING:
        ceilings["dollars"] = None
    prices = {model: price for model in models if (price := price_of(model, profile)[0]) is not None}
    try:
        return Budget(**ceilings, prices=prices, account=account_path(profile))
    except BudgetError as error:
        raise ParamsError(f"{file}: {error}") from None
