"""Lane 2b: what a transition graph looks like, with no reference to compare it to (section 4 of the paper)."""

import math

import networkx as nx
import numpy as np

from compendium.studies.worldmodels.posg.lanes import state_graph
from compendium.studies.worldmodels.posg.model import POSG


def structure_profile(game: POSG) -> dict[str, float]:
    """Numbers that describe the reachable transition graph.

    players, states, terminals, joint_actions, transitions : counts over reachable states.
    reachable_share : reachable over declared states.
    branching_mean, branching_max : distinct successors of a non-terminal state.
    in_degree_max, out_degree_max : in the graph of distinct edges.
    components, largest_component : strongly connected components and the size of the largest.
    depth : most transitions that a shortest path from the start takes.
    stochastic_share : joint actions with more than one outcome, over all joint actions.
    entropy_mean, entropy_max : bits of a joint action's outcome.
    choice_share : non-terminal states in which some player has two actions or more.
    """
    depths = game.depths()
    graph = state_graph(game).subgraph(depths)
    open_states = [state for state in depths if state not in game.terminals]
    rows = [row for state in open_states for row in game.transitions[state].values()]
    entropy = np.array([outcome_entropy(row.values()) for row in rows] or [0.0])
    branching = np.array([graph.out_degree(state) for state in open_states] or [0])
    parts = [len(part) for part in nx.strongly_connected_components(graph)]
    choices = [any(len(mine) > 1 for mine in game.actions[state]) for state in open_states]
    return {
        "players": len(game.players),
        "states": len(depths),
        "terminals": sum(state in game.terminals for state in depths),
        "joint_actions": len(rows),
        "transitions": sum(p > 0 for row in rows for p in row.values()),
        "reachable_share": len(depths) / len(game.states),
        "branching_mean": float(branching.mean()),
        "branching_max": int(branching.max()),
        "in_degree_max": max(degree for _, degree in graph.in_degree()),
        "out_degree_max": max(degree for _, degree in graph.out_degree()),
        "components": len(parts),
        "largest_component": max(parts),
        "depth": max(depths.values()),
        "stochastic_share": float(np.mean([sum(p > 0 for p in row.values()) > 1 for row in rows]))
        if rows
        else 0.0,
        "entropy_mean": float(entropy.mean()),
        "entropy_max": float(entropy.max()),
        "choice_share": float(np.mean(choices)) if choices else 0.0,
    }


def outcome_entropy(weights) -> float:
    """Shannon entropy, in bits, of a probability vector (zero weights count nothing)."""
    return -math.fsum(p * math.log2(p) for p in weights if p > 0) + 0.0


def properties(game: POSG) -> dict[str, bool]:
    """The four yes-or-no properties of the paper's Figure 5 (appendix A.2)."""
    profile = structure_profile(game)
    return {
        "multiple_players": profile["players"] > 1,
        "stochastic": profile["stochastic_share"] > 0,
        "player_choice": profile["choice_share"] > 0,
        "multi_step": profile["depth"] > 1,
    }


def differences(reference: POSG, candidate: POSG) -> dict[str, bool]:
    """Which kinds of difference a candidate shows to its reference, by counts (section 6)."""
    mine, theirs = structure_profile(reference), structure_profile(candidate)
    return {
        "terminal_count": mine["terminals"] != theirs["terminals"],
        "extra_states": theirs["states"] > mine["states"],
        "missing_states": theirs["states"] < mine["states"],
        "extra_transitions": theirs["transitions"] > mine["transitions"],
        "missing_transitions": theirs["transitions"] < mine["transitions"],
        "player_count": mine["players"] != theirs["players"],
    }
