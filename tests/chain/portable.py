"""The demo's small chain under other floating-point kernels, threads, hash seeds, locales and time zones, compared byte
for byte: `make portable [STUDY=…]`, or `python -m tests.chain.portable STUDY VARIANT …`.

What is compared: cells, tables, figures, verification. What must be empty: standard error but for the chain's own progress,
and every executed notebook's.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from compendium.frame.paths import ROOT, STUDIES, shown

# what this machine's numpy chooses between, under its own names: a name that it does not know turns nothing off
FOUND = np.show_config("dicts")["SIMD Extensions"]["found"]
OLD = {
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",  # exp, log and sin of the C library
}
WITHOUT_512 = " ".join(name for name in FOUND if "512" in name or name == "X86_V4")
VARIANTS = {
    "haswell": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": WITHOUT_512},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX", "TZ": "Pacific/Chatham"},
    "zen": {"OPENBLAS_CORETYPE": "Zen", "PYTHONHASHSEED": "1"},
    "prescott": {**OLD, "PYTHONHASHSEED": "2"},
    "threads2": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "LC_ALL": "C"},
    "threads4": {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "TZ": "America/St_Johns"},
    "turkish": {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
    "german": {"LC_ALL": "de_DE.UTF-8"},
}
COMPARED = ("cells/**/*.csv", "cells.csv", "derived.csv", "verification.csv", "tables/**/*", "figures/**/*")
PROGRESS = re.compile(r"\[\d+ of \d+\] \w+$")


def run(study: str, out: Path, settings: dict) -> list[str]:
    """Run the small chain into `out`; returns what it said on standard error that is not progress."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {key for variant in VARIANTS.values() for key in variant}
    }
    command = [sys.executable, "-m", "compendium", "--smoke", "1", "--study", study, "--build", str(out)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, **settings},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if not PROGRESS.match(line)]
    return (
        said
        + ([f"the chain ended with code {done.returncode}"] if done.returncode else [])
        + list(_warned(out))
    )


def _warned(out: Path):
    for path in sorted((out / "notebooks").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                if output.get("name") == "stderr":
                    yield f"{path.stem}, cell {cell['id']}: {''.join(output['text']).strip().splitlines()[0]}"


def contents(out: Path) -> dict:
    """{place: bytes} of all that is compared."""
    files = {path for pattern in COMPARED for path in out.glob(pattern) if path.is_file()}
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(files)}


def differences(first: dict, second: dict) -> list[str]:
    """In words: which files differ, and of text files the first line that does."""
    found = [f"{place}: made by one run alone" for place in sorted(first.keys() ^ second.keys())]
    for place in sorted(first.keys() & second.keys()):
        if first[place] != second[place]:
            lines = zip(first[place].splitlines(), second[place].splitlines())
            one, other = next(((a, b) for a, b in lines if a != b), (b"", b""))
            found.append(
                f"{place}: {one[:160].decode(errors='replace')} | {other[:160].decode(errors='replace')}"
            )
    return found


def main(arguments) -> int:
    study, *names = arguments or ["all"]
    if study not in ("all", *STUDIES) or not set(names) <= set(VARIANTS):
        print(
            f"error: should be STUDY VARIANT …, of all, {', '.join(STUDIES)} and {', '.join(VARIANTS)}",
            file=sys.stderr,
        )
        return 2
    folder = ROOT / "build" / "portable"
    wrong = run(study, folder / "default", {})
    known = contents(folder / "default")
    print(f"default: {len(known)} files; said: {wrong or 'nothing'}", flush=True)
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower()
    for name in names or VARIANTS:
        language = VARIANTS[name].get("LC_ALL", "")[:5].lower()
        if language not in locales:
            print(f"{name}: left out, the locale {VARIANTS[name]['LC_ALL']} is not installed")
            continue
        said = run(study, folder / name, VARIANTS[name])
        found = differences(known, contents(folder / name))
        wrong += said + found
        print(
            f"{name}: {len(found)} files differ; said: {said or 'nothing'}",
            *found[:12],
            sep="\n  ",
            flush=True,
        )
    print(f"results in {shown(folder)}")
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
