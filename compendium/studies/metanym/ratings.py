"""Reading ratings: a table with a row an archetype, or files of judges' replies in the authors' layout.

All give one tidy frame: columns run, anchor, evaluator, target, archetype, pc1 … pc5, beauty, intelligence,
distinctness, length, structure; a row an archetype, by its position in the judge's block; NaN where the judge
gave nothing. `compendium.studies.metanym.game.build_game` makes the array. Columns are found by meaning, not by place.
"""

import difflib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.asking.errors import InvalidReply
from compendium.frame.files import read_csv
from compendium.frame.paths import from_root, shown
from compendium.studies.metanym.evaluation import parse_evaluation
from compendium.studies.metanym.game import KEYS, SCORES, MetanymError

ALIASES = {
    "evaluator": ("evaluator", "judge", "rater"),
    "target": ("target", "submission", "generator", "portfolio"),
    "archetype": ("archetype", "archetype_index", "position"),
    "anchor": ("anchor", "anchor_score", "theta"),
    "run": ("run",),
    "beauty": ("beauty",),
    "intelligence": ("intelligence",),
    "distinctness": ("distinctness", "instantiation_distinctness"),
    "length": ("length", "impressive_length"),
    "structure": ("structure", "diversity", "structural_diversity"),
    **{f"pc{k}": (f"pc{k}", f"factual_{k}", f"factual_pc{k}") for k in range(1, 6)},
}
STRICT = "strict_json"
FILE_NAME = re.compile(r"eval_(?P<evaluator>.+)_x_(?P<target>.+)\.json$")


def read_table(
    path, *, roster=None, spelling=None, strict: bool = True, run: int = 1, anchor: int | None = None
) -> pd.DataFrame:
    """Ratings from a CSV with a row an archetype; columns may have any order and the names in `ALIASES`.

    roster: the models that may occur (None: any); spelling: {name in the file: name in the paper}; strict:
    drop the rows whose column `strict_json` is 0 (blocks that a strict parser refuses count as not returned);
    run: the run's number where the file has no such column; anchor: where the reference was pinned, where it has
    no such column (0: nowhere, and then such a column may say 0).
    Raises MetanymError naming file and line for a missing column, a name off the roster, or a rating that is
    no whole number from 0 to 10 (0 is a judge's placeholder).
    """
    path, frame = from_root(path), read_csv(path, error=MetanymError)
    lines = np.arange(len(frame)) + 2
    found = {
        name: next((alias for alias in names if alias in frame.columns), None)
        for name, names in ALIASES.items()
    }
    given = {"run": run, "anchor": anchor}
    absent = [name for name, column in found.items() if column is None and given.get(name) is None]
    if absent:
        raise MetanymError(
            f"{shown(path)}: has no column for {absent[0]!r} (looked for {', '.join(ALIASES[absent[0]])})"
        )
    tidy = pd.DataFrame({name: frame[column] for name, column in found.items() if column is not None})
    for name in ("evaluator", "target"):
        tidy[name] = tidy[name].replace(spelling or {})
        _check_names(tidy[name], roster, path, lines)
    for name in SCORES:
        tidy[name] = _scores(tidy[name], name, path, lines)
    for name in ("run", "anchor", "archetype"):
        least = 0 if (name, anchor) == ("anchor", 0) else 1
        tidy[name] = _whole(tidy[name], name, path, lines, least) if name in tidy else given[name]
    if strict and STRICT in frame.columns:
        tidy = tidy[frame[STRICT].astype(int) == 1]
    return tidy[[*KEYS, *SCORES]].reset_index(drop=True)


def _check_names(names: pd.Series, roster, path, lines) -> None:
    if roster is None:
        return
    wrong = ~names.isin(list(roster))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        near = difflib.get_close_matches(str(names.iloc[at]), list(roster), n=1)
        hint = (
            f"did you mean {near[0]!r} (see `spelling` in params/metanym.yaml)?"
            if near
            else f"it has {', '.join(roster)}"
        )
        raise MetanymError(
            f"{shown(path)}, line {lines[at]}: {names.name} {names.iloc[at]!r} is not on the roster; {hint}"
        )


