"""The human-annotation protocol of Lane 3 (section 4 and appendix C of the paper), as a workflow.

Two annotators, from the scenario's text alone, label each feature `must`, `plausible` or `must_not`. Where
they differ a third adjudicates. The adjudicated labels are the reference for the world model (omissions and
unsupported additions) and for a judge that only flags.
"""

import numpy as np
import pandas as pd

from compendium.frame.paths import shown
from lib.agreement import cohen_kappa

LABELS = ("must", "plausible", "must_not")
SHEET = ["case", "text", "feature", "words", "first", "second", "third"]


class AnnotationError(ValueError):
    """Annotations that cannot be used; the message names the row and what would be right."""


def blank_sheet(features: pd.DataFrame) -> pd.DataFrame:
    """The sheet to hand out: columns SHEET, with first, second and third left empty.

    features : columns case, text (what annotators work from, without a location), feature, words (what it says).
    """
    return features[SHEET[:4]].assign(first="", second="", third="")


def read_sheet(path, features: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(annotations, third) of a filled-in sheet, as `adjudicate` takes them.

    features : what was handed out; every feature must be there once. Raises AnnotationError naming file and row.
    """
    where = shown(path)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{where}: not a sheet: {error}") from None
    for column in sorted(set(SHEET) - {"text", "words"} - set(table.columns)):
        raise AnnotationError(f"{where}: lacks the column {column!r}; a sheet has {', '.join(SHEET)}")
    keys, wanted = (pd.MultiIndex.from_frame(rows[["case", "feature"]]) for rows in (table, features))
    for what, odd in (
        ("twice", keys[keys.duplicated()]),
        ("and is not a feature", keys.difference(wanted)),
        ("nowhere", wanted.difference(keys)),
    ):
        if len(odd):
            raise AnnotationError(f"{where}: {', '.join(odd[0])} is listed {what}")
    for column in ("first", "second"):
        for number in (~table[column].isin(LABELS)).to_numpy().nonzero()[0][:1]:
            raise AnnotationError(
                f"{where}, line {number + 2}: {column} is {table[column].iloc[number]!r}, "
                f"should be one of {', '.join(LABELS)}"
            )
    third = table[["case", "feature", "third"]].rename(columns={"third": "label"})
    return table[["case", "feature", "first", "second"]], third


def adjudicate(annotations: pd.DataFrame, third: pd.DataFrame) -> pd.DataFrame:
    """One label a feature.

    annotations : columns case, feature, first, second (labels); third : case, feature, label for at least
    the features on which the two differ. Returns case, feature, label, settled ("agreed" or "adjudicated").
    Raises AnnotationError for an unknown label, or a disagreement that the third did not settle.
    """
    for column in ("first", "second"):
        wrong = ~annotations[column].isin(LABELS)
        if wrong.any():
            row = annotations[wrong].iloc[0]
            raise AnnotationError(
                f"{row['case']}, {row['feature']}: {column} is {row[column]!r}, should be one "
                f"of {', '.join(LABELS)}"
            )
    joined = annotations.merge(third.rename(columns={"label": "third"}), on=["case", "feature"], how="left")
    agreed = joined["first"] == joined["second"]
    open_rows = joined[~agreed & ~joined["third"].isin(LABELS)]
    if len(open_rows):
        row = open_rows.iloc[0]
        raise AnnotationError(
            f"{row['case']}, {row['feature']}: the annotators differ and no third label is given"
        )
    return joined[["case", "feature"]].assign(
        label=joined["first"].where(agreed, joined["third"]),
        settled=np.where(agreed, "agreed", "adjudicated"),
    )


def annotator_kappa(annotations: pd.DataFrame) -> float:
    """Cohen's kappa of the two annotators over all features (columns first, second)."""
    first, second = (annotations[name].map(LABELS.index).to_numpy(float) for name in ("first", "second"))
    return float(cohen_kappa(first, second))


def faults(labels: pd.DataFrame, present: pd.DataFrame) -> pd.DataFrame:
    """What a model got wrong against the adjudicated labels.

    labels : case, feature, label; present : case, feature, present (bool: is the feature in the model).
    Returns case, feature, fault ("omission", "unsupported" or ""), one row a feature.
    """
    joined = present.merge(labels[["case", "feature", "label"]], on=["case", "feature"], how="inner")
    omission = (joined["label"] == "must") & ~joined["present"]
    unsupported = (joined["label"] == "must_not") & joined["present"]
    fault = np.select([omission, unsupported], ["omission", "unsupported"], "")
    return joined[["case", "feature"]].assign(fault=fault)


def flag_quality(flagged, faulty) -> dict[str, float]:
    """Precision and recall of a judge's flags: flagged[i] and faulty[i] are booleans over the same features.

    NaN where nothing was flagged (precision) or nothing was wrong (recall).
    """
    flagged, faulty = np.asarray(flagged, bool), np.asarray(faulty, bool)
    hits = float((flagged & faulty).sum())
    return {
        "precision": hits / flagged.sum() if flagged.any() else np.nan,
        "recall": hits / faulty.sum() if faulty.any() else np.nan,
        "flags": int(flagged.sum()),
        "faults": int(faulty.sum()),
    }
