"""What prose states that no code computes: `python -m compendium.frame.claims NOTEBOOK …` lists it, place by place.

A sentence written for one data set is false beside another. So a number, a share or a superlative in a Markdown cell
is either computed (`page.says`, `page.holds`) or its cell carries the tag that says why it may stand there:

by-hand   a worked example, which the code cell after it recomputes: its output holds one of the numbers at least
paper     what the paper prints: each number is among data/published/ or the study's findings
method    true by definition, by the design or by the parameters, whatever the data
exercise  the question, or a solution whose numbers its own code checks
"""

import ast
import json
import re
import sys
from functools import lru_cache
from pathlib import Path

import pandas as pd
import yaml

from compendium.frame.paths import ACROSS, DATA, ROOT, STUDIES, shown

REASONS = ("by-hand", "paper", "method", "exercise")
WORDS, CELLS, LINES = 700, 14, 12  # of prose; of code cells in sight; of code in sight before the first idea

PLACE = r"(?:[A-Z](?:\.\d+)*|\d+(?:\.\d+)*[a-z]?)\b"
REFERENCE = (
    r"(?:[Ss]ections?|[Tt]ables?|[Ff]igures?|[Aa]ppendix|[Aa]ppendices|[Ee]quations?|[Nn]otebooks?|[Pp]ages?|[Aa]lgorithms?"
    r"|[Ff]ootnotes?|§)\s+" + PLACE + r"(?:(?:,\s*(?:and\s+)?|\s+(?:and|to|or)\s+|\s*[–-]\s*)" + PLACE + ")*"
)
# what is no claim: code, formulas, links, tags of HTML, headings, places, notebooks (01 to 07), names with a digit in them, years
NO_CLAIM = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.+?\$\$|\$[^$\n]+?(?:\n[^$\n]+?)?\$|!?\[[^\]]*\]\([^)]*\)|</?\w[^>]*>|^#+ [^\n]*|"
    + REFERENCE
    + r"|\b0\d\b(?:\+|(?: to |–)\d\d\b)?|\b[A-Za-z][\w.]*(?:-\w[\w.]*)*-?\d[\w.-]*|\b(?:1[89]|20)\d\d\b",
    re.S | re.M,
)
NUMBER = r"(?<![\w.])[−-]?\d+(?:,\d{3})+(?:\.\d+)?|(?<![\w.])[−-]?\d+(?:\.\d+)?|(?<![\w.])\.\d+|[½⅓⅔¼¾]"
COUNT = (
    "two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty sixty hundred thousand"
    " million dozen half twice thirds quarter quarters"
).split()
DEGREE = (
    "most least best worst largest smallest biggest highest lowest greatest longest shortest strongest weakest fewest"
    " closest nearest farthest widest narrowest hardest easiest earliest latest"
).split()
COMPARED = "higher lower larger smaller greater longer shorter stronger weaker fewer better worse closer wider narrower"
CLAIM = re.compile(
    rf"(?P<number>{NUMBER})|\b(?:{'|'.join([*COUNT, *DEGREE])})\b|\ba third\b"
    rf"|\b(?:{'|'.join(COMPARED.split())}) (?:than|still)\b|\b(?:still|even) (?:{'|'.join(COMPARED.split())})\b",
    re.I,
)


PAPERS = [study for study in STUDIES if study != ACROSS]


def load(path) -> dict:
    """A notebook's JSON; raises ValueError naming the file where it is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no notebook: {error}") from None


def faults(path) -> list[str]:
    """All that is wrong with a notebook's prose and length, one line each: where, and what."""
    book = load(path)
    study = Path(path).parent.name
    return [*unchecked(book, study), *not_recomputed(book), *struck(book), *literal(book), *too_long(book)]


def claims(markdown: str) -> list[tuple[str, str, bool]]:
    """(what is claimed, its line, whether it is written in digits) for every number and superlative of a Markdown text."""
    blank = NO_CLAIM.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), markdown)
    lines = markdown.splitlines()
    return [
        (found[0], lines[blank.count("\n", 0, found.start())].strip(), found["number"] is not None)
        for found in CLAIM.finditer(blank)
    ]


