"""World models: asking, repairing, judging; the tables that the notebooks hand to each other."""

import functools
import json
import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pandas as pd

import compendium.asking.study
from compendium.frame.paths import from_root
from compendium.studies.worldmodels.ask import (
    KEYS,
    candidate_id,
    features,
    generation_requests,
    judge_requests,
    read_flags,
    read_json,
    read_python,
    repair_request,
)
from compendium.studies.worldmodels.posg.lanes import LaneOne, lane_one
from compendium.studies.worldmodels.posg.sandbox import run_candidate
from compendium.studies.worldmodels.posg.scenarios import corpus
from compendium.studies.worldmodels.tables import read_documents

USUAL_MODEL = "word " * 1500  # a model of usual length, for estimates
LANES = [*KEYS, "parse", "recovery", "contract", "probe", "lane1", "problem"]


def generate(p, ask, *, trust: bool = False) -> tuple[pd.DataFrame, list]:
    """(replies, stage reports): every first pass, and repair rounds where a game or situation was rejected.

    Columns of replies: KEYS and text. A candidate is rejected where Lane 1 finds a problem; the first one is
    handed back, `p.repair_rounds[track][run]` times at most. Repairs are rows of their own (round 1, 2, ...).
    """
    requests, rows, reports = generation_requests(p), [], []
    while requests:
        result = ask(requests, "generating" if not rows else "repairing")
        reports.append(result.report)
        texts = [reply.text if reply.valid else reply.raw for reply in result.replies]
        tags = [request.tag for request in requests]
        rows += [[candidate_id(tag), *(tag[key] for key in KEYS[1:]), text] for tag, text in zip(tags, texts)]
        judged = lanes([(tag["track"], text) for tag, text in zip(tags, texts)], trust=trust)
        requests = [
            repair_request(request, text, verdict.problem)
            for request, text, verdict in zip(requests, texts, judged)
            if not verdict.one.valid and request.tag["round"] < _rounds(p, request.tag)
        ]
    return pd.DataFrame(rows, columns=[*KEYS, "text"]), reports


def _rounds(p, tag) -> int:
    allowed = p.repair_rounds.get(tag["track"], [])
    return allowed[tag["run"] - 1] if tag["run"] <= len(allowed) else 0


def lanes(items, *, trust: bool = False) -> list[SimpleNamespace]:
    """Lane 1 of many replies, [(track, text)] in order: parse, recovery, one (LaneOne), problem.

    Python runs in the sandbox, each candidate in a process of its own, as many at a time as there are cores.
    `trust` : run it unisolated where isolation cannot be had (see compendium.studies.worldmodels.posg.sandbox).
    """
    sources = list(dict.fromkeys(text for track, text in items if track != "cultural"))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(functools.partial(_python_lane, trust=trust), sources))  # fills the cache, in any order
    return [
        _json_lane(text) if track == "cultural" else _python_lane(text, trust=trust) for track, text in items
    ]


@functools.lru_cache(maxsize=4096)
def _python_lane(text: str, *, trust: bool) -> SimpleNamespace:
    source, parse, recovery = read_python(text)
    if parse == "void":
        return _failed(parse, recovery, recovery)
    verdict = run_candidate(source, allow_unisolated=trust)
    if verdict.status != "ok":
        return _failed(parse, recovery, f"{verdict.status}: {verdict.message}")
    return _read(parse, recovery, verdict.document)


@functools.lru_cache(maxsize=4096)
def _json_lane(text: str) -> SimpleNamespace:
    document, parse, recovery = read_json(text)
    return _failed(parse, recovery, recovery) if parse == "void" else _read(parse, recovery, document)


def _failed(parse, recovery, problem) -> SimpleNamespace:
    return SimpleNamespace(
        parse=parse, recovery=recovery, problem=problem, document=None, one=LaneOne({"contract": (problem,)})
    )


def _read(parse, recovery, document) -> SimpleNamespace:
    one = lane_one(document)
    return SimpleNamespace(
        parse=parse,
        recovery=recovery,
        problem=one.first_problem,
        one=one,
        document=document if one.game is not None else None,
    )


def judge(replies: pd.DataFrame, *, trust: bool = False) -> tuple[pd.DataFrame, dict[str, str]]:
    """(candidates, documents): Lane 1 of every reply. Columns LANES; documents {id: canonical JSON} of those that
    pass contract and probe."""
    verdicts = lanes(list(zip(replies["track"], replies["text"])), trust=trust)
    table = replies[KEYS].assign(
        parse=[v.parse for v in verdicts],
        recovery=[v.recovery for v in verdicts],
        **{
            name: [v.one.passed(gate) for v in verdicts]
            for name, gate in (("contract", "contract"), ("probe", "probe"), ("lane1", "audit"))
        },
        problem=[v.problem for v in verdicts],
    )
    documents = {
        name: json.dumps(v.one.game.document(), ensure_ascii=False)
        for name, v in zip(replies["id"], verdicts)
        if v.one.game is not None
    }
    return table[LANES], documents


def unusable(candidates: pd.DataFrame) -> dict:
    """{model: why} of the models none of whose candidates (LANES) runs and passes the contract."""
    found = {}
    for model, mine in candidates.groupby("model", sort=False):
        if not mine["contract"].any():
            found[model] = (
                f"none of {len(mine)} candidates runs; the first ({mine['id'].iloc[0]}): {mine['problem'].iloc[0]}"
            )
    return found


def flags(
    candidates: pd.DataFrame, documents: dict, ask, *, judge: str, seed: int
) -> tuple[pd.DataFrame, object]:
    """(flags, stage report): what the judge flags in each candidate; columns id, case, feature, flag ("": none).

    A reply that stays unreadable leaves its candidate's flags missing (NaN).
    """
    requests = judge_requests(candidates, documents, judge=judge, seed=seed)
    result = ask(requests, "flagging", parse=read_flags)
    rows = []
    for request, reply in zip(requests, result.replies, strict=True):
        for name, _, _ in features(corpus()[request.tag["case"]]):
            flag = reply.parsed.get(name, "") if reply.valid else None
            rows.append([request.tag["id"], request.tag["case"], name, flag])
    return pd.DataFrame(rows, columns=["id", "case", "feature", "flag"]), result.report


def planned(p, out) -> dict:
    """{stage: requests} of a live run; a model that is not written yet is stood in for by one of usual length.

    Repairs hang on what comes and are not counted; the ceiling holds for them as for every call.
    """
    asked = generation_requests(p)
    flagged = pd.DataFrame(
        [
            [candidate_id(request.tag), *(request.tag[key] for key in KEYS[1:])]
            for request in asked
            if request.tag["track"] == "cultural"
        ],
        columns=KEYS,
    )
    path = from_root(out) / "worldmodels" / "models.jsonl"
    written = read_documents(path) if path.is_file() else {}
    documents = {name: written.get(name, USUAL_MODEL) for name in flagged["id"]}
    return {"generating": asked, "flagging": judge_requests(flagged, documents, judge=p.judge, seed=p.seed)}


def asking(p, *, source: str, profile: str, out):
    """`compendium.asking.study.asking` for this study and the models that `p` names."""
    named = {*getattr(p, "subjects", {}), *filter(None, [getattr(p, "judge", None)])}
    return compendium.asking.study.asking("worldmodels", named, source=source, profile=profile, out=out)
