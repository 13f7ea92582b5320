"""Chance that depends on content alone.

A simulated model must give the same answer to the same request whatever the order, the number of connections
or the process that serves it. So nothing here has a state to be advanced by others: a draw is the hash of
what is asked. The hash (BLAKE2b) is part of its specification, so the draws are the same on every machine and
Python version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from statistics import NormalDist

_SEPARATOR = "\x1f"
_SCALE = 2.0**-53
_NORMAL = NormalDist()


def digest(*parts: object, size: int = 16) -> bytes:
    """Hash of the parts, in their order: `size` bytes (1 to 64). ("ab", "c") and ("a", "bc") differ."""
    content = _SEPARATOR.join(map(str, parts))
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def uniform(*parts: object) -> float:
    """A number in [0, 1) drawn by the content of `parts`: uniform over contents, fixed for each."""
    return (int.from_bytes(digest(*parts, size=8), "little") >> 11) * _SCALE


def normal(*parts: object) -> float:
    """A standard normal deviate drawn by the content of `parts`."""
    return _NORMAL.inv_cdf(uniform(*parts) * (1 - 2.0**-50) + 2.0**-51)


class Stream:
    """A private stream of draws that starts from the content of `parts`.

    Only its owner advances it, so the n-th draw is a function of (`parts`, n).
    """

    def __init__(self, *parts: object):
        self._key = digest(*parts, size=32)
        self._block = 0
        self._pool: list[int] = []

    def _word(self) -> int:
        if not self._pool:
            raw = hashlib.blake2b(self._key + self._block.to_bytes(8, "little"), digest_size=64).digest()
            self._pool = [int.from_bytes(raw[at : at + 8], "little") >> 11 for at in range(0, 64, 8)]
            self._block += 1
        return self._pool.pop()

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        return self._word() * _SCALE

    def below(self, n: int) -> int:
        """The next integer in 0 … n-1. Raises ValueError if n < 1."""
        if n < 1:
            raise ValueError(f"below(n) needs n of at least 1, got {n}")
        return int(self._word() * _SCALE * n)

    def choice(self, items: Sequence):
        """One of `items`, each as likely."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence) -> list:
        """The items in a random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
