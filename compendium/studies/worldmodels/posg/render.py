"""Pictures of transition graphs, and a reader's page for each case."""

import html
import io
import textwrap

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke

from compendium.studies.worldmodels.posg.criteria import tokens
from compendium.studies.worldmodels.posg.model import POSG
from compendium.studies.worldmodels.posg.scenarios import Scenario
from compendium.studies.worldmodels.posg.structure import structure_profile

OPEN, END, START, UNMATCHED = "#56B4E9", "#009E73", "#0072B2", "#D9DDE2"
INK, FAINT = "#2B2F36", "#9AA1AB"
LABELLED = 22  # games with more states are drawn without names
CROWDED = 8  # states in one column from which on their names take one line each


def positions(game: POSG) -> dict[str, tuple[float, float]]:
    """{reachable state: (x, y)}: columns by distance from the start, ordered in a column by the mean height of the
    states that lead there, so that few edges cross. The same for the same game, always."""
    columns = {}
    for state, depth in game.depths().items():
        columns.setdefault(depth, []).append(state)
    place = {}
    for depth, states in columns.items():
        heights = {}
        for number, state in enumerate(states):
            before = [place[s][1] for s in place if state in game.successors(s)]
            heights[state] = (sum(before) / len(before) if before else 0.0, number)
        ordered = sorted(states, key=lambda state: (-heights[state][0], heights[state][1]))
        for number, state in enumerate(ordered):
            place[state] = (float(depth), (len(ordered) - 1) / 2 - number)
    return place


def draw_game(axis, game: POSG, *, matched=None, title: str = "", labelled: int = LABELLED):
    """Draw the reachable transition graph on an axis: the start dark, endings green and square, other states blue;
    an edge is dashed where chance decides. `matched`: states to colour, all others turn grey; `labelled`: the
    largest number of states that are drawn with their names."""
    place = positions(game)
    highest = {}
    for x, y in place.values():
        highest[x] = max(highest.get(x, 0.0), abs(y))
    scale = {x: 1 / max(1.0, top / 4) for x, top in highest.items()}
    place = {state: (x, y * scale[x]) for state, (x, y) in place.items()}
    small = len(place) > labelled
    for state in place:
        _edges(axis, game, state, place, small)
    for state, (x, y) in place.items():
        ended = state in game.terminals
        color = END if ended else START if state == game.initial else OPEN
        if matched is not None and state not in matched:
            color = UNMATCHED
        axis.plot(
            x, y, marker="s" if ended else "o", ms=4 if small else 9, color=color, mec=INK, mew=0.4, zorder=3
        )
        if not small:
            free = not any(other == x + 1 and abs(height - y) < 0.4 for other, height in place.values())
            _name(axis, state, (x, y), ended and free, sum(other == x for other, _ in place.values()))
    last = max(x for x, _ in place.values()) or 1.0
    axis.set_title(title, fontsize=9)
    axis.margins(y=0.16)
    axis.set_xlim(-0.16 * last, (1.08 if small else 1.42) * last)  # endings are named to their right
    axis.axis("off")
    return axis


def _name(axis, state, spot, beside: bool, column: int):
    """Write a state's name: to its right (endings with room there), else above or below it, in turn by column."""
    words = " ".join(tokens(state))
    below = spot[0] % 2 == 1
    if beside:
        text = textwrap.shorten(words, 34, placeholder=" …") if column > CROWDED else textwrap.fill(words, 20)
        where = {"xytext": (7, 0), "ha": "left", "va": "center"}
    else:
        text = textwrap.fill(words, 15)
        where = {"xytext": (0, -8 if below else 7), "ha": "center", "va": "top" if below else "bottom"}
    axis.annotate(
        text,
        spot,
        textcoords="offset points",
        fontsize=5.5,
        linespacing=0.9,
        color=INK,
        zorder=4,
        path_effects=[withStroke(linewidth=1.6, foreground="white")],
        **where,
    )


def _edges(axis, game, state, place, small):
    if state in game.terminals:
        return
    chance = {t for row in game.transitions[state].values() if len(row) > 1 for t, p in row.items() if p > 0}
    for target in game.successors(state):
        style = {
            "arrowstyle": "-|>",
            "mutation_scale": 6 if small else 9,
            "lw": 0.5 if small else 0.8,
            "color": FAINT,
            "linestyle": (0, (3, 2)) if target in chance else "-",
            "shrinkA": 4,
            "shrinkB": 5,
        }
        if target == state:
            x, y = place[state]
            axis.add_patch(
                FancyArrowPatch(
                    (x - 0.06, y - 0.02),
                    (x + 0.06, y - 0.02),
                    connectionstyle="arc3,rad=1.6",
                    **style,
                    zorder=1,
                )
            )
        else:
            bend = 0.0 if place[target][0] > place[state][0] else 0.25
            axis.add_patch(
                FancyArrowPatch(
                    place[state], place[target], connectionstyle=f"arc3,rad={bend}", **style, zorder=1
                )
            )


