"""Every public function and class of lib shows an example, and every example runs; lib needs no more than three
libraries."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import lib
from compendium.frame.paths import ROOT

MODULES = [found.name for found in pkgutil.walk_packages(lib.__path__, "lib.")]
NEEDS = {
    "lib.text.tagging": "nltk",
    "lib.text.tokens": "punkt",
    "lib.text.infinigram": "httpx",
}  # for its examples


def public(module):
    """{qualified name: object} of what a module defines for others, methods and properties of its classes too."""
    found = {}
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing):
            found[name] = thing
        elif inspect.isclass(thing):
            for inner, method in vars(thing).items():
                if not inner.startswith("_") and isinstance(method, (property, classmethod, staticmethod)):
                    method = getattr(method, "fget", None) or method.__func__
                if not inner.startswith("_") and inspect.isfunction(method):
                    found[f"{name}.{inner}"] = method
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_shows_an_example(name):
    without = [
        inner
        for inner, thing in public(importlib.import_module(name)).items()
        if ">>>" not in (thing.__doc__ or "")
    ]
    assert not without, f"{name}: no example in {', '.join(without)}"


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    module = importlib.import_module(name)
    done = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.failed == 0, name
    text = (Path(module.__file__)).read_text(encoding="utf-8")
    assert done.attempted or text.count(">>> ") == text.count("+SKIP"), name


ALONE = """
import importlib, importlib.abc, pkgutil, sys

ALLOWED = {"numpy", "scipy", "pandas", "dateutil", "pytz", "six", "tzdata", "lib"} | set(sys.stdlib_module_names)

class Alone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if "." not in name and name not in ALLOWED and not name.startswith("_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] not in ALLOWED | {"__main__"}]:
    del sys.modules[name]  # what the interpreter's own start brought along
sys.meta_path.insert(0, Alone())
import lib
modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(lib.__path__, "lib.")]
assert len(modules) > 25
from lib.embedding import NGRAMS, EmbeddingError, embed
from lib.text import TextError, infinigram, perplexity, sentence_vectors, tagging, tokens

assert embed(["a cat"], NGRAMS).shape == (1, 1024)
for call in (
    lambda: embed(["a cat"]),
    lambda: tokens.words("a cat"),
    lambda: tagging.tag_words([["cat"]], "spacy"),
    lambda: tagging.tag_words([["cat"]], "perceptron"),
    lambda: tagging.tag_words([["cat"]], "nltk"),
    lambda: perplexity.CausalModel("any"),
    lambda: sentence_vectors.sentence_vectors(["a cat"], precision="float32"),
    lambda: infinigram.InfiniGramAPI(),
    lambda: infinigram.InfiniGramEngine("index", str.split, end=2),
):
    try:
        call()
    except (TextError, EmbeddingError) as error:
        print(error)
"""


def test_lib_needs_numpy_scipy_and_pandas_alone():
    """Every module imports without anything else, and a metric that wants more says what in one line."""
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 9 and all("install" in line for line in lines), done.stdout
