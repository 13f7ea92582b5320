"""The simulated authors, translator, judge and raters: deterministic, and as planted."""

import json

import numpy as np
import pytest

from compendium.asking.simulated.reply import RequestError
from compendium.studies.stories.data import DIMENSIONS
from compendium.studies.stories.simulated import (
    AUTHORS,
    JUDGE,
    PEOPLE,
    demo_ratings,
    is_machine,
    models,
    planted,
    quality,
    respond,
    translate,
    write_story,
    writing_prompt,
)

TEXTS = {
    number: write_story(
        PEOPLE if number <= 100 else list(AUTHORS)[number % 5], writing_prompt(number), number
    )
    for number in range(1, 201)
}


def ask(model, user, **more):
    return {"model": model, "messages": [{"role": "user", "content": user}], **more}


def test_a_story_depends_on_the_request_alone():
    request = ask("openai/gpt-5.2", f"Write.\n\nWriting prompt: {writing_prompt(3)}\n\nGo.", seed=4)
    assert (
        respond(request).text
        == respond(json.loads(json.dumps(request))).text
        == write_story("openai/gpt-5.2", writing_prompt(3), 4)
    )
    assert respond({**request, "seed": 5}).text != respond(request).text


def test_prompts_differ():
    assert len({writing_prompt(number) for number in range(800)}) == 800


def test_the_judge_can_tell_styles_apart():
    assert sum(is_machine(TEXTS[number]) for number in range(1, 101)) <= 2
    assert sum(is_machine(TEXTS[number]) for number in range(101, 201)) >= 98


def test_translation_keeps_names_and_paragraphs():
    text = TEXTS[7]
    italian = translate(text)
    assert italian.count("\n\n") == text.count("\n\n") and italian != text
    assert [name for name in planted()["names"] if name in text] == [
        name for name in planted()["names"] if name in italian
    ]
    assert not any(f" {word} " in italian for word in ("the", "of", "and", "was", "said"))


def test_quality_is_standard_and_shared():
    values = {name: np.array([quality(text, name) for text in TEXTS.values()]) for name in DIMENSIONS}
    for name in DIMENSIONS:
        assert abs(values[name].mean()) < 0.25 and 0.75 < values[name].std() < 1.25
    assert np.corrcoef(values["value"], values["novelty"])[0, 1] == pytest.approx(
        planted()["raters"]["general"] ** 2, abs=0.15
    )
    length = [len(text.split()) for text in TEXTS.values()]
    assert np.corrcoef(values["elaboration"], length)[0, 1] == pytest.approx(
        planted()["length_and_elaboration"], abs=0.15
    )


def test_raters_recover_what_is_planted():
    rows = demo_ratings(TEXTS, np.random.default_rng(3))
    assert (
        len(rows) == 441
        and len({row["rater"] for row in rows}) == 115
        and {row["story"] for row in rows} == set(TEXTS)
    )
    assert len({(row["rater"], row["story"]) for row in rows}) == 441
    by = {
        machine: [row["scores"] for row in rows if (row["story"] > 100) == machine]
        for machine in (False, True)
    }
    for name, (human, ai) in planted()["raters"]["means"].items():
        assert np.mean([scores[name] for scores in by[False]]) == pytest.approx(human, abs=0.35)
        assert np.mean([scores[name] for scores in by[True]]) == pytest.approx(ai, abs=0.35)
    again = demo_ratings(TEXTS, np.random.default_rng(3))
    assert again == rows


def test_few_stories_have_few_ratings():
    few = {number: TEXTS[number] for number in range(1, 9)}
    rows = demo_ratings(few, np.random.default_rng(1))
    assert (
        len(rows) == 18
        and {row["story"] for row in rows} == set(few)
        and len({row["rater"] for row in rows}) == 5
    )
    assert len({(row["rater"], row["story"]) for row in rows}) == 18
    one = demo_ratings({1: TEXTS[1]}, np.random.default_rng(1))
    assert len(one) == 2 and {row["rater"] for row in one} == {0, 1}


def judge_request(text, label="Novelty", seed=0):
    return ask(JUDGE, f'Quality: {label}\nDefinition: …\n\nStory:\n"""\n{text}\n"""\n\nAnswer.', seed=seed)


def test_the_judge_prefers_models_and_is_nearly_constant():
    scores = {
        number: json.loads(respond(judge_request(text)).text)["score"] for number, text in TEXTS.items()
    }
    assert set(scores.values()) <= {1, 2, 3, 4, 5}
    human, ai = (
        np.mean([scores[number] for number in range(1, 101)]),
        np.mean([scores[number] for number in range(101, 201)]),
    )
    assert ai > 4.8 and 3.6 < human < 4.4
    same = [
        respond(judge_request(text)).text == respond(judge_request(text, seed=1)).text
        for text in TEXTS.values()
    ]
    assert np.mean(same) > 0.75


def test_what_is_refused():
    with pytest.raises(RequestError, match="not simulated"):
        respond(ask("openai/gpt-1", "Writing prompt: x\n\n"))
    with pytest.raises(RequestError, match="no quality 'beauty'"):
        respond(judge_request(TEXTS[1], "Beauty"))
    with pytest.raises(RequestError, match="can write a story"):
        respond(ask(JUDGE, "What is the weather?"))
    assert JUDGE in models() and PEOPLE in models()
