"""Where questions go: an OpenAI-compatible endpoint, and the key that never leaves the environment."""

import base64
import importlib.util
import ipaddress
import logging
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from compendium.asking.errors import EndpointError

HIDDEN = "[key hidden]"
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")
PROXIES = [name for word in ("ALL", "HTTPS", "HTTP") for name in (f"{word}_PROXY", f"{word.lower()}_proxy")]
SHORTEST_KEY = 8  # a shorter "key" is a placeholder ("none", "x"); hiding it would eat ordinary words


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint and how to treat it.

    Parameters
    ----------
    base_url : up to and with the version, e.g. "https://openrouter.ai/api/v1".
    key_env : name of the environment variable that holds the key, read when a stage starts; None: no key
        needed.
    concurrency : calls under way at once.
    timeout : seconds a call may take from first byte sent to last byte read.
    max_retries : further tries of a call that met a fault, before it is given up for this run.
    backoff : seconds before the first retry, doubled each time; None: 0.5, and 0.02 of simulated models.
    longest_wait : seconds; the longest Retry-After that is waited for, and the cap of the backoff.
    patience : seconds without any reply after which an endpoint or model that only fails is given up; None:
        120, and 5 of simulated models.
    same_as : other addresses of the same service, whose replies a ledger may hold beside this one's.
    aliases : {model asked: [names it may answer as]} beyond what `names.same_model` recognises.
    max_tokens_name : the field of the body that bounds a reply.
    prices : {"input", "output"} in dollars per million tokens of every model here; "listed": as its own /models says;
        "unknown": none, and models without a price of their own are refused; None: the profile's (on this machine: 0).
    simulated : whether our own simulated models answer (they need no patience, and move from port to port); None:
        whether it is on this machine.

    Raises EndpointError for a URL or number that cannot be.
    """

    base_url: str
    key_env: str | None = "OPENROUTER_API_KEY"
    concurrency: int = 16
    timeout: float = 60.0
    max_retries: int = 20
    backoff: float | None = None
    longest_wait: float = 120.0
    patience: float | None = None
    same_as: tuple = ()
    aliases: Mapping = field(default_factory=dict)
    max_tokens_name: str = "max_tokens"
    prices: Mapping | str | None = None
    simulated: bool | None = None

    def __post_init__(self):
        if isinstance(self.prices, str) and self.prices not in ("listed", "unknown"):
            raise EndpointError("prices should be {input: …, output: …}, listed or unknown")
        # What stands in the wrong place may be a key: neither message says what it is.
        if self.key_env is not None and not _VARIABLE.fullmatch(str(self.key_env)):
            raise EndpointError(
                "key_env should be the NAME of an environment variable that holds the key, such as "
                "OPENROUTER_API_KEY (capital letters, digits and _); what stands there is no such name"
            )
        parts = urlsplit(str(self.base_url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EndpointError(
                "base_url should be like https://openrouter.ai/api/v1; what stands there is no such address"
            )
        if parts.username or parts.password or parts.query:
            raise EndpointError(
                "base_url should hold no user name, password or query: the key comes from the "
                "environment variable that key_env names"
            )
        if self.simulated is None:
            object.__setattr__(self, "simulated", self.loopback)
        for name, least in (("concurrency", 1), ("max_retries", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise EndpointError(f"{name} should be a whole number of at least {least}, not {value!r}")
        if isinstance(self.same_as, str) or not all(isinstance(url, str) for url in self.same_as):
            raise EndpointError("same_as should be a list of addresses like base_url")
        if not isinstance(self.aliases, Mapping) or any(
            isinstance(names, str) for names in self.aliases.values()
        ):
            raise EndpointError("aliases should be {model asked: [names it may answer as]}")
        for name in ("timeout", "longest_wait", "backoff", "patience"):
            value = getattr(self, name)
            optional = name in ("backoff", "patience")
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf
            if not (value is None and optional) and not good:
                raise EndpointError(f"{name} should be a number of seconds above 0, not {value!r}")

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine: no proxy is needed."""
        host = urlsplit(self.base_url).hostname
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def first_backoff(self) -> float:
        """Seconds before the first retry."""
        return self.backoff if self.backoff is not None else (0.02 if self.simulated else 0.5)

    @property
    def longest_backoff(self) -> float:
        """Seconds before any retry whose wait the endpoint does not set."""
        return min(self.longest_wait, 0.5 if self.simulated else 30.0)

    @property
    def patience_s(self) -> float:
        """Seconds without any reply after which a model that only fails is given up."""
        return self.patience if self.patience is not None else (5.0 if self.simulated else 120.0)

    def check_proxy(self) -> None:
        """Raises EndpointError for a proxy in the environment that the client cannot speak to, naming the variable."""
        for name in () if self.loopback else PROXIES:
            scheme, separator, _ = os.environ.get(name, "").partition("://")
            socks = scheme in ("socks5", "socks5h") and importlib.util.find_spec("socksio")
            if separator and scheme not in ("http", "https") and not socks:
                raise EndpointError(
                    f"the environment variable {name} names a proxy of the kind {scheme}://, which is not spoken "
                    f"here: name one of http://, or unset {name} (nothing was sent to {self.base_url})"
                )

    def key(self) -> "Key":
        """The key, from the environment. Raises EndpointError where the variable is not set."""
        if self.key_env is None:
            return Key("none", None)
        value = os.environ.get(self.key_env, "").strip()
        if not value:
            raise EndpointError(
                f"the environment variable {self.key_env} is not set: export {self.key_env}=… in the "
                f"shell that starts the run (nothing was sent to {self.base_url})"
            )
        if not value.isascii() or not value.isprintable():
            raise EndpointError(f"the environment variable {self.key_env} holds characters that no key has")
        return Key(value, self.key_env)


