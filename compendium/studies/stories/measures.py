"""Stories: ratings by people and metrics of texts, whatever the source."""

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.asking.study import simulator
from compendium.frame.files import read_utf8, sha256, write_csv_atomic
from compendium.frame.folding import Folded
from compendium.frame.params import check_source
from compendium.frame.paths import DATA, ROOT, from_root, shown
from compendium.studies.stories import data as stories
from compendium.studies.stories.corpus import build_folder
from compendium.studies.stories.data import StoriesError
from compendium.studies.stories.stages import Stage
from lib.text.creativity_index import DEPTH, LocalCorpus, dj_search, split
from lib.text.ngram_model import NgramModel

CACHE = "build/cache/stories"
EMBEDDINGS = from_root(CACHE) / "embeddings.sqlite"  # of every profile: vectors are kept by content
INFINI_GRAM = "infini-gram"  # as a value of params/stories.yaml's `corpus`


def collect(
    texts: pd.DataFrame, rng: np.random.Generator, *, source: str, sheet: str = "", mirror: str = ""
) -> Stage:
    """Ratings by people (columns compendium.studies.stories.data.RATINGS): the archive's, the simulated people's, or
    those of a sheet that the form exported (`sheet`, .xlsx or .csv)."""
    if check_source(source) == "archive":
        return Stage(stories.load_archive(mirror).ratings)
    if sheet:
        return Stage(stories.ratings_frame(_sheet(from_root(sheet)), texts))
    if source == "endpoint":
        raise Folded(
            "no ratings yet: collect them with `python -m compendium.studies.stories.survey serve "
            "--texts …/stories/texts.jsonl`, "
            "export the sheet, and name it in params/live.yaml (stories: {ratings_sheet: …})"
        )
    return Stage(demo_ratings(texts, rng))


def _sheet(path) -> pd.DataFrame:
    """The rows of a sheet (.csv or .xlsx). Raises StoriesError naming the file where it cannot be read as one."""
    try:
        if path.suffix == ".csv":
            sheet = pd.read_csv(io.StringIO(read_utf8(path, StoriesError, "a sheet of ratings")))
        else:
            sheet = pd.read_excel(path)
    except StoriesError:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StoriesError(
            f"{shown(path)}: cannot be read as a sheet of ratings ({type(error).__name__}); it should be the "
            ".xlsx or .csv that `python -m compendium.studies.stories.survey export` writes"
        ) from None
    return sheet.dropna(how="all")


def demo_ratings(texts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The simulated people's ratings, through the sheet that the form would export."""
    answers = simulator("stories").demo_ratings
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

    `p` holds the metrics' settings. What was computed is kept below `cache` by the content of texts, settings,
    reference corpus and code.
    """
    if check_source(source) == "archive":
        made = stories.load_archive(mirror).metrics
        return Stage(made[made["language"] == "en"].drop(columns="language").reset_index(drop=True))
    own = stories.english(texts)
    settings = {
        name: getattr(p, name)
        for name in (
            "lengths",
            "corpus",
            "corpus_texts",
            "templates",
            "vocabulary",
            "perplexity_model",
            "tagger",
        )
    }
    content = [settings, list(own["text"]), _behind(p)]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    path = Path(from_root(cache)) / f"metrics-{digest[:24]}.csv"
    if not path.is_file():
        write_csv_atomic(path, _measured(p, own, path.parent))
    return Stage(pd.read_csv(path))


def reference(p):
    """The Creativity Index's reference corpus: a folder of texts, infini-gram's interface, or the demo's own
    corpus.
    """
    if p.corpus == INFINI_GRAM:
        from lib.text.infinigram import InfiniGramAPI

        return SearchedCorpus(InfiniGramAPI().contains, p.lengths[0])
    depth = max(DEPTH, p.lengths[1])
    if p.corpus:
        return build_folder(from_root(p.corpus), depth=depth)
    return LocalCorpus.build(demo_corpus(p.corpus_texts), depth=depth)


@dataclass(frozen=True)
class SearchedCorpus:
    """A corpus that can only say whether a phrase occurs, searched by DJ Search."""

    contains: object
    shortest: int

    def matches(self, words, longest: int) -> np.ndarray:
        """matches[start], capped at `longest`; those shorter than `shortest` are 0."""
        return dj_search(words, self.contains, self.shortest, longest)[0]


def demo_corpus(count: int) -> list[str]:
    """What the simulated web holds: stories by people and models that are not in the study."""
    web = simulator("stories")
    authors = [web.PEOPLE, *web.AUTHORS]
    return [
        web.write_story(authors[number % len(authors)], web.writing_prompt(400 + number), -1 - number)
        for number in range(count)
    ]


def _behind(p) -> list[str]:
    """sha256 of every file that the metrics depend on beside the texts: the code, and the reference corpus."""
    files = [ROOT / "lib" / "embedding.py", Path(__file__), Path(__file__).with_name("metrics.py")]
    files += sorted((ROOT / "lib" / "text").glob("*.py"))
    if not p.corpus or not p.perplexity_model:  # the demo's corpus is at work
        files += [Path(__file__).with_name("simulated.py"), DATA / "simulated" / "stories.yaml"]
    if p.corpus and p.corpus != INFINI_GRAM:
        files += sorted(from_root(p.corpus).rglob("*.txt"))
    return [sha256(path) for path in files]


def _measured(p, own, folder) -> pd.DataFrame:
    from compendium.studies.stories.metrics import compute_metrics  # torch and spaCy load only here
    from lib.text.perplexity import CausalModel

    corpus = reference(p)
    if p.perplexity_model:
        scorer = CausalModel(p.perplexity_model)
    else:
        scorer = _SplitScorer(NgramModel([split(text) for text in demo_corpus(p.corpus_texts)]), split)
    frame = compute_metrics(
        list(own["text"]),
        corpus,
        scorer=scorer,
        shortest=p.lengths[0],
        longest=p.lengths[1],
        vocabulary=p.vocabulary,
        tagger=p.tagger,
        length=p.templates["length"],
        top_n=p.templates["top"],
        tau=p.templates["tau"],
        cache=folder / EMBEDDINGS.name,
    )
    return frame.assign(story=list(own.index))[["story", *frame.columns]]


@dataclass(frozen=True)
class _SplitScorer:
    """A model of words as something that scores texts."""

    model: object
    split: object

    def log_likelihoods(self, text):
        return self.model.log_likelihoods(self.split(text))
