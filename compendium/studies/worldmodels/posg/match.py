"""Lane 2a: structural agreement of a candidate game with a reference, whatever things are called.

The score is the maximum, over renamings of players, states and actions, of the structure that the two
unrolled games share: matched states that agree on being terminal, and the probability mass that matched
joint actions send to matched successors (the definition is written out in `posg.brute`). Coverage is
the score over the reference's score against itself, precision the score over the candidate's own, F1
their harmonic mean (section 5 of the paper; the definition's weights are this project's, since the paper
gives none).
"""

import itertools
import math
from dataclasses import dataclass

from compendium.studies.worldmodels.posg.actions import best_alignment
from compendium.studies.worldmodels.posg.model import POSG
from compendium.studies.worldmodels.posg.search import UNMATCHED, Search
from compendium.studies.worldmodels.posg.unroll import Unrolled, part_of, reorder_players, unroll

HORIZON = 3
# Search nodes by the size of the larger cut: up to 12 states the search runs to its end, up to 40 it nearly
# always does; beyond, it is bounded from the start.
BUDGETS = ((12, 10**9), (40, 20_000), (10**9, 4000))
# A candidate may be any size its contract allows. What would outgrow memory or patience is searched in part
# (the first states, and of those the ones with few joint actions): a true lower bound, never called exact.
# (states, joint actions, most work) of each part tried
PARTS = ((10**9, 10**9, 15 * 10**7), (200, 4096, 10**7), (60, 256, 10**7), (12, 64, 10**7))
TABLE, JOINTS = 8 * 10**9, 5 * 10**7  # table entries and pairs of joint actions that all nodes may look at
SEATINGS = 120  # alignments of the players that are tried


@dataclass(frozen=True)
class Match:
    """How far two games agree.

    score, upper : the best found, and a number that no renaming exceeds; equal exactly when `exact`.
    coverage, precision, f1 : from `score`; the `_upper` ones from `upper`.
    players, states : {reference name: candidate name} of the best renaming, matched ones only.
    actions : {reference state: {reference player: {action: candidate's action}}}, same.
    nodes : search nodes opened.
    """

    score: float
    upper: float
    exact: bool
    coverage: float
    precision: float
    f1: float
    coverage_upper: float
    precision_upper: float
    f1_upper: float
    players: dict[str, str]
    states: dict[str, str]
    actions: dict[str, dict[str, dict[str, str]]]
    nodes: int

    @property
    def same(self) -> bool:
        """True where the two cuts are the same game under other names."""
        return self.f1 > 1 - 1e-9


def compare(reference: POSG, candidate: POSG, *, horizon: int = HORIZON, nodes: int | None = None) -> Match:
    """Match `candidate` against `reference` within `horizon` transitions of the start.

    nodes : search nodes that may be opened, by default BUDGETS. Where they run out, `exact` is False and
        `upper` bounds the true score.
    """
    left, right = unroll(reference, horizon), unroll(candidate, horizon)
    own_left, own_right = left.self_score(), right.self_score()
    if nodes is None:
        larger = max(len(left.names), len(right.names))
        nodes = next(budget for states, budget in BUDGETS if larger <= states)
    score, upper, renaming, used, settled = _over_players(left, right, nodes)
    upper = min(max(upper, score), own_left, own_right)
    exact = settled or upper <= score + 1e-9
    upper = score if exact else upper
    numbers = _ratios(score, own_left, own_right), _ratios(upper, own_left, own_right)
    return Match(score, upper, exact, *numbers[0], *numbers[1], *renaming, used)


def self_score(game: POSG, horizon: int = HORIZON) -> float:
    """The score of a game against itself: the denominator of coverage (reference) or precision (candidate)."""
    return unroll(game, horizon).self_score()


def _ratios(score, own_left, own_right):
    # twelve digits: a perfect match must read 1.0 whatever the order of summation
    coverage, precision = (min(1.0, round(score / own, 12)) for own in (own_left, own_right))
    return (
        coverage,
        precision,
        2 * coverage * precision / (coverage + precision) if coverage + precision else 0.0,
    )


