"""The tables that a notebook on stories starts from."""

import pytest

from compendium.studies.stories.data import DIMENSIONS, METRICS, StoriesError
from compendium.studies.stories.load import load

DEMO = "data/demo/stories"


def test_the_demo_s_files_are_read_packed():
    data = load(
        f"{DEMO}/texts.jsonl.gz",
        ratings=f"{DEMO}/ratings.csv.gz",
        judgements=f"{DEMO}/judgements.csv.gz",
        metrics=f"{DEMO}/metrics.csv.gz",
    )
    assert data.human().sum() == 100 and len(data.human()) == 200
    assert data.human_scores().columns.tolist() == list(DIMENSIONS) == data.judge_scores().columns.tolist()
    assert data.metrics[list(METRICS)].notna().all(axis=None)
    assert data.ratings["session"].map(type).eq(str).all()


def test_what_is_not_asked_for_is_left_out():
    data = load(f"{DEMO}/texts.jsonl.gz")
    assert data.ratings is None and data.judgements is None and data.metrics is None


def test_a_file_without_a_column_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("story,language\n1,en\n")
    with pytest.raises(StoriesError, match="mine.csv: lacks the column 'repetition'"):
        load(f"{DEMO}/texts.jsonl.gz", judgements=path)
