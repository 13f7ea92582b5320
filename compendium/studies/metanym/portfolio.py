"""Reading a portfolio: Markdown to templates, slots, metanym tables and forms (a) and (b), and mechanical
checks.

The format is what prompt B.1 asks for. Checks are mechanical: whether counts are right, whether the slots of
the template are the rows of its table, and whether form (a) is the template with its slots filled (inflection
allowed). Whether a sentence is true is for the judges.
"""

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from compendium.studies.metanym.game import N_ARCHETYPES, MetanymError

N_CONTEXTS = 5
CARRIED = 0.8  # least share of the template's fixed words that a mechanical form (a) carries over
SLOT = re.compile(r"\[([A-Z][A-Za-z0-9 _/&'-]*)\]")
PROPOSAL = re.compile(
    r"^#{1,6}\s*(?:\d+[.)]\s*)?Archetype Proposal(?:\s*\d+)?\s*[:—–-]\s*(.+?)\s*#*$", re.I | re.M
)
FORM = re.compile(r"^[ \t>*-]*\**\s*Form \(?([ab])\)?\**(?P<rest>.*)$", re.I | re.M)
HEADING = re.compile(r"^(?:#{2,6}\s+(.+?)\s*#*|\*\*(?!Form)([^*\n]{2,80}?)\*\*:?)\s*$", re.M)
JUSTIFICATION = re.compile(r"^[ \t*]*Justification:\**\s*(.+)$", re.I | re.M)
IRREGULAR = {
    "mice": "mouse",
    "children": "child",
    "people": "person",
    "men": "man",
    "women": "woman",
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "lives": "life",
    "leaves": "leaf",
    "wolves": "wolf",
    "data": "datum",
}


@dataclass(frozen=True)
class Context:
    """One parallel context: its domain, the mechanical form (a), the idiomatic form (b), the optional
    sentence.
    """

    domain: str
    form_a: str
    form_b: str
    justification: str = ""


@dataclass(frozen=True)
class Archetype:
    """One archetypal context. table: {slot: {domain: metanym}}; slots in the order of the template."""

    name: str
    template: str
    slots: tuple
    domains: tuple
    table: dict
    contexts: tuple


@dataclass(frozen=True)
class Portfolio:
    """A submission: its archetypal contexts in order."""

    archetypes: tuple = field(default_factory=tuple)


@dataclass(frozen=True)
class Check:
    """One departure from what B.1 asks: `code`, where it is, what was found."""

    code: str
    where: str
    message: str


def parse_portfolio(text: str) -> Portfolio:
    """Parse a submission's Markdown.

    Raises MetanymError for a text without `## Archetype Proposal: <name>` headings, or a proposal without a
    template, a metanym table or a single pair of forms (named with the proposal).
    """
    heads = list(PROPOSAL.finditer(text or ""))
    if not heads:
        raise MetanymError(
            "no portfolio here: each archetypal context should begin with "
            "`## Archetype Proposal: <short name>`"
        )
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return Portfolio(
        tuple(_archetype(_plain(head[1]), text[head.end() : end]) for head, end in zip(heads, ends))
    )


def _archetype(name: str, body: str) -> Archetype:
    table_lines, start = _first_table(body)
    if not table_lines:
        raise MetanymError(
            f"archetype {name!r}: has no metanym table (Markdown, a row a slot, a column a domain)"
        )
    template = _template(body[:start])
    if not template:
        raise MetanymError(f"archetype {name!r}: has no context-template with [SLOT] places before its table")
    domains, table = _table(table_lines)
    contexts = _contexts(body)
    if not contexts:
        raise MetanymError(f"archetype {name!r}: has no parallel context with **Form (a)** and **Form (b)**")
    slots = tuple(dict.fromkeys(slot_key(found) for found in SLOT.findall(template)))
    return Archetype(name, template, slots, domains, table, contexts)


def slot_key(text: str) -> str:
    """A slot's name as one key: `[reversal cost]` and `REVERSAL_COST` are the same slot."""
    return re.sub(r"[\s_]+", "_", text.strip().strip("[]`* ").strip()).upper()


def _first_table(body: str) -> tuple[list, int]:
    lines, place = [], 0
    start = -1
    for line in body.splitlines(keepends=True):
        if line.lstrip().startswith("|"):
            if start < 0:
                start = place
            lines.append(line.strip())
        elif lines:
            break
        place += len(line)
    return (lines, start) if len(lines) >= 3 else ([], -1)


def _table(lines) -> tuple[tuple, dict]:
    rows = [[_plain(cell) for cell in line.strip("|").split("|")] for line in lines]
    rows = [row for row in rows if not all(re.fullmatch(r":?-{2,}:?", cell) for cell in row if cell)]
    domains = tuple(rows[0][1:])
    return domains, {slot_key(row[0]): dict(zip(domains, row[1:])) for row in rows[1:]}


