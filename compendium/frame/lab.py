"""JupyterLab on this checkout's notebooks and code: `python -m compendium.frame.lab [OPTIONS OF JUPYTERLAB]`."""

import os
import sys

from compendium.frame.paths import NOTEBOOKS, ROOT, SPARE_HOME, check_place
from compendium.frame.system import use_writable_home

START = NOTEBOOKS / "00_start_here.ipynb"


def main(options) -> int:
    try:
        check_place()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    use_writable_home(SPARE_HOME)
    # a kernel starts in its notebook's folder: without this it would import what the environment carries
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.execv(
        sys.executable,
        [sys.executable, "-m", "jupyterlab", f"--notebook-dir={ROOT}", *(options or [str(START)])],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
