"""Lane 3: what a world model of a case should represent and should not assume, as predicates on the model.

A criterion is a small mapping read from the case's file: an `id` and exactly one predicate, see PREDICATES.
Words match the beginning of a word of a name ("consult" matches consult_host and consults), and several
words in one entry must follow each other. Nothing here reads prose: a criterion that fires shows that the
named element is there, not that a person would find it right (section 4, Lane 3).
"""

import math
import re
from collections import Counter
from dataclasses import dataclass

from compendium.studies.worldmodels.posg.model import POSG

PREDICATES = {
    "player": "a player is named so",
    "action": "an action is named so (`of`: offered to a player named so)",
    "terminal": "a terminal state is named so",
    "state": "a state is named so",
    "anywhere": "a player, action or state is named so",
    "choice": "a player named so has two actions somewhere",
    "players_at_least": "so many players",
    "terminals_at_least": "so many reachable terminal states",
    "stochastic": "some joint action has several outcomes",
    "hidden": "some player cannot tell two states apart",
    "irreversible": "some move gives up a terminal state that another move keeps",
    "leads": "an action named so can be followed by a terminal state named so",
}
WORDS = ("player", "action", "terminal")


class CriterionError(ValueError):
    """A criterion that cannot be read; the message names it and what would be right."""


@dataclass(frozen=True)
class Semantics:
    """Lane 3 of one model: which expectations hold, which prohibitions are broken.

    coverage : share of expectations that hold; avoidance : share of prohibitions that are respected;
    score : their geometric mean. `sensitive` : the sensitive terms met, reported apart from the score.
    """

    expected: dict[str, bool]
    broken: dict[str, bool]
    sensitive: tuple[str, ...]

    @property
    def coverage(self) -> float:
        return sum(self.expected.values()) / len(self.expected) if self.expected else 1.0

    @property
    def avoidance(self) -> float:
        return 1 - sum(self.broken.values()) / len(self.broken) if self.broken else 1.0

    @property
    def score(self) -> float:
        """sqrt(coverage x avoidance): every entry of the paper's Table 14 is the square root of a ratio of
        small whole numbers, which fits this mean and not the arithmetic or the harmonic one."""
        return math.sqrt(self.coverage * self.avoidance)


def semantics(game: POSG, criteria: dict) -> Semantics:
    """Test a model against {"expect": [...], "avoid": [...], "sensitive": [words]}."""
    expected = {entry["id"]: holds(game, entry) for entry in criteria.get("expect", ())}
    broken = {entry["id"]: holds(game, entry) for entry in criteria.get("avoid", ())}
    labels = [name for kind in _labels(game).values() for name in kind]
    met = tuple(
        word for word in criteria.get("sensitive", ()) if any(mentions(name, [word]) for name in labels)
    )
    return Semantics(expected, broken, met)


def holds(game: POSG, criterion: dict) -> bool:
    """Whether one criterion's predicate is true of the model. Raises CriterionError for a malformed one."""
    kind = predicate(criterion)
    wanted, labels = criterion[kind], _labels(game)
    if kind in ("player", "terminal", "state"):
        return any(mentions(name, wanted) for name in labels[kind])
    if kind == "anywhere":
        return any(mentions(name, wanted) for names in labels.values() for name in names)
    if kind == "action":
        players = [p for p in game.players if "of" not in criterion or mentions(p, criterion["of"])]
        return any(mentions(action, wanted) for player in players for action in _offered(game, player))
    if kind == "choice":
        places = [k for k, player in enumerate(game.players) if mentions(player, wanted)]
        return any(len(game.actions[s][k]) > 1 for s in game.depths() if s in game.actions for k in places)
    if kind in ("players_at_least", "terminals_at_least"):
        met = len(game.players) if kind == "players_at_least" else len(labels["terminal"])
        return met >= wanted
    test = {"stochastic": _stochastic, "hidden": _hidden, "irreversible": _irreversible}.get(kind)
    return test(game) == bool(wanted) if test else _leads(game, wanted)


