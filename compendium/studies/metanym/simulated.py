"""Simulated players of the Metanym Game: each writes portfolios and judges others', with planted, separate
skills.

`respond(request)` answers the game's prompts and the keyed test. The world is closed
(data/simulated/metanym.yaml): a metanym is right for a domain when it stands in that domain's row, so a judge
can see an error in the text itself, as well as its planted eye allows. All chance is drawn from content: who
asks when changes nothing.
"""

import functools
import json
import re

from compendium.asking.names import same_model
from compendium.asking.simulated.reply import Reply, RequestError, last_user_text, request_key
from compendium.frame.chance import Stream, digest, normal, uniform
from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA
from compendium.studies.metanym.portfolio import SLOT, match_domain, parse_portfolio, slot_key, words

GENERATION, ANCHORED, RAW = "# Make more of these.", "# Score this submission against", "# Score these."
EXAM = "Answer the following multiple choice question"
SLOTS = ("AGENT", "SIGNAL", "RESOURCE", "BOUNDARY", "REGULATOR", "FAILURE", "REPAIR", "WHOLE")
ROLES = (
    "acts on its own account",
    "carries the news",
    "is drawn on by all",
    "marks inside from outside",
    "sets the rules",
    "is what everyone fears",
    "makes good what was broken",
    "is made of all the others",
)
GAIN = {"beauty": 5.0, "intelligence": 5.0, "distinctness": 1.1, "length": 0.05, "structure": 1.3}
AXES = tuple(GAIN)[:4]
KEYS = ("beauty", "intelligence", "instantiation_distinctness", "impressive_length")
LAPSES = (
    "omission",
    "eleven",
    "repeated",
    "two blocks",
    "text numbers",
    "trailing comma",
    "in the list",
    "thinking",
)
CAP = 2048  # tokens; a rambling player needs more


@functools.cache
def world() -> dict:
    """What is planted (data/simulated/metanym.yaml)."""
    return read_yaml(DATA / "simulated" / "metanym.yaml")


def models() -> list:
    """Names of the simulated players."""
    return list(world()["players"])


def claims(request: dict) -> bool:
    """Whether a request is one of this study's."""
    return last_user_text(request).startswith((GENERATION, ANCHORED, RAW, EXAM))


def player(model: str) -> dict:
    """What is planted in one player. Raises RequestError (404) for one that is not simulated."""
    for name, planted in world()["players"].items():
        if same_model(name, model):
            return planted
    raise RequestError(f"no simulated player is called {model!r}", status=404, code="model_not_found")


def respond(request: dict) -> Reply:
    """The reply to one request. Raises RequestError for a player or a prompt that is not known."""
    text, model = last_user_text(request), request["model"]
    planted = player(model)
    if text.startswith(GENERATION):
        return Reply(write_portfolio(model, request.get("seed") or 0))
    if text.startswith(ANCHORED):
        anchor = int(re.search(r"pre-scored at \*\*(\d+)/10", text)[1])
        reference, target = re.search(
            r"criterion\)\n\n(.*?)\n\n---\n\n### Target Submission[^\n]*\n\n(.*)\n\n---\n\n"
            r"## Output",
            text,
            re.S,
        ).groups()
        return Reply(_judgement(model, planted, anchor, reference, target, request))
    if text.startswith(RAW):
        return Reply(_batch(model, planted, text))
    if text.startswith(EXAM):
        return _exam(model, planted, text, request.get("max_tokens") or 0)
    raise RequestError("not a prompt of the Metanym Game")


# writing ------------------------------------------------------------------------------------------


def write_portfolio(model: str, run: int) -> str:
    """A portfolio: templates, tables and both forms, with the player's planted share of wrong metanyms."""
    planted, stream = player(model), Stream("metanym", "portfolio", model, run)
    # a player has favourite archetypes: most titles come again in the next run, the wording does not
    appeal = {theme: uniform("theme", model, theme) + 0.3 * stream.uniform() for theme in world()["themes"]}
    chosen = sorted(appeal, key=appeal.get, reverse=True)
    if stream.uniform() < planted["craft"]:
        chosen = _different_first(chosen)
    return "\n\n".join(_archetype(theme, planted, stream) for theme in chosen[: planted.get("archetypes", 5)])


