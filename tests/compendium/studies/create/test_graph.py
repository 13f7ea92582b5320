"""The triple store and the benchmark made from it: three file kinds, classes, expansions, queries, and what
is refused."""

import gzip
import json

import numpy as np
import pytest

from compendium.frame.paths import DATA
from compendium.studies.create import closed_world
from compendium.studies.create.graph import (
    TripleError,
    TripleStore,
    build_queries,
    chains,
    classes,
    expansions,
    load_graph,
    load_sparql,
    load_store,
    load_wikidata,
    query_text,
)
from compendium.studies.create.paths import Query, fault

TEAM = [
    ("Seb", "team", "Bulls"),
    ("Dan", "team", "Bulls"),
    ("Max", "team", "Bulls"),
    ("Max", "partner", "Kel"),
    ("Seb", "born in", "Heppen"),
    ("Dan", "born in", "Perth"),
    ("Max", "born in", "Hasselt"),
    ("Dan", "plays", "drums"),
    ("Max", "plays", "drums"),
]


@pytest.fixture
def team():
    return TripleStore(
        TEAM,
        inverses={"team": "has member"},
        kinds={"Seb": "person", "Dan": "person", "Max": "person"},
        multiplicity={"plays": 100},
    )


def entity(key, label, **claims):
    return {
        "id": key,
        "labels": {"en": {"value": label}} if label else {},
        "claims": {
            relation: [
                {"rank": rank, "mainsnak": {"datavalue": {"value": {"id": value}}}} for value, rank in values
            ]
            for relation, values in claims.items()
        },
    }


def test_lookups_from_every_side(team):
    assert team.heads("team", "Bulls") == ["Dan", "Max", "Seb"]
    assert team.tails("Max", "partner") == ["Kel"]
    assert ("Bulls", "has member", "Max") in team and ("Bulls", "has member", "Kel") not in team
    assert ("team", "Bulls") in team.out("Seb") and len(team) == len(TEAM)


def test_class_size_is_the_wider_end_scaled(team):
    assert team.class_size(("Max", "team", "Bulls")) == 3
    assert team.class_size(("Bulls", "has member", "Max")) == 3
    assert team.class_size(("Max", "plays", "drums")) == 200
    assert team.class_size(("Kel", "partner", "Max")) == 1  # untrue, but it would be one
    assert team.class_size(("Seb", "plays", "drums")) == 300


def test_classes_are_compact(team):
    assert classes(team, smallest=3, largest=9) == {("team", "Bulls"): ["Dan", "Max", "Seb"]}
    assert ("plays", "drums") in classes(team, smallest=2, largest=9)
    assert classes(team, chosen=[("plays", "drums")], smallest=3) == {}
    with pytest.raises(TripleError, match="no entity stands in the relation 'plays' to 'cello'"):
        classes(team, chosen=[("plays", "cello")])


def test_expansions_ask_nothing_that_the_head_knows(team):
    found = expansions(team, "Max", "Dan", ("team", "Bulls"))
    assert ("Max", "partner", "Kel") in found and ("Max", "plays", "drums") not in found
    assert ("Max", "team", "Bulls") not in found
    assert expansions(team, "Max", "Dan", ("team", "Bulls"), uninformative=("partner", "born in")) == []


def test_queries_have_a_known_answer(team):
    drawn = build_queries(team, classes(team), 3, np.random.default_rng(0), per_class=3, most_per_head=3)
    for query, path in drawn:
        assert all(triple in team for triple in path.triples)
        first, second, last = path.triples
        assert first[1:] == second[1:] and second[0] == last[0] and first[0] == query.head
        assert (query.relation, query.tail) == last[1:] and (query.head, *last[1:]) not in team
        assert path.second[0] not in query.text and query.head in query.text and query.tail in query.text
    assert path.description == "Bulls__team"
    assert len({(query.head, query.relation, query.tail) for query, _ in drawn}) == 3
    with pytest.raises(TripleError, match="99 were asked for"):
        build_queries(team, classes(team), 99, np.random.default_rng(0))


def test_queries_repeat_with_the_generator(team):
    draw = [build_queries(team, classes(team), 2, np.random.default_rng(5)) for _ in range(2)]
    assert draw[0] == draw[1]


def test_chains_are_all_true_answers_and_shortest_first(team):
    query = Query(0, "Seb", "partner", "Kel")
    found = chains(team, query)
    assert found == ((("Seb", "team", "Bulls"), ("Bulls", "has member", "Max"), ("Max", "partner", "Kel")),)
    assert chains(team, Query(0, "Seb", "partner", "Nobody")) == ()
    world = load_graph(DATA / "graphs" / "fictional.csv", DATA / "graphs" / "relations.csv")
    query, _ = build_queries(world, classes(world), 5, np.random.default_rng(1))[3]
    every = chains(world, query)
    assert [len(path) for path in every] == sorted(len(path) for path in every)
    assert all(fault(path, query) == "" and all(triple in world for triple in path) for path in every)
    assert len(set(every)) == len(every)


