"""What code can reach: each way of referring to something, and random edits of random programs."""

import importlib
import sys

import numpy as np
import pytest

from compendium.frame import reach as module
from compendium.frame.chain import notebooks
from compendium.frame.reach import Reach, ReachError


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package `toy` in a folder of its own; write(name, code) makes or changes a module of it."""
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ROOMS", ("toy",))
    monkeypatch.setattr(module, "MODULE_NAME", module.re.compile(r"toy(?:\.\w+)+"))
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, code):
        path = tmp_path / "toy" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(code)
        module.forget()

    write("__init__", "")
    yield write
    module.forget()


def digest(source, study=""):
    return Reach([("cell", source)], study).digest


WAYS = {
    "a name": "from toy.a import f\nf()",
    "another name": "from toy.a import f as g\ng()",
    "a module's attribute": "from toy import a\na.f()",
    "a module under another name": "import toy.a as b\nb.f()",
    "the whole dotted name": "import toy.a\ntoy.a.f()",
    "a name that another module passes on": "from toy.b import f\nf()",
    "a helper of a helper": "from toy.b import outer\nouter()",
    "an import inside a function": "from toy.b import lazily\nlazily()",
    "a method": "from toy.b import Thing\nThing().method()",
    "a base class": "from toy.b import Child\nChild()",
    "a decorator": "from toy.b import decorated\ndecorated()",
    "a default": "from toy.b import default\ndefault()",
    "a constant made on import": "from toy.b import MADE\nMADE",
    "a module handed about": "from toy import a\nvars(a)['f']()",
    "a module named in a string": "import importlib\nimportlib.import_module('toy.a').f()",
    "a module named in part": "import importlib\nname = 'a'\nimportlib.import_module(f'toy.{name}').f()",
    "a reference without a call": "from toy.a import f\nlist(map(f, ()))",
}
B = """
from toy.a import f
from toy.a import f as _mine

def outer():
    return inner()

def inner():
    return f()

def lazily():
    from toy import a
    return a.f()

class Thing:
    def method(self):
        return f()

class Child(Thing):
    pass

def wrap(function):
    f()
    return function

@wrap
def decorated():
    return 1

def default(value=f()):
    return value

MADE = f()
"""


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS)
def test_every_way_to_refer_to_a_function_is_followed(toy, source):
    toy("b", B)
    toy("a", "def f():\n    return 1\n\ndef other():\n    return 1\n")
    before = digest(source)
    toy("a", "def f():\n    return 2\n\ndef other():\n    return 1\n")
    assert digest(source) != before


def test_comments_docstrings_and_layout_change_nothing(toy):
    source = "from toy.a import f\nf(1)"
    toy("a", "def f(x):\n    return x + 1\n")
    before = digest(source)
    toy(
        "a", '"""What it holds."""\n\n\ndef f(\n    x,\n):  # adds\n    """One more."""\n    return (x + 1)\n'
    )
    assert digest(source) == before


def test_what_nobody_calls_changes_nothing_but_what_runs_on_import_does(toy):
    source = "from toy.a import f\nf(1)"
    toy("a", "def f(x):\n    return x + 1\n")
    before = digest(source)
    toy("a", "def f(x):\n    return x + 1\n\ndef g(x):\n    return f(x)\n")
    assert digest(source) == before
    toy("a", "import os\n\nos.environ['X'] = '1'\n\ndef f(x):\n    return x + 1\n")
    assert digest(source) != before


def test_a_hole_in_a_name_is_the_study_where_that_module_exists(toy):
    toy("a", "X = 1\n")
    toy("b", "X = 1\n")
    source = "import importlib\nimportlib.import_module(f'toy.{study}')"
    assert Reach([("cell", source)], "a").modules == ["toy", "toy.a"]
    found = Reach([("cell", source)])
    assert found.modules == ["toy", "toy.a", "toy.b"] and found.dynamic == {"notebook": {"toy.a", "toy.b"}}


def test_code_that_does_not_parse_is_named(toy):
    toy("a", "def f(:\n")
    with pytest.raises(ReachError, match=r"toy/a.py, line 1: not valid Python"):
        digest("from toy.a import f")


# random programs: functions that call functions of their own and of other modules in several ways
CALLS = (
    "from toy.m{m} import f{f} as g\n    total += g(x)",
    "from toy import m{m}\n    total += m{m}.f{f}(x)",
    "total += K{m}_{f}(x)",
    "total += C{m}_{f}().run(x)",
    "total += sum(map(K{m}_{f}, [x]))",
)


def program(rng, modules=4, functions=4):
    """{module: text} of a random program without circles: functions call those of modules before theirs."""
    texts = {}
    for m in range(modules):
        head, body = [], []
        for f in range(functions):
            lines = [f"total = x * {rng.integers(1, 9)}"]
            for _ in range(rng.integers(1, 5)):
                if m:
                    at, inner = int(rng.integers(m)), int(rng.integers(functions))
                    call = CALLS[rng.integers(len(CALLS))].format(m=at, f=inner)
                    lines.append(call)
                    head.append(f"from toy.m{at} import f{inner} as K{at}_{inner}, C{inner} as C{at}_{inner}")
            body.append(f"def f{f}(x):\n    " + "\n    ".join(lines) + "\n    return total\n")
            body.append(f"class C{f}:\n    def run(self, x):\n        return f{f}(x) + {rng.integers(9)}\n")
        texts[f"m{m}"] = "\n".join([*dict.fromkeys(head), *body])
    return texts


def answer(source):
    """What a cell's `result` is with the modules as they stand."""
    for name in [name for name in sys.modules if name.split(".")[0] == "toy"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    space = {}
    exec(source, space)
    return space["result"]


def test_whatever_changes_an_answer_was_reached(toy, monkeypatch):
    """Random edits to random functions: no answer moves without its digest, and most edits elsewhere move none."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    rng = np.random.default_rng(20261130)
    moved = spared = 0
    for _ in range(25):
        texts = program(rng)
        for name, text in texts.items():
            toy(name, text)
        source = f"from toy.m3 import f{rng.integers(4)} as start\nresult = start(1)"
        before = digest(source), answer(source)
        for _ in range(8):
            name = f"m{rng.integers(4)}"
            lines = texts[name].split("\n")
            chosen = rng.choice(
                [at for at, line in enumerate(lines) if "total = x *" in line or "return f" in line]
            )
            toy(name, "\n".join([*lines[:chosen], lines[chosen] + " + 1000", *lines[chosen + 1 :]]))
            after = digest(source), answer(source)
            if after[1] != before[1]:
                moved += 1
                assert after[0] != before[0], "an answer moved that was taken to be out of reach"
            else:
                spared += after[0] == before[0]
            toy(name, texts[name])
    assert moved > 30 and spared > 60, (moved, spared)


def test_a_small_edit_makes_few_notebooks_stale():
    """On this project: one estimator's helper is reached by some notebooks and not by most."""
    books = notebooks("all", "demo")
    holding = [book.rule for book in books if "lib.agreement.krippendorff_alpha" in book.reach.definitions]
    assert 1 <= len(holding) < len(books) / 2
    assert all("tests" not in name for book in books for name in book.reach.modules)
