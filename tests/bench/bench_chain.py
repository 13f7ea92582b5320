"""From an edit to a verdict, against this project's own earlier way (commit fbeb891: whole modules, cold kernels).

Both trees are laid out beside each other and run the same chain in turn; figures are wall and CPU seconds and
ratios. Needs the repository's history (`git archive`). STUDY and SMOKE choose the chain: default alienbench, 1.
"""

import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEER = "fbeb891"
STUDY, SMOKE = os.environ.get("STUDY", "alienbench"), os.environ.get("SMOKE", "1")
COMMENT = "lib/ranks.py"  # a module that both trees have, at the same place
ONE = ("lib/subsets.py", "def judge_leave_one_out(")  # a function that one notebook of the study reaches


def lay_out(commit: str, folder: Path) -> Path:
    held = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(held)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def chain(tree: Path) -> tuple[float, float]:
    """(wall, CPU) seconds of `make tables` in a tree."""
    module = "compendium" if (tree / "compendium").is_dir() else "lib.run"
    command = [sys.executable, "-m", module, "--study", STUDY, "--smoke", SMOKE]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{tree}: {ran.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def edit(tree: Path, name: str, change) -> None:
    path = tree / name
    path.write_text(change(path.read_text()))


def in_function(text: str, head: str) -> str:
    """A statement that changes nothing of what is computed, put at the end of the function's head line's body."""
    at = text.index(head)
    body = text.index('"""', text.index('"""', at) + 3) + 3
    return f"{text[:body]}\n    _ = 0{text[body:]}"


STEPS = (
    ("cold", None, "1/2"),
    ("nothing to do", None, "2 s"),
    (
        "a comment in lib/ranks.py",
        lambda tree: edit(tree, COMMENT, lambda text: text + "\n# a comment\n"),
        "3 s",
    ),
    (
        "one function of one notebook",
        lambda tree: edit(tree, ONE[0], lambda text: in_function(text, ONE[1])),
        "1/8",
    ),
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        trees = [lay_out(commit, Path(folder) / commit[:4]) for commit in ("HEAD", PEER)]
        print(f"{STUDY}, SMOKE={SMOKE}: seconds of wall (CPU), now against {PEER}")
        for label, change, mark in STEPS:
            times = []
            for tree in trees:
                if change:
                    change(tree)
                times.append(chain(tree))
            (wall, cpu), (peer_wall, peer_cpu) = times
            print(
                f"{label:30s} {wall:6.1f} ({cpu:6.1f})  {peer_wall:6.1f} ({peer_cpu:6.1f})  "
                f"ratio {wall / peer_wall:.2f} ({cpu / peer_cpu:.2f})  mark {mark}"
            )


if __name__ == "__main__":
    main()
