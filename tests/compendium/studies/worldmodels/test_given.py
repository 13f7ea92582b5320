"""A folder of candidates that a reader has: what is taken for what, on a made-up tree."""

import json

import pytest

from compendium.studies.worldmodels.given import GivenError, read_given
from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.stages import judge

SUBJECTS = {"openai/gpt-5.6-sol": {"label": "GPT-5.6 Sol"}, "qwen/qwen3.8-27b": {"label": "Qwen 3.8 27B"}}
CONDITIONS = ["anonymised", "located", "native_american"]
MODULE = """from abstract_posg import AbstractPOSG

class Coin(AbstractPOSG):
    def players(self): return ["ann"]
    def initial_state(self): return "start"
    def is_terminal(self, state): return state != "start"
    def actions(self, state, player): return ["heads", "tails"]
    def transition(self, state, joint_action): return {"won": 0.5, "lost": 0.5}
    def observation(self, player, state, joint_action, next_state): return next_state
"""
WRAPPED = f"Here it is.\n```python\n{MODULE}```\nEnjoy!"
DOCUMENT = json.dumps(corpus()["G1"].game.document())
TREE = {
    "README.md": "Results for G1 of gpt-5.6-sol.",
    "abstract_posg.py": "class AbstractPOSG:\n def players(self): ...\n def actions(self): ...\n def transition(self): ...",
    "logo_G1.png": b"\x89PNG\xff\xfe",
    "GPT-5.6_Sol/G1/run_2/model.py": MODULE,
    "GPT-5.6_Sol/G1/run_2/repair_1/model.py": MODULE,
    "GPT-5.6_Sol/G1/copy_run2.py": MODULE,
    "games/g04/qwen3.8-27b.py": MODULE,
    "games/g04/qwen3.8-27b-again.py": MODULE,
    "flat/qwen_qwen3.8-27b__S2.txt": WRAPPED,
    "flat/api.json": json.dumps(
        {"choices": [{"message": {"content": f"# case: S3\n# model: Qwen 3.8 27B\n{MODULE}"}}]}
    ),
    "culture/C9/native_american/gpt-5.6-sol.json": DOCUMENT,
    "culture/C9/gpt-5.6-sol.md": f"```json\n{DOCUMENT}\n```",
    "culture/C9/qwen3.8-27b.py": MODULE,
    "flat/gpt-5.6-sol_G1_and_G2.py": MODULE,
    "flat/gpt-4o_G1.py": MODULE,
    "flat/gpt-5.6-sol_G99.py": MODULE,
    "GPT-5.6_Sol/G1/run_2/helper.py": "RATE = 0.5",
    "GPT-5.6_Sol/G1/run_2/first_try.txt": "I would rather not.",
    "flat/gpt-5.6-sol_G3.txt": "I cannot help with that.",
}


@pytest.fixture
def tree(tmp_path):
    for name, content in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def test_what_is_taken_for_what(tree):
    found = read_given(tree, SUBJECTS, CONDITIONS)
    report = found.report.set_index("file")
    assert set(report.index) == set(TREE)
    taken = report[report["taken"] == "yes"]
    keys = ["track", "model", "case", "condition", "run", "round"]
    gpt, qwen = SUBJECTS
    assert {name: tuple(row) for name, row in zip(taken.index, taken[keys].to_numpy().tolist())} == {
        "GPT-5.6_Sol/G1/copy_run2.py": ("game", gpt, "G1", "", 2, 0),
        "GPT-5.6_Sol/G1/run_2/repair_1/model.py": ("game", gpt, "G1", "", 2, 1),
        "games/g04/qwen3.8-27b.py": ("game", qwen, "G4", "", 2, 0),
        "games/g04/qwen3.8-27b-again.py": ("game", qwen, "G4", "", 1, 0),
        "flat/qwen_qwen3.8-27b__S2.txt": ("situational", qwen, "S2", "", 1, 0),
        "flat/gpt-5.6-sol_G3.txt": ("game", gpt, "G3", "", 1, 0),
        "flat/api.json": ("situational", qwen, "S3", "", 1, 0),
        "culture/C9/native_american/gpt-5.6-sol.json": ("cultural", gpt, "C9", "native_american", 1, 0),
        "culture/C9/gpt-5.6-sol.md": ("cultural", gpt, "C9", "anonymised", 1, 0),
    }
    assert list(found.replies.columns) == ["id", *keys, "text"] and found.replies["id"].is_unique


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("README.md", "no class of the contract and no JSON model in it"),
        ("abstract_posg.py", "no class of the contract and no JSON model in it"),
        ("logo_G1.png", "not text"),
        ("GPT-5.6_Sol/G1/run_2/model.py", "the same model, .* as GPT-5.6_Sol/G1/copy_run2.py"),
        ("culture/C9/qwen3.8-27b.py", "Python, but C9 is a cultural case"),
        ("flat/gpt-5.6-sol_G1_and_G2.py", "name names several cases: G1, G2"),
        ("flat/gpt-4o_G1.py", "no model of the roster"),
        ("flat/gpt-5.6-sol_G99.py", "no case id"),
        ("GPT-5.6_Sol/G1/run_2/helper.py", "no class of the contract and no JSON model in it"),
        ("GPT-5.6_Sol/G1/run_2/first_try.txt", "the same model, .* as GPT-5.6_Sol/G1/copy_run2.py"),
    ],
)
def test_what_is_left_out_says_why(tree, file, why):
    report = read_given(tree, SUBJECTS, CONDITIONS).report.set_index("file")
    assert report.loc[file, "taken"] == "no"
    assert report["why"].str.fullmatch(f".*{why}.*")[file]


def test_what_is_taken_can_be_judged(tree):
    found = read_given(tree / "culture", {"openai/gpt-5.6-sol": SUBJECTS["openai/gpt-5.6-sol"]}, CONDITIONS)
    candidates, documents = judge(found.replies)
    assert candidates["contract"].all() and len(documents) == 2


def test_a_reply_without_a_model_counts_as_one_that_failed(tree):
    found = read_given(tree, SUBJECTS, CONDITIONS)
    told = found.report.set_index("file")["why"]["flat/gpt-5.6-sol_G3.txt"]
    assert told.startswith("a reply without a world model: counts as one that failed")
    candidates, _ = judge(found.replies[found.replies["case"] == "G3"])
    assert candidates["parse"].tolist() == ["void"]


def test_a_folder_without_candidates_and_a_model_without_any(tree, tmp_path):
    with pytest.raises(GivenError, match="none of them a candidate: README.md: no class"):
        read_given(tmp_path / "README.md", SUBJECTS, CONDITIONS)
    with pytest.raises(GivenError, match="nowhere: holds no file"):
        read_given(tmp_path / "nowhere", SUBJECTS, CONDITIONS)
    with pytest.raises(GivenError, match="no candidate of openai/gpt-5.6-sol; `subjects`"):
        read_given(tree / "games", SUBJECTS, CONDITIONS)
