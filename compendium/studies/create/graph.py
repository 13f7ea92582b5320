"""A store of (head, relation, tail) triples, and queries made from it (CREATE, section 4 and algorithm 1).

Reads the shipped closed-world graph (CSV), an extract of Wikidata's JSON dump (one entity a line, .gz and
.bz2 too) or a SPARQL result file. A class C(r, c) is the set of heads that stand in relation r to c; a query
joins two members of a class through a further fact about one of them.
"""

import bz2
import csv
import gzip
import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from compendium.frame.paths import DATA, shown
from compendium.studies.create.paths import Query

# The closed-world graph that ships.
DEFAULT_GRAPH, DEFAULT_RELATIONS = DATA / "graphs" / "fictional.csv", DATA / "graphs" / "relations.csv"
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
SPARQL_NAMES = (
    ("head", "item", "subject", "s"),
    ("relation", "property", "predicate", "prop", "p"),
    ("tail", "value", "object", "o"),
)


class TripleError(ValueError):
    """A graph file or a choice of classes that cannot be used; the message names file and line, and what
    would be right."""


@dataclass(frozen=True)
class SourcePath:
    """How a query came to be: (first, r, c), (second, r, c), (second, relation, tail): one strong path
    exists."""

    first: tuple
    second: tuple
    last: tuple

    @property
    def triples(self) -> tuple:
        return (self.first, self.second, self.last)

    @property
    def description(self) -> str:
        """Which class it comes from: `tail__relation`."""
        return f"{self.first[2]}__{self.first[1]}"


class TripleStore:
    """Triples of labels, looked up from any side.

    Parameters
    ----------
    triples : iterable of (head, relation, tail); repeats are dropped, order is kept.
    inverses : {relation: the name of the same fact told from its tail}, e.g. {"cast member": "acted in"};
        such triples are true too, but queries are made from the given ones alone.
    kinds : {entity: kind}, e.g. "person"; multiplicity : {relation: how many entities of the wider world each
        entity here stands for} (1 where absent), which turns counts into class sizes.
    """

    def __init__(self, triples, inverses=None, kinds=None, multiplicity=None):
        self.triples = list(dict.fromkeys(map(tuple, triples)))
        self.inverses, self.kinds = dict(inverses or {}), dict(kinds or {})
        self.multiplicity = dict(multiplicity or {})
        for relation, inverse in self.inverses.items():
            self.multiplicity.setdefault(inverse, self.multiplicity.get(relation, 1))
        told_back = [
            (tail, self.inverses[relation], head)
            for head, relation, tail in self.triples
            if relation in self.inverses
        ]
        self.facts = dict.fromkeys([*self.triples, *told_back])
        self._out, self._heads, self._tails = defaultdict(list), defaultdict(set), defaultdict(set)
        for head, relation, tail in self.facts:
            self._out[head].append((relation, tail))
            self._heads[relation, tail].add(head)
            self._tails[head, relation].add(tail)

    def told_from_both_ends(self) -> "TripleStore":
        """The same facts, each relation with an inverse: the given one, else "is <relation> of"."""
        inverses = {relation: f"is {relation} of" for _, relation, _ in self.triples}
        return TripleStore(self.triples, {**inverses, **self.inverses}, self.kinds, self.multiplicity)

    def __len__(self):
        return len(self.triples)

    def __contains__(self, triple) -> bool:
        """Whether a triple is true here, told from either side. In a closed world, what is not here is
        false."""
        return tuple(triple) in self.facts

    @property
    def entities(self) -> list:
        """All heads and tails, sorted."""
        return sorted({end for head, _, tail in self.triples for end in (head, tail)})

    def out(self, entity: str) -> list:
        """[(relation, tail)] of an entity, in file order, facts told back after those given."""
        return self._out.get(entity, [])

    def heads(self, relation: str, tail: str) -> list:
        """The class C(relation, tail), sorted."""
        return sorted(self._heads.get((relation, tail), ()))

    def tails(self, head: str, relation: str) -> list:
        """Everything that `head` stands in `relation` to, sorted."""
        return sorted(self._tails.get((head, relation), ()))

    def class_size(self, triple) -> int:
        """How many entities could stand at the wider end of a triple: the larger of the two classes it lies
        in, each counted here and scaled by the relation's multiplicity; the triple itself counts even where
        it is false."""
        head, relation, tail = triple
        heads = self._heads.get((relation, tail), set()) | {head}
        tails = self._tails.get((head, relation), set()) | {tail}
        return max(len(heads), len(tails)) * self.multiplicity.get(relation, 1)


