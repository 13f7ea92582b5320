"""What every committed notebook owes its readers (its outputs are compared by nbval)."""

import ast
import json
import re

import pytest

from compendium.frame import demo
from compendium.frame.chain import FRAME_NAMES, read_notebook
from compendium.frame.paths import IDEAS, ROOT, shown
from compendium.frame.refresh import committed

PATHS = committed()


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(book):
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(params=PATHS, ids=lambda path: path.relative_to(ROOT / "notebooks").as_posix())
def path(request):
    return request.param


def test_there_are_notebooks():
    assert len(PATHS) >= 12


def test_cells_are_short_and_define_nothing(path):
    for cell in code_cells(load(path)):
        source = "".join(cell["source"])
        lines = [line for line in source.splitlines() if line.strip()]
        assert len(lines) <= 15 or "parameters" in cell["metadata"].get("tags", []), (
            f"{cell['id']}: {len(lines)} lines"
        )
        assert not re.search(r"^\s*(def|class) ", source, re.M), cell["id"]


def test_prose_carries_the_argument(path):
    prose = " ".join(
        "".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"
    )
    assert len(prose.split()) >= 150
    if path.parent.name != "notebooks":
        assert "Exercise" in prose and "<details>" in prose, "an exercise with a folded solution"


def test_outputs_are_committed_without_errors(path):
    outputs = [output for cell in code_cells(load(path)) for output in cell["outputs"]]
    assert outputs and not any(output["output_type"] == "error" for output in outputs)
    text = json.dumps(outputs)
    assert not re.search(r"(?<![\w.])/(home|work|root|tmp|Users)/", text), "a path of one machine"


def test_links_lead_to_files(path):
    prose = "\n".join(
        "".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"
    )
    for target in re.findall(r"\]\(([^)\s#]+)", re.sub(r"```.*?```|`[^`\n]*`", "", prose, flags=re.S)):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), target


def test_ids_are_names(path):
    ids = [cell["id"] for cell in load(path)["cells"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-z0-9-]+", name) for name in ids)


def test_defaults_are_params_and_the_demo_s_files(path):
    """No value stands in a notebook: None is filled in from params, an input is a file of data/demo/."""
    if path.parent.name in ("notebooks", IDEAS.name):
        pytest.skip("belongs to no study")
    book = read_notebook(path)
    source = next(
        "".join(cell["source"])
        for cell in code_cells(load(path))
        if "parameters" in cell["metadata"].get("tags", [])
    )
    for node in ast.parse(source).body:
        name, value = node.targets[0].id, ast.literal_eval(node.value)
        files = {**book.needs, **book.wants}
        if name in files:
            assert value == shown(demo.packed(files[name]))
        elif name not in FRAME_NAMES:
            assert value is None, (
                f"{name}: params/{book.study}.yaml has its value; the notebook should say None"
            )


def test_published_numbers_it_reads_are_declared(path):
    if path.parent.name == "notebooks":
        pytest.skip("belongs to no study")
    book = load(path)
    if any("published(" in "".join(cell["source"]) for cell in code_cells(book)):
        data = book["metadata"]["compendium"].get("data", [])
        assert any(entry.startswith("published/") for entry in data), (
            "list published/<study>.csv under `data`"
        )
