"""A good renaming fast: greedy by the pair bounds, endings by assignment, then single changes while they pay."""
# Tested by tests/compendium/studies/worldmodels/posg/test_match.py.

import numpy as np

from compendium.studies.worldmodels.posg.actions import assignment, best_alignment

FREE, UNMATCHED = -1, -2
SWAPPED = 4000  # pairs of states (left times right) up to which single changes are tried


def climb(search, image, source, goal: float, rounds: int = 4) -> list[int]:
    """Complete a partial renaming of `search` (see search.Search) and improve it.

    Returns image[s] (a right state or UNMATCHED); deterministic. `goal` : a bound that ends the search once met;
    `rounds` caps the passes over all changes.
    """
    image = _endings(search, *_greedy(search, image, source))
    value = search.value(image)
    for _ in range(rounds if search.m * search.n <= SWAPPED else 0):
        before = value
        for s in range(1, search.m):
            if value >= goal - 1e-9:
                return image
            gain, changed = _best_change(search, image, s)
            if changed is not None:
                image, value = changed, value + gain
        if value <= before + 1e-9:
            break
    return image


def _greedy(search, image, source):
    """Match expanded states in the search's own order, each to the open state with the highest bound now; of equal
    ones to the first that behaves alike (search.colors)."""
    colors_left, colors_right = search.colors
    for s in search.order:
        if image[s] != FREE or not search.left.shape[s]:
            continue
        score = search.arriving(image, source, s)
        for t in search.open_right:
            if source[t] == FREE:
                score[t] += search.leaving(s, t, image, source)
        score = score + 0.5 * (np.array(colors_right) == colors_left[s])
        usable = search.same_kind[s] & np.array([y == FREE for y in source])
        if not usable.any():
            image[s] = UNMATCHED
            continue
        t = int(np.where(usable, score, -1.0).argmax())
        image[s], source[t] = t, s
    return image, source


def _endings(search, image, source):
    """Match all other states at once: fix each matched pair's best renaming of actions, then assign so that most
    probability mass arrives; twice, for the first assignment sharpens the renamings of actions."""
    free_left = [s for s in range(search.m) if image[s] == FREE]
    free_right = [t for t in range(search.n) if source[t] == FREE]
    if not free_left or not free_right:
        return [t if t >= 0 else UNMATCHED for t in image]
    where = np.ix_(free_left, free_right)
    allowed = search.same_kind[where]
    for _ in range(2):
        arriving = np.zeros((search.m, search.n))
        for s, t in enumerate(image):
            if t >= 0 and search.left.shape[s] and search.right.shape[t]:
                _add_mass(search, arriving, s, t, image, source)
        # matching at all is worth one; which of equal ones does not matter
        _, pairs = assignment(np.where(allowed, 1.0 + arriving[where], 0.0))
        image, source = list(image), list(source)
        for s in free_left:
            image[s] = UNMATCHED
        for i, j in pairs:
            if allowed[i, j]:
                image[free_left[i]], source[free_right[j]] = free_right[j], free_left[i]
    return image


def _add_mass(search, arriving, s, t, image, source):
    """Add what the transitions of s and t share under the renaming of actions that is best now."""
    shape, other = search.left.shape[s], search.right.shape[t]
    pairs = best_alignment(search.shared(s, t, image, source), shape, other, want_pairs=True)[2]
    forward = [dict(mine) for mine in pairs]
    for joint, row in search.left.rows[s].items():
        target = tuple(moves.get(a) for moves, a in zip(forward, joint))
        for x, p in row:
            for y, q in search.right.rows[t].get(target, ()):
                arriving[x, y] += min(p, q)


def _best_change(search, image, s):
    """The best new image for s, its present holder getting s's old one: (gain, image) or (0, None)."""
    holder = {t: x for x, t in enumerate(image) if t >= 0}
    best = (1e-9, None)
    for t in range(1, search.n):
        if t == image[s] or not search.same_kind[s, t]:
            continue
        other = holder.get(t)
        trial = list(image)
        trial[s] = t
        if other is not None:
            trial[other] = image[s]
        moved = (s,) if other is None else (s, other)
        touched = {u for x in moved for u in (x, *search.before_left[x])}
        gain = sum(search.worth(u, trial) - search.worth(u, image) for u in touched)
        if gain > best[0]:
            best = (gain, trial)
    return best if best[1] is not None else (0.0, None)
