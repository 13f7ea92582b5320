"""RAT, AUT and DAT: scored by hand, replies read as they come."""

import numpy as np
import pytest

from compendium.studies.create.divergent import (
    DivergentError,
    aut_originality,
    dat_originality,
    rat_correct,
    read_glove,
    read_list,
)


@pytest.mark.parametrize(
    "reply",
    [
        "door stop\nhat\nboat anchor",
        "1. Door stop\n2) hat\n3. Boat anchor.",
        "Here are some:\n- door stop\n* hat\n\n• boat anchor",
        "door stop, hat; boat anchor",
        "door stop\nHat\nhat\nboat anchor",
    ],
)
def test_lists_in_many_dresses(reply):
    assert read_list(reply) == ["door stop", "hat", "boat anchor"]


def test_an_empty_reply_has_no_entries():
    assert read_list("") == [] and np.isnan(aut_originality([1, 0], np.empty((0, 2))))


@pytest.mark.parametrize(
    "reply, right",
    [
        ("Cheese", True),
        ("cheese.", True),
        ("cheeses", True),
        ("Swiss cheese", False),
        ("cake", False),
        ("", False),
    ],
)
def test_one_word_or_nothing(reply, right):
    assert rat_correct(reply, "cheese") is right


@pytest.mark.parametrize(
    "reply, answer, right",
    [
        ("bra", "brass", False),
        ("princes", "princess", False),
        ("brass", "brass", True),
        ("princess", "princess", True),
        ("pan", "pans", True),
        ("cheesess", "cheese", False),
    ],
)
def test_an_s_that_is_no_plural_belongs_to_the_word(reply, answer, right):
    assert rat_correct(reply, answer) is right


def test_originality_by_hand():
    assert aut_originality([1, 0], [[1, 0], [0, 1]]) == pytest.approx(0.5)
    corners = np.eye(3)
    assert dat_originality(corners, least=3) == pytest.approx(1)
    assert dat_originality([[1, 0], [1, 0], [0, 1]], least=3) == pytest.approx(2 / 3)
    assert np.isnan(dat_originality(corners))


def test_glove_files(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 0\nbrick 3 4\nhouse 0 2\n")
    vectors = read_glove(path, ["Brick", "house", "absent"])
    assert set(vectors) == {"brick", "house"}
    np.testing.assert_allclose(vectors["brick"], [0.6, 0.8])
    for text in ("brick 3 4\nhouse 0\n", "brick x y\n", "brick\n", "brick 0 0\n"):
        path.write_text(text)
        with pytest.raises(DivergentError, match="line"):
            read_glove(path, ["brick", "house"])
    with pytest.raises(DivergentError, match="cannot be read"):
        read_glove(tmp_path / "none.txt", [])
