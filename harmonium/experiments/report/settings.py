"""Which settings the searches found, with the paper's Table 1 beside."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harmonium.experiments.report import paper
from harmonium.experiments.report.scores import arm_value, mean_known, standard_error
from harmonium.experiments.report.summary import ArmSummary, Summary
from harmonium.experiments.report.tables import NOTHING, Cell, Column, Table, first_cells
from harmonium.experiments.report.words import heading, percent, setting_words, value_words


def settings_table(summary: Summary) -> Table | None:
    """A row per arm: what was chosen on how many test folds; None where nothing was searched."""
    finished = [arm for arm in summary.arms if arm.n_finished]
    keys = _searched_keys(finished)
    if not keys:
        return None
    rows: list[tuple[Cell, ...]] = []
    seen: set[tuple[str, str]] = set()
    for arm in finished:
        rows.append(_row(arm, keys, summary))
        place = (arm.arm.dataset.name, arm.arm.model.name)
        printed = paper.settings(*place)
        if printed and place not in seen:
            rows.append(_paper_row(arm, keys, printed))
        seen.add(place)
    return Table(
        name="settings",
        title="Settings found by the search (as in the paper's Table 1)",
        caption=_caption(summary, any(cell.faint for row in rows for cell in row)),
        columns=(
            Column("Dataset", "left"),
            Column("Model", "left"),
            *(Column(heading(key), "left") for key in keys),
            Column("Validation AUC"),
            Column("Test AUC"),
        ),
        rows=tuple(rows),
        groups=first_cells(rows),
    )


def _caption(summary: Summary, beside: bool) -> str:
    folds = summary.recipe.search_folds
    caption = (
        "Chosen for each test fold by the mean AUC on "
        + ("a validation fold" if folds == 1 else f"{folds} validation folds")
        + "; the test fold has no part in it. ×n: on n of the test folds; without it, on all. AUCs "
        "are of the chosen settings, in percent, ± the standard error over folds."
    )
    return caption + (f" Rows marked “paper”: {paper.CITATION}, Table 1." if beside else "")


def _searched_keys(arms: Sequence[ArmSummary]) -> list[str]:
    """The settings that some model searches, in the order of the recipe."""
    return list(
        dict.fromkeys(key for arm in arms for stage in arm.stages for key in stage.points[0])
    )


def _row(arm: ArmSummary, keys: list[str], summary: Summary) -> tuple[Cell, ...]:
    texts = (
        arm.arm.dataset.label,
        arm_words(arm, summary),
        *(chosen_words(key, arm.chosen) for key in keys),
        percent(float(mean_known(arm.valid_aucs)), standard_error(arm.valid_aucs)),
        percent(arm.scores[0].mean, arm.scores[0].error),
    )
    return tuple(Cell(text) for text in texts)


def _paper_row(arm: ArmSummary, keys: list[str], printed: dict[str, float]) -> tuple[Cell, ...]:
    values = [value_words(key, printed[key]) if key in printed else NOTHING for key in keys]
    texts = (arm.arm.dataset.label, f"{arm.arm.model.name}, paper", *values, NOTHING, NOTHING)
    return tuple(Cell(text, faint=True) for text in texts)


def arm_words(arm: ArmSummary, summary: Summary) -> str:
    """The model and whatever else tells an arm from the others on its dataset."""
    axes = ("model", *summary.varying("dataset", "model", "inference", "known"))
    return ", ".join(setting_words(axis, arm_value(arm.arm, axis)) for axis in axes)


def chosen_words(key: str, chosen: Sequence[dict[str, Any]]) -> str:
    """How often each value was chosen, the most frequent first: 0.01 ×4, 0.1 ×1."""
    counts = Counter(value_words(key, settings[key]) for settings in chosen if key in settings)
    if not counts:
        return NOTHING
    if len(counts) == 1 and counts.total() == len(chosen):
        return next(iter(counts))
    return ", ".join(f"{value}\u00a0×{times}" for value, times in counts.most_common())
