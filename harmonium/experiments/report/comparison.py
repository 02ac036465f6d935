"""The form of Table 2 and Figures 4 and 5: models by datasets, with and without smoothing."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harmonium.errors import DataError
from harmonium.evaluation import friedman
from harmonium.experiments.report import paper
from harmonium.experiments.report.numbers import (
    CORRECTIONS,
    PairedComparison,
    Score,
    Summary,
    compare,
    distinct,
)
from harmonium.experiments.report.pictures import CountPanel, Counts
from harmonium.experiments.report.tables import (
    NOTHING,
    Cell,
    Column,
    Figure,
    Table,
    first_cells,
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
_CORRECTED = (
    "Holm and BH: counts that remain after correcting for the number of tags, by Holm's method and "
    "by Benjamini and Hochberg's."
)
_CORRECTION_NAMES = {"none": "", "holm": ", Holm", "bh": ", BH"}


@dataclass(frozen=True)
class ComparisonRow:
    """One row of Table 2: a dataset, raw or smoothed."""

    dataset: str
    smoothing: bool
    scores: dict[str, Score]
    """Model -> score, for the models that have one."""


def comparison(summary: Summary) -> tuple[list[Table | Figure], dict[str, str]]:
    """The tables and figures, Table 2 first, and the AUCs by tag."""
    rows = _rows(summary)
    models = list(dict.fromkeys(name for row in rows for name in row.scores))
    items: list[Table | Figure] = [_auc_table(rows, models)]
    if against_first := _against_first(rows, models):
        items += _first_against_others(models[0], against_first)
    if smoothed := _smoothed_against_raw(rows, models):
        items += _smoothing_items(smoothed)
    if ranks := _ranks(rows, models):
        items.append(ranks)
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
    groups: list[str] = []
    for row in rows:
        cells.append(_score_cells(row, models))
        spec = next(iter(row.scores.values())).arm.dataset
        printed = paper.AUC.get((spec.name, spec.n_tags or 0, row.smoothing))
        if printed:
            values = [f"{printed[name]:.1f}" if name in printed else NOTHING for name in models]
            texts = (f"{row.dataset}, paper", str(spec.n_tags), SIGN[row.smoothing], *values)
            cells.append(text_row(*texts, faint=True))
        groups += [row.dataset] * (len(cells) - len(groups))
    caption = (
        "Mean AUC over tags and test folds in percent, ± its standard error over folds. Tags: how "
        "many were scored. Sm: trained on tags as people gave them (−) or smoothed (+); tested on "
        "the former always. Bold: the best of the row."
    )
    if any(not score.complete for row in rows for score in row.scores.values()):
        caption += (
            " A fraction says how many of the test folds are finished; unfinished ones are not "
            "compared for the best."
        )
    if len(cells) > len(rows):
        caption += f" Rows marked “paper”: {paper.CITATION}, Table 2."
    return Table(
        name="auc",
        title="Mean AUC by dataset and model (as in the paper's Table 2)",
        caption=caption,
        columns=(
            Column("Dataset", "left"),
            Column("Tags"),
            Column("Sm", "centre"),
            *(Column(name) for name in models),
        ),
        rows=tuple(cells),
        groups=tuple(groups),
    )


def _score_cells(row: ComparisonRow, models: list[str]) -> tuple[Cell, ...]:
    n_tags = max(score.n_tags for score in row.scores.values())
    head = text_row(row.dataset, str(n_tags), SIGN[row.smoothing])
    return (*head, *score_cells(row.scores, models))


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
    means = {name: format_percent(s.mean) for name, s in scores.items() if s.complete}
    if len(means) < 2:
        return set()
    best = max(means.values(), key=float)
    return {name for name, text in means.items() if text == best}


def _against_first(
    rows: list[ComparisonRow], models: list[str]
) -> list[tuple[ComparisonRow, str, PairedComparison]]:
    """The first model, trained on raw tags, against every other, raw and smoothed."""
    found = []
    for row in rows:
        first = _base_row(rows, row.dataset).scores.get(models[0])
        for name in models[1:]:
            if first and name in row.scores and (pair := compare(first, row.scores[name])):
                found.append((row, name, pair))
    return found


def _base_row(rows: list[ComparisonRow], dataset: str) -> ComparisonRow:
    """The raw row of a dataset, or the smoothed one where there is no other."""
    return next(row for row in rows if row.dataset == dataset)


def _first_against_others(
    first: str, pairs: list[tuple[ComparisonRow, str, PairedComparison]]
) -> list[Table | Figure]:
    alike = [
        (f"{first} against {name}", row.dataset, pair)
        for row, name, pair in pairs
        if row.smoothing == pair.first.arm.smoothing
    ]
    table = _count_table(
        name="tags-better-counts",
        title=f"{first} against every other model, tag by tag",
        caption=f"{first} is trained on raw tags; Sm says what the other model is trained on.",
        heads=("Dataset", "Against", "Sm"),
        rows=[((row.dataset, name, SIGN[row.smoothing]), pair) for row, name, pair in pairs],
    )
    if not alike:
        return [table]
    figure = _count_figure(
        name="tags-better",
        title=f"Tags on which {first} is significantly better or worse than another model",
        up=f"{first} better",
        down=f"{first} worse",
        pairs=alike,
        caption=(
            f"For each model that {first} is compared with and each dataset: up, "
            f"the tags on which {first} is significantly better; down, those on which it is worse "
            "(as in the paper's Figure 4)."
        ),
    )
    return [figure, table]


def _smoothed_against_raw(
    rows: list[ComparisonRow], models: list[str]
) -> list[tuple[str, str, PairedComparison]]:
    """(model, dataset, smoothed against raw), model by model."""
    found = []
    for smoothed in (row for row in rows if row.smoothing):
        raw = _base_row(rows, smoothed.dataset)
        if raw.smoothing:
            continue
        for name, score in smoothed.scores.items():
            if name in raw.scores and (pair := compare(score, raw.scores[name])):
                found.append((name, smoothed.dataset, pair))
    return sorted(found, key=lambda entry: models.index(entry[0]))


def _smoothing_items(pairs: list[tuple[str, str, PairedComparison]]) -> list[Table | Figure]:
    figure = _count_figure(
        name="tags-smoothing",
        title="Tags on which smoothing the training tags is significantly better or worse",
        up="smoothed better",
        down="smoothed worse",
        pairs=pairs,
        caption=(
            "For each model and dataset: up, the tags on which training on "
            "smoothed tags is significantly better than on raw tags; down, those on which it is "
            "worse (as in the paper's Figure 5)."
        ),
    )
    table = _count_table(
        name="tags-smoothing-counts",
        title="Smoothed against raw tags, tag by tag",
        caption="The same model, trained on smoothed tags and on raw ones.",
        heads=("Model", "Dataset"),
        rows=[((name, dataset), pair) for name, dataset, pair in pairs],
    )
    return [figure, table]


def _count_table(
    *,
    name: str,
    title: str,
    caption: str,
    heads: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], PairedComparison]],
) -> Table:
    """Tags better and worse, by each test alone and after corrections for many tests."""
    columns = [Column(head, "centre" if head == "Sm" else "left") for head in heads]
    columns += [Column("Tags"), Column("Folds")]
    for correction in CORRECTIONS:
        end = _CORRECTION_NAMES[correction]
        columns += [Column(f"Better{end}"), Column(f"Worse{end}")]
    cells = []
    for texts, pair in rows:
        tests = [pair.tests[correction] for correction in CORRECTIONS]
        counts = [str(count) for test in tests for count in (test.n_better, test.n_worse)]
        cells.append(text_row(*texts, str(pair.n_tested), str(pair.n_folds), *counts))
    return Table(
        name=name,
        title=title,
        caption=f"{caption} {_TEST} {_CORRECTED}",
        columns=tuple(columns),
        rows=tuple(cells),
        groups=first_cells(cells),
    )


def _count_figure(
    *,
    name: str,
    title: str,
    up: str,
    down: str,
    pairs: Sequence[tuple[str, str, PairedComparison]],
    caption: str,
) -> Figure:
    """Bars up and down, of (what is compared, dataset, comparison).

    As in the paper, a panel per comparison has a bar per dataset, some of which may be missing;
    where there is one dataset, its panel has a bar per comparison.
    """
    datasets = list(dict.fromkeys(dataset for _, dataset, _ in pairs))
    panels: dict[str, dict[str, PairedComparison | None]] = {}
    for compared, dataset, pair in pairs:
        if len(datasets) == 1:
            panels.setdefault(dataset, {})[compared] = pair
        else:
            panels.setdefault(compared, dict.fromkeys(datasets))[dataset] = pair
    return Figure(
        name=name,
        title=title,
        caption=f"{caption} {_TEST}",
        picture=Counts(
            title=title,
            up_label=up,
            down_label=down,
            value_label="Number of tags",
            panels=tuple(_count_panel(panel, bars) for panel, bars in panels.items()),
        ),
    )


def _count_panel(title: str, bars: dict[str, PairedComparison | None]) -> CountPanel:
    return CountPanel(
        title=title,
        groups=tuple(f"{name}\n{_size(pair)}" for name, pair in bars.items()),
        up=tuple(pair.better if pair else None for pair in bars.values()),
        down=tuple(pair.worse if pair else None for pair in bars.values()),
    )


def _size(pair: PairedComparison | None) -> str:
    if pair is None:
        return "not there"
    partial = not (pair.first.complete and pair.second.complete)
    return f"{pair.n_tested} tags" + (f"\n{pair.n_folds} folds" if partial else "")


def _ranks(rows: list[ComparisonRow], models: list[str]) -> Table | None:
    """Average ranks over datasets with Nemenyi's critical difference; None where there is none.

    A dataset is a block; the raw row stands for it.
    """
    blocks = [row for row in rows if row is _base_row(rows, row.dataset)]
    scores = [[row.scores.get(name) for name in models] for row in blocks]
    means = np.array([[s.mean if s and s.complete else np.nan for s in row] for row in scores])
    try:
        test = friedman(means)
    except DataError:
        return None  # fewer than three models or two datasets
    order = np.argsort(test.average_ranks, kind="stable")
    used = [row.dataset for row, m in zip(blocks, means, strict=True) if not np.isnan(m).any()]
    return Table(
        name="ranks",
        title="Average rank of each model over datasets",
        caption=(
            f"Over {join_names(used)}, raw tags; 1 is best. Friedman's χ² = {test.statistic:.2f}, "
            f"p = {test.p:.3g}. Ranks {test.critical_difference:.2f} apart differ significantly "
            "(Nemenyi, 5 %), if p is below 0.05. The test takes the datasets as independent; those "
            "that share clips are not."
        ),
        columns=(Column("Model", "left"), Column("Average rank")),
        rows=tuple(text_row(models[i], f"{test.average_ranks[i]:.2f}") for i in order),
    )


def _per_tag_csv(rows: list[ComparisonRow], models: list[str]) -> str:
    """A line per dataset, smoothing and tag: the mean AUC over folds of each model.

    And for each model after the first, the p value of the paired t-test against the first.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tested = [f"p {models[0]} against {name}" for name in models[1:]]
    writer.writerow(["dataset", "trained on", "tag", *models, *tested])
    for row in rows:
        writer.writerows(_per_tag_lines(row, models))
    return text.getvalue()


def _per_tag_lines(row: ComparisonRow, models: list[str]) -> Iterator[list[str]]:
    tags = next(iter(row.scores.values())).tags
    nothing = np.full(len(tags), np.nan)
    scores = [row.scores.get(name) for name in models]
    first = scores[0]
    pairs = [compare(first, other) if first and other else None for other in scores[1:]]
    columns = [
        *(nothing if score is None else score.by_tag for score in scores),
        *(nothing if pair is None else pair.tests["none"].p for pair in pairs),
    ]
    for i, tag in enumerate(tags):
        values = ["" if math.isnan(column[i]) else f"{column[i]:.6g}" for column in columns]
        yield [row.dataset, format_value("smoothing", row.smoothing), tag, *values]