def unchecked(book: dict, study: str) -> list[str]:
    """Claims in Markdown cells without a tag that gives the reason, and numbers of `paper` cells that no paper prints."""
    found = []
    for cell in book["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        tags, text = set(cell["metadata"].get("tags", [])), "".join(cell["source"])
        if "paper" in tags:
            found += [
                f"{cell['id']}: {said} is not in data/published: {line}"
                for said, line, digits in claims(text)
                if digits and not printed(said, study)
            ]
        elif not tags & set(REASONS):
            found += [f"{cell['id']}: {said}: {line}" for said, line, _ in claims(text)]
    return found


def printed(number: str, study: str) -> bool:
    """Whether a paper of the study prints a number: as it stands or, in per cent, as a share; rounded to the digits said.

    A sign is left out of the comparison. All five papers count for a notebook of no study.
    """
    number = number.translate(str.maketrans("", "", ",−-"))
    value, digits = float(number), len(number.partition(".")[2])
    return any(
        abs(round(scale * each, digits) - value) < 1e-9
        for each in printed_numbers(study)
        for scale in (1, 100)
    )


@lru_cache
def printed_numbers(study: str) -> tuple[float, ...]:
    """Magnitudes of the numbers in data/published/<study>.csv, and of those in its findings."""
    found = set()
    for name in [study] if study in PAPERS else PAPERS:
        frame = pd.read_csv(DATA / "published" / f"{name}.csv")
        for column in ("value", "lo", "hi"):
            found |= set(pd.to_numeric(frame[column]).dropna().abs())
        findings = DATA / "published" / f"{name}_findings.yaml"
        text = yaml.dump(
            yaml.safe_load(findings.read_text(encoding="utf-8")), allow_unicode=True, width=10**6
        )
        found |= _numbers(text)
    return tuple(sorted(found))


def not_recomputed(book: dict) -> list[str]:
    """Cells tagged `by-hand` after which no code cell's output holds any of their numbers."""
    found = []
    for cell, after in zip(book["cells"], [*book["cells"][1:], {}]):
        if cell["cell_type"] != "markdown" or "by-hand" not in cell["metadata"].get("tags", []):
            continue
        given = _numbers(json.dumps(after.get("outputs", []), ensure_ascii=False))
        said = re.findall(r"\d*\.?\d+", "".join(cell["source"]))
        if not any(round(each, len(one.partition(".")[2])) == float(one) for one in said for each in given):
            found.append(f"{cell['id']}: by-hand: the code cell after it gives none of its numbers")
    return found


def _numbers(text: str) -> set[float]:
    return {float(each) for each in re.findall(r"\d*\.?\d+", text.replace(",", ""))}


def struck(book: dict) -> list[str]:
    """Sentences that the committed outputs show struck out."""
    return [
        f"{cell['id']}: struck out: {' '.join(text.split())}"
        for cell in book["cells"]
        for output in cell.get("outputs", [])
        if "~~" in (text := "".join(output.get("data", {}).get("text/markdown", "")))
    ]


def literal(book: dict) -> list[str]:
    """Sentences given to `page.says` as they are although they claim something, and `page.holds` told that all is well."""
    found = []
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(line for line in "".join(cell["source"]).splitlines(True) if line[:1] not in "%!")
        for call in ast.walk(ast.parse(source)):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("page.says", "page.holds"):
                continue
            first, *rest = call.args
            if call.func.attr == "holds":
                if rest and isinstance(rest[0], ast.Constant):
                    found.append(f"{cell['id']}: page.holds is handed {rest[0].value}, not a comparison")
            elif isinstance(first, ast.Constant):
                found += [
                    f"{cell['id']}: {said} is not computed: {line}" for said, line, _ in claims(first.value)
                ]
    return found


def too_long(book: dict) -> list[str]:
    """Where a notebook is slow: much code before the first idea; many words or cells without a reason (`long`)."""
    text = {kind: [] for kind in ("markdown", "code")}
    lines, ideas = 0, 0
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text["markdown"].append(source)
            ideas += 1
        elif cell["cell_type"] == "code" and not in_fold(cell):
            text["code"].append(source)
            lines += sum(bool(line.strip()) for line in source.splitlines()) if ideas < 2 else 0
    words, cells = len(" ".join(text["markdown"]).split()), len(text["code"])
    reason = book["metadata"].get("compendium", {}).get("long", "")
    return [
        line
        for line, over in (
            (f"{lines} lines of code in sight before the first idea, at most {LINES}", lines > LINES),
            (f"{words} words, at most {WORDS}", words > WORDS and not reason),
            (f"{cells} code cells in sight, at most {CELLS}", cells > CELLS and not reason),
        )
        if over
    ]


def in_fold(cell: dict) -> bool:
    """Whether a code cell is folded (JupyterLab's `source_hidden`)."""
    return cell["metadata"].get("jupyter", {}).get("source_hidden", False)


def main(names) -> int:
    failed = 0
    for name in names:
        try:
            found = faults(ROOT / name)
        except ValueError as error:
            found = [str(error)]
        failed += bool(found)
        place = shown(ROOT / name)
        print(f"{place}: {len(found)} to mend" if found else f"{place}: clean", *found, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
