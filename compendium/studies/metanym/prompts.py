"""The game's prompts: Appendix B.1, B.2 and its un-anchored form, and D.2, filled with submissions and
questions.

Templates lie word for word in data/instruments/metanym. They hold braces of their own (JSON), so a place is
filled by name and nothing else is touched.
"""

from functools import cache

import yaml

from compendium.frame.files import read_utf8
from compendium.frame.paths import DATA, shown
from compendium.studies.metanym.game import MetanymError

FOLDER = DATA / "instruments" / "metanym"
LETTERS = ("A", "B", "C", "D")


@cache
def template(name: str) -> str:
    """The instrument `name` (a file of data/instruments/metanym), as printed. Raises MetanymError if it is
    not there.
    """
    path = FOLDER / name
    if not path.is_file():
        raise MetanymError(
            f"{shown(path)}: no such instrument; there are "
            f"{', '.join(sorted(p.name for p in FOLDER.iterdir() if p.name != 'README.md'))}"
        )
    return read_utf8(path, MetanymError, "an instrument")


def generation_prompt() -> str:
    """B.1: what every player gets."""
    return template("generation.md")


def evaluation_prompt(target: str, reference: str, anchor: int) -> str:
    """B.2: one target portfolio beside the reference, pinned at `anchor` on every criterion.

    Raises MetanymError for an anchor outside 1-10 or an empty portfolio.
    """
    if not 1 <= int(anchor) <= 10:
        raise MetanymError(f"the anchor must lie on the rating scale, 1 to 10, not {anchor}")
    _check_text(target=target, reference=reference)
    return _fill(
        "evaluation_anchored.md",
        ANCHOR_SCORE=str(int(anchor)),
        REFERENCE_SUBMISSION=reference.strip(),
        TARGET_SUBMISSION=target.strip(),
    )


def raw_prompt(submissions: dict) -> str:
    """The un-anchored form: a batch of portfolios {submission id: text}, each under its own heading."""
    if not submissions:
        raise MetanymError("a batch needs at least one submission")
    _check_text(**{str(name): text for name, text in submissions.items()})
    batch = "\n\n---\n\n".join(
        f"### Submission {name}\n\n{text.strip()}" for name, text in submissions.items()
    )
    return _fill("evaluation_unanchored.md", SUBMISSIONS=batch)


def gpqa_prompt(question: str, options) -> str:
    """D.2: a question and its four options in the order shown. Raises MetanymError for another number of
    options.
    """
    if len(options) != len(LETTERS):
        raise MetanymError(f"a question has four options, not {len(options)}")
    return _fill("gpqa.txt", question=question, **dict(zip(LETTERS, options)))


def unanchored_form(anchored: str) -> str:
    """The un-anchored form as the Bootstrap note derives it from B.2.

    Raises MetanymError naming a change whose passage does not occur.
    """
    for change in yaml.safe_load(template("unanchored_changes.yaml")):
        if change["from"] not in anchored:
            raise MetanymError(
                f"unanchored_changes.yaml, item {change['item']}: the passage "
                f"{change['from'][:40]!r}… does not occur in the anchored form"
            )
        anchored = anchored.replace(change["from"], change["to"])
    return anchored


def _fill(name: str, **places) -> str:
    """One pass over the template, so that a place inside a submission's own text is left as it is."""
    parts, rest = [], template(name)
    while True:
        found = [(rest.find("{" + place + "}"), place) for place in places]
        found = [(at, place) for at, place in found if at >= 0]
        if not found:
            return "".join(parts) + rest
        at, place = min(found)
        parts += [rest[:at], places[place]]
        rest = rest[at + len(place) + 2 :]


def _check_text(**texts) -> None:
    for name, text in texts.items():
        if not text or not text.strip():
            raise MetanymError(
                f"the portfolio {name!r} is empty: it was never generated or its reply was void"
            )
