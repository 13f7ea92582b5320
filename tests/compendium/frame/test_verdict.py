import numpy as np
import pandas as pd
import pytest

from compendium.frame import verdict
from compendium.frame.verdict import (
    EVIDENCE,
    OUTCOMES,
    consistent,
    decide,
    equality,
    independent,
    stylesheet,
    summary,
)
from tests.compendium.frame.rows import printed


def cell(value, **changes):
    return dict(value=value, lo=np.nan, hi=np.nan, note="", basis="data") | changes


def words(row, found=None, again=None, profile="released", **more):
    return tuple(decide(row, found, again, profile, **more)[:2])


@pytest.mark.parametrize(
    "value, expected",
    [(5.1449, "equal"), (5.145, "equal"), (5.135, "equal"), (5.1451, "not equal"), (5.1349, "not equal")],
)
def test_equal_at_the_printed_rounding(value, expected):
    assert equality(printed(), cell(value)) == expected


def test_intervals_count_too_and_tolerance_only_for_monte_carlo():
    row = printed(lo=4.78, hi=5.51, kind="monte-carlo", tolerance=0.02)
    assert equality(row, cell(5.14, lo=4.78, hi=5.51)) == "equal"
    assert equality(row, cell(5.14, lo=4.79, hi=5.50)) == "within"
    assert equality(row, cell(5.14, lo=4.81, hi=5.50)) == "not equal"
    assert equality(row | {"kind": "exact"}, cell(5.14, lo=4.79, hi=5.50)) == "not equal"
    assert equality(row, cell(5.14)) == "not equal"


@pytest.mark.parametrize(
    "sign, met, missed",
    [
        ("<", 4.9, 5.0),
        ("<=", 5.0, 5.1),
        ("≤ of both", 5.0, 5.1),
        (">", 5.1, 5.0),
        (">= always", 5.0, 4.9),
        ("≥", 5.0, 4.9),
    ],
)
def test_every_sign_of_a_bound(sign, met, missed):
    row = printed(value=5.0, kind="bound", note=sign)
    assert [equality(row, cell(value)) for value in (met, missed, np.nan)] == [
        "equal",
        "not equal",
        "not equal",
    ]


def test_nothing_computed_is_never_equal_to_a_number():
    assert equality(printed(), cell(np.nan)) == "not equal"
    assert equality(printed(kind="monte-carlo", tolerance=9.0), cell(np.nan)) == "not equal"
    blank = printed(value=np.nan, decimals=pd.NA, note="a dash")
    assert equality(blank, cell(np.nan)) == "equal" and equality(blank, cell(1.0)) == "not equal"
    made = decide(printed(), cell(np.nan, note="one judge only"), None, "released")
    assert made[:3] == ("whole", "not computed", "one judge only")


def test_not_equal_needs_whole_evidence():
    far = cell(9.0)
    assert words(printed(), far) == ("whole", "not equal")
    for evidence in ("part", "other run", "none held"):
        assert words(printed(archive=evidence), far) == (evidence, "not computed")
        assert words(printed(archive=evidence), cell(5.14)) == (evidence, "not computed"), "nor is equal said"


@pytest.mark.parametrize(
    "kind, outcome", [("contradiction", "contradicts"), ("reconcilable", "reconcilable")]
)
def test_a_finding_decides_what_a_number_that_does_not_follow_is_called(kind, outcome):
    one = {"id": "x", "title": "Two counts", "kind": kind}
    made = decide(printed(archive="none held"), None, cell(5.2, basis="printed"), "released", one)
    assert made[:2] == ("printed", outcome) and made.finding == "x" and "Two counts" in made.why


@pytest.mark.parametrize("finding", [None, {"id": "x", "title": "t", "kind": "oddity"}])
def test_without_a_finding_of_that_kind_nothing_contradicts(finding):
    made = decide(printed(archive="none held"), None, cell(5.2, basis="printed"), "released", finding)
    assert made[:2] == ("printed", "not computed") and "no finding says what was tried" in made.why


