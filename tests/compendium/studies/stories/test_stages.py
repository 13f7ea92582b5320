"""The study's stages: through the simulated endpoint, with faults, resumed; and equal to what is made in
process.
"""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from compendium.asking import study as asking
from compendium.asking.errors import InvalidReply
from compendium.asking.simulated.faults import Faults
from compendium.asking.simulated.server import serve
from compendium.frame.folding import Folded
from compendium.frame.params import study_params
from compendium.studies.stories import measures, stages
from compendium.studies.stories.data import DIMENSIONS, METRICS, SHEET, StoriesError, english, load_archive
from compendium.studies.stories.metrics import closeness, compute_metrics
from lib.text import TextError
from lib.text.creativity_index import LocalCorpus
from tests.compendium.studies.stories.small_study import demo_judgements, demo_texts

SMALL = {"n_human": 4, "n_per_author": 1, "repetitions": 2, "corpus_texts": 12}


@pytest.fixture
def p():
    return SimpleNamespace(**{**study_params("stories"), **SMALL})


def test_endpoint_and_process_make_the_same(p, tmp_path):
    made = stages.generate(p, source="simulated", profile="demo", out=tmp_path)
    assert made.table.equals(demo_texts(p)) and len(made.table) == 18
    judged = stages.judge(p, made.table, source="simulated", profile="demo", out=tmp_path)
    assert judged.table.equals(demo_judgements(p, made.table))
    assert judged.table[list(DIMENSIONS)].notna().all().all() and len(judged.table) == 18
    again = stages.judge(p, made.table, source="simulated", profile="demo", out=tmp_path)
    assert again.report.total("from_ledger") == 9 * 2 * 11 and again.report.total("calls") == 0


def test_faults_on_the_way_change_nothing(p, tmp_path, monkeypatch):
    import contextlib

    from compendium.asking.endpoint import Endpoint

    texts = demo_texts(p)

    @contextlib.contextmanager
    def disturbed(source, study, profile):
        with serve((study,), faults=Faults(rate=0.2, reply_rate=0.3, slow_s=0.01)) as server:
            yield Endpoint(server.base_url, key_env=None, concurrency=16)

    monkeypatch.setattr(asking, "endpoint_for", disturbed)
    judged = stages.judge(p, texts, source="simulated", profile="demo", out=tmp_path)
    expected = demo_judgements(p, texts)[list(DIMENSIONS)]
    # a spoilt reply is asked again with another seed, so a repetition may differ by a point; most do not
    assert (judged.table[list(DIMENSIONS)] - expected).abs().max().max() <= 1
    assert (judged.table[list(DIMENSIONS)] == expected).to_numpy().mean() > 0.9
    assert judged.report.total("faults") > 5 and judged.report.total("void") == 0
    shutil.rmtree(tmp_path / "ledgers")


@pytest.mark.parametrize(
    "reply, value",
    [
        ('{"score": 4, "justification": "x"}', 4),
        ('{"Novelty": "5/5"}', 5),
        ("```json\n{'score': 2,}\n```", 2),
        ("Score: 3", 3),
    ],
)
def test_scores_that_can_be_read(reply, value):
    assert stages.score(reply).values["score"] == value


@pytest.mark.parametrize(
    "reply",
    ['{"score": 6}', '{"score": 0}', '{"score": 3.5}', '{"score": null}', "great", '{"score": "N/A"}'],
)
def test_scores_that_cannot(reply):
    with pytest.raises(InvalidReply):
        stages.score(reply)


def test_each_judge_call_holds_one_definition(p):
    requests = stages.judge_requests(p, demo_texts(p))
    assert len({request.key for request in requests}) == len(requests) == 9 * 2 * 11
    definitions = [entry["definition"].strip() for entry in stages.dimensions().values()]
    for request in requests[:11]:
        user = request.content["messages"][1]["content"]
        assert (
            sum(definition in user for definition in definitions) == 1
            and len(request.content["messages"]) == 2
        )
        assert "human" not in user and "gpt" not in user.lower()
    assert requests[0].content["temperature"] == 0.2 and requests[0].content["top_p"] == 0.95


