"""The simulated models of AlienBench: ten writers, simulated people, three judges.

A writer draws which features depart, from the request's content and seed, and writes a text that says so; a
judge reads the text it is given and nothing else. What is true of them is in `compendium.studies.alienbench.simulated.truth`.
"""

from __future__ import annotations

import functools
import json
import math

import numpy as np

from compendium.asking.simulated.reply import TOKENS_PER_WORD, Reply, RequestError, last_user_text, tokens
from compendium.frame.chance import Stream, digest, normal, uniform
from compendium.studies.alienbench.simulated.creatures import DEPARTS, grammar
from compendium.studies.alienbench.simulated.truth import HUMAN, Truth, truth

SPARE_WORDS = 40  # headings, numbers and names in a text, beyond its sentences
_REASONS = {
    "departure": "The text gives {gloss}, which differs in kind from the Earth-typical default.",
    "subtle_departure": "The text gives {gloss}; {verdict}.",
    "typical": "The text gives {gloss}, which is Earth-typical or a mere variation on it.",
    "subtle_typical": "The text gives {gloss}; {verdict}.",
}
_VERDICTS = {
    True: "taken as a whole this is a different mechanism",
    False: "this still falls within the default",
}


def models() -> list[str]:
    """The names it answers for: the paper's ten subject models, `human`, and the three judges."""
    return [*grammar().writers, *grammar().judges]


def respond(request: dict) -> Reply:
    """The reply to a chat completion request: a creature from a writer, JSON labels from a judge.

    Raises RequestError (404) for a model it does not know.
    """
    model = request["model"]
    if model in grammar().judges:
        return _judge(request)
    if model in grammar().writers:
        return _write(request)
    raise RequestError(f"the model {model!r} does not exist", 404, "model_not_found")


# writers ----------------------------------------------------------------------------------------------------


def _write(request) -> Reply:
    model = request["model"]
    writer, known = grammar().writers[model], truth()
    prompt = last_user_text(request)
    condition = grammar().condition_of(prompt, _prompts())
    if model == HUMAN:
        condition = "baseline"
    key = _sampling_key(request)
    kinds = draw_kinds(known, model, condition, key, writer.reticence)
    billed = _length(known, model, writer, key)
    text = grammar().write(
        Stream(key, "words"),
        kinds,
        form=writer.form,
        condition=condition,
        words=min(writer.words, int(billed / TOKENS_PER_WORD)) - SPARE_WORDS,
    )
    visible, cap = tokens(text), request.get("max_tokens") or request.get("max_completion_tokens")
    finish = "stop"
    if cap is not None and visible > cap:
        text, finish = _cut(text, cap), "length"
        visible = tokens(text)
    billed = max(visible, billed) if cap is None else min(cap, max(visible, billed))
    return Reply(text, finish, None, billed, billed - visible, writer.resolved)


def draw_kinds(known: Truth, model: str, condition: str, key: bytes, reticence: float) -> dict:
    """{feature: kind} of what one text describes, drawn by its key; features left out are not described.

    Leaving out is for Earth-typical features alone: an undescribed feature scores 0, as they do.
    """
    row, column = known.place(model, condition)
    state = int(np.searchsorted(_ladder(row, column), uniform(key, "state"), side="right"))
    if condition == "detailed_description":
        reticence /= 2
    kinds = {}
    for place, feature in enumerate(known.features):
        departs = state >> place & 1
        contested = uniform(key, feature, "contested") < known.contested[departs, row, column, place]
        if contested:
            kinds[feature] = "subtle_departure" if departs else "subtle_typical"
        elif departs:
            kinds[feature] = "departure"
        elif uniform(key, feature, "told") >= reticence:
            kinds[feature] = "typical"
    return kinds


@functools.cache
def _ladder(row, column):
    """Cumulative probabilities of a cell's states; the last one leaves no gap."""
    ladder = np.cumsum(truth().states[row, column])
    ladder[-1] = 1.0
    return ladder


