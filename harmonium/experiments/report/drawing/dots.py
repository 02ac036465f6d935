"""A dot for each of several choices, one under the other."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harmonium.experiments.report.drawing import style
from harmonium.experiments.report.pictures import DotPanel, Dots


def draw_dots(picture: Dots) -> Figure:
    """Panels one above the other, as high as they have choices."""
    sizes = [len(panel.choices) + 1.8 for panel in picture.panels]
    figure = Figure(figsize=(style.WIDTH, 0.4 + 0.2 * sum(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, height_ratios=sizes).ravel()
    for axis, panel in zip(axes, picture.panels, strict=True):
        _draw_panel(axis, panel)
        axis.set_title(panel.title, loc="left")
        axis.set_title(picture.word_label, loc="right", fontsize=8, fontweight="normal")
    axes[-1].set_xlabel(picture.value_label)
    style.add_head(figure, picture.title)
    return figure


def _draw_panel(axis: Axes, panel: DotPanel) -> None:
    places = np.arange(len(panel.choices))
    values, errors = np.array(panel.values), np.nan_to_num(np.array(panel.errors))
    axis.errorbar(
        values,
        places,
        xerr=errors,
        fmt="o",
        color=style.COLOURS[0],
        ecolor="black",
        elinewidth=0.9,
        markersize=5,
        markeredgecolor="black",
        markeredgewidth=0.5,
    )
    for place, word in zip(places, panel.words, strict=True):
        axis.annotate(
            word,
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.set_yticks(places, [style.wrapped(choice, 60) for choice in panel.choices])
    axis.set_ylim(len(places) - 0.4, -0.6)
    axis.grid()
