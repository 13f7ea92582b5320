"""World models as simulated models write them down: Python classes and JSON, sound or broken."""

import json
import pprint

from compendium.studies.worldmodels.posg.model import POSG

TEMPLATE = '''from abstract_posg import AbstractPOSG

PLAYERS = {players}
ENDS = {ends}
ACTIONS = {actions}
NEXT = {transitions}
SEEN = {seen}


class {name}(AbstractPOSG):
    """{title}"""

    def players(self):
        return list(PLAYERS)

    def initial_state(self):
        return {initial!r}

    def is_terminal(self, state):
        return state in ENDS

    def actions(self, state, player):
        return list(ACTIONS[state][player])

    def transition(self, state, joint_action):
        return dict(NEXT[state][tuple(joint_action[player] for player in PLAYERS)])

    def observation(self, player, state, joint_action, next_state):
        return SEEN.get(player, {{}}).get(next_state, next_state)

    def initial_observation(self, player):
        return SEEN.get(player, {{}}).get(self.initial_state(), self.initial_state())
'''

HOSTILE = {
    "reads a file": "open('/etc/passwd').read()",
    "writes a file": "open('/usr/escaped', 'w').write('x')",
    "opens a socket": "__import__('socket').create_connection(('127.0.0.1', 80), 1)",
    "starts a process": "__import__('os').fork()",
    "loops for ever": "exec('while True: pass')",
    "takes all memory": "bytearray(10**12)",
}


def python_text(game: POSG, title: str = "") -> str:
    """A Python module whose one class is the game, by tables."""
    show = lambda value: pprint.pformat(value, width=110, sort_dicts=False)  # noqa: E731
    actions = {state: dict(zip(game.players, map(list, offered))) for state, offered in game.actions.items()}
    seen = {
        player: {state: text for state, text in told.items() if text != state}
        for player, told in game.observations.items()
    }
    return TEMPLATE.format(
        players=show(list(game.players)),
        ends=show(sorted(game.terminals)),
        actions=show(actions),
        transitions=show(game.transitions),
        seen=show({p: told for p, told in seen.items() if told}),
        name=f"Model{''.join(filter(str.isalnum, game.name))}",
        initial=game.initial,
        title=title or game.name,
    )


def json_text(game: POSG) -> str:
    """The JSON form, indented as models like it."""
    return json.dumps(game.document(), indent=1, ensure_ascii=False)


def broken_python(game: POSG, gate: str, stream) -> str:
    """A Python module that fails at one gate: "contract" (does not run), "probe" (does not sum to one) or "audit"
    (a state from which nothing ends)."""
    if gate == "contract":
        text = python_text(game)
        return stream.choice(
            (
                text[: int(len(text) * 0.8)] + "\n        return (",
                text.replace("    def observation(", "    def observe("),
                text.replace("NEXT[state][tuple(", "NEXT[state][frozenset("),
                text.replace("from abstract_posg", "from posg_base"),
            )
        )
    return python_text(_unsummed(game, stream) if gate == "probe" else _trapped(game, stream))


def broken_json(game: POSG, gate: str, stream) -> str:
    """The same for JSON: "contract" (a key is missing), "probe" (no sum of one, or an unknown state), "audit" (a
    state out of reach, or without an end)."""
    document = game.document()
    if gate == "contract":
        del document[stream.choice(("observations", "terminal_states", "initial_state"))]
    elif gate == "probe" and stream.uniform() < 0.5:
        document["transitions"][0]["outcomes"][0]["state"] = "somewhere_else"
    elif gate == "audit" and stream.uniform() < 0.5:
        document["states"].append("never_reached")
        document["terminal_states"].append("never_reached")
        for told in document["observations"].values():
            told["never_reached"] = "never_reached"
    else:
        document = (_unsummed if gate == "probe" else _trapped)(game, stream).document()
    return json.dumps(document, indent=1, ensure_ascii=False)


def wrapped(text: str, language: str, stream) -> str:
    """The same answer inside a fence, or after a sentence and inside a fence: recovery has to take it out."""
    fence = f"```{language}\n{text}\n```"
    chatty = f"Here is the world model you asked for.\n\n{fence}\n\nLet me know if anything is off."
    return stream.choice((fence, chatty))


def hostile_python(deed: str) -> str:
    """A module that tries one of HOSTILE on import, and would be a sound model else."""
    game = """from abstract_posg import AbstractPOSG

{deed}


class Model(AbstractPOSG):
    def players(self): return ["one"]
    def initial_state(self): return "start"
    def is_terminal(self, state): return state == "end"
    def actions(self, state, player): return ["go"]
    def transition(self, state, joint_action): return {{"end": 1.0}}
    def observation(self, player, state, joint_action, next_state): return next_state
"""
    return game.format(deed=HOSTILE[deed])


def _unsummed(game: POSG, stream) -> POSG:
    state = stream.choice(sorted(game.transitions))
    joint = stream.choice(sorted(game.transitions[state]))
    row = game.transitions[state][joint]
    changed = {target: p * 0.9 for target, p in row.items()}
    return _with_rows(game, {**game.transitions, state: {**game.transitions[state], joint: changed}})


def _trapped(game: POSG, stream) -> POSG:
    state = stream.choice(sorted(game.transitions))
    joint = stream.choice(sorted(game.transitions[state]))
    transitions = {
        **game.transitions,
        state: {**game.transitions[state], joint: {"waiting_for_ever": 1.0}},
        "waiting_for_ever": {("wait",) * len(game.players): {"waiting_for_ever": 1.0}},
    }
    actions = {**game.actions, "waiting_for_ever": (("wait",),) * len(game.players)}
    return _with_rows(game, transitions, actions)


def _with_rows(game: POSG, transitions, actions=None) -> POSG:
    from compendium.studies.worldmodels.posg.edits import rebuild

    return rebuild(game, transitions, actions, ends=game.terminals, sees={})
