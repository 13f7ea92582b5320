"""Creature descriptions from a grammar, and how they are read again.

The words are data (data/simulated/alienbench.yaml). `Grammar.write` turns "symmetry departs, habitat is
Earth-typical, reproduction is not mentioned …" into a text; `Grammar.read` finds the same out from the text
alone. Every choice comes from the `Stream` handed in.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import yaml

from compendium.frame.chance import Stream
from compendium.frame.paths import DATA

SOURCE = DATA / "simulated" / "alienbench.yaml"
KINDS = ("departure", "subtle_departure", "typical", "subtle_typical")
DEPARTS = {"departure": True, "subtle_departure": True, "typical": False, "subtle_typical": False}
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Phrase:
    """One sentence about one feature: its `kind`, a `gloss` of a few words, the `text` with slots in braces."""

    feature: str
    kind: str
    gloss: str
    text: str

    @property
    def cue(self) -> str:
        """The longest stretch of the text that no slot can change."""
        return max(_SLOT.sub("\0", self.text).split("\0"), key=len)


@dataclass(frozen=True)
class Writer:
    """How a model writes: form, most words of visible text, share of Earth-typical features left out,
    snapshot."""

    form: str
    words: int
    reticence: float
    resolved: str


class Grammar:
    """The grammar of creature descriptions.

    `content` is the mapping of data/simulated/alienbench.yaml. Raises ValueError for a kind without sentences
    or for two sentences that share their cue.
    """

    def __init__(self, content: dict):
        self._content = content
        self.writers = {model: Writer(**entry) for model, entry in content["writers"].items()}
        self.judges, self.people = content["judges"], content["people"]
        self.features = tuple(content["phrases"])
        self.phrases = {}
        for feature, entry in content["phrases"].items():
            for kind in KINDS:
                if not entry.get(kind):
                    raise ValueError(f"{SOURCE.name}: phrases.{feature} lacks sentences of kind {kind!r}")
                self.phrases[feature, kind] = [Phrase(feature, kind, **one) for one in entry[kind]]
        everything = [phrase for several in self.phrases.values() for phrase in several]
        self._by_word: dict[str, list] = {}
        for place, phrase in enumerate(everything):
            double = [other.text for other in everything if phrase.cue in other.text and other is not phrase]
            if double:
                raise ValueError(f"{SOURCE.name}: {phrase.text!r} cannot be told from {double[0]!r}")
            # A whole word of the cue leads to it, so a text is not searched for every cue there is.
            word = max(phrase.cue.split()[1:-1], key=len)
            self._by_word.setdefault(word, []).append((place, phrase.cue, phrase))
        self._hints = {
            feature: {kind: _any_of(words) for kind, words in entry.items()}
            for feature, entry in content["hints"].items()
        }

    # writing ------------------------------------------------------------------------------------------------

    def write(self, stream: Stream, kinds: dict, *, form: str, condition: str, words: int) -> str:
        """A description.

        `kinds` maps the features that are described to one of `KINDS`; the others stay out of the text.
        `form` is essay, sections, fieldnotes, dossier or plain. `words` is the length aimed at; what is
        described is never cut.
        """
        sheet = _Sheet(self._content, stream)
        said = {
            feature: [sheet.fill(stream.choice(self.phrases[feature, kind]).text)]
            for feature, kind in kinds.items()
        }
        openings = self._content["openings"]
        opening = sheet.fill(stream.choice(openings.get(condition) or openings["default"]))
        endings = self._content["questions"] if form == "dossier" else self._content["closings"]
        closing = sheet.fill(stream.choice(endings))
        spare = words - _count([opening, closing, *(sentence for (sentence,) in said.values())])
        elaborate = [feature for feature in stream.shuffled(list(said)) if form != "plain"]
        asides = [sheet.fill(text) for text in stream.shuffled(self._content["asides"])[:24]]
        chosen = []
        while spare > 0 and (asides or elaborate):
            # Two asides to an elaboration, as long as there are both.
            if elaborate and (len(chosen) % 3 == 2 or not asides):
                feature = elaborate.pop()
                sentence = sheet.fill(stream.choice(self._content["phrases"][feature]["elaborations"]))
                said[feature].append(sentence)
                chosen.append(None)
            elif asides:
                sentence = asides.pop()
                chosen.append(sentence)
            spare -= _count([sentence])
        return _FORMS[form](self, sheet, stream, opening, said, [aside for aside in chosen if aside], closing)

    def paragraphs(self, said: dict) -> list[tuple[str, str]]:
        """(heading, sentences) of each group of features that has something to say."""
        found = []
        for group in self._content["groups"]:
            sentences = [sentence for feature in group["features"] for sentence in said.get(feature, ())]
            if sentences:
                found.append((group["heading"], " ".join(sentences)))
        return found

    def entries(self, said: dict) -> list[tuple[str, str]]:
        """(label, sentences) of each feature that is described, in the groups' order."""
        ordered = [feature for group in self._content["groups"] for feature in group["features"]]
        return [
            (self._content["phrases"][feature]["label"], " ".join(said[feature]))
            for feature in ordered
            if feature in said
        ]

    # reading ------------------------------------------------------------------------------------------------

    def read(self, text: str) -> dict:
        """{feature: (kind, gloss)} of the features that a text describes, found by the sentences' cues.

        A text of another origin is read by a list of tell-tale words; its kinds are then departure or
        typical.
        """
        words = text.split()
        flat, found = " ".join(words), {}
        possible = [entry for word in self._by_word.keys() & set(words) for entry in self._by_word[word]]
        for _, cue, phrase in sorted(possible, key=lambda entry: entry[0]):
            if cue in flat:
                found.setdefault(phrase.feature, (phrase.kind, phrase.gloss))
        return found or self._read_by_words(flat.lower())

    def _read_by_words(self, text):
        found = {}
        for feature, kinds in self._hints.items():
            for kind in ("departure", "typical"):
                hit = kinds[kind].search(text)
                if hit:
                    start = text.rfind(" ", 0, max(0, hit.start() - 20)) + 1
                    found[feature] = (
                        kind,
                        " ".join(text[start : hit.end() + 40].split()[:12]).strip(" ,.;:*#-"),
                    )
                    break
        return found

    def condition_of(self, prompt: str, known: dict) -> str:
        """The condition a prompt belongs to: the one whose text it is (`known` {id: text}), else by its
        words."""
        flat = " ".join(prompt.split())
        for condition, text in known.items():
            if " ".join(text.split()) == flat:
                return condition
        for condition, words in self._content["condition_words"].items():
            if any(word in flat.lower() for word in words):
                return condition
        return "baseline"


