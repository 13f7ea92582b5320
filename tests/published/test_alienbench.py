"""The transcription of the AlienBench paper, against what the paper implies and against its text."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from compendium.frame.cells import grid, published
from compendium.frame.params import read_yaml
from compendium.frame.paths import DATA, PARAMS
from lib.rounding import agrees, exact_counts, possible_counts

CONDITIONS = [
    "baseline",
    "departure_primed",
    "constrained_no_light",
    "constrained_high_gravity",
    "constrained_ammonia",
    "detailed_description",
]
WORDINGS = ["baseline", *(f"baseline_para_{letter}" for letter in "abcde")]
MARKS = {"†", "†‡", "‡", ""}


@pytest.fixture(scope="module")
def printed():
    return published("alienbench")


@pytest.fixture(scope="module")
def params():
    return read_yaml(PARAMS / "alienbench.yaml")


@pytest.fixture(scope="module")
def paper(mirror):
    path = mirror.parent / "papers" / "alienbench.txt"
    if not path.is_file():
        pytest.skip("the paper's text does not lie beside the archive mirror")
    return squeeze(path.read_text(encoding="utf-8"))


def squeeze(text: str) -> str:
    """Text without what a PDF conversion may change: spaces, markup, kinds of minus signs and apostrophes."""
    text = html.unescape(text).replace("−", "-").replace("’", "'").replace("[†]", "†").replace("[‡]", "‡")
    text = re.sub(r"\[†‡\]", "†‡", text)
    return re.sub(r"[\s_*`]+", "", text)


def part(printed, exhibit, column=None):
    rows = printed[printed["exhibit"] == exhibit]
    return rows if column is None else rows[rows["column"] == column]


def test_number_of_cells_of_every_table(printed):
    expected = {
        "table-3": 10 * (2 + 2 * 6) + 2,
        "table-6": 10 * 11,
        "table-7": 11 + 8 + 1,
        "table-9-means": 10 * 6,
        "table-9-rho": 6 * 6,
        "table-10-loo": 10 * 3,
        "table-10-subsets": 10 * 5,
        "table-11": 3 * 3,
        "table-12": 3 * 2 + 2,
        "table-13": 4 * 2,
    }
    counts = printed["exhibit"].value_counts()
    assert {name: counts[name] for name in expected} == expected


def test_every_row_is_well_formed(printed):
    assert printed[["row", "column", "place"]].ne("").all(axis=None)
    assert printed["value"].notna().all() and printed["decimals"].notna().all()
    monte_carlo = printed["kind"] == "monte-carlo"
    assert (printed["tolerance"].notna() == monte_carlo).all()
    assert printed.loc[monte_carlo, "note"].str.len().gt(20).all(), "a tolerance needs its reason"
    assert printed.loc[printed["kind"] == "bound", "note"].eq("<").all()
    both = printed["lo"].notna() & printed["hi"].notna()
    assert (printed["lo"].notna() == printed["hi"].notna()).all()
    assert (printed.loc[both, "lo"] <= printed.loc[both, "value"]).all()
    assert (printed.loc[both, "value"] <= printed.loc[both, "hi"]).all()


def test_values_have_the_decimals_they_say():
    raw = pd.read_csv(DATA / "published" / "alienbench.csv", dtype=str, keep_default_na=False)
    written = raw["value"].str.partition(".")[2].str.len()
    assert (written == raw["decimals"].astype(int)).all()
    for bound in ("lo", "hi"):
        filled = raw[bound] != ""
        assert (raw.loc[filled, bound].str.partition(".")[2].str.len() == written[filled]).all()


def test_the_archive_covers_the_human_sample_alone(printed):
    same = printed[printed["archive"] == "whole"]
    table = same[same["exhibit"] == "table-6"]
    assert (table["column"] == "human").all() and len(table) == 10
    rest = same[same["exhibit"] != "table-6"]
    assert (rest["row"] == "human").all() and set(rest["value"]) == {100, 1.93} and len(rest) == 6


def test_ids_are_those_of_the_params(printed, params):
    models, features, judges = (list(params[name]) for name in ("subjects", "features", "judges"))
    assert list(part(printed, "table-3", "overall")["row"]) == models
    assert list(dict.fromkeys(part(printed, "table-6")["column"])) == ["human", *models]
    for exhibit, column in (("table-6", "human"), ("table-10-loo", None)):
        assert set(part(printed, exhibit, column)["row"]) == set(features)
    assert set(part(printed, "table-7", "alpha")["row"]) == {"total", *features}
    assert list(dict.fromkeys(part(printed, "table-9-means")["row"])) == models
    for exhibit in ("table-9-means", "table-9-rho"):
        assert list(dict.fromkeys(part(printed, exhibit)["column"])) == WORDINGS
    assert set(part(printed, "table-3")["column"]) >= {*CONDITIONS, *(f"{name}_sd" for name in CONDITIONS)}
    assert set(part(printed, "table-11")["row"]) == set(judges)
    assert set(part(printed, "table-12")["row"]) == {*judges, "criteria"}
    same_family = {name for name, about in params["subjects"].items() if "judge" in about}
    assert set(part(printed, "table-13")["row"]) == same_family
    assert CONDITIONS == list(params["conditions"]) and WORDINGS == list(params["wordings"])


def test_overall_is_the_mean_of_the_conditions(printed):
    table = grid(printed, "table-3")
    models = table.index[table["overall"].notna()]
    assert len(models) == 10
    assert agrees(table.loc[models, CONDITIONS].mean(axis=1), table.loc[models, "overall"], 2).all()


def test_feature_rates_and_condition_means_hold_the_same_counts(printed):
    rates, scores = grid(printed, "table-6"), grid(printed, "table-3").loc[lambda t: t["overall"].notna()]
    counts = exact_counts(rates, 1, {"human": 300, **dict.fromkeys(scores.index, 540)}, scale=100)
    by_condition = exact_counts(scores[CONDITIONS], 2, 90)
    assert (counts[scores.index].sum() == by_condition.sum(axis=1)).all()
    assert agrees(counts["human"].sum() / 300, 1.93, 2)
    # mislabelled columns would not have passed: no two models have the same total
    assert by_condition.sum(axis=1).is_unique


def test_the_human_column_excludes_a_sample_of_98(printed):
    human = grid(printed, "table-6")["human"].to_numpy()
    first, last = possible_counts(human, 1, 3 * 98, scale=100)
    assert (first > last).all()


def test_paraphrase_table_agrees_with_itself(printed):
    means, rho = grid(printed, "table-9-means"), grid(printed, "table-9-rho")
    assert (rho.to_numpy() == rho.to_numpy().T).all() and (np.diag(rho) == 1).all()
    assert agrees(means.corr("spearman"), rho, 2).all(axis=None)
    assert (means["baseline"] == grid(printed, "table-3").loc[means.index, "baseline"]).all()
    marks = part(printed, "table-9-rho")["note"]
    assert set(marks) <= MARKS and (marks == "†‡").sum() == 2
    gaps = [float((means[a] - means[b]).abs().mean()) for i, a in enumerate(WORDINGS) for b in WORDINGS[:i]]
    text = part(printed, "text-F.1").set_index(["row", "column"])["value"]
    assert (marks != "").sum() == text["pairs_above_null", "count"]
    found = {"min": min(gaps), "max": max(gaps), "median": np.median(gaps)}
    assert all(agrees(value, text["mad", name], 2) for name, value in found.items())
    assert sum(gap <= 1 for gap in gaps) == text["pairs_reaching_mad_bar", "count"]


def test_feature_table_agrees_with_the_rates(printed):
    rates = grid(printed, "table-6").drop(columns="human")
    loo = grid(printed, "table-10-loo")
    assert agrees(rates.mean(axis=1)[loo.index] / 100, loo["mad"], 2).all()
    subsets = grid(printed, "table-10-subsets")
    assert list(subsets["n_subsets"]) == [10, 45, 120, 210, 252, 210, 120, 45, 10, 1]
    assert subsets["median_rho"].is_monotonic_increasing and subsets["min_mad"].is_monotonic_decreasing


def test_bands_and_their_counts(printed):
    alphas = part(printed, "table-7", "alpha").set_index("row")
    lower = part(printed, "table-7", "lower").set_index("row")["value"]
    for row in alphas.itertuples():
        band = row.note.removeprefix("band: ").lower()
        reached = lower[lower <= row.value].idxmax().removeprefix("band:")
        assert band == reached, f"{row.Index}: {row.value} is {reached}"
    bands = alphas.drop("total")["note"].value_counts()
    assert dict(bands) == {"band: Excellent": 6, "band: Good": 3, "band: Moderate": 1}


def test_ranks_and_judges(printed):
    scores = part(printed, "table-3", "overall").set_index("row")["value"]
    ranks = part(printed, "table-13", "rank_all").set_index("row")["value"]
    assert (scores.rank(ascending=False)[ranks.index] == ranks).all()
    rho = part(printed, "table-11", "rho").set_index("row")
    assert (rho["note"].str.contains("‡") == (rho["value"] >= 0.9)).all()


def test_every_table_row_stands_in_the_paper(paper):
    raw = pd.read_csv(DATA / "published" / "alienbench.csv", dtype=str, keep_default_na=False)
    lines = []
    for (exhibit, name), rows in raw.groupby(["exhibit", "row"], sort=False):
        cells = dict(zip(rows["column"], rows["value"], strict=True))
        if exhibit == "table-3" and "overall" in cells:
            rows = rows.set_index("column")
            first = rows.loc[["overall", "per_100_tokens"]]
            both = "".join(first["value"] + "[" + first["lo"] + "," + first["hi"] + "]")
            lines.append(both + "".join(f"{cells[c]}({cells[c + '_sd']})" for c in CONDITIONS))
        elif exhibit == "table-6":
            lines.append("".join(f"{value}%" for value in cells.values()))
        elif exhibit in ("table-9-means", "table-10-loo", "table-10-subsets"):
            lines.append(("" if exhibit != "table-10-subsets" else name) + "".join(cells.values()))
        elif exhibit in ("table-9-rho", "table-12") and name != "criteria":
            lines.append("".join(rows["value"] + rows["note"]))
        elif exhibit == "table-11":
            lines.append(cells["rho"] + rows["note"].iloc[0] + cells["null_upper"] + cells["rank_changes"])
    assert len(lines) == 10 + 10 + 10 + 6 + 10 + 10 + 3 + 3
    assert [line for line in lines if squeeze(line) not in paper] == []


def test_every_number_of_the_text_stands_in_the_paper(paper):
    """Decimal numbers of the running text are found in it; what it writes in words has a note saying so."""
    raw = pd.read_csv(DATA / "published" / "alienbench.csv", dtype=str, keep_default_na=False)
    text = raw[raw["exhibit"].str.startswith("text-") & raw["value"].str.contains(".", regex=False)]
    text = text[~text["note"].str.startswith("printed as")]
    values = dict.fromkeys([*text["value"], *text["lo"], *text["hi"]])
    missing = [value for value in values if value not in paper]
    assert missing == []
    for grouped, plain in (("10,000", "10000"), ("1,800", "1800"), ("5,400", "5400"), ("1,916", "1916")):
        assert grouped in paper and plain in set(raw["value"])


def test_prompts_equal_those_of_the_archive(mirror):
    prompts = read_yaml(DATA / "instruments" / "alienbench" / "prompts.yaml")
    assert list(prompts["conditions"]) == CONDITIONS and list(prompts["paraphrases"]) == WORDINGS[1:]
    texts = {name: entry["text"] for group in prompts.values() for name, entry in group.items()}
    recorded = {name: set() for name in texts}
    for path in sorted((mirror / "alienbench" / "generations").glob("*/*/responses.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for record in map(json.loads, lines[:1] + lines[-1:]):
            recorded[record["prompt_variant"]].add(record["prompt_text"])
    assert recorded == {name: {text} for name, text in texts.items()}


def test_features_and_judge_prompts_are_whole(params, paper):
    folder = DATA / "instruments" / "alienbench"
    features = yaml.safe_load((folder / "features.yaml").read_text(encoding="utf-8"))
    assert [feature["id"] for feature in features] == list(params["features"])
    assert [feature["long_label"] for feature in features] == list(params["features"].values())
    for feature in features:
        summary = feature["table_1"]
        assert squeeze(f"{summary['label']}{summary['default']}{summary['departures']}") in paper
    system, user = ((folder / f"judge_{name}.txt").read_text(encoding="utf-8") for name in ("system", "user"))
    assert squeeze(system) in paper
    before, between, after = re.split(r"\{description\}|\{dimensions\}", user)
    assert squeeze(before) in paper and squeeze(between) in paper
    assert squeeze(after.replace('- "feature', '-"feature')) in paper
    order = re.findall(r'^"(\w+)": \{', user, re.M)
    assert order == [feature["id"] for feature in features]
