"""The forms that are groups of bars: approximations (Figure 3) and feature groups."""

from dataclasses import dataclass

from harmonium.experiments.report.comparison import best_of, score_words
from harmonium.experiments.report.curves import by_axis, by_words
from harmonium.experiments.report.pictures import BarPanel, Bars, Heights
from harmonium.experiments.report.scores import Score
from harmonium.experiments.report.summary import Summary
from harmonium.experiments.report.tables import NOTHING, Cell, Column, Figure, Table, first_cells
from harmonium.experiments.report.words import heading, value_words


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """What a form puts side by side, and its words."""

    axis: str
    """Bars of different colour."""
    groups: tuple[str, ...]
    """Where the groups come from: the first of these that varies."""
    title: str
    caption: str


APPROXIMATIONS = Grouping(
    axis="inference",
    groups=("training", "model"),
    title="Mean AUC by the approximations used for training and for testing",
    caption=(
        "CD: contrastive divergence; PL: pseudo-likelihood; MF: mean field; LBP: loopy belief "
        "propagation (as in the paper's Figure 3)."
    ),
)
FEATURES = Grouping(
    axis="features",
    groups=("model",),
    title="Mean AUC by the features that a model is given",
    caption="Timbre, rhythm, or both.",
)


def grouped(summary: Summary, grouping: Grouping) -> list[Table | Figure]:
    """A table and a figure of the same numbers."""
    groups = next((a for a in grouping.groups if a in summary.varying()), "model")
    others = summary.varying("dataset", groups, grouping.axis)
    axes = (*others, grouping.axis)
    caption = (
        f"Mean AUC over tags and test folds in percent, ± its standard error over folds. "
        f"{grouping.caption}"
    )
    return [
        _table(summary, grouping, groups, axes, caption),
        Figure(
            name=summary.recipe.form,
            title=grouping.title,
            caption=caption,
            picture=Bars(
                title=grouping.title,
                group_label=heading(groups),
                value_label="Mean AUC (%)",
                panels=tuple(
                    _panel(dataset, scores, groups, axes)
                    for dataset, scores in by_axis(summary.scores, "dataset").items()
                ),
            ),
        ),
    ]


def _panel(dataset: str, scores: list[Score], groups: str, axes: tuple[str, ...]) -> BarPanel:
    names = list(by_words(scores, axes))
    by_group = by_axis(scores, groups)
    series = []
    for name in names:
        found = {s.value(groups): s for s in scores if s.words(axes) == name}
        there = [found.get(group) for group in by_group]
        series.append(
            Heights(
                name=name,
                values=tuple(100 * s.mean if s else float("nan") for s in there),
                errors=tuple(100 * s.error if s else float("nan") for s in there),
            )
        )
    return BarPanel(dataset, tuple(value_words(groups, g) for g in by_group), tuple(series))


def _table(
    summary: Summary, grouping: Grouping, groups: str, axes: tuple[str, ...], caption: str
) -> Table:
    columns = list(by_words(summary.scores, axes))
    rows = []
    for dataset, of_dataset in by_axis(summary.scores, "dataset").items():
        for group, of_group in by_axis(of_dataset, groups).items():
            found = {s.words(axes): s for s in of_group}
            best = best_of(found)
            rows.append(
                (
                    Cell(dataset),
                    Cell(value_words(groups, group)),
                    *(
                        Cell(score_words(found[c]) if c in found else NOTHING, strong=c in best)
                        for c in columns
                    ),
                )
            )
    return Table(
        name=f"{summary.recipe.form}-auc",
        title=grouping.title,
        caption=f"{caption} Bold: the best of the row.",
        columns=(
            Column("Dataset", "left"),
            Column(heading(groups), "left"),
            *(Column(name) for name in columns),
        ),
        rows=tuple(rows),
        groups=first_cells(rows),
    )
