"""Writing files whole: to a temporary name beside the target, then moved."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pandas as pd


@contextmanager
def atomic_write(path, suffix=""):
    """Yield a temporary path beside `path`; move it there on success, remove it on an error.

    A reader sees the old file or the new one, never half of either. `suffix` (".png") is for writers
    that choose a format by the name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; the finished file gets the ordinary mode of this process.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomic(path, text: str) -> Path:
    """Write `text` (UTF-8, newlines as given) to `path` whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
    return Path(path)


def write_csv_atomic(path, frame: pd.DataFrame, index: bool = False) -> Path:
    """Write `frame` as CSV whole or not at all; floats keep 12 significant digits.

    Twelve digits hold every number a paper could print and hide the last bits, in which linear algebra
    differs from one processor to the next.
    """
    with atomic_write(path) as temporary:
        frame.to_csv(temporary, index=index, float_format="%.12g", lineterminator="\n")
    return Path(path)
