"""The game itself: a finite partially observable stochastic game as a table, and its JSON form.

M = (N, S, {A_i}, P, {O_i}, Omega): players, states, actions of each player in each state, transition
probabilities of a joint action, and what each player observes on arrival (Hansen, Bernstein and
Zilberstein 2004; section 3 of the paper). The JSON Schema is data/instruments/worldmodels/posg.schema.json.
"""

import functools
import itertools
import json
from dataclasses import dataclass, field

from compendium.frame.paths import DATA
from compendium.studies.worldmodels.posg.contract import satisfies_schema, writable

SCHEMA = DATA / "instruments" / "worldmodels" / "posg.schema.json"


class PosgError(ValueError):
    """A game that cannot be used; the message names the file or key, and what would be right."""


@dataclass(frozen=True)
class POSG:
    """A finite POSG.

    players : names, in an order that joint actions follow.
    states : names; `initial` is one of them, `terminals` some of them.
    actions : {non-terminal state: one tuple of actions a player, in the order of `players`}.
    transitions : {state: {joint action: {next state: probability}}}; a joint action is a tuple of one
        action a player.
    observations : {player: {state: what the player sees on arriving there}}.
    signals : {(state, joint action, next state): {player: observation}}, only where it differs from
        `observations`.
    """

    players: tuple[str, ...]
    states: tuple[str, ...]
    initial: str
    terminals: frozenset[str]
    actions: dict[str, tuple[tuple[str, ...], ...]]
    transitions: dict[str, dict[tuple[str, ...], dict[str, float]]]
    observations: dict[str, dict[str, str]] = field(default_factory=dict)
    signals: dict[tuple, dict[str, str]] = field(default_factory=dict)
    name: str = ""

    def joint_actions(self, state: str) -> list[tuple[str, ...]]:
        """Every joint action available in `state` (none in a terminal state)."""
        return list(itertools.product(*self.actions[state])) if state in self.actions else []

    def successors(self, state: str) -> list[str]:
        """The states that some joint action leads to with positive probability, in order of appearance."""
        rows = self.transitions.get(state, {}).values()
        return list(dict.fromkeys(target for row in rows for target, weight in row.items() if weight > 0))

    def depths(self) -> dict[str, int]:
        """{reachable state: fewest transitions from the initial state}, in breadth-first order."""
        depth = {self.initial: 0}
        for state in (queue := [self.initial]):
            for target in () if state in self.terminals else self.successors(state):
                if target not in depth:
                    depth[target] = depth[state] + 1
                    queue.append(target)
        return depth

    def observation(self, player: str, state: str, joint, following: str) -> str:
        """What `player` sees after the transition: Omega of the definition."""
        return self.signals.get((state, joint, following), {}).get(
            player, self.observations[player][following]
        )

    def size(self) -> dict[str, int]:
        """Counts: players, states, terminals, joint actions over all states, transitions with positive weight."""
        rows = [row for moves in self.transitions.values() for row in moves.values()]
        edges = sum(weight > 0 for row in rows for weight in row.values())
        return {
            "players": len(self.players),
            "states": len(self.states),
            "terminals": len(self.terminals),
            "joint_actions": len(rows),
            "transitions": edges,
        }

    def document(self) -> dict:
        """The JSON form."""
        rows = []
        for state, moves in self.transitions.items():
            for joint, row in moves.items():
                outcomes = [
                    {"state": target, "probability": weight}
                    | (
                        {"observations": dict(self.signals[state, joint, target])}
                        if (state, joint, target) in self.signals
                        else {}
                    )
                    for target, weight in row.items()
                ]
                rows.append(
                    {"state": state, "joint_action": dict(zip(self.players, joint)), "outcomes": outcomes}
                )
        return {
            "name": self.name,
            "players": list(self.players),
            "states": list(self.states),
            "initial_state": self.initial,
            "terminal_states": [s for s in self.states if s in self.terminals],
            "actions": {
                state: dict(zip(self.players, map(list, offered))) for state, offered in self.actions.items()
            },
            "transitions": rows,
            "observations": {player: dict(seen) for player, seen in self.observations.items()},
        }


def from_document(document: dict, where: str = "the model") -> POSG:
    """The game that a JSON document describes.

    The document must satisfy the schema, and every name in it must be declared; sums of probabilities
    are not looked at here (that is the probe's task). Self-loops of terminal states are dropped: they are
    how some authors write "absorbing". Raises PosgError with the first problem.
    """
    for problem in itertools.chain(schema_problems(document), reference_problems(document)):
        raise PosgError(f"{where}: {problem}")
    players, terminals = tuple(document["players"]), frozenset(document["terminal_states"])
    transitions, signals = {}, {}
    for entry in document["transitions"]:
        state = entry["state"]
        joint = tuple(entry["joint_action"][player] for player in players)
        row = {}
        for outcome in entry["outcomes"]:
            row[outcome["state"]] = row.get(outcome["state"], 0.0) + float(outcome["probability"])
            usual = {player: document["observations"][player].get(outcome["state"]) for player in players}
            news = {
                player: seen
                for player, seen in outcome.get("observations", {}).items()
                if seen != usual[player]
            }
            if news:
                signals[state, joint, outcome["state"]] = news
        if state in terminals and set(row) == {state}:
            continue
        transitions.setdefault(state, {})[joint] = row
    actions = {
        state: tuple(tuple(offered[player]) for player in players)
        for state, offered in document["actions"].items()
        if state not in terminals or state in transitions
    }
    return POSG(
        players,
        tuple(document["states"]),
        document["initial_state"],
        terminals,
        actions,
        transitions,
        {player: dict(document["observations"][player]) for player in players},
        signals,
        document.get("name", ""),
    )


