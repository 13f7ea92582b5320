"""AlienBench: what is asked of the models and of the judges, from the instruments the paper prints."""

import functools

import numpy as np
import pandas as pd

from compendium.asking.request import Request, known
from compendium.frame.files import read_utf8, read_yaml
from compendium.frame.paths import DATA
from compendium.studies.alienbench.data import GENERATION, HUMAN, KEYS

INSTRUMENTS = DATA / "instruments" / "alienbench"


@functools.cache
def prompts() -> dict:
    """{condition or wording id: prompt text}, word for word (paper, Tables 2 and 8)."""
    content = read_yaml(INSTRUMENTS / "prompts.yaml")
    entries = {**content["conditions"], **content["paraphrases"]}
    return {name: entry["text"].strip() for name, entry in entries.items()}


@functools.cache
def boundary_rules() -> dict:
    """{feature id: {label, default, departures, rule, …}} (paper, Tables 1 and 5)."""
    entries = read_yaml(INSTRUMENTS / "features.yaml")
    return {entry["id"]: entry for entry in entries}


@functools.cache
def judge_prompt() -> tuple[str, str]:
    """The judges' system prompt and user template, the features filled in (paper, Appendix B)."""
    system, user = (read_utf8(INSTRUMENTS / name).strip() for name in ("judge_system.txt", "judge_user.txt"))
    block = "\n".join(
        f"- {name}: Earth default: {entry['default']}. Example departures: {entry['departures']}. "
        f"Boundary rule: {entry['rule']}"
        for name, entry in boundary_rules().items()
    )
    return system, user.replace("{dimensions}", block)


def samples(conditions, wordings, n_samples: int, n_samples_paraphrase: int) -> dict:
    """{condition or paraphrase id: generations a model}; the baseline is a condition and a wording, once."""
    return {
        **dict.fromkeys(conditions, n_samples),
        **{name: n_samples_paraphrase for name in wordings if name not in conditions},
    }


def generation_requests(
    subjects, counts: dict, *, seed: int, temperature: float, max_tokens: int, n_human: int = 0
) -> list[Request]:
    """One request a description, in the order model, condition, sample.

    Parameters
    ----------
    subjects : model slugs.
    counts : {condition: generations a model}, as `samples` gives it.
    seed : of sample 0; sample i is asked with seed + i.
    n_human : baseline descriptions asked of the simulated people (demo only).

    Raises RequestError for a condition that the instruments do not have.
    """
    asked = [(model, condition, i) for model in subjects for condition, n in counts.items() for i in range(n)]
    asked += [(HUMAN, "baseline", i) for i in range(n_human)]
    texts = {
        condition: known(prompts(), condition, "condition or wording") for condition in (*counts, "baseline")
    }
    return [
        Request(
            model,
            [{"role": "user", "content": texts[condition]}],
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed + i,
            sample=i,
            tag={"model": model, "condition": condition, "sample_index": i},
        )
        for model, condition, i in asked
    ]


def judge_requests(
    generations: pd.DataFrame, texts, judges, *, max_tokens: int, features=()
) -> list[Request]:
    """One request a description and judge, at temperature 0 (paper, section 3: Models).

    `generations` as 01_generate makes it, `texts` the descriptions in the same order; `features` are the ids that
    will be read from the replies. Raises RequestError for a feature that the judges are not asked about.
    """
    for feature in features:
        known(boundary_rules(), feature, "feature")
    system, template = judge_prompt()
    return [
        Request(
            judge,
            [
                {"role": "system", "content": system},
                {"role": "user", "content": template.replace("{description}", text)},
            ],
            temperature=0.0,
            max_tokens=max_tokens,
            tag={**dict(zip(KEYS[:4], row)), "judge": judge},
        )
        for judge in judges
        for row, text in zip(generations[KEYS[:4]].itertuples(index=False), texts, strict=True)
    ]


def generations_frame(requests, replies) -> tuple[pd.DataFrame, list[str]]:
    """The generations table (columns `GENERATION`) and their texts; a void or empty reply has no row."""
    rows, texts = [], []
    for request, reply in zip(requests, replies, strict=True):
        if reply.void_reason is None and reply.text.strip():
            tag = request.tag
            rows.append(
                [
                    request.key[:32],
                    tag["model"],
                    tag["condition"],
                    tag["sample_index"],
                    reply.completion_tokens,
                    len(reply.text.split()),
                ]
            )
            texts.append(reply.text)
    return pd.DataFrame(rows, columns=GENERATION), texts


def labels_frame(requests, replies, features) -> pd.DataFrame:
    """The labels table (columns `KEYS`, the features), one row a judge and description; void replies are NaN."""
    rows = []
    for request, reply in zip(requests, replies, strict=True):
        values = reply.parsed if reply.void_reason is None and reply.parsed is not None else {}
        rows.append(
            [*(request.tag[name] for name in KEYS), *(values.get(feature, np.nan) for feature in features)]
        )
    return pd.DataFrame(rows, columns=[*KEYS, *features]).astype(dict.fromkeys(features, float))
