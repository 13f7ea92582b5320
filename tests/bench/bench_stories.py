"""Bench of the text metrics.

1. Creativity Index of a 500-word text against a 10-million-token local corpus: the suffix array, against
sliding every
   window of the corpus (L = 5 ... 12) through a hash set of the text's own n-grams. Mark: at least 50 times
   faster, below 10 bytes a token.
2. All metrics but perplexity for 400 stories, embeddings included. Mark: below 60 s. Uses the archive's 400
texts
   where COMPENDIUM_MIRROR (or ../shared/upstream) has them, else simulated stories.

    python tests/bench/bench_stories.py [tokens in millions] [--only index|metrics]
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from compendium.frame.archive import MIRROR_VARIABLE
from compendium.frame.paths import ROOT
from compendium.studies.stories.corpus import load, save
from compendium.studies.stories.data import load_archive
from compendium.studies.stories.metrics import compute_metrics, semantic
from compendium.studies.stories.simulated import AUTHORS, PEOPLE, write_story, writing_prompt
from lib.text.creativity_index import LONGEST, SHORTEST, LocalCorpus, creativity_index, l_uniqueness
from lib.text.suffix_array import SuffixArray


def corpus_and_text(size, words, rng):
    """A corpus of Zipf-distributed words, and a text half of whose phrases are copied from it."""
    ranks = np.arange(1, 50_001)
    weights = 1 / ranks
    tokens = rng.choice(50_000, size=size, p=weights / weights.sum()).astype(np.int32) + 1
    text = rng.choice(50_000, size=words, p=weights / weights.sum()).astype(np.int32) + 1
    for start in range(0, words - 20, 40):
        at = rng.integers(0, size - 20)
        length = rng.integers(5, 20)
        text[start : start + length] = tokens[at : at + length]
    return tokens, text


def by_hash_set(tokens, text):
    """The index by sliding every window of the corpus through a hash set of the text's n-grams, L by L."""
    total, corpus = 0.0, tokens.tolist()
    for length in range(SHORTEST, LONGEST + 1):
        wanted = {}
        for start in range(len(text) - length + 1):
            wanted.setdefault(tuple(text[start : start + length].tolist()), []).append(start)
        kept = np.ones(len(text), dtype=bool)
        for window in zip(*(corpus[offset:] for offset in range(length)), strict=False):
            if window in wanted:
                for start in wanted[window]:
                    kept[start : start + length] = False
        total += kept.mean()
    return total


def bench_index(size):
    rng = np.random.default_rng(20261130)
    tokens, text = corpus_and_text(size, 500, rng)
    began = time.perf_counter()
    index = SuffixArray.build(tokens)
    built = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        corpus = load(save(LocalCorpus({}, index), folder))
        creativity_index(
            corpus.index.longest_matches(text, LONGEST)
        )  # the pages are in memory, as the peer's are
        times = []
        for _ in range(5):
            began = time.perf_counter()
            ours = creativity_index(corpus.index.longest_matches(text, LONGEST))
            times.append(time.perf_counter() - began)
    began = time.perf_counter()
    peers = by_hash_set(tokens, text)
    peer = time.perf_counter() - began
    assert abs(ours - peers) < 1e-9, (ours, peers)
    fast = float(np.median(times))
    uniqueness = l_uniqueness(index.longest_matches(text, LONGEST), SHORTEST)
    print(f"corpus {size:,} tokens; text 500 words, CI {ours:.3f}, U_5 {uniqueness:.3f}; both ways equal")
    print(f"index built in {built:.1f} s, {index.bytes_per_token:.1f} bytes a token at rest (mark: below 10)")
    print(
        f"suffix array {fast * 1000:.1f} ms, hash set {peer:.1f} s: {peer / fast:,.0f} times faster "
        "(mark: 50)"
    )


def texts_to_measure():
    """(400 texts, whose they are): the archive's where they are at hand, else simulated ones."""
    folder = Path(os.environ.get(MIRROR_VARIABLE) or ROOT / "../shared/upstream")
    if (folder / "stories").is_dir():
        return list(load_archive(str(folder)).texts["text"]), "the archive's 400 texts"
    authors = [PEOPLE, *AUTHORS]
    return [write_story(authors[k % 6], writing_prompt(k), k) for k in range(400)], "400 simulated stories"


def processor_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def bench_metrics():
    texts, whose = texts_to_measure()
    corpus = LocalCorpus.build(texts[:200])
    began, before = time.perf_counter(), processor_seconds()
    frame = compute_metrics(texts, corpus, precision="bfloat16", workers=2)
    took, spent = time.perf_counter() - began, processor_seconds() - before
    print(
        f"{whose}: {len(frame.columns)} metrics of {len(frame)} texts in {took:.1f} s (mark: below 60 s on two idle "
        f"cores); {spent:.0f} processor seconds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
        flush=True,
    )
    exact = semantic(texts[::20], precision="float32")
    moved = np.abs(frame["sbert_diversity"].to_numpy()[::20] - exact)
    print(
        f"bfloat16 moves SBERT-Div by at most {moved.max():.5f} (mean {moved.mean():.5f}, {len(moved)} texts)"
    )


def main():
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    numbers = [argument for argument in sys.argv[1:] if argument.replace(".", "").isdigit()]
    if only in ("", "index"):
        bench_index(int(float(numbers[0]) * 1e6) if numbers else 10_000_000)
    if only in ("", "metrics"):
        bench_metrics()


if __name__ == "__main__":
    main()
