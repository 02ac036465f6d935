"""How long training took."""

import numpy as np
from numpy.typing import NDArray

from harmonium.experiments.report import paper
from harmonium.experiments.report.settings import arm_words
from harmonium.experiments.report.summary import ArmSummary, Summary
from harmonium.experiments.report.tables import NOTHING, Cell, Column, Table
from harmonium.experiments.report.words import duration, seconds


def times_table(summary: Summary) -> Table | None:
    """Seconds by arm; None where nothing was measured."""
    measured = [arm for arm in summary.arms if arm.n_finished and len(arm.cost.training)]
    if not measured:
        return None
    return Table(
        name="times",
        title="Time and memory",
        caption=(
            "Train, to the best epoch, test: seconds of one run with the chosen settings, the "
            "median. All runs: everything that the finished test folds took, search, smoothing and "
            "testing included, were it done one run after the other. Memory: the largest of any "
            "process, which may have done other runs before. The paper reports about "
            f"{paper.CPU_HOURS} CPU-hours for training a DRBM on its MajorMiner data."
        ),
        columns=(
            Column("Dataset", "left"),
            Column("Model", "left"),
            Column("Train, s"),
            Column("To best, s"),
            Column("Test, s"),
            Column("Runs"),
            Column("All runs"),
            Column("Memory, MB"),
        ),
        rows=tuple(_row(arm, summary) for arm in measured),
        groups=tuple(arm.arm.dataset.label for arm in measured),
    )


def _row(arm: ArmSummary, summary: Summary) -> tuple[Cell, ...]:
    cost = arm.cost
    memory = NOTHING if np.isnan(cost.peak_memory) else f"{cost.peak_memory:,.0f}"
    texts = (
        arm.arm.dataset.label,
        arm_words(arm, summary),
        _median(cost.training),
        _median(cost.to_best),
        _median(cost.testing),
        f"{cost.n_runs:,}",
        duration(cost.total),
        memory,
    )
    return tuple(Cell(text) for text in texts)


def _median(values: NDArray[np.float64]) -> str:
    return seconds(float(np.median(values))) if len(values) else NOTHING