def _different_first(themes) -> list:
    seen, first, later = set(), [], []
    for theme in themes:
        system = world()["themes"][theme]["system"]
        (later if system in seen else first).append(theme)
        seen.add(system)
    return first + later


def _archetype(theme: str, planted: dict, stream: Stream) -> str:
    bank = world()["themes"][theme]["sentences"]
    kept = sorted(stream.shuffled(range(len(bank)))[: planted["length"]])
    graces = stream.shuffled(world()["graces"])
    lines = [
        bank[place][:-1] + f", {graces[i % len(graces)]}."
        if stream.uniform() < planted["craft"]
        else bank[place]
        for i, place in enumerate(kept)
    ]
    template = " ".join(lines)
    slots = [slot for slot in SLOTS if f"[{slot}]" in template]
    domains = _domains(planted["craft"], stream)
    table = {domain: {slot: _metanym(domain, slot, planted, stream) for slot in slots} for domain in domains}
    parts = [
        f"## Archetype Proposal: {theme}",
        f'1. **Context-template**\n\n"{template}"',
        "2. **Metanym table**\n\n" + _table(slots, table),
        "3. **Five parallel contexts**",
    ]
    for domain in domains:
        form = fill(template, table[domain])
        parts.append(
            f'### {domain.capitalize()}\n\n**Form (a)**:\n"{form}"\n\n'
            f'**Form (b)**:\n"In {domain} one would put it so: {form[0].lower()}{form[1:]}"'
        )
    return "\n\n".join(parts)


def _domains(craft: float, stream: Stream) -> list:
    """Five domains; a skilled player takes them from different families."""
    families, chosen = set(), []
    for domain in stream.shuffled(world()["domains"]):
        family = world()["domains"][domain]["family"]
        if family not in families or stream.uniform() > craft:
            chosen.append(domain)
            families.add(family)
    rest = [domain for domain in world()["domains"] if domain not in chosen]
    return (chosen + rest)[:5]


def _metanym(domain: str, slot: str, planted: dict, stream: Stream) -> str:
    right = world()["domains"][domain][slot]
    if stream.uniform() >= planted["error"]:
        return right
    return stream.choice([row[slot] for name, row in world()["domains"].items() if name != domain])


def _table(slots, table: dict) -> str:
    rows = [["[SLOT]", *(domain.capitalize() for domain in table)], ["---"] * (len(table) + 1)]
    rows += [[slot, *(column[slot] for column in table.values())] for slot in slots]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def fill(template: str, metanyms: dict) -> str:
    """Form (a): the template with its slots filled, `a` or `an` as the metanym asks, capitals after full
    stops.
    """
    text = re.sub(
        r"\b([Aa])n? \[([A-Z]+)\]", lambda m: f"{m[1]}{_n(metanyms[m[2]])} {metanyms[m[2]]}", template
    )
    text = SLOT.sub(lambda m: metanyms[m[1]], text)
    return re.sub(r"(^|[.!?] )([a-z])", lambda m: m[1] + m[2].upper(), text)


def _n(word: str) -> str:
    return "n" if word[0] in "aeio" or word.startswith("utterance") else ""


# judging ------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def read(text: str) -> tuple:
    """What there is to see in a portfolio: ((name, context standings, qualities by axis), …), structure,
    hashes.

    A context's standing is minus its wrong metanyms (at most four), and a little strain that all readers
    feel.
    """
    archetypes, systems = [], set()
    for archetype in parse_portfolio(text).archetypes:
        standings = tuple(_standing(archetype, context) for context in archetype.contexts)
        families = {
            world()["domains"].get(domain.lower(), {}).get("family", domain) for domain in archetype.domains
        }
        graced = sum(grace in archetype.template for grace in world()["graces"])
        quality = graced / 8
        archetypes.append(
            (
                archetype.name,
                standings,
                {
                    "beauty": quality + 0.06 * normal("beauty", archetype.template),
                    "intelligence": quality + 0.06 * normal("intelligence", archetype.template),
                    "distinctness": len(families),
                    "length": len(words(archetype.template)),
                },
                [digest(context.form_a, size=8).hex() for context in archetype.contexts],
            )
        )
        systems.add(world()["themes"].get(archetype.name, {}).get("system", archetype.name))
    return tuple(archetypes), len(systems)


