"""CREATE: tables of paths in files, their triples as JSON text."""

import json

import pandas as pd

from compendium.frame.files import read_csv, read_jsonl
from compendium.frame.paths import from_root, shown
from compendium.studies.create.errors import CreateError

NUMBERS = ("factual", "share_factual", "n_factual_triples", "strength", "weakest", "nu")


def to_csv_frame(paths: pd.DataFrame) -> pd.DataFrame:
    """A table of paths with its triples as JSON text, for a CSV file."""
    return paths.assign(triples=[json.dumps(path, ensure_ascii=False) for path in paths["triples"]])


def read_csv_frame(path) -> pd.DataFrame:
    """A table that `to_csv_frame` wrote, its triples tuples again. Raises CreateError where it is no such
    table."""
    # only numbers may be missing: a name such as "nan" or "NA" stays a name
    missing = {name: [""] for name in NUMBERS}
    frame = read_csv(path, ["triples"], CreateError, keep_default_na=False, na_values=missing)
    try:
        triples = [tuple(map(tuple, json.loads(text))) for text in frame["triples"]]
    except (TypeError, ValueError) as error:
        raise CreateError(
            f"{shown(from_root(path))}: its column `triples` should hold JSON lists of triples ({error})"
        ) from None
    return frame.assign(triples=triples)


def read_traces(path) -> dict:
    """{(source, query): reasoning trace}, as 01_generate wrote them, one JSON line each. Raises CreateError."""
    rows = read_jsonl(path, CreateError, ("source", "query", "text"), "reasoning traces as JSON lines")
    return {(row["source"], row["query"]): row["text"] for row in rows}
