"""Simulated authors, translator, judge and raters of the study "stories": what they plant is known.

`respond(request)` writes a story, translates one, or grades one quality of one; it depends on the request's
content alone. A story's true quality on each dimension is a function of its English text (`quality`), so
raters, judge and notebooks agree on it without passing it around. What is planted stands in
data/simulated/stories.yaml.
"""

import functools
import json
import re

import numpy as np

from compendium.asking.simulated.reply import Reply, RequestError, last_user_text, message_text, request_key
from compendium.frame.chance import Stream, normal
from compendium.frame.files import read_yaml
from compendium.frame.paths import DATA

AUTHORS = {
    "openai/gpt-5.2": (11, 15),
    "deepseek/deepseek-v3.2": (9, 13),
    "mistralai/mistral-large-2512": (10, 15),
    "anthropic/claude-sonnet-4.5": (9, 13),
    "google/gemini-3-pro-preview": (8, 12),
}  # sentences, least and most
PEOPLE = "human"
PEOPLE_LENGTH = (5, 22)
JUDGE = "meta-llama/llama-3.3-70b-instruct"
SIMULATED_STORIES = 200
BORROWED = 0.15  # share of sentences in the other style
_PROMPT = re.compile(r"Writing prompt: (.+?)\n\n", re.S)
_QUALITY = re.compile(r"Quality: (.+)\n")
_STORY = re.compile(r'"""\n(.+)\n"""', re.S)


@functools.cache
def planted() -> dict:
    """What is planted (data/simulated/stories.yaml)."""
    return read_yaml(DATA / "simulated" / "stories.yaml")


def models() -> list[str]:
    """The names it answers for."""
    return [*AUTHORS, PEOPLE, JUDGE]


def respond(request: dict) -> Reply:
    """The reply to one request. Raises RequestError (404) for an unknown model, (400) for an unknown task."""
    model, first, last = request["model"], message_text(request["messages"][0]), last_user_text(request)
    if model not in models():
        raise RequestError(
            f"the model {model!r} is not simulated; there are {', '.join(models())}", 404, "model_not_found"
        )
    if found := _STORY.search(last):
        return Reply(_judgement(request, last, found[1]))
    if last.startswith("Translate the following"):
        return Reply(translate(last.split("\n\n", 1)[1]))
    if last.startswith("Now give the Italian"):
        return Reply(translate(message_text(request["messages"][-2])))
    if found := _PROMPT.search(first + "\n\n"):
        return Reply(write_story(model, found[1], request.get("seed") or 0))
    raise RequestError("the simulated authors can write a story, translate one, or grade one")


def writing_prompt(number: int) -> str:
    """A writing prompt of the simulation, different for each number below 800."""
    bank = planted()
    who, rest = number % len(bank["prompt_who"]), number // len(bank["prompt_who"])
    what, but = rest % len(bank["prompt_what"]), rest // len(bank["prompt_what"])
    return (
        f"{bank['prompt_who'][who]} {bank['prompt_what'][(what + who) % len(bank['prompt_what'])]}, "
        f"{bank['prompt_but'][but % len(bank['prompt_but'])]}."
    )


def write_story(author: str, prompt: str, seed: int) -> str:
    """A story in English: paragraphs of sentences from the phrase bank, in the author's style and length."""
    stream = Stream("story", author, prompt, seed)
    low, high = PEOPLE_LENGTH if author == PEOPLE else AUTHORS.get(author, (10, 20))
    count = low + stream.below(high - low + 1)
    own, other = ("plain", "polished") if author == PEOPLE else ("polished", "plain")
    sentences = [_sentence(stream, other if stream.uniform() < BORROWED else own) for _ in range(count)]
    step = 3 + stream.below(3)
    return "\n\n".join(" ".join(sentences[at : at + step]) for at in range(0, count, step))


def translate(text: str) -> str:
    """The Italian of a simulated story; phrases that are not of the bank stay as they are."""

    def italian(match):
        return _italian()[match[0]]

    return _phrases().sub(italian, text)


@functools.lru_cache(maxsize=4096)
def is_machine(text: str) -> bool:
    """What the judge goes by: whether more of a text is polished than plain."""
    styles = _frames()
    found = [sum(len(frame.findall(text)) for frame in styles[name]) for name in ("polished", "plain")]
    return found[0] > found[1]


def quality(text: str, dimension: str) -> float:
    """A story's true quality on a dimension, standard normal over stories: a part that all dimensions share,
    one of its own, and for elaboration a part that length explains."""
    bank = planted()
    share = bank["raters"]["general"]
    value = share * normal("quality", text) + (1 - share**2) ** 0.5 * normal("quality", dimension, text)
    if dimension == "elaboration":
        tie = bank["length_and_elaboration"]
        value = tie * (len(text.split()) - 183) / 57 + (1 - tie**2) ** 0.5 * value
    return value


