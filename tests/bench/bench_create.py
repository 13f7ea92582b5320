"""Creative utility of 931 queries × 20 paths at eleven patience values: all sets at once, against one query
and one patience at a time (the same definition, worked out anew for each). Prints both times and their ratio;
then embeddings computed against embeddings found in the cache."""

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lib.embedding import embed  # noqa: E402
from lib.utility import PATIENCE, creative_utility, path_distance, set_distances  # noqa: E402

QUERIES, PATHS, DIMENSION = 931, 20, 384
SAMPLE = 40  # queries that the slow peer works out; its time is scaled to all


def peer(quality, vectors, patience: float) -> float:
    """One query at one patience, from its embeddings, item by item."""
    distance = path_distance(np.clip(np.round(1 - vectors @ vectors.T, 6), 0, 2))
    chosen, left, total = [], list(range(len(quality))), 0.0
    while left:
        worth = [quality[i] * min((distance[i, j] for j in chosen), default=1.0) for i in left]
        best = int(np.argmax(worth))
        total += worth[best] * patience ** max(len(chosen) - 1, 0)
        chosen.append(left.pop(best))
    return total


def main():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(QUERIES, PATHS, DIMENSION)) + 2 * rng.normal(size=(QUERIES, 1, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    quality = rng.integers(0, 6, (QUERIES, PATHS)).astype(float)
    start = perf_counter()
    fast = creative_utility(quality, set_distances(vectors))
    together = perf_counter() - start
    start = perf_counter()
    slow = np.array([[peer(quality[q], vectors[q], gamma) for gamma in PATIENCE] for q in range(SAMPLE)])
    alone = (perf_counter() - start) * QUERIES / SAMPLE
    assert np.abs(fast[:SAMPLE] - slow).max() < 1e-9
    print(
        f"utility, {QUERIES} queries x {PATHS} paths x {len(PATIENCE)} patience values: together {together:.3f} s, "
        f"one by one {alone:.1f} s (from {SAMPLE} queries), ratio {alone / together:.0f}x"
    )

    texts = [f"[worked with] person {i} | person {i} [member of] band {i % 37}" for i in range(200)]
    embed(texts[:1])  # the model is loaded before the clock starts
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        embed(texts, cache=Path(folder) / "vectors.sqlite")
        first = perf_counter() - start
        start = perf_counter()
        embed(texts, cache=Path(folder) / "vectors.sqlite")
        again = perf_counter() - start
    print(
        f"embeddings, {len(texts)} texts: computed {first:.2f} s, from the cache {again:.4f} s, "
        f"ratio {first / again:.0f}x"
    )


if __name__ == "__main__":
    main()
