"""Tables and figures from results on disk. Nothing is trained, and JAX is not imported.

- ``build_report(folder)`` makes a `Report` of a folder of results: tables and figures as data.
- ``write_report(folder)`` writes it as Markdown and HTML with figures as PNG and SVG.
- ``summarise(recipe, results, measurements)`` gives the numbers behind it as arrays.

docs/experiments.md lists the files of a report.
"""

from pathlib import Path

from harmonium.errors import DataError, counted
from harmonium.experiments.recipe import Recipe
from harmonium.experiments.report.comparison import per_tag_csv
from harmonium.experiments.report.formats import (
    Report,
    html_page,
    latex_table,
    markdown,
    on_one_line,
)
from harmonium.experiments.report.formats import terminal_table as terminal_table
from harmonium.experiments.report.forms import FORMS
from harmonium.experiments.report.items import Bold, Items, Picture, Table
from harmonium.experiments.report.numbers import Summary, summarise
from harmonium.experiments.report.quality import reliability_items, sets_table, times_table
from harmonium.experiments.report.search import settings_table
from harmonium.experiments.results import read_results

__all__ = ["Report", "build_report", "summarise", "terminal_table", "write_report"]


def build_report(folder: str | Path) -> Report:
    """The report of the results in a folder."""
    summary = summarise(*read_results(folder))
    recipe = summary.recipe
    if not summary.scores:
        raise DataError(
            f"{folder} holds {counted(summary.n_runs, 'run')}, but no test fold of its recipe is "
            "finished yet. Let 'harmonium experiment run' continue."
        )
    paragraphs = [on_one_line(text) for text in (recipe.note, _protocol(recipe), _origin(summary))]
    paragraphs = [text for text in paragraphs if text]
    unfinished = _unfinished(summary)
    if unfinished:
        paragraphs.append(Bold(f"Not finished: {unfinished}"))
    files = {}
    if recipe.form == "comparison":
        files["per-tag.csv"] = per_tag_csv(summary)
    return Report(
        title=recipe.title,
        paragraphs=tuple(paragraphs),
        items=tuple(_items(summary)),
        unfinished=unfinished,
        files=files,
    )


def _items(summary: Summary) -> Items:
    """The tables and figures that are not empty, in the order of reading."""
    form = summary.recipe.form
    items = FORMS[form](summary) + reliability_items(summary)
    if form != "search":
        items.append(settings_table(summary))
    items.append(sets_table(summary))
    items.append(times_table(summary))
    return [item for item in items if not _is_empty(item)]


def _is_empty(item: Table | Picture) -> bool:
    if isinstance(item, Table):
        return not item.records
    return not item.panels


def _protocol(recipe: Recipe) -> str:
    """How a score came about."""
    n_runs = recipe.n_folds - 1
    whole = "A model" if recipe.cross_fit else "The score of a test fold"
    parts = "members" if recipe.cross_fit else "runs"
    text = (
        f"{recipe.n_folds} folds, seed {recipe.seed}. {whole} is the mean of {n_runs} {parts}, "
        f"each with another of the remaining folds for early stopping and {n_runs - 1} for "
        "training. Standard errors are over test folds."
    )
    refitted = [model.name for model in recipe.models if recipe.cross_fit and model.refit]
    if refitted:
        text += f" {' and '.join(refitted)}: tested as one model of all {n_runs} folds."
    return text


def _origin(summary: Summary) -> str:
    """How many runs there are, and what they were made with."""
    text = f"{counted(summary.n_runs, 'run')} in the results"
    if summary.versions:
        text += f", made with {'; '.join(summary.versions)}"
    return f"{text}."


def _unfinished(summary: Summary) -> str:
    """A sentence on the arms that are not finished; empty if all are."""
    unfinished = summary.unfinished
    if not unfinished:
        return ""
    n_begun = sum(arm.n_finished > 0 for arm in unfinished)
    return (
        f"{len(unfinished)} of {len(summary.arms)} arms are not finished, {n_begun} of "
        "them with some finished test folds. The report shows what is there."
    )


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    from harmonium.experiments.report.figures import image_files  # matplotlib, only to draw

    report = build_report(results)
    files: dict[str, bytes] = {}
    for figure in report.figures:
        for kind, image in image_files(figure).items():
            files[f"figures/{figure.name}.{kind}"] = image
    texts = {
        "report.md": markdown(report),
        "report.html": html_page(report, files),
        "tables.tex": "\n".join(map(latex_table, report.tables)),
        **report.files,
    }
    for name, text in texts.items():
        files[name] = text.encode()

    folder = Path(results) / "report" if folder is None else Path(folder)
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"The report could not be written to {folder}: {error.strerror}. "
            "Name another folder with -o."
        ) from None
    return report, folder
