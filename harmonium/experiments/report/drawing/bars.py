"""Groups of bars with standard errors."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import BarPanel, Bars

CHANCE = 50.0
"""The AUC of guessing, in percent: no axis needs to begin below it."""


def draw_bars(picture: Bars) -> Figure:
    """A panel per dataset; the axis begins near the lowest bar and says so."""
    most = max(len(p.groups) * len(p.series) for p in picture.panels)
    columns = 2 if most <= 12 else 1
    figure, axes = style.panel_grid(
        picture.title, len(picture.panels), columns=columns, height=2.7, share_x=False
    )
    bottom, top = _limits(picture)
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_panel(axis, panel)
        axis.set_title(style.wrapped(panel.title, 40), loc="left")
        axis.set_ylim(bottom, top)
        axis.tick_params(labelbottom=True)
    figure.supxlabel(picture.group_label, fontsize=8.5)
    figure.supylabel(f"{picture.value_label}, axis from {bottom:g}", fontsize=8.5)
    style.legend(figure, axes[0], title=f"{picture.series_label}:")
    return figure


def _draw_panel(axis: Axes, panel: BarPanel) -> None:
    places = np.arange(len(panel.groups))
    width = 0.84 / len(panel.series)
    for number, series in enumerate(panel.series):
        x = places + (number - (len(panel.series) - 1) / 2) * width
        values, errors = np.array(series.values), np.nan_to_num(np.array(series.errors))
        axis.bar(
            x,
            np.nan_to_num(values),
            width * 0.92,
            label=series.name,
            color=style.of(style.COLOURS, number),
            hatch=style.of(style.HATCHES, number),
            edgecolor="black",
            linewidth=0.6,
        )
        axis.errorbar(x, values, errors, fmt="none", ecolor="black", elinewidth=0.9)
        for place, value, error in zip(x, values, errors, strict=True):
            if not math.isnan(value):
                axis.annotate(
                    f"{value:.1f}",
                    (place, value + error),
                    xytext=(0, 2.5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=6.5,
                )
    axis.set_xticks(places, [style.wrapped(group, 12) for group in panel.groups])
    axis.grid(axis="y")


def _limits(picture: Bars) -> tuple[float, float]:
    """From chance, or from below the lowest bar by as much as the bars differ."""
    ends = [
        (value - error, value + error)
        for panel in picture.panels
        for series in panel.series
        for value, error in zip(series.values, np.nan_to_num(series.errors), strict=True)
        if not math.isnan(value)
    ]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    spread = max(high - low, 2.0)
    bottom = math.floor(low - 0.5 * spread)
    if low > CHANCE > bottom:
        bottom = math.floor(CHANCE)
    return float(bottom), high + 0.12 * (high - bottom)
