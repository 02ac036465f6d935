"""Groups of bars with standard errors."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import BarPanel, Bars

LEAST = 4.0
"""Percent: differences smaller than a fraction of this are meant to look small."""


def draw_bars(picture: Bars) -> Figure:
    """A panel per dataset; an axis begins below the lowest bar and says where."""
    names = list(dict.fromkeys(series.name for panel in picture.panels for series in panel.series))
    most = max(len(panel.groups) * len(panel.series) for panel in picture.panels)
    few = most <= 8
    figure, axes = style.panel_grid(
        len(picture.panels), columns=2 if few else 1, height=2.3, narrow=few
    )
    ends = [_ends(panel) for panel in picture.panels]
    limits = style.same_span(ends, least=LEAST, margin=0.25)
    for axis, panel, (low, high) in zip(axes, picture.panels, limits, strict=True):
        _draw_panel(axis, panel, names)
        bottom = math.floor(low)
        axis.set_ylim(bottom, high)
        axis.set_title(style.wrapped(panel.title, 40), loc="left")
        axis.set_xlabel(picture.group_label)
        axis.set_ylabel(f"{picture.value_label}\naxis from {bottom} %")
    style.add_head(figure, picture.title, [_key(name, i) for i, name in enumerate(names)])
    return figure


def _key(name: str, number: int) -> Patch:
    return Patch(label=name, **_look(number))


def _look(number: int) -> dict[str, Any]:
    return {
        "facecolor": style.of(style.COLOURS, number),
        "hatch": style.of(style.HATCHES, number),
        "edgecolor": "black",
        "linewidth": 0.6,
    }


def _draw_panel(axis: Axes, panel: BarPanel, names: list[str]) -> None:
    places = np.arange(len(panel.groups))
    width = 0.84 / len(panel.series)
    for i, series in enumerate(panel.series):
        x = places + (i - (len(panel.series) - 1) / 2) * width
        values, errors = np.array(series.values), np.nan_to_num(np.array(series.errors))
        axis.bar(x, np.nan_to_num(values), 0.92 * width, **_look(names.index(series.name)))
        axis.errorbar(x, values, errors, fmt="none", ecolor="black", elinewidth=0.9)
        for place, value, error in zip(x, values, errors, strict=True):
            if not math.isnan(value):
                _write_value(axis, place, value, error)
    axis.set_xticks(places, [style.wrapped(group, 14) for group in panel.groups])
    axis.grid(axis="y")


def _write_value(axis: Axes, place: float, value: float, error: float) -> None:
    axis.annotate(
        f"{value:.1f}",
        (place, value + error),
        xytext=(0, 2.5),
        textcoords="offset points",
        ha="center",
        fontsize=6.5,
    )


def _ends(panel: BarPanel) -> tuple[float, float]:
    """The lowest and the highest end of an error bar."""
    values = np.array([series.values for series in panel.series])
    errors = np.nan_to_num(np.array([series.errors for series in panel.series]))
    return float(np.nanmin(values - errors)), float(np.nanmax(values + errors))
