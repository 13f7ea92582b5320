"""Reference corpora kept on disk."""

import pytest

from compendium.studies.stories.corpus import build_folder, load, save
from lib.text import TextError
from lib.text.creativity_index import LocalCorpus, split


def test_saved_corpus(tmp_path):
    corpus = LocalCorpus.build(["the cat sat on the mat", "Perché no?"])
    again = load(save(corpus, tmp_path / "corpus"))
    words = split("perché the cat sat")
    assert again.matches(words).tolist() == corpus.matches(words).tolist() == [1, 3, 2, 1]


def test_folder_of_texts(tmp_path):
    (tmp_path / "b.txt").write_text("red green", encoding="utf-8")
    (tmp_path / "a.txt").write_text("blue", encoding="utf-8")
    assert build_folder(tmp_path).contains(["red", "green"])
    with pytest.raises(TextError, match="no .txt files"):
        build_folder(tmp_path / "nothing")
    (tmp_path / "c.txt").write_bytes("ma\nperché".encode("latin-1"))
    with pytest.raises(TextError, match=r"c.txt: not UTF-8 .*in line 2"):
        build_folder(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(TextError, match=f"{tmp_path.name}: its .txt files hold no words"):
        build_folder(tmp_path)


def test_no_saved_corpus(tmp_path):
    with pytest.raises(TextError, match="no reference corpus"):
        load(tmp_path)
