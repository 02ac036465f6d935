"""The forms that show mean AUCs along an axis: curves (Figure 2), or groups of bars (Figure 3)."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.recipe import ONE
from harmonium.experiments.report.cells import comparisons, difference_table, score_cells
from harmonium.experiments.report.items import PERCENT, Items, Panel, Picture, Point, Table
from harmonium.experiments.report.numbers import Score, Summary, measured
from harmonium.experiments.report.wording import format_value


@dataclass(frozen=True, kw_only=True)
class AxisForm:
    """A form that shows mean AUCs along an axis, as a table and a figure of the same numbers."""

    axis: str
    kind: Literal["lines", "bars"]
    title: str
    note: str = ""
    heading: str = "{}"  # the heading of a column of the table; {} is the value on the axis
    x_label: str = "Mean AUC (%)"
    table: str = "auc"  # the end of the table's name


AXIS_FORMS = {
    "damping": AxisForm(
        axis="damping",
        kind="lines",
        title="Mean AUC by the damping of loopy belief propagation (as in the paper's Figure 2)",
        heading="β = {}",
        x_label="Damping factor β",
    ),
    "completion": AxisForm(
        axis="known",
        kind="lines",
        title="Mean AUC of the unknown tags by what is known of the others",
        note=" The model is given a random share of each test clip's tags, or each of the clip's "
        "true tags in turn, if it has two or more; the AUC is over the tags not given. A model "
        "that takes no tags predicts from the audio alone.",
        heading="{} known",
        x_label="Known tags of the clip (%)",
    ),
    "learning-curve": AxisForm(
        axis="clips",
        kind="lines",
        title="Mean AUC against the number of training clips",
        note=" “All” are the clips of all folds but two.",
        heading="{} clips",
        x_label="Training clips (logarithmic scale)",
    ),
    "approximations": AxisForm(
        axis="inference",
        kind="bars",
        title="Mean AUC by the approximations of training and testing (as in the paper's Figure 3)",
        note=" CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy "
        "belief propagation.",
        heading="tested with {}",
    ),
    "feature-groups": AxisForm(
        axis="features",
        kind="bars",
        title="Mean AUC by the features that a model is given",
    ),
}

_CLIPS_NOTE = (
    " Clips count alike; with one true tag known, a clip counts with the mean over its true tags. "
    "A clip without a true tag or without a false one among the others is left out."
)
WITHIN_CLIPS = {
    "clip_auc": AxisForm(
        axis="known",
        kind="lines",
        title="AUC within a clip",
        note=f" How often a true tag of a clip is ranked before a false one.{_CLIPS_NOTE}",
        heading="{} known",
        table="clip-auc",
    ),
    "clip_precision_at_3": AxisForm(
        axis="known",
        kind="lines",
        title="Precision at 3 within a clip",
        note=f" How many of the three tags ranked first are true.{_CLIPS_NOTE}",
        heading="{} known",
        table="clip-precision",
    ),
}
"""The measures within clips, each with its form. They are shown as tables only."""


def along_axis(summary: Summary) -> Items:
    """A table, differences and a figure; for known tags, tables of the measures within clips."""
    form = AXIS_FORMS[summary.recipe.form]
    if form.axis == "damping" and form.axis not in summary.recipe.vary:
        raise DataError("A recipe of the form 'damping' needs damping = [...] under [vary].")
    grid = _grid(summary, form)
    items: Items = [
        _axis_table(summary, form, grid),
        _axis_differences(summary, form),
        _axis_picture(summary, form, grid),
    ]
    if form.axis == "known":
        for measure, form_of_measure in WITHIN_CLIPS.items():
            within = summary.within_clips(measure)
            if any(not np.isnan(score.mean) for score in within.scores):
                grid = _grid(within, form_of_measure)
                items.append(_axis_table(within, form_of_measure, grid))
                items.append(_axis_differences(within, form_of_measure))
    return items


Line = dict[str, Score]
"""Place on the axis, as the heading of its column -> score."""


@dataclass(frozen=True)
class _Grid:
    """The scores by dataset, by name of a row and by place on the axis."""

    lines: dict[str, dict[str, Line]]  # dataset -> name of a row -> its scores
    positions: dict[str, float]  # place -> where it lies on the x axis, ascending

    @property
    def places(self) -> list[str]:
        return list(self.positions)


def _grid(summary: Summary, form: AxisForm) -> _Grid:
    row_axes = summary.varying("dataset", form.axis)
    positions: dict[str, float] = {}
    lines: dict[str, dict[str, Line]] = {}
    for score in summary.scores:
        place = form.heading.format(format_value(form.axis, score.axes[form.axis]))
        lines_of_dataset = lines.setdefault(score.axes["dataset"], {})
        lines_of_dataset.setdefault(score.name(row_axes), {})[place] = score
        positions[place] = max(_position(form, score), positions.get(place, 0.0))
    ascending = sorted(positions, key=lambda place: positions[place])
    return _Grid(lines, {place: positions[place] for place in ascending})


def _position(form: AxisForm, score: Score) -> float:
    """Where a score lies on the x axis: words at 1, all clips at the number trained on.

    One known tag has no place: it comes after no tag, just above 0.
    """
    value = score.axes[form.axis]
    if form.kind == "bars":
        return 0.0
    if form.axis == "known":
        return 100.0 * (1e-9 if value == ONE else value)
    if form.axis == "clips" and not value:
        clips = measured(score.final_runs, "clips")
        return float(np.median(clips)) if len(clips) else math.inf
    return float(value)


def _axis_table(summary: Summary, form: AxisForm, grid: _Grid) -> Table:
    """A row per dataset and model, a column per place on the axis."""
    records = []
    for dataset, lines in grid.lines.items():
        cells = _cells_of_dataset(form, lines, grid.places)
        for name in lines:
            record = {"Dataset": dataset, "Model": name}
            record |= {place: cells[name, place] for place in grid.places}
            records.append(record)
    compared = "row" if form.kind == "bars" else "dataset in the column"
    return Table(
        name=f"{summary.recipe.form}-{form.table}",
        title=form.title,
        caption=f"{PERCENT} Bold: the best of the {compared}.{form.note}",
        records=records,
    )


def _cells_of_dataset(
    form: AxisForm, lines: dict[str, Line], places: list[str]
) -> dict[tuple[str, str], str]:
    """The cell of each row and place; bars are compared along a row, lines down a column."""
    if form.kind == "bars":
        groups = [[(name, place) for place in places] for name in lines]
    else:
        groups = [[(name, place) for name in lines] for place in places]
    cells: dict[tuple[str, str], str] = {}
    for group in groups:
        cells |= score_cells({(name, place): lines[name].get(place) for name, place in group})
    return cells


def _axis_differences(summary: Summary, form: AxisForm) -> Table:
    """What is compared on every axis that varies; more known tags or clips are not, with fewer."""
    axes = summary.varying("dataset")
    if form.axis in ("known", "clips"):
        axes = summary.varying("dataset", form.axis)
    pairs = [pair for axis in axes for pair in comparisons(summary, axis)]
    if form.table == "auc":
        return difference_table(pairs)
    return difference_table(
        pairs,
        name=f"{summary.recipe.form}-{form.table}-differences",
        title=f"{form.title}: differences on the same folds",
    )


def _axis_picture(summary: Summary, form: AxisForm, grid: _Grid) -> Picture:
    """A panel per dataset; a row of the table is a line or a group of bars."""
    panels: dict[str, Panel] = {}
    for dataset, lines in grid.lines.items():
        if form.kind == "bars":
            panels[dataset] = _panel_of_bars(lines, grid)
        else:
            panels[dataset] = _panel_of_lines(form, lines, grid)
    return Picture(
        name=summary.recipe.form,
        title=form.title,
        caption=f"{PERCENT}{form.note}",
        kind=form.kind,
        panels=panels,
        x_label=form.x_label,
        log_x=form.axis == "clips",
    )


def _panel_of_bars(lines: dict[str, Line], grid: _Grid) -> Panel:
    panel: Panel = {place: [] for place in grid.places}
    for name, line in lines.items():
        for place in grid.places:
            score = line.get(place)
            point = Point(name, math.nan, math.nan)
            if score is not None:
                point = Point(name, 100 * score.mean, 100 * score.error)
            panel[place].append(point)
    return panel


def _panel_of_lines(form: AxisForm, lines: dict[str, Line], grid: _Grid) -> Panel:
    """The lines; one known tag, and all clips of an unknown number, have no place on the axis."""
    panel: Panel = {}
    for name, line in lines.items():
        for place, position in grid.positions.items():
            score = line.get(place)
            if score is None or score.axes[form.axis] == ONE or math.isinf(position):
                continue
            point = Point(_position(form, score), 100 * score.mean, 100 * score.error)
            panel.setdefault(name, []).append(point)
    return panel
