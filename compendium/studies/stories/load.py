"""Stories: what a notebook starts from, read from the chain's files or, on its own, simulated in process."""

from types import SimpleNamespace

import pandas as pd

from compendium.frame.params import study_params
from compendium.studies.stories.data import Stories, read_texts
from compendium.studies.stories.measures import demo_ratings, measure
from compendium.studies.stories.stages import demo_judgements, demo_texts


def load(*, texts="", ratings=None, judgements=None, metrics=None, rng=None) -> Stories:
    """The tables a notebook asks for: a path is read, "" is the demo's table made in process, None is left out.

    What is made follows params/stories.yaml; `rng`: the generator of the demo's ratings. Raises StoriesError for a
    file of texts that cannot be used.
    """
    p = SimpleNamespace(**study_params("stories"))
    data = Stories(read_texts(texts) if texts else demo_texts(p))
    if ratings is not None:
        data.ratings = _table(ratings) if ratings else demo_ratings(data.texts, rng)
    if judgements is not None:
        data.judgements = _table(judgements) if judgements else demo_judgements(p, data.texts)
    if metrics is not None:
        data.metrics = _table(metrics) if metrics else measure(p, data.texts, source="simulated").table
    return data


def _table(path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"session": str, "timestamp": str})
