"""CREATE: released answers and their judgements, read by what a column means rather than by what a file is.

Columns come in other types and other lengths from file to file: lists as JSON or as Python text, scores for
all paths or only for those kept (`indices_to_keep`), one sample or several (`paths_0`, `paths_1`, …, or lists
within lists), flags as 1, 1.0, true or "True". `load_answers` brings them to one table of paths.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.asking.errors import InvalidReply
from compendium.frame.paths import shown
from compendium.studies.create.errors import CreateError
from compendium.studies.create.judging import (
    read_class_sizes,
    read_factuality,
    read_flag,
    read_number,
    specificity,
)
from compendium.studies.create.paths import (
    Pairs,
    Query,
    clean_name,
    decode,
    fault,
    parse_answer,
    path_key,
    path_text,
    read_path,
    read_triple,
)
from compendium.studies.create.records import (
    QUERY_KEYS,
    by_triple,
    column_name,
    depth,
    listed,
    missing,
    named,
    plain,
    read_records,
    roles_of,
    source_of,
)

SCALE = (1, 5)
PLACEHOLDERS = (0.0, -1.0)  # what a failed judgement leaves behind; 0 lies outside the scale
PATH_COLUMNS = [
    "source",
    "query",
    "sample",
    "path",
    "triples",
    "valid",
    "fault",
    "factual",
    "share_factual",
    "n_factual_triples",
    "strength",
    "weakest",
    "length",
    "repeat",
    "text",
]
QUERY_COLUMNS = ["source", "query", "text", "head", "relation", "tail", "n_paths", "class_relation"]
SCORE_KEYS = ("score", "rating", "specificity", "salience", "value")
FLAG_KEYS = ("factual", "factuality", "judgment", "judgement", "verdict", "label", "score", "value")
JUDGED = (
    "valid",
    "reason",
    "factual_triples",
    "factual_path",
    "factual_reply",
    "specific_triples",
    "specific_path",
    "specific_reply",
)


def query_row(source: str, query, n_paths: int) -> list:
    """A row of a table with `QUERY_COLUMNS`: one source's answer to one query."""
    asked = (query.index, query.text, query.head, query.relation, query.tail)
    return [source, *asked, n_paths, query.class_relation]


@dataclass(frozen=True)
class Answers:
    """One model's answers.

    queries : DataFrame with `QUERY_COLUMNS`, one row a query; n_paths counts paths before any filter,
        class_relation is the relation of the class that the query was made from ("" where the file is silent).
    paths : DataFrame with `PATH_COLUMNS`, one row a path: valid (as flagged, else the chain rule), factual
        0/1/NaN, share_factual, strength (specificity of the weakest triple, the final one left out unless
        alone, as released), weakest (the same over all triples), length, repeat (the same path stands
        earlier), text (what is embedded).
    problems : one sentence for everything that was not as it should be and could be got round.
    left_out : {reason: how often} of what was not taken as it stood.
    """

    source: str
    queries: pd.DataFrame
    paths: pd.DataFrame
    problems: list
    left_out: dict = field(default_factory=dict)


def load_answers(path) -> Answers:
    """The answers in a file (`create_records.read_records` says in what shapes), called as the file is, without
    its endings.

    Raises CreateError naming file, line and column: for what is no record, a query without its ends or given
    twice, a list of scores that fits neither all paths nor those kept, or a score off its scale (1 … 5).
    """
    path = Path(path)
    source, problems, left_out, queries, rows, seen = source_of(path), [], Counter(), [], [], {}
    for number, (place, record) in enumerate(read_records(path)):
        row = _Row(path, place, record, problems, left_out)
        query = row.query(number)
        content = repr(sorted((str(key), plain(value)) for key, value in record.items()))
        if query.index in seen:
            first, same = seen[query.index]
            if same != content:
                raise row.error(
                    f"query {query.index} stands in {first} already, with other content; one record a "
                    "query would be right, its samples as paths_0, paths_1, …"
                )
            row.note("repeats an earlier record word for word: left out", "repeated record")
            continue
        seen[query.index] = (place, content)
        made = [entry for sample in row.samples() for entry in row.sample(sample, query)]
        queries.append(query_row(source, query, len(made)))
        rows += [[source, *entry] for entry in made]
    if not queries:
        raise CreateError(
            f"{shown(path)}: holds no query; each line should be a JSON object with a query and its paths"
        )
    paths = pd.DataFrame(rows, columns=PATH_COLUMNS)
    for column, words in (("factual", "factuality"), ("strength", "specificity")):
        void = int((paths["valid"].astype(bool) & paths[column].isna()).sum())
        if void:
            left_out[f"valid path without usable {words}"] = void
            problems.append(
                f"{path.name}: {void} of {int(paths['valid'].sum())} valid paths have no usable "
                f"{words}: they count for nothing"
            )
    return Answers(source, pd.DataFrame(queries, columns=QUERY_COLUMNS), paths, problems, dict(left_out))


