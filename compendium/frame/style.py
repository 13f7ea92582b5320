"""Figures: one look for all of them, and the few shapes that several notebooks draw."""

from itertools import cycle

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.transforms import Bbox

# Okabe and Ito's palette: told apart by readers with any colour vision.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
HUMAN = "#0072B2"
MODEL = "#D55E00"
MUTED = "#8A8F98"
MARKERS = "osD^vPX*<>"  # with the palette, so that a figure printed in grey still tells its series apart


def use() -> None:
    """Set the house style for this process: small, quiet, the same bytes on each run."""
    matplotlib.rcdefaults()  # a matplotlibrc of the user's own would change every picture
    matplotlib.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 160,
            "figure.facecolor": "white",
            "font.size": 9.5,
            "font.family": "DejaVu Sans",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.grid": False,
            "legend.frameon": False,
            "svg.hashsalt": "compendium",
            "svg.fonttype": "none",
            "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
        }
    )


def luminance(color) -> float:
    """Relative luminance of a colour [3] (WCAG 2.1)."""
    parts = np.asarray(color, dtype=float)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def radar(panels: dict, spokes, *, colors: dict | None = None, columns: int = 4, reference=None):
    """Small multiples of radar charts on a 0-1 scale.

    Parameters
    ----------
    panels : {label: values[spoke]}, drawn in order.
    spokes : labels of the spokes.
    colors : {label: colour} for panels that should stand out.
    reference : label of a panel whose outline is repeated in grey in every other one.
    """
    angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(2.75 * columns, 2.85 * rows),
        subplot_kw={"projection": "polar"},
        squeeze=False,
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (label, values) in zip(axes.flat, panels.items()):
        color = (colors or {}).get(label, MODEL)
        if reference is not None and label != reference:
            _ring(axis, angles, panels[reference], color=MUTED, linewidth=1, linestyle=(0, (3, 2)))
        _ring(axis, angles, values, color=color, linewidth=1.6)
        axis.fill(angles, values, color=color, alpha=0.22)
        axis.set_theta_offset(np.pi / 2)
        axis.set_theta_direction(-1)
        axis.set_ylim(0, 1)
        axis.set_yticks([0.5, 1], labels=[])
        axis.set_xticks(angles, labels=spokes, fontsize=6.5)
        axis.tick_params(pad=0)
        axis.spines["polar"].set_color("#CCD1D7")
        axis.set_title(label, fontsize=9, loc="center", pad=10)
    figure.tight_layout()
    return figure


def _ring(axis, angles, values, **options):
    axis.plot(np.append(angles, angles[0]), np.append(values, values[0]), **options)


def strip(groups: dict, points: dict, *, colors: dict, xlabel: str, rng, limits=None, means=None):
    """Horizontal strips of points, one row a group, with the group's mean and interval as a diamond.

    Parameters
    ----------
    groups : {group: label} from top to bottom.
    points : {(group, series): values}; every series has its colour in `colors` {series: colour}, and a mark for eyes
        and printers that see no colour.
    rng : numpy Generator for the vertical jitter.
    means : {group: (mean, lo, hi)}.
    """
    figure, axis = plt.subplots(figsize=(8, 0.52 * len(groups) + 1.4))
    place = {group: -i for i, group in enumerate(groups)}
    marks = dict(zip(colors, cycle("o^svDP*")))
    for (group, series), values in points.items():
        height = place[group] + rng.uniform(-0.3, 0.3, len(values))
        axis.scatter(values, height, s=9, alpha=0.6, color=colors[series], marker=marks[series], linewidths=0)
    for group, (mean, lo, hi) in (means or {}).items():
        axis.errorbar(
            mean,
            place[group],
            xerr=[[mean - lo], [hi - mean]],
            fmt="D",
            color="black",
            ms=5,
            capsize=3,
            elinewidth=1.4,
        )
    for series, color in colors.items():
        axis.scatter([], [], s=22, color=color, marker=marks[series], label=series)
    axis.errorbar([], [], xerr=[], fmt="D", color="black", ms=5, label="Mean (95% CI)")
    axis.set_yticks(list(place.values()), labels=list(groups.values()))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_xlabel(xlabel)
    if limits:
        axis.set_xlim(*limits)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def heat(
    values, rows, columns, *, marks=None, limits=(-1, 1), cmap="RdBu_r", label="", size=None, decimals=2
):
    """A heat map with its numbers written in; missing entries stay grey with a dash.

    `values[row, column]`; `marks` (same shape, strings) are appended to the numbers (stars, daggers).
    """
    values = np.asarray(values, dtype=float)
    figure, axis = plt.subplots(figsize=size or (0.72 * len(columns) + 2.6, 0.36 * len(rows) + 1.5))
    shade = matplotlib.colormaps[cmap].with_extremes(bad="#E3E6EA")
    image = axis.imshow(
        np.ma.masked_invalid(values), cmap=shade, vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    for i, j in np.ndindex(values.shape):
        missing = np.isnan(values[i, j])
        text = "–" if missing else f"{values[i, j]:.{decimals}f}".replace("-", "−")
        text += "" if marks is None or missing else str(marks[i][j])
        shade_behind = to_rgb("#E3E6EA") if missing else image.to_rgba(values[i, j])[:3]
        color = (
            "white" if luminance(shade_behind) < 0.179 else "black"
        )  # the one of more contrast, 4.5 at least
        axis.text(j, i, text, ha="center", va="center", fontsize=7.5, color=color)
    axis.set_xticks(range(len(columns)), labels=columns, rotation=35, ha="right")
    axis.set_yticks(range(len(rows)), labels=rows)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, label=label, shrink=0.85, pad=0.02).outline.set_visible(False)
    return figure


