"""The authored corpus: data/scenarios/<tier>/<id>.yaml, one case a file, with a short notation for games.

The archive of the study is not public and the paper prints the text of one scenario only, so the corpus was
written for this compendium to the paper's description (section 3).
"""

import functools
import itertools
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from compendium.frame.params import read_yaml
from compendium.frame.paths import DATA, shown
from compendium.studies.worldmodels.posg.criteria import predicate
from compendium.studies.worldmodels.posg.model import POSG, PosgError, from_document

FOLDER = DATA / "scenarios"
TIERS = {"toy": 10, "game": 9, "situational": 11, "cultural": 14}
FACTS = ("irreversible", "hidden", "authority")
WAIT = "wait"


class ScenarioError(ValueError):
    """A case file that cannot be used; the message names the file and key, and what would be right."""


@dataclass(frozen=True)
class Scenario:
    """One case.

    text : what a model is given; holds `{location}` in the cultural tier.
    roles : {player: who that is}; facts : {irreversible, hidden, authority: what a faithful model preserves}.
    game : the reference (toy, game), or one faithful reading among several (situational, cultural).
    candidate : the hand-authored candidate of a toy case, else None.
    criteria : {"expect", "avoid", "plausible", "sensitive"} (see posg.criteria); empty lists in toy and game.
    locations : {condition: words for {location}}, "anonymised" and "located" first; empty outside cultural.
    source : where the text is printed, where it is not this project's.
    """

    id: str
    tier: str
    title: str
    text: str
    roles: dict[str, str]
    facts: dict[str, str]
    game: POSG
    criteria: dict
    locations: dict[str, str]
    candidate: POSG | None = None
    source: str = ""

    def wording(self, condition: str = "anonymised") -> str:
        """The text under a location condition. Raises ScenarioError for one the case does not have."""
        if not self.locations:
            return self.text
        if condition not in self.locations:
            raise ScenarioError(
                f"{self.id}: no location condition {condition!r}; there are {', '.join(self.locations)}"
            )
        return self.text.format(location=self.locations[condition])


def load_scenario(path) -> Scenario:
    """Read one case file. Raises ScenarioError naming file and key; ParamsError where it is not YAML."""
    path = Path(path)
    data = read_yaml(path)
    known = {
        "id",
        "tier",
        "title",
        "text",
        "roles",
        "facts",
        "game",
        "candidate",
        "criteria",
        "locations",
        "source",
    }
    for key in set(data) - known:
        raise ScenarioError(f"{shown(path)}: unknown key {key!r}; known: {', '.join(sorted(known))}")
    for key in ("id", "tier", "title", "text", "roles", "facts", "game"):
        if not data.get(key):
            raise ScenarioError(f"{shown(path)}: lacks the key {key!r}")
    if data["tier"] not in TIERS:
        raise ScenarioError(f"{shown(path)}: tier is {data['tier']!r}, should be one of {', '.join(TIERS)}")
    if not set(data["facts"]) <= set(FACTS):
        raise ScenarioError(f"{shown(path)}: facts should be among {', '.join(FACTS)}")
    criteria = {"expect": [], "avoid": [], "plausible": [], "sensitive": [], **(data.get("criteria") or {})}
    for entry in [*criteria["expect"], *criteria["avoid"]]:
        predicate(entry)
    where = shown(path)
    game = read_notation(data["game"], f"{where}: game", data["id"])
    other = (
        read_notation(data["candidate"], f"{where}: candidate", data["id"]) if data.get("candidate") else None
    )
    return Scenario(
        data["id"],
        data["tier"],
        data["title"],
        " ".join(data["text"].split()),
        data["roles"],
        data["facts"],
        game,
        criteria,
        data.get("locations") or {},
        other,
        data.get("source", ""),
    )


@functools.lru_cache(maxsize=1)
def corpus() -> dict[str, Scenario]:
    """{id: Scenario} of all 44 cases, tier by tier in the order of their numbers.

    Raises ScenarioError where a tier does not hold as many as it should, or an id is not its file's name.
    """
    found = {}
    for tier, count in TIERS.items():
        paths = sorted((FOLDER / tier).glob("*.yaml"), key=_order)
        if len(paths) != count:
            raise ScenarioError(f"{shown(FOLDER / tier)}: {len(paths)} cases, should be {count}")
        for path in paths:
            scenario = load_scenario(path)
            if (scenario.id, scenario.tier) != (path.stem, tier):
                raise ScenarioError(f"{shown(path)}: holds {scenario.id} of tier {scenario.tier}")
            found[scenario.id] = scenario
    return found


def tier(name: str) -> dict[str, Scenario]:
    """{id: Scenario} of one tier."""
    return {key: scenario for key, scenario in corpus().items() if scenario.tier == name}


def read_notation(data: dict, where: str, name: str = "") -> POSG:
    """The game in the corpus's short notation.

        players: [a, b]            start: s            end: [t, u]
        moves:
          s:                       # a player not named here can only `wait`
            a: [x, y]
            to:                    # the first line whose conditions hold decides
              - {a: x, then: t}
              - then: {t: 1/2, u: 1/2}
        sees: {b: {s: fog, r: fog}}   # what a player observes, where it is not the state's own name

    States are listed as met: the start, then as moves name them, then the ends. Raises PosgError.
    """
    for key in set(data) - {"players", "start", "end", "moves", "sees"}:
        raise PosgError(f"{where}: unknown key {key!r}; known: players, start, end, moves, sees")
    players, moves = list(data["players"]), data.get("moves") or {}
    states = list(dict.fromkeys([data["start"], *moves, *data["end"]]))
    actions, transitions = {}, []
    for state, entry in moves.items():
        here = f"{where}.moves.{state}"
        for key in set(entry) - {*players, "to"}:
            raise PosgError(f"{here}: {key!r} is no player; players: {', '.join(players)}")
        actions[state] = {player: list(entry.get(player, [WAIT])) for player in players}
        for joint in itertools.product(*actions[state].values()):
            chosen = dict(zip(players, joint))
            outcomes = [
                {"state": target, "probability": weight}
                for target, weight in _decide(entry["to"], chosen, here).items()
            ]
            transitions.append({"state": state, "joint_action": chosen, "outcomes": outcomes})
    sees = data.get("sees") or {}
    observations = {
        player: {state: sees.get(player, {}).get(state, state) for state in states} for player in players
    }
    return from_document(
        {
            "name": name,
            "players": players,
            "states": states,
            "initial_state": data["start"],
            "terminal_states": list(data["end"]),
            "actions": actions,
            "transitions": transitions,
            "observations": observations,
        },
        where,
    )


def _decide(lines, chosen: dict, where: str) -> dict[str, float]:
    for line in lines:
        conditions = {key: value for key, value in line.items() if key != "then"}
        for player in set(conditions) - set(chosen):
            raise PosgError(f"{where}: {player!r} is no player")
        if all(
            chosen[player] in (value if isinstance(value, list) else [value])
            for player, value in conditions.items()
        ):
            then = line["then"]
            if not isinstance(then, dict):
                return {then: 1.0}
            return {target: float(Fraction(str(weight))) for target, weight in then.items()}
    raise PosgError(f"{where}: no line decides {chosen}")


def _order(path: Path):
    return [int(part) for part in path.stem[1:].split(".")]