def _scores(values: pd.Series, name: str, path, lines) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    off_scale = (numbers < 0) | (numbers > 10) | (numbers % 1 != 0)
    wrong = values.notna() & (numbers.isna() | off_scale)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise MetanymError(
            f"{shown(path)}, line {lines[at]}: {name} is {values.iloc[at]}; a rating is a whole number from "
            "1 to 10 (0: a placeholder, empty: missing)"
        )
    return numbers.astype(float)


def _whole(values: pd.Series, name: str, path, lines, least: int = 1) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = numbers.isna() | (numbers % 1 != 0) | (numbers < least)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise MetanymError(
            f"{shown(path)}, line {lines[at]}: {name} is {values.iloc[at]!r}; should be a whole number from {least}"
        )
    return numbers.astype(int)


def read_folder(
    folder, *, anchors: dict, roster=None, spelling=None, run: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings from the authors' layout: `<sub-folder>/eval_<evaluator>_x_<target>.json`, see `read_replies`.

    anchors: {sub-folder's name: anchor value}, e.g. {"probe_K_5": 5}. Raises MetanymError for a sub-folder that is
    not there or empty, and as `read_replies`.
    """
    folder, files = Path(folder), []
    for name, anchor in anchors.items():
        paths = sorted((folder / name).glob("eval_*_x_*.json"))
        if not paths:
            raise MetanymError(f"{shown(folder / name)}: no files eval_<evaluator>_x_<target>.json")
        files += [(path, anchor) for path in paths]
    return read_replies(files, roster=roster, spelling=spelling, run=run)


def read_replies(
    files, *, roster=None, spelling=None, strict: bool = True, run: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings from files `eval_<evaluator>_x_<target>.json`, each an API reply whose `Messages[0].Message.Content`
    ends with the judge's block.

    files: [(path, anchor)]. Returns (tidy ratings, voids): a reply that gives no scores, or with `strict` is no
    strict JSON, is a void (columns anchor, evaluator, target, kind, detail) and is left out.
    Raises MetanymError for a file that is no API reply or a name off the roster.
    """
    parts, voids = [], []
    for path, anchor in files:
        names = FILE_NAME.search(path.name).groupdict()
        names = {key: (spelling or {}).get(value, value) for key, value in names.items()}
        for key, value in names.items():
            _check_names(pd.Series([value], name=key), roster, path, [1])
        try:
            evaluation = parse_evaluation(reply_text(path))
            if strict and not evaluation.strict:
                raise InvalidReply("not strict JSON", "; ".join(evaluation.notes))
            parts.append(evaluation.rows(run, int(anchor), names["evaluator"], names["target"]))
        except InvalidReply as reason:
            voids.append({"anchor": int(anchor), **names, "kind": reason.kind, "detail": reason.detail})
    tidy = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*KEYS, *SCORES])
    return tidy, pd.DataFrame(voids, columns=["anchor", "evaluator", "target", "kind", "detail"])


def reply_text(path) -> str:
    """The text of the first message of an API reply. Raises MetanymError where the file holds none."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        text = content["Messages"][0]["Message"]["Content"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise MetanymError(
            f"{shown(path)}: not an API reply with Messages[0].Message.Content ({type(error).__name__})"
        ) from None
    if not isinstance(text, str):
        raise MetanymError(f"{shown(path)}: Messages[0].Message.Content is not text")
    return text


def oddities(frame: pd.DataFrame) -> pd.DataFrame:
    """What judges did that was not asked, counted by evaluation: a row a kind (count, example).

    Kinds: four, six or other numbers of archetypes; a placeholder archetype all 1 or all 0; an empty
    archetype.
    """
    unit = list(KEYS[:-1])
    scores = frame[list(SCORES[:-1])].to_numpy(dtype=float)
    size = frame.groupby(unit)["archetype"].transform("count").to_numpy()
    kinds = {
        "fewer than four archetypes": size < 4,
        "four archetypes": size == 4,
        "six archetypes": size == 6,
        "an archetype rated 1 throughout": (scores == 1).all(axis=1),
        "an archetype rated 0 throughout": (scores == 0).all(axis=1),
        "an empty archetype": np.isnan(scores).all(axis=1),
    }
    rows = []
    for kind, mask in kinds.items():
        hits = frame[mask].drop_duplicates(unit)
        example = "" if hits.empty else "{evaluator} on {target}, anchor {anchor}".format(**hits.iloc[0])
        rows.append({"kind": kind, "evaluations": len(hits), "example": example})
    return pd.DataFrame(rows)
