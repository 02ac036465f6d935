"""Parts that several forms share: cells with scores, and tables of differences."""

import itertools
from collections.abc import Hashable, Mapping
from typing import TypeVar

from harmonium.experiments.report.items import Bold, Record, Table
from harmonium.experiments.report.numbers import (
    CORRECTIONS,
    Comparison,
    Score,
    Summary,
    compare,
    grouped,
)
from harmonium.experiments.report.wording import NOTHING, format_difference, format_percent

Key = TypeVar("Key", bound=Hashable)

BY_CHANCE = "Without any difference, about 2.5 % of the tags count as better, and 2.5 % as worse."
_DIFFERENCES_CAPTION = (
    "Difference: of the means, in percentage points, ± its paired standard error "
    "over test folds; p: two-sided paired t-test over folds, which share training clips, so p is "
    "somewhat too small. Better and worse: tags whose own test is significant at 95 %. "
    f"{BY_CHANCE} Holm and BH: counts after Holm's or Benjamini and Hochberg's correction for the "
    "number of tags."
)


def score_cells(scores: Mapping[Key, Score | None]) -> dict[Key, str]:
    """Mean and standard error of each score, and how many folds if not all are finished.

    The best of two or more complete ones is bold, equals included.
    """
    means = {}
    for key, score in scores.items():
        if score is not None and score.complete:
            mean = format_percent(score.mean)
            if mean != NOTHING:
                means[key] = mean
    best = max(means.values(), key=float) if len(means) > 1 else None

    cells = {}
    for key, score in scores.items():
        if score is None:
            cells[key] = NOTHING
            continue
        text = format_percent(score.mean, score.error)
        if not score.complete:
            text += f" ({score.n_finished}/{len(score.finished)})"
        is_best = best is not None and means.get(key) == best
        cells[key] = Bold(text) if is_best else text
    return cells


def comparisons(summary: Summary, axis: str, *, every_pair: bool = False) -> list[Comparison]:
    """Scores that differ on one axis only: each less the first, or ``every_pair``."""
    common = summary.varying("dataset", axis)
    results = []
    for scores in grouped(summary.scores, "dataset", *common).values():
        if every_pair:
            pairs = list(itertools.combinations(scores, 2))
        else:
            pairs = [(score, scores[0]) for score in scores[1:]]
        for first, second in pairs:
            comparison = compare(first, second, (axis,), common)
            if comparison is not None:
                results.append(comparison)
    return results


def difference_table(
    pairs: list[Comparison],
    name: str = "differences",
    title: str = "Differences on the same folds",
) -> Table:
    """A row per comparison."""
    caption = _DIFFERENCES_CAPTION
    has_common = any(pair.common != NOTHING for pair in pairs)
    if has_common:
        caption = f"Both: what the two have in common. {caption}"
    records = []
    for pair in pairs:
        record: Record = {
            "Dataset": pair.dataset,
            "Score": pair.first,
            "Less": pair.second,
        }
        if has_common:
            record["Both"] = pair.common
        record["Difference"] = format_difference(pair.difference, pair.error)
        record["p"] = _format_p(pair.p)
        record["Tags"] = str(pair.n_tested)
        record["Folds"] = str(pair.folds.sum())
        for correction, ending in CORRECTIONS.items():
            test = pair.tests[correction]
            record[f"Better{ending}"] = str(test.n_better)
            record[f"Worse{ending}"] = str(test.n_worse)
        records.append(record)
    n_corrected = len(CORRECTIONS) - 1
    return Table(
        name=name,
        title=title,
        caption=caption,
        records=records,
        details=2 * n_corrected,
    )


def _format_p(p: float) -> str:
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}".replace("nan", NOTHING)
