"""Stories: the archive read by meaning, and the study's conventions.

The unit of every test is the story: a text in English and its Italian twin (dataset ids 2k + 1 and 2k + 2). A
story's human score on a dimension is the mean over its ratings, whichever language was read; metrics and
judge scores are those of the English text. Source: the paper's Methods; data/published/stories.csv for the
numbers.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.frame.archive import Archive
from compendium.frame.files import read_jsonl, write_jsonl

HUMAN = "human"
DIMENSIONS = (
    "authenticity",
    "effectiveness",
    "elaboration",
    "fluency",
    "flexibility",
    "novelty",
    "originality",
    "surprise",
    "usefulness",
    "value",
    "creativity",
)
METRICS = (
    "creativity_index",
    "perplexity",
    "cr_pos",
    "template_rate",
    "template_per_token",
    "ead",
    "sbert_diversity",
)
LANGUAGES = {"en": "english", "it": "italian"}
LOWEST, HIGHEST = 1, 5
TEXTS = ["story", "language", "author", "prompt", "text"]
ARCHIVED = ("id", "lang", "author", "prompt", "text")  # fields of a row of the archive's dataset
PROFILE = ["native_language", "gender", "age", "education", "experience"]
RATINGS = ["rating", "timestamp", "session", *PROFILE, "story", "language", "author", *DIMENSIONS]
JUDGEMENTS = ["story", "language", "repetition", *DIMENSIONS]
# The sheet's columns as the survey of the study wrote them ("native_languge" is theirs).
SHEET = [
    "timestamp",
    "session_id",
    "native_languge",
    "gender",
    "age",
    "education",
    "experience",
    "text_id",
    "txt_language",
    "author",
    "text_evaluated",
    *DIMENSIONS,
]
AGES = {"18–24": (18, 24), "25–34": (25, 34), "35–44": (35, 44), "45+": (45, np.inf)}


class StoriesError(ValueError):
    """Data of the study that cannot be used; the message names the story, rating or field and what would be
    right.
    """


@dataclass
class Stories:
    """The study's data: `texts` (columns TEXTS), `ratings` (RATINGS, in the sheet's order), `metrics` (story,
    language, METRICS) and `judgements` (JUDGEMENTS). `moved` counts the ratings whose story text has changed
    since.
    """

    texts: pd.DataFrame
    ratings: pd.DataFrame | None = None
    metrics: pd.DataFrame | None = None
    judgements: pd.DataFrame | None = None
    moved: int = 0

    def human(self) -> pd.Series:
        """human[story]: whether a person wrote it (booleans, index story)."""
        return english(self.texts)["author"] == HUMAN

    def human_scores(self) -> pd.DataFrame:
        """scores[story, dimension] by people: means over ratings; NaN for a story nobody rated."""
        return story_scores(self.ratings, self.human().index)

    def judge_scores(self) -> pd.DataFrame:
        """scores[story, dimension] by the judge, of the English text: means over repetitions; NaN where all
        are void.
        """
        own = self.judgements[self.judgements["language"] == "en"]
        return story_scores(own, self.human().index)

    def metric_values(self) -> pd.DataFrame:
        """values[story, metric] of the English texts."""
        own = self.metrics
        if "language" in own.columns:
            own = own[own["language"] == "en"]
        return own.set_index("story")[list(METRICS)].reindex(self.human().index)


def load_archive(mirror: str = "") -> Stories:
    """The authors' archive as four tables. Raises ArchiveError for a missing file, StoriesError for a
    malformed one.
    """
    archive = Archive("stories", mirror or None)
    rows = json.loads(archive.path("dataset/dataset_full_200.json").read_text(encoding="utf-8"))
    measured = json.loads(archive.path("results/creativity_metrics.json").read_text(encoding="utf-8"))
    sheet = pd.read_excel(archive.path("results/texts_evaluation_sheet.xlsx")).dropna(how="all")
    texts = texts_frame(rows)
    ratings = ratings_frame(sheet, texts)
    place = {(row["story"], row["language"]): row["text"] for row in texts.to_dict("records")}
    read = [
        place[story, language] for story, language in zip(ratings["story"], ratings["language"], strict=True)
    ]
    moved = int((sheet["text_evaluated"].astype(str).to_numpy() != np.array(read, dtype=object)).sum())
    return Stories(texts, ratings, *measured_frames(measured, texts), moved)


def texts_frame(rows) -> pd.DataFrame:
    """The dataset's rows (id, prompt, lang, text, author) as texts, one row a story and language, in their
    order.

    Raises StoriesError for a row that lacks a field, an empty text, an unknown language, a text that comes twice,
    or twins that disagree on their author.
    """
    records = []
    for line, row in enumerate(rows, 1):
        lacks = [name for name in ARCHIVED if not isinstance(row, dict) or name not in row]
        if lacks:
            raise StoriesError(
                f"row {line} of the dataset lacks {lacks[0]!r}; it needs {', '.join(ARCHIVED)}"
            )
        story = (_text_id(row["id"], f"row {line} of the dataset, id") + 1) // 2
        records.append((story, row["lang"], row["author"], row["prompt"], row["text"]))
    return check_texts(pd.DataFrame(records, columns=TEXTS))


def check_texts(texts: pd.DataFrame, authors=None) -> pd.DataFrame:
    """`texts` itself, once every row can be used.

    `authors`: the known ones, or None for any. Raises StoriesError naming the first story that is wrong, and
    why.
    """
    for row in texts.itertuples():
        if not isinstance(row.text, str) or not row.text.strip():
            raise StoriesError(
                f"story {row.story} ({row.language}): the text is empty; a story needs at least one word"
            )
        if not isinstance(row.language, str) or not row.language:
            raise StoriesError(
                f"story {row.story}: its language is missing; it should be one of {', '.join(LANGUAGES)}"
            )
        if row.language not in LANGUAGES:
            raise StoriesError(
                f"story {row.story}: language {row.language!r} is not one of {', '.join(LANGUAGES)}"
            )
        if authors is not None and row.author not in authors:
            raise StoriesError(
                f"story {row.story}: unknown author {row.author!r}; known: {', '.join(authors)}"
            )
    repeated = texts.duplicated(["story", "language"])
    if repeated.any():
        row = texts[repeated].iloc[0]
        raise StoriesError(f"story {row['story']} comes twice in language {row['language']!r}")
    again = texts.duplicated(["language", "text"])
    if again.any():
        row = texts[again].iloc[0]
        first = texts[(texts["text"] == row["text"]) & (texts["language"] == row["language"])].iloc[0]
        raise StoriesError(
            f"stories {first['story']} and {row['story']} have the same text ({row['language']}); each story "
            "should be there once"
        )
    split = texts.groupby("story")["author"].nunique() > 1
    if split.any():
        raise StoriesError(f"story {split[split].index[0]}: its languages name different authors")
    return texts


def ratings_frame(sheet: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """A sheet of ratings (columns SHEET; order and blanks in names do not matter) as ratings (columns
    RATINGS).

    The language read is that of the text's id; the sheet's own column says "it" for every row of the archive.
    Raises StoriesError for a sheet without ratings, a missing column or session, a rating that is not a whole
    number from 1 to 5, an unknown text, or an author who is not the text's.
    """
    names = {str(name).strip().lower(): name for name in sheet.columns}
    names.setdefault("native_languge", names.get("native_language"))
    missing = [
        name for name in SHEET if name not in ("text_evaluated", "txt_language") and names.get(name) is None
    ]
    if missing:
        raise StoriesError(
            f"the sheet of ratings lacks the column {missing[0]!r}; it needs {', '.join(SHEET)}"
        )
    sheet = sheet.rename(columns={names[name]: name for name in SHEET if names.get(name) is not None})
    sheet = sheet.reset_index(drop=True)
    if sheet.empty:
        raise StoriesError("the sheet of ratings holds no ratings")
    _check_scores(sheet)
    for line, session in enumerate(sheet["session_id"], 1):
        if pd.isna(session) or not str(session).strip():
            raise StoriesError(
                f"rating {line}: its session_id is missing; it says which ratings are one person's"
            )
    known = texts.set_index(["story", "language"])["author"]
    ids = np.array(
        [_text_id(value, f"rating {line}, text_id") for line, value in enumerate(sheet["text_id"], 1)]
    )
    story = (ids + 1) // 2
    language = np.where(ids % 2 == 1, "en", "it")
    for line, key in enumerate(zip(story, language, strict=True)):
        if key not in known.index:
            raise StoriesError(f"rating {line + 1}: no story has the text id {sheet['text_id'][line]}")
        if known[key] != sheet["author"][line]:
            raise StoriesError(
                f"rating {line + 1}: the sheet says author {sheet['author'][line]!r}, story {key[0]} is by "
                f"{known[key]!r}"
            )
    frame = pd.DataFrame(
        {
            "rating": np.arange(1, len(sheet) + 1),
            "timestamp": sheet["timestamp"].astype(str),
            "session": sheet["session_id"].astype(str),
            "native_language": sheet["native_languge"],
            **{name: sheet[name] for name in PROFILE[1:]},
            "story": story,
            "language": language,
            "author": sheet["author"],
            **{name: sheet[name].astype(int) for name in DIMENSIONS},
        }
    )
    return frame[RATINGS]


def measured_frames(measured: dict, texts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The archive's metrics and judge replies as (metrics, judgements), one row a text, in the texts' order.

    Raises StoriesError for a metric that is missing, has another length or a value that is no number, or judge
    replies that are malformed or out of order.
    """
    count = len(texts)
    for name in METRICS:
        values = measured.get(name, ())
        if len(values) != count:
            raise StoriesError(
                f"creativity_metrics.json: {name!r} has {len(values)} values for {count} texts"
            )
        for place, value in enumerate(values, 1):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise StoriesError(
                    f"creativity_metrics.json: {name!r}, value {place}: {value!r} is not a number"
                )
    keys = texts[["story", "language"]].reset_index(drop=True)
    metrics = pd.concat([keys, pd.DataFrame({name: measured[name] for name in METRICS}, dtype=float)], axis=1)
    replies = measured.get("llm_as_a_judge", ())
    if len(replies) != count * len(DIMENSIONS):
        raise StoriesError(
            f"creativity_metrics.json: {len(replies)} judge replies for {count} texts and "
            f"{len(DIMENSIONS)} dimensions"
        )
    scores = np.full((count, len(DIMENSIONS)), np.nan)
    for place, reply in enumerate(replies):
        row, column = divmod(place, len(DIMENSIONS))
        name = next(iter(reply), None) if isinstance(reply, dict) else reply
        if name != DIMENSIONS[column]:
            raise StoriesError(f"judge reply {place + 1}: {name!r} where {DIMENSIONS[column]!r} should stand")
        said = reply[name]
        scores[row, column] = _score(
            said.get("score") if isinstance(said, dict) else said, f"judge reply {place + 1}"
        )
    judgements = pd.concat(
        [keys.assign(repetition=0), pd.DataFrame(scores, columns=list(DIMENSIONS))], axis=1
    )
    return metrics, judgements


