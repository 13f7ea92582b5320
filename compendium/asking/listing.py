"""What an endpoint's own /models says of its prices."""

import functools
import math

import httpx

from compendium.asking.connection import authorities
from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import EndpointError

SECONDS = 30


def listed(endpoint: Endpoint) -> dict:
    """{model: {"input", "output"}} in dollars per million tokens, of the models whose price an endpoint lists.

    Prices are read as OpenRouter gives them (`pricing: {prompt, completion}`, dollars a token). Asked for once. Raises
    EndpointError where there is no such list.
    """
    return _listed(endpoint.base_url, endpoint.key_env)


@functools.cache
def _listed(base_url, key_env) -> dict:
    endpoint = Endpoint(base_url, key_env)
    url = f"{endpoint.base_url.rstrip('/')}/models"
    key = endpoint.key()
    try:
        answer = httpx.get(
            url,
            headers={"authorization": f"Bearer {key.reveal()}"},
            timeout=SECONDS,
            trust_env=not endpoint.loopback,
            verify=authorities(),
        )
        answer.raise_for_status()
        entries = answer.json()["data"]
        found = {entry["id"]: _price(entry.get("pricing")) for entry in entries if isinstance(entry, dict)}
    except (httpx.HTTPError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EndpointError(
            f"{url}: gives no list of models ({key.hide(str(error))}), and prices are `listed`"
        ) from None
    return {model: price for model, price in found.items() if price}


def _price(pricing):
    try:
        price = {"input": float(pricing["prompt"]) * 1e6, "output": float(pricing["completion"]) * 1e6}
    except (TypeError, ValueError, KeyError):
        return None
    return price if all(math.isfinite(value) and value >= 0 for value in price.values()) else None
