"""Simulated models, judges and annotators of CREATE, over the closed-world graph: what they plant is known.

`respond(request)` answers any of the study's prompts. Models are told apart by what data/simulated/create.yaml
plants: the share of facts they have heard of (knows), how many paths they give (breadth), how much they prefer
specific ones (taste), how often they make a triple up (hallucination) or break a chain. All chance is drawn from
the request's content.
"""

import functools
import json
import math
import re

from compendium.asking.names import same_model
from compendium.asking.simulated.reply import Reply, RequestError, last_user_text, message_text, request_key
from compendium.frame.chance import Stream, normal, uniform
from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.create.graph import TripleStore, chains, load_graph
from compendium.studies.create.judging import specificity
from compendium.studies.create.paths import Query

START = re.compile(r'start entity: "(.+)"')
TARGET = re.compile(r'last triple\'s relationship: "(.+)"\n- last triple\'s tail: "(.+)"')
TRIPLES = re.compile(r"Triples: (\[.*\])", re.S)
NOTE = re.compile(r"^- (.+?) \((.+?)\) (.+)$", re.M)


@functools.cache
def traits() -> dict:
    """What is planted (data/simulated/create.yaml)."""
    return read_yaml(DATA / "simulated" / "create.yaml")


@functools.cache
def world() -> TripleStore:
    """The closed-world graph."""
    return load_graph(DATA / "graphs" / "fictional.csv", DATA / "graphs" / "relations.csv")


def respond(request: dict) -> Reply:
    """The reply to one request. Raises RequestError (404) for a model that is not simulated."""
    text = last_user_text(request)
    stream = Stream("create", request_key(request))
    first = message_text(request["messages"][0])
    if START.search(first):
        return _answer(request, first, stream)
    if TRIPLES.search(text):
        return Reply(_judgement(request, text, stream))
    if "Write one question" in text:
        return Reply(_question(text))
    if "Notes: " in text:
        return Reply(_extraction(text))
    return Reply(_baseline(request, text, stream))


def models() -> list:
    """Names of the simulated models and judges, and of the helpers that write queries and read traces."""
    return [*traits()["models"], *traits()["judges"], *traits()["helpers"]]


def claims(request: dict) -> bool:
    """Whether a request is one of this study's: its prompts carry marks that the simulator reads."""
    first, last = message_text(request["messages"][0]), last_user_text(request)
    return bool(
        START.search(first)
        or TRIPLES.search(last)
        or "Notes: " in last
        or "Write one question" in last
        or any(mark in last for mark in ("three words: ", "unusual uses", "ten nouns"))
    )


def true_strength(path) -> float:
    """Specificity of a path's weakest triple by the graph's own class sizes, the final triple left out."""
    kept = path[:-1] if len(path) > 1 else path
    return float(specificity([world().class_size(triple) for triple in kept]).min())


def is_true(triple) -> bool:
    """Whether a triple holds in the closed world, whatever the case of its letters."""
    return tuple(part.lower() for part in triple) in _lower_facts()


def annotate(triple, annotator: int) -> int:
    """The specificity score a simulated annotator gives a triple: the true class size through an error of
    their own."""
    noise = traits()["annotators"]["size_noise"][annotator]
    size = world().class_size(triple) * math.exp(noise * normal("annotator", annotator, *triple))
    return int(specificity(size))


def rate_set(standing: float, key, annotator: int) -> int:
    """The 1–5 rating of a set by a simulated annotator: `standing` is the set's true utility in standard
    deviations from the mean; the rest is taste, shared by the annotators or their own."""
    weight = traits()["annotators"]["creativity"]
    value = (
        weight["signal"] * standing
        + weight["shared"] * normal("taste", *key)
        + weight["own"] * normal("own", annotator, *key)
    )
    return int(min(max(round(3 + 1.1 * value), 1), 5))


@functools.lru_cache(maxsize=512)
def candidates(head: str, relation: str, tail: str) -> tuple:
    """The true chains that a simulated model can choose from."""
    return chains(world(), Query(0, head, relation, tail))


@functools.cache
def _lower_facts() -> frozenset:
    return frozenset(tuple(part.lower() for part in triple) for triple in world().facts)


def _entry(section: str, model: str) -> dict:
    for name, entry in traits()[section].items():
        if same_model(name, model):
            return entry
    raise RequestError(f"no simulated {section[:-1]} is called {model!r}", status=404, code="model_not_found")


def _answer(request: dict, prompt: str, stream: Stream) -> Reply:
    """Paths from a model: some candidates by appeal, some of them spoilt, in the form the prompt asks for."""
    model, planted = request["model"], _entry("models", request["model"])
    head = START.search(prompt)[1]
    relation, tail = TARGET.search(prompt).groups()
    turn = len(request["messages"])
    variation = (
        "iterate"
        if turn > 1
        else "verbalized"
        if '"probability"' in prompt
        else "creative"
        if "Be creative" in prompt
        else "original"
    )
    change = traits()["variations"][variation]
    if stream.uniform() < planted["silent"]:
        return Reply("<answer>{}</answer>")
    given = {tuple(map(tuple, path)) for path in _earlier(request)} if turn > 1 else set()
    pool = [path for path in candidates(head, relation, tail) if path not in given and _known(path, model)]
    aim = planted["breadth"] * change["breadth"] * (0.6 + 0.8 * stream.uniform())
    appeal = [(_appeal(path, planted["taste"] + change["taste"], stream), path) for path in pool]
    chosen = [path for _, path in sorted(appeal, reverse=True)[: max(1, round(aim))]]
    paths = [_spoilt(path, planted, stream) for path in chosen]
    body = {
        str(number): (
            {"path": path, "probability": round(0.5 / number, 2)} if variation == "verbalized" else path
        )
        for number, path in enumerate(paths, 1)
    }
    text = f"<answer>\n{json.dumps(body, ensure_ascii=False, indent=1)}\n</answer>"
    if not planted["thinks"]:
        return Reply(text)
    notes = _notes(pool, chosen, stream)
    return Reply(f"<think>\n{notes}\n</think>\n\n{text}", reasoning_tokens=len(notes.split()))


