"""The forms that show mean AUCs along an axis, as a table and a figure of the same numbers.

As lines: damping (Figure 2), completion, learning curves. As groups of bars: approximations
(Figure 3), feature groups.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.recipe import ONE
from harmonium.experiments.report.comparison import best_of, format_score, score_cells
from harmonium.experiments.report.differences import differences_along
from harmonium.experiments.report.numbers import Score, Summary, by_dataset, distinct, grouped
from harmonium.experiments.report.tables import (
    Cell,
    Panel,
    Picture,
    Series,
    Table,
    columns,
    format_value,
    setting_heading,
    text_row,
)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What a form puts on the x axis, and its words."""

    axis: str
    title: str
    x_label: str
    y_label: str = "Mean AUC (%)"
    heading: str = "{}"
    """The heading of a column of the table; {} is the place on the axis."""
    caption: str
    log_x: bool = False
    band: bool = True
    compared: bool = False
    """Whether places on the axis are compared with the first of them, too."""
    table: str = "auc"
    """The end of the table's name."""


DAMPING = Curve(
    axis="damping",
    title="Mean AUC against the damping of loopy belief propagation",
    x_label="Damping factor β",
    heading="β = {}",
    caption=(
        "Mean AUC over tags and test folds of models trained with loopy belief propagation, "
        "against the damping of its messages (as in the paper's Figure 2)."
    ),
    band=False,
    compared=True,
)
COMPLETION = Curve(
    axis="known",
    title="Mean AUC of the unknown tags by what is known of the others",
    x_label="Tags of the clip that the model is told (%)",
    y_label="Mean AUC of the other tags (%)",
    heading="{} known",
    caption=(
        "A random share of each test clip's tags is told to the model, or one tag that holds (each "
        "of the clip's true tags in turn, if it has two or more), and the model predicts the "
        "others; the AUC is that of the tags not told. A model that cannot be told tags predicts "
        "from the audio alone."
    ),
)
LEARNING = Curve(
    axis="clips",
    title="Mean AUC against the number of training clips",
    x_label="Training clips (logarithmic scale)",
    heading="{} clips",
    caption=(
        "Mean AUC over tags and test folds when so many clips are trained on; “all” are the clips "
        "of all folds but two."
    ),
    log_x=True,
)


def curves(summary: Summary, curve: Curve) -> list[Table | Picture]:
    """A figure with a line per model, and the same numbers as a table."""
    if curve.axis not in ("known", "clips") and curve.axis not in summary.recipe.vary.settings:
        raise DataError(
            f"A recipe of the form '{summary.recipe.form}' needs {curve.axis} = [...] under [vary]."
        )
    axes = summary.varying("dataset", curve.axis)
    errors = "The band is" if curve.band else "The bars are"
    figure = Picture(
        name=summary.recipe.form,
        title=curve.title,
        caption=f"{curve.caption} {errors} one standard error over folds up and down.",
        kind="lines",
        x_label=curve.x_label,
        y_label=curve.y_label,
        log_x=curve.log_x,
        band=curve.band,
        panels=tuple(
            Panel(dataset, _lines(summary, scores, axes, curve))
            for dataset, scores in by_dataset(summary.scores).items()
        ),
    )
    compared = (*axes, *((curve.axis,) if curve.compared else ()))
    return [curve_table(summary, axes, curve), *differences_along(summary, compared), figure]


def by_name(scores: list[Score], axes: tuple[str, ...]) -> dict[str, list[Score]]:
    """The scores by what they are on some axes, in words."""
    return grouped(scores, lambda score: score.name(axes))


def _lines(
    summary: Summary, scores: list[Score], axes: tuple[str, ...], curve: Curve
) -> tuple[Series, ...]:
    lines = []
    for name, of_line in by_name(scores, axes).items():
        points = [(_position(summary, s, curve), 100 * s.mean, 100 * s.error) for s in of_line]
        there = sorted(point for point in points if not np.isnan(point[0]))
        if there:
            x, values, errors = zip(*there, strict=True)
            lines.append(Series(name, values, errors, x))
    return tuple(lines)


def _position(summary: Summary, score: Score, curve: Curve) -> float:
    """Where a score lies on the x axis; all clips are as many as were trained on."""
    value = score.value(curve.axis)
    if curve.axis == "known":
        return float("nan") if value == ONE else 100.0 * value
    if curve.axis != "clips" or value:
        return float(value)
    measured = next(arm.cost.clips for arm in summary.arms if arm.arm is score.arm)
    return float(np.median(measured)) if len(measured) else float("nan")


