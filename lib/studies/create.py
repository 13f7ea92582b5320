"""CREATE: released answers and their judgements, read by what a column means rather than by what a file is.

A file holds one query a line. Columns come in other types and other lengths from file to file: lists as JSON
or as Python text, scores for all paths or only for those kept (`indices_to_keep`), one sample or several
(`paths_0`, `paths_1`, …), flags as 1, 1.0, true or "True". `load_answers` brings them to one table of paths.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.connections import Pairs, Query, decode, fault, parse_answer, path_key, path_text, read_triple
from lib.models.errors import InvalidReply
from lib.paths import shown
from lib.studies.create_judging import read_class_sizes, read_factuality, read_flag, read_number, specificity

SCALE = (1, 5)
PLACEHOLDERS = (0.0, -1.0)  # what a failed judgement leaves behind; 0 lies outside the scale
PATH_COLUMNS = ["source", "query", "sample", "path", "triples", "valid", "fault", "factual", "share_factual",
                "n_factual_triples", "strength", "weakest", "length", "repeat", "text"]
# Column names are compared in lower case without their sample number; of several that fit, the first pattern
# wins.
ROLES = {
    "kept": r"(kept_|filtered_)?paths",
    "all": r"(parsed|all|predicted)_paths",
    "reply": r"(raw_)?(path_)?(prediction|response|answer)s?(_raw)?",
    "valid": r"valid(ity)?(_?(per_?path|scores?|flags?))*|(is_)?valid",
    "reason": r"valid(ity)?_?reasons?",
    "factual_triples": r"parsed_(scores?_)?factual(ity)?(_scores?)?|factual(ity)?_(scores?_)?per_?(triple|relation)s?",
    "factual_path": r"factual(ity)?(_scores?)?(_per_?path)?",
    "factual_reply": r"raw_responses?_factual(ity)?|factual(ity)?_raw_responses?",
    "specific_triples": r"raw_(salience|specificity|strength)(_scores?)?|(salience|specificity)_(scores?_)?per_?triples?",
    "specific_path": r"min_(salience|specificity|strength)(_scores?)?",
    "specific_reply": r"(salience|specificity)_raw_responses?|raw_responses?_(salience|specificity)",
    "keep": r"ind(ices|exes|ex)_to_keep|keep_ind(ices|exes)|kept_ind(ices|exes)",
}
QUERY_KEYS = {
    "index": ("index", "query_index", "query_id", "qid", "id"),
    "text": ("query", "question", "natural_language_query"),
    "head": ("entity_a", "head", "head_entity", "start_entity", "entity1"),
    "relation": ("rel_b", "relation", "relation_b", "target_relation"),
    "tail": ("entity_b", "tail", "tail_entity", "target_entity", "entity2"),
}


class CreateError(ValueError):
    """A file of answers that cannot be read; the message names file, line and column, and what would be
    right."""


@dataclass(frozen=True)
class Answers:
    """One model's answers.

    queries : DataFrame, one row a query: query, text, head, relation, tail, n_paths (generated, before any
        filter).
    paths : DataFrame with `PATH_COLUMNS`, one row a path: valid (as flagged, else the chain rule), factual
        0/1/NaN, share_factual, strength (specificity of the weakest triple, the final one left out unless
        alone, as released), weakest (the same over all triples), length, repeat (the same path stands
        earlier), text (what is embedded).
    problems : one sentence for everything that was not as it should be and could be got round.
    """

    source: str
    queries: pd.DataFrame
    paths: pd.DataFrame
    problems: list


def load_answers(path, source: str | None = None) -> Answers:
    """The answers in a JSON-lines (or JSON list) file; `source` names them, the file's stem by default.

    Raises CreateError naming file, line and column: for a line that is no JSON object, a query without its
    ends, a list of scores that fits neither all paths nor those kept, or a score off its scale (1 … 5).
    """
    path = Path(path)
    problems, queries, frames, seen = [], [], [], {}
    for line, record in _records(path):
        row = _Row(path, line, record, problems)
        query = row.query()
        if query.index in seen:
            raise CreateError(
                f"{shown(path)}, line {line}: query {query.index} stands in line {seen[query.index]} already"
            )
        seen[query.index] = line
        samples = [row.sample(number, query) for number in row.samples()]
        n_paths = sum(n for n, _ in samples)
        queries.append([query.index, query.text, query.head, query.relation, query.tail, n_paths])
        frames += [frame for _, frame in samples]
    if not queries:
        raise CreateError(
            f"{shown(path)}: holds no query; each line should be a JSON object with a query and its paths"
        )
    rows = [entry for frame in frames for entry in frame]
    table = pd.DataFrame(rows, columns=PATH_COLUMNS[1:])
    table.insert(0, "source", source or path.stem)
    columns = ["query", "text", "head", "relation", "tail", "n_paths"]
    return Answers(source or path.stem, pd.DataFrame(queries, columns=columns), table, problems)


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


def _records(path: Path):
    """(line, object) of a JSON-lines file; a file that is one JSON list gives its elements."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CreateError(
            f"{shown(path)}: cannot be read ({error}); it should be JSON lines in UTF-8"
        ) from None
    if text.lstrip().startswith("["):
        try:
            found = [*enumerate(json.loads(text), 1)]
        except ValueError as error:
            raise CreateError(f"{shown(path)}: starts as a JSON list but is none ({error})") from None
    else:
        found = []
        for line, content in enumerate(text.split("\n"), 1):
            if content.strip():
                try:
                    found.append((line, json.loads(content)))
                except ValueError as error:
                    raise CreateError(
                        f"{shown(path)}, line {line}: not JSON ({error}); each line should hold one "
                        "query as a JSON object"
                    ) from None
    for line, record in found:
        if not isinstance(record, dict):
            raise CreateError(
                f"{shown(path)}, line {line}: should be a JSON object, not a {type(record).__name__}"
            )
    return found