def _standing(archetype, context) -> float:
    column = match_domain(context.domain, archetype.domains)
    known = world()["domains"].get((column or "").lower(), {})
    wrong = sum(known.get(slot) != archetype.table[slot_key(slot)].get(column) for slot in archetype.table)
    return -min(wrong, 4) + 0.25 * normal("strain", context.form_a)


def rate(model: str, planted: dict, anchor: int, target: tuple, reference: tuple | None) -> tuple:
    """([[five contexts, beauty, intelligence, distinctness, length], …], structure): whole numbers 1-10.

    Scores lie around the anchor by how far the target is from the reference (None: from a middling
    portfolio).
    """
    zero = (
        _means(reference)
        if reference
        else {"beauty": 0.45, "intelligence": 0.45, "distinctness": 4.2, "length": 62, "structure": 4.0}
    )
    rows, spread = [], planted["slope"]
    noisy = planted["blur"] > 0
    for _name, standings, quality, marks in target[0]:
        row = [
            _whole(
                anchor
                + noisy * planted["lenient"]
                + planted["eye"] * standing
                + planted["blur"] * normal("blur", model, mark)
                + noisy * 0.5 * planted["flimsy"] * normal("again", model, mark, anchor)
            )
            for standing, mark in zip(standings, marks)
        ]
        for axis in AXES:
            private = planted["taste"] * normal("taste", model, axis, marks[0]) + planted["flimsy"] * normal(
                "flimsy", model, axis, marks[0], anchor
            )
            ahead = GAIN[axis] * (quality[axis] - zero[axis])
            row.append(_whole(anchor + planted["lenient"] + spread * ahead + private))
        rows.append(row)
    whole = "".join(marks[0] for *_, marks in target[0])
    private = planted["taste"] * normal("taste", model, "structure", whole) + planted["flimsy"] * normal(
        "flimsy", model, "structure", whole, anchor
    )
    ahead = GAIN["structure"] * (target[1] - zero["structure"])
    return rows, _whole(anchor + planted["lenient"] + spread * ahead + private)


def _means(portfolio) -> dict:
    archetypes, systems = portfolio
    return {
        **{axis: sum(entry[2][axis] for entry in archetypes) / len(archetypes) for axis in AXES},
        "structure": systems,
    }


def _whole(value: float) -> int:
    return int(min(10, max(1, round(value))))


def _judgement(model, planted, anchor, reference, target, request) -> str:
    seen = read(target)
    rows, structure = rate(model, planted, anchor, seen, read(reference))
    names = [entry[0] for entry in seen[0]]
    stream = Stream("metanym", "lapse", request_key(request))
    if len(rows) < 5 and planted.get("fills"):
        names, rows = [*names, "Missing archetype"], [*rows, [stream.below(2)] * 9]
    lapse = stream.choice(LAPSES) if stream.uniform() < planted["lapses"] else ""
    if lapse == "repeated":
        names, rows = [*names, names[0]], [*rows, rows[0]]
    if lapse == "eleven":
        rows[-1][5] = 11
    prose = _prose(names, [entry[1] for entry in seen[0]], rows, structure)
    block = {
        "scores": {
            "Target": {
                "archetypal_contexts": [_item(name, row) for name, row in zip(names, rows)],
                "structural_diversity": structure,
            }
        }
    }
    return _spoilt(prose, block, lapse)


def _item(name: str, row: list) -> dict:
    return {"name": name, "factual_per_pc": row[:5], **dict(zip(KEYS, row[5:]))}


def _spoilt(prose: str, block: dict, lapse: str) -> str:
    """The reply's text, with one lapse of the kinds that real judges had."""
    target = next(iter(block["scores"].values()))
    items = target["archetypal_contexts"]
    if lapse == "in the list":
        items.append({"structural_diversity": target.pop("structural_diversity")})
    if lapse == "text numbers":
        items[0]["beauty"] = f"{items[0]['beauty']}/10"
    if lapse == "omission":
        first = json.dumps(items[0])
        cut = f"[{first} /* the other archetypes omitted for brevity */]"
        target = f'{{"archetypal_contexts": {cut}, "structural_diversity": {target["structural_diversity"]}}}'
        return f'{prose}\n\n```json\n{{"scores": {{"Target": {target}}}}}\n```\n'
    text = json.dumps(block, indent=1)
    if lapse == "trailing comma":
        text = re.sub(r"\n(\s*)\]", r",\n\1]", text, count=1)
    summary = json.dumps({"note": "summary of the ratings above"})
    first = f"```json\n{summary}\n```\n\n" if lapse == "two blocks" else ""
    before = "<think>\nFactual first, then taste.\n</think>\n" if lapse == "thinking" else ""
    return f"{before}{prose}\n\n{first}```json\n{text}\n```\n"