class _Sheet:
    """The names and slots of one text."""

    def __init__(self, content, stream):
        self._slots, self._stream = content["slots"], stream
        names, planets = content["names"], content["planets"]
        if stream.uniform() < 0.5:
            name = stream.choice(names["first"]) + stream.choice(names["second"])
        else:
            name = "".join(stream.shuffled(names["syllables"])[: 2 + stream.below(2)])
        planet = "".join(stream.shuffled(planets["syllables"])[: 2 + stream.below(2)]).capitalize()
        self.values = {"name": name, "planet": planet + stream.choice(planets["suffixes"])}

    def fill(self, text: str) -> str:
        """The sentence with its slots filled."""
        return _SLOT.sub(lambda slot: self._fill_one(slot.group(1)), text)

    def _fill_one(self, slot):
        if slot in self.values:
            return self.values[slot]
        if slot.endswith("_cap"):
            word = self._stream.choice(self._slots[slot[:-4]])
            return word[0].upper() + word[1:]
        return self._stream.choice(self._slots[slot])


def _any_of(words):
    """A pattern that finds the first of some beginnings of words."""
    return re.compile(r"\b(" + "|".join(map(re.escape, words)) + ")")


def _count(sentences) -> int:
    return sum(len(sentence.split()) for sentence in sentences)


def _in_chunks(sentences, size):
    return [" ".join(sentences[at : at + size]) for at in range(0, len(sentences), size)]


def _essay(grammar, sheet, stream, opening, said, asides, closing):
    blocks = [" ".join([opening, *asides[:2]])]
    blocks += [text for _, text in grammar.paragraphs(said)]
    return "\n\n".join([*blocks, *_in_chunks(asides[2:], 4), closing])


def _sections(grammar, sheet, stream, opening, said, asides, closing):
    blocks = [f"# The {sheet.values['name']} of {sheet.values['planet']}", " ".join([opening, *asides[:2]])]
    for heading, text in grammar.paragraphs(said):
        blocks += [f"## {heading}", text]
    if asides[2:]:
        blocks += ["## Further observations", *_in_chunks(asides[2:], 4)]
    return "\n\n".join([*blocks, closing])


def _fieldnotes(grammar, sheet, stream, opening, said, asides, closing):
    day, blocks = 1 + stream.below(9), [f"Field notes, {sheet.values['planet']}.", opening]
    rest = list(asides)
    for _, text in grammar.paragraphs(said):
        extra = rest.pop(0) if rest else ""
        blocks.append(f"Day {day}. {text} {extra}".strip())
        day += 1 + stream.below(11)
    return "\n\n".join([*blocks, *_in_chunks(rest, 3), closing])


def _dossier(grammar, sheet, stream, opening, said, asides, closing):
    title = sheet.values["name"].capitalize()
    blocks = [f"**Name:** {title}\n**World:** {sheet.values['planet']}", opening, "**Key characteristics**"]
    blocks.append("\n".join(f"- **{label}.** {text}" for label, text in grammar.entries(said)))
    if asides:
        blocks += ["**Notes**", "\n".join(f"{at}. {aside}" for at, aside in enumerate(asides, 1))]
    return "\n\n".join([*[block for block in blocks if block], closing])


def _plain(grammar, sheet, stream, opening, said, asides, closing):
    sentences = [sentence for several in said.values() for sentence in several]
    start = f"My creature is called the {sheet.values['name']}."
    return " ".join([start, *stream.shuffled(sentences), *asides])


_FORMS = {
    "essay": _essay,
    "sections": _sections,
    "fieldnotes": _fieldnotes,
    "dossier": _dossier,
    "plain": _plain,
}


@functools.cache
def grammar() -> Grammar:
    """The project's grammar, read once a process."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Grammar(yaml.load(SOURCE.read_text(encoding="utf-8"), Loader=loader))
