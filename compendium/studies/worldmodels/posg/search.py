"""Branch and bound for the structural score of two unrolled games whose players are already aligned.

States of the left game are matched one at a time to states of the right game. At every node each open pair
(s, t) has an upper bound on what it can still contribute; an assignment problem over these bounds caps the
node. A matched transition is seen twice, from the pair it leaves and from the pair it enters, so half of
each is counted: this joint bound is tighter than either alone, and both are kept.
"""
# Tested by tests/compendium/studies/worldmodels/posg/test_match.py.

import math
from fractions import Fraction

import numpy as np

from compendium.studies.worldmodels.posg.actions import assignment, best_alignment
from compendium.studies.worldmodels.posg.climb import climb
from compendium.studies.worldmodels.posg.unroll import Unrolled

FREE, UNMATCHED = -1, -2
TINY = 1e-9


class Search:
    """One left and one right game; `run` returns the best renaming found and an upper bound on any.

    left, right : Unrolled, with the players in matching places.
    budget : nodes that may be opened. Counting nodes, not seconds, keeps the result the same everywhere.
    """

    def __init__(self, left: Unrolled, right: Unrolled):
        self.left, self.right = left, right
        self.m, self.n = len(left.names), len(right.names)
        self.rows_left, self.rows_right = _flat_rows(left), _flat_rows(right)
        self.next_left, self.next_right = _targets(self.rows_left), _targets(self.rows_right)
        self.before_left = [tuple(u for u in range(self.m) if s in self.next_left[u]) for s in range(self.m)]
        self.open_left = [s for s in range(self.m) if left.shape[s]]
        self.open_right = [t for t in range(self.n) if right.shape[t]]
        self.same_kind = np.equal.outer(np.array(left.terminal), np.array(right.terminal))
        self.grain = _grain((left, right))
        self.memo, self.inexact = {}, False
        self.entering = self._entering()
        self.order = self._order()
        self.twins = _twins(right, self.rows_right)
        self.colors = _colors((left, self.rows_left), (right, self.rows_right))

    # -- what a pair can contribute ---------------------------------------------------------------

    def leaving(self, s: int, t: int, image, source) -> float:
        """Most probability mass that the transitions of s and t can still share, given the partial renaming:
        image[s] is a right state, FREE or UNMATCHED; source[t] is a left state or FREE."""
        key = (
            s,
            t,
            tuple([image[x] for x in self.next_left[s]]),
            tuple([source[y] for y in self.next_right[t]]),
        )
        known = self.memo.get(key)
        if known is None:
            weights = self.shared(s, t, image, source)
            known, exact = best_alignment(weights, self.left.shape[s], self.right.shape[t])
            self.inexact |= not exact
            self.memo[key] = known
        return known

    def shared(self, s: int, t: int, image, source) -> np.ndarray:
        """weights[a, b]: most mass that joint actions a of s and b of t can share, by flat positions."""
        weights = np.empty((len(self.rows_left[s]), len(self.rows_right[t])))
        for a, row in enumerate(self.rows_left[s]):
            for b, other in enumerate(self.rows_right[t]):
                if len(row) == 1 and len(other) == 1:
                    weights[a, b] = self._one(row[0], other[0], image, source)
                else:
                    weights[a, b] = self._many(row, other, image, source)
        return weights

    def _one(self, edge, other, image, source) -> float:
        (x, p), (y, q) = edge, other
        if image[x] == y or (image[x] == FREE and source[y] == FREE and self.same_kind[x, y]):
            return min(p, q)
        return 0.0

    def _many(self, row, other, image, source) -> float:
        total, target = 0.0, dict(other)
        spare = ([], [])
        for x, p in row:
            if image[x] >= 0:
                total += min(p, target.get(image[x], 0.0))
            elif image[x] == FREE:
                spare[self.left.terminal[x]].append(p)
        waiting = ([], [])
        for y, q in other:
            if source[y] == FREE:
                waiting[self.right.terminal[y]].append(q)
        # both lists fall, and pairing large with large maximises a sum of minima
        for mine, theirs in zip(spare, waiting):
            total += sum(map(min, mine, theirs))
        return total

    def _entering(self) -> np.ndarray:
        """entering[i, j, x, y]: most mass that x and y can share by transitions from the i-th expanded left
        state, matched to the j-th expanded right state (any renaming of actions)."""
        masses_left = [_arrivals(self.rows_left[s], self.m) for s in self.open_left]
        masses_right = [_arrivals(self.rows_right[t], self.n) for t in self.open_right]
        table = np.zeros((len(self.open_left), len(self.open_right), self.m, self.n))
        for i, mass in enumerate(masses_left):
            for j, other in enumerate(masses_right):
                k = min(mass.shape[0], other.shape[0])
                table[i, j] = np.minimum(mass[:k, :, None], other[:k, None, :]).sum(axis=0)
        return np.where(self.same_kind, table, 0.0)

    # -- bounds -------------------------------------------------------------------------------------

    def bounds(self, image, source):
        """(out[s, t], into[s, t]): most mass the pair can share by leaving and by entering transitions."""
        out = np.zeros((self.m, self.n))
        for s in self.open_left:
            for t in [image[s]] if image[s] >= 0 else self.open_right if image[s] == FREE else []:
                if (image[s] == t or source[t] == FREE) and self.right.shape[t]:
                    out[s, t] = self.leaving(s, t, image, source)
        return out, self.arriving(image, source)

    def arriving(self, image, source, row=slice(None)) -> np.ndarray:
        """into[s, t]: most mass the pair can share by entering transitions; with `row` only that left state's."""
        table = self.entering[:, :, row]
        place = {t: j for j, t in enumerate(self.open_right)}
        into = np.zeros(table.shape[2:])
        for i, s in enumerate(self.open_left):
            if image[s] >= 0 and image[s] in place:
                into += table[i, place[image[s]]]
        free_left = [i for i, s in enumerate(self.open_left) if image[s] == FREE]
        free_right = [j for j, t in enumerate(self.open_right) if source[t] == FREE]
        if free_left and free_right:
            block = table[np.ix_(free_left, free_right)]
            into += np.minimum(block.max(axis=1).sum(axis=0), block.max(axis=0).sum(axis=0))
        return into

    def assess(self, image, source, free_left, free_right):
        """(bound on the score, joint[s, t] pair bounds) at a node."""
        out, into = self.bounds(image, source)
        joint = 1.0 + 0.5 * (out + into)
        fixed = [(s, image[s]) for s in range(self.m) if image[s] >= 0]
        totals = []
        for pair in (joint, 1.0 + out):
            total = sum(pair[s, t] for s, t in fixed)
            totals.append(total + self._cap(pair, free_left, free_right))
        return min(totals), joint

    def _cap(self, pair, free_left, free_right) -> float:
        if not len(free_left) or not len(free_right):
            return 0.0
        where = np.ix_(free_left, free_right)
        weights = np.where(self.same_kind[where], pair[where], 0.0)
        return assignment(weights)[0]

    def floor(self, bound: float) -> float:
        """Scores are multiples of 1/grain where all probabilities are: round a bound down to one."""
        return bound if self.grain is None else math.floor(bound * self.grain + 1e-6) / self.grain

    # -- exact value of a full renaming ----------------------------------------------------------

    def value(self, image) -> float:
        """The score of a complete renaming (image[s] a right state or UNMATCHED): a lower bound on the best."""
        return math.fsum(self.worth(s, image) for s in range(self.m))

    def worth(self, s: int, image) -> float:
        """What state s adds to the score of a complete renaming: depends on the images of s and its successors."""
        t = image[s]
        if t < 0:
            return 0.0
        if not self.left.shape[s] or not self.right.shape[t]:
            return 1.0
        key = (s, t, tuple([image[x] for x in self.next_left[s]]))
        known = self.memo.get(key)
        if known is None:
            weights = self.shared(s, t, image, [UNMATCHED] * self.n)
            total, exact = best_alignment(weights, self.left.shape[s], self.right.shape[t])
            self.inexact |= not exact
            known = self.memo[key] = 1.0 + total
        return known

    # -- search -----------------------------------------------------------------------------------------

    def root(self):
        """(bound, image, source) with start matched to start; the bound is 0 where the starts differ in kind."""
        image, source = [FREE] * self.m, [FREE] * self.n
        if not self.same_kind[0, 0]:
            return 0.0, None, None
        image[0], source[0] = 0, 0
        free = (list(range(1, self.m)), list(range(1, self.n)))
        return self.floor(self.assess(image, source, *free)[0]), image, source

    def run(self, best: float, budget: int):
        """(score, image or None, upper bound, nodes): the search from the root, given that `best` is reached
        elsewhere; `image` is None where nothing better was found. The search is complete, and the upper bound
        equals max(best, score), unless the budget ran out."""
        self.best, self.found, self.left_over, self.nodes, self.budget = best, None, 0.0, 0, budget
        bound, image, source = self.root()
        if image is not None and bound > best + TINY:
            self._start_from(image, source, bound)
            self._branch(0, image, source, list(range(1, self.m)), list(range(1, self.n)), bound)
        return self.best, self.found, max(self.best, self.left_over), self.nodes

    def _start_from(self, image, source, bound):
        guess = climb(self, list(image), list(source), bound)  # a good renaming lets the bounds cut early
        self._offer(guess, self.value(guess))

    def _offer(self, image, value):
        if value > self.best + TINY:
            self.best, self.found = value, list(image)

    def _branch(self, place, image, source, free_left, free_right, bound):
        if self.floor(bound) <= self.best + TINY:
            return
        if self.nodes >= self.budget:
            self.left_over = max(self.left_over, self.floor(bound))
            return
        self.nodes += 1
        now, joint = self.assess(image, source, free_left, free_right)
        bound = min(bound, now)
        if self.floor(bound) <= self.best + TINY:
            return
        if not free_left:
            closed = [t if t >= 0 else UNMATCHED for t in image]
            self._offer(closed, self.value(closed))
            return
        s = self.order[place]
        rest = [x for x in free_left if x != s]
        for cap, t in self._children(s, rest, image, free_right, joint, bound):
            if t is None:
                image[s] = UNMATCHED
                self._branch(place + 1, image, source, rest, free_right, cap)
            else:
                image[s], source[t] = t, s
                self._branch(place + 1, image, source, rest, [y for y in free_right if y != t], cap)
                source[t] = FREE
            image[s] = FREE

    def _children(self, s, rest, image, free_right, joint, bound):
        """[(bound, t), ...] by falling bound: the images that s may take, twins of a free state left out."""
        fixed = sum(joint[x, image[x]] for x in range(self.m) if image[x] >= 0)
        children, seen = [], set()
        kind = self.left.terminal[s]
        options = [t for t in free_right if self.right.terminal[t] == kind]
        for t in options:
            if self.twins[t] in seen:
                continue
            seen.add(self.twins[t])
            cap = fixed + joint[s, t] + self._cap(joint, rest, [y for y in free_right if y != t])
            children.append((min(bound, cap), joint[s, t], -t))
        children.sort(reverse=True)
        children = [(cap, -t) for cap, _, t in children]
        waiting = sum(self.left.terminal[x] == kind for x in rest)
        if waiting >= len(options):  # more states of this kind on the left: some go unmatched
            children.append((min(bound, fixed + self._cap(joint, rest, free_right)), None))
        return children

    def _order(self):
        """Expanded states first, in breadth-first order: each has a matched predecessor by its turn."""
        return sorted(range(1, self.m), key=lambda s: (not self.left.shape[s], self.left.terminal[s], s))


