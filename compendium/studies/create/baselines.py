"""CREATE, appendix K: the replies to the three human creativity tests, scored."""

import numpy as np
import pandas as pd

from compendium.studies.create.divergent import aut_originality, dat_originality, rat_correct, read_list
from compendium.studies.create.scores import TextVectors


def score(replies: pd.DataFrame, model: str, cache=None) -> pd.DataFrame:
    """`replies` (columns source, test, item, sample, reply, answer) with the column `score`: 1 or 0 for RAT,
    mean cosine distance for AUT (object to uses) and DAT (between words); NaN where a reply holds too few
    entries.

    model, cache : of the embeddings, as `lib.embedding.embed`.
    """
    lists = replies["reply"].map(read_list)
    listed = replies["test"].isin(["aut", "dat"])
    texts = {entry for entries in lists[listed] for entry in entries} | set(
        replies.loc[replies["test"] == "aut", "item"]
    )
    vectors = TextVectors.of(texts, model, cache)
    scores = []
    for test, item, reply, answer, entries in zip(
        replies["test"], replies["item"], replies["reply"], replies["answer"], lists
    ):
        if test == "rat":
            scores.append(float(rat_correct(reply, answer)))
        elif not entries:
            scores.append(np.nan)
        elif test == "aut":
            scores.append(aut_originality(vectors.rows([item])[0], vectors.rows(entries)))
        else:
            scores.append(dat_originality(vectors.rows(entries)))
    return replies.assign(score=scores)
