"""From a reply's text to one score and its justification."""

import re
from collections.abc import Sequence

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import Parsed, answer_text
from compendium.asking.replies import as_number, is_placeholder, object_with, plain

_LABEL = re.compile(
    r"^[^\w\n]{0,40}(?:(?:final|overall|my)\s{1,9})?(?:score|rating)[\s*_\"'`]{0,9}[:=]([^\n]{0,200})",
    re.I | re.M,
)
_SAID = re.compile(
    r"[\s*_\"'`(\[]*([+\-−–]?\s?\d{1,400}(?:[.,]\d{1,9})?(?:\s{0,9}(?:/|out of)\s{0,9}\d{1,9})?)(?!\w|[.,]\d)(.*)",
    re.I,
)
_MORE = re.compile(r"[\s*_)\]]*(?:[-–—−~/,]|…|\.\.|(?:to|or|and|through|versus|vs\.?)\b)[\s*_]*\d", re.I)
_MINUS = str.maketrans("−–", "--")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:\s*(?:/|out of)\s*\d+(?:\.0)?)?")


def score_from_reply(
    text: str,
    lo: float,
    hi: float,
    *,
    key: str = "score",
    text_key: str = "justification",
    also: Sequence[str] = ("rating",),
    whole: bool = False,
) -> Parsed:
    """A score between `lo` and `hi`: `values` is {key: number, text_key: text}; the text is "" where there is
    none.

    `also` lists other names for the score (the dimension's own name, for one). Without JSON a reply that is
    only a number counts, and so does one line "Score: 7" as long as no other such line says otherwise; where
    there is JSON, it counts and the prose does not. Raises InvalidReply: what `object_with` raises, "not a
    number", "out of range", "not whole", "conflict".
    """
    try:
        answer, name = _first_held(text, (key, *also))
    except InvalidReply as problem:
        if problem.kind != "no JSON":
            raise
        return _score_in_prose(text, lo, hi, key, text_key, whole)
    said = answer.values[name]
    if said is None or is_placeholder(said):
        raise InvalidReply("missing", key)
    repairs = set(answer.repairs) - {"extra keys"}
    score = as_number(said, lo, hi, whole)
    if isinstance(said, str):
        repairs.add("number respelled")
    if name != key:
        repairs.add("keys renamed")
    texts = {plain(k): value for k, value in answer.details.items()}
    why = next(
        (
            texts[name]
            for name in (plain(text_key), "justification", "reasoning", "reason", "explanation", "rationale")
            if isinstance(texts.get(name), str)
        ),
        "",
    )
    if not why:
        repairs.add("text missing")
    return Parsed({key: score, text_key: why}, tuple(sorted(repairs)), answer.details)


def _first_held(text, names):
    problem = None
    for name in names:
        try:
            return object_with(text, (name,), alone=True), name
        except InvalidReply as error:
            if error.kind != "missing":
                raise
            problem = problem or error
    raise problem


def _score_in_prose(text, lo, hi, key, text_key, whole):
    body, repairs = answer_text(text)
    if _NUMBER.fullmatch(body.strip().strip("*.").strip()):
        said, name, why = body.strip().strip("*.").strip(), "bare number", ""
    else:
        found = set()
        for line in _LABEL.findall(body):
            stated = _SAID.match(line)
            if stated and _MORE.match(stated[2]):
                raise InvalidReply("conflict", f"a range or a choice of scores: {line.strip()[:40]!r}")
            found |= {re.sub(r"\s", "", stated[1]).translate(_MINUS)} if stated else set()
        if not found:
            raise InvalidReply("no JSON", "neither an object nor a line with a score in the reply")
        if len(found) > 1:
            raise InvalidReply("conflict", f"several scores: {', '.join(sorted(found))}")
        said, name, why = found.pop().replace("outof", "/"), "score in prose", body.strip()
    return Parsed({key: as_number(said, lo, hi, whole), text_key: why}, tuple(sorted({*repairs, name})), {})