def demo_ratings(texts, rng: np.random.Generator) -> list[dict]:
    """What the simulated people answer: one dict a rating {rater, story, language, profile, scores}.

    texts : {story: English text}; with 200 of them there are 441 ratings by 115 people, with fewer as many fewer.
    Every story gets one rating first, the rest fall at random, no rater reads a story twice; raters differ in how
    many stories they read (few read many).
    """
    bank, stories = planted()["raters"], list(texts)
    share = min(1.0, len(stories) / SIMULATED_STORIES)
    people, count = max(2, round(share * bank["sessions"])), max(2, round(share * bank["ratings"]))
    order = [*rng.permutation(stories), *rng.choice(stories, size=max(0, count - len(stories)))][:count]
    raters = rng.choice(people, size=count, p=_activity(people))
    raters[:people] = rng.permutation(people)[:count]
    profiles = [_profile(rng) for _ in range(people)]
    leaning = rng.normal(0, bank["rater_sd"], people)
    taken, rows = set(), []
    for rater, story in zip(raters, order, strict=True):
        rater = _who_has_not(rater, story, people, taken)
        if rater is None:
            continue  # everybody has read this story
        taken.add((rater, story))
        machine = is_machine(texts[story])
        scores = {
            name: mean[machine]
            + bank["story_sd"] * quality(texts[story], name)
            + leaning[rater]
            + rng.normal(0, bank["noise_sd"])
            for name, mean in bank["means"].items()
        }
        rows.append(
            {
                "rater": int(rater),
                "story": int(story),
                "profile": profiles[rater],
                "language": "en" if rng.uniform() < bank["read_english"] else "it",
                "scores": {name: int(np.clip(np.rint(value), 1, 5)) for name, value in scores.items()},
            }
        )
    return sorted(rows, key=lambda row: row["rater"])


def _who_has_not(rater, story, people, taken):
    """This rater, or else the next who has not read the story; None where everybody has."""
    others = ((rater + step) % people for step in range(people))
    return next((other for other in others if (other, story) not in taken), None)


def _judgement(request, text, story):
    bank = planted()["judge"]
    label = _QUALITY.search(text)[1].lower().split(" (")[0]
    if label not in bank["means"]:
        raise RequestError(f"the judge knows no quality {label!r}")
    machine = is_machine(story)
    tie = bank["elaboration_agreement"] if label == "elaboration" else bank["agreement"]
    feeling = tie * quality(story, label) + (1 - tie**2) ** 0.5 * normal("judge", label, story)
    value = bank["means"][label][machine] + bank["spread"][machine] * feeling
    value += bank["repetition_sd"] * normal("repetition", request_key(request))
    score = min(5, max(1, round(value)))
    words = story.split()
    return json.dumps(
        {
            "score": score,
            "justification": f"{label} is {'strong' if score > 3 else 'weak'} here",
            "excerpt": " ".join(words[:6]),
        }
    )


def _sentence(stream, style):
    bank = planted()
    frame = stream.choice(bank["spoken"] if stream.uniform() < 0.12 else bank[style]).split(" | ")[0]
    for slot, words in (("{name}", bank["names"]), ("{thing}", bank["things"]), ("{place}", bank["places"])):
        if slot in frame:
            frame = frame.replace(slot, stream.choice(words).split(" | ")[0])
    if not frame.startswith('"') and stream.uniform() < 0.4:
        frame = f"{stream.choice(bank['openers']).split(' | ')[0]}, {frame}"
    return frame[0].upper() + frame[1:] + "."


@functools.cache
def _italian() -> dict:
    """{English piece: Italian}: openers, things, places and the fixed parts of frames."""
    bank, pairs = planted(), {}
    for entry in (entry for name in ("openers", "things", "places") for entry in bank[name]):
        here, there = entry.split(" | ")
        pairs[here] = there
    for entry in (entry for name in ("plain", "polished", "spoken") for entry in bank[name]):
        here, there = (re.split(r"\{\w+\}", side) for side in entry.split(" | "))
        pairs.update({a: b for a, b in zip(here, there, strict=True) if len(a.strip()) > 2})
    for here, there in list(pairs.items()):
        pairs[here[:1].upper() + here[1:]] = there[:1].upper() + there[1:]
    return pairs


@functools.cache
def _phrases():
    return re.compile("|".join(re.escape(piece) for piece in sorted(_italian(), key=len, reverse=True)))


@functools.cache
def _frames() -> dict:
    """{style: regular expressions of its frames}."""
    return {
        style: [
            re.compile(re.sub(r"\\\{\w+\\\}", ".{2,40}?", re.escape(frame.split(" | ")[0])), re.I)
            for frame in planted()[style]
        ]
        for style in ("plain", "polished")
    }


def _activity(sessions):
    weights = 1 / np.arange(1, sessions + 1) ** 0.7
    return weights / weights.sum()


def _profile(rng):
    bank = planted()["raters_are"]
    profile = {}
    for name, shares in bank.items():
        weights = np.array(list(shares.values()), dtype=float)
        profile[name] = list(shares)[rng.choice(len(weights), p=weights / weights.sum())]
    low, high = map(int, profile["age"].split("-"))
    return {**profile, "age": int(rng.integers(low, high + 1))}
