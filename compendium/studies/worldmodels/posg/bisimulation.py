"""Bisimulation: the coarsest view of a game in which equal states behave equally (Larsen and Skou 1991).

Two models of one situation may differ only in grain: one splits a state that the other keeps whole. The
quotient removes such splits before models are compared, which the paper names as a next step (section 7).
"""

import itertools
import math
from collections.abc import Callable

from compendium.studies.worldmodels.posg.criteria import tokens
from compendium.studies.worldmodels.posg.model import POSG, PosgError

ENUMERATED = 5040


def quotient(game: POSG, *, label: Callable[[str], object] | None = None, merge_actions: bool = True) -> POSG:
    """The game with bisimilar states merged (each class takes the name of its first state).

    label : what an ending is told apart by: by default its name, so each stays itself; `lambda end: "over"`
        merges all endings; see also `endings_of`. Other states are told apart by their behaviour only.
    merge_actions : also drop all but the first of a player's actions that do the same whatever the others do.
    Actions are compared up to renaming at each state, as in Lane 2a. Observations are those of the class's
    first state. Raises PosgError where a state has too many actions alike to compare up to renaming.
    """
    label = label or (lambda state: state)
    reached = list(game.depths())
    block = _numbered([label(state) if state in game.terminals else None for state in reached])
    classes = dict(zip(reached, block))
    while True:
        refined = _numbered(
            [(classes[state], signature(game, state, classes, merge_actions)) for state in reached]
        )
        if max(refined) == max(classes.values()):
            break
        classes = dict(zip(reached, refined))
    return _merged(game, reached, classes, merge_actions)


def quotient_or_none(game: POSG, **options) -> POSG | None:
    """`quotient`, or None where a state has too many actions alike."""
    try:
        return quotient(game, **options)
    except PosgError:
        return None


def endings_of(reference: POSG) -> Callable[[str], object]:
    """A `label` for `quotient` that tells endings apart by the reference's: an ending whose name begins with the
    words of one of the reference's endings (the longest such) counts as that one, any other as itself."""
    known = sorted(
        ((tokens(end), end) for end in reference.terminals), key=lambda entry: (-len(entry[0]), entry[1])
    )

    def label(state: str):
        words = tokens(state)
        return next((end for start, end in known if words[: len(start)] == start), state)

    return label


def signature(game: POSG, state: str, classes: dict, merge_actions: bool = True):
    """How a state behaves towards classes of states: its table of class probabilities, in the order of actions
    that comes first among all renamings of each player's actions. () for a terminal state."""
    if state in game.terminals:
        return ()
    offered = _distinct(game, state, classes) if merge_actions else game.actions[state]
    table = {joint: _towards(game, state, joint, classes) for joint in itertools.product(*offered)}
    groups = _alike(table, offered)
    if math.prod(math.factorial(len(group)) for mine in groups for group in mine) > ENUMERATED:
        raise PosgError(
            f"the state {state!r} has too many actions alike to compare up to renaming: "
            f"{' x '.join(str(len(mine)) for mine in offered)}"
        )
    orders = [
        [sum(parts, ()) for parts in itertools.product(*map(itertools.permutations, mine))] for mine in groups
    ]
    least = min(
        tuple(table[joint] for joint in itertools.product(*order)) for order in itertools.product(*orders)
    )
    return least, tuple(map(len, offered))


def _alike(table: dict, offered) -> list[list[tuple]]:
    """Each player's actions in groups that no name-free description tells apart, the groups in an order that does
    not depend on names: by what can follow, whatever the others do, and by the groups of what the others do."""
    kind = [dict.fromkeys(mine, 0) for mine in offered]
    while True:
        seen = [
            {
                action: (
                    kind[k][action],
                    tuple(
                        sorted(
                            (
                                row,
                                tuple(
                                    kind[other][joint[other]] for other in range(len(offered)) if other != k
                                ),
                            )
                            for joint, row in table.items()
                            if joint[k] == action
                        )
                    ),
                )
                for action in mine
            }
            for k, mine in enumerate(offered)
        ]
        ranks = [{key: rank for rank, key in enumerate(sorted(set(mine.values())))} for mine in seen]
        refined = [{action: ranks[k][key] for action, key in mine.items()} for k, mine in enumerate(seen)]
        if refined == kind:
            return [
                [tuple(a for a in mine if kind[k][a] == rank) for rank in range(len(ranks[k]))]
                for k, mine in enumerate(offered)
            ]
        kind = refined


def same_behaviour(first: POSG, second: POSG, horizon: int = 10**6) -> bool:
    """Whether two games are the same after their quotients are taken, whatever things are called."""
    from compendium.studies.worldmodels.posg.match import compare

    return compare(quotient(first), quotient(second), horizon=horizon).same


def _towards(game: POSG, state: str, joint, classes) -> tuple:
    mass = {}
    for target, p in game.transitions[state][joint].items():
        if p > 0:
            mass.setdefault(classes[target], []).append(p)
    return tuple(sorted((number, round(math.fsum(parts), 9)) for number, parts in mass.items()))


def _distinct(game: POSG, state: str, classes) -> tuple:
    """Each player's actions, those left out that do the same as an earlier one whatever the others do."""
    offered = list(game.actions[state])
    for place in range(len(offered)):
        seen = {}
        for action in offered[place]:
            others = itertools.product(*(mine if k != place else (action,) for k, mine in enumerate(offered)))
            seen.setdefault(tuple(_towards(game, state, joint, classes) for joint in others), action)
        offered[place] = tuple(seen.values())
    return tuple(offered)


def _merged(game: POSG, reached, classes, merge_actions) -> POSG:
    first = {}
    for state in reached:
        first.setdefault(classes[state], state)
    name = {state: first[classes[state]] for state in reached}
    actions, transitions = {}, {}
    for state in first.values():
        if state in game.terminals:
            continue
        actions[state] = _distinct(game, state, classes) if merge_actions else game.actions[state]
        transitions[state] = {}
        for joint in itertools.product(*actions[state]):
            row = {}
            for target, p in game.transitions[state][joint].items():
                if p > 0:
                    row[name[target]] = row.get(name[target], 0.0) + p
            transitions[state][joint] = row
    kept = tuple(first.values())
    return POSG(
        game.players,
        kept,
        name[game.initial],
        frozenset(state for state in kept if state in game.terminals),
        actions,
        transitions,
        {player: {state: seen[state] for state in kept} for player, seen in game.observations.items()},
        {},
        game.name,
    )


def _numbered(keys) -> list[int]:
    number = {}
    return [number.setdefault(key, len(number)) for key in keys]
