"""World models: what is asked, how replies are read, and how candidates are named."""

import functools

import pandas as pd

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import FENCE
from compendium.asking.reasoning import tell
from compendium.asking.replies import Parsed, extract_json
from compendium.asking.request import Request, known
from compendium.frame.params import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.worldmodels.posg.criteria import holds
from compendium.studies.worldmodels.posg.model import SCHEMA
from compendium.studies.worldmodels.posg.scenarios import Scenario, corpus

TRACKS = ("game", "situational", "cultural")
KEYS = ["id", "track", "model", "case", "condition", "run", "round"]


@functools.cache
def prompts() -> dict[str, str]:
    """The study's prompts (data/instruments/worldmodels/prompts.yaml)."""
    return read_yaml(DATA / "instruments" / "worldmodels" / "prompts.yaml")


def messages(scenario: Scenario, condition: str = "") -> list[dict]:
    """The chat that asks for a world model of a case: Python for games and situations, JSON for cultural cases."""
    text = scenario.wording(condition or "anonymised")
    if scenario.tier == "cultural":
        user = (
            prompts()["json"].replace("{schema}", SCHEMA.read_text(encoding="utf-8")).replace("{text}", text)
        )
    else:
        user = prompts()["python"].replace("{interface}", prompts()["interface"]).replace("{text}", text)
    return [{"role": "system", "content": prompts()["system"]}, {"role": "user", "content": user}]


def generation_requests(p) -> list[Request]:
    """All first-pass requests. `p` holds subjects, games, situations, cultures, runs, conditions, variants,
    temperature, max_tokens, seed.

    Run r of a pair is asked with seed + r: the prompt is the same byte for byte, and the seed stands for what
    makes a provider's repeats differ.
    """
    made = []
    for model in p.subjects:
        for track, cases in (("game", p.games), ("situational", p.situations)):
            made += [
                _request(p, model, case, track, "", run) for case in cases for run in range(1, p.runs + 1)
            ]
        for case in p.cultures:
            wanted = dict.fromkeys([*p.conditions, *p.variants.get(case, ())])
            made += [_request(p, model, case, "cultural", condition, 1) for condition in wanted]
    return made


def _request(p, model, case, track, condition, run) -> Request:
    tag = {"track": track, "model": model, "case": case, "condition": condition, "run": run, "round": 0}
    return Request(
        model,
        messages(known(corpus(), case, "case"), condition),
        temperature=p.temperature[track],
        max_tokens=p.max_tokens,
        seed=p.seed + run,
        sample=run - 1,
        tag=tag,
    )


def repair_request(request: Request, text: str, problem: str) -> Request:
    """The request that hands a rejected model back with the problem found."""
    chat = [
        *request.messages,
        {"role": "assistant", "content": text},
        {"role": "user", "content": prompts()["repair"].format(problem=problem)},
    ]
    return Request(
        request.model,
        chat,
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        seed=request.seed,
        sample=request.sample,
        tag={**request.tag, "round": request.tag["round"] + 1},
    )


def judge_requests(candidates: pd.DataFrame, documents: dict, *, judge: str, seed: int) -> list[Request]:
    """Requests to flag faults, one a candidate (columns KEYS): the description, the case's features, the model."""
    made = []
    for row in candidates.itertuples():
        scenario = corpus()[row.case]
        listed = "\n".join(f"- {name}: {words}" for name, words, _ in features(scenario) if words)
        user = prompts()["judge"].format(
            text=scenario.wording(row.condition), features=listed, model=documents[row.id]
        )
        made.append(
            Request(
                judge,
                [{"role": "user", "content": user}],
                temperature=0.0,
                max_tokens=2000,
                seed=seed,
                tag={"id": row.id, "case": row.case},
            )
        )
    return made


def features(scenario: Scenario) -> list[tuple[str, str, str]]:
    """[(feature, what it says, true label)] that annotators and judge are asked about: expected elements are
    `must`, prohibited ones `must_not`; a `plausible` entry is neither missed nor objected to."""
    labels = (("expect", "must"), ("avoid", "must_not"), ("plausible", "plausible"))
    return [
        (entry["id"], _in_words(entry), label) for name, label in labels for entry in scenario.criteria[name]
    ]


def _in_words(entry: dict) -> str:
    kind, wanted = next((key, value) for key, value in entry.items() if key not in ("id", "of", "note"))
    said = f"{kind.replace('_', ' ')}: {', '.join(wanted) if isinstance(wanted, list) else wanted}"
    return said + (f" (by {', '.join(entry['of'])})" if "of" in entry else "")


def feature_presence(game, scenario: Scenario) -> dict[str, bool]:
    """{feature: whether the model has it}, by the case's predicates."""
    return {
        entry["id"]: holds(game, entry)
        for name in ("expect", "avoid", "plausible")
        for entry in scenario.criteria[name]
    }


def read_flags(text: str) -> Parsed:
    """The features a judge flags: {feature: kind}. Raises InvalidReply for anything else."""
    found = extract_json(text)
    flags = found.values.get("flags") if isinstance(found.values, dict) else None
    if not isinstance(flags, list) or not all(
        isinstance(entry, dict)
        and isinstance(entry.get("feature"), str)
        and entry.get("kind") in ("omission", "unsupported")
        for entry in flags
    ):
        raise InvalidReply(
            "wrong shape", 'should be {"flags": [{"feature": …, "kind": "omission" or "unsupported"}]}'
        )
    return Parsed({entry["feature"]: entry["kind"] for entry in flags}, found.repairs)


def read_python(text: str) -> tuple[str, str, str]:
    """(module, "strict" or "recovered", what recovery took): a reply that is a module as it stands is strict; else
    the last fenced block that holds a class, reasoning apart. ("", "void", reason) where there is none."""
    told = tell(text)
    if told.open:
        return "", "void", "the reply ends inside its reasoning block"
    text, taken = told.answer, [] if told.answer == text else ["reasoning removed"]
    if "```" not in text and "class " in text:
        return text.strip() if taken else text, "recovered" if taken else "strict", ", ".join(taken)
    blocks = [block for block in FENCE.findall(text) if "class " in block]
    if not blocks:
        return "", "void", "no Python class in the reply"
    return blocks[-1], "recovered", ", ".join([*taken, "fence removed"])


def read_json(text: str) -> tuple[dict | None, str, str]:
    """(document, "strict" or "recovered", what recovery took); strict: the whole reply is one JSON object.
    (None, "void", reason) where nothing can be recovered without guessing."""
    try:
        found = extract_json(text)
    except InvalidReply as error:
        return None, "void", str(error)
    if not isinstance(found.values, dict):
        return None, "void", "the JSON is not an object"
    return found.values, "recovered" if found.repairs else "strict", ", ".join(found.repairs)


def candidate_id(tag: dict) -> str:
    """One name for a candidate: model, case, condition, run and repair round."""
    return "|".join(map(str, (tag["model"], tag["case"], tag["condition"], tag["run"], tag["round"])))
