"""Figures, drawn with matplotlib, which is imported here and nowhere else.

They work in print, in grey and for colour-blind readers: series differ in colour (the
palette of Okabe and Ito) and in marker or dashes besides.
"""

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from harmonium.arrays import Doubles, Numbers
from harmonium.experiments.report.items import Panel, Picture, Point

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), "-")

WIDTH = 7.0  # inches: the width of a page's text
DPI = 240
MIN_SPAN = 3.0  # percentage points that an axis of AUCs spans, so that small differences look small

_STYLE: Any = {
    "font.size": 8.5,
    "figure.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "lines.markersize": 4.5,
    "lines.markeredgecolor": "black",
    "errorbar.capsize": 2.5,
    "text.parse_math": False,  # a $ in a name stays a $
    "svg.hashsalt": "harmonium",
    "savefig.dpi": DPI,
}


@contextmanager
def house_style() -> Iterator[None]:
    """The same look on every machine, whatever the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def image_files(picture: Picture) -> dict[str, bytes]:
    """The picture as "png" and as "svg", the same bytes for the same picture."""
    with house_style():
        figure = draw_picture(picture)
        # Lay everything out once; rounded, since the last bits vary.
        figure.set_dpi(DPI)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position().bounds, 6))
        return {
            "png": _saved(figure, "png", without=("Software",)),
            "svg": _saved(figure, "svg", without=("Date", "Creator")),
        }


def _saved(figure: Figure, kind: str, *, without: Sequence[str]) -> bytes:
    """The file of a figure ``without`` these fields, which would make each file another."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=dict.fromkeys(without))
    return file.getvalue()


def draw_picture(picture: Picture) -> Figure:
    """The picture as a matplotlib figure, in the current style."""
    series = list(dict.fromkeys(name for panel in picture.panels.values() for name in panel))
    draw = _draw_lines if picture.kind == "lines" else _draw_bars
    figure = draw(picture, series)
    title = textwrap.fill(picture.title, int(11 * figure.get_figwidth()))
    figure.suptitle(title, x=0.01, ha="left")
    if any(series):
        _add_legend(figure, series)
    return figure


