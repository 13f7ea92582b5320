"""AlienBench: generations and judge labels, loaded by meaning, and the scores that follow from them.

Labels are `values[generation, judge, feature]`, 1 = departs from the Earth-typical default, 0 = does not,
NaN = missing. The score of a generation is the mean over judges of the sum over features (paper, section 3).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.frame.archive import Archive, ArchiveError
from compendium.frame.files import read_csv, read_jsonl
from compendium.frame.folding import Folded
from compendium.frame.paths import from_root, shown

HUMAN = "human"
HUMAN_FOLDER = "human__prolific-baseline"
TRUTHS = {1: 1.0, 0: 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "yes": 1.0, "no": 0.0}  # True is 1
GENERATION = ["generation_id", "model", "condition", "sample_index", "completion_tokens", "words"]
KEYS = ["generation_id", "model", "condition", "sample_index", "judge"]


@dataclass(frozen=True)
class Labels:
    """One study's labels.

    generations : DataFrame, one row a generation (columns `GENERATION`), in the order of `values`.
    values : float array [generation, judge, feature], NaN where missing.
    judges, features : their ids, in the order of the axes.
    """

    generations: pd.DataFrame
    values: np.ndarray
    judges: list
    features: list

    def where(self, mask) -> "Labels":
        """The generations for which `mask` (boolean [generation]) holds."""
        mask = np.asarray(mask)
        return Labels(
            self.generations[mask].reset_index(drop=True), self.values[mask], self.judges, self.features
        )

    def of(self, models=None, conditions=None) -> "Labels":
        """The generations of some models under some conditions (None: all)."""
        mask = np.ones(len(self.generations), dtype=bool)
        for name, wanted in (("model", models), ("condition", conditions)):
            if wanted is not None:
                mask &= self.generations[name].isin(list(wanted)).to_numpy()
        return self.where(mask)

    def totals(self) -> np.ndarray:
        """Ward Departure Score by judge, [generation, judge], 0-10; missing where any of a judge's labels is."""
        return self.values.sum(axis=2)

    def scores(self) -> np.ndarray:
        """Ward Departure Score of each generation, averaged over the judges that answered, [generation]."""
        totals = self.totals()
        answered = np.isfinite(totals).sum(axis=1)
        return np.where(answered > 0, np.nansum(totals, axis=1) / np.maximum(answered, 1), np.nan)

    def by(self, column: str, wanted) -> dict:
        """The scores of each group: {model or condition: scores[generation]}."""
        scores, groups = self.scores(), self.generations[column].to_numpy()
        return {name: scores[groups == name] for name in wanted}

    def padded(self, models, values) -> np.ndarray:
        """values[generation] by model: [model, generation], filled up with NaN where a model has fewer."""
        groups = [values[(self.generations["model"] == model).to_numpy()] for model in models]
        width = max(map(len, groups), default=0)
        return np.stack([np.pad(group, (0, width - len(group)), constant_values=np.nan) for group in groups])

    def answered(self, subjects: dict) -> dict:
        """The entries of `subjects` {model: …} with at least one judged description; a warning names the rest.

        Raises ValueError where fewer than two are left: there is nothing to compare.
        """
        heard = set(self.generations["model"][np.isfinite(self.scores())])
        silent = [model for model in subjects if model not in heard]
        if len(subjects) - len(silent) < 2:
            raise ValueError(
                f"at least two models need a description that a judge labelled; without one: "
                f"{', '.join(silent) or 'none'}"
            )
        if silent:
            print(f"WARNING: no usable reply of or about {', '.join(silent)}; left out below")
        return {model: entry for model, entry in subjects.items() if model in heard}

    def rates(self, models) -> pd.DataFrame:
        """Departure rates (0-1), models × features, averaged over generations after averaging judges.

        A judge counts for a generation if all its labels are there, as in `scores`: a model's rates sum to its
        score.
        """
        whole = np.isfinite(self.totals())[:, :, np.newaxis]
        judges = whole.sum(axis=1)
        panel = np.where(whole, self.values, 0).sum(axis=1) / np.where(judges > 0, judges, np.nan)
        groups, heard = self.generations["model"].to_numpy(), judges[:, 0] > 0
        return pd.DataFrame(
            [
                panel[(groups == name) & heard].mean(axis=0)
                if (groups[heard] == name).any()
                else np.full(len(self.features), np.nan)
                for name in models
            ],
            index=list(models),
            columns=self.features,
        )

    def means(self, models, columns, by="condition") -> pd.DataFrame:
        """Mean score, models × conditions (or another column of `generations`)."""
        frame = self.generations[["model", by]].assign(score=self.scores())
        wide = frame.pivot_table(index="model", columns=by, values="score", aggfunc="mean")
        return wide.reindex(index=list(models), columns=list(columns))


