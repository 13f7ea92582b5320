"""Aligning actions: with the states' renaming given, which renaming of one state's actions shares most?

Each player's actions are renamed on their own (an injection of the smaller set into the larger), so a joint
action's image is fixed by the players' choices. All but one player's injections are enumerated and the last
player's is a linear assignment problem: exact, since for fixed images of the others' actions the total is
a sum over pairs (own action, its image).
"""
# Tested by tests/compendium/studies/worldmodels/posg/test_match.py.

import functools
import itertools
import math

import numpy as np
from scipy.optimize import linear_sum_assignment

TABULATED = 600  # up to so many combinations, one array lookup scores them all at once
ENUMERATED = 5040  # more combinations of the enumerated players' injections than this are not tried


@functools.cache
def injections(few: int, many: int) -> tuple[tuple[int, ...], ...]:
    """Every injection of range(few) into range(many), few <= many, as tuples of images."""
    return tuple(itertools.permutations(range(many), few))


def combinations(shape_a, shape_b) -> int:
    """How many combinations of injections would be enumerated for two states of these shapes."""
    counts = sorted(math.perm(max(m, n), min(m, n)) for m, n in zip(shape_a, shape_b))
    return math.prod(counts[:-1])


def assignment(weights) -> tuple[float, list[tuple[int, int]]]:
    """The heaviest matching of rows to columns: (total, [(row, column), ...])."""
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return float(weights[rows, columns].sum()), list(zip(rows.tolist(), columns.tolist()))


@functools.lru_cache(maxsize=4096)
def _plan(shape_a, shape_b):
    """(index array [combination, pair], list of alignments) for shapes whose every combination is enumerated.

    Entry [c, k] is the flat position in weights[a, b] of the k-th matched pair of joint actions under
    combination c. None where there are too many.
    """
    options = [
        injections(m, n) if m <= n else tuple(("inverse", image) for image in injections(n, m))
        for m, n in zip(shape_a, shape_b)
    ]
    if math.prod(map(len, options)) > TABULATED:
        return None
    width = math.prod(shape_b)
    alignments, index = [], []
    for combination in itertools.product(*options):
        pairs = [_pairs(choice) for choice in combination]
        alignments.append(pairs)
        index.append(
            [
                _flat([a for a, _ in chosen], shape_a) * width + _flat([b for _, b in chosen], shape_b)
                for chosen in itertools.product(*pairs)
            ]
        )
    return np.array(index), alignments


def _pairs(choice):
    if choice and choice[0] == "inverse":
        return [(a, b) for b, a in enumerate(choice[1])]
    return list(enumerate(choice))


def _flat(key, shape) -> int:
    position = 0
    for value, size in zip(key, shape):
        position = position * size + value
    return position


def best_alignment(weights, shape_a, shape_b, want_pairs: bool = False):
    """The largest total weight over renamings of actions.

    weights[a, b] : what joint actions a and b share, by flat position in `shape_a` and `shape_b`.
    Returns (total, exact) or, with `want_pairs`, (total, exact, [[(action, image), ...] a player]). Where
    more than ENUMERATED combinations would be needed the total is the bound of an assignment between joint
    actions that ignores players, and `exact` is False.
    """
    if len(weights) == 1 and weights.size == 1:
        total = float(weights[0, 0])
        return (total, True, [[(0, 0)]] * len(shape_a)) if want_pairs else (total, True)
    plan = _plan(shape_a, shape_b)
    if plan is not None:
        totals = weights.ravel()[plan[0]].sum(axis=1)
        best = int(totals.argmax())
        return (float(totals[best]), True, plan[1][best]) if want_pairs else (float(totals[best]), True)
    if combinations(shape_a, shape_b) > ENUMERATED:
        total, _ = assignment(weights)
        return (total, False, [[] for _ in shape_a]) if want_pairs else (total, False)
    return _enumerate(weights, shape_a, shape_b, want_pairs)


def _enumerate(weights, shape_a, shape_b, want_pairs):
    counts = [math.perm(max(m, n), min(m, n)) for m, n in zip(shape_a, shape_b)]
    last = counts.index(max(counts))
    others = [place for place in range(len(shape_a)) if place != last]
    tensor = weights.reshape(*shape_a, *shape_b)
    tensor = np.moveaxis(tensor, (last, len(shape_a) + last), (-2, -1))
    options = [
        [
            _pairs(choice)
            for choice in (
                injections(shape_a[k], shape_b[k])
                if shape_a[k] <= shape_b[k]
                else [("inverse", image) for image in injections(shape_b[k], shape_a[k])]
            )
        ]
        for k in others
    ]
    best = (-1.0, None)
    for combination in itertools.product(*options):
        square = np.zeros(tensor.shape[-2:])
        for chosen in itertools.product(*combination):
            square += tensor[tuple(a for a, _ in chosen) + tuple(b for _, b in chosen)]
        total, pairs = assignment(square)
        if total > best[0]:
            best = (total, (combination, pairs))
    if not want_pairs:
        return best[0], True
    aligned = [None] * len(shape_a)
    for place, pairs in zip(others, best[1][0]):
        aligned[place] = pairs
    aligned[last] = best[1][1]
    return best[0], True, aligned
