"""Numbers of tags as bars up and down from zero."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import CountPanel, Counts


def draw_counts(picture: Counts) -> Figure:
    """Panels on one scale; every bar has its number."""
    most = max(len(panel.groups) for panel in picture.panels)
    columns = 3 if most <= 3 else 2 if most <= 6 else 1
    figure, axes = style.panel_grid(
        picture.title, len(picture.panels), columns=columns, height=2.3, share_x=False
    )
    highest = max((n or 0 for p in picture.panels for n in p.up), default=0)
    lowest = max((n or 0 for p in picture.panels for n in p.down), default=0)
    room = 0.16 * max(highest + lowest, 4)
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_panel(axis, panel, picture)
        axis.set_title(style.wrapped(panel.title, 34), loc="left")
        axis.set_ylim(-lowest - room, highest + room)
    figure.supylabel(picture.value_label, fontsize=8.5)
    style.legend(figure, axes[0])
    return figure


def _draw_panel(axis: Axes, panel: CountPanel, picture: Counts) -> None:
    places = np.arange(len(panel.groups))
    for label, counts, sign, colour, hatch in (
        (picture.up_label, panel.up, 1, style.BETTER, ""),
        (picture.down_label, panel.down, -1, style.WORSE, "///"),
    ):
        heights = [sign * (count or 0) for count in counts]
        axis.bar(
            places,
            heights,
            0.62,
            label=label,
            color=colour,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.6,
        )
        for place, height, count in zip(places, heights, counts, strict=True):
            if count is not None:
                axis.annotate(
                    str(count),
                    (place, height),
                    xytext=(0, 3 * sign),
                    textcoords="offset points",
                    ha="center",
                    va="bottom" if sign > 0 else "top",
                    fontsize=8,
                )
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(places, [style.wrapped(group, 14) for group in panel.groups])
    axis.tick_params(axis="x", length=0, labelbottom=True)
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    axis.grid(axis="y")
