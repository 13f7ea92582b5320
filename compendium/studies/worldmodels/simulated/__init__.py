"""Simulated models that write world models, a simulated judge that flags, and simulated annotators.

What each does wrong, and how often, is planted in data/simulated/worldmodels.yaml; all chance is drawn from the
request's content. A model finds its case by the description in the prompt and starts from the corpus's own game.
"""

import functools
import json
import re

from compendium.asking.names import same_model
from compendium.asking.simulated.reply import Reply, RequestError, last_user_text, message_text, request_key
from compendium.frame.chance import Stream, uniform
from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.worldmodels.posg import edits
from compendium.studies.worldmodels.posg.criteria import holds
from compendium.studies.worldmodels.posg.model import from_document
from compendium.studies.worldmodels.posg.scenarios import Scenario, corpus
from compendium.studies.worldmodels.simulated.text import (
    HOSTILE,
    broken_json,
    broken_python,
    hostile_python,
    json_text,
    python_text,
    wrapped,
)

GATES = ("contract", "probe", "audit")
JUDGED = ("Features:\n", "World model:\n")  # what a request to flag holds, and no other


@functools.cache
def traits() -> dict:
    """What is planted."""
    return read_yaml(DATA / "simulated" / "worldmodels.yaml")


def models() -> list[str]:
    """Names of the simulated models, the hostile one and the judge."""
    return [*traits()["models"], traits()["hostile"], traits()["judge"]["model"]]


def claims(request: dict) -> bool:
    """Whether a request is one of this study's: it carries a case's description."""
    return any(_find(message_text(message)) for message in request["messages"])


def respond(request: dict) -> Reply:
    """The reply to one request. Raises RequestError for a model or a case that is not known."""
    prompts = [message_text(message) for message in request["messages"] if message["role"] == "user"]
    found = _find(prompts[0]) if prompts else None
    if found is None:
        raise RequestError("no case of the corpus is described in the prompt")
    scenario, condition = found
    asked = last_user_text(request)
    if all(part in asked for part in JUDGED):  # any model can be asked to judge
        return Reply(_judgement(scenario, asked))
    if same_model(request["model"], traits()["hostile"]):
        deed = sorted(HOSTILE)[int(request.get("seed") or 0) % len(HOSTILE)]
        return Reply(hostile_python(deed))
    model = next((name for name in traits()["models"] if same_model(name, request["model"])), None)
    if model is None:
        raise RequestError(
            f"no simulated model is called {request['model']!r}", status=404, code="model_not_found"
        )
    return Reply(_world_model(model, scenario, condition, request, len(prompts) - 1))


def annotate(case: str, feature: str, truth: str, annotator: int) -> str:
    """The label that a simulated annotator (0, 1; 2 adjudicates) gives a feature whose true label is `truth`."""
    labels = ("must", "plausible", "must_not")
    if uniform("annotator", annotator, case, feature) < traits()["annotators"]["accuracy"][annotator]:
        return truth
    others = [label for label in labels if label != truth]
    return others[int(uniform("annotator's slip", annotator, case, feature) * len(others))]


def structure(model: str, scenario: Scenario, condition: str, seed) -> tuple[str, Stream]:
    """("exact", "over" or "omit", the stream that the reply's changes are drawn from): part of the draw belongs to
    the pair of model and case, so repeats of one request resemble each other."""
    planted = traits()["models"][model]
    mix = dict(planted["game" if scenario.tier == "toy" else scenario.tier])
    if scenario.tier == "game":
        mix["exact"] *= traits()["ease"][scenario.id]
    if condition not in ("anonymised", ""):
        mix["over"] = max(0.0, mix["over"] + planted["location"]["over"])
    sample = seed if uniform("drift", model, scenario.id, condition, seed) < traits()["drift"] else "usual"
    place = condition if scenario.id in ("C9", "C13") or uniform("place", model, scenario.id) < 0.4 else ""
    stream = Stream("structure", model, scenario.id, place, sample)
    weights = [mix["exact"], mix["over"], mix["omit"]]
    point = stream.uniform() * sum(weights)
    return ("exact" if point < weights[0] else "over" if point < weights[0] + weights[1] else "omit"), stream


