"""The fictional world that ships as data/graphs: every fact in it is known, so truth can be decided.

`python -m compendium.studies.create.closed_world` writes data/graphs/fictional.csv and relations.csv anew from the seed;
the test of this module checks that the shipped files are what it writes. Names are made of syllables and
belong to nobody.
"""

import numpy as np
import pandas as pd

from compendium.frame.files import write_csv_atomic
from compendium.frame.paths import DATA

SEED = 20261130
FOLDER = DATA / "graphs"
STARTS = (
    "Va",
    "Bre",
    "Tor",
    "Mi",
    "Sel",
    "Qua",
    "Dro",
    "Ish",
    "Ka",
    "Lu",
    "Nem",
    "Or",
    "Pel",
    "Ry",
    "Sta",
    "Ul",
    "Wex",
    "Yo",
    "Zan",
    "Ere",
)
MIDDLES = ("lo", "na", "ri", "the", "mo", "ska", "du", "ven", "li", "ba", "ro", "shi", "ta", "ge", "pho")
ENDS = {
    "person": ("n", "ra", "s", "l", "dek", "mir", "th", "na"),
    "city": ("burg", "haven", "mouth", "stad", "ville"),
    "country": ("ia", "land"),
    "film": ("",),
    "band": ("",),
    "team": (" United", " Rovers", " Racing"),
    "university": (" University", " Polytechnic"),
    "company": (" Works", " Foundry", " Lines"),
    "award": (" Medal", " Prize"),
    "gene": ("",),
    "compound": ("ol", "ine", "ate"),
    "disease": (" syndrome", " fever"),
}
TITLES = ("The {} Letters", "Night over {}", "Seven Days in {}", "{} Must Wait", "A Map of {}", "The Last {}")
BANDS = ("The {} Trio", "{} and the Lamps", "Electric {}", "{} Parade")
OCCUPATIONS = (
    "actor",
    "composer",
    "chemist",
    "poet",
    "lawyer",
    "engineer",
    "painter",
    "biologist",
    "pilot",
    "journalist",
)
GENRES = ("comedy", "mystery", "western", "musical", "war film", "fable")
INSTRUMENTS = ("cello", "trumpet", "accordion", "harp", "drums", "oboe")
TISSUES = ("liver", "retina", "spleen", "skin", "heart")
COUNTS = {
    "person": 130,
    "film": 34,
    "band": 16,
    "team": 8,
    "university": 8,
    "company": 10,
    "award": 8,
    "city": 18,
    "country": 4,
    "gene": 22,
    "compound": 16,
    "disease": 8,
}
# relation, the same told from its tail, kind of head, kind of tail, tails a head (least, most), multiplicity:
# how many entities of a whole world one entity here stands for.
RELATIONS = (
    ("place of birth", "birthplace of", "person", "city", 1, 1, 300),
    ("country of citizenship", "has citizen", "person", "country", 1, 1, 20000),
    ("occupation", "practised by", "person", "occupation", 1, 2, 3000),
    ("educated at", "educated", "person", "university", 0, 2, 120),
    ("employer", "employed", "person", "company", 0, 1, 40),
    ("spouse", "spouse of", "person", "person", 0, 1, 1),
    ("sibling", "sibling of", "person", "person", 0, 1, 1),
    ("child", "child of", "person", "person", 0, 1, 1),
    ("student of", "teacher of", "person", "person", 0, 1, 3),
    ("influenced by", "influenced", "person", "person", 0, 2, 12),
    ("member of", "has member", "person", "band", 0, 1, 1),
    ("member of sports team", "has player", "person", "team", 0, 1, 12),
    ("award received", "awarded to", "person", "award", 0, 2, 15),
    ("instrument", "played by", "person", "instrument", 0, 1, 800),
    ("cast member", "acted in", "film", "person", 2, 5, 2),
    ("director", "directed", "film", "person", 1, 1, 2),
    ("genre", "genre of", "film", "genre", 1, 1, 500),
    ("filming location", "location of", "film", "city", 1, 2, 30),
    ("composer", "wrote the score of", "film", "person", 1, 1, 2),
    ("performed in", "hosted", "band", "city", 1, 2, 60),
    ("founded by", "founded", "company", "person", 1, 2, 1),
    ("headquarters", "home of", "company", "city", 1, 1, 40),
    ("sponsor", "sponsored by", "company", "team", 0, 1, 2),
    ("home city", "city of", "team", "city", 1, 1, 3),
    ("named after", "namesake of", "award", "person", 1, 1, 1),
    ("located in", "contains", "city", "country", 1, 1, 50),
    ("seat", "seat of", "university", "city", 1, 1, 3),
    ("genetic association", "associated with gene", "gene", "disease", 1, 2, 12),
    ("expressed in", "expresses", "gene", "tissue", 1, 2, 2000),
    ("interacts with", "target of", "compound", "gene", 1, 3, 4),
    ("treats", "treated with", "compound", "disease", 1, 1, 10),
    ("discovered by", "discovered", "compound", "person", 1, 1, 1),
    ("described by", "described", "disease", "person", 1, 1, 1),
    ("studied by", "studies", "gene", "person", 1, 1, 4),
)


