"""What the game asks: requests for portfolios, un-anchored batches, anchored evaluations, and the keyed test."""

import pandas as pd

from compendium.asking.request import Request
from compendium.studies.metanym.exam import shuffled_options
from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.prompts import evaluation_prompt, generation_prompt, gpqa_prompt, raw_prompt


def generation_requests(p) -> list[Request]:
    """One portfolio a player and run. Run k has seed + k and is sample k - 1 of the same prompt.

    `p` holds players, runs, seed, temperature, max_tokens. Tags: run, model.
    """
    return [
        _request(
            p, name, generation_prompt(), p.max_tokens, seed=p.seed + run, sample=run - 1, run=run, model=name
        )
        for run in p.runs
        for name in p.players
    ]


def raw_requests(p, portfolios: pd.DataFrame) -> list[Request]:
    """The un-anchored pass over run 1's portfolios: each player rates all others' in one batch, under neutral
    ids.

    Tags: evaluator, ids {id: model}.
    """
    texts = portfolio_texts(portfolios, min(p.runs))
    requests = []
    for judge in p.players:
        ids = {f"S{place:02d}": name for place, name in enumerate(texts, 1) if name != judge}
        prompt = raw_prompt({key: texts[name] for key, name in ids.items()})
        requests.append(_request(p, judge, prompt, p.judge_max_tokens, evaluator=judge, ids=ids))
    return requests


def judge_requests(p, portfolios: pd.DataFrame) -> list[Request]:
    """Every player rates every other portfolio beside the frozen reference: all anchors in the first run, the
    production anchor in the later ones. Nobody rates the own portfolio, and the reference is not rated.

    Tags: run, anchor, evaluator, target. Raises MetanymError where the reference is missing.
    """
    first = min(p.runs)
    reference = portfolio_texts(portfolios, first).get(p.anchor_model)
    if reference is None:
        raise MetanymError(
            f"the anchor model {p.anchor_model} has no portfolio in run {first}: nothing can be pinned"
        )
    requests = []
    for run in p.runs:
        texts = portfolio_texts(portfolios, run)
        for anchor in p.anchors if run == first else [p.production]:
            for judge in p.players:
                for target, text in texts.items():
                    if target not in (judge, p.anchor_model):
                        requests.append(
                            _request(
                                p,
                                judge,
                                evaluation_prompt(text, reference, anchor),
                                p.judge_max_tokens,
                                run=run,
                                anchor=anchor,
                                evaluator=judge,
                                target=target,
                            )
                        )
    return requests


def exam_requests(p, questions, cap: int, only=None) -> list[Request]:
    """The keyed test: each question to each player, its options shuffled by the question's index alone.

    questions: [{"question", "options"}], the right option first; only: pairs (model, index) to ask (None:
    all).
    Tags: model, question (index), key.
    """
    requests = []
    for index, entry in enumerate(questions):
        options, key = shuffled_options(index, entry["options"], p.exam_seed)
        prompt = gpqa_prompt(entry["question"], options)
        requests += [
            _request(p, name, prompt, cap, model=name, question=index, key=key)
            for name in p.players
            if only is None or (name, index) in only
        ]
    return requests


def portfolio_texts(portfolios: pd.DataFrame, run: int) -> dict:
    """{model: text} of one run's portfolios that are there (columns run, model, text)."""
    mine = portfolios[(portfolios["run"] == run) & (portfolios["text"].fillna("") != "")]
    return dict(zip(mine["model"], mine["text"]))


def _request(p, name, prompt, max_tokens, *, seed=None, sample=0, **tag) -> Request:
    return Request(
        p.players[name]["slug"],
        [{"role": "user", "content": prompt}],
        temperature=p.temperature,
        max_tokens=max_tokens,
        seed=p.seed if seed is None else seed,
        sample=sample,
        tag=tag,
    )
