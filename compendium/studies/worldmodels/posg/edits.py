"""What generated world models do to a reference: pure changes of a POSG, for simulated models.

Every function returns a valid game; randomness is a `compendium.frame.chance.Stream` handed in.
"""

import itertools

from compendium.studies.worldmodels.posg.criteria import endings
from compendium.studies.worldmodels.posg.model import POSG


def rebuild(
    game: POSG, transitions: dict, actions: dict | None = None, ends=None, sees: dict | None = None
) -> POSG:
    """A game from changed tables, cut to what is reachable. `sees`: the old state that a new one looks like."""
    actions = actions or game.actions
    ends = set(game.terminals) if ends is None else set(ends)
    reached = [game.initial]
    for state in reached:
        for row in () if state in ends else transitions[state].values():
            reached += [target for target, p in row.items() if p > 0 and target not in reached]
    looks = sees or {}
    observations = {
        player: {state: seen.get(looks.get(state, state), state) for state in reached}
        for player, seen in game.observations.items()
    }
    open_states = [state for state in reached if state not in ends]
    return POSG(
        game.players,
        tuple(reached),
        game.initial,
        frozenset(state for state in reached if state in ends),
        {state: actions[state] for state in open_states},
        {state: transitions[state] for state in open_states},
        observations,
        {},
        game.name,
    )


def split_endings(game: POSG, most: int = 60) -> POSG:
    """Terminal states told apart by the state they were reached from; as many as `most` states allow."""
    transitions, ends, sees = {}, set(game.terminals), {}
    count = len(game.states)
    for state, rows in game.transitions.items():
        transitions[state] = {}
        for joint, row in rows.items():
            new = {}
            for target, p in row.items():
                name = f"{target}_after_{state}"
                if target in game.terminals and (name in sees or count < most):
                    count += name not in sees
                    sees[name] = target
                    ends.add(name)
                    target = name
                new[target] = new.get(target, 0.0) + p
            transitions[state][joint] = new
    return rebuild(game, transitions, ends=ends, sees=sees)


def unfold(game: POSG, most: int = 60) -> POSG:
    """States told apart by the history that led there, until `most` states are made; then histories share."""
    names, transitions, actions, ends, sees = {(game.initial, ""): game.initial}, {}, {}, set(), {}
    queue = [(game.initial, "")]
    shared = {game.initial: game.initial}
    for state, history in queue:
        name = names[state, history]
        sees[name] = state
        if state in game.terminals:
            ends.add(name)
            continue
        actions[name], transitions[name] = game.actions[state], {}
        for number, (joint, row) in enumerate(game.transitions[state].items()):
            new = {}
            for target, p in row.items():
                key = (target, f"{history}{number}.")
                if key not in names:
                    if len(names) >= most and target in shared:
                        new[shared[target]] = new.get(shared[target], 0.0) + p
                        continue
                    names[key] = f"{target}_{len(names)}"
                    shared.setdefault(target, names[key])
                    queue.append(key)
                new[names[key]] = p
            transitions[name][joint] = new
    return rebuild(game, transitions, actions, ends=ends, sees=sees)


def add_action(game: POSG, stream, words=("hesitate", "delay", "double_check", "discuss")) -> POSG:
    """One more action for one player in one state; whatever the others do, it leads to an ending of its own."""
    state = stream.choice(sorted(game.actions))
    place = stream.below(len(game.players))
    action, end = stream.choice(words), f"stalled_at_{state}"
    if action in game.actions[state][place]:
        return game
    offered = list(game.actions[state])
    offered[place] = (*offered[place], action)
    rows = dict(game.transitions[state])
    for joint in itertools.product(*[mine if k != place else (action,) for k, mine in enumerate(offered)]):
        rows[joint] = {end: 1.0}
    return rebuild(
        game,
        {**game.transitions, state: rows},
        {**game.actions, state: tuple(offered)},
        ends={*game.terminals, end},
        sees={end: state},
    )


def add_chance(game: POSG, stream) -> POSG:
    """A mishap: one certain outcome becomes likely only, and something else happens else."""
    certain = [
        (state, joint)
        for state, rows in game.transitions.items()
        for joint, row in rows.items()
        if len(row) == 1
    ]
    if not certain:
        return game
    state, joint = stream.choice(certain)
    (target,) = game.transitions[state][joint]
    end = f"mishap_at_{state}"
    rows = {**game.transitions[state], joint: {target: 0.9, end: 0.1}}
    return rebuild(game, {**game.transitions, state: rows}, ends={*game.terminals, end}, sees={end: state})


def drop_action(game: POSG, stream) -> POSG:
    """One action less, where a player has two or more and play can still end."""
    places = [
        (state, k)
        for state, offered in game.actions.items()
        for k, mine in enumerate(offered)
        if len(mine) > 1
    ]
    for state, place in stream.shuffled(places):
        gone = stream.choice(game.actions[state][place])
        offered = tuple(
            tuple(a for a in mine if k != place or a != gone) for k, mine in enumerate(game.actions[state])
        )
        rows = {joint: row for joint, row in game.transitions[state].items() if joint[place] != gone}
        made = rebuild(game, {**game.transitions, state: rows}, {**game.actions, state: offered})
        if can_end(made):
            return made
    return game