def test_a_void_score_is_missing(p):
    requests = stages.judge_requests(p, demo_texts(p))
    frame = stages.judgements_frame(requests, [np.nan, *[3.0] * (len(requests) - 1)])
    assert frame[list(DIMENSIONS)].isna().to_numpy().sum() == 1 and np.isnan(frame["authenticity"][0])


def test_ratings_of_the_demo_and_of_a_sheet(p, tmp_path):
    full = SimpleNamespace(**{**study_params("stories"), "translate": True})
    texts = demo_texts(full)
    ratings = measures.collect(texts, np.random.default_rng(1), source="simulated").table
    assert len(ratings) == 441 and ratings["story"].nunique() == 200
    sheet = ratings.rename(
        columns={"session": "session_id", "native_language": "native_languge", "language": "txt_language"}
    )
    sheet["text_id"] = 2 * ratings["story"] - (ratings["language"] == "en")
    sheet["text_evaluated"] = ""
    sheet[SHEET].to_csv(tmp_path / "sheet.csv", index=False)
    read = measures.collect(texts, None, source="endpoint", sheet=str(tmp_path / "sheet.csv")).table
    assert read.drop(columns="timestamp").equals(ratings.drop(columns="timestamp"))
    with pytest.raises(Folded, match="python -m compendium.studies.stories.survey serve"):
        measures.collect(texts, None, source="endpoint")


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("sheet.csv", "età,città\n".encode("latin-1"), "sheet.csv: not UTF-8"),
        ("sheet.csv", b"", "sheet.csv: cannot be read as a sheet of ratings"),
        ("sheet.csv", b"session_id,text_id\n1,2\n", "lacks the column 'timestamp'"),
        ("sheet.xlsx", b"no workbook", "sheet.xlsx: cannot be read as a sheet of ratings"),
        ("sheet.xlsx", None, "sheet.xlsx: cannot be read as a sheet of ratings"),
    ],
)
def test_a_sheet_that_cannot_be_read(p, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StoriesError, match=says):
        measures.collect(demo_texts(p), None, source="endpoint", sheet=str(tmp_path / name))


def test_metrics_of_the_demo(p, tmp_path):
    texts = demo_texts(p)
    found = measures.measure(p, texts, source="simulated", cache=str(tmp_path)).table
    assert list(found.columns) == ["story", *METRICS] and len(found) == 9 and found.notna().all().all()
    assert found["creativity_index"].between(0, 8).all() and (found["perplexity"] > 1).all()
    assert found["sbert_diversity"].between(0, 1.2).all() and found["template_rate"].between(0, 1).all()
    kept = list(tmp_path.glob("metrics-*.csv"))
    assert len(kept) == 1 and measures.measure(
        p, texts, source="simulated", cache=str(tmp_path)
    ).table.equals(found)


def test_the_range_of_l_is_that_of_the_params(p, tmp_path):
    texts = demo_texts(p)
    full = measures.measure(p, texts, source="simulated", cache=str(tmp_path)).table["creativity_index"]
    p.lengths = [5, 20]  # beyond the depth to which an index is built by default
    more = measures.measure(p, texts, source="simulated", cache=str(tmp_path)).table["creativity_index"]
    p.lengths = [4, 4]
    one = measures.measure(p, texts, source="simulated", cache=str(tmp_path)).table["creativity_index"]
    assert one.between(0, 1).all() and full.between(0, 8).all() and full.max() > 1
    assert (more > full).all() and (more <= full + 8).all()  # the sum gains U_13 ... U_20
    searched = measures.SearchedCorpus(measures.reference(p).contains, 4)
    again = compute_metrics(list(texts["text"][:2]), searched, shortest=4, longest=4)
    own = compute_metrics(list(texts["text"][:2]), measures.reference(p), shortest=4, longest=4)
    assert again["creativity_index"].equals(own["creativity_index"])


