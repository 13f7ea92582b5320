"""For every test and notebook: `lib` of this checkout, one thread a process."""

import os
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent)
# notebooks run in kernels of their own, in their own folders: they find `lib` through the environment
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
