"""How figures look: for print, in grey as in colour, and for the colour-blind.

Series differ in colour (the palette of Okabe and Ito) and in hatch, marker or dashes besides.
"""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo", "---")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), "-")
BETTER, WORSE = COLOURS[0], COLOURS[5]

WIDTH = 7.0
"""Inches: the width of a page's text."""
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
    "svg.hashsalt": "harmonium",
    "svg.fonttype": "path",
    "savefig.dpi": DPI,
}


@contextmanager
def style() -> Iterator[None]:
    """The same look on every machine, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        yield


def of(choices: tuple[Any, ...], number: int) -> Any:
    """The colour, hatch, marker or dashes of a series; they begin again after the last."""
    return choices[number % len(choices)]


def panel_grid(
    title: str, n_panels: int, *, columns: int, height: float, share_x: bool = True
) -> tuple[Figure, list[Axes]]:
    """A titled figure and its panels, row by row, on one scale.

    ``height`` is that of a row of panels, in inches.
    """
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    words = wrapped(title, 88)
    top = 0.35 + 0.16 * words.count("\n")
    figure = Figure(figsize=(WIDTH, rows * height + top), layout="constrained")
    figure.suptitle(words, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    axes = figure.subplots(rows, columns, sharey=True, sharex=share_x, squeeze=False).ravel()
    for axis in axes[n_panels:]:
        axis.remove()
    for number, axis in enumerate(axes[:n_panels]):
        axis.tick_params(labelleft=number % columns == 0)
        axis.tick_params(labelbottom=number + columns >= n_panels)
    return figure, list(axes[:n_panels])


def legend(figure: Figure, axis: Axes, *, title: str = "") -> None:
    """One legend for all panels, under the title."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    width = sum(len(label) + 6 for label in labels)
    columns = len(labels) if width < 100 else max(1, len(labels) * 100 // width)
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=columns,
        title=title or None,
        alignment="left",
        handlelength=2.6,
    )


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most so many characters; its own line ends are kept."""
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
