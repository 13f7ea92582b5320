"""World models: the matcher against brute force, the bounded search, and 135 candidates through all lanes.

Each line names what is measured, the figure, and the mark it is held to; the exit status is 1 where one is missed.
Times are wall-clock; the matcher's are the median of three.
"""

import statistics
import sys
import time

import numpy as np

from compendium.studies.worldmodels.posg.brute import brute_force_score
from compendium.studies.worldmodels.posg.edits import four_bids
from compendium.studies.worldmodels.posg.match import compare
from compendium.studies.worldmodels.posg.model import POSG, relabel
from compendium.studies.worldmodels.posg.sandbox import isolation
from compendium.studies.worldmodels.posg.scenarios import corpus


def random_game(rng, states=12, ends=5, chance=0.3) -> POSG:
    """A random two-player game, two actions each, in which every state can be reached."""
    names = [f"s{i}" for i in range(states)]
    while True:
        actions, rows = {}, {}
        for s in names[: states - ends]:
            actions[s] = (("a", "b"), ("c", "d"))
            rows[s] = {}
            for joint in (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")):
                first, second = rng.choice(states, 2, replace=False)
                rows[s][joint] = (
                    {names[first]: 0.75, names[second]: 0.25}
                    if rng.random() < chance
                    else {names[first]: 1.0}
                )
        game = POSG(
            ("p", "q"),
            tuple(names),
            "s0",
            frozenset(names[states - ends :]),
            actions,
            rows,
            {who: {s: s for s in names} for who in "pq"},
        )
        if len(game.depths()) == states:
            return game


def timed(function, repeats=3):
    """(result, median seconds)."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds)


def main() -> int:
    missed = []

    def mark(what, value, limit, unit="s"):
        print(f"{what:<72} {value:8.3f} {unit:<2} mark {limit:g} {'' if value <= limit else '  MISSED'}")
        missed.extend([what] if value > limit else [])

    rng = np.random.default_rng(0)
    first = random_game(rng)
    match, seconds = timed(lambda: compare(first, relabel(first, rng), horizon=12))
    assert match.exact and match.same
    mark("12 states, two players, a renamed copy: exact", seconds, 1)
    slowest, done = 0.0, 0
    for _ in range(6):
        a, b = random_game(rng), random_game(rng)
        match, seconds = timed(lambda: compare(a, b, horizon=12))
        slowest, done = max(slowest, seconds), done + match.exact
    mark(f"12 states, two players, unrelated pairs: slowest of 6, {done} exact", slowest, 1)

    match, seconds = timed(lambda: compare(corpus()["G6"].game, four_bids()))
    mark(f"9 against 101 states: F1 {match.f1:.4f}, at most {match.f1_upper:.4f}", seconds, 10)
    match, seconds = timed(lambda: compare(four_bids(), relabel(four_bids(), rng)), 1)
    mark(f"101 states against a renamed copy: F1 {match.f1:.4f}, exact {match.exact}", seconds, 10)

    print("\nbrute force (every renaming) against the matcher, the same pairs, equal scores checked:")
    for states in (4, 5, 6, 7):
        pairs = [(random_game(rng, states, 2), random_game(rng, states, 2)) for _ in range(4)]
        ours, fast = timed(lambda: [compare(a, b, horizon=9).score for a, b in pairs])
        theirs, slow = timed(lambda: [brute_force_score(a, b, 9) for a, b in pairs], 1)
        assert np.allclose(ours, theirs)
        print(f"  {states} states: brute {slow:8.3f} s, matcher {fast:8.3f} s, ratio {slow / fast:8.1f}")

    from types import SimpleNamespace

    import pandas as pd

    from compendium.frame.params import study_params
    from compendium.studies.worldmodels.ask import generation_requests
    from compendium.studies.worldmodels.scores import match_table, structure_table
    from compendium.studies.worldmodels.simulated import respond
    from compendium.studies.worldmodels.stages import judge
    from compendium.studies.worldmodels.tables import games_of, semantic_table

    p = SimpleNamespace(**study_params("worldmodels"))
    p.situations, p.cultures = [], []
    requests = generation_requests(p)
    texts = [respond(request.body()).text for request in requests]
    replies = pd.DataFrame(
        [
            [f"{i}", *(r.tag[k] for k in ("track", "model", "case", "condition", "run", "round")), text]
            for i, (r, text) in enumerate(zip(requests, texts))
        ],
        columns=["id", "track", "model", "case", "condition", "run", "round", "text"],
    )
    start = time.perf_counter()
    candidates, documents = judge(replies, trust=True)
    lane_1 = time.perf_counter() - start
    games = games_of(documents)
    match_table(candidates, games, horizon=p.horizon)
    structure_table(candidates, games)
    semantic_table(candidates, games, checklist=p.checklist)
    total = time.perf_counter() - start
    print()
    mark(
        f"{len(candidates)} candidates through all lanes (isolation: {isolation()[0]}; Lane 1 alone {lane_1:.1f} s)",
        total,
        60,
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