def build(seed: int = SEED) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(triples, relations) of the world drawn from a seed: columns head, relation, tail, head_kind,
    tail_kind, and relation, inverse, head_kind, tail_kind, multiplicity."""
    rng = np.random.default_rng(seed)
    members = _entities(rng)
    rows, seen = [], set()
    for relation, _, head_kind, tail_kind, least, most, _ in RELATIONS:
        tails = members[tail_kind]
        popular = (
            1.0 / np.arange(1, len(tails) + 1) ** 0.6
        )  # some cities, awards and people are named far more often
        popular = rng.permutation(popular / popular.sum())
        for head in members[head_kind]:
            for number in rng.choice(
                len(tails), size=int(rng.integers(least, most + 1)), replace=False, p=popular
            ):
                tail = tails[number]
                if tail == head or (tail, relation, head) in seen:
                    continue
                seen.add((head, relation, tail))
                rows.append((head, relation, tail, head_kind, tail_kind))
    triples = pd.DataFrame(rows, columns=["head", "relation", "tail", "head_kind", "tail_kind"])
    relations = pd.DataFrame(
        [(r, i, h, t, m) for r, i, h, t, _, _, m in RELATIONS],
        columns=["relation", "inverse", "head_kind", "tail_kind", "multiplicity"],
    )
    return triples, relations


def write(folder=FOLDER) -> None:
    """Write the two files of `build()`."""
    triples, relations = build()
    write_csv_atomic(folder / "fictional.csv", triples)
    write_csv_atomic(folder / "relations.csv", relations)


def _entities(rng: np.random.Generator) -> dict:
    members = {
        "occupation": list(OCCUPATIONS),
        "genre": list(GENRES),
        "instrument": list(INSTRUMENTS),
        "tissue": list(TISSUES),
    }
    taken = set()
    for kind, count in COUNTS.items():
        members[kind] = []
        while len(members[kind]) < count:
            name = _name(kind, rng)
            if name.lower() not in taken:
                taken.add(name.lower())
                members[kind].append(name)
    return members


def _name(kind: str, rng: np.random.Generator) -> str:
    word = _pick(STARTS, rng) + _pick(MIDDLES, rng)
    if kind == "gene":
        return (word[:3] + str(rng.integers(1, 20))).upper()
    if kind in ("film", "band"):
        return _pick(TITLES if kind == "film" else BANDS, rng).format(word + _pick(ENDS["person"], rng))
    if kind == "person":
        first = _pick(STARTS, rng) + _pick(MIDDLES, rng) + _pick(ENDS["person"], rng)
        return f"{first} {word}{_pick(MIDDLES, rng)}{_pick(ENDS['person'], rng)}"
    return word + _pick(MIDDLES, rng)[: int(kind != "compound") * 2] + _pick(ENDS[kind], rng)


def _pick(options, rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


if __name__ == "__main__":
    write()