def test_chains_miss_none(team):
    """Against a plain search that looks at every walk."""
    query = Query(0, "Dan", "partner", "Kel")
    walks, found = [((), "Dan")], set()
    for _ in range(4):
        longer = []
        for path, end in walks:
            for relation, other in team.out(end):
                triple = (end, relation, other)
                if (relation, other) == ("partner", "Kel") and path:
                    found.add((*path, triple))
                elif other not in {"Dan", "Kel", *(t[0] for t in path), *(t[2] for t in path)}:
                    longer.append(((*path, triple), other))
        walks = longer
    assert set(chains(team, query)) == found


def test_wikidata_lines(tmp_path):
    lines = [
        "[",
        json.dumps(entity("Q1", "Seb", P54=[("Q9", "normal"), ("Q8", "deprecated")], P31=[("Q5", "normal")]))
        + ",",
        json.dumps(entity("Q2", "Max", P54=[("Q9", "normal"), ("Q7", "preferred")])) + ",",
        json.dumps(entity("Q9", "Bulls")),
        json.dumps(entity("P54", "team")),
        json.dumps(entity("Q5", "human")),
        "]",
    ]
    for name, opener in (("a.json", open), ("a.json.gz", gzip.open)):
        with opener(tmp_path / name, "wt") as handle:
            handle.write("\n".join(lines))
        store = load_wikidata(tmp_path / name, labels={"Q7": "Juniors"})
        assert store.triples == [
            ("Seb", "team", "Bulls"),
            ("Seb", "P31", "human"),
            ("Max", "team", "Juniors"),
        ]
        assert store.kinds == {"Seb": "human"}
    assert load_store(tmp_path / "a.json").triples[0] == ("Seb", "team", "Bulls")
    (tmp_path / "b.json").write_text('{"id": "Q1"}\n{"id": \n')
    with pytest.raises(TripleError, match=r"b.json, line 2: should be one Wikidata entity"):
        load_wikidata(tmp_path / "b.json")


def test_wikidata_in_other_dresses(tmp_path):
    full = entity("Q1", "Seb", P54=[("Q9", "normal")])
    old = {"entity-type": "item", "numeric-id": 7}
    full["claims"]["P54"].append({"rank": "normal", "mainsnak": {"datavalue": {"value": old}}})
    full["claims"]["P19"] = [
        {"mainsnak": {"snaktype": "novalue"}},
        {"mainsnak": {"datavalue": {"value": "text"}}},
    ]
    rows = [
        full,
        {"id": "Q2", "labels": {"mul": {"value": "Max"}, "de": {"value": "Maximilian"}}, "claims": {}},
        {"id": "Q3", "labels": {"en": "Dan"}, "claims": {"P54": ["Q9", "not an id", 4]}},
    ]
    path, names = tmp_path / "a.json", tmp_path / "labels.csv"
    path.write_text("\ufeff" + "\n".join(map(json.dumps, rows)), encoding="utf-8")
    names.write_text("id,label\nP54,team\nQ9,Bulls\n")
    found = load_store(path, labels=names).triples
    assert found == [("Seb", "team", "Bulls"), ("Seb", "team", "Q7"), ("Dan", "team", "Bulls")]
    assert load_store(path).triples[0] == ("Seb", "P54", "Q9")
    names.write_text("key,label\nP54,team\n")
    with pytest.raises(TripleError, match="labels.csv: lacks the column 'id'"):
        load_store(path, labels=names)
    for line in (
        '{"id": "Q1", "claims": [3]}',
        '{"id": "Q1", "labels": {"en": "x"}, "claims": {"P1": 7}}',
        "[1]",
    ):
        path.write_text(json.dumps(full) + "\n" + line)
        with pytest.raises(TripleError, match="a.json, line 2: should be one Wikidata entity"):
            load_store(path)
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, rows * 400)).encode())[:-50])
    with pytest.raises(TripleError, match="b.json.gz: cannot be read"):
        load_store(packed)


