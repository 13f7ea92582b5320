"""Creative utility of a set: quality and distinctness in one number (CREATE, section 3.1, equation 1).

A set of items, each with a quality f, and the distances d between them. The items are put in an order; each
is worth its quality times its distance to the nearest item before it (the first counts with distance 1); the
i-th item (i = 0, 1, 2 …) is discounted by a patience γ. The utility is the sum. The paper orders greedily;
here is also the best order, exact for small sets, and a bound on it for any size.

Arrays are padded: `quality[set, item]` with 0 or NaN where a set has no such item, `distance[set, item,
item]`.
"""

from dataclasses import dataclass

import numpy as np

CUTOFF = 0.7
PATIENCE = tuple(round(0.1 * step, 1) for step in range(11))
EXACT_LIMIT = 16


class UtilityError(ValueError):
    """Qualities, distances or a patience that cannot be used; the message says what would be right."""


@dataclass(frozen=True)
class Greedy:
    """A greedy order: `order[set, step]` (item chosen at that step), `gain[set, step]` (quality × distance to
    the nearest item chosen before). Items of quality 0 come last, with gain 0."""

    order: np.ndarray
    gain: np.ndarray


def path_distance(cosine: np.ndarray, cutoff: float = CUTOFF, wraps: bool = False) -> np.ndarray:
    """Distance of two paths from the cosine distance of their embeddings, any shape, values 0 … 1.

    0.5·(1 − cos(π·(d/cutoff)²)) up to the cutoff and 1 beyond it: near-paraphrases count as almost the same,
    and everything farther than the cutoff as wholly distinct (CREATE, "Distance function").
    `wraps`: as the authors' code has it, 1 only from the cutoff to a cosine distance of 1, and the curve again above
    1, so that paths whose embeddings point apart count as near. Raises UtilityError for a cutoff that is not positive.

    >>> path_distance([0.35, 0.7, 1.0, 1.05], wraps=True).round(3)
    array([0.146, 1.   , 1.   , 0.146])
    """
    if not cutoff > 0:
        raise UtilityError(f"the cutoff is {cutoff}, should be above 0")
    cosine = np.asarray(cosine, dtype=float)
    share = cosine / cutoff
    share = np.where(wraps & (cosine > 1.0), share, np.minimum(share, 1.0))
    return 0.5 * (1.0 - np.cos(np.pi * share * share))


def set_distances(
    vectors: np.ndarray, cutoff: float = CUTOFF, decimals: int = 6, wraps: bool = False
) -> np.ndarray:
    """Path distances within each set: distance[set, item, item] from unit vectors[set, item, dimension].

    The cosine is rounded to `decimals` first, as `lib.embedding.cosine_distance` does and for the same
    reason. `wraps` as in `path_distance`.

    >>> set_distances([[[1, 0], [0, 1]]])[0]
    array([[0., 1.],
           [1., 0.]])
    """
    vectors = np.asarray(vectors, dtype=float)
    cosine = 1.0 - vectors @ np.swapaxes(vectors, -1, -2)
    return path_distance(np.clip(np.round(cosine, decimals), 0.0, 2.0), cutoff, wraps)


def patience_weights(length: int, patience, delay: int = 1) -> np.ndarray:
    """weights[patience, step] = γ^max(step − delay, 0), with 0⁰ = 1.

    `delay=1` is the convention of the published scores: the first two items are not discounted, so that a
    score at γ = 0 is the sum of two gains. `delay=0` is the plain γ^step.
    Raises UtilityError for a patience outside 0 … 1 or a negative delay.

    >>> patience_weights(4, 0.5)
    array([[1.  , 1.  , 0.5 , 0.25]])
    """
    values = np.atleast_1d(np.asarray(patience, dtype=float))
    if not ((values >= 0) & (values <= 1)).all():
        raise UtilityError(f"patience {values.tolist()}: each value should lie between 0 and 1")
    if delay < 0:
        raise UtilityError(f"delay is {delay}, should be 0 or more")
    exponent = np.maximum(np.arange(length) - delay, 0)
    return values[:, None] ** exponent


def greedy(quality: np.ndarray, distance: np.ndarray) -> Greedy:
    """Order each set greedily: the highest quality first, then always the item with the largest
    quality × distance to its nearest predecessor; of equals, the one that comes first in the set.

    quality[set, item], distance[set, item, item]; all sets advance together, one step at a time.
    Raises UtilityError for shapes that do not fit, a negative quality or an undefined distance.

    >>> greedy([[4, 3, 2]], [[[0, 0.5, 1], [0.5, 0, 0.2], [1, 0.2, 0]]]).order
    array([[0, 2, 1]])
    """
    quality, distance = _checked(quality, distance)
    n_sets, n_items = quality.shape
    order = np.zeros((n_sets, n_items), dtype=np.intp)
    gain = np.zeros((n_sets, n_items))
    every = np.arange(n_sets)
    nearest = np.ones((n_sets, n_items))
    open_ = np.ones((n_sets, n_items), dtype=bool)
    for step in range(n_items):
        worth = np.where(open_, quality * nearest, -1.0)
        chosen = worth.argmax(axis=1)
        order[:, step], gain[:, step] = chosen, worth[every, chosen]
        open_[every, chosen] = False
        row = distance[every, chosen]
        nearest = row if step == 0 else np.minimum(nearest, row)
    return Greedy(order, gain)