def load_graph(path, relations=None) -> TripleStore:
    """A graph as CSV with columns head, relation, tail (and head_kind, tail_kind), and its relations as CSV
    with columns relation, inverse, multiplicity. Raises TripleError naming file and line."""
    path = Path(path)
    triples, kinds = [], {}
    for line, row in _csv_rows(path, ("head", "relation", "tail")):
        triple = tuple(row[name].strip() for name in ("head", "relation", "tail"))
        if not all(triple):
            raise TripleError(
                f"{shown(path)}, line {line}: a triple needs head, relation and tail, found {triple}"
            )
        triples.append(triple)
        for end in ("head", "tail"):
            if row.get(f"{end}_kind"):
                kinds[row[end].strip()] = row[f"{end}_kind"].strip()
    inverses, multiplicity = {}, {}
    for line, row in _csv_rows(Path(relations), ("relation", "inverse", "multiplicity")) if relations else ():
        inverses[row["relation"]] = row["inverse"]
        try:
            multiplicity[row["relation"]] = int(row["multiplicity"])
        except ValueError:
            raise TripleError(
                f"{shown(relations)}, line {line}: multiplicity {row['multiplicity']!r} should be a whole "
                "number"
            ) from None
    return TripleStore(triples, inverses, kinds, multiplicity)