def _length(known, model, writer, key) -> int:
    """Completion tokens: log-normal about what the score per 100 tokens implies; of people, by their words."""
    centre, spread = known.log_tokens[known.models.index(model)]
    if math.isnan(centre):
        centre, spread = math.log(writer.words * TOKENS_PER_WORD), 0.3
    return round(math.exp(centre + spread * normal(key, "length")))


def _cut(text, cap):
    """The longest beginning of a text, in whole words, that costs at most `cap` tokens."""
    words = int(cap / TOKENS_PER_WORD)
    end, seen, inside = 0, 0, False
    for place, character in enumerate(text):
        if character.isspace():
            inside = False
        elif not inside:
            inside, seen = True, seen + 1
            if seen > words:
                return text[:end].rstrip()
        end = place + 1
    return text


def _sampling_key(request) -> bytes:
    """What tells one sample from another: model, messages, sampling parameters and, above temperature 0, the
    seed."""
    temperature = request.get("temperature")
    temperature = 1.0 if temperature is None else float(temperature)
    top_p = request.get("top_p")
    seed = request.get("seed") if temperature > 0 else None
    return digest(
        request["model"],
        json.dumps(request["messages"], sort_keys=True, ensure_ascii=False),
        temperature,
        1.0 if top_p is None else float(top_p),
        seed,
    )


@functools.cache
def _prompts() -> dict:
    from compendium.studies.alienbench.ask import prompts

    return prompts()


# judges -----------------------------------------------------------------------------------------------------


def _judge(request) -> Reply:
    prompt = last_user_text(request)
    judge = request["model"]
    found, votes = _reading(_description(prompt))
    answer = {}
    for feature in _asked(prompt):
        kind, gloss = found.get(feature, (None, "not described"))
        departs = _label(kind, votes.get(feature), judge)
        reason = "The description does not say, so the Earth-typical default is assumed."
        if kind is not None:
            reason = _REASONS[kind].format(gloss=gloss, verdict=_VERDICTS[departs])
        answer[feature] = {"feature_described": gloss, "is_departure": departs, "reasoning": reason}
    return Reply(json.dumps(answer, ensure_ascii=False), model=grammar().judges[judge]["resolved"])


def labels_of(text: str, judge: str) -> dict:
    """{feature: bool}: how a judge labels a description, as its JSON reply says it."""
    found, votes = _reading(text)
    return {
        feature: _label(found[feature][0] if feature in found else None, votes.get(feature), judge)
        for feature in grammar().features
    }


def _label(kind, vote, judge) -> bool:
    if kind is None:
        return False
    return DEPARTS[kind] if vote is None else vote[judge]


@functools.lru_cache(maxsize=8192)
def _reading(text: str):
    """What a text says {feature: (kind, gloss)}, and how the judges split on its contested sentences
    {feature: {judge: bool}}: drawn by the text and the feature, so every judge can work it out alone."""
    known, found = truth(), grammar().read(text)
    steps = np.cumsum(known.vote_odds)
    content = digest(" ".join(text.split()))
    votes = {}
    for feature, (kind, _) in found.items():
        if kind.startswith("subtle"):
            drawn = np.searchsorted(steps, uniform(content, feature, "vote"), side="right")
            at = min(int(drawn), len(steps) - 1)
            votes[feature] = {judge: bool(known.votes[at, place]) for place, judge in enumerate(known.judges)}
    return found, votes


def _description(prompt: str) -> str:
    """The description inside a judge's prompt: what stands between the template's own words."""
    before, after = _template()
    start = prompt.find(before)
    if start >= 0:
        start += len(before)
        end = prompt.find(after, start)
        if end >= 0:
            return prompt[start:end]
    return prompt


@functools.cache
def _template() -> tuple[str, str]:
    """The lines of the judge template just before and just after the description."""
    from compendium.studies.alienbench.ask import judge_prompt

    before, after = judge_prompt()[1].split("{description}")
    return before.rstrip().rsplit("\n", 1)[-1], "\n" + after.strip().split("\n", 1)[0]


def _asked(prompt: str) -> list[str]:
    """The features that a prompt asks for by their ids in quotation marks; all of them where it names none."""
    return [feature for feature in grammar().features if f'"{feature}"' in prompt] or list(grammar().features)