_TALKATIVE = ("openai", "httpx", "httpx2", "httpcore", "httpcore2")  # an OpenAI client logs under these


class Key:
    """A key that shows itself to nobody but the one who calls `reveal`."""

    __slots__ = ("_value", "_name", "_shapes")

    def __init__(self, value: str, name: str | None):
        self._value, self._name = value, name
        self._shapes = (
            re.compile("|".join(map(_shape, [value, *_base64(value)])))
            if len(value) >= SHORTEST_KEY
            else None
        )

    def reveal(self) -> str:
        """The key itself, for the client's constructor."""
        return self._value

    def hide(self, text):
        """`text` with the key blotted out, wherever it is quoted, also as JSON, an address or base64 write it; None
        stays None.
        """
        return text if text is None or self._shapes is None else self._shapes.sub(HIDDEN, text)

    def guard_logs(self):
        """Blot the key out of what the HTTP libraries log (a server may echo it); returns the way back."""
        guard = _Guard(self)
        loggers = [
            logging.getLogger(name)
            for name in sorted(logging.root.manager.loggerDict)
            if name.split(".")[0] in _TALKATIVE
        ]
        for logger in loggers:
            logger.addFilter(guard)

        def lift():
            for logger in loggers:
                logger.removeFilter(guard)

        return lift

    def __repr__(self):
        return f"<key from {self._name}>" if self._name else "<no key>"

    __str__ = __repr__

    def __reduce__(self):
        raise TypeError("a key is never stored")


def _shape(text: str) -> str:
    """A pattern of `text`, each letter as it is, or as JSON or an address (%2B) writes it, once or several times."""

    def letter(one, place):
        code = "".join(
            f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{ord(one):02x}"
        )
        plain = ("" if place == 0 else r"\\*") + re.escape(one)
        return rf"(?:{plain}|%(?:25)*{code}|\\+u00{code})"

    return "".join(letter(one, place) for place, one in enumerate(text))


def _base64(key: str) -> list[str]:
    """What base64 makes of `key` wherever it stands in a longer text, both alphabets, without the ends that hang on
    its neighbours.
    """
    found = []
    for before in range(3):
        whole = base64.b64encode(bytes(before) + key.encode()).decode()
        found.append(whole[-(-before * 8 // 6) : (before + len(key)) * 8 // 6])
    return [*found, *(text.replace("+", "-").replace("/", "_") for text in found)]


class _Guard(logging.Filter):
    """Blots a key out of log records."""

    def __init__(self, key: Key):
        super().__init__()
        self._key = key

    def filter(self, record):
        text = record.getMessage()
        hidden = self._key.hide(text)
        if hidden != text:
            record.msg, record.args = hidden, None
        return True
