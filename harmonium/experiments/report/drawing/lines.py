"""Lines with standard errors."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import Line, LinePanel, Lines

LEAST = 3.0
"""Percent: differences smaller than a fraction of this are meant to look small."""


def draw_lines(picture: Lines) -> Figure:
    """A panel per dataset, a line per model."""
    names = list(dict.fromkeys(line.name for panel in picture.panels for line in panel.lines))
    figure, axes = style.panel_grid(len(picture.panels), columns=2, height=2.6)
    limits = style.same_span([_ends(panel) for panel in picture.panels], least=LEAST)
    for axis, panel, limit in zip(axes, picture.panels, limits, strict=True):
        for line in panel.lines:
            _draw_line(axis, line, _look(names.index(line.name)), band=picture.band)
        if picture.log_x:
            _log_axis(axis, panel)
        axis.grid()
        axis.set_ylim(*limit)
        axis.set_title(style.wrapped(panel.title, 40), loc="left")
        axis.set_xlabel(picture.x_label)
        axis.set_ylabel(picture.y_label)
    keys = [Line2D([], [], label=name, **_look(i)) for i, name in enumerate(names)]
    style.add_head(figure, picture.title, keys)
    return figure


def _look(number: int) -> dict[str, Any]:
    return {
        "color": style.of(style.COLOURS, number),
        "marker": style.of(style.MARKERS, number),
        "linestyle": style.of(style.DASHES, number),
        "markersize": 4.5,
        "markeredgecolor": "black",
        "markeredgewidth": 0.5,
        "linewidth": 1.5,
    }


def _draw_line(axis: Axes, line: Line, look: dict[str, Any], *, band: bool) -> None:
    y, errors = np.array(line.y), np.nan_to_num(np.array(line.errors))
    if band:
        axis.plot(line.x, y, **look)
        axis.fill_between(line.x, y - errors, y + errors, color=look["color"], alpha=0.2, lw=0)
    else:
        axis.errorbar(line.x, y, errors, elinewidth=1.0, **look)


def _ends(panel: LinePanel) -> tuple[float, float]:
    """The lowest and the highest end of a standard error."""
    y = np.concatenate([line.y for line in panel.lines])
    errors = np.nan_to_num(np.concatenate([line.errors for line in panel.lines]))
    return float((y - errors).min()), float((y + errors).max())


def _log_axis(axis: Axes, panel: LinePanel) -> None:
    """Ticks at the numbers that were tried, and not at powers of ten; of close ones, at one."""
    axis.set_xscale("log")
    ticks: list[float] = []
    for x in sorted({x for line in panel.lines for x in line.x}, reverse=True):
        if not ticks or ticks[-1] / x >= 1.3:
            ticks.append(x)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