def _known(path, model: str) -> bool:
    """Whether a model has heard of every fact of a path but the one the query gives away; a fact is known
    from either of its ends or from none."""
    share = _entry("models", model)["knows"]
    return all(uniform("knows", model, *sorted((head, tail))) < share for head, _, tail in path[:-1])


def _appeal(path, taste: float, stream: Stream) -> float:
    """Gumbel-perturbed preference: a draw by these is a draw without replacement with weights exp(taste ·
    strength)."""
    shared = traits()["shared_taste"]
    luck = shared * _gumbel(uniform("everyone", path)) + (1 - shared) * _gumbel(stream.uniform())
    return taste * true_strength(path) + luck - 0.25 * len(path)


def _gumbel(u: float) -> float:
    return -math.log(-math.log(min(max(u, 1e-12), 1 - 1e-12)))


def _spoilt(path, planted: dict, stream: Stream) -> list:
    """The path as given: a triple's relation replaced by one that does not hold, or a link that breaks the
    chain."""
    triples = [list(triple) for triple in path]
    for triple in triples[:-1]:
        if stream.uniform() < planted["hallucination"]:
            triple[1] = _false_relation(triple, stream)
    if len(triples) > 1 and stream.uniform() < planted["broken"]:
        triples[-2][2] = stream.choice(world().entities)
    return triples


def _false_relation(triple, stream: Stream) -> str:
    """A relation between the same kinds of entity that does not hold between these two."""
    names = [
        name
        for name in (
            "sibling",
            "student of",
            "influenced by",
            "named after",
            "founded by",
            "member of",
            "located in",
            "sponsor",
        )
        if not is_true((triple[0], name, triple[2]))
    ]
    return stream.choice(names)


def _earlier(request: dict) -> list:
    """The paths of the first answer in a conversation."""
    block = re.search(r"<answer>(.*)</answer>", message_text(request["messages"][1]), re.S)
    return list(json.loads(block[1]).values()) if block else []


def _notes(pool, chosen, stream: Stream) -> str:
    """A reasoning trace: what was looked at, with the repetitions that the paper remarks on."""
    looked = [stream.choice(pool) for _ in range(min(len(pool), len(chosen) // 2))] + chosen if pool else []
    lines = [f"- {head} ({relation}) {tail}" for path in looked for head, relation, tail in path[:-1]]
    return "Let me go through what the start entity is known for.\n" + "\n".join(lines)


def _judgement(request: dict, text: str, stream: Stream) -> str:
    """A judge's reply about one path; errors belong to judge and triple, so that the same triple errs
    alike."""
    judge, planted = request["model"], _entry("judges", request["model"])
    triples = [tuple(triple) for triple in json.loads(TRIPLES.search(text)[1])]
    if "hallucinated" in text:
        said = []
        for triple in triples:
            true = is_true(triple)
            right = (
                uniform("factual", judge, *triple)
                < planted["recall_factual" if true else "recall_not_factual"]
            )
            said.append("not hallucinated" if true == right else "hallucinated")
    else:
        said = [
            max(
                1,
                round(
                    world().class_size(triple)
                    * math.exp(planted["size_noise"] * normal("size", judge, *triple))
                ),
            )
            for triple in triples
        ]
    if stream.uniform() < planted["malformed"]:
        said = said[:-1]
    reply = json.dumps({"explanation": "Judged triple by triple.", "judgments": said})
    return f"```json\n{reply}\n```" if stream.uniform() < 0.1 else reply


def _question(text: str) -> str:
    head, kind, relation, tail = (
        re.search(pattern, text)[1]
        for pattern in (
            r'first thing: "(.+?)"',
            r"second thing: (.+)",
            r'the second thing: "(.+?)" is',
            r'" is "(.+?)"',
        )
    )
    who = "someone" if kind == "person" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    return f"What are different ways of connecting {head} and {who} of whom this is true: {relation} {tail}?"


def _extraction(text: str) -> str:
    found = [list(match) for match in NOTE.findall(text.split("Notes: ", 1)[1])]
    return json.dumps(
        {
            "entities": sorted({end for head, _, tail in found for end in (head, tail)}),
            "relations": sorted({relation for _, relation, _ in found}),
            "triples": [list(triple) for triple in sorted({tuple(triple) for triple in found})],
        },
        ensure_ascii=False,
    )


def _baseline(request: dict, text: str, stream: Stream) -> str:
    planted = _entry("models", request["model"])
    asked = re.search(r"three words: (\w+), (\w+), (\w+)\.", text)
    if asked:
        items = read_yaml(DATA / "instruments" / "create" / "baselines.yaml")["rat"]
        answer = next((item["answer"] for item in items if item["words"] == list(asked.groups())), "nothing")
        return answer if stream.uniform() < planted["rat"] else stream.choice(["stone", "paper", "house"])
    pool = traits()["uses" if "unusual uses" in text else "nouns"]
    return "\n".join(stream.shuffled(pool)[:10])
