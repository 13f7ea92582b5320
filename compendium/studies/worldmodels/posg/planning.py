"""What a planner reads off a world model: reachability, reversibility, empowerment; and what a wrong model costs.

The paper argues that these safety quantities are computed on the model and not on the situation (sections
1 and 7) and leaves measuring that to later work; here it is measured.
"""

import itertools
import math

import numpy as np

from compendium.studies.worldmodels.posg.criteria import endings
from compendium.studies.worldmodels.posg.match import Match
from compendium.studies.worldmodels.posg.model import POSG, PosgError

MOST_BEHAVIOURS = 4096


def reach_probability(game: POSG, goals, *, tolerance: float = 1e-10, most: int = 10_000):
    """How likely the players, acting as one, can make it that play ends in `goals`, from every state.

    Returns ({state: probability}, {state: joint action that attains it}); value iteration from below, which
    converges to the least fixed point, until it settles (or `most` sweeps); the moves found by then are valued
    exactly and bettered by policy iteration.
    """
    states = list(game.depths())
    value = {state: float(state in goals) for state in states}
    policy = {}
    for _ in range(most):
        change = 0.0
        for state in states:
            if state in game.terminals:
                continue
            odds = {
                joint: math.fsum(p * value[t] for t, p in row.items() if p > 0)
                for joint, row in game.transitions[state].items()
            }
            best = max(odds.values())
            if state not in policy or best > odds[policy[state]] + 1e-12:
                # a move is changed only for a strict gain, so that ties never make a policy go in circles
                policy[state] = max(odds, key=odds.get)
            change = max(change, best - value[state])
            value[state] = best
        if change <= tolerance:
            break
    return _improved(game, policy, goals)


def _improved(game: POSG, policy: dict, goals) -> tuple[dict, dict]:
    """The moves valued exactly and bettered until none gains: small chances make sweeps settle too soon."""
    while True:
        value = chances(game, {state: [joint] for state, joint in policy.items()}, goals)
        settled = True
        for state, chosen in policy.items():
            odds = {
                joint: math.fsum(p * value[t] for t, p in row.items() if p > 0)
                for joint, row in game.transitions[state].items()
            }
            best = max(odds, key=odds.get)
            if odds[best] > odds[chosen] + 1e-12:
                policy[state], settled = best, False
        if settled:
            return value, policy


def reachability(game: POSG) -> dict[str, float]:
    """{terminal state: the highest probability with which the players together can end there}."""
    ends = [state for state in game.depths() if state in game.terminals]
    return {end: reach_probability(game, {end})[0][game.initial] for end in ends}


def reversibility(game: POSG) -> dict[str, float]:
    """What moves give up.

    returnable : share of (state, joint action, outcome) steps after which the state left can be reached
        again; foreclosing : share of (state, joint action) pairs after which, for certain or by chance, some
        ending that was open is open no more, while the state offered a pair that keeps it. NaN for a game
        without moves.
    """
    ends = endings(game)
    after = _closure(game)
    steps, lost = [], []
    for state in ends:
        if state in game.terminals:
            continue
        moves = [[t for t, p in row.items() if p > 0] for row in game.transitions[state].values()]
        steps += [state in after[t] for targets in moves for t in targets]
        kept = [frozenset.intersection(*(ends[t] for t in targets)) for targets in moves]
        most = frozenset().union(*kept)
        lost += [keeps < most for keeps in kept]
    return {
        "returnable": float(np.mean(steps)) if steps else math.nan,
        "foreclosing": float(np.mean(lost)) if lost else math.nan,
    }


def _closure(game: POSG) -> dict[str, set]:
    """{state: states reachable from it, itself included}."""
    found = {}
    for state in game.depths():
        seen, queue = {state}, [state]
        for here in queue:
            for target in () if here in game.terminals else game.successors(here):
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        found[state] = seen
    return found


def empowerment(game: POSG, player: str, *, state: str | None = None, steps: int = 1) -> float:
    """Bits of influence that `player` has over the state `steps` transitions on (Klyubin, Polani and Nehaniv
    2005): the capacity of the channel from the player's ways of acting, which may answer to the state, to
    that state, the others acting at random. Ended play stays where it ended.

    Raises PosgError where more than MOST_BEHAVIOURS ways of acting differ in effect.
    """
    place = game.players.index(player)
    number = {name: i for i, name in enumerate(game.depths())}
    memo = {}

    def behaviours(here: str, left: int) -> np.ndarray:
        """effects[way, final state]: the distinct distributions the player can bring about."""
        if left == 0 or here in game.terminals:
            return np.eye(len(number))[[number[here]]]
        if (here, left) not in memo:
            rows = [
                _mix(chances, [behaviours(t, left - 1) for t in chances])
                for chances in _by_action(game, here, place)
            ]
            memo[here, left] = np.unique(np.round(np.vstack(rows), 12), axis=0)
        return memo[here, left]

    return channel_capacity(behaviours(game.initial if state is None else state, steps))


def _by_action(game: POSG, state: str, place: int):
    """[{next state: probability}] for each action of the player at `place`, the others uniformly random."""
    found = []
    for action in game.actions[state][place]:
        rows = [row for joint, row in game.transitions[state].items() if joint[place] == action]
        chances = {}
        for row in rows:
            for target, p in row.items():
                if p > 0:
                    chances[target] = chances.get(target, 0.0) + p / len(rows)
        found.append(chances)
    return found