def _over_players(left: Unrolled, right: Unrolled, nodes: int):
    """The best over alignments of the players, the most promising first."""
    wide = max(len(left.players), len(right.players))
    seats = [(*range(len(cut.players)), *[None] * (wide - len(cut.players))) for cut in (left, right)]
    seatings = _seatings(left, right, seats[1])
    orders = seatings[:SEATINGS]
    whole, (left, right), work = _searchable(left, right, len(orders))
    whole &= len(orders) == len(seatings)
    nodes = max(1, min(nodes, TABLE // work[0], JOINTS // work[1]))
    padded = reorder_players(left, seats[0])
    searches = [(Search(padded, reorder_players(right, order)), order) for order in orders]
    searches = sorted(
        ((search.root()[0], -k, search, order) for k, (search, order) in enumerate(searches)),
        key=lambda entry: entry[:2],
        reverse=True,
    )
    best, upper, used, settled, winner = 0.0, 0.0, 0, True, None
    for bound, _, search, order in searches:
        if bound <= best + 1e-9:
            continue
        score, image, reached, opened = search.run(best, max(1, nodes - used))
        used += opened
        settled &= reached <= score + 1e-9 and not search.inexact
        upper = max(upper, reached)
        if image is not None:
            best, winner = score, (search, image, order)
    return best, max(best, upper) if whole else math.inf, _named(winner, left, right), used, settled and whole


def _seatings(left: Unrolled, right: Unrolled, seats) -> list[tuple]:
    """Alignments of the players that can differ in score, in a fixed order: which of those who never have a choice
    (or were added to even the numbers) meets which makes no difference."""
    choosing = [
        {k for shape in cut.shape for k, count in enumerate(shape) if count > 1} for cut in (left, right)
    ]
    kept = {}
    for order in sorted(set(itertools.permutations(seats)), key=str):
        kept.setdefault(
            tuple(order[k] if order[k] in choosing[1] else None for k in sorted(choosing[0])), order
        )
    return list(kept.values())


def _searchable(left: Unrolled, right: Unrolled, orders: int):
    """(whether it is the whole, the two cuts or their largest parts that can be searched, (table entries, pairs of
    joint actions) that one node looks at)."""
    for states, joints, most in PARTS:
        parts = [part_of(cut, states, joints) for cut in (left, right)]
        sizes = [len(cut.names) * sum(map(bool, cut.shape)) for cut in parts]
        counts = [sum(math.prod(shape) for shape in cut.shape if shape) for cut in parts]
        work = max(1, math.prod(sizes)), max(1, math.prod(counts))
        if max(work[0] * orders, 100 * work[1]) <= most:
            break
    return parts[0] is left and parts[1] is right, parts, work


def _named(winner, left: Unrolled, right: Unrolled):
    """The winning renaming in names: players, states, actions."""
    if winner is None:
        return {}, {}, {}
    search, image, order = winner
    players = {
        left.players[k]: right.players[place]
        for k, place in enumerate(order)
        if place is not None and k < len(left.players)
    }
    states = {left.names[s]: right.names[t] for s, t in enumerate(image) if t >= 0}
    source = [UNMATCHED] * search.n
    for s, t in enumerate(image):
        if t >= 0:
            source[t] = s
    actions = {}
    for s, t in enumerate(image):
        if t >= 0 and left.shape[s] and right.shape[t]:
            weights = search.shared(s, t, image, source)
            pairs = best_alignment(weights, search.left.shape[s], search.right.shape[t], want_pairs=True)[2]
            actions[left.names[s]] = {
                left.players[k]: {left.actions[s][k][a]: right.actions[t][place][b] for a, b in pairs[k]}
                for k, place in enumerate(order)
                if place is not None and k < len(left.players)
            }
    return players, states, actions
