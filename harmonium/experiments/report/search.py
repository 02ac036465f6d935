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
    searched = [arm for arm in summary.arms if arm.n_finished and arm.stages]
    return [found, *(_figure(arm, summary) for arm in searched), _tried(summary, searched)]


def _figure(arm: ArmSummary, summary: Summary) -> Figure:
    model = arm_words(arm, summary)
    title = f"{arm.arm.dataset.label}, {model}: validation AUC by setting"
    many = len(arm.stages) > 1
    return Figure(
        name=f"search-{_slug(arm.arm.dataset.label)}-{_slug(model)}",
        title=title,
        caption=(
            "Mean AUC over tags on the validation folds of the search, and over "
            f"{arm.n_finished} test folds, with its standard error; beside it, on how many test "
            "folds the setting was chosen."
            + (" Each stage keeps what the one before has chosen." if many else "")
        ),
        picture=Dots(
            title=title,
            value_label="Mean validation AUC (%)",
            word_label="chosen",
            panels=tuple(
                _panel(f"Stage {i + 1}" if many else "", stage)
                for i, stage in enumerate(arm.stages)
            ),
        ),
    )


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
