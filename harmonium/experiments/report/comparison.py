"""The form of Table 2 and Figures 4 and 5: models by datasets, with and without smoothing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harmonium.errors import DataError
from harmonium.evaluation import friedman
from harmonium.experiments.report import paper
from harmonium.experiments.report.counting import count_figure, count_table
from harmonium.experiments.report.pertag import per_tag_csv
from harmonium.experiments.report.scores import Score, distinct
from harmonium.experiments.report.significance import Duel, duel
from harmonium.experiments.report.summary import Summary
from harmonium.experiments.report.tables import NOTHING, Cell, Column, Figure, Table
from harmonium.experiments.report.words import listed, percent

SIGN = {False: "−", True: "+"}


@dataclass(frozen=True)
class Row:
    """One row of Table 2: a dataset, raw or smoothed."""

    dataset: str
    smoothing: bool
    scores: dict[str, Score]
    """Column -> score, of the columns that are there."""


def comparison(summary: Summary) -> tuple[list[Table | Figure], dict[str, str]]:
    """The tables and figures, Table 2 first, and the AUCs by tag."""
    rows = _rows(summary)
    columns = list(dict.fromkeys(name for row in rows for name in row.scores))
    fights = _against_first(rows, columns)
    smoothings = _smoothed_against_raw(rows)
    items: list[Table | Figure] = [_table(summary, rows, columns)]
    if fights:
        items += _first_against_others(columns[0], fights)
    if smoothings:
        items += _smoothing_items(smoothings)
    ranks = _ranks(rows, columns)
    files = {
        "per-tag.csv": per_tag_csv([(r.dataset, r.smoothing, r.scores) for r in rows], columns)
    }
    return items + ([ranks] if ranks else []), files


def _rows(summary: Summary) -> list[Row]:
    axes = ("model", *summary.varying("dataset", "smoothing", "model"))
    found: dict[tuple[str, bool], dict[str, Score]] = {}
    for score in summary.scores:
        place = (score.value("dataset"), score.value("smoothing"))
        found.setdefault(place, {})[score.words(axes)] = score
    datasets = distinct(summary.scores, "dataset")
    return [
        Row(dataset, smoothing, found[dataset, smoothing])
        for dataset in datasets
        for smoothing in (False, True)
        if (dataset, smoothing) in found
    ]


def _table(summary: Summary, rows: list[Row], columns: list[str]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    groups: list[str] = []
    for row in rows:
        cells.append(_row_cells(row, columns))
        spec = next(iter(row.scores.values())).arm.dataset
        printed = paper.AUC.get((spec.name, spec.n_tags or 0, row.smoothing))
        if printed:
            cells.append(_paper_cells(row, spec.n_tags or 0, printed, columns))
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
            *(Column(name) for name in columns),
        ),
        rows=tuple(cells),
        groups=tuple(groups),
    )


def _row_cells(row: Row, columns: list[str]) -> tuple[Cell, ...]:
    texts = {name: score_words(score) for name, score in row.scores.items()}
    best = best_of(row.scores)
    n_tags = max(score.n_tags for score in row.scores.values())
    return (
        Cell(row.dataset),
        Cell(str(n_tags)),
        Cell(SIGN[row.smoothing]),
        *(Cell(texts.get(name, NOTHING), strong=name in best) for name in columns),
    )


def _paper_cells(
    row: Row, n_tags: int, printed: dict[str, float], columns: list[str]
) -> tuple[Cell, ...]:
    values = [f"{printed[name]:.1f}" if name in printed else NOTHING for name in columns]
    texts = (f"{row.dataset}, paper", str(n_tags), SIGN[row.smoothing], *values)
    return tuple(Cell(text, faint=True) for text in texts)


def score_words(score: Score) -> str:
    """Mean and standard error in percent, and how many folds where not all are finished."""
    if not score.n_finished:
        return NOTHING
    text = percent(score.mean, score.error)
    return text if score.complete else f"{text} ({score.n_finished}/{len(score.finished)})"


def best_of(scores: dict[str, Score]) -> set[str]:
    """The names of the best among two or more complete scores; equal to the digit is equal."""
    means = {name: percent(s.mean) for name, s in scores.items() if s.complete}
    if len(means) < 2:
        return set()
    best = max(means.values(), key=float)
    return {name for name, text in means.items() if text == best}


def _against_first(rows: list[Row], columns: list[str]) -> list[tuple[Row, str, Duel]]:
    """The first model, trained on raw tags, against every other, raw and smoothed."""
    found = []
    for row in rows:
        base = _base_row(rows, row.dataset)
        first = base.scores.get(columns[0])
        for name in columns[1:]:
            if first and name in row.scores and (fight := duel(first, row.scores[name])):
                found.append((row, name, fight))
    return found


def _base_row(rows: Iterable[Row], dataset: str) -> Row:
    """The raw row of a dataset, or the smoothed one where there is no other."""
    return next(row for row in rows if row.dataset == dataset)


def _first_against_others(first: str, fights: list[tuple[Row, str, Duel]]) -> list[Table | Figure]:
    raw = [
        (name, row.dataset, fight)
        for row, name, fight in fights
        if row.smoothing == fight.first.arm.smoothing
    ]
    figure = count_figure(
        name="tags-better",
        title=f"Tags on which {first} is significantly better or worse than another model",
        up=f"{first} better",
        down=f"{first} worse",
        panels=[(f"{first} against {name}", dataset, fight) for name, dataset, fight in raw],
        caption=(
            f"For each model that {first} is compared with and each dataset: up, "
            f"the tags on which {first} is significantly better; down, those on which it is worse "
            "(as in the paper's Figure 4)."
        ),
    )
    table = count_table(
        name="tags-better-counts",
        title=f"{first} against every other model, tag by tag",
        caption=f"{first} is trained on raw tags; Sm says what the other model is trained on.",
        heads=("Dataset", "Against", "Sm"),
        rows=[((row.dataset, name, SIGN[row.smoothing]), fight) for row, name, fight in fights],
    )
    return [figure, table] if raw else [table]


def _smoothed_against_raw(rows: list[Row]) -> list[tuple[str, str, Duel]]:
    """(model, dataset, smoothed against raw), model by model."""
    found = []
    for smoothed in (row for row in rows if row.smoothing):
        raw = _base_row(rows, smoothed.dataset)
        for name, score in smoothed.scores.items():
            if (
                not raw.smoothing
                and name in raw.scores
                and (fight := duel(score, raw.scores[name]))
            ):
                found.append((name, smoothed.dataset, fight))
    order = list(dict.fromkeys(name for row in rows for name in row.scores))
    return sorted(found, key=lambda entry: order.index(entry[0]))


def _smoothing_items(fights: list[tuple[str, str, Duel]]) -> list[Table | Figure]:
    figure = count_figure(
        name="tags-smoothing",
        title="Tags on which smoothing the training tags is significantly better or worse",
        up="smoothed better",
        down="smoothed worse",
        panels=fights,
        caption=(
            "For each model and dataset: up, the tags on which training on "
            "smoothed tags is significantly better than on raw tags; down, those on which it is "
            "worse (as in the paper's Figure 5)."
        ),
    )
    table = count_table(
        name="tags-smoothing-counts",
        title="Smoothed against raw tags, tag by tag",
        caption="The same model, trained on smoothed tags and on raw ones.",
        heads=("Model", "Dataset"),
        rows=[((name, dataset), fight) for name, dataset, fight in fights],
    )
    return [figure, table]


def _ranks(rows: list[Row], columns: list[str]) -> Table | None:
    """Average ranks over datasets with Nemenyi's critical difference; None where there is none.

    A dataset is a block; the raw row stands for it.
    """
    blocks = [row for row in rows if row is _base_row(rows, row.dataset)]
    means = np.array([[_complete_mean(row.scores.get(name)) for name in columns] for row in blocks])
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
            f"Over {listed(used)}, raw tags; 1 is best. Friedman's χ² = {test.statistic:.2f}, "
            f"p = {test.p:.3g}. Ranks {test.critical_difference:.2f} apart differ significantly "
            "(Nemenyi, 5 %), if p is below 0.05. The test takes the datasets as independent; those "
            "that share clips are not."
        ),
        columns=(Column("Model", "left"), Column("Average rank")),
        rows=tuple((Cell(columns[i]), Cell(f"{test.average_ranks[i]:.2f}")) for i in order),
    )


def _complete_mean(score: Score | None) -> float:
    return score.mean if score is not None and score.complete else float("nan")
