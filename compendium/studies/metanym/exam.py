"""The keyed test: how it is put, how answers are read off replies, and the audit of what came back.

Source: The Metanym Game, Appendix D.2 (administration in two stages) and D.3 (audit). No key enters a prompt:
the prompt holds the question and its four options in an order drawn by the question's index.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from compendium.asking.reasoning import tell
from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.prompts import LETTERS

INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\u00ad]")
DRESS = r"[*_\s$(\[`\"']{0,12}"  # what a letter may be dressed in
WRAP = r"(?:\\(?:text|mathrm|mathbf|textbf|boxed|rm|bf)\s{0,4}\{?\s{0,4}){0,4}"
LETTER = rf"{DRESS}{WRAP}{DRESS}([A-D])(?![\w'’-])"
TERMINAL = re.compile(r"^\W*Answer\s{0,9}:[\s$(]{0,9}([A-D])[\s)$]{0,9}\W*$", re.I)
STATED = (
    re.compile(rf"\b(?i:answer)[*_\s]*(?i:is[*_\s]*:?|:)(?:{DRESS}(?i:option|choice))?{LETTER}"),
    re.compile(rf"\\boxed\s*\{{{LETTER}"),
    re.compile(
        rf"\b(?i:correct|right|best)\s+(?i:answer|option|choice)\s+(?i:is)\s*:?(?:{DRESS}(?i:option|choice))?{LETTER}"
    ),
    # a line that is the statement and nothing else may spell the letter small, and may lack the colon
    re.compile(rf"^\W*(?i:answer)\s*:{LETTER.replace('A-D', 'a-d')}\W*$", re.M),
    re.compile(rf"^\W*(?i:answer)[*_\s]{LETTER}\W*$", re.M),
)
# "A or B", "A/B", "A, B", "A and B" settle on nothing
MORE = re.compile(
    rf"(?:\W{{0,9}}\b(?i:or|and|to|through|versus|vs)\b|[^\w\n.;:(]{{0,5}}[/,&-])(?:{DRESS}(?i:option|choice))?{LETTER}"
)
LONE = re.compile(r"^\W*([A-D])\W*$")
COLUMNS = ("model", "question", "text", "key")


class Balance(NamedTuple):
    """How often each letter is the key, and the chi-square test against a uniform key."""

    counts: dict
    chi2: float
    p: float


def shuffled_options(index: int, options, seed: int = 0) -> tuple[list, str]:
    """(options in the order shown, letter of the first option given, the key) for question `index`.

    The order depends on the index and the seed alone, so every model sees the same. Raises MetanymError
    unless there are four different options.
    """
    if len(options) != len(LETTERS) or len(set(options)) != len(LETTERS):
        raise MetanymError(f"question {index}: four different options are needed, the key first")
    order = np.random.default_rng([seed, index]).permutation(len(LETTERS))
    return [options[place] for place in order], LETTERS[int(np.flatnonzero(order == 0)[0])]


def strict_answer(text: str) -> str | None:
    """The letter of an explicit terminal statement: the last line is `Answer: X`; else None."""
    lines = [line for line in _said(text).splitlines() if line.strip()]
    found = TERMINAL.match(lines[-1]) if lines else None
    return found[1].upper() if found else None


def _said(text) -> str:
    """A reply without its reasoning and without what nobody sees; "" where it ends inside its reasoning."""
    told = tell(text or "")
    return "" if told.open else INVISIBLE.sub("", told.answer)


def lenient_answer(text: str) -> str | None:
    """The letter a reply settles on, however it says so: the last of `Answer: X`, a boxed letter, "the
    correct answer is X", or a last line that is one letter; None (void) where there is no such statement or where
    it names a choice ("A or B")."""
    text = _said(text)
    found = [match for pattern in STATED for match in pattern.finditer(text)]
    if found:
        last = max(found, key=lambda match: (match.end(), -match.start()))
        return None if MORE.match(text, last.end(1)) else last[1].upper()
    lines = [line for line in text.splitlines() if line.strip()]
    lone = LONE.match(lines[-1]) if lines else None
    return lone[1].upper() if lone else None


def score_replies(replies: pd.DataFrame, extract=lenient_answer) -> pd.DataFrame:
    """Per model: n, correct, void, accuracy (per cent, voids wrong), accuracy_given (voids left out), strict
    (per cent, terminal statements only), questionable (credited without a terminal statement).

    replies: columns model, question, text, key. Raises MetanymError for a missing column, a question answered
    twice by one model, or a key that is no letter A-D.
    """
    _check(replies)
    said, terminal = replies["text"].map(extract), replies["text"].map(strict_answer)
    right, right_strict = said == replies["key"], terminal == replies["key"]
    table = pd.DataFrame(
        {
            "n": 1,
            "correct": right,
            "void": said.isna(),
            "strict_correct": right_strict,
            "questionable": right & ~right_strict,
        }
    ).astype(int)
    table = table.groupby(replies["model"], sort=False).sum()
    table["accuracy"] = 100 * table["correct"] / table["n"]
    table["accuracy_given"] = (
        100 * table["correct"] / (table["n"] - table["void"]).where(table["n"] > table["void"])
    )
    table["strict"] = 100 * table["strict_correct"] / table["n"]
    return table


def merge_stages(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Patch the void replies of a first stage with a second stage's, and nothing else (D.2).

    Returns (patched replies, per model: voids, retried, rescued (retried and correct), residual,
    accuracy_first (first stage, scored replies only, per cent), accuracy_retried). Raises MetanymError where
    the second stage asks a question again that had been answered.
    """
    _check(first)
    _check(second)
    key = ["model", "question"]
    void = first["text"].map(lenient_answer).isna()
    voids = pd.MultiIndex.from_frame(first.loc[void, key])
    again = pd.MultiIndex.from_frame(second[key])
    wrong = ~again.isin(voids)
    if wrong.any():
        model, question = again[wrong][0]
        raise MetanymError(
            f"{model} was asked question {question} again although its first reply had an answer: only "
            "void replies may be re-asked"
        )
    kept = first[~(void & pd.MultiIndex.from_frame(first[key]).isin(again))]
    patched = pd.concat([kept, second], ignore_index=True).sort_values(key, kind="stable", ignore_index=True)
    before, retried, after = score_replies(first), score_replies(second), score_replies(patched)
    report = pd.DataFrame(
        {
            "voids": before["void"],
            "retried": retried["n"],
            "rescued": retried["correct"],
            "residual": after["void"],
            "accuracy_first": before["accuracy_given"],
            "accuracy_retried": retried["accuracy_given"],
        }
    ).reindex(before.index)
    counts = ["retried", "rescued"]
    report[counts] = report[counts].fillna(0).astype(int)
    return patched, report


