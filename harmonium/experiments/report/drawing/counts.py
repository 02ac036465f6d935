"""Numbers of tags as bars up and down from zero."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import CountPanel, Counts

_UP: dict[str, Any] = {"facecolor": style.BETTER, "edgecolor": "black", "linewidth": 0.6}
_DOWN: dict[str, Any] = {**_UP, "facecolor": style.WORSE, "hatch": "///"}


def draw_counts(picture: Counts) -> Figure:
    """Panels on one scale; every bar has its number."""
    most = max(len(panel.groups) for panel in picture.panels)
    columns = 3 if most <= 2 else 2 if most <= 4 else 1
    figure, axes = style.panel_grid(
        len(picture.panels), columns=columns, height=1.9, narrow=most <= 5
    )
    highest = max((n or 0 for p in picture.panels for n in p.up), default=0)
    lowest = max((n or 0 for p in picture.panels for n in p.down), default=0)
    room = 0.18 * max(highest + lowest, 4)
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_bars(axis, panel.up, 1, _UP)
        _draw_bars(axis, panel.down, -1, _DOWN)
        _dress(axis, panel, small=most > 7)
        axis.set_ylim(-lowest - room, highest + room)
        axis.set_ylabel(picture.value_label)
    keys = [Patch(label=picture.up_label, **_UP), Patch(label=picture.down_label, **_DOWN)]
    style.add_head(figure, picture.title, keys)
    return figure


def _draw_bars(axis: Axes, counts: tuple[int | None, ...], sign: int, look: dict[str, Any]) -> None:
    places = np.arange(len(counts))
    heights = [sign * (count or 0) for count in counts]
    axis.bar(places, heights, 0.62, **look)
    for place, height, count in zip(places, heights, counts, strict=True):
        if count is not None:
            axis.annotate(
                str(count),
                (place, height),
                xytext=(0, 2.5 * sign),
                textcoords="offset points",
                ha="center",
                va="bottom" if sign > 0 else "top",
                fontsize=7.5,
            )


def _dress(axis: Axes, panel: CountPanel, *, small: bool) -> None:
    places = np.arange(len(panel.groups))
    axis.set_title(style.wrapped(panel.title, 34), loc="left")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(places, [style.wrapped(group, 12) for group in panel.groups])
    axis.tick_params(axis="x", length=0, labelsize=6.5 if small else 8)
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    axis.grid(axis="y")
