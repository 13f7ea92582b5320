"""The clients of a stage, one an endpoint: what stops one stops all, and each endpoint keeps its own pace."""
# Tested by tests/compendium/asking/test_directory.py.

import asyncio
from collections import Counter

from compendium.asking.client import Client
from compendium.asking.directory import Directory


class Clients:
    """What a stage asks through, whichever endpoint serves a model; `Client` says the rest."""

    def __init__(self, where: Directory, account, record, stage: str):
        self._where, self._new = where, lambda endpoint: Client(endpoint, account, record, stage, where.model)
        self._clients, self._pace = {}, {}
        self.stopping = None

    @property
    def concurrency(self) -> int:
        """Calls under way at once, over all endpoints."""
        return sum(endpoint.concurrency for endpoint in self._where.endpoints.values())

    async def ask(self, request, attempt: int, stored):
        """See `Client.ask`."""
        name = self._where.model(request.model).endpoint
        if name not in self._clients:
            endpoint = self._where.endpoints[name]
            self._clients[name], self._pace[name] = (
                self._new(endpoint),
                asyncio.Semaphore(endpoint.concurrency),
            )
            if self.stopping is not None:
                self._clients[name].stop(self.stopping)
        async with self._pace[name]:
            try:
                return await self._clients[name].ask(request, attempt, stored)
            finally:
                if self._clients[name].stopping is not None:
                    self.stop(self._clients[name].stopping)

    def stop(self, error) -> None:
        """Make no further call anywhere. The first error stays."""
        self.stopping = self.stopping or error
        for client in self._clients.values():
            client.stop(self.stopping)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()

    @property
    def faults(self) -> Counter:
        """(model, kind) -> count, this run."""
        return sum((client.faults for client in self._clients.values()), Counter())

    @property
    def calls(self) -> Counter:
        """model -> calls, this run."""
        return sum((client.calls for client in self._clients.values()), Counter())

    @property
    def adapted(self) -> set:
        """(model, what was changed for it)."""
        return set().union(*(client.adapted for client in self._clients.values()))
