"""Templates and CR-POS: by hand, as properties, and against what the archive holds."""

import gzip

import numpy as np
import pytest

from lib.text import TextError
from lib.text.templates import common_templates, coverage, cr_pos, template_rate, templates_per_token

TAGS = "DT NN VB DT NN VB DT NN .".split()


def test_by_hand():
    templates = common_templates([TAGS], length=3, tau=2, top_n=None)
    # DT NN VB and NN VB DT come twice, VB DT NN twice; DT NN . once
    assert templates == [("DT", "NN", "VB"), ("NN", "VB", "DT"), ("VB", "DT", "NN")]
    k = coverage(TAGS, templates[:1])
    assert k.tolist() == [1, 1, 1, 1, 1, 1, 0, 0, 0]
    assert template_rate(k) == 6 / 9 and templates_per_token(k) == 6 / 9
    both = coverage(TAGS, templates)
    assert both.tolist() == [1, 2, 3, 3, 3, 3, 2, 1, 0]
    assert template_rate(both) == 8 / 9 and templates_per_token(both) == 18 / 9


def test_templates_stay_inside_sentences():
    assert common_templates([["A", "B"], ["C", "A", "B"]], length=2) == [("A", "B"), ("C", "A")]
    assert ("B", "C") in common_templates([["A", "B", "C", "A", "B"]], length=2)


def test_ties_stand_in_the_order_of_appearance_and_top_n_cuts():
    tags = ["A", "B", "C", "A", "B", "D"]
    assert common_templates([tags], length=1, top_n=3) == [("A",), ("B",), ("C",)]
    assert common_templates([tags], length=1, top_n=1) == [("A",)]


def test_tau_one_and_all_templates_cover_everything():
    k = coverage(TAGS, common_templates([TAGS], length=4, top_n=None))
    assert template_rate(k) == 1 and templates_per_token(k) == 4 * (len(TAGS) - 3) / len(TAGS)


def test_a_text_shorter_than_a_template_has_none():
    assert common_templates([["A", "B"]], length=4) == []
    assert coverage(["A", "B"], []).tolist() == [0, 0]
    assert template_rate(coverage(["A", "B"], [])) == 0


def test_templates_of_several_lengths():
    assert coverage(["A", "B", "A"], [("A",), ("A", "B")]).tolist() == [2, 1, 1]


def test_compression_ratio_is_bytes_over_bytes():
    line = " ".join(TAGS * 20)
    assert cr_pos(TAGS * 20) == len(line) / len(gzip.compress(line.encode(), mtime=0))
    assert cr_pos(TAGS * 20) > cr_pos(list(np.random.default_rng(1).permutation(TAGS * 20)))


def test_compression_as_released_doubles_the_spaces():
    tags = list(np.random.default_rng(2).choice(["DT", "NN", "VB", "JJ", "IN", "."], size=600))
    content = " ".join(" ".join(tags)).encode()
    assert content.count(b" ") > len(tags) * 2 and len(content) == 2 * len(" ".join(tags)) - 1
    once = len(content) / len(gzip.compress(content, mtime=0))
    found = cr_pos(tags, as_released=True)
    assert 0.9 * once < found < once  # the second compression adds a header and finds nothing
    assert found > 1.2 * cr_pos(tags) and found == round(found, 3)


@pytest.mark.parametrize(
    "act, says",
    [
        (lambda: cr_pos([]), "without words"),
        (lambda: coverage([], []), "without words"),
        (lambda: common_templates([TAGS], length=0), "at least 1"),
        (lambda: common_templates([TAGS], tau=0), "at least 1"),
    ],
)
def test_bad_input(act, says):
    with pytest.raises(TextError, match=says):
        act()
