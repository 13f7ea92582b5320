"""World models: what a location label changes (Tables 13 to 15 and appendix C of the paper)."""

import re

import pandas as pd

from compendium.studies.worldmodels.posg.criteria import mentions, tokens
from compendium.studies.worldmodels.posg.model import POSG
from lib.proportions import paired_deltas

LEVELS = ("LOW", "HIGH", "EXT")


def location_deltas(cultural: pd.DataFrame) -> pd.DataFrame:
    """deltas[case, model] of the semantic score: located minus anonymised, NaN where either lacks (Table 13)."""
    columns = {}
    for model, part in cultural.groupby("model", sort=False):
        table = part.rename(columns={"case": "item"})[["item", "condition"]].assign(value=part["semantic"])
        found = paired_deltas(table, "anonymised", "located")
        columns[model] = found.set_index("item")["delta"]
    return pd.DataFrame(columns).reindex(dict.fromkeys(cultural["case"]))


def located_scores(cultural: pd.DataFrame) -> pd.DataFrame:
    """Semantic scores[case, model] with location, and `panel`, the mean over models that have one (Table 14)."""
    wide = cultural[cultural["condition"] == "located"].pivot(
        index="case", columns="model", values="semantic"
    )
    wide = wide.reindex(index=dict.fromkeys(cultural["case"]), columns=dict.fromkeys(cultural["model"]))
    return wide.assign(panel=wide.mean(axis=1))


def consequence(original: POSG, other: POSG, acting=("robot", "assistant")) -> str:
    """How far two worlds of one case lie apart: EXT where other endings can be reached, HIGH where the robot's
    possible actions differ, else LOW (the caption of Table 15; names are compared by their words, and numbers
    in them are left out, so that mere numbering does not count)."""
    if _ends(original) != _ends(other):
        return "EXT"
    return "HIGH" if _options(original, acting) != _options(other, acting) else "LOW"


def table_15(candidates: pd.DataFrame, games: dict[str, POSG], variants: dict) -> pd.DataFrame:
    """Rows of case, model, place: states (reachable), level. The original label is compared to the neutral one and
    every other label to the original; places without a model have neither."""
    rows = []
    known = candidates[candidates["round"] == 0].set_index(["case", "model", "condition"])["id"]
    for case, places in variants.items():
        for model in dict.fromkeys(candidates["model"]):
            found = {place: games.get(known.get((case, model, place))) for place in places}
            for place in places:
                other = found["anonymised"] if place == "located" else found["located"]
                game, name = found[place], "original" if place == "located" else place
                level = consequence(other, game) if game is not None and other is not None else ""
                rows.append([case, model, name, len(game.depths()) if game is not None else None, level])
    return pd.DataFrame(rows, columns=["case", "model", "place", "states", "level"])


def shortest_way(game: POSG, words) -> float:
    """Fewest transitions from the start to an ending named so; NaN where none can be reached (a two-step path
    from evidence to punishment is what appendix C.2 warns of)."""
    found = [
        depth for state, depth in game.depths().items() if state in game.terminals and mentions(state, words)
    ]
    return float(min(found)) if found else float("nan")


def _words(name: str) -> str:
    return " ".join(part for part in tokens(re.split(r"_after_", name)[0]) if not part.isdigit())


def _ends(game: POSG) -> set:
    return {_words(state) for state in game.depths() if state in game.terminals}


def _options(game: POSG, acting) -> set:
    places = [k for k, player in enumerate(game.players) if mentions(player, acting)]
    return {
        _words(action)
        for state in game.depths()
        if state in game.actions
        for k in places
        for action in game.actions[state][k]
    }
