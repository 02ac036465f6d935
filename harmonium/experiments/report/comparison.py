"""The form of Table 2 and Figures 4 and 5: models by datasets, with and without smoothing."""

import csv
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harmonium.errors import DataError
from harmonium.evaluation import friedman
from harmonium.experiments.report import paper
from harmonium.experiments.report.differences import difference_table
from harmonium.experiments.report.numbers import (
    PairedComparison,
    Score,
    Summary,
    compare,
    distinct,
)
from harmonium.experiments.report.tables import (
    NOTHING,
    Cell,
    Panel,
    Picture,
    Series,
    Table,
    columns,
    format_percent,
    format_value,
    join_names,
    text_row,
)

SIGN = {False: "−", True: "+"}

_TEST = (
    "Two-sided paired t-test over test folds for each tag, at 95 %; if there were no difference on "
    "any tag, about 2.5 % of the tags would count as better and as many as worse."
)


@dataclass(frozen=True)
class ComparisonRow:
    """One row of Table 2: a dataset, raw or smoothed."""

    dataset: str
    smoothing: bool
    scores: dict[str, Score]
    """Model -> score, for the models that have one."""


def comparison(summary: Summary) -> tuple[list[Table | Picture], dict[str, str]]:
    """The tables and figures, Table 2 first, and the AUCs by tag."""
    rows = _rows(summary)
    models = list(dict.fromkeys(name for row in rows for name in row.scores))
    items = [
        _auc_table(rows, models),
        *_models_against_others(rows, models),
        *_smoothed_against_raw(rows, models),
        *_ranks(rows, models),
    ]
    return items, {"per-tag.csv": _per_tag_csv(rows, models)}


def _rows(summary: Summary) -> list[ComparisonRow]:
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    found: dict[tuple[str, bool], dict[str, Score]] = {}
    for score in summary.scores:
        place = (score.value("dataset"), score.value("smoothing"))
        found.setdefault(place, {})[score.name(axes)] = score
    return [
        ComparisonRow(dataset, smoothing, found[dataset, smoothing])
        for dataset in distinct(summary.scores, "dataset")
        for smoothing in (False, True)
        if (dataset, smoothing) in found
    ]


