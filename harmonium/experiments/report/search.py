"""The form of Table 1: what the search found, and how much each setting matters."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.report import paper
from harmonium.experiments.report.numbers import (
    ArmSummary,
    StageSummary,
    Summary,
    grouped,
    mean_known,
    standard_error,
)
from harmonium.experiments.report.tables import (
    NOTHING,
    Cell,
    Panel,
    Picture,
    Series,
    Table,
    columns,
    format_difference,
    format_percent,
    format_setting,
    format_value,
    join_names,
    setting_heading,
    text_row,
)


def search(summary: Summary) -> list[Table | Picture]:
    """Table 1; then the validation AUC of every setting tried, as a figure and as a table."""
    found = settings_table(summary)
    if found is None:
        raise DataError(
            "A recipe of the form 'search' needs a model with search = {...} of several values."
        )
    searched = [arm for arm in summary.arms if arm.n_finished and arm.stages]
    figures = [
        _figure(dataset, arms, summary)
        for dataset, arms in grouped(searched, lambda arm: arm.arm.dataset.label).items()
    ]
    return [found, *figures, _tried_table(summary, searched)]


def settings_table(summary: Summary) -> Table | None:
    """A row per arm: what was chosen on how many test folds; None where nothing was searched."""
    finished = [arm for arm in summary.arms if arm.n_finished]
    points = [stage.points[0] for arm in finished for stage in arm.stages]
    keys = list(dict.fromkeys(key for point in points for key in point))
    if not keys:
        return None
    rows: list[tuple[Cell, ...]] = []
    seen: set[tuple[str, str]] = set()
    for arm in finished:
        rows.append(
            text_row(
                arm.arm.dataset.label,
                summary.arm_name(arm.arm),
                *(format_choices(key, arm.chosen) for key in keys),
                format_percent(float(mean_known(arm.valid_aucs)), standard_error(arm.valid_aucs)),
                format_percent(arm.scores[0].mean, arm.scores[0].error),
            )
        )
        place = (arm.arm.dataset.name, arm.arm.model.name)
        printed = paper.settings(*place)
        if printed and place not in seen:
            values = [
                format_value(key, printed[key]) if key in printed else NOTHING for key in keys
            ]
            texts = (arm.arm.dataset.label, f"{arm.arm.model.name}, paper", *values)
            rows.append(text_row(*texts, NOTHING, NOTHING, faint=True))
        seen.add(place)
    return Table(
        name="settings",
        title="Settings found by the search (as in the paper's Table 1)",
        caption=_settings_caption(summary, any(cell.faint for row in rows for cell in row)),
        columns=(
            *columns("Dataset", "Model", *map(setting_heading, keys), align="left"),
            *columns("Validation AUC", "Test AUC"),
        ),
        rows=tuple(rows),
    )


def _settings_caption(summary: Summary, with_paper: bool) -> str:
    folds, known = summary.recipe.search_folds, summary.recipe.search_known
    told = join_names([f"{format_value('known', much)}" for much in known])
    caption = (
        "Chosen for each test fold by the mean AUC on "
        + ("a validation fold" if folds == 1 else f"{folds} validation folds")
        + f", with {told} of the tags known" * (known != (0.0,))
        + "; the test fold has no part in it. ×n: on n of the test folds; without it, on all. AUCs "
        "are of the chosen settings, in percent, ± the standard error over folds."
    )
    return caption + (f" Rows marked “paper”: {paper.CITATION}, Table 1." if with_paper else "")


def format_choices(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(format_value(key, settings[key]) for settings in chosen if key in settings)
    if not counts:
        return NOTHING
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    return ", ".join(f"{value}\u00a0×{times}" for value, times in counts.most_common())


def _figure(dataset: str, arms: list[ArmSummary], summary: Summary) -> Picture:
    many = any(len(arm.stages) > 1 for arm in arms)
    return Picture(
        name="search-" + re.sub(r"[^a-z0-9]+", "-", dataset.lower()).strip("-"),
        title=f"{dataset}: validation AUC by setting",
        caption=(
            "Mean AUC over tags on the validation folds of the search, and over test folds, with "
            "its standard error; beside it, on how many test folds the setting was chosen."
            + (" Each stage keeps what the one before has chosen." if many else "")
        ),
        kind="dots",
        x_label="Mean validation AUC (%)",
        word_label="chosen",
        panels=tuple(
            _panel(summary.arm_name(arm.arm), f", stage {number}" * (len(arm.stages) > 1), stage)
            for arm in arms
            for number, stage in enumerate(arm.stages, start=1)
        ),
    )


def _panel(name: str, which: str, stage: StageSummary) -> Panel:
    points = stage.valid_aucs.T
    values = tuple(100 * float(aucs.mean()) for aucs in points)
    errors = tuple(100 * standard_error(aucs) for aucs in points)
    times = [stage.times_chosen(i) for i in range(len(points))]
    return Panel(
        title=f"{name}{which}",
        series=(Series("", values, errors),),
        groups=tuple(_format_point(point) for point in stage.points),
        words=tuple(f"{n}×" if n else "" for n in times),
    )


def _tried_table(summary: Summary, arms: list[ArmSummary]) -> Table:
    rows = []
    for arm in arms:
        for number, stage in enumerate(arm.stages, start=1):
            means = np.array([mean_known(column) for column in stage.valid_aucs.T])
            for i, point in enumerate(stage.points):
                error = standard_error(stage.valid_aucs[:, i])
                text = format_percent(float(means[i]), error, digits=2)
                place = (arm.arm.dataset.label, summary.arm_name(arm.arm), str(number))
                auc = Cell(text, strong=bool(means[i] == means.max()))
                less = stage.valid_aucs[:, i] - stage.valid_aucs[:, means.argmax()]
                difference = format_difference(float(less.mean()), standard_error(less))
                times = str(stage.times_chosen(i))
                rows.append(text_row(*place, _format_point(point), auc, difference, times))
    return Table(
        name="search-tried",
        title="Every setting tried",
        caption=(
            "Mean validation AUC in percent, ± its standard error over test folds; its difference "
            "to the best of the stage in percentage points, ± the paired standard error; on how "
            "many test folds the setting was chosen. Bold: the best of its stage on average."
        ),
        columns=(
            *columns("Dataset", "Model", align="left"),
            *columns("Stage", align="centre"),
            *columns("Setting", align="left"),
            *columns("Validation AUC", "Less the best", "Chosen"),
        ),
        rows=tuple(rows),
    )


def _format_point(point: dict[str, object]) -> str:
    return ", ".join(format_setting(key, value) for key, value in point.items())
