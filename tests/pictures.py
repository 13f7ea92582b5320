"""What can be checked of a matplotlib figure without looking: words that lie on others, words that are faint."""

from itertools import combinations
from unittest import mock

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.text import Text


def words(figure):
    """The texts that a figure draws."""
    drawn, draw = [], Text.draw
    with mock.patch.object(Text, "draw", lambda self, renderer: (drawn.append(self), draw(self, renderer))):
        figure.canvas.draw()
    return [one for one in dict.fromkeys(drawn) if one.get_visible() and one.get_text().strip()]


def overlapping(figure):
    """Pairs of texts whose boxes cross."""
    boxes = [(one.get_text(), one.get_window_extent()) for one in words(figure)]
    return [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if first.overlaps(second)]


def faint(figure):
    """Texts whose colour has less contrast with white than 3 to 1 (WCAG 2.1, large text and graphics)."""
    return [one.get_text() for one in words(figure) if 1.05 / (luminance(one.get_color()) + 0.05) < 3]


def luminance(color):
    """Relative luminance of a colour (WCAG 2.1)."""
    parts = np.array(to_rgb(color))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