def load_wikidata(path, labels=None, language: str = "en") -> TripleStore:
    """Triples from an extract of Wikidata's JSON dump: one entity a line (a trailing comma and the dump's own
    brackets are allowed), plain, .gz or .bz2; also in the simplified form {"labels": {"en": "…"}, "claims":
    {"P54": ["Q9"]}}.

    Statements whose value is an entity are taken, deprecated ones left out, and where a property has
    preferred statements only those (Wikidata's "truthy" rule). Ids are replaced by labels from `labels` {id:
    label}, then from the extract itself, in `language` or for all languages ("mul"); an id without a label
    stays. Raises TripleError for a line that is no entity.
    """
    path = Path(path)
    names, kinds, found = {}, {}, []
    for line, text in _lines(path):
        text = text.strip().rstrip(",")
        if text in ("", "[", "]"):
            continue
        try:
            entity = json.loads(text)
            key, claims = entity["id"], dict(entity.get("claims") or {})
            given = entity.get("labels") or {}
            label = next((given[name] for name in (language, "mul") if name in given), None)
            found += [
                (key, relation, value)
                for relation, statements in claims.items()
                for value in _truthy(statements)
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise TripleError(
                f"{shown(path)}, line {line}: should be one Wikidata entity as JSON with an `id`"
            ) from None
        if label:
            names[key] = label["value"] if isinstance(label, dict) else str(label)
    names |= labels or {}
    for head, relation, tail in found:
        if relation == "P31":
            kinds.setdefault(names.get(head, head), names.get(tail, tail))
    return TripleStore((tuple(names.get(part, part) for part in triple) for triple in found), kinds=kinds)


def _truthy(statements) -> list:
    """Ids of the entities that a property's statements name."""
    full = [statement for statement in statements if isinstance(statement, dict) and "mainsnak" in statement]
    usable = [statement for statement in full if statement.get("rank") != "deprecated"]
    preferred = [statement for statement in usable if statement.get("rank") == "preferred"]
    snaks = [statement["mainsnak"] or {} for statement in preferred or usable]
    values = [(snak.get("datavalue") or {}).get("value") for snak in snaks] if full else list(statements)
    ids = [
        value.get("id") or f"Q{value.get('numeric-id')}" if isinstance(value, dict) else value
        for value in values
    ]
    return [key for key in ids if isinstance(key, str) and re.fullmatch(r"[QPL]\d+", key)]


def read_labels(path) -> dict:
    """{id: label} from a CSV with columns id and label. Raises TripleError where it is none."""
    return {row["id"].strip(): row["label"].strip() for _, row in _csv_rows(Path(path), ("id", "label"))}


def load_sparql(path) -> TripleStore:
    """Triples from a SPARQL result in JSON, full (results.bindings) or flat (a list of rows): variables head,
    relation, tail (or item/property/value, s/p/o), each preferring its `…Label`. Raises TripleError where the
    file is no result or a row lacks one of the three."""
    path = Path(path)
    try:
        with _open(path) as handle:
            value = json.load(handle)
        rows = value if isinstance(value, list) else value["results"]["bindings"]
        rows = [
            {key: item["value"] if isinstance(item, dict) else str(item) for key, item in row.items()}
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise TripleError(f"{shown(path)}: should be a SPARQL result in JSON (results.bindings)") from None
    triples = []
    for number, row in enumerate(rows):
        named = [
            next((row[key] for name in names for key in (f"{name}Label", name) if key in row), None)
            for names in SPARQL_NAMES
        ]
        if None in named:
            names = SPARQL_NAMES[named.index(None)]
            raise TripleError(
                f"{shown(path)}, row {number}: lacks the variable {names[0]} (or {', '.join(names[1:])})"
            )
        triples.append(tuple(named))
    return TripleStore(triples)


def load_store(path, relations=None, labels=None) -> TripleStore:
    """Any of the three, told by its content: CSV with a header, a SPARQL result, or Wikidata JSON lines (with
    `labels`, a CSV of id and label, for ids that the extract does not name)."""
    path = Path(path)
    try:
        with _open(path) as handle:
            start = handle.read(4096).lstrip()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TripleError(
            f"{shown(path)}: cannot be read ({error}); it should be text, plain, .gz or .bz2"
        ) from None
    if path.suffix == ".csv":
        return load_graph(path, relations)
    flat = re.match(r"\[\s*\{", start) and not re.search(r'"(labels|claims|id)"\s*:', start)
    if flat or '"bindings"' in start or '"vars"' in start:
        return load_sparql(path)
    return load_wikidata(path, read_labels(labels) if labels else None)


def classes(store: TripleStore, chosen=None, smallest: int = 3, largest: int = 12, both_ends=False) -> dict:
    """{(relation, tail): members} of compact classes: `smallest` to `largest` members.

    chosen : the (relation, tail) pairs to use, as the paper's authors chose theirs by hand; all pairs by
        default.
    both_ends : also classes of what one head stands in a relation to (the cast of a film), told from the
        tails: the definition has heads only, five of the 23 released queries come from such classes.
    Raises TripleError for a chosen pair without members.
    """
    pairs = (
        dict.fromkeys((relation, tail) for _, relation, tail in (store.facts if both_ends else store.triples))
        if chosen is None
        else chosen
    )
    found = {}
    for relation, tail in pairs:
        members = store.heads(relation, tail)
        if chosen is not None and not members:
            raise TripleError(f"no entity stands in the relation {relation!r} to {tail!r}")
        if smallest <= len(members) <= largest:
            found[relation, tail] = members
    return found


def expansions(store: TripleStore, entity: str, other: str, avoid: tuple, uninformative=()) -> list:
    """Outgoing facts of `entity` that make a query from `other` worth asking: not the class's own relation,
    not one of the `uninformative` relations, not about `other`, and not true of `other` itself (else the
    answer is one step)."""
    given = set(store.triples)
    return [
        (entity, relation, tail)
        for relation, tail in store.out(entity)
        if (entity, relation, tail) in given
        and relation not in (avoid[0], *uninformative)
        and tail not in (other, entity, avoid[1])
        and (other, relation, tail) not in store
    ]


def build_queries(
    store: TripleStore,
    found: dict,
    n: int,
    rng: np.random.Generator,
    *,
    per_class: int = 3,
    uninformative=(),
    most_per_head: int = 2,
    least_chains: int = 0,
) -> list:
    """`n` queries with their source paths, [(Query, SourcePath)], drawn from the classes (algorithm 1).

    Unordered pairs within a class; one of the two, at random, is expanded by one hop. At most `per_class`
    queries a class and `most_per_head` a head; no (head, relation, tail) twice; none with fewer than
    `least_chains` answers of up to four triples in the store. Raises TripleError where there are fewer.
    """
    drawn, heads, taken = [], defaultdict(int), set()
    names = list(found)
    for position in rng.permutation(len(names)):
        relation, tail = names[position]
        pairs = list(combinations(found[relation, tail], 2))
        used = 0
        for number in rng.permutation(len(pairs)):
            first, second = pairs[number] if rng.random() < 0.5 else pairs[number][::-1]
            options = expansions(store, second, first, (relation, tail), uninformative)
            if used == per_class or not options or heads[first] == most_per_head:
                continue
            last = options[int(rng.integers(len(options)))]
            query = Query(0, first, *last[1:])
            if (
                (first, *last[1:]) in taken
                or least_chains
                and len(chains(store, query, most=least_chains)) < least_chains
            ):
                continue
            taken.add((first, *last[1:]))
            heads[first] += 1
            used += 1
            drawn.append(SourcePath((first, relation, tail), (second, relation, tail), last))
    if len(drawn) < n:
        raise TripleError(
            f"{len(drawn)} queries can be made from {len(found)} classes, {n} were asked for: widen the "
            f"classes, raise per_class, or lower least_chains (now {least_chains})"
        )
    return [
        (
            Query(index, path.first[0], path.last[1], path.last[2], query_text(path, store), path.first[1]),
            path,
        )
        for index, path in enumerate(drawn[:n])
    ]


def chains(store: TripleStore, query: Query, hops: int = 3, most: int = 1500) -> tuple:
    """True chains that answer a query, shortest first: at most `hops` triples, then (anything, relation,
    tail); no entity twice, at most `most` chains. In a closed world these are all the answers of that length
    there are."""
    goals = {entity for entity in store.heads(query.relation, query.tail) if entity != query.head}
    away, queue = dict.fromkeys(goals, 0), deque(sorted(goals))
    while queue:  # how many triples each entity lies from a goal: nothing farther than `hops` is looked at
        entity = queue.popleft()
        for _, other in store.out(entity) if away[entity] < hops else ():
            if other not in away:
                away[other] = away[entity] + 1
                queue.append(other)
    found, open_ = [], deque([((), query.head)])
    while open_ and len(found) < most:
        path, end = open_.popleft()
        if end in goals:
            found.append((*path, (end, query.relation, query.tail)))
            continue
        for relation, other in store.out(end):
            passed = {query.head, query.tail, *(triple[0] for triple in path)}
            if other not in passed and away.get(other, hops) <= hops - len(path) - 1:
                open_.append(((*path, (end, relation, other)), other))
    return tuple(found)


def query_text(path: SourcePath, store: TripleStore) -> str:
    """A question that names both ends and not the entity between them, by template (the paper has a model
    write it)."""
    kind = store.kinds.get(path.second[0], "something")
    who = "someone" if kind == "person" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    return (
        f"What are different ways of connecting {path.first[0]} and {who} of whom this is true: {path.last[1]} "
        f"{path.last[2]}?"
    )


def _open(path: Path):
    try:
        return OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig")
    except OSError as error:
        raise TripleError(f"{shown(path)}: cannot be read ({error.strerror})") from None


def _lines(path: Path):
    line = 0
    try:
        with _open(path) as handle:
            for line, text in enumerate(handle, 1):
                yield line, text
    except (EOFError, UnicodeDecodeError) as error:
        raise TripleError(f"{shown(path)}: cannot be read after line {line} ({error})") from None


def _csv_rows(path: Path, columns):
    with _open(path) as handle:
        reader = csv.DictReader(handle)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise TripleError(f"{shown(path)}: lacks the column {missing[0]!r}; needed: {', '.join(columns)}")
        for line, row in enumerate(reader, 2):
            if None in row.values():
                raise TripleError(f"{shown(path)}, line {line}: has fewer fields than the header")
            yield line, row