def _prose(names, standings, rows, structure) -> str:
    parts, remarks = ["## Target Submission"], ("Sound throughout.", "Some terms belong to another domain.")
    headings = ("Beauty", "Intelligence", "Domains far apart / metanyms not synonymous", "Impressive length")
    for place, (name, row) in enumerate(zip(names, rows)):
        seen = standings[place] if place < len(standings) else [0] * 5
        lines = [f"- PC {k + 1}: {remarks[value <= -0.7]} Rating: {row[k]}" for k, value in enumerate(seen)]
        parts.append(
            f"### Archetypal context {place + 1}: {name}\n\n"
            "#### Factually correct (per parallel context)\n" + "\n".join(lines)
        )
        parts += [
            f"#### {heading}\nBeside the Reference it reads as the number says.\nRating: {score}"
            for heading, score in zip(headings, row[5:])
        ]
    last = f"### Structural diversity across the submitted set\nAs counted.\nRating: {structure}"
    return "\n\n".join([*parts, last])


def _batch(model: str, planted: dict, text: str) -> str:
    """Scores of every submission in an un-anchored batch: a scale of the judge's own, and harder to hold."""
    body = text.split("## The proposals to evaluate", 1)[1].split("\n\n---\n\n## Output", 1)[0]
    found = re.split(r"^### Submission (\S+)\n", body, flags=re.M)
    own = {
        **planted,
        "slope": 0.45 * planted["slope"],
        "eye": 0.5 * planted["eye"],
        "lenient": 0.6 * normal("scale", model),
    }
    scores = {}
    for name, submission in zip(found[1::2], found[2::2]):
        rows, structure = rate(model, own, 7, read(submission.strip().removesuffix("---").strip()), None)
        scores[name] = {
            "archetypal_contexts": [_item(f"Archetype {k}", row) for k, row in enumerate(rows, 1)],
            "structural_diversity": structure,
        }
    return "```json\n" + json.dumps({"scores": scores}) + "\n```\n"


# the keyed test -----------------------------------------------------------------------------------


def questions(n: int) -> list:
    """The demo's keyed test: [{"question", "options"}, …], the right option first; a question a domain and a
    slot.
    """
    domains, made = world()["domains"], []
    for place in Stream("metanym", "questions").shuffled(range(len(domains) * len(SLOTS)))[:n]:
        domain, slot = list(domains)[place // len(SLOTS)], SLOTS[place % len(SLOTS)]
        stream = Stream("metanym", "options", domain, slot)
        wrong = stream.shuffled([row[slot] for name, row in domains.items() if name != domain])[:3]
        made.append(
            {
                "question": f"In {domain}, which of these {ROLES[SLOTS.index(slot)]}?",
                "options": [domains[domain][slot], *wrong],
            }
        )
    return made


def _exam(model: str, planted: dict, text: str, cap: int) -> Reply:
    question = text.split("\n\n")[1]
    options = dict(re.findall(r"^([A-D])\) (.+)$", text, re.M))
    domain, role = re.fullmatch(r"In (.+), which of these (.+)\?", question).groups()
    right = world()["domains"][domain][SLOTS[ROLES.index(role)]]
    letters = sorted(options, key=lambda letter: options[letter] != right)
    stream = Stream("metanym", "exam", model, question)
    letter = letters[0] if stream.uniform() < planted["key"] else stream.choice(letters[1:])
    derivation = f"In {domain} one looks for what {role}. That is the {options[letter]}."
    if stream.uniform() < planted.get("rambles", 0):
        if cap <= CAP:
            return Reply(
                f"{derivation[:40]} " + "Let us go through it once more. " * 8, finish_reason="length"
            )
        return Reply(f"{derivation}\n\n$\\boxed{{{letter}}}$")
    return Reply(f"{derivation}\n\nAnswer: {letter}")