def story_scores(ratings: pd.DataFrame, stories) -> pd.DataFrame:
    """scores[story, dimension]: mean over a story's ratings (columns DIMENSIONS), in the order of `stories`.

    A story that nobody rated is missing (NaN). Also right for judgements: the mean over repetitions.
    """
    return ratings.groupby("story")[list(DIMENSIONS)].mean().reindex(pd.Index(stories, name="story"))


def demographics(ratings: pd.DataFrame) -> pd.DataFrame:
    """Table 2: count and percent of raters, index `category=level`; a rater is a session.

    Raises StoriesError where one session states two different things about itself.
    """
    sessions = ratings.groupby("session")
    for name in PROFILE:
        if (sessions[name].nunique() > 1).any():
            raise StoriesError(f"one session states two values for {name!r}")
    raters = sessions[PROFILE].first()
    rows = {}
    for name in ("gender", "age", "education", "native_language", "experience"):
        levels = _levels(raters[name], name)
        for level in LEVELS[name]:
            rows[f"{name}={level}"] = int((levels == level).sum())
    counts = pd.Series(rows)
    return pd.DataFrame({"count": counts, "percent": 100 * counts / len(raters)})


LEVELS = {
    "gender": ("Male", "Female"),
    "age": tuple(AGES),
    "education": (
        "Less than High School",
        "High School",
        "Bachelor's Degree",
        "Master's Degree",
        "PhD",
        "Other",
    ),
    "native_language": ("Italian", "English", "Other"),
    "experience": ("Never used", "Tried out of curiosity", "Occasionally", "Often", "If not daily, almost"),
}


