"""Figures, drawn with matplotlib, which is imported here and nowhere else.

They are for print, in grey as in colour, and for the colour-blind: series differ in colour (the
palette of Okabe and Ito) and in hatch, marker or dashes besides.
"""

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from harmonium.experiments.report.tables import Panel, Picture, Series

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


def image_files(picture: Picture) -> dict[str, bytes]:
    """The picture as "png" and as "svg", the same bytes for the same picture."""
    with house_style():
        figure = draw_picture(picture)
        # Find a place for everything, once; rounded, since the last bits differ from time to time.
        figure.set_dpi(DPI)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position().bounds, 6))
        return {
            "png": _saved_image(figure, "png", {"Software": None}),
            "svg": _saved_image(figure, "svg", {"Date": None, "Creator": None}),
        }


def draw_picture(picture: Picture) -> Figure:
    """The picture as a figure of matplotlib, in the style that is set."""
    draw = {"bars": _draw_bars, "lines": _draw_lines, "counts": _draw_counts, "dots": _draw_dots}
    return draw[picture.kind](picture)


def _saved_image(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=metadata)
    return file.getvalue()


LEAST_BAR_SPAN, LEAST_LINE_SPAN = 4.0, 3.0
"""Percent: differences smaller than a fraction of this are meant to look small."""


def _draw_bars(picture: Picture) -> Figure:
    """A panel per dataset; an axis begins below the lowest bar and says where."""
    names = _series_names(picture)
    few = max(len(panel.groups) * len(panel.series) for panel in picture.panels) <= 8
    figure, axes = panel_grid(len(picture.panels), columns=2 if few else 1, height=2.3, narrow=few)
    limits = same_span(picture.panels, least=LEAST_BAR_SPAN, margin=0.25)
    for axis, panel, (low, high) in zip(axes, picture.panels, limits, strict=True):
        _draw_bar_panel(axis, panel, names)
        bottom = math.floor(low)
        axis.set_title(wrapped(panel.title, 40), loc="left")
        axis.set(ylim=(bottom, high), xlabel=picture.x_label)
        axis.set_ylabel(f"{picture.y_label}\naxis from {bottom} %")
    keys = [Patch(label=name, **_bar_look(i)) for i, name in enumerate(names)]
    add_head(figure, picture.title, keys)
    return figure


def _series_names(picture: Picture) -> list[str]:
    return list(dict.fromkeys(series.name for panel in picture.panels for series in panel.series))


def _bar_look(number: int) -> dict[str, Any]:
    return {
        "facecolor": cycle(COLOURS, number),
        "hatch": cycle(HATCHES, number),
        "edgecolor": "black",
        "linewidth": 0.6,
    }


def _draw_bar_panel(axis: Axes, panel: Panel, names: list[str]) -> None:
    places = np.arange(len(panel.groups))
    width = 0.84 / len(panel.series)
    for i, series in enumerate(panel.series):
        x = places + (i - (len(panel.series) - 1) / 2) * width
        values, errors = np.array(series.values), np.nan_to_num(np.array(series.errors))
        axis.bar(x, np.nan_to_num(values), 0.92 * width, **_bar_look(names.index(series.name)))
        axis.errorbar(x, values, errors, fmt="none", ecolor="black", elinewidth=0.9)
        for place, value, error in zip(x, values, errors, strict=True):
            if not math.isnan(value):
                top = (place, value + error)
                _write(axis, f"{value:.1f}", top, (0, 2.5), ha="center", fontsize=6.5)
    axis.set_xticks(places, [wrapped(group, 14) for group in panel.groups])
    axis.grid(axis="y")


def _draw_lines(picture: Picture) -> Figure:
    """A panel per dataset, a line per model."""
    names = _series_names(picture)
    figure, axes = panel_grid(len(picture.panels), columns=2, height=2.6)
    limits = same_span(picture.panels, least=LEAST_LINE_SPAN)
    for axis, panel, limit in zip(axes, picture.panels, limits, strict=True):
        for line in panel.series:
            _draw_line(axis, line, _line_look(names.index(line.name)), band=picture.band)
        if picture.log_x:
            _log_axis(axis, panel)
        axis.grid()
        axis.set_title(wrapped(panel.title, 40), loc="left")
        axis.set(ylim=limit, xlabel=picture.x_label, ylabel=picture.y_label)
    keys = [Line2D([], [], label=name, **_line_look(i)) for i, name in enumerate(names)]
    add_head(figure, picture.title, keys)
    return figure


def _line_look(number: int) -> dict[str, Any]:
    return {
        "color": cycle(COLOURS, number),
        "marker": cycle(MARKERS, number),
        "linestyle": cycle(DASHES, number),
        "markersize": 4.5,
        "markeredgecolor": "black",
        "markeredgewidth": 0.5,
        "linewidth": 1.5,
    }


def _draw_line(axis: Axes, line: Series, look: dict[str, Any], *, band: bool) -> None:
    y, errors = np.array(line.values), np.nan_to_num(np.array(line.errors))
    if band:
        axis.plot(line.x, y, **look)
        axis.fill_between(line.x, y - errors, y + errors, color=look["color"], alpha=0.2, lw=0)
    else:
        axis.errorbar(line.x, y, errors, elinewidth=1.0, **look)


