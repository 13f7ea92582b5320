"""Stories: loading by meaning, what is refused, and the study's conventions on data small enough to check by
hand.
"""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compendium.studies.stories import data as stories
from compendium.studies.stories.data import DIMENSIONS, METRICS, SHEET, Stories, StoriesError
from compendium.studies.stories.table_1 import half, matched, mean_of_all, prefix_scan, variants
from lib.plane import principal_plane, spread

ROWS = [
    {
        "id": 2 * k + 1 + twin,
        "prompt": f"prompt {k}",
        "lang": language,
        "text": f"text {k} {language}",
        "author": "human" if k < 2 else "GPT-5.2",
    }
    for k in range(4)
    for twin, language in ((0, "en"), (1, "it"))
]


@pytest.fixture
def texts():
    return stories.texts_frame(ROWS)


def sheet_row(text, score=3, **changes):
    author = "human" if text <= 4 else "GPT-5.2"
    row = dict(
        zip(
            SHEET[:11],
            ["2026-01-25 18:50:38", "a", "Italian", "Male", 24, "PhD", "Often", text, "it", author, "…"],
            strict=True,
        )
    )
    return {**row, **dict.fromkeys(DIMENSIONS, score), **changes}


def ratings(texts, *rows):
    return stories.ratings_frame(pd.DataFrame(rows, columns=SHEET), texts)


def test_twins_are_one_story(texts):
    assert texts["story"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert stories.english(texts)["text"].tolist() == [f"text {k} en" for k in range(4)]
    assert Stories(texts).human().tolist() == [True, True, False, False]


def test_a_story_score_is_the_mean_over_its_ratings_in_either_language(texts):
    found = ratings(texts, sheet_row(1, 2), sheet_row(2, 5), sheet_row(7, 4, session_id="b"))
    assert found["story"].tolist() == [1, 1, 4] and found["language"].tolist() == ["en", "it", "en"]
    scores = Stories(texts, found).human_scores()
    assert scores["value"].tolist()[0] == 3.5 and scores["value"].tolist()[3] == 4
    assert scores.loc[[2, 3]].isna().all().all()


def test_columns_may_stand_in_another_order_and_be_spelled_better(texts):
    sheet = pd.DataFrame([sheet_row(1)]).rename(columns={"native_languge": "Native_Language"})[::-1]
    assert stories.ratings_frame(sheet[sorted(sheet.columns)], texts)["native_language"].tolist() == [
        "Italian"
    ]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"text": "  "}, r"story 1 \(en\): the text is empty"),
        ({"text": None}, "empty"),
        ({"lang": "fr"}, "language 'fr'"),
        ({"lang": None}, "story 1: its language is missing"),
        ({"author": "GPT-5.2"}, "different authors"),
        ({"text": "text 2 en"}, r"stories 1 and 3 have the same text \(en\)"),
        ({"id": "x"}, "row 1 of the dataset, id: 'x' is not a whole number"),
        ({"id": 0.5}, "row 1 of the dataset, id: 0.5 is not a whole number"),
        ({"id": float("inf")}, "row 1 of the dataset, id: inf"),
    ],
)
def test_texts_that_cannot_be_used(change, says):
    with pytest.raises(StoriesError, match=says):
        stories.texts_frame([{**ROWS[0], **change}, *ROWS[1:]])


@pytest.mark.parametrize("name", ["id", "lang", "author", "prompt", "text"])
def test_a_dataset_row_that_lacks_a_field_is_named(name):
    row = {key: value for key, value in ROWS[1].items() if key != name}
    with pytest.raises(StoriesError, match=f"row 2 of the dataset lacks '{name}'"):
        stories.texts_frame([ROWS[0], row, *ROWS[2:]])
    with pytest.raises(StoriesError, match="row 1 of the dataset lacks 'id'"):
        stories.texts_frame(["not a row"])


def test_unknown_author_and_repeated_story(texts):
    with pytest.raises(StoriesError, match="unknown author 'GPT-5.2'; known: human, Sonnet 4.5"):
        stories.check_texts(texts, ["human", "Sonnet 4.5"])
    with pytest.raises(StoriesError, match="story 1 comes twice"):
        stories.texts_frame([*ROWS, ROWS[0]])


