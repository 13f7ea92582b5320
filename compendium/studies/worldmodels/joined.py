"""World models: the first passes of each track with everything that was measured on them, as one frame each."""
# Tested by notebooks/worldmodels/14_meaning.ipynb.

from types import SimpleNamespace

import pandas as pd

from compendium.studies.worldmodels.scores import criteria_table, first_pass, match_table, structure_table
from compendium.studies.worldmodels.tables import read_table, semantic_table


def joined(data, *, horizon: int, checklist: float, matches: str = "", semantic: str = "") -> SimpleNamespace:
    """game, situational, cultural (frames), matches and semantic (as they can be saved).

    data : candidates and games, as compendium.studies.worldmodels.stages.load gives them; tracks it lacks give empty
    frames. matches, semantic : files of notebooks 03 and 14; empty: measured here.

    game : candidates with match_table's columns, semantic, checklist, bias_free. situational : with
    criteria_table's coverage, precision, f1 and the same. cultural : those, and semantic_coverage,
    semantic_avoidance, states.
    """
    candidates, games = data.candidates, data.games
    first = candidates[candidates["round"] == 0]
    lane_2 = (
        read_table(matches)
        if matches
        else match_table(first_pass(candidates, "game"), games, horizon=horizon)
    )
    lane_3 = read_table(semantic) if semantic else semantic_table(first, games, checklist=checklist)
    short = lane_3[["id", "semantic", "checklist", "bias_free"]]
    long = lane_3.rename(columns={"coverage": "semantic_coverage", "avoidance": "semantic_avoidance"})
    game = first_pass(candidates, "game").merge(lane_2, on="id", how="left").merge(short, on="id", how="left")
    open_ended = {}
    for track, lane in (("situational", short), ("cultural", long)):
        part = first_pass(candidates, track)
        scored = part.merge(criteria_table(part, games), on="id", how="left")
        open_ended[track] = scored.merge(lane, on="id", how="left")
    sizes = structure_table(first_pass(candidates, "cultural"), games)
    sizes = sizes[["id", "states"]] if len(sizes) else pd.DataFrame(columns=["id", "states"])
    return SimpleNamespace(
        game=game,
        situational=open_ended["situational"],
        cultural=open_ended["cultural"].merge(sizes, on="id", how="left"),
        matches=lane_2,
        semantic=lane_3,
    )
