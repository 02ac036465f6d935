"""Differences between scores on the same folds: their mean, its paired error, and the tags."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from harmonium.experiments.report.numbers import (
    CORRECTIONS,
    PairedComparison,
    Score,
    Summary,
    compare,
    grouped,
)
from harmonium.experiments.report.tables import (
    NOTHING,
    Column,
    Table,
    columns,
    format_difference,
    format_p,
    text_row,
)

_HOW = (
    "Difference: of the mean AUCs over tags, in percentage points, ± its standard error over test "
    "folds, both models being tested on the same ones; p: two-sided paired t-test over folds. The "
    "folds share training clips, so p is somewhat too small. Better and worse: tags whose own test "
    "is significant at 95 %; if there were no difference on any tag, about 2.5 % of the tags would "
    "count as better and as many as worse. Holm and BH: counts that remain after correcting for "
    "the number of tags, by Holm's method and by Benjamini and Hochberg's."
)


def difference_table(
    pairs: Sequence[tuple[tuple[str, ...], PairedComparison]],
    *,
    name: str,
    title: str,
    caption: str,
    heads: tuple[Column, ...],
) -> list[Table]:
    """A row per comparison, each of which begins with its own texts; nothing without any."""
    if not pairs:
        return []
    counts = [f"{which}{end}" for end in CORRECTIONS.values() for which in ("Better", "Worse")]
    rows = []
    for texts, pair in pairs:
        tests = [pair.tests[correction] for correction in CORRECTIONS]
        found = [str(count) for test in tests for count in (test.n_better, test.n_worse)]
        difference = format_difference(pair.difference, pair.error)
        sizes = (str(pair.n_tested), str(pair.n_folds))
        rows.append(text_row(*texts, difference, format_p(pair.p), *sizes, *found))
    table = Table(
        name=name,
        title=title,
        caption=f"{caption} {_HOW}",
        columns=(
            *heads,
            *columns("Difference", "p", "Tags", "Folds", *counts[:2]),
            *columns(*counts[2:], detail=True),
        ),
        rows=tuple(rows),
    )
    return [table]


def differences_along(summary: Summary, axes: Iterable[str]) -> list[Table]:
    """Each score less the one that has the first value of an axis and is otherwise alike."""
    varying = summary.varying("dataset")
    pairs = []
    for axis in (axis for axis in axes if axis in varying):
        others = tuple(name for name in varying if name != axis)
        alike = grouped(summary.scores, partial(_places, axes=("dataset", *others)))
        for first, *rest in alike.values():
            for score in rest:
                pair = compare(score, first)
                if pair:
                    names = (score.name((axis,)), first.name((axis,)))
                    place = score.name(others) if others else NOTHING
                    pairs.append(((score.arm.dataset.label, *names, place), pair))
    return difference_table(
        pairs,
        name="differences",
        title="Differences on the same folds",
        caption="Otherwise: what the two have in common.",
        heads=columns("Dataset", "Score", "Less", "Otherwise", align="left"),
    )


def _places(score: Score, axes: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(score.value(axis) for axis in axes)
