"""A simulated study of any size, its models called in this process: for tests that need another than the demo's."""

import math

import pandas as pd

from compendium.studies.alienbench import simulated
from compendium.studies.alienbench.ask import generation_requests, generations_frame, samples
from compendium.studies.alienbench.data import KEYS
from tests.in_process import in_process


def simulated_study(params: dict, seed: int | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(generations, labels) of these params; `seed` replaces theirs: another study of the same design."""
    counts = samples(
        params["conditions"], params["wordings"], params["n_samples"], params["n_samples_paraphrase"]
    )
    requests = generation_requests(
        params["subjects"],
        counts,
        seed=params["seed"] if seed is None else seed,
        temperature=params["temperature"],
        max_tokens=params["max_tokens"],
        n_human=params["n_human"],
    )
    generations, texts = generations_frame(requests, in_process(simulated.respond, requests).replies)
    features, rows = list(params["features"]), []
    described = list(zip(generations[KEYS[:4]].itertuples(index=False, name=None), texts, strict=True))
    for judge in params["judges"]:
        for key, text in described:
            labels = simulated.labels_of(text, judge)
            rows.append((*key, judge, *(float(labels.get(feature, math.nan)) for feature in features)))
    return generations, pd.DataFrame(rows, columns=[*KEYS, *features])
