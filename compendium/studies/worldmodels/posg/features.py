"""The feature-multiset fallback of Lane 2a: what two models have in common, counted without aligning them.

Cheaper than the matcher and blind to how the pieces hang together: it is reported apart, never in place
of it. For games the features are read off the tables; for situations and cultural cases, where no
reference model exists, off the words, against the concepts that the case's criteria name.
"""

from collections import Counter

from compendium.studies.worldmodels.posg.model import POSG
from compendium.studies.worldmodels.posg.unroll import unroll


def feature_multiset(game: POSG, horizon: int = 3) -> Counter:
    """Counts of name-free features of the cut at `horizon`.

    ("players", n); one ("state", terminal or not, sorted numbers of actions) a state; one ("move", spread)
    a joint action, spread being the falling probabilities; one ("edge", kind, kind) an outcome, kinds being
    "open" and "end"; ("step", depth) once for each state.
    """
    cut = unroll(game, horizon)
    kind = ["end" if ended else "open" for ended in cut.terminal]
    found = Counter([("players", len(game.players))])
    for s, table in enumerate(cut.rows):
        found["state", kind[s], tuple(sorted(cut.shape[s]))] += 1
        found["step", cut.depth[s]] += 1
        for row in table.values():
            found["move", tuple(round(p, 9) for _, p in row)] += 1
            for t, _ in row:
                found["edge", kind[s], kind[t]] += 1
    return found


def multiset_agreement(reference: Counter, candidate: Counter) -> dict[str, float]:
    """Coverage, precision and F1 of two multisets: shared counts over the reference's, over the candidate's,
    and their harmonic mean (0 where nothing is shared). Raises ValueError for an empty reference."""
    if not reference:
        raise ValueError("the reference has no features")
    shared = (reference & candidate).total()
    coverage, precision = shared / reference.total(), shared / max(candidate.total(), 1)
    return {
        "coverage": coverage,
        "precision": precision,
        "f1": 2 * coverage * precision / (coverage + precision) if shared else 0.0,
    }
