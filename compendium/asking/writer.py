"""Group commit: replies that arrive while one commit is under way share the next.

A commit that waits for the disk costs the same for one row as for a hundred. With one commit at a time and
everything that has arrived meanwhile in the next, each reply waits for at most two commits and the disk sets
no limit on the rate.
"""
# Tested by tests/compendium/asking/test_stage.py.

import asyncio
from concurrent.futures import ThreadPoolExecutor


class GroupWriter:
    """Writes to a ledger from one event loop; `write` returns when its operations are on disk."""

    def __init__(self, ledger):
        self._ledger = ledger
        self._pending = []
        self._busy = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        try:
            while self._busy is not None:
                await asyncio.wait([self._busy])
        finally:
            self._thread.shutdown()

    async def write(self, *operations) -> None:
        """Write operations (see `Ledger.commit`) in one transaction. Raises LedgerError where that fails."""
        done = asyncio.get_running_loop().create_future()
        self._pending.append((operations, done))
        if self._busy is None:
            self._busy = asyncio.create_task(self._commit())
        await asyncio.shield(done)  # a cancelled caller must not cancel what is being written

    async def _commit(self):
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                operations = [operation for group, _ in batch for operation in group]
                try:
                    await asyncio.get_running_loop().run_in_executor(
                        self._thread, self._ledger.commit, operations
                    )
                except Exception as error:
                    for _, done in batch:
                        if not done.done():
                            done.set_exception(error)
                            done.exception()  # seen, even where the caller was cancelled
                else:
                    for _, done in batch:
                        if not done.done():
                            done.set_result(None)
        finally:
            self._busy = None
