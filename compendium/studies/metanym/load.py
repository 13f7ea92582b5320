"""The study's files as its notebooks take them: ratings to a game, leaderboard and external scores to tables.

A path is taken from the project's root, packed or not; what a file lacks is said in one line (`MetanymError`).
"""

import pandas as pd

from compendium.frame.files import read_csv
from compendium.studies.metanym.components import check_scale
from compendium.studies.metanym.game import Game, MetanymError, build_game
from compendium.studies.metanym.ratings import read_table

TOTALS = ["T", "E", "G", "GF", "GC", "EF", "EC", "T_lo", "T_hi"]


def load_game(ratings, p) -> Game:
    """The game in a table of ratings.

    `p` holds players, anchor_model, production, zeros. Raises MetanymError as `read_table`, `build_game` and
    `check_scale`.
    """
    game = build_game(
        read_table(ratings, roster=list(p.players)),
        anchor_model=p.anchor_model,
        evaluators=list(p.players),
        targets=[name for name in p.players if name != p.anchor_model],
        production=p.production,
        zeros=p.zeros,
    )
    check_scale(game)
    return game


def raw_game(raw: pd.DataFrame) -> Game:
    """The game of the un-anchored pass. Nothing is pinned, so every portfolio that is graded counts as one."""
    judges, read = (list(raw[name].unique()) for name in ("evaluator", "target"))
    return build_game(raw, anchor_model=judges[0], evaluators=judges, targets=read, production=0)


def read_board(path) -> pd.DataFrame:
    """06_contest's leaderboard: a row a model, with the columns `TOTALS`. Raises MetanymError."""
    return _by_model(path, TOTALS)


def read_external(path) -> pd.DataFrame:
    """07_external's scores: a row a model, T and the keyed test's per cent (`key`). Raises MetanymError."""
    return _by_model(path, ["T", "key"])


def _by_model(path, columns) -> pd.DataFrame:
    return read_csv(path, ["model", *columns], MetanymError).set_index("model")
