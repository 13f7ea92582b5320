"""Stories: what a notebook starts from, read from the chain's files or, on its own, simulated in process."""

import pandas as pd

from lib.studies.stories import Stories, read_texts
from lib.studies.stories_measures import demo_ratings, measure
from lib.studies.stories_stages import demo_judgements, demo_texts


def load(
    p,
    *,
    texts: str = "",
    ratings: str | None = None,
    judgements: str | None = None,
    metrics: str | None = None,
    rng=None,
) -> Stories:
    """The tables a notebook asks for: a path is read, "" is the demo's table made in process, None is left
    out.

    `p` holds the params the demo needs (those of texts: authors, n_human, n_per_author, words, temperature,
    max_tokens, translate, translator, seed; of judgements and metrics: theirs). `rng`: the generator of the
    demo's ratings.
    """
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