def _template(before: str) -> str:
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", before) if SLOT.search(part)]
    if not paragraphs:
        return ""
    longest = max(paragraphs, key=lambda part: len(SLOT.findall(part)))
    longest = re.sub(r"^(?:#+|\d+[.)])?\s*\**Context[- ]template\**[^\n\"“\[]*\n?", "", longest, flags=re.I)
    return _unquote(" ".join(longest.split()))


def _contexts(body: str) -> tuple:
    marks = list(FORM.finditer(body))
    contexts = []
    for place, mark in enumerate(marks):
        following = marks[place + 1] if place + 1 < len(marks) else None
        if mark[1].lower() != "a" or following is None or following[1].lower() != "b":
            continue
        end = marks[place + 2].start() if place + 2 < len(marks) else len(body)
        tail = body[following.end() : end]
        stop = HEADING.search(tail)
        tail = tail[: stop.start()] if stop else tail
        reason = JUSTIFICATION.search(tail)
        form_b = tail[: reason.start()] if reason else tail
        contexts.append(
            Context(
                _domain(body[: mark.start()]),
                _form(mark["rest"], body[mark.end() : following.start()]),
                _form(following["rest"], form_b),
                _plain(reason[1]) if reason else "",
            )
        )
    return tuple(contexts)


def _domain(before: str) -> str:
    """The last heading before a form names its domain; numbering and a `Domain:` label are not part of it."""
    headings = HEADING.findall(before)
    name = (headings[-1][0] or headings[-1][1]) if headings else ""
    name = re.sub(r"^(?:(?:Domain|PC|Parallel context)?\s*\d*\s*[.:)—–-]\s*)", "", _plain(name), flags=re.I)
    return name.strip(" :*")


def _form(rest: str, following: str) -> str:
    """A form's text: on the marker's line after its label, or in the paragraphs below it."""
    same_line = re.sub(r"^\s*(?:[—–-][^:\"“]*)?:?\**:?\s*", "", rest)
    text = "\n".join([same_line, following])
    text = re.sub(r"^\s*-{3,}\s*$", "", text, flags=re.M)
    return _unquote(" ".join(text.split()))


def _plain(text: str) -> str:
    return " ".join(text.replace("**", "").replace("`", "").split())


def _unquote(text: str) -> str:
    """What stands between the quotation marks that a form begins with; a text without them as it is."""
    text = text.strip().strip("*").strip()
    quoted = re.match(r"[\"“](.*[.!?*])[\"”](?:\s|\Z)|[\"“](.*)[\"”]\Z", text, re.S)
    return (quoted[1] or quoted[2] or "").strip() if quoted else text


def check_portfolio(portfolio: Portfolio) -> list[Check]:
    """Every departure from the asked format, in the order of the text (an empty list: none).

    Codes: archetypes, contexts, domains (wrong counts), repeated (two archetypes with one name), slots
    (template and table differ), plural (a slot in two spellings), empty (a metanym missing), domain (a
    context without a column), unfilled (a slot left open in form (a)), carried (too few of the template's
    fixed words in form (a)), missing (metanyms that form (a) does not use).
    """
    found = []
    names = [archetype.name.lower() for archetype in portfolio.archetypes]
    if len(names) != N_ARCHETYPES:
        found.append(
            Check("archetypes", "portfolio", f"{len(names)} archetypal contexts, asked were {N_ARCHETYPES}")
        )
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        found.append(Check("repeated", "portfolio", f"two archetypal contexts are called {name!r}"))
    for archetype in portfolio.archetypes:
        found += _check_counts(archetype) + _check_slots(archetype)
        for context in archetype.contexts:
            found += _check_form(archetype, context)
    return found


def _check_counts(archetype: Archetype) -> list[Check]:
    found = []
    for code, number, what in (
        ("contexts", len(archetype.contexts), "parallel contexts"),
        ("domains", len(archetype.domains), "domains in the metanym table"),
    ):
        if number != N_CONTEXTS:
            found.append(Check(code, archetype.name, f"{number} {what}, asked were {N_CONTEXTS}"))
    for slot, row in archetype.table.items():
        empty = [domain for domain in archetype.domains if row.get(domain, "").strip(" -–—") == ""]
        if empty:
            found.append(Check("empty", f"{archetype.name} / {slot}", f"no metanym for {', '.join(empty)}"))
    return found


def _check_slots(archetype: Archetype) -> list[Check]:
    found, template, table = [], set(archetype.slots), set(archetype.table)
    for slot in sorted(template - table):
        other = next((name for name in sorted(template) if name != slot and inflected(name, slot)), None)
        code = "plural" if other else "slots"
        said = f"is a second spelling of [{other}]" if other else "is in the template and not in the table"
        found.append(Check(code, archetype.name, f"[{slot}] {said}"))
    found += [
        Check("slots", archetype.name, f"[{slot}] is in the table and not in the template")
        for slot in sorted(table - template)
    ]
    return found


