"""Small games for the tests of compendium.studies.worldmodels.posg."""

import itertools

import numpy as np

from compendium.studies.worldmodels.posg.model import POSG


def table(players, start, ends, moves, name=""):
    """A game from {state: (actions of each player, {joint action: next state or {next: probability}})}."""
    states = list(dict.fromkeys([start, *moves, *ends]))
    actions = {state: tuple(tuple(mine) for mine in offered) for state, (offered, _) in moves.items()}
    transitions = {
        state: {joint: row if isinstance(row, dict) else {row: 1.0} for joint, row in rows.items()}
        for state, (_, rows) in moves.items()
    }
    return POSG(
        tuple(players),
        tuple(states),
        start,
        frozenset(ends),
        actions,
        transitions,
        {player: {state: state for state in states} for player in players},
        {},
        name,
    )


def random_game(
    rng: np.random.Generator, states: int, ends: int, actions=(2, 2), chance: float = 0.3
) -> POSG:
    """A random game whose last `ends` states are terminal; every state is reachable or cut away by unrolling."""
    names = [f"s{i}" for i in range(states)]
    terminal = set(names[states - ends :]) if ends else set()
    moves = {}
    for state in names:
        if state in terminal:
            continue
        offered = [[f"a{k}" for k in range(rng.integers(1, most + 1))] for most in actions]
        rows = {}
        for joint in itertools.product(*offered):
            if states > 1 and rng.random() < chance:
                first, second = rng.choice(states, 2, replace=False)
                p = rng.choice([0.5, 0.25, 0.1])
                rows[joint] = {names[first]: float(p), names[second]: float(1 - p)}
            else:
                rows[joint] = names[rng.integers(states)]
        moves[state] = (offered, rows)
    return table([f"p{k}" for k in range(len(actions))], "s0", sorted(terminal), moves)


def chain(length: int, players=("one",)) -> POSG:
    """A walk with no choices: c0 to c<length>, the last terminal."""
    wait = (("wait",),) * len(players)
    joint = ("wait",) * len(players)
    return table(
        players, "c0", [f"c{length}"], {f"c{i}": (wait, {joint: f"c{i + 1}"}) for i in range(length)}
    )


def pennies() -> POSG:
    """Matching pennies: one simultaneous move, two endings."""
    sides = ("heads", "tails")
    rows = {(a, b): "match" if a == b else "differ" for a in sides for b in sides}
    return table(("eva", "finn"), "covered", ["match", "differ"], {"covered": ((sides, sides), rows)})