def _flat_rows(cut: Unrolled):
    """rows[s][a]: outcomes of the joint action at flat position a."""
    return [
        [cut.rows[s].get(key, ()) for key in np.ndindex(*cut.shape[s])] if cut.shape[s] else []
        for s in range(len(cut.names))
    ]


def _targets(rows):
    return [tuple(sorted({x for row in table for x, _ in row})) for table in rows]


def _arrivals(table, count: int) -> np.ndarray:
    """mass[k, x]: the k-th largest probability with which one of a state's joint actions leads to x."""
    mass = np.zeros((len(table), count))
    for a, row in enumerate(table):
        for x, p in row:
            mass[a, x] = p
    return -np.sort(-mass, axis=0)


def _grain(cuts) -> int | None:
    """The smallest common denominator of all probabilities, or None where it is above 1000."""
    grain = 1
    for p in {p for cut in cuts for table in cut.rows for row in table.values() for _, p in row}:
        near = Fraction(p).limit_denominator(1000)
        if abs(float(near) - p) > 1e-12:
            return None
        grain = math.lcm(grain, near.denominator)
    return grain if grain <= 1000 else None


def _colors(*sides) -> list[list[int]]:
    """color[s] of both games' states: equal where states behave alike as far as refinement by the multiset of
    their outcomes' colours can tell, under any names (a hint for good renamings; bounds do not use it)."""
    colors = [
        [(cut.terminal[s], tuple(sorted(cut.shape[s]))) for s in range(len(cut.names))] for cut, _ in sides
    ]
    count = 0
    while True:
        number = {}
        colors = [[number.setdefault(color, len(number)) for color in side] for side in colors]
        if len(number) == count:
            return colors
        count = len(number)
        colors = [
            [
                (own[s], tuple(sorted(tuple(sorted((own[x], p) for x, p in row)) for row in rows[s])))
                for s in range(len(own))
            ]
            for own, (_, rows) in zip(colors, sides)
        ]


def _twins(cut: Unrolled, rows) -> list[int]:
    """twin[t]: the first state that t could change places with unnoticed: the same transitions out, and the
    same probability in from every joint action."""
    inward = [[] for _ in cut.names]
    for s, table in enumerate(rows):
        for a, row in enumerate(table):
            for x, p in row:
                inward[x].append((s, a, p))
    kinds, twin = {}, []
    for t in range(len(cut.names)):
        out = None if cut.shape[t] else cut.terminal[t]
        key = (t,) if t == 0 or cut.shape[t] else (out, tuple(inward[t]))
        twin.append(kinds.setdefault(key, t))
    return twin