def test_a_convention_that_reconciles_spares_even_whole_evidence():
    one = {"id": "x", "title": "Two counts", "kind": "reconcilable"}
    assert words(printed(), cell(9.0), finding=one) == ("whole", "reconcilable")
    assert words(printed(), cell(5.14), finding=one) == ("whole", "equal")
    assert words(printed(), cell(9.0), finding=one | {"kind": "oddity"}) == ("whole", "not equal")


def test_what_rounding_allows_reconciles_and_the_value_stays():
    again = cell(-0.14400, lo=-0.1450, hi=-0.1430, basis="printed")
    row = printed(value=-0.143, decimals=3, archive="none held")
    made = decide(row, None, again, "released")
    assert made[:2] == ("printed", "agrees") and made.shown["value"] == -0.144
    assert not consistent(row, again | {"lo": -0.1445, "hi": -0.1436})
    assert consistent(printed(value=0.05, kind="bound", note="<"), cell(0.06, lo=0.04, hi=0.08))


def test_a_number_printed_twice_repeats():
    assert words(printed(), None, cell(5.14, basis="repeated")) == ("printed", "repeats")
    assert words(printed(), None, cell(5.14, basis="printed")) == ("printed", "agrees")


def test_part_says_what_it_allows():
    row = printed(archive="part")
    held = {"part": "one of three repetitions"}
    inside = decide(row, cell(5.2, lo=4.0, hi=6.0), None, "released", held=held)
    assert inside.why == "consistent with the printed number; one of three repetitions"
    outside = decide(row, cell(5.2, lo=5.18, hi=6.0), None, "released", held=held)
    assert outside.why.startswith("outside what this part allows") and outside.outcome == "not computed"


@pytest.mark.parametrize("profile, said", [("demo", "simulated models"), ("live", "models asked now")])
def test_only_the_released_profile_compares_with_data(profile, said):
    for archive in ("whole", "part", "other run", "none held"):
        made = decide(printed(archive=archive), cell(5.14), None, profile)
        assert made[:3] == ("other run", "not computed", said)
        assert words(printed(archive=archive), profile=profile) == ("none held", "not computed")
    assert words(printed(), None, cell(5.14, basis="printed"), profile) == ("printed", "agrees")


def test_no_copy_says_what_is_said_to_exist_and_a_choice_that_it_is_one():
    held = {"none held": "the paper links a repository"}
    assert decide(printed(archive="none held"), None, None, "released", held=held).why == held["none held"]
    design = printed(archive="none held", kind="design")
    assert decide(design, None, None, "released", held=held).why == verdict.DESIGN


def report(*outcomes):
    rows = [
        dict(study="s", exhibit="t", outcome=outcome, evidence=evidence, equation=equation)
        for outcome, evidence, equation in outcomes
    ]
    return pd.DataFrame(rows)


def test_counts_and_the_equations_behind_them():
    made = report(
        ("agrees", "printed", "a"),
        ("agrees", "printed", "a"),
        ("contradicts", "printed", "b"),
        ("not computed", "part", "c"),
        ("not computed", "none held", "d"),
    )
    assert summary(made, "s") == "printed 5: agrees 2, contradicts 1, not computed 2 (part 1, none held 1)"
    assert independent(made).to_numpy().tolist() == [["s", "agrees", 2, 1], ["s", "contradicts", 1, 1]]


def light(colour):
    """Relative luminance of "#rrggbb" (WCAG 2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_mark_is_read_on_its_colour(outcome):
    """White letters by day, the ink by night: a contrast of 4.5 is what WCAG asks of small text."""
    _, _, day, night = verdict.LOOKS[outcome]
    assert 1.05 / (light(day) + 0.05) >= 4.5
    assert (light(night) + 0.05) / (light("#10151b") + 0.05) >= 4.5


def test_every_outcome_has_a_colour_of_its_own():
    css = stylesheet()
    for place in (2, 3):
        colours = [verdict.LOOKS[outcome][place] for outcome in OUTCOMES]
        assert len(set(colours)) == len(OUTCOMES) and all(colour in css for colour in colours)
    assert set(EVIDENCE) == {"whole", "part", "other run", "printed", "none held"}
