"""The table "What models send": each reply with its right reading, and every parser of every study under a fuzzer."""

import json
import time
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compendium.asking.endpoint import Endpoint
from compendium.asking.errors import InvalidReply
from compendium.asking.items import items_from_reply
from compendium.asking.json_text import answer_text, extract_json
from compendium.asking.ledger import Ledger
from compendium.asking.reasoning import tell
from compendium.asking.replies import labels_from_reply, list_in_cell, object_with
from compendium.asking.request import Request
from compendium.asking.results import verdict
from compendium.asking.scores import score_from_reply
from compendium.asking.stage import run_stage
from compendium.studies.create.ask import judge_requests
from compendium.studies.create.divergent import rat_correct, read_list
from compendium.studies.create.judging import (
    read_class_sizes,
    read_factuality,
    read_flag,
    read_number,
    read_trace,
)
from compendium.studies.create.paths import parse_answer, read_path
from compendium.studies.metanym.evaluation import parse_batch, parse_evaluation
from compendium.studies.metanym.exam import lenient_answer, strict_answer
from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.portfolio import parse_portfolio
from compendium.studies.stories.stages import score
from compendium.studies.worldmodels.ask import read_flags, read_json, read_python
from compendium.studies.worldmodels.stages import lanes
from tests.compendium.asking.loopback import Loopback, completion

HUGE = "1" + "0" * 400
JUDGES = {
    "stories": score,
    "score": partial(score_from_reply, lo=1, hi=10),
    "alienbench": partial(labels_from_reply, features=("symmetry", "habitat")),
    "metanym": parse_evaluation,
    "metanym, all at once": partial(parse_batch, expected=["M1"]),
    "create, factuality": partial(read_factuality, length=2),
    "create, specificity": partial(read_class_sizes, length=2),
    "create, traces": read_trace,
    "world models": read_flags,
    "items": partial(items_from_reply, count=2, fields={"score": (1, 10)}),
    "object": partial(object_with, wanted=("score",)),
    "json": extract_json,
    "text": answer_text,
    "cell": list_in_cell,
}
OTHERS = {
    "keyed question": lenient_answer,
    "keyed question, strict": strict_answer,
    "portfolio": parse_portfolio,
    "paths": parse_answer,
    "path": read_path,
    "list": read_list,
    "remote associates": partial(rat_correct, answer="brass"),
    "flag": read_flag,
    "number": read_number,
    "Python": read_python,
    "document": read_json,
    "reasoning": tell,
}


def block(target, value):
    rating = {"name": "x", "factual_per_pc": [value] * 5, "beauty": value, "intelligence": value}
    rating |= {"instantiation_distinctness": value, "impressive_length": value}
    scores = {"archetypal_contexts": [rating] * 5, "structural_diversity": value}
    return f"```json\n{json.dumps({'scores': {target: scores}})}\n```\n"


# judges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "judge, reply",
    [
        ("stories", f'{{"score": {HUGE}, "justification": "so"}}'),
        ("score", f'{{"score": {HUGE}}}'),
        ("score", f'{{"score": -{HUGE}}}'),
        ("metanym", block("Target", 7).replace("7", HUGE, 1)),
        ("create, specificity", f'{{"judgments": [{HUGE}, 3]}}'),
        ("items", f'[{{"name": "a", "score": {HUGE}}}, {{"name": "b", "score": 3}}]'),
    ],
)
def test_a_number_of_four_hundred_digits_is_off_the_scale(judge, reply):
    with pytest.raises(InvalidReply) as raised:
        JUDGES[judge](reply)
    assert raised.value.kind in ("out of range", "rating", "off scale")
    assert len(str(raised.value)) < 200


def test_a_stage_goes_on_after_a_huge_score_and_so_does_the_next_run(tmp_path):
    """Asked again, then void; another request is answered; the next run on the ledger asks nothing."""
    asked = [Request("m", [{"role": "user", "content": text}], max_tokens=9) for text in ("huge", "usual")]

    def answer(body, tries):
        huge = body["messages"][0]["content"] == "huge"
        return completion(json.dumps({"score": 10**400 if huge else 4, "justification": "so"}))

    with Loopback(answer) as server:
        for calls in (4, 4):  # three attempts and one; then none more
            with Ledger(tmp_path / "ledger.sqlite") as ledger:
                result = run_stage(
                    asked, Endpoint(server.url, key_env=None), ledger, parse=score, progress=False
                )
                huge, usual = result.replies
            assert len(server.log) == calls
            assert (huge.void_reason.split(":")[0], usual.parsed["score"]) == ("out of range", 4)


