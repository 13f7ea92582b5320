"""The interface of a Python world model, and its tabulation. Standard library only: it runs in the sandbox.

A world model extends `AbstractPOSG`. States are plain data (text, whole numbers, or tuples of those), so
that two states are equal exactly when they print the same; actions, players and observations are text.
"""

import abc
import itertools

MAX_STATES = 2000
MAX_TRANSITIONS = 50_000
_PLAIN = (str, int, bool, float, type(None))


class WorldModelError(ValueError):
    """A world model breaks its contract: the message says where and what would be right."""


class AbstractPOSG(abc.ABC):
    """A partially observable stochastic game, given by its rules.

    Only what is reachable from `initial_state()` is ever asked for. Terminal states have no actions.
    """

    @abc.abstractmethod
    def players(self):
        """The players' names, a list of text; the order is kept."""

    @abc.abstractmethod
    def initial_state(self):
        """The one state in which play starts (chance moves are transitions out of it)."""

    @abc.abstractmethod
    def is_terminal(self, state):
        """True where play has ended."""

    @abc.abstractmethod
    def actions(self, state, player):
        """The actions of `player` in a non-terminal `state`: a list of text, at least one entry."""

    @abc.abstractmethod
    def transition(self, state, joint_action):
        """Where `joint_action` ({player: action}) leads from `state`: {next state: probability}, sum 1."""

    @abc.abstractmethod
    def observation(self, player, state, joint_action, next_state):
        """What `player` sees after that transition: text."""

    def initial_observation(self, player):
        """What `player` sees before the first move."""
        return "start"

    def declared_states(self):
        """Every state the author means the model to have, or None; the audit compares it to what is reachable."""
        return None


def state_label(state) -> str:
    """The name of a state in the JSON form: text as it is, other plain data as Python prints it.

    Raises WorldModelError for anything that is not plain data, by exact type: a subclass of `str` could
    bring its own idea of equality.
    """
    _require_plain(state, depth=0)
    return state if type(state) is str else repr(state)


def tabulate(game, max_states: int = MAX_STATES) -> dict:
    """Walk a Python world model from its start and return the JSON document (see model.py) of what was met.

    Probabilities are copied as given, so that a model that does not sum to one shows it later.
    Raises WorldModelError with the state and joint action at fault.
    """
    players = [_text(name, "players()") for name in _listed(game.players(), "players()")]
    first = game.initial_state()
    labels, queue = {}, []

    def meet(state) -> str:
        label = state_label(state)
        if label not in labels:
            if len(labels) >= max_states:
                raise WorldModelError(
                    f"more than {max_states} reachable states; a finite, smaller model is asked for"
                )
            labels[label] = state
            queue.append(label)
        elif type(labels[label]) is not type(state):
            raise WorldModelError(f"two different states print as {label!r}")
        return label

    document = {
        "players": players,
        "states": [],
        "initial_state": meet(first),
        "terminal_states": [],
        "actions": {},
        "transitions": [],
        "observations": {name: {} for name in players},
    }
    for name in players:
        document["observations"][name][document["initial_state"]] = _text(
            game.initial_observation(name), f"initial_observation({name!r})"
        )
    for label in queue:  # grows while it is walked
        state = labels[label]
        document["states"].append(label)
        ended = game.is_terminal(state)
        if type(ended) is not bool:
            raise WorldModelError(
                f"is_terminal({label!r}) gave a {type(ended).__name__}, should be True or False"
            )
        if ended:
            document["terminal_states"].append(label)
            continue
        _walk(game, document, label, state, meet)
    declared = game.declared_states()
    for state in [] if declared is None else _listed(declared, "declared_states()"):
        label = state_label(state)
        if label not in labels:
            labels[label] = state
            document["states"].append(label)
    return document


def _walk(game, document, label, state, meet):
    """Add one state's actions and transitions to the document."""
    players, choices = document["players"], {}
    for name in players:
        offered = _listed(game.actions(state, name), f"actions({label!r}, {name!r})")
        choices[name] = [_text(action, f"actions({label!r}, {name!r})") for action in offered]
    document["actions"][label] = choices
    for joint in itertools.product(*(choices[name] for name in players)):
        move = dict(zip(players, joint))
        where = f"transition({label!r}, {move!r})"
        outcomes = game.transition(state, dict(move))
        if type(outcomes) is not dict:
            raise WorldModelError(
                f"{where} gave a {type(outcomes).__name__}, should be {{next state: probability}}"
            )
        listed = []
        for following, weight in outcomes.items():
            if type(weight) not in (int, float):
                raise WorldModelError(
                    f"{where}: a probability is a {type(weight).__name__}, should be a number"
                )
            target = meet(following)
            seen = {
                name: _text(
                    game.observation(name, state, dict(move), following),
                    f"observation of {name!r} after {where}",
                )
                for name in players
            }
            listed.append(
                {"state": target, "probability": weight, "observations": _news(document, target, seen)}
            )
        document["transitions"].append({"state": label, "joint_action": move, "outcomes": listed})
        if len(document["transitions"]) > MAX_TRANSITIONS:
            raise WorldModelError(f"more than {MAX_TRANSITIONS} state and joint-action pairs")


def _news(document, target, seen) -> dict:
    """The observations that differ from what was first seen on arriving in `target`."""
    usual = document["observations"]
    return {name: text for name, text in seen.items() if usual[name].setdefault(target, text) != text}


def _listed(value, where):
    if type(value) not in (list, tuple):
        raise WorldModelError(f"{where} gave a {type(value).__name__}, should be a list")
    return value


def _text(value, where) -> str:
    if type(value) is not str:
        raise WorldModelError(f"{where} gave a {type(value).__name__}, should be text")
    return value


def _require_plain(value, depth):
    if type(value) is tuple and depth < 8:
        for item in value:
            _require_plain(item, depth + 1)
    elif type(value) not in _PLAIN:
        raise WorldModelError(
            f"a state holds a {type(value).__name__}; states are text, whole numbers, or tuples of those"
        )