def _check_form(archetype: Archetype, context: Context) -> list[Check]:
    where = f"{archetype.name} / {context.domain}"
    column = match_domain(context.domain, archetype.domains)
    if column is None:
        return [
            Check(
                "domain",
                where,
                f"no column of the metanym table has this name; there are {', '.join(archetype.domains)}",
            )
        ]
    found = []
    left = SLOT.findall(context.form_a)
    if left:
        found.append(Check("unfilled", where, f"form (a) still holds [{left[0]}]"))
    metanyms = {slot: archetype.table.get(slot, {}).get(column, "") for slot in archetype.slots}
    carried, unused = substitution(archetype.template, metanyms, context.form_a)
    if carried < CARRIED:
        found.append(
            Check(
                "carried",
                where,
                f"form (a) carries {carried:.0%} of the template's fixed words: it is a "
                "rewrite, not a substitution",
            )
        )
    if unused:
        found.append(Check("missing", where, f"form (a) does not use the metanym of {', '.join(unused)}"))
    return found


def match_domain(name: str, domains) -> str | None:
    """The table's column that a context's heading names (case and punctuation aside), or None."""

    def key(text):
        return re.sub(r"\W+", " ", text).strip().lower()

    exact = [domain for domain in domains if key(domain) == key(name)]
    within = [
        domain for domain in domains if key(domain) and (key(domain) in key(name) or key(name) in key(domain))
    ]
    return exact[0] if exact else within[0] if len(within) == 1 and key(name) else None


def substitution(template: str, metanyms: dict, form_a: str) -> tuple[float, list]:
    """How far form (a) is the template with its slots filled: (share of fixed words carried over, unused
    slots).

    metanyms: {slot: base form}. Words are aligned in order; an inflected form counts as its base. A slot is
    unused when no word of its metanym stands at any of its places.
    """
    expected, owner = [], []
    for piece in re.split(r"(\[[^\]]+\])", template):
        slot = slot_key(piece) if SLOT.fullmatch(piece) else None
        tokens = words(metanyms.get(slot, "")) if slot else words(piece)
        expected += tokens
        owner += [slot] * len(tokens)
    content = {word for tokens in map(words, metanyms.values()) for word in tokens if len(word) > 2}
    actual = [next((base for base in content if inflected(base, word)), word) for word in words(form_a)]
    plain = [next((base for base in content if inflected(base, word)), word) for word in expected]
    matched = set()
    for block in SequenceMatcher(None, plain, actual, autojunk=False).get_matching_blocks():
        matched.update(range(block.a, block.a + block.size))
    fixed = [place for place, slot in enumerate(owner) if slot is None]
    carried = sum(place in matched for place in fixed) / max(len(fixed), 1)
    filled = {slot for place, slot in enumerate(owner) if slot and place in matched}
    return carried, [slot for slot in metanyms if slot in owner and slot not in filled]


def words(text: str) -> list[str]:
    """Lower-case words; hyphens and possessives split off."""
    return re.findall(r"[^\W_]+", re.sub(r"['’]s\b", "", text.lower()))


def inflected(base: str, word: str) -> bool:
    """Whether `word` is an English inflection of `base`, or a near derivation (cell: cells, cellular)."""
    base, word = base.lower(), IRREGULAR.get(word.lower(), word.lower())
    if base == word:
        return True
    shared = next((i for i, (x, y) in enumerate(zip(base, word)) if x != y), min(len(base), len(word)))
    dropped, added = base[shared:], word[shared:]
    if len(base) <= 5:
        return dropped in ("", "e", "y") and shared >= 3 and len(added) <= 4 and bool(added)
    return shared >= len(base) - 2 and 0 < len(added) <= 4


def shared_wording(first: str, second: str, n: int = 5) -> float:
    """Share of the first text's n-word runs that the second holds too (0 to 1): to recognise a copied
    template.
    """

    def runs(text):
        tokens = words(SLOT.sub(" ", text))
        return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}

    mine = runs(first)
    return len(mine & runs(second)) / len(mine) if mine else 0.0


def copied_templates(portfolio: Portfolio, archived: dict, bar: float = 0.5) -> list[Check]:
    """Templates that repeat an archived portfolio's wording (section 3.4, contamination): {owner: Portfolio}."""
    return [
        Check(
            "copied",
            archetype.name,
            f"shares {share:.0%} of its five-word runs with {other.name!r} of {owner}",
        )
        for archetype in portfolio.archetypes
        for owner, theirs in archived.items()
        for other in theirs.archetypes
        if (share := shared_wording(archetype.template, other.template)) >= bar
    ]
