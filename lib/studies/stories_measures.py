"""Stories: ratings by people and metrics of texts, whatever the source."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.files import write_csv_atomic
from lib.paths import from_root
from lib.sources import check_source
from lib.studies import stories
from lib.studies.stories import StoriesError
from lib.studies.stories_stages import Stage
from lib.textmetrics.creativity_index import LocalCorpus, dj_search, split
from lib.textmetrics.ngram_model import NgramModel

CACHE = "build/cache/stories"


def collect(
    texts: pd.DataFrame, rng: np.random.Generator, *, source: str, sheet: str = "", mirror: str = ""
) -> Stage:
    """Ratings by people (columns lib.studies.stories.RATINGS): the archive's, the simulated people's, or
    those of a sheet that the form exported (`sheet`, .xlsx or .csv)."""
    if check_source(source) == "archive":
        return Stage(stories.load_archive(mirror).ratings)
    if sheet:
        read = pd.read_csv if str(sheet).endswith(".csv") else pd.read_excel
        return Stage(stories.ratings_frame(read(sheet), texts))
    if source == "endpoint":
        raise StoriesError(
            "no ratings yet: collect them with `python -m lib.survey serve --texts …/stories/texts.jsonl`, "
            "export the sheet, and name it in params/live.yaml (stories: {ratings_sheet: …})"
        )
    return Stage(demo_ratings(texts, rng))


def demo_ratings(texts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The simulated people's ratings, through the sheet that the form would export."""
    from lib.simulate.stories import demo_ratings as answers

    by_story = stories.english(texts)
    rows = [
        {
            "timestamp": f"2026-02-01 00:00:{place % 60:02d}",
            "session_id": f"rater-{row['rater'] + 1:03d}",
            "native_languge": row["profile"]["native_language"],
            **{name: row["profile"][name] for name in ("gender", "age", "education", "experience")},
            "text_id": 2 * row["story"] - (row["language"] == "en"),
            "txt_language": row["language"],
            "author": by_story.at[row["story"], "author"],
            "text_evaluated": "",
            **row["scores"],
        }
        for place, row in enumerate(answers(dict(by_story["text"]), rng))
    ]
    return stories.ratings_frame(pd.DataFrame(rows, columns=stories.SHEET), texts)


def measure(p, texts: pd.DataFrame, *, source: str, mirror: str = "", cache: str = CACHE) -> Stage:
    """The seven metrics of every English story, columns story and METRICS: computed, or the archive's.

    `p` holds the metrics' settings. What was computed is kept below `cache` by the content of texts and
    settings.
    """
    if check_source(source) == "archive":
        made = stories.load_archive(mirror).metrics
        return Stage(made[made["language"] == "en"].drop(columns="language").reset_index(drop=True))
    own = stories.english(texts)
    settings = {
        name: getattr(p, name)
        for name in (
            "shortest",
            "longest",
            "corpus",
            "corpus_texts",
            "template_length",
            "top_templates",
            "tau",
            "vocabulary",
            "perplexity_model",
            "tagger",
        )
    }
    digest = hashlib.sha256(json.dumps([settings, list(own["text"])], sort_keys=True).encode()).hexdigest()
    path = Path(from_root(cache)) / f"metrics-{digest[:24]}.csv"
    if not path.is_file():
        write_csv_atomic(path, _measured(p, own, path.parent))
    return Stage(pd.read_csv(path))


def reference(p):
    """The Creativity Index's reference corpus: a folder of texts, infini-gram's interface, or the demo's own
    corpus.
    """
    if p.corpus == "infini-gram":
        from lib.textmetrics.infinigram import InfiniGramAPI

        return SearchedCorpus(InfiniGramAPI().contains, p.shortest, p.longest)
    return (
        LocalCorpus.build_folder(from_root(p.corpus))
        if p.corpus
        else LocalCorpus.build(demo_corpus(p.corpus_texts))
    )


@dataclass(frozen=True)
class SearchedCorpus:
    """A corpus that can only say whether a phrase occurs, searched by DJ Search."""

    contains: object
    shortest: int
    longest: int

    def matches(self, words) -> np.ndarray:
        """matches[start], capped at `longest`."""
        return dj_search(words, self.contains, self.shortest, self.longest)[0]


def demo_corpus(count: int) -> list[str]:
    """What the simulated web holds: stories by people and models that are not in the study."""
    from lib.simulate.stories import AUTHORS, PEOPLE, write_story, writing_prompt

    authors = [PEOPLE, *AUTHORS]
    return [
        write_story(authors[number % len(authors)], writing_prompt(400 + number), -1 - number)
        for number in range(count)
    ]


def _measured(p, own, folder) -> pd.DataFrame:
    from lib.studies.stories_metrics import compute_metrics  # torch and spaCy load only here
    from lib.textmetrics.perplexity import CausalModel

    corpus = reference(p)
    if p.perplexity_model:
        scorer = CausalModel(p.perplexity_model)
    else:
        scorer = _SplitScorer(NgramModel([split(text) for text in demo_corpus(p.corpus_texts)]), split)
    frame = compute_metrics(
        list(own["text"]),
        corpus,
        scorer=scorer,
        vocabulary=p.vocabulary,
        tagger=p.tagger,
        length=p.template_length,
        top_n=p.top_templates,
        tau=p.tau,
        cache=folder / "embeddings.sqlite",
    )
    return frame.assign(story=list(own.index))[["story", *frame.columns]]


@dataclass(frozen=True)
class _SplitScorer:
    """A model of words as something that scores texts."""

    model: object
    split: object

    def log_likelihoods(self, text):
        return self.model.log_likelihoods(self.split(text))
