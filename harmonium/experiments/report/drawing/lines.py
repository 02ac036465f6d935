"""Lines with standard errors."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import LinePanel, Lines


def draw_lines(picture: Lines) -> Figure:
    """A panel per dataset, a line per model."""
    figure, axes = style.panel_grid(
        picture.title, len(picture.panels), columns=2, height=2.9, share_x=not picture.log_x
    )
    names = list(dict.fromkeys(line.name for panel in picture.panels for line in panel.lines))
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_panel(axis, panel, names, picture)
        axis.set_title(style.wrapped(panel.title, 40), loc="left")
    figure.supxlabel(picture.x_label, fontsize=8.5)
    figure.supylabel(picture.y_label, fontsize=8.5)
    most = max(range(len(axes)), key=lambda i: len(picture.panels[i].lines))
    style.legend(figure, axes[most])
    return figure


def _draw_panel(axis: Axes, panel: LinePanel, names: list[str], picture: Lines) -> None:
    for line in panel.lines:
        number = names.index(line.name)
        look = {
            "color": style.of(style.COLOURS, number),
            "marker": style.of(style.MARKERS, number),
            "linestyle": style.of(style.DASHES, number),
            "markersize": 4.5,
            "markeredgecolor": "black",
            "markeredgewidth": 0.5,
            "linewidth": 1.5,
            "label": line.name,
        }
        errors = np.nan_to_num(np.array(line.errors))
        if picture.band:
            axis.plot(line.x, line.y, **look)
            low, high = np.array(line.y) - errors, np.array(line.y) + errors
            axis.fill_between(line.x, low, high, color=look["color"], alpha=0.16, linewidth=0)
        else:
            axis.errorbar(line.x, line.y, errors, elinewidth=1.0, **look)
    axis.grid()
    if picture.log_x:
        _log_axis(axis, panel)


def _log_axis(axis: Axes, panel: LinePanel) -> None:
    """Ticks at the numbers that were tried, and not at powers of ten; close ones leave some out."""
    axis.set_xscale("log")
    ticks: list[float] = []
    for x in sorted({x for line in panel.lines for x in line.x}, reverse=True):
        if not ticks or ticks[-1] / x >= 1.25:
            ticks.append(x)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.tick_params(labelbottom=True)