def test_a_metanym_judge_that_scores_the_reference_too_is_never_read_as_the_target():
    with pytest.raises(InvalidReply, match="several targets"):
        parse_evaluation(block("Target", 9) + "And for comparison:\n" + block("Reference", 5))
    assert parse_evaluation(block("Target", 9)).structure == 9


@pytest.mark.parametrize(
    "reply, right",
    [
        ('{"score": 4, "justification": "it closes with </think> oddly"}', 4),
        ('So:\n```json\n{"score": 4, "justification": "it closes with </think> oddly"}\n```', 4),
        (
            '{"score": 4, "justification": "good"}\nA 5 would look like {"score": 5, "justification": "great"}',
            None,
        ),
        ("Score: -1", None),
        ("Score: -2 (cannot be rated)", None),
        ("Score: 1 to 5", None),
        ("Score: 4 - 5", None),
        ("Score: 4 or 5", None),
        ("Score: 4–5", None),
        ("**Score: 4** - it closes well", 4),
        ("Score: 4/5\nIt closes well, with 2 turns.", 4),
        ("Rating: 3. There are 2 reasons.", 3),
        ("<thinking>Score: 2</thinking>\nScore: 4", 4),
    ],
)
def test_a_stories_judge(reply, right):
    if right is None:
        with pytest.raises(InvalidReply):
            score(reply)
    else:
        assert score(reply).values["score"] == right


# answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply, right",
    [
        ("Answer: B. It flows.\n\nThe answer is a consequence of X", "B"),
        ("The answer is a bit tricky", None),
        ("Answer: A or B", None),
        ("Answer: A/B", None),
        ("The best answer is a combination", None),
        ("We divide by two, so the answer is a", None),
        ("Answer: C (Answer A is wrong because of the sign)", "C"),
        ("Answer: A\nNo, wait.\nAnswer: \u200bB", "B"),
        ("<thinking>Answer: A\nor so</thinking> I cannot decide.", None),
        ("Answer: A\nor so</thinking> I cannot decide.", None),
        ("<thought>Answer: A</thought> I cannot decide.", None),
        ("<reasoning>Answer: A</reasoning> I cannot decide.", None),
        ("<think>Answer: A", None),
        ("<thinking>\nAnswer: A\n", None),
        (r"So \boxed{\mathrm{B}}", "B"),
        (r"So \(\boxed{\text{(C)}}\)", "C"),
        ("**Answer:** **C**", "C"),
        ("answer: d", "D"),
        ("The correct answer is option D.", "D"),
        ("<think>A?</think>\nAnswer: B", "B"),
    ],
)
def test_a_keyed_question(reply, right):
    assert lenient_answer(reply) == right


PATH = '{"1": [["Ada", "knows", "Bo"], ["Bo", "occupation", "poet"]]}'
DRAFT = '{"1": [["Ada", "knows", "Cy"], ["Cy", "occupation", "poet"]]}'


@pytest.mark.parametrize("tag", ["think", "thinking", "thought", "reasoning"])
def test_create_takes_the_answer_outside_and_never_the_draft(tag):
    read = parse_answer(f"<{tag}>Perhaps <answer>{DRAFT}</answer>?</{tag}>\n{PATH}")
    assert read.paths == [(("Ada", "knows", "Bo"), ("Bo", "occupation", "poet"))]
    assert parse_answer(f"<{tag}>Perhaps {DRAFT}</{tag}>\nI find none.").paths == []
    assert parse_answer(f"<{tag}>Perhaps <answer>{DRAFT}</answer>").paths == []


def test_a_trace_whose_opening_tag_was_eaten_is_kept():
    told = tell(f"Ada knows Bo, I think.\n</think>\n<answer>{PATH}</answer>")
    assert told.reasoning == "Ada knows Bo, I think."
    assert "Ada knows Bo, I think" not in told.answer


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_a_class_thought_of_is_no_program(tag):
    thought = f"<{tag}>\n```python\nclass Game:\n    pass\n```\n</{tag}>\n"
    assert read_python(thought + "I'm sorry, I can't.")[:2] == ("", "void")
    assert read_python(f"<{tag}>\n```python\nclass Game:\n    pass\n```")[:2] == ("", "void")
    assert read_python(thought + "```python\nclass Other:\n    pass\n```")[0] == "class Other:\n    pass\n"


def test_a_judge_of_create_is_shown_braces_as_they_are():
    path = (("Jinja {{ loop }}", "r", "t"),)
    for request in judge_requests([("p", path)], "judge", max_tokens=9, seed=0):
        asked = request.messages[0]["content"]
        assert "Jinja {{ loop }}" in asked
        assert 'JSON object {"' in asked