def canonical_json(game: POSG) -> str:
    """One text for one game: equal for games that differ only in the order in which things are listed."""
    document = game.document()
    for key in ("players", "states", "terminal_states"):
        document[key] = sorted(document[key])
    document["actions"] = {
        state: {player: sorted(offered) for player, offered in choices.items()}
        for state, choices in document["actions"].items()
    }
    for entry in document["transitions"]:
        entry["outcomes"] = sorted(
            (outcome for outcome in entry["outcomes"] if outcome["probability"] > 0),
            key=lambda outcome: outcome["state"],
        )
    document["transitions"].sort(key=lambda entry: (entry["state"], sorted(entry["joint_action"].items())))
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@functools.lru_cache(maxsize=1)
def _validator():
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def schema_problems(document) -> list[str]:
    """What the JSON Schema objects to, as "key: what is wrong", in the document's order (ten at most)."""
    if satisfies_schema(document):
        return []
    found = list(itertools.islice(_validator().iter_errors(document), 10))
    if not found:  # what JSON Schema has no word for
        whole = writable(json.dumps(document, ensure_ascii=False))
        return [
            "transitions: a probability is not a number"
            if whole
            else "document: a text holds half a surrogate pair, should be whole characters"
        ]
    said = (
        f"{'.'.join(map(str, error.absolute_path)) or 'document'}: {error.message[:200]}" for error in found
    )
    return [
        text.encode("utf-8", "backslashreplace").decode() for text in said
    ]  # a key may be half a character


def reference_problems(document: dict) -> list[str]:
    """Names that are used but not declared, or declared twice; the document satisfies the schema."""
    players, states = document["players"], set(document["states"])
    terminals, problems = set(document["terminal_states"]), []
    say = problems.append
    if document["initial_state"] not in states:
        say(f"initial_state: {document['initial_state']!r} is not among the states")
    problems += [f"terminal_states: {name!r} is not among the states" for name in terminals - states]
    for state, choices in document["actions"].items():
        if state not in states:
            say(f"actions: {state!r} is not among the states")
        if set(choices) != set(players):
            say(
                f"actions.{state}: should name the players {', '.join(players)}, names "
                f"{', '.join(choices) or 'none'}"
            )
    problems += [
        f"actions: the non-terminal state {state!r} has none"
        for state in document["states"]
        if state not in terminals and state not in document["actions"]
    ]
    for player in players:
        missing = [
            state for state in document["states"] if state not in document["observations"].get(player, {})
        ]
        if missing:
            say(f"observations.{player}: nothing for the state {missing[0]!r}")
    for player, told in document["observations"].items():
        if player not in players:
            say(f"observations: {player!r} is not among the players")
        problems += [
            f"observations.{player}: {state!r} is not among the states"
            for state in told
            if state not in states
        ]
    seen = set()
    for number, entry in enumerate(document["transitions"]):
        where, joint = f"transitions.{number}", entry["joint_action"]
        offered = document["actions"].get(entry["state"], {})
        if entry["state"] not in states:
            say(f"{where}: the state {entry['state']!r} is not among the states")
            continue
        if set(joint) != set(players):
            say(f"{where}: joint_action should name the players {', '.join(players)}")
        elif entry["state"] not in terminals:
            problems += [
                f"{where}: {joint[player]!r} is not an action of {player} in {entry['state']!r}"
                for player in players
                if joint[player] not in offered.get(player, [])
            ]
        problems += [
            f"{where}: the outcome {outcome['state']!r} is not among the states"
            for outcome in entry["outcomes"]
            if outcome["state"] not in states
        ]
        problems += [
            f"{where}: observations: {player!r} is not among the players"
            for outcome in entry["outcomes"]
            for player in outcome.get("observations", ())
            if player not in players
        ]
        key = (entry["state"], tuple(sorted(joint.items())))
        if key in seen:
            say(f"{where}: the same state and joint action are listed twice")
        seen.add(key)
    return problems


def relabel(game: POSG, rng, shuffle: bool = True) -> POSG:
    """The same game under random names and, with `shuffle`, in random order of everything.

    Players get names p0, p1, ...; states s0, ...; a state's actions a0, ... (a name means something only
    at its own state). For invariance tests and for simulated models that only rename.
    """
    order = (lambda items: [items[i] for i in rng.permutation(len(items))]) if shuffle else list
    places = order(list(range(len(game.players))))
    players = {game.players[place]: f"p{number}" for number, place in enumerate(places)}
    states = {state: f"s{number}" for number, state in enumerate(order(list(game.states)))}
    moves = {}
    for state, offered in game.actions.items():
        moves[state] = [
            {action: f"a{number}" for number, action in enumerate(order(list(mine)))} for mine in offered
        ]
    renamed = lambda state, joint: tuple(moves[state][place][joint[place]] for place in places)
    transitions = {
        states[state]: {
            renamed(state, joint): {
                states[t]: w for t, w in order(list(game.transitions[state][joint].items()))
            }
            for joint in order(list(game.transitions[state]))
        }
        for state in order(list(game.transitions))
    }
    return POSG(
        tuple(players[game.players[place]] for place in places),
        tuple(sorted(states.values(), key=lambda s: int(s[1:]))),
        states[game.initial],
        frozenset(states[state] for state in game.terminals),
        {
            states[state]: tuple(tuple(moves[state][place].values()) for place in places)
            for state in game.actions
        },
        transitions,
        {
            players[p]: {states[s]: f"o:{seen}" for s, seen in game.observations[p].items()}
            for p in game.observations
        },
        {
            (states[s], renamed(s, joint), states[t]): {players[p]: f"o:{seen}" for p, seen in told.items()}
            for (s, joint, t), told in game.signals.items()
        },
        game.name,
    )