def _add_legend(figure: Figure, series: list[str]) -> None:
    """One legend for all panels, below them."""
    handle_of: dict[str, Artist] = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        handle_of |= dict(zip(labels, handles, strict=True))
    longest_name = max(map(len, series))
    n_columns = max(1, int(13 * figure.get_figwidth() / (8 + longest_name)))
    n_rows = -(-len(series) // n_columns)
    figure.legend(
        [handle_of[name] for name in series], series, loc="outside lower left", ncols=n_columns
    )
    figure.set_figheight(figure.get_figheight() + 0.2 * n_rows)


def _colour(number: int) -> str:
    """The colour of a series; colours begin again after the last, as do markers and dashes."""
    return COLOURS[number % len(COLOURS)]


def _marker(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def _errors(points: Iterable[Point]) -> Doubles:
    """The errors of points, 0 where there is none."""
    return np.nan_to_num(np.array([point.error for point in points], dtype=float))


# Lines


def _draw_lines(picture: Picture, series: list[str]) -> Figure:
    """A panel per dataset, a line with a band of errors per model."""
    n_panels = len(picture.panels)
    n_columns = min(2, n_panels)
    n_rows = -(-n_panels // n_columns)
    width = WIDTH if n_columns > 1 else 5.0
    figure = Figure(figsize=(width, 0.4 + 2.6 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[n_panels:]:
        axis.remove()
    limits = same_span(picture.panels.values())
    for axis, (title, panel), limit in zip(axes, picture.panels.items(), limits, strict=False):
        for name, points in panel.items():
            _draw_line(axis, name, points, number=series.index(name))
        if picture.log_x:
            places = {point.place for points in panel.values() for point in points}
            _set_log_ticks(axis, places)
        axis.set_title(textwrap.fill(title, 40))
        axis.set(ylim=limit, xlabel=picture.x_label, ylabel=picture.y_label)
    return figure


def _draw_line(axis: Axes, name: str, points: Sequence[Point], *, number: int) -> None:
    x = np.array([point.place for point in points], dtype=float)
    y = np.array([point.value for point in points], dtype=float)
    errors = _errors(points)
    axis.plot(
        x,
        y,
        label=name,
        linestyle=DASHES[number % len(DASHES)],
        color=_colour(number),
        marker=_marker(number),
    )
    axis.fill_between(x, y - errors, y + errors, color=_colour(number), alpha=0.2, lw=0)


def _set_log_ticks(axis: Axes, places: Iterable[Any]) -> None:
    """Ticks at the numbers that were tried, not at powers of ten; if some are close, at one."""
    axis.set_xscale("log")
    ticks: list[float] = []
    for x in sorted(places, reverse=True):
        if not ticks or ticks[-1] / x >= 1.3:
            ticks.append(x)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


# Bars


def _draw_bars(picture: Picture, series: list[str]) -> Figure:
    """Panels one above the other, each as high as its groups need.

    Counts are bars from zero, to the left if negative. Other values are dots with their
    errors: an axis of bars would have to begin at zero.
    """
    panels = picture.panels
    groups_of_panel = [_groups(panel) for panel in panels.values()]
    heights = [0.45 + (0.06 + 0.14 * len(series)) * len(groups) for groups in groups_of_panel]
    figure = Figure(figsize=(WIDTH, 0.6 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    values = [point.value for panel in panels.values() for point in _points(panel)]
    are_counts = all(isinstance(value, int) for value in values)
    if are_counts:
        limits = [_limits_of_counts(values)] * len(panels)
    else:
        limits = same_span(panels.values())

    for axis, (title, panel), groups, limit in zip(
        axes, panels.items(), groups_of_panel, limits, strict=True
    ):
        for i, (name, points) in enumerate(panel.items()):
            places = np.arange(len(points)) + 0.8 * ((i + 0.5) / len(panel) - 0.5)
            number = series.index(name)
            if are_counts:
                _draw_counts(axis, name, points, places, 0.8 / len(panel), number=number)
            else:
                _draw_dots(axis, name, points, places, number=number)
        if are_counts:  # whole numbers, to the left, too
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):.0f}"))
        axis.set_title(textwrap.fill(title, 80))
        axis.set_yticks(np.arange(len(groups)), [textwrap.fill(group, 60) for group in groups])
        axis.set(xlim=limit, ylim=(len(groups) - 0.4, -0.6))
    axes[-1].set_xlabel(picture.x_label)
    return figure


def _groups(panel: Panel) -> list[str]:
    """The names of the groups of bars, the same for each series."""
    points = next(iter(panel.values()))
    return [str(point.place) for point in points]


def _points(panel: Panel) -> list[Point]:
    """The points of all series."""
    return [point for points in panel.values() for point in points]


def _limits_of_counts(counts: Sequence[float]) -> tuple[float, float]:
    """Limits that hold all counts and zero, with some room for their labels."""
    low = min(0, *counts)
    high = max(1, *counts)
    margin = 0.07 * (high - low)
    return low - margin, high + margin


def _draw_counts(
    axis: Axes, name: str, points: Sequence[Point], places: Numbers, height: float, *, number: int
) -> None:
    """Bars from zero, each with its count at its end."""
    counts = [point.value for point in points]
    axis.barh(places, counts, height, label=name, color=_colour(number))
    for place, point in zip(places, points, strict=True):
        end = point.value + np.nan_to_num(point.error)
        _annotate(axis, str(abs(point.value)), end, place, to_the_left=point.value < 0)


def _draw_dots(
    axis: Axes, name: str, points: Sequence[Point], places: Numbers, *, number: int
) -> None:
    """Dots with their errors, each with its value beside it."""
    values = [point.value for point in points]
    errors = _errors(points)
    axis.errorbar(
        values,
        places,
        xerr=errors,
        label=name,
        color=_colour(number),
        marker=_marker(number),
        linestyle="",
        ecolor="black",
    )
    for place, value, error in zip(places, values, errors, strict=True):
        if not np.isnan(value):
            _annotate(axis, f"{value:.1f}", value + error, place, to_the_left=False)


def _annotate(axis: Axes, text: str, x: float, y: float, *, to_the_left: bool) -> None:
    """A small text beside a point."""
    axis.annotate(
        text,
        (x, y),
        xytext=(-4 if to_the_left else 4, 0),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        va="center",
        fontsize=7,
    )


def same_span(panels: Iterable[Panel]) -> list[tuple[float, float]]:
    """Limits for the values of panels and their errors: each its own, all as far apart.

    So differences look alike in every panel, and small ones are not made to look large.
    """
    ends = []
    for panel in panels:
        points = _points(panel)
        values = np.array([point.value for point in points])
        errors = _errors(points)
        ends.append((float(np.nanmin(values - errors)), float(np.nanmax(values + errors))))
    span = max(MIN_SPAN, *(1.15 * (high - low) for low, high in ends))
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in ends]
