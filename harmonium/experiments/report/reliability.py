"""Whether probabilities mean what they say: a table and a diagram, for any form of report."""

import numpy as np

from harmonium.evaluation import Reliability
from harmonium.experiments.report.numbers import Score, Summary, by_dataset
from harmonium.experiments.report.tables import (
    Panel,
    Picture,
    Series,
    Table,
    columns,
    text_row,
)

FEWEST = 30
"""Labels that a point of the diagram needs."""


def reliability_items(summary: Summary) -> list[Table | Picture]:
    """The table and the diagram; nothing where the results have no probabilities."""
    scores = [score for score in summary.scores if score.reliability]
    if not scores:
        return []
    axes = ("model", *summary.varying("dataset", "model"))
    rows = (
        text_row(
            score.value("dataset"),
            score.name(axes),
            *(f"{score.reliability[name].error:.4f}" for name in ("plain", "corrected")),
        )
        for score in scores
    )
    table = Table(
        name="calibration",
        title="Calibration error",
        caption=(
            "Of all probabilities of the test folds, in bins: the mean difference between what was "
            "said and how often it was true; 0 is best. Corrected: by what is true of the "
            "validation clips, where the model does so."
        ),
        columns=(
            *columns("Dataset", "Model", align="left"),
            *columns("As the model says", "Corrected"),
        ),
        rows=tuple(rows),
    )
    alone = [score for score in scores if not score.way.known]
    if not alone:
        return [table]
    picture = Picture(
        name="reliability",
        title="How often it was true, by how likely it was said to be",
        caption=(
            "All tags of the test folds, with nothing told. On the line “as said” probabilities "
            f"mean what they say. Points of fewer than {FEWEST} labels are left out."
        ),
        kind="lines",
        x_label="Probability, %",
        y_label="Share that was true, %",
        panels=tuple(
            Panel(dataset, tuple(_lines(own, axes))) for dataset, own in by_dataset(alone).items()
        ),
    )
    return [table, picture]


def _lines(scores: list[Score], axes: tuple[str, ...]) -> list[Series]:
    lines = [Series("as said", (0.0, 100.0), (0.0, 0.0), (0.0, 100.0))]
    for score in scores:
        name, (plain, corrected) = score.name(axes), score.reliability.values()
        lines.append(_line(name, corrected))
        if plain.error != corrected.error:
            lines.append(_line(f"{name}, not corrected", plain))
    return lines


def _line(name: str, found: Reliability) -> Series:
    shown = found.n >= FEWEST
    x, y = (100 * part[shown] / found.n[shown] for part in (found.scores, found.positives))
    errors = np.sqrt(y * (100 - y) / found.n[shown])
    return Series(name, tuple(y), tuple(errors), tuple(x))