def predicate(criterion: dict) -> str:
    """The one predicate of a criterion. Raises CriterionError where there is none, or more than one."""
    named = [key for key in criterion if key in PREDICATES]
    unknown = set(criterion) - set(PREDICATES) - {"id", "of", "note"}
    if len(named) != 1 or unknown or "id" not in criterion:
        raise CriterionError(
            f"criterion {criterion.get('id', criterion)!r}: should have an id and one of "
            f"{', '.join(PREDICATES)}; has {', '.join(map(str, criterion))}"
        )
    return named[0]


def mentions(name: str, words) -> bool:
    """Whether a name contains one of `words`, by the beginnings of its own words."""
    parts = tokens(name)
    for entry in words:
        wanted = tokens(entry)
        if any(
            all(part.startswith(word) for part, word in zip(parts[i:], wanted))
            for i in range(len(parts) - len(wanted) + 1)
        ):
            return True
    return False


def tokens(name: str) -> list[str]:
    """The words of a name, lower case: split at anything but letters and digits, and inside camelCase."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name)).lower())


def criteria_reference(criteria: dict) -> Counter:
    """The criteria-derived reference: one feature for each expectation (section 5: situational, cultural)."""
    return Counter((predicate(entry), entry["id"]) for entry in criteria["expect"])


def criteria_features(game: POSG, criteria: dict) -> Counter:
    """What a model holds, in the same terms: the expectations that are met, and one feature for each player,
    choosable action or terminal state that no expectation and no `plausible` entry speaks of (added structure)."""
    entries = criteria["expect"]
    found = Counter((predicate(entry), entry["id"]) for entry in entries if holds(game, entry))
    labels = _labels(game)
    for kind in WORDS:
        known = [
            word
            for entry in [*entries, *criteria.get("plausible", ())]
            if kind in entry
            for word in entry[kind]
        ]
        for name in _chosen(game) if kind == "action" else labels[kind]:
            if not mentions(name, known):
                found[kind, "other", name] += 1
    return found


def _labels(game: POSG) -> dict[str, list[str]]:
    reached = list(game.depths())
    return {
        "player": list(game.players),
        "state": reached,
        "terminal": [state for state in reached if state in game.terminals],
        "action": list(dict.fromkeys(action for player in game.players for action in _offered(game, player))),
    }


def _offered(game: POSG, player: str) -> list[str]:
    place = game.players.index(player)
    return list(
        dict.fromkeys(
            action
            for state in game.depths()
            if state in game.actions
            for action in game.actions[state][place]
        )
    )


def _chosen(game: POSG) -> list[str]:
    """Actions that are one of several in some state: what a player can only do (wait, say) adds no structure."""
    return list(
        dict.fromkeys(
            action
            for state in game.depths()
            if state in game.actions
            for mine in game.actions[state]
            if len(mine) > 1
            for action in mine
        )
    )


def _stochastic(game: POSG) -> bool:
    return any(
        sum(p > 0 for p in row.values()) > 1
        for state in game.depths()
        for row in game.transitions.get(state, {}).values()
    )


def _hidden(game: POSG) -> bool:
    reached = list(game.depths())
    return any(
        len({seen.get(state) for state in reached}) < len(reached) for seen in game.observations.values()
    )


def endings(game: POSG) -> dict[str, frozenset]:
    """{reachable state: terminal states that some play can still reach from it}."""
    known = {state: frozenset([state]) if state in game.terminals else frozenset() for state in game.depths()}
    changed = True
    while changed:
        changed = False
        for state in known:
            if state not in game.terminals:
                now = known[state].union(*(known[target] for target in game.successors(state)))
                changed |= now != known[state]
                known[state] = now
    return known


def _irreversible(game: POSG) -> bool:
    ends = endings(game)
    for state in ends:
        moves = [
            frozenset().union(*(ends[t] for t, p in row.items() if p > 0))
            for row in game.transitions.get(state, {}).values()
            if state not in game.terminals
        ]
        if len(set(moves)) > 1:
            return True
    return False


def _leads(game: POSG, wanted: dict) -> bool:
    ends = endings(game)
    return any(
        mentions(action, wanted["action"])
        and any(
            mentions(end, wanted["terminal"]) for target, p in row.items() if p > 0 for end in ends[target]
        )
        for state in ends
        if state not in game.terminals
        for joint, row in game.transitions[state].items()
        for action in joint
    )