def people(everything: Labels) -> Labels:
    """The descriptions that people wrote. Raises Folded where there are none."""
    written = everything.of([HUMAN], ["baseline"])
    if not len(written.generations):
        raise Folded("no descriptions by people (model `human`, condition `baseline`) to compare with")
    return written


def load(labels, generations, *, judges, features) -> Labels:
    """The tables that 01_generate and 02_judge made, or files of one's own like them.

    Raises ValueError naming the file where it cannot be read, where a table lacks a column or a judge, or holds a
    label that is no 0 or 1.
    """
    made = read_csv(generations, GENERATION[:4], ValueError)
    given = read_csv(labels, [*KEYS, *features], ValueError)
    return from_tables(
        made, given, judges=list(judges), features=list(features), source=shown(from_root(labels))
    )


def from_tables(
    generations: pd.DataFrame, labels: pd.DataFrame, *, judges, features, source="labels"
) -> Labels:
    """Arrange label rows (columns `KEYS` and the features) as `Labels`, one row a generation, order as given.

    Raises ValueError as `load`, and for a generation, or a generation and judge, with two rows.
    """
    for frame, needed in ((generations, GENERATION[:4]), (labels, [*KEYS, *features])):
        missing = [name for name in needed if name not in frame.columns]
        if missing:
            raise ValueError(f"{source}: lacks the column {missing[0]!r}")
    for frame, keys in ((generations, ["generation_id"]), (labels, ["generation_id", "judge"])):
        twice = frame[frame.duplicated(keys)]
        if len(twice):
            raise ValueError(f"{source}: two rows of {', '.join(str(twice.iloc[0][key]) for key in keys)}")
    absent = [judge for judge in judges if judge not in set(labels["judge"])]
    if absent:
        there = ", ".join(sorted(set(labels["judge"])))
        raise ValueError(f"{source}: no rows of judge {absent[0]!r}; it has {there}")
    given = labels[list(features)].to_numpy(dtype=float)
    wrong = ~(np.isnan(given) | (given == 0) | (given == 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{source}, line {row + 2}: {features[column]} is {given[row, column]:g}, should be 0, 1 or empty"
        )
    place = {key: i for i, key in enumerate(generations["generation_id"])}
    rows = labels["generation_id"].map(place)
    known = rows.notna() & labels["judge"].isin(list(judges))
    values = np.full((len(generations), len(judges), len(features)), np.nan)
    column_of = {judge: i for i, judge in enumerate(judges)}
    values[rows[known].astype(int), labels["judge"][known].map(column_of)] = given[known.to_numpy()]
    return Labels(generations.reset_index(drop=True), values, list(judges), list(features))


def load_archive(archive: Archive, *, subjects, judges, features, samples: dict):
    """The released archive as (generations, labels, left_out), read by meaning.

    Parameters
    ----------
    subjects, judges, features : ids as params/alienbench.yaml lists them.
    samples : {condition: how many generations of each model the study uses}; a condition that is not
        listed is left out. Generations count in the order of `sample_index`.

    left_out has one row a reason: what, reason, count, example. Raises ArchiveError for a line that is no
    JSON object, a model without generations, or a judge without rows.
    """
    left = _LeftOut()
    chosen = [
        _generations(archive, model, condition, n, left)
        for model in subjects
        for condition, n in samples.items()
    ]
    stray = {path.split("/")[1] for path in archive.files("generations/")} - {
        _folder(model) for model in subjects
    }
    for folder in sorted(stray):
        files = archive.files(f"generations/{folder}/")
        rows = sum(len(read_jsonl(archive.path(path), ArchiveError)) for path in files)
        if rows:
            left.add("generation", "its model is not in the roster", f"generations/{folder}", rows)
        left.add("model folder", "its model is not in the roster", f"generations/{folder}")
    generations = pd.concat(chosen, ignore_index=True)
    people, labels = {}, []
    for judge in judges:
        found = 0
        for model in (*subjects, HUMAN):
            for condition in samples if model != HUMAN else ("baseline",):
                rows = _judge_rows(archive, judge, model, condition, features, left)
                found += len(rows)
                labels += rows
                if model == HUMAN:
                    people.update(dict.fromkeys(row["generation_id"] for row in rows))
        if not found:
            raise ArchiveError(
                f"judge {judge!r}: no rows in the archive (extractions/{_folder(judge)}/); "
                "its name in params/alienbench.yaml should be one the archive has"
            )
    humans = pd.DataFrame({"generation_id": sorted(people), "model": HUMAN, "condition": "baseline"})
    humans["sample_index"] = range(len(humans))
    generations = pd.concat([generations, humans], ignore_index=True).reindex(columns=GENERATION)
    return generations, _one_row_each(pd.DataFrame(labels), generations, features, left), left.frame()


def archive_texts(archive: Archive, generations: pd.DataFrame) -> dict:
    """{generation id: description} of the archive's models; the people's texts are not released."""
    texts = {}
    models = generations.loc[generations["model"] != HUMAN, ["model", "condition"]]
    for model, condition in models.drop_duplicates().to_numpy():
        rows = read_jsonl(
            archive.path(f"generations/{_folder(model)}/{condition}/responses.jsonl"), ArchiveError
        )
        texts.update((row["id"], row["response"]) for row in rows)
    return {key: texts[key] for key in generations["generation_id"] if key in texts}


def truth_of(value) -> float:
    """A departure label by meaning: booleans, 0/1, "true", "False", "yes"; NaN for anything else."""
    if isinstance(value, str):
        value = value.strip().lower()
    return TRUTHS.get(value, np.nan) if isinstance(value, (bool, int, float, str)) else np.nan


class _LeftOut:
    """Counts of what loading left out, by kind and reason, with one example each."""

    def __init__(self):
        self.counts, self.examples = Counter(), {}

    def add(self, what, reason, example, count=1):
        self.counts[what, reason] += count
        self.examples.setdefault((what, reason), example)

    def frame(self) -> pd.DataFrame:
        rows = [
            (what, reason, count, self.examples[what, reason])
            for (what, reason), count in sorted(self.counts.items())
        ]
        return pd.DataFrame(rows, columns=["what", "reason", "count", "example"])


def _generations(archive, model, condition, n, left) -> pd.DataFrame:
    path = f"generations/{_folder(model)}/{condition}/responses.jsonl"
    if path not in archive.files(path):
        raise ArchiveError(
            f"{model}: the archive pins no {path}; the roster in params should name models it has"
        )
    rows = sorted(read_jsonl(archive.path(path), ArchiveError), key=lambda row: row["sample_index"])
    taken, seen = [], set()
    for row in rows:
        if row["sample_index"] in seen:
            left.add("generation", "its sample index is taken", path)
        elif not str(row.get("response") or "").strip():
            left.add("generation", "its text is empty", path)
        elif len(taken) == n:
            left.add("generation", "beyond the number the study uses", path)
        else:
            seen.add(row["sample_index"])
            taken.append(row)
    if len(taken) < n:
        left.add("generation", "fewer than the study uses (missing)", path, n - len(taken))
    return pd.DataFrame(
        {
            "generation_id": [row["id"] for row in taken],
            "model": model,
            "condition": condition,
            "sample_index": [row["sample_index"] for row in taken],
            "completion_tokens": [row.get("completion_tokens") for row in taken],
            "words": [len(row["response"].split()) for row in taken],
        }
    )


def _judge_rows(archive, judge, model, condition, features, left) -> list[dict]:
    folder = HUMAN_FOLDER if model == HUMAN else _folder(model)
    path = f"extractions/{_folder(judge)}/{folder}/{condition}/features.jsonl"
    if path not in archive.files(path):
        return []
    rows = []
    for row in read_jsonl(archive.path(path), ArchiveError):
        answers = row.get("features")
        if row.get("parse_error") or not isinstance(answers, dict):
            left.add("judge reply", "it holds no labels (void)", path)
            answers = {}
        labels = {}
        for feature in features:
            answer = answers.get(feature)
            raw = answer.get("is_departure") if isinstance(answer, dict) else answer
            labels[feature] = truth_of(raw)
            if answers and np.isnan(labels[feature]):
                left.add("label", "missing or neither true nor false", f"{path}: {feature}")
            elif isinstance(raw, str):
                left.add("label", "a word read as its meaning (kept)", f"{path}: {feature}")
        rows.append(
            {
                "generation_id": row["generation_id"],
                "model": model,
                "condition": condition,
                "judge": judge,
                "file": path,
                **labels,
            }
        )
    return rows


def _one_row_each(labels, generations, features, left) -> pd.DataFrame:
    """One row a (generation, judge), in the order of generations; what goes is counted."""
    index = generations.set_index("generation_id")["sample_index"]
    unknown = ~labels["generation_id"].isin(index.index)
    for example in labels["file"][unknown]:
        left.add("judge reply", "its generation is not among those the study uses", example)
    labels = labels[~unknown]
    again = labels.duplicated(["generation_id", "judge"])
    for example in labels["file"][again]:
        left.add("judge reply", "a second reply of the judge to one generation (the first is kept)", example)
    labels = labels[~again].assign(sample_index=lambda frame: frame["generation_id"].map(index))
    absent = len(generations) * labels["judge"].nunique() - len(labels)
    if absent:
        left.add("judge reply", "missing: a generation without a reply of this judge", "", absent)
    order = {key: i for i, key in enumerate(generations["generation_id"])}
    labels = labels.assign(order=labels["generation_id"].map(order)).sort_values(
        ["order", "judge"], kind="stable"
    )
    return labels[[*KEYS, *features]].reset_index(drop=True)


def _folder(model: str) -> str:
    return model.replace("/", "__")