@pytest.mark.parametrize("tag", ["think", "THINKING", "thought", "reasoning", "seed:think"])
def test_reasoning_never_reaches_a_text_that_is_judged_or_counted(tag):
    row = {"finish_reason": "stop", "refusal": None, "reasoning": None, "reasoning_tokens": 0}
    said = lambda text: verdict({**row, "text": text}, None)  # noqa: E731
    assert said(f"<{tag}>Let me see.</{tag}>\n\nIt has six legs.")[0].values == "It has six legs."
    assert said(f"<{tag}>Let me see. It has six")[2] == "thinking"
    assert said(f"<{tag}>Let me see.</{tag}>")[2] == "thinking"
    assert said("It thinks <of> legs.")[0].values == "It thinks <of> legs."


def test_channels_and_other_spellings_of_reasoning():
    channels = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Six legs.<|return|>"
    assert tell(channels) == ("Six legs.", "Hm.", False)
    assert tell("<|channel|>analysis<|message|>Hm.").open
    assert tell("[THINK]Hm.[/THINK]Six legs.").answer.strip() == "Six legs."
    assert tell("◁think▷Hm.◁/think▷Six legs.").answer.strip() == "Six legs."


# any reply at all ------------------------------------------------------------------------------------------

PIECES = [
    "{", "}", "[", "]", '"', ",", ":", "\n", " ", "'", "\\", "```", "```json\n", "<think>", "</think>", "<thinking>",
    "</reasoning>", "<answer>", "</answer>", "<|channel|>final<|message|>", '{"score": ', '"score"', HUGE, "-1", "1e999", "NaN",
    "null", "true", "7/10", "Score: ", "Answer: ", "The answer is ", "A", "or", "\\boxed{", "\u200b", "\ufeff", "\ud83d", "…",
    "...", "// as above\n", "/*", "*/", '{"flags": [', '"judgments": [', '["a", "r", "b"]', '{"scores": {"Target": ',
    '"archetypal_contexts": [', "# Archetype Proposal: x\n", "**Form (a)**", "[SLOT]", "class Game:\n", "(a, b, c)", "->", "|",
    "&#9999999999;", "&amp;", "“", "١", "０", "½", "Rating: 9999999999", "### beauty\n", '{"path": ', "{{ loop }}", "\x00",
    '{"agents": ', '{"entities": [], "relations": [], "triples": ', "True, ", "symmetry", "_", "**", "<", "(", ";",
]  # fmt: skip
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(PIECES),
        st.tuples(st.sampled_from(PIECES), st.integers(2, 600)).map(lambda pair: pair[0] * pair[1]),
        st.text(max_size=12),
    ),
    max_size=12,
).map("".join)  # fmt: skip


def read(name, parser, text, declared):
    start = time.thread_time()
    try:
        parser(text)
    except declared:
        pass
    took = time.thread_time() - start
    assert took < 0.5, f"{name}: {took:.2f} s for {len(text):,} characters: {text[:200]!r}"


ANY_TEXT = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@ANY_TEXT
@given(text=TEXTS)
def test_every_judge_parser_reads_or_refuses_any_text(text):
    for name, parser in JUDGES.items():
        read(name, parser, text, InvalidReply)


@ANY_TEXT
@given(text=TEXTS)
def test_every_other_reader_reads_or_refuses_any_text(text):
    for name, parser in OTHERS.items():
        read(name, parser, text, MetanymError)


@pytest.mark.parametrize("name", [*JUDGES, *OTHERS])
def test_any_piece_a_thousand_times_over(name):
    parser, declared = {**JUDGES, **OTHERS}[name], InvalidReply if name in JUDGES else MetanymError
    for piece in PIECES:
        for text in (piece * 3000, '{"a": ' + piece * 3000, "Answer: " + piece * 500 + '{"score": 4}'):
            read(name, parser, text, declared)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    odd=st.sampled_from([10**400, -1, 1e300, "x", None, [], {}, [[]], True, "\u0000"]),
    place=st.integers(0, 400),
)
def test_a_world_model_document_of_any_values_is_rejected_in_words(odd, place):
    text = json.dumps({"agents": ["a", "b"], "states": ["s"], "horizon": 3, "rewards": {"a": {"s": 1.0}}})
    text = text[: place % len(text)] + json.dumps(odd) + text[place % len(text) + 1 :]
    (found,) = lanes([("cultural", text)])
    assert found.one.game is None
    assert found.problem
