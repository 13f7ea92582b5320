"""Reading a judge's reply: the fenced JSON block at its end, cross-checked with the ratings in the Markdown.

The format is what prompt B.2 asks for. What is safe to repair is repaired and noted (fences, trailing commas,
numbers as text, a score in the wrong place); what would have to be made up is refused (`InvalidReply`, to be
asked again).
"""

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import FENCE, answer_text, extract_json, json_blocks
from compendium.asking.reasoning import tell
from compendium.asking.replies import as_number, is_placeholder
from compendium.studies.metanym.game import CONTEXTS, KEYS, N_ARCHETYPES, PER_ARCHETYPE, SCORES

JSON_KEYS = {
    "beauty": "beauty",
    "intelligence": "intelligence",
    "distinctness": "instantiation_distinctness",
    "length": "impressive_length",
}
# what may stand around a block that is JSON as it stands
AROUND = {"fence removed", "prose ignored", "reasoning removed", "answer tag", "answer tag not closed"}
SECTIONS = (
    ("factual", r"factual"),
    ("beauty", r"beauty"),
    ("intelligence", r"intelligence"),
    ("distinctness", r"far apart|synonym|distinct"),
    ("length", r"length"),
)
MARKED = re.compile(r"Rating:?\**:?\s*\**\s*(\d+(?:\.\d+)?)", re.I)


@dataclass(frozen=True)
class Evaluation:
    """One judge's scores of one portfolio.

    names: the archetypes as the judge calls them, in its order; scores[archetype, 9] (five contexts, then
    beauty, intelligence, distinctness, length), NaN where it gave none, 0 kept as given; structure: the
    portfolio's score.
    strict: whether the block is JSON as it stands. notes: what was repaired or is odd. markdown: the ratings
    read off the prose in the same layout (None where there are none); disagreements: where prose and block
    differ.
    """

    names: tuple
    scores: np.ndarray
    structure: float
    strict: bool
    notes: tuple = ()
    markdown: np.ndarray | None = field(default=None, repr=False)
    disagreements: int = 0

    def rows(self, run: int, anchor: int, evaluator: str, target: str) -> pd.DataFrame:
        """A tidy table (columns KEYS and SCORES of `compendium.studies.metanym.game`), a row an archetype."""
        frame = pd.DataFrame(self.scores, columns=list(SCORES[:-1]))
        frame["structure"] = self.structure
        frame["archetype"] = range(1, len(self.names) + 1)
        frame = frame.assign(run=run, anchor=anchor, evaluator=evaluator, target=target)
        return frame[[*KEYS, *SCORES]]


def parse_evaluation(text: str, least: int = 1) -> Evaluation:
    """One target's scores from a reply to the anchored prompt.

    least: fewest archetypes that count as an answer. Raises InvalidReply: what `extract_json` raises, "no
    scores", "omission" (a comment stands for the rest), "several targets", "archetypes" (fewer than `least`),
    "rating" (outside the scale, no whole number).
    """
    scores, strict, notes = _block(text)
    named = {name for block in json_blocks(answer_text(text)[0]) for name in _targets(block.value)}
    if len(scores) > 1 or named > set(scores):
        names = ", ".join(map(str, sorted({*named, *scores})))
        raise InvalidReply("several targets", f"scores of {names[:200]}; one was asked")
    return _evaluation(next(iter(scores.values())), strict, notes, _prose(text), least)


def parse_batch(text: str, expected) -> dict:
    """{submission id: Evaluation} from a reply to the un-anchored prompt, for the ids in `expected`.

    Ids that were not asked for are passed over. Raises InvalidReply as `parse_evaluation`, kind "missing" for
    a submission without scores.
    """
    scores, strict, notes = _block(text)
    absent = [name for name in expected if name not in scores]
    if absent:
        raise InvalidReply(
            "missing", f"no scores for {absent[0]!r}; the block has {', '.join(map(str, scores))}"
        )
    return {name: _evaluation(scores[name], strict, notes, None, 1) for name in expected}


def _block(text: str) -> tuple[dict, bool, list]:
    """({target: its scores}, strict, notes) from the last block that holds scores."""
    parsed = extract_json(text or "")
    content, mended = parsed.values, [name for name in parsed.repairs if name not in AROUND]
    scores = _targets(content, every=True)
    if not scores:
        raise InvalidReply("no scores", 'the last block has no "scores" for a target')
    if mended and any(len(_items(entry)) < N_ARCHETYPES - 1 for entry in scores.values()):
        # the schema's own comment copied beside complete scores is harmless; one in place of scores is not
        raise InvalidReply(
            "omission", "the block is no JSON as it stands and holds fewer than four archetypes"
        )
    return scores, not mended, mended