def test_what_is_kept_belongs_to_its_corpus(p, tmp_path):
    texts, folder = demo_texts(p), tmp_path / "corpus"
    folder.mkdir()
    (folder / "one.txt").write_text("nothing like it", encoding="utf-8")
    p.corpus = str(folder)
    cache = str(tmp_path / "cache")
    first = measures.measure(p, texts, source="simulated", cache=cache).table
    (folder / "one.txt").write_text(texts["text"][0], encoding="utf-8")
    second = measures.measure(p, texts, source="simulated", cache=cache).table
    assert first["creativity_index"][0] == 8 and second["creativity_index"][0] == 0
    assert first["ead"].equals(second["ead"])


def test_metrics_of_hard_texts():
    corpus = LocalCorpus.build(["something else entirely"])
    texts = ["One sentence only, and no more", "Word", "Same. Same. Same. Same."]
    found = compute_metrics(texts, corpus)
    assert found["sbert_diversity"].tolist()[:2] == [0, 0] and found["sbert_diversity"][2] == pytest.approx(
        0, abs=1e-6
    )
    assert found["template_rate"].tolist()[1] == 0 and found["creativity_index"].tolist() == [8, 8, 8]
    assert "perplexity" not in found
    with pytest.raises(TextError, match="text 1: the text is empty"):
        compute_metrics(["fine", "   "])


def test_closeness_by_hand(p):
    import pandas as pd

    ours = pd.DataFrame({"ead": [1.0, 2.0, 4.0]}, index=[1, 2, 3])
    theirs = pd.DataFrame({"ead": [9.0, 3.0, 2.0, 1.0]}, index=[9, 3, 2, 1])
    row = closeness(ours, theirs).loc["ead"]
    assert (row["texts"], row["equal"], row["bias"], row["mae"], row["largest"]) == (
        3,
        2 / 3,
        1 / 3,
        1 / 3,
        1,
    ) and row["rho"] == 1


def test_live_needs_enough_prompts(p, tmp_path, mirror, monkeypatch):
    monkeypatch.setenv("COMPENDIUM_MIRROR", str(mirror))
    few = tmp_path / "prompts.txt"
    few.write_text("only one\n")
    p.prompts_file = str(few)
    with pytest.raises(StoriesError, match="5 writing prompts are needed"):
        stages._plan(p, "endpoint", str(mirror))
    few.write_bytes("perché\n".encode("latin-1"))
    with pytest.raises(StoriesError, match="prompts.txt: not UTF-8"):
        stages._plan(p, "endpoint", str(mirror))
    p.prompts_file = ""
    asked = stages.planned(p, tmp_path)
    assert {name: len(requests) for name, requests in asked.items()} == {
        "writing": 5,
        "judging": 9 * 2 * 11,
        "translating": 9,
    }


def test_live_asks_any_endpoint(p, tmp_path, mirror, monkeypatch):
    p.repetitions = 3
    with serve(("stories",)) as server:
        monkeypatch.setenv("COMPENDIUM_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENROUTER_API_KEY", "a-key-of-no-use")
        texts = stages.generate(p, source="endpoint", profile="live", out=tmp_path, mirror=str(mirror)).table
        judged = stages.judge(p, texts, source="endpoint", profile="live", out=tmp_path)
    people = english(load_archive(str(mirror)).texts).query("author == 'human'")["text"].head(4)
    assert english(texts)["text"].head(4).tolist() == people.tolist()  # given, not asked for
    assert len(texts) == 18 and judged.report.total("calls") == 9 * 3 * 11
    assert (
        judged.table[list(DIMENSIONS)].notna().all().all()
        and judged.table.groupby("story").size().eq(3).all()
    )
    assert not any(b"a-key-of-no-use" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_workers_change_nothing():
    texts = ["The dog slept. It rained.", "She can't go. He can.", "One more story here, at last."]
    corpus = LocalCorpus.build(["the dog slept all day long"])
    one, two = (compute_metrics(texts, corpus, workers=count) for count in (1, 2))
    assert one.equals(two)
