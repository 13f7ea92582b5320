"""A good renaming fast: greedy by the pair bounds, then changes of one image or one swap while they pay."""

import numpy as np

FREE, UNMATCHED = -1, -2


def climb(search, image, source, rounds: int = 4) -> list[int]:
    """Complete a partial renaming of `search` (see search.Search) and improve it.

    Returns image[s] (a right state or UNMATCHED); deterministic. `rounds` caps the passes over all changes.
    """
    image = _greedy(search, image, source)
    value = search.value(image)
    for _ in range(rounds):
        better = False
        for s in range(1, search.m):
            gain, changed = _best_change(search, image, value, s)
            if changed is not None:
                image, value, better = changed, value + gain, True
        if not better:
            break
    return image


def _greedy(search, image, source):
    """Match states in the search's own order, each to the open state with the highest bound now."""
    for s in search.order:
        if image[s] != FREE:
            continue
        _, into = search.bounds(image, source)
        score = into[s].copy()
        for t in search.open_right if search.left.shape[s] else ():
            if source[t] == FREE:
                score[t] += search.leaving(s, t, image, source)
        usable = search.same_kind[s] & np.array([y == FREE for y in source])
        if not usable.any():
            image[s] = UNMATCHED
            continue
        t = int(np.where(usable, score, -1.0).argmax())
        image[s], source[t] = t, s
    return image


def _best_change(search, image, value, s):
    """The best new image for s, its present holder getting s's old one: (gain, image) or (0, None)."""
    holder = {t: x for x, t in enumerate(image) if t >= 0}
    best = (1e-9, None)
    for t in range(1, search.n):
        if t == image[s] or not search.same_kind[s, t]:
            continue
        trial = list(image)
        trial[s] = t
        if t in holder:
            trial[holder[t]] = image[s]
        elif image[s] < 0:
            pass
        gain = search.value(trial) - value
        if gain > best[0]:
            best = (gain, trial)
    return best if best[1] is not None else (0.0, None)
