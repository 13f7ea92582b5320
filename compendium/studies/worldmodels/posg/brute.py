"""The structural score by its definition: every renaming tried. For small models, to check the matcher against.

    score(M, N) = max over renamings of players and states  sum over matched states (s, t) of
        [s, t both terminal or both not]
        + max over renamings of the actions of s and t  sum over matched joint actions (a, b)
              sum over matched successors (s', t') with equal terminal flags of  min(P(s'|s,a), Q(t'|t,b))

Start is matched to start. Nothing here is shared with `compendium.studies.worldmodels.posg.search` but the unrolled form.
"""

import itertools

from compendium.studies.worldmodels.posg.unroll import Unrolled, reorder_players, unroll


def brute_force_score(reference, candidate, horizon: int = 3) -> float:
    """The score of two games, by trying all renamings; feasible up to six states or so."""
    left, right = unroll(reference, horizon), unroll(candidate, horizon)
    wide = max(len(left.players), len(right.players))
    seats = lambda cut: (*range(len(cut.players)), *([None] * (wide - len(cut.players))))
    left = reorder_players(left, seats(left))
    return max(
        _states(left, reorder_players(right, order)) for order in set(itertools.permutations(seats(right)))
    )


def _states(left: Unrolled, right: Unrolled) -> float:
    m, n = len(left.names) - 1, len(right.names) - 1
    best = 0.0
    if m <= n:
        images = (
            [(0, 0), *((s + 1, t + 1) for s, t in enumerate(image))]
            for image in itertools.permutations(range(n), m)
        )
    else:
        images = (
            [(0, 0), *((s + 1, t + 1) for t, s in enumerate(image))]
            for image in itertools.permutations(range(m), n)
        )
    for pairs in images:
        renaming = {s: t for s, t in pairs if left.terminal[s] == right.terminal[t]}
        best = max(best, sum(1 + _actions(left, right, s, t, renaming) for s, t in renaming.items()))
    return best


def _actions(left, right, s, t, renaming) -> float:
    if not left.shape[s] or not right.shape[t]:
        return 0.0
    choices = []
    for m, n in zip(left.shape[s], right.shape[t]):
        if m <= n:
            choices.append([list(enumerate(image)) for image in itertools.permutations(range(n), m)])
        else:
            choices.append(
                [[(a, b) for b, a in enumerate(image)] for image in itertools.permutations(range(m), n)]
            )
    best = 0.0
    for combination in itertools.product(*choices):
        total = 0.0
        for chosen in itertools.product(*combination):
            target = dict(right.rows[t][tuple(b for _, b in chosen)])
            for following, p in left.rows[s][tuple(a for a, _ in chosen)]:
                total += min(p, target.get(renaming.get(following, -1), 0.0))
        best = max(best, total)
    return best
