"""infini-gram's own engine as a back end, on an index that the test builds: equal to the suffix array."""

import numpy as np
import pytest

from lib.text.creativity_index import LocalCorpus, creativity_index, dj_search, split
from lib.text.infinigram import InfiniGramEngine

pytest.importorskip(
    "infini_gram", reason="infini-gram is not installed (Linux x86-64: pip install infini-gram)"
)
END = 0xFFFF  # stands before each document in infini-gram's 16-bit files


def build(folder, texts, tokenize):
    """The three files of an infini-gram index: tokens, places of the documents, suffixes in the order of bytes."""
    stream, starts = [], []
    for text in texts:
        starts.append(2 * len(stream))
        stream += [END, *tokenize(text)]
    content = np.array(stream, dtype="<u2").tobytes()
    pointer = -(-(len(content) - 1).bit_length() // 8)
    order = sorted(range(0, len(content), 2), key=lambda at: content[at:])
    (folder / "tokenized.0").write_bytes(content)
    (folder / "offset.0").write_bytes(np.array(starts, dtype="<u8").tobytes())
    (folder / "table.0").write_bytes(b"".join(at.to_bytes(pointer, "little") for at in order))
    return folder


@pytest.fixture
def texts():
    rng = np.random.default_rng(3)
    return [" ".join(f"w{number}" for number in rng.integers(0, 12, size=60)) for _ in range(4)]


def test_engine_equals_the_suffix_array(tmp_path, texts):
    numbers = {}

    def tokenize(text):
        return [numbers.setdefault(word, len(numbers) + 1) for word in split(text)]

    engine = InfiniGramEngine(build(tmp_path, texts, tokenize), tokenize, end=0xFFF0)
    local = LocalCorpus.build(texts)
    story = [*split(texts[1])[10:30], "never", *split(texts[2])[40:52], *split(texts[0])[5:14]]
    found, asked = dj_search(story, engine.contains, shortest=3, longest=12)
    expected = local.matches(story, longest=12)
    assert found.tolist() == np.where(expected >= 3, expected, 0).tolist() and asked <= 2 * len(story)
    assert creativity_index(found) == creativity_index(expected) < 8
    assert engine.contains(split(texts[3])[:5]) and not engine.contains(["never"])