def _auc_table(rows: list[ComparisonRow], models: list[str]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        n_tags = max(score.n_tags for score in row.scores.values())
        head = (row.dataset, str(n_tags), SIGN[row.smoothing])
        cells.append(text_row(*head, *score_cells(row.scores, models)))
        spec = next(iter(row.scores.values())).arm.dataset
        printed = paper.AUC.get((spec.name, spec.n_tags or 0, row.smoothing))
        if printed:
            values = [f"{printed[name]:.1f}" if name in printed else NOTHING for name in models]
            head = (f"{row.dataset}, paper", str(spec.n_tags), SIGN[row.smoothing])
            cells.append(text_row(*head, *values, faint=True))
    caption = (
        "Mean AUC over tags and test folds in percent, ± its standard error over folds. Tags: how "
        "many were scored. Sm: trained on tags as people gave them (−) or smoothed (+); always "
        "tested on the former. Bold: the best of the row."
    )
    if any(not score.complete for row in rows for score in row.scores.values()):
        caption += (
            " A fraction says how many of the test folds are finished; unfinished ones are not "
            "compared for the best."
        )
    caption += _seldom_scored(rows)
    if len(cells) > len(rows):
        caption += f" Rows marked “paper”: {paper.CITATION}, Table 2."
    return Table(
        name="auc",
        title="Mean AUC by dataset and model (as in the paper's Table 2)",
        caption=caption,
        columns=(
            *columns("Dataset", align="left"),
            *columns("Tags"),
            *columns("Sm", align="centre"),
            *columns(*models),
        ),
        rows=tuple(cells),
    )


def _seldom_scored(rows: list[ComparisonRow]) -> str:
    """How many tags are not scored in every fold: all their positives are by one or two artists."""
    found = []
    for row in rows:
        score = max(row.scores.values(), key=lambda score: score.n_finished)
        in_folds = (~np.isnan(score.aucs[score.finished])).sum(axis=0)
        n_seldom, n_once = int((in_folds < score.n_finished).sum()), int((in_folds <= 1).sum())
        if n_seldom and (row.dataset, n_seldom, n_once) not in found:
            found.append((row.dataset, n_seldom, n_once))
    if not found:
        return ""
    each = "; ".join(f"{dataset} {seldom} ({once})" for dataset, seldom, once in found)
    return (
        " Tags that are not scored in every fold, because a fold has no positive or no negative "
        f"clip of theirs, and in brackets those scored in one fold at most: {each}. The latter "
        "have no test of their own."
    )


def score_cells(scores: dict[str, Score], names: list[str]) -> tuple[Cell, ...]:
    """A cell for each of the names; the best is strong."""
    best = best_of(scores)
    return tuple(Cell(format_score(scores.get(name)), strong=name in best) for name in names)


def format_score(score: Score | None) -> str:
    """Mean and standard error in percent, and how many folds where not all are finished."""
    if score is None or not score.n_finished:
        return NOTHING
    text = format_percent(score.mean, score.error)
    return text if score.complete else f"{text} ({score.n_finished}/{len(score.finished)})"


def best_of(scores: dict[str, Score]) -> set[str]:
    """The names of the best among two or more complete scores; equal to the digit is equal."""
    whole = {name: s.mean for name, s in scores.items() if s.complete and not math.isnan(s.mean)}
    means = {name: format_percent(mean) for name, mean in whole.items()}
    if len(means) < 2:
        return set()
    best = max(means.values(), key=float)
    return {name for name, text in means.items() if text == best}


def _base_row(rows: list[ComparisonRow], dataset: str) -> ComparisonRow:
    """The raw row of a dataset, or the smoothed one where there is no other."""
    return next(row for row in rows if row.dataset == dataset)


def _models_against_others(rows: list[ComparisonRow], models: list[str]) -> list[Table | Picture]:
    """Every pair of models trained on the same tags; the first, on raw tags, also with smoothed."""
    first = models[0]
    pairs = [
        (row, (name, other), pair)
        for row in rows
        for name, other in itertools.combinations(models, 2)
        if (pair := compare(row.scores.get(name), row.scores.get(other)))
    ]
    mixed = [
        (row, (f"{first}, raw", other), pair)
        for row in rows
        if row is not (raw := _base_row(rows, row.dataset))
        for other in models[1:]
        if (pair := compare(raw.scores.get(first), row.scores.get(other)))
    ]
    figure = _count_figure(
        [
            (f"{first} against {names[1]}", row.dataset, pair)
            for row, names, pair in pairs
            if names[0] == first and row is _base_row(rows, row.dataset)
        ],
        name="tags-better",
        title=f"Tags on which {first} is significantly better or worse than another model",
        caption=(
            f"For each model that {first} is compared with and each dataset: up, "
            f"the tags on which {first} is significantly better; down, those on which it is worse "
            "(as in the paper's Figure 4)."
        ),
        whose=first,
    )
    table = difference_table(
        [((row.dataset, SIGN[row.smoothing], *names), pair) for row, names, pair in pairs + mixed],
        name="differences",
        title="Every model less every other, on the same folds",
        caption="Sm: whether both are trained on raw (−) or on smoothed tags (+)."
        + (f" “{first}, raw” is trained on raw tags all the same." if mixed else ""),
        heads=(
            *columns("Dataset", align="left"),
            *columns("Sm", align="centre"),
            *columns("Model", "Less", align="left"),
        ),
    )
    return [*table, *figure]


def _smoothed_against_raw(rows: list[ComparisonRow], models: list[str]) -> list[Table | Picture]:
    """Each model, trained on smoothed tags and on raw ones."""
    pairs = [
        (name, row.dataset, pair)
        for name in models
        for row in rows
        if row is not (raw := _base_row(rows, row.dataset))
        and (pair := compare(row.scores.get(name), raw.scores.get(name)))
    ]
    figure = _count_figure(
        pairs,
        name="tags-smoothing",
        title="Tags on which smoothing the training tags is significantly better or worse",
        caption=(
            "For each model and dataset: up, the tags on which training on "
            "smoothed tags is significantly better than on raw tags; down, those on which it is "
            "worse (as in the paper's Figure 5)."
        ),
        whose="smoothed",
    )
    table = difference_table(
        [((name, dataset), pair) for name, dataset, pair in pairs],
        name="differences-smoothing",
        title="Smoothed less raw tags, on the same folds",
        caption="The same model, trained on smoothed tags and on raw ones.",
        heads=columns("Model", "Dataset", align="left"),
    )
    return [*figure, *table]


def _count_figure(
    pairs: Sequence[tuple[str, str, PairedComparison]],
    *,
    name: str,
    title: str,
    caption: str,
    whose: str,
) -> list[Picture]:
    """Bars up and down, of (what is compared, dataset, comparison).

    As in the paper, a panel per comparison has a bar per dataset, some of which may be missing;
    where there is one dataset, its panel has a bar per comparison.
    """
    if not pairs:
        return []
    datasets = list(dict.fromkeys(dataset for _, dataset, _ in pairs))
    panels: dict[str, dict[str, PairedComparison | None]] = {}
    for compared, dataset, pair in pairs:
        if len(datasets) == 1:
            panels.setdefault(dataset, {})[compared] = pair
        else:
            panels.setdefault(compared, dict.fromkeys(datasets))[dataset] = pair
    figure = Picture(
        name=name,
        title=title,
        caption=f"{caption} {_TEST}",
        kind="counts",
        y_label="Number of tags",
        panels=tuple(_count_panel(panel, bars, whose) for panel, bars in panels.items()),
    )
    return [figure]


def _count_panel(title: str, bars: dict[str, PairedComparison | None], whose: str) -> Panel:
    tests = [pair.tests["none"] if pair else None for pair in bars.values()]
    up = tuple(test.n_better if test else math.nan for test in tests)
    down = tuple(test.n_worse if test else math.nan for test in tests)
    groups = tuple(f"{name}\n{_size(pair)}" for name, pair in bars.items())
    return Panel(title, (Series(f"{whose} better", up), Series(f"{whose} worse", down)), groups)


def _size(pair: PairedComparison | None) -> str:
    if pair is None:
        return "not there"
    partial = not (pair.first.complete and pair.second.complete)
    return f"{pair.n_tested} tags" + (f"\n{pair.n_folds} folds" if partial else "")


def _ranks(rows: list[ComparisonRow], models: list[str]) -> list[Table]:
    """Average ranks over datasets with Nemenyi's critical difference, where there are any.

    A dataset is a block; the raw row stands for it.
    """
    blocks = [row for row in rows if row is _base_row(rows, row.dataset)]
    scores = [[row.scores.get(name) for name in models] for row in blocks]
    means = np.array([[s.mean if s and s.complete else np.nan for s in row] for row in scores])
    try:
        test = friedman(means)
    except DataError:
        return []  # fewer than three models or two datasets
    order = np.argsort(test.average_ranks, kind="stable")
    used = [row.dataset for row, m in zip(blocks, means, strict=True) if not np.isnan(m).any()]
    table = Table(
        name="ranks",
        title="Average rank of each model over datasets",
        caption=(
            f"Over {join_names(used)}, raw tags; 1 is best. Friedman's χ² = {test.statistic:.2f}, "
            f"p = {test.p:.3g}. Ranks {test.critical_difference:.2f} apart differ significantly "
            "(Nemenyi, 5 %), if p is below 0.05. The test takes the datasets as independent; those "
            "that share clips are not."
        ),
        columns=(*columns("Model", align="left"), *columns("Average rank")),
        rows=tuple(text_row(models[i], f"{test.average_ranks[i]:.2f}") for i in order),
        grouped=False,
    )
    return [table]


def _per_tag_csv(rows: list[ComparisonRow], models: list[str]) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tested = [f"p {models[0]} against {name}" for name in models[1:]]
    writer.writerow(["dataset", "trained on", "tag", *models, *tested])
    for row in rows:
        tags = next(iter(row.scores.values())).tags
        nothing = np.full(len(tags), np.nan)
        scores = [row.scores.get(name) for name in models]
        pairs = [compare(scores[0], other) for other in scores[1:]]
        found = [
            *(nothing if score is None else score.by_tag for score in scores),
            *(nothing if pair is None else pair.tests["none"].p for pair in pairs),
        ]
        for tag, *values in zip(tags, *found, strict=True):
            numbers = ("" if math.isnan(value) else f"{value:.6g}" for value in values)
            place = (row.dataset, format_value("smoothing", row.smoothing), tag)
            writer.writerow([*place, *numbers])
    return text.getvalue()
