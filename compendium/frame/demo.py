"""data/demo/: the files with which every notebook runs alone. `python -m compendium.frame.demo` renews them.

They are what the demo's chain makes and its notebooks need, packed with gzip; they also show what a file of
one's own should look like.
"""

import gzip
import subprocess
import sys
from pathlib import Path

from compendium.frame.chain import notebooks
from compendium.frame.files import PACKED, atomic_write, read_bytes
from compendium.frame.params import run_folder
from compendium.frame.paths import DATA, ROOT, below_root, shown

PROFILE = "demo"
FOLDER = DATA / "demo"


def packed(relative: str) -> Path:
    """Where the demo's copy of a file below build/demo lies."""
    return FOLDER / f"{relative}{PACKED}"


def wanted(study: str = "all") -> list[str]:
    """What the demo's notebooks (of a study) need, as paths below the run's folder."""
    books = notebooks("all", PROFILE)
    return sorted(
        {path for book in books for path in book.needs.values() if study in ("all", path.split("/")[0])}
    )


def make(out: Path, study: str = "all") -> None:
    """Run the demo's chain into `out`, as far as `wanted` asks. Raises CalledProcessError where it stops."""
    targets = [str(below_root(out) / relative) for relative in wanted(study)]
    command = [sys.executable, "-m", "compendium", "--profile", PROFILE, "--build", str(out)]
    subprocess.run([*command, "--study", study, "--", *targets], cwd=ROOT, check=True)


def renew(out: Path) -> list[Path]:
    """Copy what `out` holds to data/demo/, remove what nobody needs there, and return the files that changed."""
    keep = {packed(relative): (out / relative).read_bytes() for relative in wanted()}
    changed = [path for path in FOLDER.rglob("*") if path.is_file() and path not in keep]
    for path in changed:
        path.unlink()
    for path, content in keep.items():
        if not path.is_file() or read_bytes(path) != content:
            with atomic_write(path) as temporary:
                temporary.write_bytes(gzip.compress(content, 9, mtime=0))
            changed.append(path)
    return changed


def main() -> int:
    out = run_folder(PROFILE)
    try:
        make(out)
    except subprocess.CalledProcessError as error:
        return error.returncode
    for path in renew(out):
        print(f"{shown(path)}: {'renewed' if path.is_file() else 'removed, no notebook needs it'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
