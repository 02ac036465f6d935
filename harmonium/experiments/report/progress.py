"""What is not finished, in a sentence and in a table."""

from harmonium.experiments.report.settings import arm_words
from harmonium.experiments.report.summary import ArmSummary, Summary
from harmonium.experiments.report.tables import Cell, Column, Table, first_cells


def unfinished_words(summary: Summary) -> str:
    """How much is missing; empty where nothing is."""
    unfinished = summary.unfinished
    if not unfinished:
        return ""
    begun = sum(arm.n_finished > 0 for arm in unfinished)
    text = f"{len(unfinished)} of {len(summary.arms)} arms are not finished"
    if begun:
        text += f", {begun} of which {'has' if begun == 1 else 'have'} some finished test folds"
    return f"{text}. What is there is shown."


def unfinished_table(summary: Summary) -> Table | None:
    """A row per arm that is partly there, and one per dataset for those without a finished fold."""
    if not summary.unfinished:
        return None
    by_dataset: dict[str, list[ArmSummary]] = {}
    for arm in summary.unfinished:
        by_dataset.setdefault(arm.arm.dataset.label, []).append(arm)
    rows: list[tuple[Cell, ...]] = []
    for dataset, arms in by_dataset.items():
        absent = [arm_words(arm, summary) for arm in arms if not arm.n_finished]
        partly = [arm for arm in arms if arm.n_finished]
        rows += [_row(dataset, arm_words(arm, summary), arm.n_finished, summary) for arm in partly]
        if absent:
            every = sum(arm.arm.dataset.label == dataset for arm in summary.arms)
            words = "all" if len(absent) == every else "; ".join(absent)
            rows.append(_row(dataset, words, 0, summary))
    return Table(
        name="unfinished",
        title="What is not finished",
        caption=(
            "An arm is a model on a dataset, trained in one way. Means are over the test folds "
            "that are finished."
        ),
        columns=(Column("Dataset", "left"), Column("Arms", "left"), Column("Test folds")),
        rows=tuple(rows),
        groups=first_cells(rows),
    )


def _row(dataset: str, words: str, done: int, summary: Summary) -> tuple[Cell, ...]:
    return (Cell(dataset), Cell(words), Cell(f"{done}/{summary.recipe.n_folds}"))
