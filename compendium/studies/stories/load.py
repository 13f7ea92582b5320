"""Stories: the tables that a notebook starts from, of the chain or one's own."""

from compendium.frame.files import read_csv
from compendium.studies.stories.data import JUDGEMENTS, METRICS, RATINGS, Stories, StoriesError, read_texts


def load(texts, *, ratings=None, judgements=None, metrics=None) -> Stories:
    """The tables in these files; None: left out.

    Raises StoriesError naming a file that cannot be read or lacks a column, and as `read_texts`.
    """
    data = Stories(read_texts(texts))
    if ratings is not None:
        kinds = {"session": str, "timestamp": str}
        data.ratings = read_csv(ratings, RATINGS, StoriesError, dtype=kinds)
    if judgements is not None:
        data.judgements = read_csv(judgements, JUDGEMENTS, StoriesError)
    if metrics is not None:
        data.metrics = read_csv(metrics, ["story", *METRICS], StoriesError)
    return data
