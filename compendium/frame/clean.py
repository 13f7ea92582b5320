"""Notebooks as git should see them: `python -m compendium.frame.clean` from standard input to standard output.

.gitattributes names it as the filter of notebooks; `python -m compendium.frame.clean install` (which `make setup` does) tells
git of it. A re-run leaves no noise then: when a cell ran, and which Python and kernel ran it, is no change.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from compendium.frame.paths import ROOT

NOISE = (
    "execution",
    "papermill",
    "collapsed",
    "ExecuteTime",
)  # of a cell or the notebook, written by whoever ran it
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def tidy(book: dict) -> dict:
    """The notebook (nbformat 4, changed in place) without what hangs on when and where it ran."""
    for part in (book, *book["cells"]):
        for name in NOISE:
            part["metadata"].pop(name, None)
    book["metadata"].update(kernelspec=dict(KERNEL), language_info={"name": "python"})
    return book


def clean(text: str) -> str:
    """A notebook's text as the committed ones are written; what is no notebook comes back as it is."""
    try:
        book = json.loads(text)
        tidy(book)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def install() -> None:
    """Tell git, in this checkout's own settings, how notebooks are filtered. Does nothing outside a git checkout."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = f'"{Path(sys.executable).as_posix()}" -m compendium.frame.clean'
        subprocess.run(["git", "config", "filter.notebook.clean", command], cwd=ROOT, check=True)


def main(arguments) -> int:
    if arguments == ["install"]:
        install()
        return 0
    sys.stdout.buffer.write(clean(sys.stdin.buffer.read().decode("utf-8")).encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