def discounted(gain: np.ndarray, patience=PATIENCE, delay: int = 1) -> np.ndarray:
    """utility[set, patience]: the gains of an order, discounted and summed. One order serves every
    patience.

    >>> discounted([[4.0, 2.0, 0.6]], patience=[0.5, 1.0]).round(2)
    array([[6.3, 6.6]])
    """
    gain = np.atleast_2d(gain)
    # summed row by row rather than by a matrix product, whose last bits depend on how many sets there are
    return (gain[:, None, :] * patience_weights(gain.shape[1], patience, delay)).sum(axis=-1)


def creative_utility(quality, distance, patience=PATIENCE, delay: int = 1) -> np.ndarray:
    """Greedy creative utility[set, patience] (CREATE, equation 1); a set without a positive quality scores 0.

    Example by hand: qualities 4, 3, 2 with distances d₀₁ = 0.5, d₀₂ = 1, d₁₂ = 0.2. First 4; then the third
    item (2·1 = 2 beats 3·0.5 = 1.5); then the second, at distance min(0.5, 0.2): 3·0.2 = 0.6. At γ = 1: 6.6.

    >>> creative_utility([[4, 3, 2]], [[[0, 0.5, 1], [0.5, 0, 0.2], [1, 0.2, 0]]], patience=[1.0]).round(2)
    array([[6.6]])
    """
    return discounted(greedy(quality, distance).gain, patience, delay)


def order_gain(quality: np.ndarray, distance: np.ndarray, order) -> np.ndarray:
    """gain[step] of one set under a given order (quality[item], distance[item, item]).

    Raises UtilityError for an order that is no arrangement of all items.

    >>> order_gain([4, 3, 2], [[0, 0.5, 1], [0.5, 0, 0.2], [1, 0.2, 0]], [1, 0, 2]).round(2)
    array([3. , 2. , 0.4])
    """
    quality, distance = (array[0] for array in _checked(np.atleast_2d(quality), np.asarray(distance)[None]))
    order = np.asarray(order)
    if sorted(order.tolist()) != list(range(len(quality))):
        raise UtilityError(f"order {order.tolist()} should hold each of 0 … {len(quality) - 1} once")
    among = distance[np.ix_(order, order)]
    before = np.where(np.tri(len(order), k=-1, dtype=bool), among, np.inf).min(axis=1, initial=np.inf)
    return quality[order] * np.where(np.isinf(before), 1.0, before)


def optimal_order(quality: np.ndarray, distance: np.ndarray, weights: np.ndarray, limit: int = EXACT_LIMIT):
    """The best order of one set and its utility, exactly: (utility, order[step]).

    quality[item], distance[item, item], weights[step]. What an item adds depends on the set before it and on
    its step alone, so the best value of every subset follows from those one item smaller: 2ⁿ·n additions.
    Raises UtilityError for more than `limit` items of positive quality: use `upper_bound` there.

    >>> optimal_order(np.array([4, 3, 2]), np.array([[0, 0.5, 1], [0.5, 0, 0.2], [1, 0.2, 0]]), np.ones(3))[1]
    array([2, 0, 1])
    """
    quality, distance = (array[0] for array in _checked(np.atleast_2d(quality), np.asarray(distance)[None]))
    items = np.flatnonzero(quality > 0)
    rest = np.flatnonzero(~(quality > 0))
    n = len(items)
    if n > limit:
        raise UtilityError(
            f"{n} items: the exact order is sought for at most {limit}; upper_bound takes any number"
        )
    quality, distance = quality[items], distance[np.ix_(items, items)]
    nearest = np.full((1 << n, n), np.inf)
    for item in range(n):
        np.minimum(nearest[: 1 << item], distance[item], out=nearest[1 << item : 2 << item])
    nearest[0] = 1.0
    size = np.bitwise_count(np.arange(1 << n))
    best = np.full(1 << n, -np.inf)
    best[0] = 0.0
    last = np.zeros(1 << n, dtype=np.intp)
    for step in range(n):
        members = np.flatnonzero(size == step)
        for item in range(n):
            before = members[(members >> item) & 1 == 0]
            after = before | (1 << item)
            value = best[before] + weights[step] * quality[item] * nearest[before, item]
            better = value > best[after]
            best[after[better]], last[after[better]] = value[better], item
    order, subset = [], (1 << n) - 1
    while subset:
        order.append(last[subset])
        subset ^= 1 << last[subset]
    order = np.concatenate([items[order[::-1]] if order else items, rest]).astype(np.intp)
    return float(best[-1]), order


