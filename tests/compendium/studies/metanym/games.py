"""Small games for the tests: tidy ratings with a planted truth."""

import numpy as np
import pandas as pd

from compendium.frame.demo import packed
from compendium.studies.metanym import simulated
from compendium.studies.metanym.game import KEYS, SCORES, build_game
from compendium.studies.metanym.ratings import read_table
from compendium.studies.metanym.stages import read_portfolios
from tests.in_process import in_process

PLAYERS = ("ann", "bob", "cid", "dot", "eve", "fay")
ANCHOR = "ann"


def ratings(seed=0, runs=(1,), anchors=(5, 6, 7, 8), players=PLAYERS, archetypes=5):
    """Every player rates every other portfolio; skills fall from the first player to the last."""
    rng = np.random.default_rng(seed)
    skill = dict(zip(players, np.linspace(1.2, 0.1, len(players))))
    parts = []
    for run in runs:
        standing = {target: rng.normal(size=(archetypes, 5)) for target in players}
        taste = {target: rng.normal(size=(archetypes, 4)) for target in players}
        for anchor in anchors if run == min(runs) else [7]:
            for judge in players:
                for target in players:
                    if target in (judge, ANCHOR):
                        continue
                    noise = rng.normal(size=(archetypes, 9)) * 0.6
                    scores = (
                        np.hstack([skill[judge] * standing[target], 1.2 * taste[target]]) + noise + anchor
                    )
                    scores = np.clip(np.rint(scores), 1, 10)
                    structure = np.clip(
                        np.rint(anchor + len(target) - 3 + players.index(target) % 3 + rng.normal()), 1, 10
                    )
                    frame = pd.DataFrame(scores, columns=list(SCORES[:-1])).assign(
                        structure=structure,
                        run=run,
                        anchor=anchor,
                        evaluator=judge,
                        target=target,
                        archetype=range(1, archetypes + 1),
                    )
                    parts.append(frame)
    return pd.concat(parts, ignore_index=True)[[*KEYS, *SCORES]]


def game(**options):
    """A small game of six players."""
    players = options.get("players", PLAYERS)
    return build_game(
        ratings(**options),
        anchor_model=ANCHOR,
        evaluators=players,
        targets=[p for p in players if p != ANCHOR],
    )


def demo_game(runs=(1, 2, 3)):
    """The demo's (portfolios, anchored ratings) of some runs, as data/demo/ keeps them."""
    tables = read_portfolios(packed("metanym/portfolios.jsonl")), read_table(packed("metanym/ratings.csv"))
    return [table[table["run"].isin(runs)].reset_index(drop=True) for table in tables]


def ask_here(study, requests, label, *, parse, retries_on_invalid, **_):
    """In place of `ask_all` of the study's stages: the simulated players, asked in this process."""
    result = in_process(
        lambda body: simulated.respond(body), requests, parse=parse, retries_on_invalid=retries_on_invalid
    )
    return list(result.replies), None
