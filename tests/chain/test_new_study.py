"""The checklist "A new study" of CONTRIBUTING.md, walked through with a toy: dice that models throw."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise

import pandas as pd
import pytest

from compendium.frame.paths import ROOT
from tests.small_project import COLUMNS, small_project, write_notebook

STUDY = "dice"
ASK = '''
from compendium.asking.request import Request


def requests(p):
    """One throw a number."""
    messages = [{"role": "user", "content": "Throw a die. Answer with the number alone."}]
    return [Request(p.model, messages, seed=p.seed + i, sample=i, tag={"throw": i}) for i in range(p.n_throws)]
'''
STAGES = '''
import pandas as pd

from compendium.asking.study import ask_all
from compendium.studies.dice.ask import requests


def throw(p, *, source, profile, out):
    """The throws: columns throw, eyes."""
    replies, report = ask_all("dice", requests(p), "throwing", source=source, profile=profile, out=out)
    rows = [[reply.request.tag["throw"], int(reply.text)] for reply in replies if reply.valid]
    return pd.DataFrame(rows, columns=["throw", "eyes"]), report


def planned(p, out):
    """{stage: requests} of a live run."""
    return {"throwing": requests(p)}
'''
SIMULATED = """
from compendium.asking.simulated.reply import Reply
from compendium.frame.chance import Stream


def models():
    return ["toy/die"]


def respond(request):
    return Reply(str(1 + Stream(request["model"], request["seed"]).below(6)))
"""
LOAD = '''
from compendium.frame.files import read_csv


def load(throws):
    """The throws in a file: columns throw, eyes. Raises ValueError naming the file and what it lacks."""
    return read_csv(throws, ["throw", "eyes"])
'''
OPEN = (
    "from compendium.frame.page import Page\n"
    'page = Page("dice", "{name}", profile=profile, out=out)\n'
    "p = page.params({keys})\n{code}\npage.close()"
)
GENERATE = OPEN.format(
    name="01_generate",
    keys="model=model, n_throws=n_throws, seed=seed",
    code="from compendium.studies.dice.stages import throw\n"
    "throws, report = throw(p, source=source, profile=profile, out=out)\n"
    "page.save_csv(throws, 'dice/throws.csv')",
)
SCORES = OPEN.format(
    name="03_scores",
    keys="",
    code="from compendium.frame.cells import grid, published\n"
    "from compendium.studies.dice.load import load\n"
    "page.cell('table-1', 'die', 'mean', load(throws)['eyes'].mean())\n"
    "printed = grid(published('dice'), 'table-1').loc['die']\n"
    "page.derived('table-1', 'die', 'sum', printed['n'] * printed['mean'])",
)
PRINTED = """dice,table-1,die,n,4,,,0,,Table 1,exact,,whole,number
dice,table-1,die,mean,3.5,,,1,,Table 1,exact,,whole,number
dice,table-1,die,sum,14,,,0,,Table 1,exact,,whole,number
"""


def write(folder, place, text):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def append(folder, place, text):
    path = folder / place
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def name_it(folder):
    path = folder / "compendium/frame/paths.py"
    named = path.read_text(encoding="utf-8").replace("STUDIES = (", f'STUDIES = ("{STUDY}", ')
    path.write_text(named, encoding="utf-8")


def notebooks(folder):
    write_notebook(
        folder / "notebooks/dice/01_generate.ipynb",
        {"makes": ["dice/throws.csv"], "data": ["instruments/dice"]},
        'source = "simulated"\nmodel = None\nn_throws = None\nseed = None\n',
        GENERATE,
    )
    write_notebook(
        folder / "notebooks/dice/03_scores.ipynb",
        {"needs": {"throws": "dice/throws.csv"}, "data": ["published/dice.csv"]},
        'throws = "data/demo/dice/throws.csv.gz"\n',
        SCORES,
    )


def python(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# by the path that a step of the checklist names first
STEPS = {
    "compendium/frame/paths.py": name_it,
    "params/<study>.yaml": lambda folder: write(
        folder, "params/dice.yaml", "model: toy/die\nn_throws: 4\nseed: 7\n"
    ),
    "params/types.yaml": lambda folder: append(
        folder, "params/types.yaml", "\ndice: {model: text, n_throws: {type: whole, least: 1}, seed: whole}\n"
    ),
    "data/published/<study>.csv": lambda folder: write(folder, "data/published/dice.csv", COLUMNS + PRINTED),
    "data/instruments/<study>/": lambda folder: write(
        folder, "data/instruments/dice/README.md", "A die has six faces (any casino).\n"
    ),
    "compendium/studies/<study>/ask.py": lambda folder: write(folder, "compendium/studies/dice/ask.py", ASK),
    "compendium/studies/<study>/stages.py": lambda folder: write(
        folder, "compendium/studies/dice/stages.py", STAGES
    ),
    "compendium/studies/<study>/simulated.py": lambda folder: write(
        folder, "compendium/studies/dice/simulated.py", SIMULATED
    ),
    "compendium/studies/<study>/load.py": lambda folder: write(
        folder, "compendium/studies/dice/load.py", LOAD
    ),
    "notebooks/<study>/": notebooks,
    "data/demo/<study>/": lambda folder: python(folder, "compendium.frame.demo"),
    "docs/studies.yaml": lambda folder: append(
        folder, "docs/studies.yaml", "dice: {title: Dice, paper: Of dice, question: Is it fair?}\n"
    ),
}


def checklist() -> list[str]:
    """The first path of each step."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## A new study\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.M)


def test_the_checklist_has_these_steps():
    assert checklist() == list(STEPS)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = small_project(tmp_path_factory.mktemp("toy"), {STUDY: ""})
    write(folder, "docs/studies.yaml", "")
    for name in ("held.yaml",):
        write(folder, f"data/published/{name}", (ROOT / "data/published" / name).read_text(encoding="utf-8"))
    for step in checklist():
        STEPS[step](folder)
    return folder


def test_it_runs_up_to_verification(toy):
    python(toy, "compendium", "--study", STUDY)
    cells = pd.read_csv(toy / "build/demo/cells.csv").set_index(["exhibit", "row", "column"])["value"]
    throws = pd.read_csv(toy / "build/demo/dice/throws.csv")["eyes"]
    assert len(throws) == 4 and throws.between(1, 6).all()
    assert cells["table-1", "die", "mean"] == throws.mean()
    found = pd.read_csv(toy / "build/demo/verification.csv").set_index("column")["outcome"]
    assert found["sum"] == "agrees" and found["mean"] == "not computed"


def test_its_analysis_runs_alone_from_the_packed_file(toy):
    path = toy / "notebooks/dice/03_scores.ipynb"
    python(toy, "compendium.frame.refresh", str(path))
    book = json.loads(path.read_text(encoding="utf-8"))
    assert all(cell["execution_count"] for cell in book["cells"])
    assert (toy / "build/lab/cells/dice/03_scores.csv").is_file()


def test_numbers_of_the_checklist_count_up():
    text = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## A new study\n")[1].split("\n## ")[0]
    )
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.M)]
    assert numbers[0] == 1 and all(b == a + 1 for a, b in pairwise(numbers))
