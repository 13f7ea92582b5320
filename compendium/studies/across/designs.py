"""The five designs side by side: in words (data/designs.yaml), in counts (params), in printed numbers."""

import pandas as pd

from compendium.frame.cells import COVERS, FINDINGS, findings, published
from compendium.frame.params import read_yaml, study_params
from compendium.frame.paths import DATA

FIELDS = (
    "asks",
    "writes",
    "judge",
    "unit",
    "scale",
    "agreement",
    "interval",
    "test",
    "correction",
    "released",
)


def designs() -> dict:
    """{study: {label, steps, and one text a field of `FIELDS`, place}} as data/designs.yaml says.

    Raises ValueError where a study lacks a field.
    """
    found = read_yaml(DATA / "designs.yaml")
    for study, entry in found.items():
        for name in ("label", "steps", *FIELDS, "place"):
            if name not in entry:
                raise ValueError(f"data/designs.yaml: {study} lacks `{name}`")
    return found


def counts(profile: str = "demo") -> pd.DataFrame:
    """How large each study is by its params: writers, units (the designs' word), judges (models; stories have
    readers besides), judgements (their single labels or ratings at one anchor; NaN where the number depends on
    what is written), a row a study.

    A program that decides is no judge: world models have none, and no judgement.
    """
    p = {study: study_params(study, profile) for study in designs()}
    rows = {}
    own = p["alienbench"]
    units = len(own["subjects"]) * len(own["conditions"]) * own["n_samples"]
    rows["alienbench"] = [
        len(own["subjects"]),
        units,
        len(own["judges"]),
        units * len(own["judges"]) * len(own["features"]),
    ]
    own = p["stories"]
    units = own["n_human"] + own["n_per_author"] * len(own["authors"])
    rows["stories"] = [
        own["n_human"] + len(own["authors"]),
        units,
        1,
        units * len(own["dimensions"]) * own["repetitions"],
    ]
    own = p["metanym"]
    players, archetypes, contexts = len(own["players"]), 5, 5  # a portfolio's shape (section 3.1)
    portfolios = (players - 1) * len(
        own["runs"]
    )  # the anchor model's first is the reference, which nobody rates
    grades = (
        archetypes * (contexts + len(own["axes"]) - 2) + 1
    )  # facts by context, structure once a portfolio
    rows["metanym"] = [
        players,
        portfolios * archetypes * contexts,
        players,
        portfolios * (players - 1) * grades,
    ]
    own = p["worldmodels"]
    told = sum(len({*own["conditions"], *own["variants"].get(case, ())}) for case in own["cultures"])
    units = len(own["subjects"]) * ((len(own["games"]) + len(own["situations"])) * own["runs"] + told)
    rows["worldmodels"] = [len(own["subjects"]), units, 0, 0]
    own = p["create"]
    rows["create"] = [len(own["subjects"]), sum(run["original"] for run in own["runs"].values()), 1, None]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["writers", "units", "judges", "judgements"])
    return table.astype(float)


def coverage() -> pd.DataFrame:
    """What a reader can check of each paper: printed numbers, by the evidence at hand in the profile released (the
    words of `compendium.frame.verdict`), and the findings on record by kind; a row a study."""
    rows = {}
    for study in designs():
        printed = published(study)
        cover = printed.loc[printed["print"] == "number", "archive"].value_counts()
        kinds = [entry["kind"] for entry in findings(study)]
        rows[study] = {
            "printed": int(cover.sum()),
            **{word: int(cover.get(word, 0)) for word in COVERS},
            **{kind: kinds.count(kind) for kind in FINDINGS},
        }
    return pd.DataFrame.from_dict(rows, orient="index")
