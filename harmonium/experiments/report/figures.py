"""Figures, drawn with matplotlib, which is imported here and nowhere else.

They work in print, in grey and for colour-blind readers: series differ in colour (the
palette of Okabe and Ito) and in marker or dashes besides.
"""

import io
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from harmonium.experiments.report.forms import Panel, Picture

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), "-")

WIDTH = 7.0  # inches: the width of a page's text
DPI = 240
MIN_SPAN = 3.0  # percentage points that an axis of AUCs spans, so that small differences look small

_RULES: Any = {
    **{"font.size": 8.5, "figure.titleweight": "bold", "axes.titlelocation": "left"},
    **{"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False},
    **{"axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd"},
    **{"lines.markersize": 4.5, "lines.markeredgecolor": "black", "errorbar.capsize": 2.5},
    "text.parse_math": False,  # a $ in a name stays a $
    "svg.hashsalt": "harmonium",
    "savefig.dpi": DPI,
}


@contextmanager
def house_style() -> Iterator[None]:
    """The same look on every machine, whatever the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        yield


def image_files(picture: Picture) -> dict[str, bytes]:
    """The picture as "png" and as "svg", the same bytes for the same picture."""
    files = {}
    with house_style():
        figure = draw_picture(picture)
        # Lay everything out once; rounded, since the last bits vary.
        figure.set_dpi(DPI)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position().bounds, 6))
        for kind, unset in (("png", ("Software",)), ("svg", ("Date", "Creator"))):
            figure.savefig(file := io.BytesIO(), format=kind, metadata=dict.fromkeys(unset))
            files[kind] = file.getvalue()
    return files


def draw_picture(picture: Picture) -> Figure:
    """The picture as a matplotlib figure, in the current style."""
    names = list(dict.fromkeys(name for panel in picture.panels.values() for name in panel))
    figure = (_draw_lines if picture.kind == "lines" else _draw_bars)(picture, names)
    width = figure.get_figwidth()
    figure.suptitle(textwrap.fill(picture.title, int(11 * width)), x=0.01, ha="left")
    if any(names):
        handles = {
            label: handle
            for axis in figure.axes
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        columns = max(1, int(13 * width / (8 + max(map(len, names)))))
        rows = -(-len(names) // columns)
        figure.legend(
            [handles[name] for name in names], names, loc="outside lower left", ncols=columns
        )
        figure.set_figheight(figure.get_figheight() + 0.2 * rows)
    return figure


def _look(number: int) -> dict[str, Any]:
    """The colour and marker of a series; they begin again after the last."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def _draw_lines(picture: Picture, names: list[str]) -> Figure:
    """A panel per dataset, a line with a band of errors per model."""
    n_panels = len(picture.panels)
    columns = min(2, n_panels)
    rows = -(-n_panels // columns)
    size = (WIDTH if columns > 1 else 5.0, 0.4 + 2.6 * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[n_panels:]:
        axis.remove()
    limits = same_span(picture.panels.values())
    for axis, (title, panel), limit in zip(axes, picture.panels.items(), limits, strict=False):
        for name, points in panel.items():
            look = _look(names.index(name))
            dashes = DASHES[names.index(name) % len(DASHES)]
            x, y, errors = np.array(points, dtype=float).reshape(-1, 3).T
            errors = np.nan_to_num(errors)
            axis.plot(x, y, label=name, linestyle=dashes, **look)
            axis.fill_between(x, y - errors, y + errors, color=look["color"], alpha=0.2, lw=0)
        if picture.log_x:
            _log_axis(axis, {x for points in panel.values() for x, _, _ in points})
        axis.set_title(textwrap.fill(title, 40))
        axis.set(ylim=limit, xlabel=picture.x_label, ylabel=picture.y_label)
    return figure


def _log_axis(axis: Axes, places: Iterable[float]) -> None:
    """Ticks at the numbers that were tried, not at powers of ten; if some are close, at one."""
    axis.set_xscale("log")
    ticks: list[float] = []
    for x in sorted(places, reverse=True):
        if not ticks or ticks[-1] / x >= 1.3:
            ticks.append(x)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def _draw_bars(picture: Picture, names: list[str]) -> Figure:
    """Panels one above the other, each as high as its groups need.

    Counts are bars from zero, to the left if negative. Other values are dots with their
    errors: an axis of bars would have to begin at zero.
    """
    panels = picture.panels
    groups = [[group for group, *_ in next(iter(panel.values()))] for panel in panels.values()]
    heights = [0.45 + (0.06 + 0.14 * len(names)) * len(own) for own in groups]
    figure = Figure(figsize=(WIDTH, 0.6 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    points_of = [point for panel in panels.values() for own in panel.values() for point in own]
    _, values_of, _ = zip(*points_of, strict=True)
    counts, limits = all(isinstance(value, int) for value in values_of), same_span(panels.values())
    if counts:
        ends = np.array([min(0, *values_of), max(1, *values_of)])
        limits = [tuple(ends + 0.07 * np.ptp(ends) * np.array([-1, 1]))] * len(panels)
    for axis, (title, panel), own, limit in zip(axes, panels.items(), groups, limits, strict=True):
        for i, (name, points) in enumerate(panel.items()):
            _, values, errors = zip(*points, strict=True)
            errors, look = np.nan_to_num(errors), _look(names.index(name))
            places = np.arange(len(points)) + 0.8 * ((i + 0.5) / len(panel) - 0.5)
            if counts:
                axis.barh(places, values, 0.8 / len(panel), label=name, color=look["color"])
            else:
                look |= {"linestyle": "", "ecolor": "black"}
                axis.errorbar(values, places, xerr=errors, label=name, **look)
            for place, value, error in zip(places, values, errors, strict=True):
                text, left = str(abs(value)) if counts else f"{value:.1f}", counts and value < 0
                beside: Any = {"xytext": (-4 if left else 4, 0), "ha": "right" if left else "left"}
                beside |= {"textcoords": "offset points", "va": "center", "fontsize": 7}
                if not np.isnan(value):
                    axis.annotate(text, (value + error, place), **beside)
        if counts:  # whole numbers, to the left, too
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):.0f}"))
        axis.set_title(textwrap.fill(title, 80))
        axis.set_yticks(np.arange(len(own)), [textwrap.fill(group, 60) for group in own])
        axis.set(xlim=limit, ylim=(len(own) - 0.4, -0.6))
    axes[-1].set_xlabel(picture.x_label)
    return figure


def same_span(panels: Iterable[Panel]) -> list[tuple[float, float]]:
    """Limits for the values of panels and their errors: each its own, all as far apart.

    So differences look alike in every panel, and small ones are not made to look large.
    """
    ends = []
    for panel in panels:
        points = [point for own in panel.values() for point in own]
        values = np.array([value for _, value, _ in points])
        errors = np.nan_to_num([error for *_, error in points])
        ends.append((float(np.nanmin(values - errors)), float(np.nanmax(values + errors))))
    span = max(MIN_SPAN, *(1.15 * (high - low) for low, high in ends))
    return [((low + high - span) / 2, (low + high + span) / 2) for low, high in ends]
