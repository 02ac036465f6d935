"""The form ``comparison``: models by datasets, with and without smoothing.

As in the paper's Table 2 and Figures 4 and 5.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from harmonium.evaluation import friedman
from harmonium.experiments.recipe import BY_DEFAULT, RAW
from harmonium.experiments.report.cells import (
    BY_CHANCE,
    comparisons,
    difference_table,
    score_cells,
)
from harmonium.experiments.report.items import PERCENT, Faint, Items, Panel, Picture, Point, Table
from harmonium.experiments.report.numbers import (
    Comparison,
    Score,
    Summary,
    compare,
    grouped,
    mean_known,
)
from harmonium.experiments.report.paper import CITATION, paper_aucs
from harmonium.experiments.report.wording import NOTHING, format_value
from harmonium.spreadsheets import guarded_frame

SIGNS = {RAW: "−", BY_DEFAULT.name: "+"}

Rows = dict[tuple[str, str], dict[str, Score]]
"""The rows of Table 2: (dataset, name of the smoothing or `RAW`) -> model -> score."""


def comparison(summary: Summary) -> Items:
    """Table 2; every model against every other, and smoothed against raw tags; ranks."""
    rows = _rows(summary)
    models = _models(rows)
    of_models = comparisons(summary, "model", every_pair=True)
    of_smoothing = _of_smoothing(summary)
    first = summary.scores[0].arm.model.name
    return [
        _auc_table(rows, models),
        difference_table(
            [*of_models, *_raw_against_smoothed(summary, first)],
            title="Every model less every other, on the same folds",
        ),
        _figure_of_models(of_models, first),
        _figure_of_smoothing(of_smoothing),
        difference_table(
            of_smoothing,
            name="differences-smoothing",
            title="Smoothed less raw training tags, on the same folds",
        ),
        *_ranks(rows, models),
    ]


def _rows(summary: Summary) -> Rows:
    """The rows of Table 2, raw tags before smoothed ones."""
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    rows: Rows = {}
    for dataset, scores in grouped(summary.scores, "dataset").items():
        for score in sorted(scores, key=lambda score: score.arm.smoothing is not None):
            row = rows.setdefault((dataset, score.axes["smoothing"]), {})
            row[score.name(axes)] = score
    return rows


def _models(rows: Rows) -> list[str]:
    """The names of the models, in the order of the rows."""
    names = itertools.chain.from_iterable(rows.values())
    return list(dict.fromkeys(names))


def _of_smoothing(summary: Summary) -> list[Comparison]:
    """Every way to smooth less raw tags, and less every way before it."""
    common = summary.varying("dataset", "smoothing")
    results = []
    for scores in grouped(summary.scores, "dataset", *common).values():
        raw_first = sorted(scores, key=lambda score: score.arm.smoothing is not None)
        for before, after in itertools.combinations(raw_first, 2):
            result = compare(after, before, ("smoothing",), common)
            if result is not None:
                results.append(result)
    return results


def _raw_against_smoothed(summary: Summary, first: str) -> list[Comparison]:
    """The first model on raw tags against the other models on smoothed ones."""
    results = []
    for score, other in itertools.permutations(summary.scores, 2):
        is_first_raw = score.arm.model.name == first and score.arm.smoothing is None
        is_other_smoothed = other.arm.model.name != first and other.arm.smoothing is not None
        if score.axes["dataset"] == other.axes["dataset"] and is_first_raw and is_other_smoothed:
            result = compare(score, other, ("model", "smoothing"))
            if result is not None:
                results.append(result)
    return results


def _auc_table(rows: Rows, models: list[str]) -> Table:
    records: list[dict[str, str]] = []
    seldom: dict[str, None] = {}
    for (dataset, smoothing), scores in rows.items():
        fullest = max(scores.values(), key=lambda score: score.n_finished)
        head = {
            "Dataset": dataset,
            "Tags": str(len(fullest.tags)),
            "Sm": SIGNS.get(smoothing, smoothing),
        }
        records.append(head | score_cells({model: scores.get(model) for model in models}))
        spec = fullest.arm.dataset
        printed = paper_aucs(spec.name, spec.n_tags or 0, smoothed=smoothing != RAW)
        if printed:
            row = head | {"Dataset": f"{dataset}, paper", "Tags": str(spec.n_tags)}
            row |= {model: printed.get(model, NOTHING) for model in models}
            records.append({heading: Faint(text) for heading, text in row.items()})
        n_folds = (~np.isnan(fullest.aucs[fullest.finished])).sum(axis=0)  # (n_tags,)
        n_seldom = (n_folds < fullest.n_finished).sum()
        n_untested = (n_folds <= 1).sum()
        if n_seldom:
            seldom[f"{dataset} {n_seldom} ({n_untested})"] = None

    caption = (
        f"{PERCENT} Tags: how many were scored. Sm: trained on tags as people gave them (−) or "
        "smoothed (+); always tested on the former. Bold: the best of the row."
    )
    if any(not score.complete for scores in rows.values() for score in scores.values()):
        caption += " A fraction counts the finished test folds; such a score is never bold."
    if seldom:
        caption += (
            " Tags that are not scored in every fold, because a fold has no positive or no "
            "negative clip of theirs, and in brackets those scored in one fold at most: "
            f"{'; '.join(seldom)}. The latter have no test of their own."
        )
    if len(records) > len(rows):
        caption += f" Rows marked “paper”: {CITATION}, Table 2."
    return Table(
        name="auc",
        title="Mean AUC by dataset and model (as in the paper's Table 2)",
        caption=caption,
        records=records,
    )


def _figure_of_models(of_models: list[Comparison], first: str) -> Picture:
    """The tags on which the first model is better or worse, on raw tags if there are any."""
    first_common: dict[str, str] = {}  # dataset -> what its first comparison has in common
    for pair in of_models:
        first_common.setdefault(pair.dataset, pair.common)
    groups = {}
    for pair in of_models:
        if pair.first == first and pair.common == first_common[pair.dataset]:
            groups[pair] = f"{first} against {pair.second}"
    return _count_figure(
        groups,
        name="tags-better",
        title=f"Tags on which {first} is significantly better or worse than another model "
        "(as in the paper's Figure 4)",
        subject=first,
    )


def _figure_of_smoothing(of_smoothing: list[Comparison]) -> Picture:
    """The tags on which a model trained on smoothed tags is better or worse."""
    against_raw = [pair for pair in of_smoothing if pair.second == RAW]
    groups = {}
    for pair in against_raw:
        is_default = pair.first == BY_DEFAULT.name
        groups[pair] = pair.common if is_default else f"{pair.common}, {pair.first}"
    return _count_figure(
        groups,
        name="tags-smoothing",
        title="Tags on which smoothing the training tags is significantly better or worse "
        "(as in the paper's Figure 5)",
        subject="smoothed",
    )


def _count_figure(
    groups: Mapping[Comparison, str], *, name: str, title: str, subject: str
) -> Picture:
    """The numbers of better and worse tags; each comparison comes with the name of its group."""
    panels: dict[str, Panel] = {}
    for pair, group in groups.items():
        folds = "" if pair.folds.all() else f", {pair.folds.sum()} folds"
        place = f"{group}, {pair.n_tested} tags{folds}"
        test = pair.tests["none"]
        panel = panels.setdefault(pair.dataset, {f"{subject} better": [], f"{subject} worse": []})
        panel[f"{subject} better"].append(Point(place, test.n_better, math.nan))
        panel[f"{subject} worse"].append(Point(place, -test.n_worse, math.nan))
    caption = (
        f"To the right, the tags on which {subject} is better; to the left, those on which it is "
        f"worse: two-sided paired t-test over test folds for each tag, at 95 %. {BY_CHANCE}"
    )
    return Picture(
        name=name,
        title=title,
        caption=caption,
        kind="bars",
        panels=panels,
        x_label="Number of tags",
    )


def _ranks(rows: Rows, models: list[str]) -> list[Table]:
    """Average ranks over datasets, using the raw rows, with Nemenyi's difference."""
    means_of_dataset = {}
    for dataset in dict.fromkeys(dataset for dataset, _ in rows):
        of_dataset = [scores for (name, _), scores in rows.items() if name == dataset]
        scores = of_dataset[0]  # raw tags come first
        if all(model in scores and scores[model].complete for model in models):
            means_of_dataset[dataset] = [scores[model].mean for model in models]
    if len(models) < 3 or len(means_of_dataset) < 2:
        return []
    test = friedman(list(means_of_dataset.values()))
    caption = (
        f"Over {', '.join(means_of_dataset)}, raw tags; 1 is best. Friedman's χ² = "
        f"{test.statistic:.2f}, p = {test.p:.3g}. Ranks {test.critical_difference:.2f} apart "
        "differ significantly (Nemenyi, 5 %), if p is below 0.05. The test takes the datasets as "
        "independent; those that share clips are not."
    )
    ranks = dict(zip(models, test.average_ranks, strict=True))
    records = []
    for model in sorted(models, key=lambda model: ranks[model]):
        records.append({"Model": model, "Average rank": f"{ranks[model]:.2f}"})
    return [
        Table(
            name="ranks",
            title="Average rank of each model over datasets",
            caption=caption,
            records=records,
        )
    ]


def per_tag_csv(summary: Summary) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    rows = _rows(summary)
    first, *others = _models(rows)
    frames = []
    for (dataset, smoothing), scores in rows.items():
        columns = {model: mean_known(score.aucs, axis=0) for model, score in scores.items()}
        for other in others:
            if first not in scores or other not in scores:
                continue
            pair = compare(scores[first], scores[other])
            if pair is not None:
                columns[f"p {first} against {other}"] = pair.tests["none"].p
        frame: dict[str, Any] = {
            "dataset": dataset,
            "trained on": format_value("smoothing", smoothing),
            "tag": next(iter(scores.values())).tags,
        }
        for name, values in columns.items():
            frame[name] = [None if math.isnan(value) else f"{value:.6g}" for value in values]
        frames.append(pl.DataFrame(frame))
    return guarded_frame(pl.concat(frames, how="diagonal_relaxed")).write_csv()
