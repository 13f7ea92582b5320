"""CREATE: what is asked of the models, the judges and the query writer, from data/instruments/create."""

import functools
import json

from compendium.asking.request import Request, known
from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.create.paths import Query

INSTRUMENTS = DATA / "instruments" / "create"
VARIATIONS = ("original", "creative", "verbalized", "iterate", "resample")


@functools.cache
def prompts() -> dict:
    """{name: text with fields in braces}."""
    entries = read_yaml(INSTRUMENTS / "prompts.yaml")
    return {name: entry["text"].strip() for name, entry in entries.items()}


@functools.cache
def baseline_items() -> dict:
    """{"rat": [{words, answer}], "aut": [object]}."""
    return read_yaml(INSTRUMENTS / "baselines.yaml")


@functools.cache
def rubric() -> str:
    """The rubric for a set's creativity (paper, appendix E.3), one level a line."""
    levels = read_yaml(INSTRUMENTS / "rubric.yaml")["levels"]
    return "\n".join(f"{level}: {text}" for level, text in levels.items())


def triples_text(path) -> str:
    """A path as the judges see it: a JSON list of triples."""
    return json.dumps([list(triple) for triple in path], ensure_ascii=False)


def _braces(template: str) -> str:
    """A template's doubled braces as they are meant; before anything of a stranger's is filled in."""
    return template.replace("{{", "{").replace("}}", "}")


def question(query: Query, variation: str = "original") -> str:
    """The first prompt of an answer. Raises ValueError for an unknown variation."""
    if variation not in VARIATIONS:
        raise ValueError(f"variation {variation!r} is not one of {', '.join(VARIATIONS)}")
    extra = {"creative": prompts()["be_creative"], "verbalized": prompts()["verbalized"]}.get(variation, "")
    extra = _braces(extra)
    return prompts()["generate"].format(
        query=query.text, head=query.head, relation=query.relation, tail=query.tail, extra=extra
    )


def writing_requests(drawn, store, *, model: str, seed: int) -> list[Request]:
    """One request a query: its text, to be written by a model (section 4)."""
    text = prompts()["write_query"]
    return [
        Request(
            model,
            [
                {
                    "role": "user",
                    "content": text.format(
                        head=query.head,
                        head_kind=store.kinds.get(query.head, "entity"),
                        relation=query.relation,
                        tail=query.tail,
                        kind=store.kinds.get(path.second[0], "entity"),
                        hidden=path.second[0],
                    ),
                }
            ],
            temperature=0.0,
            seed=seed,
            max_tokens=300,
            tag={"query": query.index},
        )
        for query, path in drawn
    ]


def generation_requests(queries, subjects: dict, runs: dict, *, seed: int, n_resamples: int) -> list[Request]:
    """One request an answer, in the order model, variation, query, sample; `iterate` needs `follow_ups`
    besides.

    Parameters
    ----------
    subjects : {source name: {model, temperature, max_tokens, extra}} (params `subjects`).
    runs : {source name: {variation: number of queries, from the first}}.
    n_resamples : independent answers of the variation `resample`; sample 0 is that of `original`, and is not
        asked twice: equal requests are one.
    """
    asked = []
    for source, variations in runs.items():
        for variation, n in variations.items():
            for query in queries[:n]:
                for sample in range(n_resamples if variation == "resample" else 1):
                    asked.append(
                        _request(
                            known(subjects, source, "runs: subject"),
                            [question(query, variation)],
                            seed + sample,
                            sample,
                            {
                                "source": source,
                                "variation": variation,
                                "query": query.index,
                                "sample": sample,
                            },
                        )
                    )
    return asked


def follow_ups(requests, replies, queries, subjects: dict, *, seed: int) -> list[Request]:
    """The second turn of every `iterate` answer whose first turn came: the first answer stays in the
    conversation."""
    by_index = {query.index: query for query in queries}
    asked = []
    for request, reply in zip(requests, replies, strict=True):
        if request.tag["variation"] == "iterate" and reply.valid:
            query = by_index[request.tag["query"]]
            turns = [
                request.messages[0]["content"],
                reply.raw or reply.text,  # the first turn as it was said
                prompts()["iterate"].format(query=query.text),
            ]
            asked.append(
                _request(subjects[request.tag["source"]], turns, seed, 0, {**request.tag, "sample": 1})
            )
    return asked


def judge_requests(paths, judge: str, *, max_tokens: int, seed: int) -> list[Request]:
    """Two requests a path, factuality then specificity, at temperature 0; `paths` yields (key, triples)."""
    return [
        Request(
            judge,
            [
                {
                    "role": "user",
                    "content": _braces(prompts()[kind]).replace("{triples}", triples_text(triples)),
                }
            ],
            temperature=0.0,
            max_tokens=max_tokens,
            seed=seed,
            tag={"path": key, "kind": kind, "n": len(triples)},
        )
        for key, triples in paths
        for kind in ("factuality", "specificity")
    ]


def trace_requests(traces, model: str, *, seed: int) -> list[Request]:
    """One request a reasoning trace; `traces` yields (key, text)."""
    text = _braces(prompts()["trace"])
    return [
        Request(
            model,
            [{"role": "user", "content": text.replace("{trace}", trace)}],
            temperature=0.0,
            seed=seed,
            max_tokens=8000,
            tag={"trace": key},
        )
        for key, trace in traces
    ]


def baseline_requests(subjects: dict, *, seed: int, n_aut: int, n_dat: int) -> list[Request]:
    """Every item of the three human creativity tests for every subject (appendix K)."""
    items = baseline_items()
    asked = [("rat", ", ".join(item["words"]), 0) for item in items["rat"]]
    asked += [("aut", name, sample) for name in items["aut"] for sample in range(n_aut)]
    asked += [("dat", "", sample) for sample in range(n_dat)]
    texts = {
        "rat": lambda item: prompts()["rat"].format(words=item),
        "aut": lambda item: prompts()["aut"].format(object=item),
        "dat": lambda item: prompts()["dat"],
    }
    return [
        _request(
            subject,
            [texts[test](item)],
            seed + sample,
            sample,
            {"source": source, "test": test, "item": item, "sample": sample},
        )
        for source, subject in subjects.items()
        for test, item, sample in asked
    ]


def _request(subject: dict, turns: list, seed: int, sample: int, tag: dict) -> Request:
    """A request to a subject; `turns` alternate between user and assistant."""
    messages = [
        {"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(turns)
    ]
    return Request(
        subject["model"],
        messages,
        temperature=subject.get("temperature"),
        max_tokens=subject.get("max_tokens"),
        extra=subject.get("extra") or {},
        seed=seed,
        sample=sample,
        tag=tag,
    )