def side_by_side(first: POSG, second: POSG, *, titles, matched: dict | None = None):
    """Two transition graphs in one figure; `matched` {first's state: second's} greys what has no counterpart."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    draw_game(axes[0], first, matched=None if matched is None else set(matched), title=titles[0])
    draw_game(axes[1], second, matched=None if matched is None else set(matched.values()), title=titles[1])
    figure.tight_layout()
    return figure


def gallery(games: dict[str, POSG], *, columns: int = 3):
    """Small transition graphs in a grid, one a title."""
    rows = -(-len(games) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.6 * columns, 2.6 * rows), squeeze=False)
    for axis in axes.flat[len(games) :]:
        axis.set_visible(False)
    for axis, (title, game) in zip(axes.flat, games.items()):
        draw_game(axis, game, title=title, labelled=12)
    figure.tight_layout()
    return figure


def game_svg(game: POSG) -> str:
    """The transition graph as an SVG element (no prolog), the same text for the same game."""
    figure, axis = plt.subplots(figsize=(7.2, 3.6))
    draw_game(axis, game)
    # ids in the file are hashes: salted with a constant, or they would differ each time
    with io.StringIO() as handle, plt.rc_context({"svg.hashsalt": "compendium", "svg.fonttype": "none"}):
        figure.savefig(handle, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
        text = handle.getvalue()
    plt.close(figure)
    return text[text.index("<svg") :]


def scenario_page(scenario: Scenario) -> str:
    """A reader's page for one case, self-contained HTML: the text, who acts, what a faithful model preserves, the
    graph, and the criteria."""
    esc = lambda value: html.escape(str(value))
    rows = lambda pairs: "".join(f"<tr><th>{esc(k)}</th><td>{esc(v)}</td></tr>" for k, v in pairs)
    wordings = scenario.locations or {"": ""}
    texts = "".join(
        f"<h3>{esc(name)}</h3><blockquote>{esc(scenario.wording(name or 'anonymised'))}</blockquote>"
        if name
        else f"<blockquote>{esc(scenario.text)}</blockquote>"
        for name in wordings
    )
    kind = "Reference" if scenario.tier in ("toy", "game") else "One faithful reading among several"
    profile = structure_profile(scenario.game)
    shown = [(name.replace("_", " "), f"{value:.3g}") for name, value in profile.items()]
    criteria = "".join(
        f"<h3>{title}</h3><ul>"
        + "".join(
            f"<li>{esc(entry['id'].replace('_', ' '))}: {esc(_predicate(entry))}</li>"
            for entry in scenario.criteria[name]
        )
        + "</ul>"
        for name, title in (("expect", "Expected"), ("avoid", "To be avoided"))
        if scenario.criteria[name]
    )
    source = f"<p>Text: {esc(scenario.source)}.</p>" if scenario.source else ""
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        f"<title>{esc(scenario.id)} {esc(scenario.title)}</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;"
        "color:#2b2f36}"
        "th{text-align:left;padding-right:1rem;font-weight:600}th,td{vertical-align:top}"
        ".moves{font-size:.85rem;border-collapse:collapse}.moves td,.moves th{padding:.15rem .9rem .15rem 0;"
        "border-top:1px solid #e3e6ea}svg{max-width:100%;height:auto}"
        "blockquote{margin:0;padding:.4rem 1rem;border-left:3px solid #56b4e9}</style>"
        f"<h1>{esc(scenario.id)} · {esc(scenario.title)}</h1>{texts}{source}"
        f"<h2>Who acts</h2><table>{rows(scenario.roles.items())}</table>"
        f"<h2>What a faithful model preserves</h2><table>{rows(scenario.facts.items())}</table>"
        f"<h2>{kind}</h2>{game_svg(scenario.game)}{_moves(scenario.game)}"
        f"<h3>In numbers</h3><table>{rows(shown)}</table>{criteria}</html>\n"
    )


def _moves(game: POSG) -> str:
    """Every state's joint actions and where they lead, as an HTML table; joint actions with the same outcomes
    share a line, and a player with nothing to choose in a state is left out."""
    spaced, lines = lambda name: html.escape(" ".join(tokens(name))), []
    for state in game.depths():
        if state in game.terminals:
            continue
        choosing = [k for k, mine in enumerate(game.actions[state]) if len(mine) > 1]
        grouped = {}
        for joint, row in game.transitions[state].items():
            said = (
                ", ".join(f"{game.players[k]} {' '.join(tokens(joint[k]))}" for k in choosing)
                or "(no choice)"
            )
            grouped.setdefault(tuple((t, p) for t, p in row.items() if p > 0), []).append(html.escape(said))
        for number, (outcomes, moves) in enumerate(grouped.items()):
            leads = ", ".join(spaced(t) if p == 1 else f"{spaced(t)} ({p:.3g})" for t, p in outcomes)
            lines.append(
                f"<tr><th>{'' if number else spaced(state)}</th>"
                f"<td>{'<br>'.join(dict.fromkeys(moves))}</td><td>{leads}</td></tr>"
            )
    return (
        "<table class='moves'><tr><th>in state</th><th>move</th><th>leads to (probability)</th></tr>"
        + "".join(lines)
        + "</table>"
    )


def _predicate(entry: dict) -> str:
    return ", ".join(
        f"{key.replace('_', ' ')} {' / '.join(value) if isinstance(value, list) else value}"
        for key, value in entry.items()
        if key not in ("id", "note")
    )