def places(summary: Summary, curve: Curve) -> list[Any]:
    """The values on the axis in order: 0 clips, which are all, come last; one tag after none."""

    def order(value: Any) -> float:
        if value == ONE:
            return 1e-9
        return math.inf if curve.axis == "clips" and not value else value

    return sorted(distinct(summary.scores, curve.axis), key=order)


def curve_table(summary: Summary, axes: tuple[str, ...], curve: Curve) -> Table:
    """A row per dataset and model, a column per place on the axis."""
    along = places(summary, curve)
    rows = []
    for dataset, scores in by_dataset(summary.scores).items():
        lines = {
            name: {score.value(curve.axis): score for score in of_line}
            for name, of_line in by_name(scores, axes).items()
        }
        best = {
            place: best_of({n: line[place] for n, line in lines.items() if place in line})
            for place in along
        }
        for name, line in lines.items():
            strong = {place for place in along if axes and name in best[place]}
            cells = [Cell(format_score(line.get(place)), place in strong) for place in along]
            rows.append(text_row(dataset, name, *cells))
    return Table(
        name=f"{summary.recipe.form}-{curve.table}",
        title=curve.title,
        caption=(
            f"{curve.caption} In percent, ± the standard error over folds."
            + (" Bold: the best of the dataset in the column." if axes else "")
        ),
        columns=(
            *columns("Dataset", "Model", align="left"),
            *columns(*(curve.heading.format(format_value(curve.axis, p)) for p in along)),
        ),
        rows=tuple(rows),
    )


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """What a form puts side by side, and its words."""

    axis: str
    """Bars of different colour."""
    groups: tuple[str, ...]
    """Where the groups come from: the first of these that varies."""
    title: str
    caption: str


APPROXIMATIONS = Grouping(
    axis="inference",
    groups=("training", "model"),
    title="Mean AUC by the approximations used for training and for testing",
    caption=(
        "CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy belief "
        "propagation (as in the paper's Figure 3)."
    ),
)
FEATURES = Grouping(
    axis="features",
    groups=("model",),
    title="Mean AUC by the features that a model is given",
    caption="Timbre, rhythm, or both.",
)


def grouped_bars(summary: Summary, grouping: Grouping) -> list[Table | Picture]:
    """A table and a figure of the same numbers."""
    groups = next((axis for axis in grouping.groups if axis in summary.varying()), "model")
    axes = (*summary.varying("dataset", groups, grouping.axis), grouping.axis)
    caption = (
        f"Mean AUC over tags and test folds in percent, ± its standard error over folds. "
        f"{grouping.caption}"
    )
    figure = Picture(
        name=summary.recipe.form,
        title=grouping.title,
        caption=caption,
        kind="bars",
        x_label=setting_heading(groups),
        y_label="Mean AUC (%)",
        panels=tuple(
            _bar_panel(dataset, scores, groups, axes)
            for dataset, scores in by_dataset(summary.scores).items()
        ),
    )
    differences = differences_along(summary, (groups, *axes))
    return [_grouped_table(summary, grouping, groups, axes, caption), *differences, figure]


def _bar_panel(dataset: str, scores: list[Score], groups: str, axes: tuple[str, ...]) -> Panel:
    places = distinct(scores, groups)
    series = []
    for name, of_series in by_name(scores, axes).items():
        found = {score.value(groups): (score.mean, score.error) for score in of_series}
        there = 100 * np.array([found.get(place, (np.nan, np.nan)) for place in places])
        series.append(Series(name, *(tuple(column) for column in there.T.tolist())))
    return Panel(dataset, tuple(series), tuple(format_value(groups, place) for place in places))


def _grouped_table(
    summary: Summary, grouping: Grouping, groups: str, axes: tuple[str, ...], caption: str
) -> Table:
    names = list(by_name(summary.scores, axes))
    rows = [
        text_row(
            dataset,
            format_value(groups, group),
            *score_cells({score.name(axes): score for score in of_group}, names),
        )
        for dataset, of_dataset in by_dataset(summary.scores).items()
        for group, of_group in grouped(of_dataset, lambda score: score.value(groups)).items()
    ]
    return Table(
        name=f"{summary.recipe.form}-auc",
        title=grouping.title,
        caption=f"{caption} Bold: the best of the row.",
        columns=(*columns("Dataset", setting_heading(groups), align="left"), *columns(*names)),
        rows=tuple(rows),
    )
