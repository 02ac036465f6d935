"""Tables and figures from results on disk. Nothing is trained, and JAX is not imported.

- ``build_report(folder)`` makes a `Report` of a folder of results: tables and figures as data.
- ``write_report(folder)`` writes it as Markdown, HTML and LaTeX with figures as PNG and SVG.
- ``summarise(recipe, results, measurements)`` gives the numbers behind it as arrays.

The files of a report:

    report.md, report.html, report.tex   everything, in three formats
    tables/NAME.tex                      each table alone
    figures/NAME.png, NAME.svg           each figure alone
    per-tag.csv                          for programs, where the form has it
"""

from pathlib import Path

from harmonium.errors import DataError, counted
from harmonium.experiments.report.formats import (
    NOTHING,
    Report,
    Table,
    html_page,
    latex,
    latex_table,
    markdown,
    one_line,
)
from harmonium.experiments.report.forms import FORMS, per_tag_csv, reliability_items, settings_table
from harmonium.experiments.report.numbers import (
    Summary,
    format_duration,
    format_seconds,
    grouped,
    measured,
    summarise,
)
from harmonium.experiments.results import read_results

__all__ = ["Report", "build_report", "summarise", "write_report"]


def build_report(folder: str | Path) -> Report:
    """The report of the results in a folder."""
    summary = summarise(*read_results(folder))
    if not summary.scores:
        raise DataError(
            f"{folder} holds {counted(summary.n_runs, 'run')}, but no test fold of its recipe is "
            "finished yet. Let 'harmonium experiment run' go on."
        )
    form = summary.recipe.form
    items = FORMS[form](summary)
    settings = [] if form == "search" else settings_table(summary)
    items += [*reliability_items(summary), *settings, *_times(summary), *_unfinished(summary)]
    return Report(
        title=summary.recipe.title,
        paragraphs=tuple(_paragraphs(summary)),
        items=tuple(items),
        unfinished=_unfinished_sentence(summary),
        files={"per-tag.csv": per_tag_csv(summary)} if form == "comparison" else {},
    )


def write_report(results: str | Path, folder: str | Path | None = None) -> tuple[Report, Path]:
    """Write the report of a folder of results; by default into its subfolder ``report``.

    Nothing is trained. The same results give the same files, byte for byte.
    """
    report = build_report(results)
    contents = _contents(report)  # all of it, before anything is written
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
    """Every file by name."""
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
    versions = f", made with {'; '.join(summary.versions)}" if summary.versions else ""
    made = f"{counted(summary.n_runs, 'run')} in the results{versions}."
    return [one_line(text) for text in (recipe.note, protocol, made) if text.strip()]


def _times(summary: Summary) -> list[Table]:
    """Seconds and memory by arm; no table if nothing was measured."""
    rows = []
    for arm in summary.arms:
        columns = ("seconds", "seconds_to_best", "test_seconds")
        seconds = [measured(arm.final_runs, name) for name in columns]
        if not len(seconds[0]):
            continue
        parts = ("seconds", "test_seconds", "smoothing_seconds")
        total = sum(measured(arm.all_runs, part).sum() for part in parts)
        memory = measured(arm.all_runs, "peak_memory_mb")
        rows.append(
            (
                arm.arm.dataset.label,
                summary.arm_name(arm.arm),
                *map(format_seconds, seconds),
                f"{len(arm.all_runs):,}",
                format_duration(total),
                f"{memory.max():,.0f}" if len(memory) else NOTHING,
            )
        )
    table = Table(
        name="times",
        title="Time and memory",
        caption="Train, to the best epoch, test: seconds of one run with the chosen settings, the "
        "median. All runs: everything that the finished test folds took, search, smoothing and "
        "testing included, if done one run after the other. Memory: the largest of any process, "
        "which may have done other runs before. The paper reports about 48 CPU-hours for training "
        "a DRBM on its MajorMiner data.",
        header=(
            *("Dataset", "Model", "Train, s", "To best, s", "Test, s"),
            *("Runs", "All runs", "Memory, MB"),
        ),
        align="ll",
        rows=rows,
    )
    return [table] if rows else []


def _unfinished_sentence(summary: Summary) -> str:
    """How much is missing; empty where nothing is."""
    unfinished = summary.unfinished
    if not unfinished:
        return ""
    begun = sum(arm.n_finished > 0 for arm in unfinished)
    return (
        f"{len(unfinished)} of {len(summary.arms)} arms are not finished, {begun} of them with "
        "some finished test folds. The report shows what is there."
    )


def _unfinished(summary: Summary) -> list[Table]:
    """A row per arm that is partly there, and one per dataset for those without a finished fold."""
    rows = []
    n_folds = summary.recipe.n_folds
    for dataset, arms in grouped(summary.unfinished, lambda arm: arm.arm.dataset.label).items():
        names = {summary.arm_name(arm.arm): arm.n_finished for arm in arms}
        rows += [(dataset, name, f"{n}/{n_folds}") for name, n in names.items() if n]
        missing = [name for name, n in names.items() if not n]
        if missing:
            every = sum(arm.arm.dataset.label == dataset for arm in summary.arms)
            text = "all" if len(missing) == every else "; ".join(missing)
            rows.append((dataset, text, f"0/{n_folds}"))
    table = Table(
        name="unfinished",
        title="Not finished",
        caption="An arm is a model on a dataset, trained in one way. Means are over the test folds "
        "that are finished.",
        header=("Dataset", "Arms", "Test folds"),
        align="ll",
        rows=rows,
    )
    return [table] if rows else []
