"""Lane 1, mechanical validity: three gates of rising strictness over a JSON document.

contract   the JSON Schema: keys and types (the paper's "Validate")
probe      an exhaustive sweep: every name resolves, every reachable state and joint action has a transition
           that sums to one, terminal states absorb ("Probe")
audit      the strict post-hoc audit: the same for states out of reach, and no unreachable state, no dead
           state, no transition for an action that is not offered ("Lane 1")

A gate is only asked where the one before it passed. (Section 4, Lane 1, and section 5 of the paper.)
"""

import math
from dataclasses import dataclass

import networkx as nx

from compendium.studies.worldmodels.posg.contract import TRANSITIONS
from compendium.studies.worldmodels.posg.model import POSG, from_document, reference_problems, schema_problems

SUM_TOLERANCE = 1e-9
GATES = ("contract", "probe", "audit")
# What the loader may leave standing for the audit to judge: a name out of reach does not stop a sweep.
_FOR_AUDIT = "is not an action of"


@dataclass(frozen=True)
class LaneOne:
    """The verdict on one document.

    problems : {gate: what it objects to}, for the gates that were asked; a gate passed where that is empty.
    coverage : listed share of the (state, joint action) pairs that the declared states call for, NaN before
        the audit; unreachable, dead, cyclic : counts of declared states, same.
    game : the POSG, where the contract and the probe passed.
    """

    problems: dict[str, tuple[str, ...]]
    coverage: float = math.nan
    unreachable: float = math.nan
    dead: float = math.nan
    cyclic: float = math.nan
    game: POSG | None = None

    def passed(self, gate: str) -> bool:
        """Whether the document was asked at `gate` and nothing was objected to."""
        return self.problems.get(gate) == ()

    @property
    def valid(self) -> bool:
        """Lane 1 as the paper's tables report it: all three gates."""
        return self.passed("audit")

    @property
    def first_problem(self) -> str:
        """The first objection, with its gate; empty where there is none."""
        return next((f"{gate}: {said[0]}" for gate, said in self.problems.items() if said), "")


def lane_one(document) -> LaneOne:
    """Run the gates over a JSON document (anything at all may be handed in)."""
    contract = tuple(schema_problems(document))
    if contract:
        return LaneOne({"contract": contract})
    probe = tuple(probe_problems(document))
    if probe:
        return LaneOne({"contract": (), "probe": probe})
    extra = [problem for problem in reference_problems(document) if _FOR_AUDIT in problem]
    game = from_document(_without_unoffered(document) if extra else document)
    return _audit(game, extra)


def probe_problems(document: dict) -> list[str]:
    """What the sweep over reachable states and joint actions runs into; the document satisfies the schema."""
    problems = [problem for problem in reference_problems(document) if _FOR_AUDIT not in problem]
    if problems:
        return problems
    game = from_document(_without_unoffered(document))
    if (pairs := _pairs(game, game.depths())) > TRANSITIONS:
        return [
            f"actions: {pairs} pairs of a reachable state and a joint action; a model may list {TRANSITIONS}"
        ]
    for state in game.depths():
        problems += _absorbing(game, state) if state in game.terminals else _row_problems(game, state)
    return problems


def _pairs(game: POSG, states) -> int:
    """How many (state, joint action) pairs call for a transition, counted without listing them."""
    return sum(math.prod(map(len, game.actions[state])) for state in states if state not in game.terminals)


def _absorbing(game: POSG, state: str) -> list[str]:
    leaving = {
        target for row in game.transitions.get(state, {}).values() for target, p in row.items() if p > 0
    }
    return [f"the terminal state {state!r} leads to {target!r}" for target in sorted(leaving - {state})]


def _row_problems(game: POSG, state: str) -> list[str]:
    problems, rows = [], game.transitions.get(state, {})
    for joint in game.joint_actions(state):
        if joint not in rows:
            problems.append(f"no transition from {state!r} under {', '.join(joint)}")
            continue
        total = math.fsum(rows[joint].values())
        if not abs(total - 1) <= SUM_TOLERANCE:  # says no to NaN as well
            problems.append(
                f"probabilities from {state!r} under {', '.join(joint)} sum to {total:.6g}, should be 1"
            )
    return problems


def _audit(game: POSG, unoffered: list[str]) -> LaneOne:
    reached = set(game.depths())
    problems = list(unoffered)
    expected = _pairs(game, game.states)
    listed = sum(len(rows) for state, rows in game.transitions.items() if state not in game.terminals)
    apart = [state for state in game.states if state not in reached]
    for state in apart if expected <= TRANSITIONS else ():
        problems += _absorbing(game, state) if state in game.terminals else _row_problems(game, state)
    problems += [f"the state {state!r} cannot be reached" for state in apart]
    graph = state_graph(game)
    alive = set(game.terminals) | {s for t in game.terminals for s in nx.ancestors(graph, t)}
    dead = [state for state in game.states if state in reached and state not in alive]
    problems += [f"no terminal state can be reached from {state!r}" for state in dead]
    cyclic = sum(
        len(part)
        for part in nx.strongly_connected_components(graph)
        if len(part) > 1 or any(graph.has_edge(s, s) for s in part)
    )
    coverage = listed / expected if expected else 1.0
    return LaneOne(
        {"contract": (), "probe": (), "audit": tuple(problems)}, coverage, len(apart), len(dead), cyclic, game
    )


def state_graph(game: POSG) -> nx.DiGraph:
    """The transition graph over declared states: an edge wherever some joint action has positive probability.
    Terminal states keep no edges (that they absorb is understood)."""
    graph = nx.DiGraph()
    graph.add_nodes_from(game.states)
    graph.add_edges_from(
        (state, target)
        for state in game.states
        if state not in game.terminals
        for target in game.successors(state)
    )
    return graph


def _without_unoffered(document: dict) -> dict:
    """The document less the transitions for actions that their state does not offer."""
    terminals, actions = set(document["terminal_states"]), document["actions"]
    keep = [
        entry
        for entry in document["transitions"]
        if entry["state"] in terminals
        or all(
            action in actions.get(entry["state"], {}).get(player, [])
            for player, action in entry["joint_action"].items()
        )
    ]
    return {**document, "transitions": keep}
