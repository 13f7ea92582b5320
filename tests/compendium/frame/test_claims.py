"""What counts as a claim in prose, and what excuses it."""

import json

import pytest

from compendium.frame import claims


def markdown(text, *tags, name="said"):
    return {"cell_type": "markdown", "id": name, "metadata": {"tags": list(tags)}, "source": text}


def code(text, *outputs, name="code", hidden=False):
    found = [{"data": {"text/markdown": each}} for each in outputs]
    meta = {"jupyter": {"source_hidden": True}} if hidden else {}
    return {"cell_type": "code", "id": name, "metadata": meta, "source": text, "outputs": found}


def book(*cells, **metadata):
    return {"cells": list(cells), "metadata": {"compendium": metadata}}


@pytest.mark.parametrize(
    "text, said",
    [
        ("It is 5.40 against 1,234 and .5.", ["5.40", "1,234", ".5"]),
        ("The largest of two is at most a third.", ["largest", "two", "most", "a third"]),
        (
            "Lower still, and higher than people. Half of it, −3 %.",
            ["Lower still", "higher than", "Half", "−3"],
        ),
        ("## The 3 best\n\nBoth fell.", []),
        (
            "Tables 3, 8 and 13, Figure 5, section 4.1 and appendix F.3, Sections 5 and F.1, notebooks 01 to 07, 05+",
            [],
        ),
        ("`x[3]` and $y = 4$ and $$z = 5$$ and [the two](02_judge.ipynb)\n\n```\n6\n```", []),
        ("GPT-5, Claude-Sonnet-4.6, Qwen3-30B, T2.2, F1 and B2 (Cohen, 1960)", []),
        ("The second is lower; more or less.", []),
    ],
)
def test_numbers_orders_and_superlatives_are_claims(text, said):
    assert [each for each, _, _ in claims.claims(text)] == said


def test_a_claim_is_listed_with_its_cell_and_line_unless_a_tag_gives_the_reason():
    said = "Quiet.\n\nOnly two of them."
    assert claims.unchecked(book(markdown(said)), "create") == ["said: two: Only two of them."]
    for tag in ("by-hand", "method", "exercise"):
        assert claims.unchecked(book(markdown(said, tag)), "create") == []
    assert claims.unchecked(book(markdown(said, "released")), "create")


def test_what_the_paper_prints_is_looked_up(monkeypatch):
    monkeypatch.setattr(claims, "printed_numbers", lambda study: (0.4567, 12.5, 1800.0))
    text = "It prints 0.46, 0.457, 46 % and −12.5, of 1,800 in three runs; not 0.47 or 13.5."
    assert claims.unchecked(book(markdown(text, "paper")), "create") == [
        f"said: {number} is not in data/published: {text}" for number in ("0.47", "13.5")
    ]


def test_the_numbers_that_papers_print_are_read():
    assert claims.printed("1.93", "alienbench") and not claims.printed("1.9312345", "alienbench")
    assert claims.printed("1.93", "across"), "every paper counts for what belongs to no study"


def test_an_example_by_hand_is_recomputed_by_the_cell_after_it():
    by_hand = markdown("Three and 4.5 make 7.5.", "by-hand")
    assert claims.not_recomputed(book(by_hand, code("3 + 4.5", "7.4999"))) == []
    for after in ([code("1", "1")], [], [markdown("7.5")]):
        assert claims.not_recomputed(book(by_hand, *after)) == [
            "said: by-hand: the code cell after it gives none of its numbers"
        ]


def test_a_struck_sentence_in_an_output_is_found():
    assert claims.struck(book(code("x", "All are.", "~~All are.~~ Two\nare not."))) == [
        "code: struck out: ~~All are.~~ Two are not."
    ]


def test_a_sentence_that_only_looks_computed_is_found():
    source = '%matplotlib inline\npage.says("All two.")\npage.says(f"All {n}, two.")\npage.says("Quiet.")\n'
    source += 'page.holds("Two are.", True)\npage.holds("Two are.", n == 2)'
    assert claims.literal(book(code(source))) == [
        "code: two is not computed: All two.",
        "code: page.holds is handed True, not a comparison",
    ]


def test_the_first_idea_comes_soon_and_length_needs_a_reason():
    lines = "\n".join(["a = 1"] * 13)
    slow = book(markdown("Title"), code(lines), markdown("The idea"), code(lines))
    assert claims.too_long(slow) == ["13 lines of code in sight before the first idea, at most 12"]
    assert claims.too_long(book(markdown("Title"), code(lines, hidden=True), markdown("The idea"))) == []
    long = [markdown("word " * 701), *[code("a")] * 15, *[code("a", hidden=True)] * 5]
    assert claims.too_long(book(markdown("Title"), *long)) == [
        "702 words, at most 700",
        "15 code cells in sight, at most 14",
    ]
    assert claims.too_long(book(markdown("Title"), *long, long="a catalogue")) == []


def test_the_command_prints_the_places_and_fails_where_there_are_any(tmp_path, capsys):
    good, bad = tmp_path / "good.ipynb", tmp_path / "bad.ipynb"
    good.write_text(json.dumps(book(markdown("Quiet."))))
    bad.write_text(json.dumps(book(markdown("The largest."))))
    assert claims.main([str(good)]) == 0 and claims.main([str(good), str(bad)]) == 1
    assert claims.main([str(tmp_path / "none.ipynb")]) == 1
    told = capsys.readouterr().out
    assert "good.ipynb: clean" in told and "bad.ipynb: 1 to mend\n  said: largest: The largest.\n" in told
    assert "is no notebook" in told