def dot_interval(labels, estimates, lows, highs, *, xlabel: str, reference=None, colors=None, size=None):
    """Estimates with their intervals, one row each, from top to bottom; `reference` draws a vertical line."""
    estimates, lows, highs = (np.asarray(values, dtype=float) for values in (estimates, lows, highs))
    figure, axis = plt.subplots(figsize=size or (6.5, 0.33 * len(labels) + 1.1))
    height = -np.arange(len(labels))
    for i, y in enumerate(height):
        color = PALETTE[0] if colors is None else colors[i]
        axis.plot([lows[i], highs[i]], [y, y], color=color, linewidth=1.6)
        axis.plot(estimates[i], y, "o", color=color, ms=5)
    if reference is not None:
        axis.axvline(reference, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axis.set_yticks(height, labels=labels)
    axis.set_xlabel(xlabel)
    return figure


def coverage(table, *, promised: float = 0.95, slack: float = 0.015):
    """Simulated coverage of 95 % intervals, one row each: columns coverage, lo, hi and says of `table`, as
    `lib.calibration.coverage_table` makes it. Blue: kept; grey: too few studies to tell; orange: not kept."""
    shade = {"kept": PALETTE[0], "unclear": MUTED}
    figure = dot_interval(
        table.index,
        table["coverage"],
        table["lo"],
        table["hi"],
        reference=promised,
        colors=[shade.get(says, PALETTE[1]) for says in table["says"]],
        xlabel="share of simulated studies whose 95% interval holds the truth",
        size=(7.5, 0.26 * len(table) + 1.1),
    )
    axis = figure.axes[0]
    axis.axvspan(promised - slack, promised + slack, color=PALETTE[0], alpha=0.08, linewidth=0)
    for says, color in (*shade.items(), ("not kept", PALETTE[1])):
        axis.plot([], [], "o-", color=color, label=says)
    axis.legend(loc="lower left", fontsize=8)
    return figure


def name_points(axis, x, y, names, *, fontsize: float = 7) -> list:
    """Write a name beside each point so that no two names, and no name and point, lie over one another.

    Each name takes the nearest free place around its point, in the order given; one that had to move away gets a
    thin line to its point. Call it last: the axes' limits stay as they are then. Returns the texts.
    """
    figure, x, y = axis.figure, np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    axis.set(xlim=axis.get_xlim(), ylim=axis.get_ylim())  # settles them: they are set only when asked for
    draw = figure.canvas.get_renderer()
    at = axis.transData.transform(np.column_stack([x, y]))
    scale = figure.dpi / 72
    frame = axis.get_window_extent(draw)
    marks = [Bbox.from_bounds(px - 3 * scale, py - 3 * scale, 6 * scale, 6 * scale) for px, py in at]
    taken, texts = [], []
    for own, (name, point) in enumerate(zip(names, at)):
        text = axis.text(0, 0, name, fontsize=fontsize, transform=None)
        box = text.get_window_extent(draw)
        free = [mark for place, mark in enumerate(marks) if place != own] + taken
        place, far = _free_place(point, box.width, box.height, free, frame, scale)
        text.set_position(place)
        taken.append(Bbox.from_bounds(*place, box.width, box.height))
        if far:
            ends = axis.transData.inverted().transform([point, (place[0], place[1] + box.height / 2)])
            axis.plot(*ends.T, color=MUTED, linewidth=0.6, zorder=0)
        # in points from its point, so that the name stays there in every resolution
        text.remove()
        offset = (np.array(place) - point) / scale
        texts.append(
            axis.annotate(
                name, (x[own], y[own]), xytext=offset, textcoords="offset points", fontsize=fontsize
            )
        )
    return texts


def name_ends(axis, heights, names, *, fontsize: float = 7) -> list:
    """Write each line's name where it ends, right of the axes, in place of a legend: readable without colour.

    heights : where the lines end (data); names that would lie over one another are moved apart, each with a thin line
    to its end. Call it last: the axes' limits stay as they are then. Returns the texts.
    """
    axis.set(xlim=axis.get_xlim(), ylim=axis.get_ylim())
    frame = axis.get_window_extent(axis.figure.canvas.get_renderer())
    to_axes = axis.transData + axis.transAxes.inverted()
    ends = np.array([to_axes.transform((0, float(height)))[1] for height in heights])
    gap = 1.35 * fontsize * axis.figure.dpi / 72 / frame.height  # a line of text, as a share of the axes
    places, order = ends.copy(), np.argsort(ends, kind="stable")
    for _ in range(200):  # neighbours push each other apart until none overlaps
        for low, high in zip(order, order[1:]):
            if (short := gap - (places[high] - places[low])) > 1e-6:
                places[low], places[high] = places[low] - short / 2, places[high] + short / 2
    texts = []
    for name, end, place in zip(names, ends, places):
        axis.plot(
            [1, 1.03], [end, place], color=MUTED, linewidth=0.6, transform=axis.transAxes, clip_on=False
        )
        texts.append(axis.text(1.04, place, name, fontsize=fontsize, va="center", transform=axis.transAxes))
    return texts


def _free_place(point, width, height, taken, frame, scale):
    """(lower left corner of a box near `point` that meets none of `taken`, whether it lies away from the point)."""
    best = None
    for ring, distance in enumerate((5, 12, 20, 30, 42)):
        for dx, dy in ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1)):
            left = point[0] + dx * distance * scale - (width if dx < 0 else width / 2 if dx == 0 else 0)
            low = point[1] + dy * distance * scale - (height if dy < 0 else height / 2 if dy == 0 else 0)
            box = Bbox.from_bounds(left, low, width, height)
            best = best or (left, low)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                return (left, low), ring > 0
    return best, False
