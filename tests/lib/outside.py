"""R as an outside referee: asked where it is installed, and a test that needs it skipped with the reason where not."""

import shutil
import subprocess

import numpy as np
import pytest


def ask_r(script: str, folder, packages=()) -> np.ndarray:
    """The numbers that an R script hands to `say`, run in `folder`. Skips the test without R or one of its packages."""
    rscript = shutil.which("Rscript")
    needs = "; ".join(f"library({name})" for name in packages) or "1"
    if rscript is None or subprocess.run([rscript, "-e", needs], capture_output=True).returncode:
        wanted = " with ".join(["R", *([", ".join(packages)] if packages else [])])
        pytest.skip(f"{wanted} is not installed here; the recorded figures hold without")
    loaded = "".join(f"suppressPackageStartupMessages(library({name}))\n" for name in packages)
    loaded += 'say <- function(...) cat("=", format(c(...), digits=12), "\\n")\n'
    (folder / "script.R").write_text(loaded + script, encoding="utf-8")  # -e takes a short line only
    done = subprocess.run([rscript, "script.R"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("=")]
    return np.array([float(word) for line in lines for word in line[1:].split()])
