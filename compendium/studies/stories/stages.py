"""Stories: the stages that make the data, whatever the source: texts, judgements, ratings, metrics."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compendium.asking.request import Request
from compendium.asking.scores import score_from_reply
from compendium.asking.study import ask_all, simulator
from compendium.frame.archive import ArchiveError
from compendium.frame.files import read_utf8, read_yaml
from compendium.frame.params import check_source
from compendium.frame.paths import DATA, from_root
from compendium.studies.stories import data as stories
from compendium.studies.stories.data import DIMENSIONS, HIGHEST, HUMAN, LOWEST, StoriesError

INSTRUMENTS = DATA / "instruments" / "stories"


@dataclass
class Stage:
    """What a stage made, and how the asking went (None for an archive)."""

    table: pd.DataFrame
    report: object = None


@functools.cache
def prompts() -> dict:
    """The prompts by name (data/instruments/stories/prompts.yaml)."""
    return read_yaml(INSTRUMENTS / "prompts.yaml")


@functools.cache
def dimensions() -> dict:
    """{dimension: {label, definition, it}}, in the paper's order."""
    entries = read_yaml(INSTRUMENTS / "dimensions.yaml")
    return {entry["id"]: entry for entry in entries}


# texts


def generate(p, *, source: str, profile: str, out, mirror: str = "") -> Stage:
    """Stories with their Italian twins (columns compendium.studies.stories.data.TEXTS); people's are 1 … n_human, then
    each model's.

    `p` holds authors, n_human, n_per_author, prompts_file, words, temperature, max_tokens, translate,
    translator, seed. Live, the stories by people are the archive's; simulated, they are simulated too.
    """
    if check_source(source) == "archive":
        return Stage(stories.load_archive(mirror).texts)
    plan, given = _plan(p, source, mirror)
    requests = [story_request(p, row) for row in plan if row["story"] not in given]
    written, report = ask_all("stories", requests, "writing", source=source, profile=profile, out=out)
    rows = [{**row, "language": "en", "text": given[row["story"]]} for row in plan if row["story"] in given]
    rows += [
        {**request.tag, "language": "en", "text": reply.text.strip()}
        for request, reply in zip(requests, written, strict=True)
        if reply.void_reason is None and reply.text.strip()
    ]
    if p.translate:
        wanted = [translation_request(p, row) for row in rows]
        turned, _ = ask_all("stories", wanted, "translating", source=source, profile=profile, out=out)
        rows += [
            {**request.tag, "language": "it", "text": reply.text.strip()}
            for request, reply in zip(wanted, turned, strict=True)
            if reply.void_reason is None and reply.text.strip()
        ]
    table = pd.DataFrame(rows, columns=stories.TEXTS).sort_values(["story", "language"], ignore_index=True)
    again = table.duplicated(["language", "text"])  # a model that answers every prompt alike wrote one story
    table = table[~table["story"].isin(table.loc[again, "story"])].reset_index(drop=True)
    return Stage(stories.check_texts(table, [HUMAN, *p.authors]), report)


def story_request(p, row) -> Request:
    """The request for one story; `row` holds story, author, prompt. The length asked for is drawn by story
    and seed.
    """
    low, high = p.words
    words = int(np.random.default_rng([p.seed, row["story"]]).integers(low, high + 1))
    text = prompts()["generation"].format(prompt=row["prompt"], words=words)
    return Request(
        p.authors.get(row["author"], HUMAN),
        [{"role": "user", "content": text}],
        temperature=p.temperature,
        max_tokens=p.max_tokens,
        seed=p.seed + row["story"],
        tag=dict(row),
    )


def translation_request(p, row) -> Request:
    """The request for a story's Italian twin: of its author in the same conversation, or of the
    translator.
    """
    tag = {name: row[name] for name in ("story", "author", "prompt")}
    if row["author"] == HUMAN:
        messages = [{"role": "user", "content": prompts()["human_translation"].format(text=row["text"])}]
        return Request(p.translator, messages, max_tokens=p.max_tokens, seed=p.seed, tag=tag)
    asked = story_request(p, tag)
    messages = [
        *asked.content["messages"],
        {"role": "assistant", "content": row["text"]},
        {"role": "user", "content": prompts()["translation"]},
    ]
    return Request(
        asked.model, messages, temperature=p.temperature, max_tokens=p.max_tokens, seed=asked.seed, tag=tag
    )


def planned(p, out: Path) -> dict:
    """{stage: requests} of a live run; a story that is not written yet is stood in for by one of usual
    length.

    What counts is what these params ask for, whatever an earlier run with other authors or numbers has left in
    `out`.
    """
    plan, given = _plan(p, "endpoint", "")
    asked = [story_request(p, row) for row in plan if row["story"] not in given]
    path = Path(out) / "stories" / "texts.jsonl"
    there = stories.english(stories.read_texts(path)).to_dict("records") if path.is_file() else []
    written = {(row["story"], row["author"], row["prompt"]): row["text"] for row in there}
    usual = " ".join(["word"] * max(p.words))
    rows = [
        {
            **row,
            "language": "en",
            "text": given.get(row["story"])
            or written.get((row["story"], row["author"], row["prompt"]), usual),
        }
        for row in plan
    ]
    texts = pd.DataFrame(rows, columns=stories.TEXTS)
    stages = {"writing": asked, "judging": judge_requests(p, texts)}
    if p.translate:
        stages["translating"] = [
            translation_request(p, row) for row in stories.english(texts).to_dict("records")
        ]
    return stages