def query_of(row) -> Query:
    """The Query in a row of `Answers.queries`."""
    return Query(int(row["query"]), row["head"], row["relation"], row["tail"], row["text"])


def path_strength(scores) -> tuple[float, float]:
    """(strength, weakest) from a path's specificity scores, NaN where a score that counts is missing.

    `strength` leaves the final triple out unless it is the only one: the query demands that triple, so it
    says nothing about the model; the released min_salience_scores are made so. `weakest` is the paper's
    wording (3.2).
    """
    scores = np.asarray(scores, dtype=float)
    if scores.size == 0:
        return np.nan, np.nan
    return float((scores[:-1] if scores.size > 1 else scores).min()), float(scores.min())


class _Row:
    """One record of a file, asked for by role."""

    def __init__(self, path: Path, place: str, record: dict, problems: list, left_out: Counter):
        self.path, self.place, self.record, self.problems, self.left_out = (
            path,
            place,
            record,
            problems,
            left_out,
        )
        self.columns = {}
        for key in record:
            for role in roles_of(key):
                self.columns.setdefault(role, []).append(key)

    def error(self, words: str, key: str = "") -> CreateError:
        column = f", column {key!r}" if key else ""
        return CreateError(f"{shown(self.path)}, {self.place}{column}: {words}")

    def note(self, words: str, reason: str):
        self.problems.append(f"{self.path.name}, {self.place}: {words}")
        self.left_out[reason] += 1

    def query(self, number: int) -> Query:
        """The query; `number` is its place in the file, its index where the file gives none."""
        columns = {column_name(key): value for key, value in self.record.items()}
        found = {
            name: next((columns[key] for key in keys if not missing(columns.get(key), words=("",))), None)
            for name, keys in QUERY_KEYS.items()
        }
        ends = decode(columns.get("source_path")) or [columns.get(f"triple{n}_labels") for n in (1, 3)]
        ends = [read_triple(triple) for triple in ends if triple] if isinstance(ends, list) else []
        made_from = ends[0][1] if ends and len(ends[0]) == 3 else ""
        if len(ends) > 1 and all(len(triple) == 3 for triple in ends):
            for name, value in (("head", ends[0][0]), ("relation", ends[-1][1]), ("tail", ends[-1][2])):
                found[name] = found[name] if found[name] is not None else value
        for name in ("head", "relation", "tail"):
            if not clean_name(found[name]):
                raise self.error(
                    f"the query's {name} is missing; looked for {', '.join(QUERY_KEYS[name])}, source_path"
                )
        digits = re.fullmatch(r"\D*?(\d+)(?:\.0+)?", str(found["index"]).strip())
        if found["index"] is not None and not digits:
            self.note(
                f"the query's number {found['index']!r} is none: its place in the file is taken",
                "query number",
            )
        return Query(
            int(digits[1]) if digits else number,
            *(clean_name(found[name]) for name in ("head", "relation", "tail", "text")),
            made_from,
        )

    def get(self, role: str, number: int):
        """(column, value) of a role, its text form undone; (None, None) where no column of it holds
        anything."""
        for key in self.columns.get((role, number), ()):
            value = decode(self.record[key])
            if isinstance(value, Pairs) and role == "reply" and isinstance(self.record[key], str):
                return key, self.record[key]
            if not missing(value):
                return key, listed(value, role)
        return None, None

    def samples(self) -> list[int]:
        """The numbers of the samples: those of the columns, else of the lists within one column."""
        for role, deep in (("kept", 4), ("all", 4), ("reply", 1)):
            names = [key for (found, _), keys in self.columns.items() if found == role for key in keys]
            stem = re.sub(r"_?\d*$", "", column_name(names[0])) if names else ""
            numbers = {
                number
                for key in names
                for found, number in roles_of(key)
                if found == role and re.fullmatch(rf"{stem}_?\d*", column_name(key))
            }
            _, value = self.get(role, 0)
            if isinstance(value, list) and numbers == {0} and depth(value, role != "reply") >= deep:
                return list(range(len(value)))
            if numbers and (role == "kept" or value is not None or numbers != {0}):
                return sorted(numbers)
        return [0]

    def part(self, role: str, number: int):
        """(column, value) of a role for one sample: its own column, or its place in a list of all samples."""
        key, value = self.get(role, number)
        if value is None and number:
            key, value = self.get(role, 0)
        elif number:
            return key, value
        deep = {"kept": 4, "all": 4, "factual_triples": 3, "specific_triples": 3, "reply": 1}.get(role, 2)
        if role in ("factual_path", "specific_path") and len(self.samples()) == 1:
            deep = 3  # lists within: marks by triple, not samples
        if depth(value, role.split("_")[-1] not in ("reply", "reason")) >= deep:
            return key, decode(value[number]) if number < len(value) else None
        return (key, value) if not number else (None, None)

    def sample(self, number: int, query: Query) -> list:
        """Rows of the table (without the source) for one sample."""
        everything, kept, keep = self._path_lists(number)
        paths = everything if everything is not None else kept
        lengths, positions = {len(paths)}, list(range(len(paths)))
        if keep is not None and everything is not None:
            lengths = {len(paths), len(keep)}
        elif keep is not None:
            lengths, positions = {max(keep, default=-1) + 1, len(keep)}, keep
        given = {role: self._aligned(role, number, positions, keep, lengths) for role in JUDGED}
        rows, seen = [], set()
        for i, path in enumerate(paths):
            if not path:
                self.note(f"path {i} is empty: left out", "empty path")
                continue
            key = path_key(path)
            judged = {role: None if values is None else values[i] for role, values in given.items()}
            rows.append(
                [
                    query.index,
                    number,
                    i,
                    path,
                    *self._judged(path, judged, query, i),
                    len(path),
                    key in seen,
                    path_text(path),
                ]
            )
            seen.add(key)
        return rows

    def _path_lists(self, number: int):
        """(all paths or None, kept paths or None, indices kept or None), each path a tuple of triples."""
        everything, kept = (self._paths(*self.part(role, number)) for role in ("all", "kept"))
        keep = self._keep(number, everything)
        if everything is None and kept is None:
            key, reply = self.part("reply", number)
            while isinstance(reply, list) and reply:
                reply = reply[0]
            if isinstance(reply, Pairs):
                reply = json.dumps(plain(reply))
            if isinstance(reply, str):
                answer = parse_answer(reply)
                for words in answer.problems:
                    self.note(words, "answer not as asked")
                everything = answer.paths
            elif not any((role, number) in self.columns for role in ("all", "kept", "reply")) and not number:
                raise self.error("holds no paths; looked for paths_0, parsed_paths, path_prediction")
            else:
                self.note(f"sample {number} holds no answer", "answer missing")
                everything = []
        if everything is not None and keep is not None and max(keep, default=-1) >= len(everything):
            if kept is None:
                key, _ = self.part("keep", number)
                raise self.error(f"names path {max(keep)}, there are {len(everything)}", key)
            self.note(
                f"path {max(keep)} is kept but {len(everything)} are given: those kept are used",
                "other paths",
            )
            everything = None
        if everything is not None and keep is None and kept is not None and len(kept) != len(everything):
            self.note(
                f"{len(everything)} parsed paths but {len(kept)} kept ones, and no indices: those kept are "
                "used",
                "other paths",
            )
            everything = None
        if everything is None and keep is not None and len(keep) != len(kept):
            if max(keep, default=-1) >= len(kept):
                raise self.error(
                    f"names {len(keep)} paths, there are {len(kept)}", self.part("keep", number)[0]
                )
            everything = kept  # nothing was taken out: the numbers only say what counts
        return everything, kept, keep

    def _keep(self, number: int, everything):
        """Indices of the paths that a file kept, from numbers or from a mask of true and false; or None."""
        key, keep = self.part("keep", number)
        if keep is None:
            return None
        if not isinstance(keep, list):
            raise self.error("should be a list of path numbers", key)
        if keep and all(isinstance(entry, bool) for entry in keep):
            if everything is not None and len(everything) != len(keep):
                raise self.error(f"marks {len(keep)} paths, there are {len(everything)}", key)
            return [place for place, taken in enumerate(keep) if taken]
        numbers = [read_number(entry) for entry in keep]
        if any(entry is None or entry < 0 or entry != int(entry) for entry in numbers):
            raise self.error("should be a list of path numbers (0, 1, …)", key)
        return [int(entry) for entry in numbers]

    def _paths(self, key: str, value):
        """Each path of a column as a tuple of triples, () for one that is missing; None for no column."""
        if isinstance(value, str) and ("[" in value or "{" in value):
            answer = parse_answer(value)  # text that is not whole JSON: what can be read is
            if answer.paths:
                for words in answer.problems:
                    self.note(words, "answer not as asked")
                return answer.paths
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(f"should hold paths (lists of triples), not {str(value)[:40]!r}", key)
        paths = [() if missing(path) else read_path(path) for path in value]
        for i, path in enumerate(paths):
            if path is None:
                raise self.error(
                    f"path {i} is {str(plain(value[i]))[:40]!r}, should be a list of triples", key
                )
        return [] if paths == [()] else paths

    def _aligned(self, role: str, number: int, positions: list, keep, lengths: set):
        """A role's list with one entry a path of ours, or None where the file has none."""
        key, value = self.part(role, number)
        if value is None:
            return None
        value = listed(value, role)
        if not isinstance(value, list):
            raise self.error(f"should be a list with one entry a path, not {str(value)[:40]!r}", key)
        n = len(positions)
        if not n:
            return []
        if keep is not None and len(value) == len(keep) and len(keep) != n:
            there = dict(zip(keep, value))
            return [there.get(position) for position in positions]
        if len(value) == n:
            return value
        if keep is not None and len(value) > max(positions):
            return [value[position] for position in positions]
        wanted = " or ".join(map(str, sorted(lengths)))
        raise self.error(f"holds {len(value)} entries, should hold {wanted} (one a path)", key)

    def _judged(self, path, judged: dict, query: Query, i: int) -> list:
        """[valid, fault, factual, share_factual, n_factual_triples, strength, weakest] of one path."""
        valid = read_flag(named(judged["valid"], FLAG_KEYS))
        words = (
            fault(path, query)
            if valid is None
            else ""
            if missing(judged["reason"])
            else str(judged["reason"])
        )
        facts, whole = self._facts(judged, len(path), i)
        scores, strength = self._scores(judged, len(path), i)
        truth = (
            [whole, np.nan, np.nan] if facts is None else map(float, (facts.all(), facts.mean(), facts.sum()))
        )
        return [
            not words if valid is None else valid,
            words,
            *truth,
            *((strength, np.nan) if scores is None else path_strength(scores)),
        ]

    def _facts(self, judged: dict, length: int, i: int):
        """(flags by triple or None, flag of the whole path or NaN)."""
        value, whole = by_triple(judged["factual_triples"], judged["factual_path"], "factual_triples")
        if value is None and isinstance(judged["factual_reply"], str):
            try:
                value = read_factuality(judged["factual_reply"], length)
            except InvalidReply as error:
                self.note(f"path {i}: {error}", "factuality void")
        flag = read_flag(named(whole, FLAG_KEYS))
        flag = np.nan if flag is None else float(flag)
        if not value:
            return None, flag
        flags = [read_flag(named(entry, FLAG_KEYS)) for entry in value]
        if len(flags) != length or None in flags:
            self.note(
                f"path {i}: {len(flags)} factuality marks for {length} triples, or one that is unclear: void",
                "factuality void",
            )
            return None, flag
        return np.array(flags, dtype=bool), flag

    def _scores(self, judged: dict, length: int, i: int):
        """(scores by triple or None, score of the whole path or NaN)."""
        value, whole = by_triple(judged["specific_triples"], judged["specific_path"], "specific_triples")
        if value is None and isinstance(judged["specific_reply"], str):
            try:
                value = specificity(read_class_sizes(judged["specific_reply"], length)).tolist()
            except InvalidReply as error:
                self.note(f"path {i}: {error}", "specificity void")
        if value:
            scores = np.array([self._on_scale(entry, "specific_triples", i) for entry in value])
            if len(scores) == length:
                return scores, np.nan
            self.note(
                f"path {i}: {len(scores)} specificity scores for {length} triples: void", "specificity void"
            )
        return None, np.nan if whole is None else self._on_scale(whole, "specific_path", i)

    def _on_scale(self, value, role: str, i: int) -> float:
        value = named(value, SCORE_KEYS)
        number = None if missing(value) else read_number(value)
        if number is None or number in PLACEHOLDERS:
            self.note(
                f"path {i}: the specificity score {value!r} stands for a missing one: void",
                "specificity void",
            )
            return np.nan
        if isinstance(value, bool) or not SCALE[0] <= number <= SCALE[1] or number != round(number):
            key = next((names[0] for (name, _), names in self.columns.items() if name == role), role)
            raise self.error(
                f"path {i} has the score {value!r}; specificity is a whole number from 1 to 5", key
            )
        return float(number)
