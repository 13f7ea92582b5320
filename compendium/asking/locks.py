"""One holder at a time: a lock file that frees itself when its process ends."""
# Tested by tests/compendium/asking/test_ledger.py.

import contextlib
import os
import time

from compendium.asking.errors import LedgerError
from compendium.frame.system import lock


@contextlib.contextmanager
def exclusive(path, what: str, wait: float = 0.0):
    """Hold the lock file `path`; it frees itself when the process ends, however it ends.

    Raises LedgerError where another still holds it after `wait` seconds, naming `what` and the process.
    """
    until = time.monotonic() + wait
    try:
        handle = open(path, "a+", encoding="ascii")  # noqa: SIM115 - held for as long as the lock is
    except OSError as error:
        raise LedgerError(
            f"{what}: cannot be written ({error.strerror}); check the folder's permissions"
        ) from None
    with handle:
        while True:
            try:
                lock(handle)
                break
            except OSError:
                if time.monotonic() >= until:
                    handle.seek(0)
                    holder = handle.read().strip() or "unknown"
                    raise LedgerError(
                        f"{what} is in use by process {holder}; wait for it to end, or stop it and run again"
                    ) from None
                time.sleep(0.2)
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield
