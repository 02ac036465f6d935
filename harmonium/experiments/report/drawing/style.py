"""How figures look: for print, in grey as in colour, and for the colour-blind.

Series differ in colour (the palette of Okabe and Ito) and in hatch, marker or dashes besides.
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo", "---")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), "-")
BETTER, WORSE = COLOURS[0], COLOURS[5]

WIDTH = 7.0
"""Inches: the width of a page's text."""
NARROW = 4.8
"""Inches, for a figure of one panel."""
DPI = 240

_RULES: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.7,
    "errorbar.capsize": 2.5,
    "text.parse_math": False,  # a $ in a name is a $
    "svg.hashsalt": "harmonium",
    "svg.fonttype": "path",
    "savefig.dpi": DPI,
}


@contextmanager
def house_style() -> Iterator[None]:
    """The same look on every machine, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        yield


def of(choices: tuple[Any, ...], number: int) -> Any:
    """The colour, hatch, marker or dashes of a series; they begin again after the last."""
    return choices[number % len(choices)]


def panel_grid(
    n_panels: int, *, columns: int, height: float, narrow: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row; ``height`` is that of a row, in inches.

    One panel alone is as wide as the page only where it must be (``narrow=False``).
    """
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    width = NARROW if narrow and n_panels == 1 else WIDTH
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[n_panels:]:
        axis.remove()
    return figure, list(axes[:n_panels])


def add_head(figure: Figure, title: str, legend: Sequence[Any] = ()) -> None:
    """Put the title and one legend for all panels above them; the figure grows by as much.

    ``legend`` are artists with labels, one for each series.
    """
    width, height = figure.get_size_inches()
    words = wrapped(title, int(11 * width))
    title_height = 0.08 + 0.18 * (1 + words.count("\n"))
    columns = _legend_columns([artist.get_label() for artist in legend], 13 * width)
    rows = -(-len(legend) // columns)
    head = title_height + (0.1 + 0.17 * rows if rows else 0.0)
    total = height + head
    figure.set_size_inches(width, total)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 0, 1, height / total))
    left = 0.08 / width
    figure.text(left, 1 - 0.06 / total, words, va="top", fontsize=10, fontweight="bold")
    if legend:
        drawn = figure.legend(
            handles=list(legend),
            loc="upper left",
            bbox_to_anchor=(left, 1 - title_height / total),
            ncols=columns,
            borderaxespad=0,
            borderpad=0.2,
            handlelength=2.8,
        )
        drawn.set_in_layout(False)


def _legend_columns(labels: list[str], room: float) -> int:
    """How many entries fit side by side into a room of so many characters."""
    longest = max((len(label) for label in labels), default=0) + 8
    return max(1, min(len(labels), int(room / longest)))


def same_span(
    ends: Sequence[tuple[float, float]], *, least: float, margin: float = 0.06
) -> list[tuple[float, float]]:
    """Limits for panels with these lowest and highest values: each its own, all as far apart.

    So differences look alike in every panel, and small ones are not made to look large: the limits
    are at least ``least`` apart.
    """
    span = max(least, *((1 + 2 * margin) * (high - low) for low, high in ends))
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in ends]


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most so many characters; its own line ends are kept."""
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
