"""From a folder of results to a report, by the form that its recipe names, and to files.

report.md, report.html, report.tex   everything, in three formats
tables/NAME.tex                      each table alone
figures/NAME.png, NAME.svg           each figure alone
per-tag.csv                          for programs, where the form has it
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from harmonium.errors import DataError, counted
from harmonium.experiments.report import paper
from harmonium.experiments.report.averages import (
    APPROXIMATIONS,
    DAMPING,
    FEATURES,
    LEARNING,
    curves,
    grouped_bars,
)
from harmonium.experiments.report.comparison import comparison
from harmonium.experiments.report.completion import completion
from harmonium.experiments.report.numbers import ArmSummary, Summary, grouped, summarise
from harmonium.experiments.report.reliability import reliability_items
from harmonium.experiments.report.renderers import html_page, latex, latex_table, markdown
from harmonium.experiments.report.search import search, settings_table
from harmonium.experiments.report.tables import (
    NOTHING,
    Cell,
    Picture,
    Report,
    Table,
    columns,
    format_duration,
    format_seconds,
    one_line,
    text_row,
)
from harmonium.experiments.results import read_results

FORMS: dict[str, Callable[[Summary], tuple[list[Table | Picture], dict[str, str]]]] = {
    "comparison": comparison,
    "damping": lambda summary: (curves(summary, DAMPING), {}),
    "approximations": lambda summary: (grouped_bars(summary, APPROXIMATIONS), {}),
    "search": lambda summary: (search(summary), {}),
    "completion": lambda summary: (completion(summary), {}),
    "learning-curve": lambda summary: (curves(summary, LEARNING), {}),
    "feature-groups": lambda summary: (grouped_bars(summary, FEATURES), {}),
}
"""Form -> its tables and figures, the main table first, and further files."""


def build_report(folder: str | Path) -> Report:
    """The report of the results in a folder."""
    summary = summarise(*read_results(folder))
    if not summary.scores:
        raise DataError(
            f"{folder} holds {counted(summary.n_runs, 'run')}, but no test fold of its recipe is "
            "finished yet. Let 'harmonium experiment run' go on."
        )
    items, files = FORMS[summary.recipe.form](summary)
    items += reliability_items(summary)
    names = {item.name for item in items}
    further = (settings_table(summary), _times_table(summary), _unfinished_table(summary))
    items += [table for table in further if table and table.name not in names]
    return Report(
        title=summary.recipe.title,
        paragraphs=tuple(_paragraphs(summary)),
        main=next(item for item in items if isinstance(item, Table)),
        items=tuple(items),
        unfinished=_unfinished_sentence(summary),
        files=files,
    )


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    report = build_report(results)
    contents = _contents(report)
    folder = Path(results) / "report" if folder is None else Path(folder)
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"The report could not be written to {folder}: {error.strerror}. "
            "Name another folder with -o."
        ) from None
    return report, folder


def _contents(report: Report) -> dict[str, bytes]:
    """Every file by name; all are made before anything is written."""
    images: dict[str, dict[str, bytes]] = {}
    if report.figures:
        from harmonium.experiments.report.figures import image_files  # matplotlib, only to draw

        images = {figure.name: image_files(figure) for figure in report.figures}
    texts = {
        "report.md": markdown(report),
        "report.html": html_page(report, {name: files["svg"] for name, files in images.items()}),
        "report.tex": latex(report),
        **{f"tables/{table.name}.tex": latex_table(table) for table in report.tables},
        **report.files,
    }
    files = {name: text.encode() for name, text in texts.items()}
    for name, kinds in images.items():
        files |= {f"figures/{name}.{kind}": content for kind, content in kinds.items()}
    return files


def _paragraphs(summary: Summary) -> list[str]:
    recipe = summary.recipe
    runs = recipe.n_folds - 1
    protocol = (
        f"{recipe.n_folds} folds, seed {recipe.seed}. The score of a test fold is the mean of "
        f"{runs} runs, each with another of the remaining folds for early stopping and "
        f"{runs - 1} for training. Standard errors are over test folds."
    )
    made = f"{counted(summary.n_runs, 'run')} in the results"
    if summary.versions:
        made += f", made with {'; '.join(summary.versions)}"
    return [one_line(text) for text in (recipe.note, protocol, f"{made}.") if text.strip()]


def _times_table(summary: Summary) -> Table | None:
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
            *columns("Dataset", "Model", align="left"),
            *columns("Train, s", "To best, s", "Test, s", "Runs", "All runs", "Memory, MB"),
        ),
        rows=tuple(_times_row(arm, summary) for arm in measured),
    )


def _times_row(arm: ArmSummary, summary: Summary) -> tuple[Cell, ...]:
    cost = arm.cost
    each = (cost.training, cost.to_best, cost.testing)
    return text_row(
        arm.arm.dataset.label,
        summary.arm_name(arm.arm),
        *(format_seconds(float(np.median(s))) if len(s) else NOTHING for s in each),
        f"{cost.n_runs:,}",
        format_duration(cost.total),
        NOTHING if np.isnan(cost.peak_memory) else f"{cost.peak_memory:,.0f}",
    )


def _unfinished_sentence(summary: Summary) -> str:
    """How much is missing; empty where nothing is."""
    unfinished = summary.unfinished
    if not unfinished:
        return ""
    begun = sum(arm.n_finished > 0 for arm in unfinished)
    text = f"{len(unfinished)} of {len(summary.arms)} arms are not finished"
    if begun:
        text += f", {begun} of which {'has' if begun == 1 else 'have'} some finished test folds"
    return f"{text}. What is there is shown."


def _unfinished_table(summary: Summary) -> Table | None:
    """A row per arm that is partly there, and one per dataset for those without a finished fold."""
    if not summary.unfinished:
        return None
    by_dataset = grouped(summary.unfinished, lambda arm: arm.arm.dataset.label)
    rows: list[tuple[Cell, ...]] = []
    n_folds = summary.recipe.n_folds
    for dataset, arms in by_dataset.items():
        rows += [
            text_row(dataset, summary.arm_name(arm.arm), f"{arm.n_finished}/{n_folds}")
            for arm in arms
            if arm.n_finished
        ]
        absent = [summary.arm_name(arm.arm) for arm in arms if not arm.n_finished]
        if absent:
            every = sum(arm.arm.dataset.label == dataset for arm in summary.arms)
            names = "all" if len(absent) == every else "; ".join(absent)
            rows.append(text_row(dataset, names, f"0/{n_folds}"))
    return Table(
        name="unfinished",
        title="What is not finished",
        caption=(
            "An arm is a model on a dataset, trained in one way. Means are over the test folds "
            "that are finished."
        ),
        columns=(*columns("Dataset", "Arms", align="left"), *columns("Test folds")),
        rows=tuple(rows),
    )