class _Row:
    """One line of a file, asked for by role."""

    def __init__(self, path: Path, line: int, record: dict, problems: list):
        self.path, self.line, self.record, self.problems = path, line, record, problems
        self.columns = {}
        for key in record:
            name, number = re.fullmatch(r"(.*?)(?:_(\d+))?", key.lower()).groups()
            for role, pattern in ROLES.items():
                if re.fullmatch(pattern, name):
                    self.columns.setdefault((role, int(number or 0)), []).append(key)

    def error(self, words: str, key: str = "") -> CreateError:
        column = f", column {key!r}" if key else ""
        return CreateError(f"{shown(self.path)}, line {self.line}{column}: {words}")

    def note(self, words: str):
        self.problems.append(f"{self.path.name}, line {self.line}: {words}")

    def query(self) -> Query:
        lower = {key.lower(): value for key, value in self.record.items()}
        found = {name: next((lower[key] for key in keys if lower.get(key) not in (None, "")), None)
                 for name, keys in QUERY_KEYS.items()}
        ends = decode(lower.get("source_path")) or [decode(lower.get(f"triple{n}_labels")) for n in (1, 3)]
        if all(isinstance(triple, list) and len(triple) == 3 for triple in ends):
            for name, value in (("head", ends[0][0]), ("relation", ends[-1][1]), ("tail", ends[-1][2])):
                found[name] = found[name] if found[name] is not None else value
        for name in ("head", "relation", "tail"):
            if found[name] is None:
                raise self.error(
                    f"the query's {name} is missing; looked for {', '.join(QUERY_KEYS[name])}, source_path"
                )
        index = self.line - 1 if found["index"] is None else int(float(found["index"]))
        return Query(
            index, str(found["head"]), str(found["relation"]), str(found["tail"]), str(found["text"] or "")
        )

    def samples(self) -> list[int]:
        numbers = {number for role, number in self.columns if role == "kept"}
        if not numbers:
            _, value = self.get("all", 0)
            if isinstance(value, list) and _depth(value) == 4:
                numbers = set(range(len(value)))
        return sorted(numbers or {0})

    def get(self, role: str, number: int):
        """(column, value) of a role, its text form undone; (None, None) where no column of it holds
        anything."""
        for key in self.columns.get((role, number), ()):
            value = decode(self.record[key])
            if value is not None and not (isinstance(value, float) and np.isnan(value)):
                return key, value
        return None, None

    def sample(self, number: int, query: Query):
        """(paths generated, rows of the table) of one sample."""
        everything, kept, keep = self._path_lists(number)
        paths = everything if everything is not None else kept
        lengths = {len(paths)}
        positions = list(range(len(paths)))
        if keep is not None:
            lengths = (
                {len(paths), len(keep)} if everything is not None else {max(keep, default=-1) + 1, len(keep)}
            )
            if everything is None:
                positions = keep
        given = {role: self._aligned(role, number, positions, keep, lengths) for role in
                 ("valid", "reason", "factual_triples", "factual_path", "factual_reply", "specific_triples",
                  "specific_path", "specific_reply")}
        rows, seen = [], set()
        for i, path in enumerate(paths):
            if not path:
                self.note(f"path {i} is empty: left out of the count")
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
        return len(rows), rows

    def _path_lists(self, number: int):
        """(all paths or None, kept paths or None, indices kept or None), each path a tuple of triples."""
        key, keep = self.get("keep", number)
        if keep is None and number:
            key, keep = self.get("keep", 0) if len(self.samples()) == 1 else (None, None)
        if keep is not None:
            if not isinstance(keep, list) or any(read_number(entry) is None for entry in keep):
                raise self.error("should be a list of path numbers", key)
            keep = [int(read_number(entry)) for entry in keep]
        lists = []
        for role in ("all", "kept"):
            key, value = self.get(role, number)
            if value is None and role == "all":
                key, value = self.get(role, 0)
            if isinstance(value, Pairs):
                value = [entry for _, entry in value.items]
            if value is not None and not isinstance(value, list):
                raise self.error(f"should hold paths (lists of triples), not {str(value)[:40]!r}", key)
            if value and role == "all" and _depth(value) >= 4:
                value = decode(value[number]) if number < len(value) else None
            elif value == [[]]:
                value = []
            lists.append(None if value is None else self._paths(value, key))
        everything, kept = lists
        if everything is None and kept is None:
            key, reply = self.get("reply", number)
            reply = reply[0] if isinstance(reply, list) and reply else reply
            if not isinstance(reply, str):
                raise self.error("holds no paths; looked for paths_0, parsed_paths, path_prediction")
            answer = parse_answer(reply)
            self.problems += [f"{self.path.name}, line {self.line}: {words}" for words in answer.problems]
            everything = answer.paths
        if everything is not None and keep is not None and max(keep, default=-1) >= len(everything):
            everything = None
        if everything is not None and keep is None and kept is not None and len(kept) != len(everything):
            self.note(
                f"{len(everything)} parsed paths but {len(kept)} kept ones, and no indices: those kept are used"
            )
            everything = None
        return everything, kept, keep

    def _paths(self, value: list, key: str) -> list:
        paths = []
        for i, path in enumerate(value):
            path = decode(path)
            if isinstance(path, Pairs):
                path = [entry for _, entry in path.items]
            if not isinstance(path, list):
                raise self.error(f"path {i} is {str(path)[:40]!r}, should be a list of triples", key)
            paths.append(tuple(read_triple(triple) for triple in path))
        return paths

    def _aligned(self, role: str, number: int, positions: list, keep, lengths: set):
        """A role's list with one entry a path of ours, or None where the file has none."""
        key, value = self.get(role, number)
        if value is None:
            return None
        if isinstance(value, Pairs):
            value = [entry for _, entry in value.items]
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
        valid = read_flag(judged["valid"])
        words = fault(path, query) if valid is None else str(judged["reason"] or "")
        if valid is None:
            valid = not words
        facts = self._facts(judged, len(path), i)
        whole = read_flag(judged["factual_path"])
        share = float(facts.mean()) if facts is not None else np.nan
        factual = float(facts.all()) if facts is not None else (np.nan if whole is None else float(whole))
        scores = self._scores(judged, len(path), i)
        strength, weakest = path_strength(scores) if scores is not None else (np.nan, np.nan)
        if scores is None and judged["specific_path"] is not None:
            strength = self._on_scale(judged["specific_path"], "specific_path", i)
        return [
            bool(valid),
            words,
            factual,
            share,
            np.nan if facts is None else float(facts.sum()),
            strength,
            weakest,
        ]

    def _facts(self, judged: dict, length: int, i: int):
        value = decode(judged["factual_triples"])
        if not value and isinstance(judged["factual_reply"], str):
            try:
                value = read_factuality(judged["factual_reply"], length)
            except InvalidReply as error:
                self.note(f"path {i}: {error}")
        if not isinstance(value, list) or not value:
            return None
        flags = [read_flag(entry) for entry in value]
        if len(flags) != length or None in flags:
            self.note(
                f"path {i}: {len(flags)} factuality marks for {length} triples, or one that is unclear: void"
            )
            return None
        return np.array(flags, dtype=bool)

    def _scores(self, judged: dict, length: int, i: int):
        value = decode(judged["specific_triples"])
        if not value and isinstance(judged["specific_reply"], str):
            try:
                value = specificity(read_class_sizes(judged["specific_reply"], length)).tolist()
            except InvalidReply as error:
                self.note(f"path {i}: {error}")
        if not isinstance(value, list) or not value:
            return None
        scores = np.array([self._on_scale(entry, "specific_triples", i) for entry in value])
        if len(scores) != length:
            self.note(f"path {i}: {len(scores)} specificity scores for {length} triples: void")
            return None
        return scores

    def _on_scale(self, value, role: str, i: int) -> float:
        number = read_number(value)
        if number is None or number in PLACEHOLDERS:
            self.note(f"path {i}: the specificity score {value!r} stands for a missing one: void")
            return np.nan
        if not SCALE[0] <= number <= SCALE[1] or number != round(number):
            key = next((names[0] for (name, _), names in self.columns.items() if name == role), role)
            raise self.error(
                f"path {i} has the score {value!r}; specificity is a whole number from 1 to 5", key
            )
        return float(number)


def _depth(value) -> int:
    """How deep lists are nested, by the first entry that is not empty; a triple of strings has depth 1."""
    value = decode(value)
    if isinstance(value, Pairs):
        value = [entry for _, entry in value.items]
    if not isinstance(value, list):
        return 0
    return 1 + max((_depth(entry) for entry in value[:3]), default=0)