def key_balance(keys) -> Balance:
    """Counts of the key's letters and the chi-square test against a uniform key (D.3, check 3)."""
    keys = list(keys)
    counts = {letter: keys.count(letter) for letter in LETTERS}
    if sum(counts.values()) != len(keys) or not keys:
        raise MetanymError("every key should be a letter from A to D")
    test = stats.chisquare(list(counts.values()))
    return Balance(counts, float(test.statistic), float(test.pvalue))


def audit(replies: pd.DataFrame, published: pd.Series | None = None) -> pd.DataFrame:
    """The audit's checks on raw replies: columns check, passed, detail (D.3, checks 1-5).

    published: correct counts by model to be reconciled with. A failing check is a row, not an error.
    """
    scores = score_replies(replies)
    letters = replies.groupby("question")["key"].nunique()
    balance = key_balance(replies.drop_duplicates("question")["key"])
    leaks = (
        replies["prompt"].str.contains(r"\bkey\b|\bcorrect answer\b", case=False).sum()
        if "prompt" in replies
        else 0
    )
    rows = [
        (
            "one key for each question in every model's record",
            bool((letters == 1).all()),
            f"{int((letters > 1).sum())} of {len(letters)} questions with two keys",
        ),
        (
            "every model got every question",
            bool((scores["n"] == len(letters)).all()),
            f"{len(letters)} questions",
        ),
        (
            "the key is balanced",
            balance.p > 0.05,
            f"{balance.counts}, chi2 {balance.chi2:.2f}, p {balance.p:.2f}",
        ),
        ("no key enters a prompt", leaks == 0, f"{leaks} prompts that speak of a key"),
    ]
    if published is not None:
        wrong = [name for name in scores.index if scores.at[name, "correct"] != published.get(name)]
        rows.append(("counts equal the published ones", not wrong, ", ".join(wrong) or "all models"))
    return pd.DataFrame(rows, columns=["check", "passed", "detail"])


def _check(replies: pd.DataFrame) -> None:
    absent = [name for name in COLUMNS if name not in replies]
    if absent:
        raise MetanymError(f"the replies have no column {absent[0]!r}; needed: {', '.join(COLUMNS)}")
    repeated = replies.duplicated(["model", "question"])
    if repeated.any():
        row = replies[repeated].iloc[0]
        raise MetanymError(f"{row['model']} has two replies to question {row['question']}: keep one")
    wrong = ~replies["key"].isin(LETTERS)
    if wrong.any():
        raise MetanymError(
            f"question {replies[wrong].iloc[0]['question']}: key {replies[wrong].iloc[0]['key']!r} is no "
            "letter from A to D"
        )