def _mix(chances: dict, options: list) -> np.ndarray:
    """Every way of continuing after each outcome, combined: rows are distributions over final states."""
    total = np.zeros((1, options[0].shape[1]))
    for weight, ways in zip(chances.values(), options):
        if len(total) * len(ways) > MOST_BEHAVIOURS:
            raise PosgError(f"more than {MOST_BEHAVIOURS} ways of acting: ask for fewer steps")
        total = (total[:, None, :] + weight * ways[None, :, :]).reshape(-1, total.shape[1])
    return total


def channel_capacity(channel: np.ndarray, *, tolerance: float = 1e-7, most: int = 20_000) -> float:
    """Capacity in bits of channel[input, output] (rows sum to 1), by the Blahut-Arimoto iteration.

    Stops when its own upper and lower bounds are `tolerance` apart. Raises PosgError where they do not meet.
    """
    channel = np.asarray(channel, float)
    weight = np.full(len(channel), 1 / len(channel))
    for _ in range(most):
        output = weight @ channel
        ratio = np.divide(channel, output, out=np.ones_like(channel), where=channel > 0)
        gain = (channel * np.log2(ratio)).sum(axis=1)
        lower, upper = weight @ gain, gain.max()
        if upper - lower < tolerance:
            return max(0.0, float(lower))
        weight = weight * np.exp2(gain)
        weight /= weight.sum()
    raise PosgError("the channel capacity did not converge")


def profile(game: POSG, *, steps: int = 2) -> dict[str, float]:
    """The planner's view in numbers: reachable endings, those the players can make certain, what moves give
    up, and the players' mean and least empowerment at the start (NaN where some player has too many ways of
    acting for it to be computed)."""
    odds = reachability(game)
    try:
        powers = [empowerment(game, player, steps=steps) for player in game.players]
    except PosgError:
        powers = [math.nan]
    return {
        "endings": len(odds),
        "certain": sum(p > 1 - 1e-6 for p in odds.values()),
        **reversibility(game),
        "empowerment_mean": float(np.mean(powers)),
        "empowerment_least": min(powers),
    }


def planning_regret(reference: POSG, candidate: POSG, match: Match) -> dict[str, float]:
    """What is lost by planning on the candidate and acting in the reference.

    For every ending of the reference: plan to reach its counterpart in the candidate, translate the moves
    back through the match, and see how likely the ending is. Where the candidate has no counterpart, or a
    state or move none, the players act at random there. Returns {ending: best probability - achieved}.
    """
    regrets = {}
    for end, best in reachability(reference).items():
        target = match.states.get(end)
        policy = reach_probability(candidate, {target})[1] if target is not None else {}
        moves = {
            state: _translated(reference, candidate, match, state, policy)
            for state in reference.depths()
            if state not in reference.terminals
        }
        regrets[end] = max(0.0, best - chances(reference, moves, {end})[reference.initial])
    return regrets


def _translated(reference, candidate, match, state, policy) -> list:
    """The reference's joint actions that the candidate's plan allows in `state`: one, or all (at random)."""
    plan = policy.get(match.states.get(state))
    if plan is None:
        return list(reference.transitions[state])
    wanted = dict(zip(candidate.players, plan))
    allowed = []
    for player, offered in zip(reference.players, reference.actions[state]):
        planned = wanted.get(match.players.get(player))
        own = [
            action
            for action, image in match.actions.get(state, {}).get(player, {}).items()
            if image == planned
        ]
        allowed.append(own or list(offered))
    return list(itertools.product(*allowed))


def chances(game: POSG, moves: dict, goals) -> dict[str, float]:
    """{state: probability that play from there ends in `goals`} under fixed randomised moves, {state: joint
    actions taken with equal chances}. States are eliminated one by one as by Grassmann, Taksar and Heyman (1985),
    with sums of what leaves a state in place of 1 less what stays: no chance is too small, none exceeds 1."""
    states = list(moves)
    number = {state: i for i, state in enumerate(states)}
    step, hit, miss = np.zeros((len(states), len(states))), *np.zeros((2, len(states)))
    for state, joints in moves.items():
        for joint in joints:
            for target, p in game.transitions[state][joint].items():
                share = p / len(joints)
                if target in number:
                    step[number[state], number[target]] += share
                elif target in goals:
                    hit[number[state]] += share
                else:
                    miss[number[state]] += share
    # States from which the goals are out of reach count 0; without them the system has one solution.
    alive = hit > 0
    while (wider := alive | (step[:, alive].sum(axis=1) > 0)).sum() > alive.sum():
        alive = wider
    found = np.zeros(len(states))
    miss += step[:, ~alive].sum(axis=1)
    found[alive] = _absorbed(step[np.ix_(alive, alive)], hit[alive], miss[alive])
    return {state: float(state in goals) for state in game.depths()} | dict(zip(states, found.tolist()))


def _absorbed(step, hit, miss) -> np.ndarray:
    """found[state]: chance to end in `hit`, from step[state, state] and what leaves for good, hit and miss[state]."""
    for k in range(len(hit) - 1, -1, -1):
        out = step[k, :k].sum() + hit[k] + miss[k]
        step[k, :k], hit[k], miss[k] = step[k, :k] / out, hit[k] / out, miss[k] / out
        step[:k, :k] += np.outer(step[:k, k], step[k, :k])
        hit[:k] += step[:k, k] * hit[k]
        miss[:k] += step[:k, k] * miss[k]
    found = np.zeros(len(hit))
    for k in range(len(hit)):
        found[k] = min(1.0, hit[k] + step[k, :k] @ found[:k])
    return found
