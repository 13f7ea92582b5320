"""Can every word of a figure be read? `python -m compendium.frame.legible NOTEBOOK …` runs notebooks and says of each figure.

Words that lie on other words, are cut off, or are faint before what is behind them. `Page.save_figure` asks, after the
figure is written, where the environment variable COMPENDIUM_FIGURES names this module. COMPENDIUM_ILLEGIBLE may name a
file with the figures that cannot be read as yet, a `study/figure` a line; one that can be read fails too. A line `study/`
lets a whole study pass, looked at or not.
"""

import os
import sys
from itertools import combinations
from pathlib import Path
from unittest import mock

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.text import Text

from compendium.frame.paths import ROOT, shown
from compendium.frame.style import luminance

SWITCH, LISTED = "COMPENDIUM_FIGURES", "COMPENDIUM_ILLEGIBLE"
CONTRAST = 4.5  # WCAG 2.1, level AA
SLACK = 1.5  # pixels at the figure's own dpi: boxes hold some air


class Illegible(ValueError):
    """A figure with words that cannot be read; the message names the figure and the words."""


def check(figure, name: str) -> None:
    """Raises Illegible for a figure (`study/figure`) with words that cannot be read, unless it is on the list."""
    path = os.environ.get(LISTED)
    later = Path(path).read_text(encoding="utf-8").split() if path else []
    if f"{name.partition('/')[0]}/" in later:
        return
    listed, found = name in later, faults(figure)
    if found and not listed:
        raise Illegible(f"{name}: " + "; ".join(found))
    if listed and not found:
        raise Illegible(f"{name} can be read: take it from {Path(path).name}")


def faults(figure) -> list[str]:
    """What is wrong with a figure's words, one line each."""
    texts = words(figure)
    page = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    return [
        *(f"{a!r} lies on {b!r}" for a, b in overlapping(texts)),
        *(f"{one.get_text()!r} is cut off" for one in texts if _cut(one, page)),
        *(
            f"{one.get_text()!r} has contrast {ratio:.1f}, at least {CONTRAST}"
            for one, ratio in faint(figure, texts)
        ),
    ]


def words(figure) -> list[Text]:
    """The texts that a figure draws."""
    drawn, draw = [], Text.draw
    with mock.patch.object(Text, "draw", lambda self, renderer: (drawn.append(self), draw(self, renderer))):
        figure.canvas.draw()
    return [one for one in dict.fromkeys(drawn) if one.get_visible() and one.get_text().strip()]


def overlapping(texts) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes, turned as the texts are, lie on one another."""
    boxes = [(one.get_text(), corners(one)) for one in texts]
    return [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if _cross(first, second)]


def corners(text) -> np.ndarray:
    """corners[4, 2] of a text's box in pixels, turned as it is."""
    level = text.get_window_extent()
    centre, angle = (
        np.array([(level.x0 + level.x1) / 2, (level.y0 + level.y1) / 2]),
        np.deg2rad(text.get_rotation()),
    )
    with mock.patch.object(text, "_rotation", 0.0), mock.patch.object(text, "get_rotation", lambda: 0.0):
        box = text.get_window_extent()
    wide, high = max(box.width / 2 - SLACK, 0), max(box.height / 2 - SLACK, 0)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return centre + np.array([[-wide, -high], [wide, -high], [wide, high], [-wide, high]]) @ turn


def _cross(first, second) -> bool:
    """Whether two rectangles corners[4, 2] share an area: no side of either parts them (separating axes)."""
    for box in (first, second):
        for side in (box[1] - box[0], box[3] - box[0]):
            a, b = first @ side, second @ side
            if a.max() <= b.min() or b.max() <= a.min():
                return False
    return True


def _cut(text, page) -> bool:
    """Whether part of a text is outside the saved picture, or outside the box that it is clipped to."""
    box = text.get_window_extent()
    clip = text.get_clip_box() if text.get_clip_on() else None
    return any(
        limit is not None
        and not (
            limit.x0 - SLACK <= box.x0
            and box.x1 <= limit.x1 + SLACK
            and limit.y0 - SLACK <= box.y0
            and box.y1 <= limit.y1 + SLACK
        )
        for limit in (page, clip)
    )


def faint(figure, texts) -> list[tuple[Text, float]]:
    """Texts whose contrast with what is behind them (the median pixel of their box) is too low, with the contrast."""
    with mock.patch.object(Text, "draw", lambda self, renderer: None):
        figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255
    found = []
    for one in texts:
        behind = _behind(one, pixels)
        *color, alpha = to_rgba(one.get_color(), one.get_alpha())
        light, dark = sorted((luminance(behind), luminance(alpha * np.array(color) + (1 - alpha) * behind)))[
            ::-1
        ]
        ratio = (light + 0.05) / (dark + 0.05)
        if ratio < CONTRAST:
            found.append((one, ratio))
    return found


def _behind(text, pixels) -> np.ndarray:
    """The colour [3] behind a text: of its own box where it has one, else the median of the picture without words."""
    patch = text.get_bbox_patch()
    if patch is not None and patch.get_facecolor()[3] > 0.5:
        return np.array(patch.get_facecolor()[:3])
    box, height = text.get_window_extent(), len(pixels)
    rows = slice(max(int(height - box.y1), 0), max(int(np.ceil(height - box.y0)), 0))
    columns = slice(max(int(box.x0), 0), max(int(np.ceil(box.x1)), 0))
    part = pixels[rows, columns].reshape(-1, 3)
    return (
        np.median(part, axis=0) if len(part) else np.ones(3)
    )  # beyond the canvas the saved picture is white


def main(names) -> int:
    import nbformat
    from nbclient import NotebookClient

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ[SWITCH] = "compendium.frame.legible"
    os.environ.pop(LISTED, None)
    failed = 0
    for path in (ROOT / name for name in names):
        book = nbformat.read(path, as_version=4)
        place = {"metadata": {"path": str(path.parent)}}
        NotebookClient(book, timeout=600, kernel_name="python3", resources=place, allow_errors=True).execute()
        errors = [
            each for cell in book.cells for each in cell.get("outputs", []) if each.output_type == "error"
        ]
        failed += bool(errors)
        print(f"{shown(path)}: {'to mend' if errors else 'every word can be read'}", flush=True)
        for each in errors:
            lines = (
                each.evalue.split("; ")
                if each.ename == Illegible.__name__
                else [f"{each.ename}: {each.evalue}"]
            )
            print(*lines, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