@pytest.mark.parametrize(
    "row, says",
    [
        (sheet_row(1, value=6), "rating 1, value: 6 is not a whole number from 1 to 5"),
        (sheet_row(1, novelty=0), "novelty: 0"),
        (sheet_row(1, novelty=2.5), "2.5"),
        (sheet_row(1, novelty=np.nan), "nan"),
        (sheet_row(1, novelty="good"), "'good'"),
        (sheet_row(1, novelty=[3]), r"novelty: \[3\]"),
        (sheet_row(99, author="human"), "no story has the text id 99"),
        (sheet_row(1, text_id=np.nan), "rating 1, text_id: nan is not a whole number"),
        (sheet_row(1, text_id="first"), "rating 1, text_id: 'first'"),
        (sheet_row(1, session_id=None), "rating 1: its session_id is missing"),
        (sheet_row(1, author="Sonnet 4.5"), "author 'Sonnet 4.5'"),
    ],
)
def test_ratings_that_cannot_be_used(texts, row, says):
    with pytest.raises(StoriesError, match=says):
        ratings(texts, row)


def test_a_sheet_without_ratings(texts):
    with pytest.raises(StoriesError, match="holds no ratings"):
        ratings(texts)


def test_a_sheet_without_a_column(texts):
    with pytest.raises(StoriesError, match="lacks the column 'surprise'"):
        stories.ratings_frame(pd.DataFrame([sheet_row(1)]).drop(columns="surprise"), texts)


def measured(**changes):
    replies = [
        {name: {"score": 1 + place % 5, "justification": "", "excerpt": ""}}
        for place in range(8)
        for name in DIMENSIONS
    ]
    return {**{name: list(range(8)) for name in METRICS}, "llm_as_a_judge": replies, **changes}


def test_judge_replies_are_read_in_the_order_of_the_dimensions(texts):
    metrics, judgements = stories.measured_frames(measured(), texts)
    assert metrics["ead"].tolist() == list(range(8))
    assert judgements["fluency"].tolist() == [1, 2, 3, 4, 5, 1, 2, 3]
    assert Stories(texts, judgements=judgements).judge_scores()["value"].tolist() == [
        1,
        3,
        5,
        2,
    ]  # the English rows
    assert Stories(texts, metrics=metrics).metric_values()["cr_pos"].tolist() == [0, 2, 4, 6]


def test_archive_files_that_do_not_fit(texts):
    swapped = measured()
    swapped["llm_as_a_judge"][0], swapped["llm_as_a_judge"][1] = (
        swapped["llm_as_a_judge"][1],
        swapped["llm_as_a_judge"][0],
    )
    wrong = measured()
    wrong["llm_as_a_judge"][3]["fluency"]["score"] = 9
    for content, says in [
        (swapped, "judge reply 1: 'effectiveness'"),
        (wrong, "judge reply 4: 9"),
        (measured(ead=[1, 2]), "'ead' has 2 values for 8 texts"),
        (measured(llm_as_a_judge=[]), "0 judge replies"),
        (measured(ead=[*range(7), "high"]), "'ead', value 8: 'high' is not a number"),
        (measured(llm_as_a_judge=["lost", *measured()["llm_as_a_judge"][1:]]), "judge reply 1: 'lost'"),
        (
            measured(llm_as_a_judge=[{"authenticity": None}, *measured()["llm_as_a_judge"][1:]]),
            "judge reply 1: None is not a whole number",
        ),
        (measured(llm_as_a_judge=[{}, *measured()["llm_as_a_judge"][1:]]), "judge reply 1: None where"),
    ]:
        with pytest.raises(StoriesError, match=says):
            stories.measured_frames(content, texts)


def test_demographics_count_people_not_ratings(texts):
    found = stories.demographics(
        ratings(
            texts,
            sheet_row(1),
            sheet_row(3),
            sheet_row(5, session_id="b", age=45, gender="Female", native_languge="Latin", education="None"),
        )
    )
    assert found.at["gender=Male", "count"] == 1 and found.at["gender=Female", "percent"] == 50
    assert found.at["age=18–24", "count"] == 1 and found.at["age=45+", "count"] == 1
    assert found.at["native_language=Other", "count"] == 1 and found.at["education=Other", "count"] == 1
    with pytest.raises(StoriesError, match="two values for 'age'"):
        stories.demographics(ratings(texts, sheet_row(1), sheet_row(3, age=50)))