def _log_axis(axis: Axes, panel: Panel) -> None:
    """Ticks at the numbers that were tried, not at powers of ten; if some are close, at one."""
    axis.set_xscale("log")
    ticks: list[float] = []
    for x in sorted({x for line in panel.series for x in line.x}, reverse=True):
        if not ticks or ticks[-1] / x >= 1.3:
            ticks.append(x)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


_UP: dict[str, Any] = {"facecolor": BETTER, "edgecolor": "black", "linewidth": 0.6}
_DOWN: dict[str, Any] = {**_UP, "facecolor": WORSE, "hatch": "///"}


def _draw_counts(picture: Picture) -> Figure:
    """Panels on one scale; every bar has its number."""
    most = max(len(panel.groups) for panel in picture.panels)
    columns = 3 if most <= 2 else 2 if most <= 4 else 1
    figure, axes = panel_grid(len(picture.panels), columns=columns, height=1.9, narrow=most <= 5)
    highest, lowest = (
        max(np.nan_to_num(panel.series[i].values).max() for panel in picture.panels) for i in (0, 1)
    )
    room = 0.18 * max(highest + lowest, 4)
    for axis, panel in zip(axes, picture.panels, strict=True):
        up, down = panel.series
        _draw_count_bars(axis, up, 1, _UP)
        _draw_count_bars(axis, down, -1, _DOWN)
        _label_count_panel(axis, panel, small=most > 7)
        axis.set(ylim=(-lowest - room, highest + room), ylabel=picture.y_label)
    looks = zip(_series_names(picture), (_UP, _DOWN), strict=True)
    add_head(figure, picture.title, [Patch(label=name, **look) for name, look in looks])
    return figure


def _draw_count_bars(axis: Axes, counts: Series, sign: int, look: dict[str, Any]) -> None:
    heights = sign * np.nan_to_num(counts.values)
    axis.bar(np.arange(len(heights)), heights, 0.62, **look)
    va = "bottom" if sign > 0 else "top"
    for top, count in zip(enumerate(heights), counts.values, strict=True):
        if not math.isnan(count):
            _write(axis, f"{count:.0f}", top, (0, 2.5 * sign), ha="center", va=va, fontsize=7.5)


def _label_count_panel(axis: Axes, panel: Panel, *, small: bool) -> None:
    places = np.arange(len(panel.groups))
    axis.set_title(wrapped(panel.title, 34), loc="left")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(places, [wrapped(group, 12) for group in panel.groups])
    axis.tick_params(axis="x", length=0, labelsize=6.5 if small else 8)
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    axis.grid(axis="y")


def _draw_dots(picture: Picture) -> Figure:
    """Panels one above the other, each as high as its choices need."""
    sizes = [len(panel.groups) + 1.8 for panel in picture.panels]
    figure = Figure(figsize=(WIDTH, 0.4 + 0.2 * sum(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, height_ratios=sizes).ravel()
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_dot_panel(axis, panel)
        axis.set_title(panel.title, loc="left")
        axis.set_title(picture.word_label, loc="right", fontsize=8, fontweight="normal")
    axes[-1].set_xlabel(picture.x_label)
    add_head(figure, picture.title)
    return figure


def _draw_dot_panel(axis: Axes, panel: Panel) -> None:
    places = np.arange(len(panel.groups))
    (dots,) = panel.series
    axis.errorbar(
        dots.values,
        places,
        xerr=np.nan_to_num(dots.errors),
        fmt="o",
        color=COLOURS[0],
        ecolor="black",
        elinewidth=0.9,
        markersize=5,
        markeredgecolor="black",
        markeredgewidth=0.5,
    )
    for place, word in zip(places, panel.words, strict=True):
        beside = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8}
        _write(axis, word, (1.0, place), (4, 0), **beside)
    axis.set_yticks(places, [wrapped(group, 60) for group in panel.groups])
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.grid()


def _write(
    axis: Axes, text: str, place: tuple[Any, Any], offset: tuple[float, float], **look: Any
) -> None:
    """Put text beside a place, so many points away."""
    axis.annotate(text, place, xytext=offset, textcoords="offset points", **look)


def cycle(choices: tuple[Any, ...], number: int) -> Any:
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
    longest = max((len(artist.get_label()) for artist in legend), default=0) + 8
    columns = max(1, min(len(legend), int(13 * width / longest)))
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


def same_span(
    panels: Sequence[Panel], *, least: float, margin: float = 0.06
) -> list[tuple[float, float]]:
    """Limits for the values of panels and their errors: each its own, all as far apart.

    So differences look alike in every panel, and small ones are not made to look large: the limits
    are at least ``least`` apart.
    """
    ends = []
    for panel in panels:
        values = np.concatenate([series.values for series in panel.series])
        errors = np.nan_to_num(np.concatenate([series.errors for series in panel.series]))
        ends.append((float(np.nanmin(values - errors)), float(np.nanmax(values + errors))))
    span = max(least, *((1 + 2 * margin) * (high - low) for low, high in ends))
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in ends]


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most so many characters; its own line ends are kept."""
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
