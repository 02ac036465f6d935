"""The form of completion: what a model makes of the tags it is told, by tag and within a clip."""

import dataclasses

import numpy as np

from harmonium.experiments.report.averages import COMPLETION, by_name, curve_table, curves, places
from harmonium.experiments.report.numbers import Score, Summary, by_dataset, compare
from harmonium.experiments.report.tables import (
    NOTHING,
    Cell,
    Picture,
    Table,
    columns,
    format_difference,
    format_value,
    text_row,
)

_CLIPS = (
    "Clips count alike; with one true tag known, a clip counts with the mean over its true tags, "
    "each told in turn. A clip without a true tag or without a false one among those asked for is "
    "left out."
)
WITHIN_CLIPS = {
    "clip_auc": dataclasses.replace(
        COMPLETION,
        table="clip-auc",
        title="AUC within a clip",
        caption=f"How often a true tag of a clip is ranked before a false one, of the tags not "
        f"told. {_CLIPS}",
    ),
    "clip_precision_at_3": dataclasses.replace(
        COMPLETION,
        table="clip-precision",
        title="Precision at 3 within a clip",
        caption=f"How many of the three tags ranked first, of those not told, are true. {_CLIPS}",
    ),
}
"""Measure -> its words."""


def completion(summary: Summary) -> list[Table | Picture]:
    """The AUC by tag as curves; then, by each measure within clips, a table and the differences."""
    items = curves(summary, COMPLETION)
    axes = summary.varying("dataset", COMPLETION.axis)
    for measure, curve in WITHIN_CLIPS.items():
        of_clips = summary.within_clips(measure)
        if any(not np.isnan(score.mean) for score in of_clips.scores):
            items.append(curve_table(of_clips, axes, curve))
            items += _differences(of_clips, axes, f"{curve.table}-differences", curve.title)
    return items


def _differences(summary: Summary, axes: tuple[str, ...], name: str, title: str) -> list[Table]:
    """Every model less the first, with a column for each amount of tags told; nothing of one."""
    told = places(summary, COMPLETION)
    rows = []
    for dataset, scores in by_dataset(summary.scores).items():
        lines = {
            of: {score.way.known: score for score in line}
            for of, line in by_name(scores, axes).items()
        }
        first, *others = lines
        for other in others:
            cells = [_cell(lines[other].get(much), lines[first].get(much)) for much in told]
            rows.append(text_row(dataset, other, first, *cells))
    if not rows:
        return []
    table = Table(
        name=f"{summary.recipe.form}-{name}",
        title=f"{title}: differences on the same folds",
        caption=(
            "In percentage points, ± the standard error over test folds of the paired difference. "
            "Bold: p below 0.05 in a two-sided paired t-test over folds. The folds share training "
            "clips, so p is somewhat too small."
        ),
        columns=(
            *columns("Dataset", "Model", "Less", align="left"),
            *columns(*(COMPLETION.heading.format(format_value("known", much)) for much in told)),
        ),
        rows=tuple(rows),
    )
    return [table]


def _cell(first: Score | None, second: Score | None) -> Cell:
    pair = compare(first, second)
    if pair is None:
        return Cell(NOTHING)
    return Cell(format_difference(pair.difference, pair.error), strong=pair.p < 0.05)
