"""Draws by content: fixed for a content, uniform over contents."""

import hashlib

import numpy as np
import pytest
from scipy import stats

from compendium.frame.chance import Stream, digest, normal, uniform

FALSE_ALARM = 1e-4  # contents are fixed; how often such a test would fail for another choice


def test_a_digest_is_blake2b_of_the_parts_and_tells_their_borders():
    assert digest("a", 7, size=8) == hashlib.blake2b(b"a\x1f7", digest_size=8).digest()
    assert digest("ab", "c") != digest("a", "bc")


def test_uniforms_are_uniform_and_fixed():
    drawn = np.array([uniform("test", i) for i in range(4000)])
    assert drawn.min() >= 0 and drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > FALSE_ALARM
    assert uniform("test", 17) == drawn[17]


def test_normals_are_standard_normal():
    assert stats.kstest([normal("test", i) for i in range(4000)], "norm").pvalue > FALSE_ALARM


def test_a_stream_repeats_itself_and_another_does_not():
    first, again, other = (
        [Stream(*key).below(1000) for _ in range(1)] for key in (("a", 1), ("a", 1), ("a", 2))
    )
    assert first == again != other
    stream, twin = Stream("x"), Stream("x")
    assert [stream.uniform() for _ in range(40)] == [twin.uniform() for _ in range(40)]


def test_every_item_is_chosen_as_often_and_every_order_occurs():
    stream = Stream("counts")
    counts = np.bincount([stream.below(6) for _ in range(6000)], minlength=6)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    orders = {tuple(stream.shuffled("abc")) for _ in range(200)}
    assert len(orders) == 6 and all(sorted(order) == ["a", "b", "c"] for order in orders)


def test_nothing_to_choose_from_is_an_error():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Stream("x").below(0)