def test_classes_of_tails_make_queries_too(tmp_path):
    """As in the released files: two of one film's cast, one of them followed one step further."""
    cast = [("Peaks", "cast member", name) for name in ("Ed", "Flo", "Gus")]
    store = TripleStore([*cast, ("Flo", "born in", "Perth"), ("Gus", "plays", "oboe")])
    assert classes(store) == {} and classes(store, both_ends=True) == {}
    both = store.told_from_both_ends()
    found = classes(both, both_ends=True)
    assert found == {("is cast member of", "Peaks"): ["Ed", "Flo", "Gus"]}
    for query, path in build_queries(both, found, 2, np.random.default_rng(0)):
        assert path.first[1:] == path.second[1:] == ("is cast member of", "Peaks") and path.last in store
        assert path.first in both and path.first not in store and query.head in ("Ed", "Flo", "Gus")
    assert TripleStore(TEAM, {"team": "has member"}).told_from_both_ends().inverses["team"] == "has member"


def test_sparql_results(tmp_path):
    row = {
        "item": {"value": "http://w/Q1"},
        "itemLabel": {"value": "Seb"},
        "p": {"value": "team"},
        "o": {"value": "Bulls"},
    }
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"head": {"vars": ["item"]}, "results": {"bindings": [row]}}))
    assert load_store(path).triples == load_sparql(path).triples == [("Seb", "team", "Bulls")]
    flat = tmp_path / "flat.json"
    flat.write_text(
        json.dumps([{"item": "http://w/Q1", "itemLabel": "Seb", "p": "team", "o": "Bulls"}], indent=1)
    )
    assert load_store(flat).triples == [("Seb", "team", "Bulls")]
    path.write_text(
        json.dumps({"head": {"vars": []}, "results": {"bindings": [row, {"item": {"value": "x"}}]}})
    )
    with pytest.raises(TripleError, match="row 1: lacks the variable relation"):
        load_sparql(path)
    path.write_text('{"vars": 3}')
    with pytest.raises(TripleError, match="SPARQL result"):
        load_sparql(path)


@pytest.mark.parametrize(
    "text, words",
    [
        ("head,relation\na,b\n", "lacks the column 'tail'"),
        ("head,relation,tail\na,b\n", "line 2: has fewer fields"),
        ("head,relation,tail\na,,c\n", "line 2: a triple needs"),
    ],
)
def test_graphs_that_are_none(tmp_path, text, words):
    path = tmp_path / "graph.csv"
    path.write_text(text)
    with pytest.raises(TripleError, match=words):
        load_graph(path)
    with pytest.raises(TripleError, match="cannot be read"):
        load_graph(tmp_path / "none.csv")


def test_a_kind_is_put_into_the_question(team):
    path = build_queries(team, classes(team), 1, np.random.default_rng(0))[0][1]
    assert "someone of whom" in query_text(path, team)
    assert "a something of whom" in query_text(path, TripleStore(TEAM))


def test_the_shipped_world_is_what_its_seed_makes(tmp_path):
    closed_world.write(tmp_path)
    for name in ("fictional.csv", "relations.csv"):
        assert (tmp_path / name).read_bytes() == (DATA / "graphs" / name).read_bytes()


def test_the_shipped_world_hangs_together():
    world = load_graph(DATA / "graphs" / "fictional.csv", DATA / "graphs" / "relations.csv")
    assert set(world.inverses) == {relation for _, relation, _ in world.triples}
    assert len(set(world.inverses.values()) | set(world.inverses)) == 2 * len(world.inverses)
    sizes = [world.class_size(triple) for triple in world.triples]
    assert min(sizes) == 1 and max(sizes) > 5000


def test_a_benchmark_from_an_extract_walks_facts_from_both_ends(tmp_path):
    from types import SimpleNamespace

    from compendium.studies.create.stages import draw_queries, open_store

    people = {
        f"Q{i}": entity(f"Q{i}", f"P{i}", P54=[("Q90", "normal")], P19=[(f"Q{80 + i}", "normal")])
        for i in range(1, 5)
    }
    lines = [
        *people.values(),
        entity("Q90", "Bulls"),
        entity("P54", "team"),
        entity("P19", "born in"),
        *(entity(f"Q{80 + i}", f"town {i}") for i in range(1, 5)),
    ]
    (tmp_path / "extract.jsonl").write_text("\n".join(map(json.dumps, lines)))
    benchmark = {
        "class_size": [3, 9],
        "both_ends": False,
        "per_class": 2,
        "least_chains": 1,
        "uninformative": [],
    }
    p = SimpleNamespace(
        graph=str(tmp_path / "extract.jsonl"), graph_labels="", benchmark=benchmark, n_queries=2, seed=1
    )
    store = open_store(p)
    assert ("Bulls", "is team of", "P1") in store
    for query, made_from in draw_queries(p, store):
        assert query.relation == "born in" and query.class_relation == "team" and made_from.first in store
        assert len(chains(store, query)) >= 1
    p.benchmark = {**benchmark, "least_chains": 50}
    with pytest.raises(TripleError, match="lower least_chains"):
        draw_queries(p, store)