def test_texts_survive_the_round_trip(texts, tmp_path):
    texts.loc[0, "text"] = "a line\nbreak, and\u2028another\x85kind"  # splitlines() would cut at all three
    path = stories.write_texts(tmp_path / "texts.jsonl", texts)
    assert stories.read_texts(path).equals(texts)
    path.write_text(path.read_text(encoding="utf-8") + json.dumps({"story": 9}) + "\n", encoding="utf-8")
    with pytest.raises(StoriesError, match="texts.jsonl, line 9: lacks"):
        stories.read_texts(path)
    path.write_bytes("perché".encode("latin-1"))
    with pytest.raises(StoriesError, match="texts.jsonl: not UTF-8"):
        stories.read_texts(path)
    path.write_text("\n")
    with pytest.raises(StoriesError, match="texts.jsonl: holds no texts"):
        stories.read_texts(path)
    with pytest.raises(StoriesError, match="nowhere.jsonl: cannot be read"):
        stories.read_texts(tmp_path / "nowhere.jsonl")


def test_half_of_table_1_by_hand():
    scores = pd.DataFrame({"value": [3, 5, 3, 2, 4, np.nan]})
    found = half(scores, [True, True, True, False, False, False]).loc["value"]
    assert found["human_texts"] == pytest.approx(11 / 3) and found["human_texts_se"] == pytest.approx(
        2 / np.sqrt(3) / np.sqrt(3)
    )
    assert (found["ai_texts"], found["ai_texts_se"]) == (3, 1)
    assert found["p"] == pytest.approx(stats.mannwhitneyu([3, 5, 3], [2, 4], method="asymptotic").pvalue)


def test_a_mean_of_three_from_one_of_them():
    assert mean_of_all(4.5, 1, 3) == {"lo": pytest.approx(6.5 / 3), "hi": pytest.approx(14.5 / 3)}
    assert mean_of_all(4.5, 3, 3) == {}


def test_search_finds_the_prefix_that_was_used():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "rating": range(120),
            "session": np.repeat(range(30), 4),
            "story": rng.integers(0, 30, 120),
            "language": "it",
            **{name: rng.integers(1, 6, 120) for name in DIMENSIONS},
        }
    )
    frame["author"] = np.where(frame["story"] < 15, "human", "GPT-5.2")
    scan = prefix_scan(frame, range(100, 121))
    printed = scan.loc[111].round(3)
    found = matched(scan, printed)
    assert (
        found["equal"].idxmax() == 111 and found.at[111, "equal"] == 11 and found.at[111, "largest"] <= 0.0005
    )
    table = matched(variants(frame, 111), printed)
    assert (
        table["equal"].idxmax() == "story mean, first 111 ratings"
        and table["equal"].drop("story mean, first 111 ratings").max() < 11
    )


def test_labels_are_spread_as_little_as_needed():
    assert spread([0.0, 5.0, 1.0], 1.0).tolist() == [0, 5, 1]
    assert np.allclose(spread([2.0, 2.0, 2.0], 1.0), [1, 2, 3])
    moved = spread(np.random.default_rng(1).uniform(size=40), 0.1)
    assert np.diff(np.sort(moved)).min() > 0.1 - 1e-9


def test_plane_by_hand():
    a = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    measures = pd.DataFrame(
        {"a": a, "b": a**3, "c": [1, 8, 2, 7, 3, 6, 4, 5.0], "flat": 1.0, "gone": [np.nan, *a[1:]]}
    )
    plane = principal_plane(measures.drop(columns="gone"))
    assert plane.loadings.loc["a"].tolist() == pytest.approx(
        plane.loadings.loc["b"].tolist()
    )  # ranks are the same
    assert "flat" not in plane.loadings.index and plane.share.sum() == pytest.approx(1)
    assert plane.scores.std(ddof=0).tolist() == pytest.approx([1, 1]) and plane.scores.corr().iat[
        0, 1
    ] == pytest.approx(0)
    assert len(principal_plane(measures).scores) == 7
    correlations = [np.corrcoef(stats.rankdata(measures["c"]), plane.scores[k])[0, 1] for k in (0, 1)]
    assert plane.loadings.loc["c"].tolist() == pytest.approx(correlations)
    with pytest.raises(ValueError, match="two measures that vary"):
        principal_plane(measures[["a", "flat"]])
