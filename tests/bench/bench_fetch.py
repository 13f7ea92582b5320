"""A first fetch of an archive the size of AlienBench's (444 files, 40 MB) from loopback: as git does, against file by
file; with no delay, and with 50 ms until an answer begins, as over a good line. Every file is checked."""

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compendium.frame import fetch  # noqa: E402
from tests.compendium.frame.served import forge, repository  # noqa: E402

FILES, BYTES = 444, 90_000
WORDS = np.array(
    "alien limbs crest hide tide sulphur sings by pairs and never sleeps under three moons".split()
)


def archive() -> dict:
    """{path: content}: JSON lines of made-up prose, which packs about as well as the real ones."""
    rng, files = np.random.default_rng(0), {}
    for number in range(FILES):
        lines = [
            f'{{"id": {k}, "response": "{" ".join(rng.choice(WORDS, 500))}"}}\n' for k in range(BYTES // 2700)
        ]
        files[f"data/model_{number % 12}/{number}.jsonl"] = "".join(lines).encode()
    return files


def timed(cache: Path, url: str, commit: str, record: dict) -> float:
    os.environ.update({fetch.CACHE_VARIABLE: str(cache), fetch.REMOTE_VARIABLE: url})
    start = perf_counter()
    place = fetch.fetched("bench", f"{url}/a/b", commit, ["data"], record, "a/b")
    elapsed = perf_counter() - start
    assert all((place / fetch.FILES / path).is_file() for path in record)
    return elapsed


def main():
    files = archive()
    record = {path: (len(content), fetch.blob_id(content)) for path, content in files.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a").mkdir()
        commit = repository(folder / "a", files, "b")
        with forge(folder) as server:
            for wait in (0.0, 0.05):
                server.wait = wait
                print(
                    f"{FILES} files, {sum(map(len, files.values())) / 1e6:.0f} MB, {1000 * wait:.0f} ms a request"
                )
                compare(folder / str(wait), server, commit, record)


def compare(folder: Path, server, commit: str, record: dict):
    """Print the time, the requests and the bytes of the three ways, and how they compare with git's."""
    first = None
    for name, git, at_once in (
        ("as git does", fetch._git, 1),
        ("file by file, eight at a time", lambda: None, 8),
        ("file by file, one after the other", lambda: None, 1),
    ):
        server.asked.clear()
        server.sent = 0
        with mock.patch.object(fetch, "_git", git), mock.patch.object(fetch, "AT_ONCE", at_once):
            took = timed(folder / name, server.url, commit, record)
        first = first or took
        sent = f"{len(server.asked):>3} requests, {server.sent / 1e6:.0f} MB"
        print(f"  {name:<34}{took:6.2f} s, ratio {took / first:5.1f}   ({sent})")


if __name__ == "__main__":
    main()
