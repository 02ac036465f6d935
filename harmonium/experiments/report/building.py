"""From a folder of results to a report, by the form that its recipe names."""

from collections.abc import Callable
from pathlib import Path

from harmonium.errors import DataError
from harmonium.experiments.report.comparison import comparison
from harmonium.experiments.report.curves import COMPLETION, DAMPING, LEARNING, curves
from harmonium.experiments.report.grouped import APPROXIMATIONS, FEATURES, grouped
from harmonium.experiments.report.progress import unfinished_table, unfinished_words
from harmonium.experiments.report.reading import read_folder
from harmonium.experiments.report.search import search
from harmonium.experiments.report.settings import settings_table
from harmonium.experiments.report.summary import Summary, summarise
from harmonium.experiments.report.tables import Figure, Report, Table
from harmonium.experiments.report.times import times_table
from harmonium.experiments.report.words import number, one_line

Items = list[Table | Figure]

FORMS: dict[str, Callable[[Summary], tuple[Items, dict[str, str]]]] = {
    "comparison": comparison,
    "damping": lambda summary: (curves(summary, DAMPING), {}),
    "approximations": lambda summary: (grouped(summary, APPROXIMATIONS), {}),
    "search": lambda summary: (search(summary), {}),
    "completion": lambda summary: (curves(summary, COMPLETION), {}),
    "learning-curve": lambda summary: (curves(summary, LEARNING), {}),
    "feature-groups": lambda summary: (grouped(summary, FEATURES), {}),
}
"""Form -> its tables and figures, the main table first, and further files."""


def build_report(folder: str | Path) -> Report:
    """The report of the results in a folder."""
    summary = summarise(*read_folder(folder))
    if not summary.scores:
        raise DataError(
            f"{folder} holds {number(summary.n_runs, 'run')}, but no test fold of its recipe is "
            "finished yet. Let 'harmonium experiment run' go on."
        )
    items, files = FORMS[summary.recipe.form](summary)
    names = {item.name for item in items}
    further = (settings_table(summary), times_table(summary), unfinished_table(summary))
    items += [table for table in further if table and table.name not in names]
    main = next(item for item in items if isinstance(item, Table))
    return Report(
        title=summary.recipe.title,
        paragraphs=tuple(_paragraphs(summary)),
        main=main,
        items=tuple(items),
        unfinished=unfinished_words(summary),
        files=files,
    )


def _paragraphs(summary: Summary) -> list[str]:
    recipe = summary.recipe
    runs = recipe.n_folds - 1
    protocol = (
        f"{recipe.n_folds} folds, seed {recipe.seed}. The score of a test fold is the mean of "
        f"{runs} runs, each with another of the remaining folds for early stopping and "
        f"{runs - 1} for training. Standard errors are over test folds."
    )
    made = f"{number(summary.n_runs, 'run')} in the results"
    versions = "; ".join(summary.versions)
    paragraphs = [
        recipe.note,
        protocol,
        f"{made}, made with {versions}." if versions else f"{made}.",
    ]
    return [one_line(text) for text in paragraphs if text.strip()]
