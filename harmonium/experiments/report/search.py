"""The form of Table 1: what the search found, and how much each setting matters."""

import re

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.report.pictures import DotPanel, Dots
from harmonium.experiments.report.scores import mean_known, standard_error
from harmonium.experiments.report.searching import Stage
from harmonium.experiments.report.settings import arm_words, settings_table
from harmonium.experiments.report.summary import ArmSummary, Summary
from harmonium.experiments.report.tables import Cell, Column, Figure, Table, first_cells
from harmonium.experiments.report.words import percent, setting_words


def search(summary: Summary) -> list[Table | Figure]:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    found = settings_table(summary)
    if found is None:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    searched: dict[str, list[ArmSummary]] = {}
    for arm in summary.arms:
        if arm.n_finished and arm.stages:
            searched.setdefault(arm.arm.dataset.label, []).append(arm)
    figures = [_figure(dataset, arms, summary) for dataset, arms in searched.items()]
    return [found, *figures, _tried(summary, [arm for arms in searched.values() for arm in arms])]


def _figure(dataset: str, arms: list[ArmSummary], summary: Summary) -> Figure:
    title = f"{dataset}: validation AUC by setting"
    many = any(len(arm.stages) > 1 for arm in arms)
    return Figure(
        name=f"search-{_slug(dataset)}",
        title=title,
        caption=(
            "Mean AUC over tags on the validation folds of the search, and over test folds, with "
            "its standard error; beside it, on how many test folds the setting was chosen."
            + (" Each stage keeps what the one before has chosen." if many else "")
        ),
        picture=Dots(
            title=title,
            value_label="Mean validation AUC (%)",
            word_label="chosen",
            panels=tuple(
                _panel(_stage_title(arm, number, summary), stage)
                for arm in arms
                for number, stage in enumerate(arm.stages, start=1)
            ),
        ),
    )


def _stage_title(arm: ArmSummary, number: int, summary: Summary) -> str:
    words = arm_words(arm, summary)
    return f"{words}, stage {number}" if len(arm.stages) > 1 else words


def _panel(title: str, stage: Stage) -> DotPanel:
    columns = stage.values.T
    return DotPanel(
        title=title,
        choices=tuple(_point_words(point) for point in stage.points),
        values=tuple(100 * float(column.mean()) for column in columns),
        errors=tuple(100 * standard_error(column) for column in columns),
        words=tuple(
            f"{times}×" if (times := stage.times_chosen(i)) else ""
            for i in range(len(stage.points))
        ),
    )


def _tried(summary: Summary, arms: list[ArmSummary]) -> Table:
    rows = []
    for arm in arms:
        for number, stage in enumerate(arm.stages, start=1):
            means = np.array([mean_known(column) for column in stage.values.T])
            for i, point in enumerate(stage.points):
                text = percent(float(means[i]), standard_error(stage.values[:, i]), digits=2)
                cells = (
                    Cell(arm.arm.dataset.label),
                    Cell(arm_words(arm, summary)),
                    Cell(str(number)),
                    Cell(_point_words(point)),
                    Cell(text, strong=bool(means[i] == means.max())),
                    Cell(str(stage.times_chosen(i))),
                )
                rows.append(cells)
    return Table(
        name="search-tried",
        title="Every setting tried",
        caption=(
            "Mean validation AUC in percent, ± its standard error over test folds; on how many "
            "test folds the setting was chosen. Bold: the best of its stage on average."
        ),
        columns=(
            Column("Dataset", "left"),
            Column("Model", "left"),
            Column("Stage", "centre"),
            Column("Setting", "left"),
            Column("Validation AUC"),
            Column("Chosen"),
        ),
        rows=tuple(rows),
        groups=first_cells(rows),
    )


def _point_words(point: dict[str, object]) -> str:
    return ", ".join(setting_words(key, value) for key, value in point.items())


def _slug(text: str) -> str:
    """A name for a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