# judgements


def judge(p, texts: pd.DataFrame, *, source: str, profile: str, out, mirror: str = "") -> Stage:
    """Scores by the judge of every English story, dimension and repetition (columns
    compendium.studies.stories.data.JUDGEMENTS).

    `p` holds judge, repetitions, judge_temperature, judge_top_p, judge_max_tokens, retries_on_invalid, seed.
    A reply that cannot be used is asked again `p.retries_on_invalid` times, then its score is missing.
    """
    if check_source(source) == "archive":
        made = stories.load_archive(mirror).judgements
        return Stage(made[made["language"] == "en"].reset_index(drop=True))
    requests = judge_requests(p, texts)
    replies, report = ask_all(
        "stories",
        requests,
        "judging",
        source=source,
        profile=profile,
        out=out,
        parse=score,
        retries_on_invalid=p.retries_on_invalid,
    )
    values = [reply.parsed["score"] if reply.void_reason is None else np.nan for reply in replies]
    return Stage(judgements_frame(requests, values), report)


def judge_requests(p, texts: pd.DataFrame) -> list[Request]:
    """One request a story, repetition and dimension: a fresh context with the definition of that dimension
    alone.
    """
    return [
        Request(
            p.judge,
            [{"role": "system", "content": prompts()["judge_system"]}, {"role": "user", "content": user}],
            temperature=p.judge_temperature,
            top_p=p.judge_top_p,
            max_tokens=p.judge_max_tokens,
            seed=p.seed + repetition,
            sample=repetition,
            tag={"story": row.story, "repetition": repetition, "dimension": name},
        )
        for row in stories.english(texts).itertuples(index=False)
        for repetition in range(p.repetitions)
        for name, user in _questions(row.text).items()
    ]


def score(text: str):
    """A judge's reply as a whole number from 1 to 5 (`Parsed`); raises InvalidReply."""
    return score_from_reply(text, LOWEST, HIGHEST, also=("rating", *DIMENSIONS), whole=True)


def judgements_frame(requests, values) -> pd.DataFrame:
    """values[request] as a table, one row a story and repetition; a void score is missing."""
    tags = pd.DataFrame([request.tag for request in requests]).assign(value=values)
    wide = tags.pivot(index=["story", "repetition"], columns="dimension", values="value").reindex(
        columns=list(DIMENSIONS)
    )
    return wide.reset_index().assign(language="en").rename_axis(columns=None)[stories.JUDGEMENTS]


def _plan(p, source, mirror) -> tuple[list[dict], dict]:
    """([{story, author, prompt}] of all stories, {story: text} of those that are given and need not be asked
    for).
    """
    authors = [HUMAN] * p.n_human + [author for author in p.authors for _ in range(p.n_per_author)]
    if source == "simulated":
        writing_prompt = simulator("stories").writing_prompt
        return [
            {"story": number, "author": author, "prompt": writing_prompt(number - 1)}
            for number, author in enumerate(authors, 1)
        ], {}
    try:
        known = stories.english(stories.load_archive(mirror).texts)
    except ArchiveError as error:  # nobody's stories then, and our own prompts
        print(f"WARNING: without the archive there are no stories by people: {error}")
        writing_prompt = simulator("stories").writing_prompt
        asked = [writing_prompt(number) for number in range(len(p.authors) * p.n_per_author)]
        known = pd.DataFrame({"author": "", "prompt": asked, "text": ""})
    people = known[known["author"] == HUMAN].head(p.n_human)
    if p.prompts_file:
        content = read_utf8(from_root(p.prompts_file), StoriesError, "writing prompts, one a line")
        asked = [line.strip() for line in content.splitlines() if line.strip()]
    else:
        asked = list(known.loc[known["author"] != HUMAN, "prompt"])
    needed = len(p.authors) * p.n_per_author
    if len(asked) < needed:
        raise StoriesError(
            f"{needed} writing prompts are needed, {p.prompts_file or 'the archive'} has {len(asked)}"
        )
    authors = authors[p.n_human - len(people) :]
    lines = [*people["prompt"], *asked[:needed]]
    plan = [
        {"story": number, "author": author, "prompt": line}
        for number, (author, line) in enumerate(zip(authors, lines, strict=False), 1)
    ]
    return plan, dict(zip(range(1, len(people) + 1), people["text"], strict=True))


def _questions(text) -> dict:
    """{dimension: the judge's user message about this text}."""
    template = prompts()["judge_user"]
    return {
        name: template.replace("{label}", entry["label"])
        .replace("{definition}", entry["definition"].strip())
        .replace("{text}", text)
        for name, entry in dimensions().items()
    }