def can_end(game: POSG) -> bool:
    """Whether an ending can be reached from every state."""
    return all(endings(game).values())


def merge_endings(game: POSG, stream) -> POSG:
    """Two endings become one."""
    ends = sorted(game.terminals)
    if len(ends) < 3:
        return game
    kept, gone = stream.shuffled(ends)[:2]
    transitions = {}
    for state, rows in game.transitions.items():
        transitions[state] = {}
        for joint, row in rows.items():
            new = {}
            for target, p in row.items():
                target = kept if target == gone else target
                new[target] = new.get(target, 0.0) + p
            transitions[state][joint] = new
    return rebuild(game, transitions)


def make_certain(game: POSG) -> POSG:
    """Chance left out: the likeliest outcome of every joint action happens."""
    return rebuild(
        game,
        {
            state: {joint: {max(row, key=row.get): 1.0} for joint, row in rows.items()}
            for state, rows in game.transitions.items()
        },
    )


def drop_player(game: POSG, stream) -> POSG:
    """A participant left out: that player's first action is taken for granted everywhere."""
    if len(game.players) < 3:
        return game
    place = stream.below(len(game.players))
    without = lambda joint: joint[:place] + joint[place + 1 :]  # noqa: E731
    transitions, actions = {}, {}
    for state, rows in game.transitions.items():
        taken = game.actions[state][place][0]
        actions[state] = without(game.actions[state])
        transitions[state] = {without(joint): row for joint, row in rows.items() if joint[place] == taken}
    kept = POSG(
        without(game.players),
        game.states,
        game.initial,
        game.terminals,
        actions,
        transitions,
        {p: seen for p, seen in game.observations.items() if p != game.players[place]},
        {},
        game.name,
    )
    return rebuild(kept, transitions, actions)


def restyle(game: POSG, stream) -> POSG:
    """The same game in another hand: names spelled in one of four ways, everything listed in another order."""
    spell = stream.choice(
        (
            lambda s: s,
            lambda s: s.upper(),
            lambda s: f"{s}_1" if s[-1].isalpha() else s,
            lambda s: "".join(part.capitalize() for part in s.split("_")),
        )
    )
    seats = stream.shuffled(range(len(game.players)))
    seat = lambda values: tuple(values[k] for k in seats)  # noqa: E731
    states = {state: spell(state) for state in game.states}
    if len(set(states.values())) < len(states):
        states = {state: state for state in game.states}
    transitions = {
        states[state]: {seat(joint): {states[t]: p for t, p in row.items()} for joint, row in rows.items()}
        for state, rows in game.transitions.items()
    }
    actions = {
        states[state]: seat(tuple(tuple(stream.shuffled(mine)) for mine in offered))
        for state, offered in game.actions.items()
    }
    order = [states[game.initial], *stream.shuffled([states[s] for s in game.states if s != game.initial])]
    return POSG(
        seat(game.players),
        tuple(order),
        states[game.initial],
        frozenset(states[state] for state in game.terminals),
        actions,
        transitions,
        {p: {states[s]: seen for s, seen in game.observations[p].items()} for p in game.observations},
        {},
        game.name,
    )


def four_bids() -> POSG:
    """A candidate for G6 as the paper describes it (Figure 2): four bid levels where the case has two, four
    states of the bidders' values and sixteen ties. 1 + 4 + 48 + 16 + 32 = 101 states."""
    bidders, levels, kinds = ("ines", "jon"), range(4), ("high", "low")
    actions = {"values_drawn": (("wait",), ("wait",))}
    transitions = {"values_drawn": {("wait", "wait"): {f"{a}_{b}": 0.25 for a in kinds for b in kinds}}}
    ends = []
    for a, b in itertools.product(kinds, kinds):
        here = f"{a}_{b}"
        actions[here] = (tuple(f"bid_{n}" for n in levels),) * 2
        transitions[here] = {}
        for first, second in itertools.product(levels, levels):
            joint = (f"bid_{first}", f"bid_{second}")
            name = f"{here}_{first}_{second}"
            if first != second:
                end = f"{name}_{bidders[first < second]}_wins"
                ends.append(end)
                transitions[here][joint] = {end: 1.0}
                continue
            tie = f"{name}_tie"
            transitions[here][joint] = {tie: 1.0}
            actions[tie] = (("wait",), ("wait",))
            winners = [f"{tie}_{bidder}_wins" for bidder in bidders]
            ends += winners
            transitions[tie] = {("wait", "wait"): dict.fromkeys(winners, 0.5)}
    names = tuple(dict.fromkeys([*transitions, *ends]))
    return POSG(
        bidders,
        names,
        "values_drawn",
        frozenset(ends),
        actions,
        transitions,
        {bidder: {state: state for state in names} for bidder in bidders},
        {},
        "G6",
    )
