"""Simulated texts and judgements for any params, the models called in this process: what `generate` and `judge`
should get over HTTP."""

import pandas as pd

from compendium.studies.stories import stages
from compendium.studies.stories.data import TEXTS
from compendium.studies.stories.simulated import respond


def demo_texts(p) -> pd.DataFrame:
    """The demo's stories, written in process; equal to what `generate` gets from the simulated endpoint."""
    rows = []
    for row in stages._plan(p, "simulated", "")[0]:
        english = respond(stages.story_request(p, row).content).text
        rows += [{**row, "language": "en", "text": english}]
        if p.translate:
            italian = respond(stages.translation_request(p, rows[-1]).content).text
            rows += [{**row, "language": "it", "text": italian}]
    return pd.DataFrame(rows, columns=TEXTS)


def demo_judgements(p, texts: pd.DataFrame) -> pd.DataFrame:
    """The demo's judgements, made in process; equal to what `judge` gets from the simulated endpoint."""
    requests = stages.judge_requests(p, texts)
    return stages.judgements_frame(
        requests, [stages.score(respond(request.content).text).values["score"] for request in requests]
    )
