"""A project small enough to run in a test: this one's `lib` and chain, and the notebooks that the test writes."""

import json
import shutil

from compendium.frame.paths import ROOT

BASE = 'profile = "demo"\nout = "build/lab"\n'
PAGE = (
    "from compendium.frame.page import Page\n"
    'page = Page("alienbench", "{name}", profile=profile, out=out)\n{code}\npage.close()'
)
COLUMNS = "study,exhibit,row,column,value,lo,hi,decimals,note,place,kind,tolerance,archive,print\n"


def small_project(folder, params: dict, printed: str = "", files=()):
    """Make it in `folder`: `params` {study: text of its YAML}, `printed` the rows of data/published/alienbench.csv,
    `files` what else to copy from this project's top."""
    for room in ("lib", "compendium"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", *files):
        shutil.copy(ROOT / name, folder)
    for name in ("params", "data/published", *(f"notebooks/{study}" for study in params)):
        (folder / name).mkdir(parents=True)
    shutil.copy(ROOT / "params" / "types.yaml", folder / "params")
    for profile, source in (("demo", "simulated"), ("released", "archive"), ("live", "endpoint")):
        (folder / "params" / f"{profile}.yaml").write_text(f"source: {source}\n")
    for study, text in params.items():
        (folder / "params" / f"{study}.yaml").write_text(text)
    if printed:
        (folder / "data/published/alienbench.csv").write_text(COLUMNS + printed)
    return folder


def write_notebook(path, meta, parameters, code):
    """A notebook of two cells: its parameters (beside `BASE`) and its code; `meta` says what it needs and makes."""

    def cell(name, source, tags=()):
        return {
            "cell_type": "code",
            "id": name,
            "metadata": {"tags": list(tags)},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }

    path.write_text(
        json.dumps(
            {
                "cells": [cell("parameters", BASE + parameters, ["parameters"]), cell("code", code)],
                "metadata": {
                    "compendium": {"study": path.parent.name, **meta},
                    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
                },
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
