"""Bounded unrolling: the part of a game that its first transitions can show, in the form the matcher reads."""

import math
from dataclasses import dataclass

from compendium.studies.worldmodels.posg.model import POSG


@dataclass(frozen=True)
class Unrolled:
    """States within `horizon` transitions of the start, by number; number 0 is the initial state.

    names[i], terminal[i], depth[i] : of state i.
    shape[i] : number of actions of each player in state i; () where i is terminal or lies at the horizon,
        so that its transitions are not looked at.
    rows[i] : {tuple of action numbers: ((successor, probability), ...) by falling probability}.
    actions[i] : the actions' names, one tuple a player.
    """

    players: tuple[str, ...]
    names: tuple[str, ...]
    terminal: tuple[bool, ...]
    depth: tuple[int, ...]
    shape: tuple[tuple[int, ...], ...]
    rows: tuple[dict, ...]
    actions: tuple[tuple, ...]

    def self_score(self) -> float:
        """What a model scores against itself: one for each state, and the probability mass of each expanded
        state's joint actions (one each where probabilities sum to one)."""
        mass = math.fsum(p for rows in self.rows for row in rows.values() for _, p in row)
        return len(self.names) + mass


def unroll(game: POSG, horizon: int = 3) -> Unrolled:
    """Cut `game` to what is reachable in `horizon` transitions; transitions that leave the cut are not made,
    for a state at the horizon is not expanded."""
    depth = {state: d for state, d in game.depths().items() if d <= horizon}
    number = {state: index for index, state in enumerate(depth)}
    shape, rows, actions = [], [], []
    for state, d in depth.items():
        expanded = d < horizon and state not in game.terminals
        offered = game.actions.get(state, ()) if expanded else ()
        index = [{action: i for i, action in enumerate(mine)} for mine in offered]
        table = {}
        for joint, row in game.transitions.get(state, {}).items() if expanded else ():
            key = tuple(place[action] for place, action in zip(index, joint))
            reached = ((number[t], p) for t, p in row.items() if p > 0)
            table[key] = tuple(sorted(reached, key=lambda entry: (-entry[1], entry[0])))
        shape.append(tuple(map(len, offered)))
        rows.append(table)
        actions.append(tuple(offered))
    return Unrolled(
        game.players,
        tuple(depth),
        tuple(state in game.terminals for state in depth),
        tuple(depth.values()),
        tuple(shape),
        tuple(rows),
        tuple(actions),
    )


def part_of(cut: Unrolled, states: int, joints: int) -> Unrolled:
    """The first `states` states of a cut and the transitions among them; a state with more than `joints` joint
    actions is not expanded. What the part shares with another game, the whole shares with it too."""
    if states >= len(cut.names) and all(len(table) <= joints for table in cut.rows):
        return cut
    kept = range(min(states, len(cut.names)))
    open_ = [len(cut.rows[s]) <= joints and math.prod(cut.shape[s]) <= joints for s in kept]
    return Unrolled(
        cut.players,
        cut.names[:states],
        cut.terminal[:states],
        cut.depth[:states],
        tuple(cut.shape[s] if open_[s] else () for s in kept),
        tuple(
            {key: tuple((t, p) for t, p in row if t < states) for key, row in cut.rows[s].items()}
            if open_[s]
            else {}
            for s in kept
        ),
        tuple(cut.actions[s] if open_[s] else () for s in kept),
    )


def reorder_players(cut: Unrolled, places) -> Unrolled:
    """`cut` seen with its players in another order: place k holds the old player `places[k]`, or, where
    places[k] is None, a player added to even the numbers, who has one action everywhere and never matters."""

    def pick(values, filler):
        return tuple(filler if place is None else values[place] for place in places)

    shape = tuple(pick(counts, 1) if counts else () for counts in cut.shape)
    rows = tuple({pick(key, 0): row for key, row in table.items()} for table in cut.rows)
    actions = tuple(pick(names, ("-",)) if names else () for names in cut.actions)
    return Unrolled(pick(cut.players, "-"), cut.names, cut.terminal, cut.depth, shape, rows, actions)
