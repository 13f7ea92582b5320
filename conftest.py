"""For every test and notebook: `lib` of this checkout, one thread a process."""

import os
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parent)
# notebooks run in kernels of their own, in their own folders: they find `lib` through the environment
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The words of every figure that a committed notebook saves can be read (`compendium.frame.legible`)."""
    figures = {
        "COMPENDIUM_FIGURES": "compendium.frame.legible",
        "COMPENDIUM_ILLEGIBLE": f"{ROOT}/tests/chain/illegible.txt",
    }
    for name, value in figures.items():
        if item.path.suffix == ".ipynb":
            os.environ[name] = value  # the kernel that starts now inherits it
        else:
            os.environ.pop(name, None)