def _targets(content, every: bool = False) -> dict:
    """{target: its scores} of one block; a target without archetypes is one only where `every` is asked for."""
    scores = content.get("scores", content) if isinstance(content, dict) else {}
    if isinstance(scores, dict) and "archetypal_contexts" in scores:
        scores = {"Target": scores}
    scores = scores.items() if isinstance(scores, dict) else ()
    scores = {str(key): value for key, value in scores if isinstance(value, dict)}
    return scores if every else {key: value for key, value in scores.items() if _items(value)}


def _items(entry: dict) -> list:
    items = entry.get("archetypal_contexts")
    return items if isinstance(items, list) else []


def _evaluation(content: dict, strict: bool, notes, prose, least: int) -> Evaluation:
    items, structure = content.get("archetypal_contexts"), content.get("structural_diversity")
    notes = list(notes)
    if not isinstance(items, list):
        raise InvalidReply("no scores", '"archetypal_contexts" is not a list')
    entries = []
    for item in items:
        if isinstance(item, dict) and set(item) - {"name"} == {"structural_diversity"}:
            structure = item["structural_diversity"] if structure is None else structure
            notes.append("structural_diversity stood in the list")
        elif isinstance(item, dict):
            entries.append(item)
    if len(entries) < least:
        raise InvalidReply("archetypes", f"{len(entries)} archetypes scored, at least {least} are needed")
    if len(entries) != N_ARCHETYPES:
        notes.append(f"{len(entries)} archetypes")
    scores = np.array([_entry(item, notes) for item in entries]).reshape(len(entries), -1)
    if (scores == 0).any():
        notes.append("0 given, outside the scale")
    portfolio = _rating(structure, "structural_diversity")
    markdown, disagreements = _compare(prose, scores, portfolio)
    names = tuple(str(item.get("name", "")) for item in entries)
    return Evaluation(names, scores, portfolio, strict, tuple(dict.fromkeys(notes)), markdown, disagreements)


def _entry(item: dict, notes: list) -> list:
    factual = item.get("factual_per_pc")
    factual = factual if isinstance(factual, list) else [factual]
    if len(factual) != len(CONTEXTS):
        notes.append(f"{len(factual)} contexts scored")
    factual = [_rating(value, "factual_per_pc") for value in factual] + [np.nan] * len(CONTEXTS)
    factual = factual[: len(CONTEXTS)]
    return factual + [_rating(item.get(JSON_KEYS[axis]), JSON_KEYS[axis]) for axis in PER_ARCHETYPE]


def _rating(value, name: str) -> float:
    """A rating as a number: 7, 7.0, "7", "7/10"; missing (null, "N/A") is NaN; 0 stays 0, a judge's
    placeholder.
    """
    if is_placeholder(value):
        return np.nan
    try:
        return as_number(value, 0, 10, whole=True)
    except InvalidReply as reason:
        said = f"{name} is {str(value)[:40]!r} ({reason.kind}); a rating is a whole number from 1 to 10"
        raise InvalidReply("rating", said) from None


def _prose(text: str):
    """Ratings in the Markdown: (scores[archetype, 9], structure), or None where it has no such sections."""
    body = FENCE.sub(lambda found: "" if "archetypal_contexts" in found[1] else found[1], tell(text).answer)
    parts = re.split(r"^#{2,4}\s*Archetypal context\s*\d+\b.*$", body, flags=re.M | re.I)
    if len(parts) < 2:
        return None
    *middle, last = parts[1:]
    cut = re.split(r"^#{2,4}\s*Structural diversity.*$", last, flags=re.M | re.I)
    structure = MARKED.search(cut[1]) if len(cut) > 1 else None
    rows = [_prose_row(part) for part in (*middle, cut[0])]
    return np.array(rows), float(structure[1]) if structure else np.nan


def _prose_row(part: str) -> list:
    pieces = re.split(r"^#{3,5}\s*(.+?)\s*$", part, flags=re.M)
    found = dict.fromkeys(("factual", *PER_ARCHETYPE), ())
    for heading, body in zip(pieces[1::2], pieces[2::2]):
        axis = next((name for name, pattern in SECTIONS if re.search(pattern, heading, re.I)), None)
        if axis:
            found[axis] = [float(value) for value in MARKED.findall(body)]
    factual = (list(found["factual"]) + [np.nan] * len(CONTEXTS))[: len(CONTEXTS)]
    return factual + [found[axis][0] if found[axis] else np.nan for axis in PER_ARCHETYPE]


def _compare(prose, scores: np.ndarray, structure: float):
    """(the prose's scores, how many differ from the block's); the block is what counts."""
    if prose is None:
        return None, 0
    marked, portfolio = prose
    rows = min(len(marked), len(scores))
    differ = np.abs(marked[:rows] - scores[:rows]) > 0  # comparisons with NaN are False
    return marked, int(differ.sum()) + int(abs(portfolio - structure) > 0)
