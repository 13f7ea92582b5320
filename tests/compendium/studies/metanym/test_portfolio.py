"""Portfolios: the paper's own examples, mechanical checks, and what cannot be read."""

import re

import pytest

from compendium.studies.metanym.game import MetanymError
from compendium.studies.metanym.portfolio import (
    check_portfolio,
    copied_templates,
    inflected,
    match_domain,
    parse_portfolio,
    shared_wording,
    slot_key,
    substitution,
)
from compendium.studies.metanym.prompts import generation_prompt
from compendium.studies.metanym.simulated import models, write_portfolio


def examples() -> str:
    """The two worked examples of B.1, under the headings that a submission uses."""
    text = re.sub(r"^## (Example \d)$", r"## Archetype Proposal: \1", generation_prompt(), flags=re.M)
    return text[text.index("## Archetype") : text.index("## Your task")]


def test_the_papers_examples_are_read():
    first, second = parse_portfolio(examples()).archetypes
    assert first.domains == ("Cell Signaling", "Organ Signaling", "Human Language") and len(first.slots) == 9
    assert first.table["KNOWLEDGE_SYSTEM"]["Organ Signaling"] == "physiology"
    assert first.template.startswith("[SIGNALING] is part of a complex system") and first.template.endswith(
        "[SYSTEM]."
    )
    context = first.contexts[0]
    assert context.domain == "Cell Signaling" and context.form_a.endswith("two different organisms.")
    assert context.form_b.startswith("Cell signaling is the communication apparatus")
    assert second.table["REVERSAL_COST"]["Coalition Politics"] == "reputational cost"


def test_the_papers_examples_are_substitutions_with_inflection():
    for archetype in parse_portfolio(examples()).archetypes:
        context = archetype.contexts[0]
        carried, unused = substitution(
            archetype.template,
            {
                slot: row[match_domain(context.domain, archetype.domains)]
                for slot, row in archetype.table.items()
            },
            context.form_a,
        )
        assert carried >= 0.89 and unused == []


def portfolio(change=lambda text: text, player=0):
    return parse_portfolio(change(write_portfolio(models()[player], 1)))


def codes(change=lambda text: text):
    return [check.code for check in check_portfolio(portfolio(change))]


def test_a_clean_portfolio_passes_every_check():
    assert codes() == []


@pytest.mark.parametrize(
    "change, code",
    [
        (lambda t: t[: t.rindex("## Archetype Proposal")], "archetypes"),
        (lambda t: t.replace("## Archetype Proposal: ", "## Archetype Proposal: Same\n\n", 2), "repeated"),
        (lambda t: t[: t.rindex("### ")], "contexts"),
        (lambda t: t.replace("[AGENT]", "[AGENTS]", 1), "plural"),
        (lambda t: t.replace("[WHOLE]", "[CROWD]", 1), "slots"),
        (lambda t: re.sub(r"\| AGENT \| [^|]+ \|", "| AGENT |  |", t, count=1), "empty"),
        (lambda t: re.sub(r"\n### (.+)\n", r"\n### Elsewhere\n", t, count=1), "domain"),
        (lambda t: re.sub(r"(\*\*Form \(a\)\*\*:\n\")(\w+)", r"\1[AGENT] \2", t, count=1), "unfilled"),
        (
            lambda t: re.sub(
                r"(\*\*Form \(a\)\*\*:\n)\"[^\"]+\"",
                r'\1"Something else is said here altogether."',
                t,
                count=1,
            ),
            "carried",
        ),
    ],
)
def test_each_departure_is_found(change, code):
    assert code in codes(change)


def test_a_metanym_that_form_a_does_not_use():
    text = write_portfolio(models()[0], 1)
    first = parse_portfolio(text).archetypes[0]
    domain = first.domains[0]
    metanym = first.table["WHOLE"][domain]
    start = text.index("**Form (a)**")
    end = text.index("**Form (b)**")
    changed = text[:start] + text[start:end].replace(metanym, "thing") + text[end:]
    assert (
        "does not use the metanym of WHOLE"
        in [check for check in check_portfolio(parse_portfolio(changed)) if check.code == "missing"][
            0
        ].message
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "no portfolio here"),
        ("I would rather not.", "should begin with"),
        ("## Archetype Proposal: X\n\nA [SLOT] is a thing.", "has no metanym table"),
        (
            "## Archetype Proposal: X\n\nNo places.\n\n| a | b |\n|---|---|\n| A | x |\n",
            "has no context-template",
        ),
        (
            "## Archetype Proposal: X\n\nA [A] here.\n\n| [SLOT] | b |\n|---|---|\n| A | x |\n",
            "has no parallel context",
        ),
    ],
)
def test_what_is_no_portfolio(text, words):
    with pytest.raises(MetanymError, match=re.escape(words)):
        parse_portfolio(text)


def test_other_markdown_habits():
    text = (
        "## Archetype Proposal: Tides\n\n### Context-template\nThe [BODY] pulls the [WATER].\n\n### Metanym table\n\n"
        "| Slot | Sea | Court |\n|:--|:--:|--:|\n| [BODY] | moon | judge |\n| `WATER` | ocean | jury |\n\n"
        "### Parallel contexts\n\n**1. Sea**\n\n- **Form (a):** The moon pulls the ocean.\n- **Form (b):** Tides.\n"
        "Justification: Only roughly so.\n\n**2. Court**\n\n- **Form (a):** The judge pulls the jury.\n"
        "- **Form (b):** Instructions.\n"
    )
    one = parse_portfolio(text).archetypes[0]
    assert one.slots == ("BODY", "WATER") and one.template == "The [BODY] pulls the [WATER]."
    assert [(c.domain, c.form_a, c.form_b, c.justification) for c in one.contexts] == [
        ("Sea", "The moon pulls the ocean.", "Tides.", "Only roughly so."),
        ("Court", "The judge pulls the jury.", "Instructions.", ""),
    ]


@pytest.mark.parametrize(
    "base, word, same",
    [
        ("cell", "cells", True),
        ("cell", "cellular", True),
        ("cell", "celery", False),
        ("study", "studies", True),
        ("commit", "committed", True),
        ("switch", "switching", True),
        ("mouse", "mice", True),
        ("ant", "and", False),
        ("economy", "economics", True),
        ("organ", "organism", True),
        ("judge", "jury", False),
        ("bank", "bank", True),
    ],
)
def test_inflection(base, word, same):
    assert inflected(base, word) is same


def test_slot_names():
    assert (
        slot_key("[reversal cost]")
        == slot_key("REVERSAL_COST")
        == slot_key("`Reversal  Cost`")
        == "REVERSAL_COST"
    )


def test_a_copied_template_is_recognised():
    mine, other = portfolio(), portfolio(player=8)
    found = copied_templates(mine, {"archive": mine})
    assert {check.where for check in found} == {
        archetype.name for archetype in mine.archetypes
    } and "100%" in found[0].message
    alone = shared_wording("one two three four five six", "seven eight nine ten eleven twelve")
    assert alone == 0 and shared_wording("a [SLOT] b", "a b") == 0
    assert len(copied_templates(mine, {"other": other}, bar=1.01)) == 0
