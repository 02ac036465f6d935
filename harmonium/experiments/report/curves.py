"""The forms that are lines: damping (Figure 2), completion, and learning curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonium.errors import DataError
from harmonium.experiments.report.comparison import best_of, score_words
from harmonium.experiments.report.pictures import Line, LinePanel, Lines
from harmonium.experiments.report.scores import Score, distinct
from harmonium.experiments.report.summary import Summary
from harmonium.experiments.report.tables import NOTHING, Cell, Column, Figure, Table
from harmonium.experiments.report.words import value_words


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
    scores = summary.scores
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
                _panel(summary, dataset, of_dataset, axes, curve)
                for dataset, of_dataset in by_axis(scores, "dataset").items()
            ),
        ),
    )
    return [_table(summary, scores, axes, curve), figure]


def by_axis(scores: Sequence[Score], axis: str) -> dict[Any, list[Score]]:
    """The scores by their place on an axis."""
    found: dict[Any, list[Score]] = {}
    for score in scores:
        found.setdefault(score.value(axis), []).append(score)
    return found


def by_words(scores: Sequence[Score], axes: tuple[str, ...]) -> dict[str, list[Score]]:
    """The scores by what they are on some axes, in words."""
    found: dict[str, list[Score]] = {}
    for score in scores:
        found.setdefault(score.words(axes), []).append(score)
    return found


def _panel(
    summary: Summary, dataset: str, scores: list[Score], axes: tuple[str, ...], curve: Curve
) -> LinePanel:
    lines = []
    for name, of_line in by_words(scores, axes).items():
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


def _table(summary: Summary, scores: list[Score], axes: tuple[str, ...], curve: Curve) -> Table:
    places = sorted(
        distinct(scores, curve.axis), key=lambda v: (curve.axis == "clips" and not v, v)
    )
    rows = [
        (dataset, name, {s.value(curve.axis): s for s in of_line})
        for dataset, of_dataset in by_axis(scores, "dataset").items()
        for name, of_line in by_words(of_dataset, axes).items()
    ]
    best_down = _best_of_datasets(rows, places) if axes else {}
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
            *(Column(_head(curve, place)) for place in places),
        ),
        rows=tuple(
            (
                Cell(dataset),
                Cell(name),
                *(
                    Cell(
                        score_words(found[place]) if place in found else NOTHING,
                        strong=name in best_down.get((dataset, place), ()),
                    )
                    for place in places
                ),
            )
            for dataset, name, found in rows
        ),
        groups=tuple(dataset for dataset, _, _ in rows),
    )


def _best_of_datasets(
    rows: list[tuple[str, str, dict[Any, Score]]], places: list[Any]
) -> dict[tuple[str, Any], set[str]]:
    """(dataset, column) -> the lines that are best there."""
    return {
        (dataset, place): best_of({n: f[place] for d, n, f in rows if d == dataset and place in f})
        for dataset in dict.fromkeys(d for d, _, _ in rows)
        for place in places
    }


def _head(curve: Curve, place: Any) -> str:
    text = value_words(curve.axis, place)
    if curve.axis == "known":
        return f"{text} known"
    return f"{text} clips" if curve.axis == "clips" else f"β = {text}"
