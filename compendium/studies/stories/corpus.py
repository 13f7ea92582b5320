"""Reference corpora of the Creativity Index on disk: folders of texts, and indexes kept from run to run."""

import json
from pathlib import Path

import numpy as np

from compendium.frame.files import atomic_write, read_utf8, write_text_atomic
from lib.text import TextError
from lib.text.creativity_index import DEPTH, LocalCorpus, NoWords
from lib.text.suffix_array import SuffixArray

ARRAYS = ("tokens", "order")


def build_folder(folder, *, depth: int = DEPTH) -> LocalCorpus:
    """Index all .txt files below a folder, in the order of their names.

    Raises TextError where there are none, none holds a word, or one is not UTF-8.
    """
    paths = sorted(Path(folder).rglob("*.txt"))
    if not paths:
        raise TextError(f"{folder}: no .txt files to index as a reference corpus")
    try:
        return LocalCorpus.build(
            (read_utf8(path, TextError, "a text of the corpus") for path in paths), depth=depth
        )
    except NoWords:
        raise NoWords(f"{folder}: its .txt files hold no words; a reference corpus needs some") from None


def save(corpus: LocalCorpus, folder) -> Path:
    """Write vocabulary and index into `folder` and return it; each file whole or not at all."""
    folder = Path(folder)
    for name in ARRAYS:
        with atomic_write(folder / f"{name}.npy", suffix=".npy") as temporary:
            np.save(temporary, getattr(corpus.index, name))
    content = {"depth": corpus.index.depth, "words": list(corpus.vocabulary)}
    write_text_atomic(folder / "vocabulary.json", json.dumps(content, ensure_ascii=False))
    return folder


def load(folder) -> LocalCorpus:
    """Open a saved corpus; the index stays on disk, mapped. Raises TextError where the folder holds none."""
    folder = Path(folder)
    try:
        content = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS]
    except (OSError, ValueError) as error:
        raise TextError(
            f"{folder}: no reference corpus here ({type(error).__name__}); build and save one"
        ) from None
    vocabulary = {word: number for number, word in enumerate(content["words"], 1)}
    return LocalCorpus(vocabulary, SuffixArray(*arrays, content["depth"]))
