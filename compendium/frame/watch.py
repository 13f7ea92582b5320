"""Run the chain again at each save: `make watch` (`python -m compendium.frame.watch`, options as of the chain).

One warm parent serves every run (`compendium.frame.warm`), so a run starts where its first stale notebook does.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from compendium.frame import warm
from compendium.frame.paths import ROOT

WATCHED = ("lib", "compendium", "notebooks", "params", "data", "Snakefile")
ENDINGS = {".py", ".ipynb", ".yaml", ".yml", ".csv", ".txt", ".md", ".json", ".gz", ""}
EVERY = 0.5  # seconds between two looks


def state(root: Path = ROOT) -> dict:
    """{file: when it was last changed} of everything that a run can depend on; editors' hidden files left out."""
    found = {}
    for name in WATCHED:
        place = root / name
        for path in [place] if place.is_file() else place.rglob("*"):
            hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
            if path.suffix in ENDINGS and not hidden and path.is_file():
                found[str(path)] = path.stat().st_mtime_ns
    return found


def changed(before: dict, after: dict) -> list[str]:
    """The files, relative to the project, in which two states differ."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return sorted(os.path.relpath(name, ROOT) for name in names)


def watch(arguments, *, most: int | None = None) -> int:
    """Run the chain, then again after each save (at most `most` runs: None, until Ctrl-C)."""
    runs = 0
    try:
        while True:
            before = state()
            subprocess.run([sys.executable, "-m", "compendium", *arguments], cwd=ROOT, check=False)
            runs += 1
            if runs == most:
                return 0
            print("Watching; Ctrl-C ends it.", file=sys.stderr, flush=True)
            while not (saved := changed(before, state())):
                time.sleep(EVERY)
            print(
                f"Saved: {', '.join(saved[:3])}{' …' if len(saved) > 3 else ''}", file=sys.stderr, flush=True
            )
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    if warm.available():
        os.execv(
            sys.executable,
            [
                sys.executable,
                "-m",
                "compendium.frame.warm",
                sys.executable,
                "-m",
                __spec__.name,
                *sys.argv[1:],
            ],
        )
    sys.exit(watch(sys.argv[1:]))
