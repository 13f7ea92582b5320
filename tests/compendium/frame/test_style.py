"""One look, whatever a user's own matplotlibrc says."""

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from compendium.frame import style
from compendium.frame.paths import ROOT

DRAW = """
import sys
import matplotlib
matplotlib.use("agg")
from compendium.frame import style
from compendium.frame.page import Page
style.use()
page = Page("alienbench", "01_a", out=sys.argv[1])
page.save_figure(style.dot_interval(["a", "b"], [1, 2], [0, 1], [2, 3], xlabel="x"), "dots")
"""


def test_a_matplotlibrc_of_one_s_own_changes_no_byte(tmp_path):
    own = tmp_path / "matplotlibrc"
    own.write_text("lines.linewidth: 4\ntext.usetex: True\nsavefig.transparent: True\nsvg.fonttype: path\n")
    pictures = []
    for name, settings in (("plain", {}), ("own", {"MATPLOTLIBRC": str(own)})):
        subprocess.run(
            [sys.executable, "-c", DRAW, str(tmp_path / name)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **settings},
            check=True,
            timeout=300,
        )
        pictures.append([path.read_bytes() for path in sorted((tmp_path / name).rglob("dots.*"))])
    assert len(pictures[0]) == 2 and pictures[0] == pictures[1]


def test_coverage_tells_kept_from_not_kept_by_colour():
    table = pd.DataFrame(
        {"coverage": [0.95, 0.93, 0.8], "lo": 0.7, "hi": 1.0, "says": ["kept", "unclear", "too narrow"]},
        index=list("abc"),
    )
    axis = style.coverage(table).axes[0]
    dots = [line.get_color() for line in axis.lines if len(line.get_xdata()) == 1]
    assert dots == [style.PALETTE[0], style.MUTED, style.PALETTE[1]]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["kept", "unclear", "not kept"]


def test_names_lie_neither_over_another_nor_over_a_point():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 1, (2, 14))
    x[:4], y[:4] = 0.5 + np.arange(4) * 0.01, 0.5  # a crowd
    figure, axis = plt.subplots(figsize=(6, 5))
    axis.plot(x, y, "o")
    texts = style.name_points(axis, x, y, [f"model {place}" for place in range(14)])
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    assert [text.get_text() for text in texts] == [f"model {place}" for place in range(14)]
    assert not any(first.overlaps(second) for place, first in enumerate(boxes) for second in boxes[:place])
    points = axis.transData.transform(np.column_stack([x, y]))
    assert not any(box.contains(*point) for box in boxes for point in points)
    plt.close(figure)


def test_names_at_the_ends_of_lines_keep_their_order_and_lie_over_nothing():
    figure, axis = plt.subplots(figsize=(6, 3))
    ends = [1.0, 1.01, 1.02, 3.0, 1.015]
    for end in ends:
        axis.plot([0, 1], [0, end])
    texts = style.name_ends(axis, ends, ["a", "b", "c", "d", "between"])
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    assert not any(first.overlaps(second) for place, first in enumerate(boxes) for second in boxes[:place])
    assert sorted(texts, key=lambda text: text.get_position()[1]) == [
        texts[place] for place in (0, 1, 4, 2, 3)
    ]
    assert min(box.x0 for box in boxes) > axis.get_window_extent().x1
    plt.close(figure)