def upper_bound(quality: np.ndarray, distance: np.ndarray, weights: np.ndarray, depth: int = 2) -> float:
    """A number that no order of one set can exceed: the smaller of two bounds.

    By beginnings: after any first `depth` items, each further item gains at most quality × distance to the
    nearest of those, and no arrangement of such amounts beats giving the largest to the heaviest weights; the
    largest such total over all beginnings. A greater depth never loosens it; it costs n^depth. By clusters:
    see `cluster_bound`.
    Raises UtilityError for weights above 1, which the second bound does not cover.

    >>> upper_bound(np.array([4, 3]), np.array([[0, 0.5], [0.5, 0]]), np.ones(2))
    5.5
    """
    quality, distance = (array[0] for array in _checked(np.atleast_2d(quality), np.asarray(distance)[None]))
    items = np.flatnonzero(quality > 0)
    quality, distance = quality[items], distance[np.ix_(items, items)]
    if not len(items):
        return 0.0
    if np.max(weights) > 1:
        raise UtilityError(f"a weight is {np.max(weights):g}, should be at most 1")
    n, depth = len(items), min(depth, len(items))
    weights = np.asarray(weights, dtype=float)[:n]
    done, nearest, gone = np.zeros(1), np.ones((1, n)), np.zeros((1, n), dtype=bool)
    for step in range(depth):
        start, item = np.nonzero(~gone)
        done = done[start] + weights[step] * quality[item] * nearest[start, item]
        nearest = distance[item] if step == 0 else np.minimum(nearest[start], distance[item])
        gone = gone[start]
        gone[np.arange(len(item)), item] = True
    left = np.sort(np.where(gone, 0.0, quality * nearest), axis=1)[:, ::-1][:, : n - depth]
    by_beginnings = (done + left @ np.sort(weights[depth:])[::-1]).max()
    return float(min(by_beginnings, cluster_bound(quality, distance)))


def cluster_bound(quality: np.ndarray, distance: np.ndarray) -> float:
    """A number that no order of one set can exceed, good where many items are alike: quality[item],
    distance[item, item].

    In whatever order, one member f of a cluster comes first; every other member j then gains at most q_j·d(j,
    f). So a cluster is worth at most max_f (q_f + Σ_j q_j·min(1, d(j, f))), and a set at most the sum over
    the clusters of any partition. The smallest such sum over the cuts of the average-linkage tree is returned
    (undiscounted).

    >>> float(cluster_bound(np.array([4.0, 3.0]), np.array([[0, 0.5], [0.5, 0]])))
    5.5
    """
    from scipy.cluster.hierarchy import average
    from scipy.spatial.distance import squareform

    n = len(quality)
    worth = quality[None, :] * np.minimum(distance, 1.0)
    np.fill_diagonal(worth, quality)  # worth[f, j]: what j can gain once f is there; f itself counts in full
    value, members = dict(enumerate(quality)), {item: [item] for item in range(n)}
    total = best = float(quality.sum())
    for step, (left, right) in enumerate(
        average(squareform(distance, checks=False))[:, :2].astype(int) if n > 1 else ()
    ):
        both = members.pop(left) + members.pop(right)
        members[n + step], value[n + step] = both, worth[np.ix_(both, both)].sum(axis=1).max()
        total += value[n + step] - value[left] - value[right]
        best = min(best, total)
    return best


def _checked(quality, distance):
    """Float copies of quality[set, item] (missing as 0) and distance[set, item, item], their shapes and signs
    checked."""
    quality, distance = np.asarray(quality, dtype=float), np.asarray(distance, dtype=float)
    if quality.ndim != 2 or distance.shape != (*quality.shape, quality.shape[-1]):
        raise UtilityError(
            f"quality{list(quality.shape)} needs distances of shape [set, item, item], "
            f"not {list(distance.shape)}"
        )
    quality = np.where(np.isnan(quality), 0.0, quality)
    if (quality < 0).any() or np.isinf(quality).any():
        raise UtilityError("qualities should be finite and 0 or more (0 for an item that does not count)")
    both = (quality > 0)[:, :, None] & (quality > 0)[:, None, :]
    if not ((distance >= 0) | ~both).all():
        raise UtilityError("distances between items that count should be defined and 0 or more")
    return quality, np.where(both, distance, 0.0)
