"""The forms that show mean AUCs along an axis, as a table and a figure of the same numbers.

As lines: damping (Figure 2), completion, learning curves. As groups of bars: approximations
(Figure 3), feature groups.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.report.comparison import best_of, format_score, score_cells
from harmonium.experiments.report.numbers import Score, Summary, distinct
from harmonium.experiments.report.pictures import (
    BarPanel,
    Bars,
    BarSeries,
    Line,
    LinePanel,
    Lines,
)
from harmonium.experiments.report.tables import (
    Cell,
    Column,
    Figure,
    Table,
    first_cells,
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
    caption: str
    scale: float = 1.0
    log_x: bool = False
    band: bool = True


DAMPING = Curve(
    axis="damping",
    title="Mean AUC against the damping of loopy belief propagation",
    x_label="Damping factor β",
    caption=(
        "Mean AUC over tags and test folds of models trained with loopy belief propagation, "
        "against the damping of its messages (as in the paper's Figure 2)."
    ),
    band=False,
)
COMPLETION = Curve(
    axis="known",
    title="Mean AUC of the unknown tags against the share of known ones",
    x_label="Tags of the clip that the model is told (%)",
    y_label="Mean AUC of the other tags (%)",
    caption=(
        "A random share of each test clip's tags is told to the model, which predicts the others; "
        "the AUC is that of the tags not told. A model that cannot be told tags predicts from the "
        "audio alone."
    ),
    scale=100.0,
)
LEARNING = Curve(
    axis="clips",
    title="Mean AUC against the number of training clips",
    x_label="Training clips (logarithmic scale)",
    caption=(
        "Mean AUC over tags and test folds when so many clips are trained on; “all” are the clips "
        "of all folds but two."
    ),
    log_x=True,
)
_ERRORS = {True: "The band is", False: "The bars are"}


def curves(summary: Summary, curve: Curve) -> list[Table | Figure]:
    """A figure with a line per model, and the same numbers as a table."""
    if curve.axis not in ("known", "clips") and curve.axis not in summary.recipe.vary.settings:
        raise DataError(
            f"A recipe of the form '{summary.recipe.form}' needs {curve.axis} = [...] under [vary]."
        )
    axes = summary.varying("dataset", curve.axis)
    caption = f"{curve.caption} {_ERRORS[curve.band]} one standard error over folds up and down."
    figure = Figure(
        name=summary.recipe.form,
        title=curve.title,
        caption=caption,
        picture=Lines(
            title=curve.title,
            x_label=curve.x_label,
            y_label=curve.y_label,
            log_x=curve.log_x,
            band=curve.band,
            panels=tuple(
                _line_panel(summary, dataset, scores, axes, curve)
                for dataset, scores in _by_axis(summary.scores, "dataset").items()
            ),
        ),
    )
    return [_curve_table(summary, axes, curve), figure]


def _by_axis(scores: Sequence[Score], axis: str) -> dict[Any, list[Score]]:
    """The scores by their place on an axis."""
    return _grouped([(score.value(axis), score) for score in scores])


def _by_name(scores: Sequence[Score], axes: tuple[str, ...]) -> dict[Any, list[Score]]:
    """The scores by what they are on some axes, in words."""
    return _grouped([(score.name(axes), score) for score in scores])


def _grouped(scores: Sequence[tuple[Hashable, Score]]) -> dict[Any, list[Score]]:
    found: dict[Any, list[Score]] = {}
    for key, score in scores:
        found.setdefault(key, []).append(score)
    return found


def _line_panel(
    summary: Summary, dataset: str, scores: list[Score], axes: tuple[str, ...], curve: Curve
) -> LinePanel:
    lines = []
    for name, of_line in _by_name(scores, axes).items():
        points = sorted(
            (_position(summary, s, curve), 100 * s.mean, 100 * s.error) for s in of_line
        )
        there = [point for point in points if not np.isnan(point[0])]
        if there:
            x, y, errors = zip(*there, strict=True)
            lines.append(Line(name, x, y, errors))
    return LinePanel(dataset, tuple(lines))


def _position(summary: Summary, score: Score, curve: Curve) -> float:
    """Where a score lies on the x axis; all clips are as many as were trained on."""
    value = score.value(curve.axis)
    if curve.axis != "clips" or value:
        return float(value) * curve.scale
    measured = next(arm.cost.clips for arm in summary.arms if arm.arm is score.arm)
    return float(np.median(measured)) if len(measured) else float("nan")


def _curve_table(summary: Summary, axes: tuple[str, ...], curve: Curve) -> Table:
    places = sorted(  # 0 clips are all of them, and come last
        distinct(summary.scores, curve.axis), key=lambda v: (curve.axis == "clips" and not v, v)
    )
    rows = []
    for dataset, scores in _by_axis(summary.scores, "dataset").items():
        lines = {
            name: {score.value(curve.axis): score for score in of_line}
            for name, of_line in _by_name(scores, axes).items()
        }
        best = {
            place: best_of({n: line[place] for n, line in lines.items() if place in line})
            for place in places
        }
        rows += [
            (
                *text_row(dataset, name),
                *(
                    Cell(format_score(line.get(place)), strong=bool(axes) and name in best[place])
                    for place in places
                ),
            )
            for name, line in lines.items()
        ]
    return Table(
        name=f"{summary.recipe.form}-auc",
        title=curve.title,
        caption=(
            f"{curve.caption} In percent, ± the standard error over folds."
            + (" Bold: the best of the dataset in the column." if axes else "")
        ),
        columns=(
            Column("Dataset", "left"),
            Column("Model", "left"),
            *(Column(_place_heading(curve, place)) for place in places),
        ),
        rows=tuple(rows),
        groups=first_cells(rows),
    )


def _place_heading(curve: Curve, place: Any) -> str:
    text = format_value(curve.axis, place)
    if curve.axis == "known":
        return f"{text} known"
    return f"{text} clips" if curve.axis == "clips" else f"β = {text}"


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


def grouped_bars(summary: Summary, grouping: Grouping) -> list[Table | Figure]:
    """A table and a figure of the same numbers."""
    groups = next((axis for axis in grouping.groups if axis in summary.varying()), "model")
    axes = (*summary.varying("dataset", groups, grouping.axis), grouping.axis)
    caption = (
        f"Mean AUC over tags and test folds in percent, ± its standard error over folds. "
        f"{grouping.caption}"
    )
    figure = Figure(
        name=summary.recipe.form,
        title=grouping.title,
        caption=caption,
        picture=Bars(
            title=grouping.title,
            group_label=setting_heading(groups),
            value_label="Mean AUC (%)",
            panels=tuple(
                _bar_panel(dataset, scores, groups, axes)
                for dataset, scores in _by_axis(summary.scores, "dataset").items()
            ),
        ),
    )
    return [_grouped_table(summary, grouping, groups, axes, caption), figure]


def _bar_panel(dataset: str, scores: list[Score], groups: str, axes: tuple[str, ...]) -> BarPanel:
    by_group = distinct(scores, groups)
    series = []
    for name, of_series in _by_name(scores, axes).items():
        found = {score.value(groups): score for score in of_series}
        there = [found.get(group) for group in by_group]
        series.append(
            BarSeries(
                name=name,
                values=tuple(100 * s.mean if s else float("nan") for s in there),
                errors=tuple(100 * s.error if s else float("nan") for s in there),
            )
        )
    return BarPanel(dataset, tuple(format_value(groups, g) for g in by_group), tuple(series))


def _grouped_table(
    summary: Summary, grouping: Grouping, groups: str, axes: tuple[str, ...], caption: str
) -> Table:
    names = list(_by_name(summary.scores, axes))
    rows = [
        (
            *text_row(dataset, format_value(groups, group)),
            *score_cells({score.name(axes): score for score in of_group}, names),
        )
        for dataset, of_dataset in _by_axis(summary.scores, "dataset").items()
        for group, of_group in _by_axis(of_dataset, groups).items()
    ]
    return Table(
        name=f"{summary.recipe.form}-auc",
        title=grouping.title,
        caption=f"{caption} Bold: the best of the row.",
        columns=(
            Column("Dataset", "left"),
            Column(setting_heading(groups), "left"),
            *(Column(name) for name in names),
        ),
        rows=tuple(rows),
        groups=first_cells(rows),
    )