def write_texts(path, texts: pd.DataFrame) -> Path:
    """Texts as JSON lines (columns TEXTS)."""
    return write_jsonl(path, texts[TEXTS].to_dict("records"))


def read_texts(path) -> pd.DataFrame:
    """Texts as `write_texts` wrote them. Raises StoriesError for a file that is missing, not UTF-8 or holds no
    text, a line that is no text, and as `check_texts`.
    """
    rows = read_jsonl(path, StoriesError, TEXTS, "stories as JSON lines")
    if not rows:
        raise StoriesError(f"{Path(path).name}: holds no texts")
    return check_texts(pd.DataFrame(rows, columns=TEXTS))


def english(texts: pd.DataFrame) -> pd.DataFrame:
    """The English row of each story, indexed by story."""
    return texts[texts["language"] == "en"].set_index("story", drop=False)


def _levels(values, name):
    if name == "age":
        ages = pd.to_numeric(values, errors="coerce")
        found = pd.Series("", index=values.index)
        for level, (low, high) in AGES.items():
            found[(ages >= low) & (ages <= high)] = level
        return found
    return values.where(values.isin(LEVELS[name]), "Other")


def _text_id(value, where) -> int:
    """A text's number, 1 or more. Raises StoriesError naming the place."""
    number = _number(value)
    if not (number >= 1 and number % 1 == 0):
        raise StoriesError(f"{where}: {value!r} is not a whole number from 1 on")
    return int(number)


def _check_scores(sheet):
    for name in DIMENSIONS:
        for line, value in enumerate(sheet[name]):
            _score(value, f"rating {line + 1}, {name}")


def _score(value, where):
    """A whole number from 1 to 5. Raises StoriesError naming the place."""
    number = _number(value)
    if not (LOWEST <= number <= HIGHEST and number % 1 == 0):
        raise StoriesError(f"{where}: {value!r} is not a whole number from {LOWEST} to {HIGHEST}")
    return float(number)


def _number(value) -> float:
    """A number, also one written as text; NaN for anything else."""
    if isinstance(value, bool) or not np.isscalar(value):
        return np.nan
    return pd.to_numeric(value, errors="coerce")