def _world_model(model, scenario, condition, request, round_number) -> str:
    planted = traits()["models"][model][scenario.tier]
    seed = request.get("seed")
    # the flaw belongs to the first reply; a repair round either mends it or hands it back
    flaws = Stream("flaws", model, scenario.id, condition, seed)
    kind, stream = structure(model, scenario, condition, seed)
    game = edits.restyle(_changed(scenario, kind, planted["grain"], stream), stream)
    point, gate = flaws.uniform(), None
    for name in GATES:
        if gate is None and point < planted[name]:
            gate = name
        point -= planted[name]
    void, fenced = flaws.uniform() < planted["void"], flaws.uniform() < planted["fence"]
    mended = any(flaws.uniform() < traits()["repair"] for _ in range(round_number))
    if void:
        return (
            "I would rather describe the situation in words: it has several sides, and none of them can be "
            "numbered."
        )
    gate = None if mended else gate
    if scenario.tier == "cultural":
        text, language = broken_json(game, gate, flaws) if gate else json_text(game), "json"
    else:
        text = broken_python(game, gate, flaws) if gate else python_text(game, scenario.title)
        language = "python"
    return wrapped(text, language, flaws) if fenced else text


def _changed(scenario: Scenario, kind: str, grain: int, stream):
    game = scenario.game
    if kind == "over":
        if scenario.id == "G6" and grain == 3:
            return edits.four_bids()
        game = edits.split_endings(game) if grain == 1 else edits.unfold(game, most=12 * grain)
        if grain > 1:
            game = edits.add_action(game, stream)
        if grain > 2:
            game = edits.add_chance(edits.add_action(game, stream), stream)
        if stream.uniform() < traits()["invents"] and (words := _unsupported(scenario)):
            game = edits.add_action(game, stream, words)
    elif kind == "omit":
        for change in stream.shuffled((edits.drop_action, edits.merge_endings, edits.drop_player))[:2]:
            game = change(game, stream)
        if stream.uniform() < 0.6 and edits.can_end(certain := edits.make_certain(game)):
            game = certain
    return game


def _unsupported(scenario: Scenario) -> list[str]:
    """Names for actions that the case's criteria object to, whoever may take them."""
    return [
        entry["anywhere"][0].replace(" ", "_") for entry in scenario.criteria["avoid"] if "anywhere" in entry
    ]


def _judgement(scenario: Scenario, prompt: str) -> str:
    """Flags over the listed features, by what the model in the prompt really lacks or adds, seen imperfectly."""
    planted = traits()["judge"]
    listed, document = prompt.split(JUDGED[0], 1)[1].split(JUDGED[1], 1)
    listed, document = re.findall(r"^- (\S+):", listed, re.M), json.loads(document)
    game, key = from_document(document), request_key({"prompt": prompt})
    entries = {
        entry["id"]: (entry, name) for name in ("expect", "avoid") for entry in scenario.criteria[name]
    }
    flags = []
    for feature in listed:
        if feature not in entries:
            continue
        entry, name = entries[feature]
        fault = holds(game, entry) != (name == "expect")
        chance = planted["recall"] if fault else planted["false_flag"]
        if uniform("flag", key, feature) < chance:
            kind = "omission" if name == "expect" else "unsupported"
            flags.append({"feature": feature, "kind": kind, "evidence": f"see {feature.replace('_', ' ')}"})
    return json.dumps({"flags": flags})


@functools.cache
def _wordings() -> tuple:
    return tuple(
        (scenario.wording(condition or "anonymised"), scenario, condition)
        for scenario in corpus().values()
        for condition in (scenario.locations or [""])
    )


def _find(prompt: str):
    """(scenario, condition) whose description stands in the prompt, or None."""
    return next(
        ((scenario, condition) for words, scenario, condition in _wordings() if words in prompt), None
    )
