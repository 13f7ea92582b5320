"""CREATE: tables of paths in files, their triples as JSON text."""

import json

import pandas as pd

from compendium.frame.paths import shown
from compendium.studies.create.answers import CreateError

NUMBERS = ("factual", "share_factual", "n_factual_triples", "strength", "weakest", "nu")


def to_csv_frame(paths: pd.DataFrame) -> pd.DataFrame:
    """A table of paths with its triples as JSON text, for a CSV file."""
    return paths.assign(triples=[json.dumps(path, ensure_ascii=False) for path in paths["triples"]])


def read_csv_frame(path) -> pd.DataFrame:
    """A table that `to_csv_frame` wrote, its triples tuples again. Raises CreateError where it is no such
    table."""
    try:
        # only numbers may be missing: a name such as "nan" or "NA" stays a name
        frame = pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in NUMBERS})
        triples = [tuple(map(tuple, json.loads(text))) for text in frame["triples"]]
    except (OSError, KeyError, ValueError) as error:
        raise CreateError(
            f"{shown(path)}: should be a table of paths with a column `triples` ({error})"
        ) from None
    return frame.assign(triples=triples)
