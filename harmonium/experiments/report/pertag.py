"""The AUC of every tag, as CSV for programs."""

import csv
import io
import math
from collections.abc import Iterable

from harmonium.experiments.report.scores import Score
from harmonium.experiments.report.significance import duel
from harmonium.experiments.report.words import value_words


def per_tag_csv(rows: Iterable[tuple[str, bool, dict[str, Score]]], columns: list[str]) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tested = [f"p {columns[0]} against {name}" for name in columns[1:]]
    writer.writerow(["dataset", "trained on", "tag", *columns, *tested])
    for dataset, smoothing, scores in rows:
        writer.writerows(_lines(dataset, smoothing, scores, columns))
    return text.getvalue()


def _lines(
    dataset: str, smoothing: bool, scores: dict[str, Score], columns: list[str]
) -> Iterable[list[str]]:
    tags = next(iter(scores.values())).tags
    means = {name: score.by_tag for name, score in scores.items()}
    fights = {name: _p_values(scores, columns[0], name) for name in columns[1:]}
    for i, tag in enumerate(tags):
        yield [
            dataset,
            value_words("smoothing", smoothing),
            tag,
            *(_number(means[name][i]) if name in means else "" for name in columns),
            *(_number(p[i]) if (p := fights[name]) is not None else "" for name in columns[1:]),
        ]


def _p_values(scores: dict[str, Score], first: str, second: str) -> list[float] | None:
    if first not in scores or second not in scores:
        return None
    fight = duel(scores[first], scores[second])
    return None if fight is None else fight.tests["none"].p.tolist()


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
