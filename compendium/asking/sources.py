"""Where replies come from, by one code path: simulated models on loopback, or any OpenAI-compatible endpoint."""

import os
from contextlib import contextmanager
from pathlib import Path

from compendium.asking.budget import Budget
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import BudgetError, EndpointError
from compendium.frame.params import LEDGERS_ONLY, ParamsError, check_source, profile_params
from compendium.frame.paths import PARAMS, from_root, shown

ACCOUNTS = "COMPENDIUM_ACCOUNTS"  # the folder of the accounts, where it is not the project's own
URL_VARIABLE = "COMPENDIUM_BASE_URL"
CEILINGS = ("dollars", "tokens", "calls", "per_model", "default_max_tokens")
NO_CEILING = "none"  # what `budget: dollars:` says where a live run shall have no ceiling in dollars


def ledgers_only() -> bool:
    """Whether this process may ask no endpoint: a certificate of a live run is checked from its ledgers."""
    return bool(os.environ.get(LEDGERS_ONLY))


@contextmanager
def endpoint_for(source: str, study: str, profile: str):
    """Yield the `Endpoint` that answers for `study`: a simulator of its own, or that of params/<profile>.yaml.

    Raises ParamsError where the profile names none.
    """
    if check_source(source) == "simulated":
        from compendium.asking.simulated.server import serve  # a live run needs no simulator

        with serve((study,)) as server:
            yield Endpoint(server.base_url, key_env=None, concurrency=32)
    else:
        yield live_endpoint(profile)


def live_endpoint(profile: str) -> Endpoint:
    """The endpoint of params/<profile>.yaml; COMPENDIUM_BASE_URL, where set, takes the place of its base_url.

    Raises ParamsError for a missing section, an unknown key or a value that cannot be.
    """
    settings = dict(profile_params(profile).get("endpoint", {}))
    if os.environ.get(URL_VARIABLE):
        settings["base_url"] = os.environ[URL_VARIABLE]
    if not settings:
        raise ParamsError(
            f"{shown(PARAMS / f'{profile}.yaml')}: lacks the section `endpoint: {{base_url: …}}`"
        )
    file = shown(PARAMS / f"{profile}.yaml")
    try:
        return Endpoint(**settings)
    except TypeError as error:
        known = ", ".join(Endpoint.__dataclass_fields__)
        raise ParamsError(f"{file}: endpoint: {error}; known keys: {known}") from None
    except EndpointError as error:
        raise ParamsError(f"{file}: endpoint: {error}") from None


def account_path(profile: str) -> Path:
    """The one account of a profile on this machine: accounts/<profile>.sqlite, or below COMPENDIUM_ACCOUNTS."""
    return from_root(os.environ.get(ACCOUNTS) or "accounts") / f"{profile}.sqlite"


def budget_for(profile: str, models) -> Budget | None:
    """A live profile's ceilings and prices, counted on its one account; None for other profiles.

    A model without a price of its own gets `prices: default`. Raises ParamsError for an unknown key, a price or
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
    prices = dict(settings.get("prices", {}))
    default = prices.get("default")
    for model in models if default is not None else ():
        prices.setdefault(model, default)
    try:
        return Budget(**ceilings, prices=prices, account=account_path(profile))
    except BudgetError as error:
        raise ParamsError(f"{file}: {error}") from None
