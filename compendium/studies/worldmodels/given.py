"""World models: candidates from a folder that the reader has, Python files and replies in whatever nesting.

A file is known by what it holds: a class of the contract, or a JSON model. A reply that holds neither counts too, as
one that failed, where its path names model and case (left out, it would flatter its model). Whose a file is and of which
case is read from the innermost part of its path that says so, else from its first lines (`case: G4`, `model: …`).
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from compendium.frame.own_files import files_at
from compendium.frame.paths import from_root, shown
from compendium.studies.worldmodels.ask import KEYS, candidate_id, read_json, read_python
from compendium.studies.worldmodels.posg.scenarios import corpus

CASE = re.compile(r"(?<![A-Za-z0-9])([GSC])[ _-]?0*([1-9]\d?)(?![A-Za-z0-9])", re.IGNORECASE)
RUN = re.compile(r"(?<![A-Za-z])(?:run|sample|seed|attempt)[ _-]?0*(\d{1,3})(?!\d)", re.IGNORECASE)
ROUND = re.compile(r"(?<![A-Za-z])(?:repair|round)[ _-]?0*(\d{1,3})(?!\d)", re.IGNORECASE)
CLASS = re.compile(r"^class (?!AbstractPOSG\b)\w+", re.MULTILINE)
METHODS = ("players", "actions", "transition")
NEITHER = "no class of the contract and no JSON model in it"
NO_MODEL = "a reply without a world model: counts as one that failed"
HEADER = 12  # first lines that may say what a file is
MOST = 2_000_000  # bytes of a file that may be a candidate
PLACES = (  # where an API's reply keeps its text
    ("choices", 0, "message", "content"),
    ("Messages", 0, "Message", "Content"),
    ("content", 0, "text"),
    ("response",),
    ("reply",),
    ("text",),
    ("content",),
)


class GivenError(ValueError):
    """A folder of candidates that cannot be used; the message says why."""


@dataclass
class Given:
    """`replies` as a run of one's own makes them (columns KEYS and text); `report`, one row a file: file, taken (yes or
    no), track, model, case, condition, run, round, why (what told, or what was missing)."""

    replies: pd.DataFrame
    report: pd.DataFrame


def read_given(folder, subjects: dict, conditions) -> Given:
    """The candidates below `folder` (relative to the project's root, or a pattern).

    subjects : {slug: {label: …}} of the models that may occur, known by slug (with or without vendor) or label.
    conditions : the wordings of cultural cases; a file that names none is taken as the first.
    Files of one model, case and condition that name no run are numbered in the order of their paths. Raises
    GivenError where there is no candidate, or none of a model in `subjects`.
    """
    base, rows, taken = from_root(folder), [], {}
    files = []
    for path in files_at(str(folder)):
        place = path.relative_to(base) if base in path.parents else Path(path.name)
        files.append((place, *_what(path, place, subjects, list(conditions))))
    # a reply without a model takes no run from one that has one
    for place, found, text in sorted(files, key=lambda file: NO_MODEL in file[1].get("why", "")):
        if "why_not" not in found:
            found["run"] = found["run"] or _next_run(found, taken)
            key = candidate_id(found)
            if key in taken:
                found["why_not"] = f"the same model, case, condition, run and round as {taken[key][0]}"
            else:
                taken[key] = place.as_posix(), found, text
        rows.append({"file": place.as_posix(), "taken": "no" if "why_not" in found else "yes", **found})
    columns = ["file", "taken", *KEYS[1:], "why"]
    report = pd.DataFrame(
        [{**row, "why": row.pop("why_not", row.get("why"))} for row in rows], columns=columns
    )
    report = report.sort_values("file", kind="stable", ignore_index=True)
    if not taken:
        held = (
            f"{len(rows)} files, none of them a candidate: {report['file'][0]}: {report['why'][0]}"
            if rows
            else "no file"
        )
        raise GivenError(f"{shown(base)}: holds {held}")
    absent = [model for model in subjects if model not in set(report["model"][report["taken"] == "yes"])]
    if absent:
        raise GivenError(
            f"{shown(base)}: holds no candidate of {absent[0]}; `subjects` in params/worldmodels.yaml should list the "
            "models that it holds"
        )
    made = [[key, *(found[name] for name in KEYS[1:]), text] for key, (_, found, text) in taken.items()]
    return Given(pd.DataFrame(made, columns=[*KEYS, "text"]), report)


def _what(path: Path, place: Path, subjects: dict, conditions: list) -> tuple[dict, str]:
    """(what a file is taken for, its text); `why_not` says why it is taken for nothing."""
    try:
        text = _reply(path.read_bytes()[: MOST + 1])
    except UnicodeDecodeError:
        return {"why_not": "not text"}, ""
    if len(text) > MOST:
        return {"why_not": f"larger than {MOST // 1_000_000} MB"}, ""
    kind = _kind(text)
    header = "\n".join(text.splitlines()[:HEADER])
    parts = [place.stem, *reversed(place.parts[:-1]), header]
    case, case_at = _case(parts)
    model, model_at = _model([*parts[:-1], "\n".join(re.findall(r"(?im)^\W*model\s*:.*$", header))], subjects)
    if not case or not model:
        return {"why_not": NEITHER if not kind else case_at if not case else model_at}, ""
    track = corpus()[case].tier
    if not kind and ("first lines" in (case_at, model_at) or path.suffix.lower() == ".py"):
        return {"why_not": NEITHER}, ""
    if kind and (track == "cultural") != (kind == "JSON"):
        return {"why_not": f"{kind}, but {case} is a {track} case"}, ""
    named = re.split(r"[^a-z]+", " ".join(parts[:-1]).lower().replace("native_american", "nativeamerican"))
    condition = next((each for each in conditions if each.replace("_", "") in named), None)
    run, repair = _number(RUN, parts[:-1]), _number(ROUND, parts[:-1])
    told = f"{kind or NO_MODEL}; case from its {case_at}, model from its {model_at}"
    if track == "cultural" and condition is None:
        told += f"; no condition named, taken as {conditions[0]}"
    return {
        "track": track,
        "model": model,
        "case": case,
        "condition": (condition or conditions[0]) if track == "cultural" else "",
        "run": run,
        "round": repair or 0,
        "why": told,
    }, text


def _reply(data: bytes) -> str:
    """A file's text; of an API's reply, the text of its message."""
    text = data.decode("utf-8-sig")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for keys in PLACES:
        inner = content
        try:
            for key in keys:
                inner = inner[key]
        except (LookupError, TypeError):
            continue
        if isinstance(inner, str):
            return inner
    return text


def _kind(text: str) -> str:
    source = read_python(text)[0]
    if CLASS.search(source) and all(re.search(rf"\bdef {name}\b", source) for name in METHODS):
        return "Python"
    document = read_json(text)[0]
    return "JSON" if document and {"players", "states", "transitions"} <= document.keys() else ""


def _case(parts: list) -> tuple[str, str]:
    """(case id, where it was named), innermost first; ("", why not)."""
    for number, part in enumerate(parts):
        ids = {f"{letter.upper()}{digits}" for letter, digits in CASE.findall(part)} & set(corpus())
        if len(ids) > 1:
            return "", f"{_where(number, parts)} names several cases: {', '.join(sorted(ids))}"
        if ids:
            return ids.pop(), _where(number, parts)
    return "", "no case id (G4, S2, C9) in its name, its path or its first lines"


def _model(parts: list, subjects: dict) -> tuple[str, str]:
    spelt = {}
    for slug, entry in subjects.items():
        for name in (slug, slug.rpartition("/")[2], entry["label"]):
            spelt.setdefault(_plain(name), slug)
    for number, part in enumerate(parts):
        fits = sorted((name for name in spelt if name in _plain(part)), key=len)
        if fits and len({spelt[name] for name in fits if len(name) == len(fits[-1])}) == 1:
            return spelt[fits[-1]], _where(number, parts)
    return "", "no model of the roster (`subjects` in params/worldmodels.yaml) in its path or its first lines"


def _where(number: int, parts: list) -> str:
    return "name" if number == 0 else "first lines" if number == len(parts) - 1 else "path"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _number(pattern, parts: list) -> int | None:
    return next((int(match[1]) for match in map(pattern.search, parts) if match), None)


def _next_run(found: dict, taken: dict) -> int:
    mine = ("model", "case", "condition", "round")
    runs = [each["run"] for _, each, _ in taken.values() if all(each[key] == found[key] for key in mine)]
    return max(runs, default=0) + 1
