"""`harmonium experiment`: the paper's experiments."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from harmonium.commands.options import argument, number, value
from harmonium.commands.output import Output
from harmonium.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from harmonium.experiments.datasets import DatasetSpec
    from harmonium.experiments.recipe import Recipe

LINE_SECONDS = 30.0  # time between two lines of progress if the output is not a terminal
COLUMNS = ("Dataset", "Model", ">Runs", ">Seconds each", ">Mean AUC so far")

app = typer.Typer()


@app.command()
def run(
    recipe: Path = argument("RECIPE", "A recipe: a file, or a name from 'list'.", ...),
    results: Path | None = value(
        "DIR", "Folder for the results; by default results/RECIPE.", "--results", "-o"
    ),
    datasets: str | None = value(
        "NAMES", "Only these datasets of the recipe, separated by commas."
    ),
    models: str | None = value("NAMES", "Only these models of the recipe, separated by commas."),
    engine: str = value(
        "ENGINE",
        "processes, serial, a Dask scheduler at tcp://HOST:PORT, or stacked: similar models as one "
        "program, for a GPU.",
        default="processes",
    ),
    jobs: int | None = number(
        None, "Number of processes; by default one per core, and just one for 'stacked'."
    ),
) -> None:
    """Run an experiment: train and test the models of a recipe.

    Results are saved as they come. Stop it whenever you like, with Ctrl-C or by force; the same
    command picks up where it left off. Without --datasets, it uses all the recipe's datasets that
    are on this machine.

    Example: harmonium experiment run recipes/small/table2.toml
    In Python: harmonium.experiments.run.run_experiment(recipe, store)
    """
    from harmonium.engine import available_cores
    from harmonium.experiments.datasets import extract_features
    from harmonium.experiments.recipe import read_recipe
    from harmonium.experiments.results import open_results, progress
    from harmonium.experiments.run import run_experiment

    path = _recipe_file(recipe)
    out = Output()
    chosen = _restricted(read_recipe(path), datasets, models, out)
    folder = results or Path("results") / path.with_suffix("").name
    out.say(Text(chosen.title, style="bold"))
    for spec in chosen.datasets:
        if spec.has_audio:  # once, before the runs need the features
            with out.bar(f"extracting features of {spec.label}") as update:
                extract_features(spec, progress=update)
    began = shown = time.monotonic()
    with open_results(folder, path.read_text(encoding="utf-8")) as store:

        def n_done() -> int:
            return int(progress(chosen, store)["done"].sum())

        def stopped(*_: int) -> str:
            saved = f"runs are saved in {folder}. The same command resumes from there."
            return f"Stopped; {n_done():,} {saved}"

        n_before = n_done()
        if n_before:
            out.say(f"{n_before:,} runs are done already.")
        with out.bar("training", stopped) as update:

            def watch(*_: Any) -> None:
                nonlocal shown
                pause = 1.0 if out.is_terminal else LINE_SECONDS
                if time.monotonic() - shown < pause:
                    return
                shown = time.monotonic()
                so_far = progress(chosen, store)
                line = _line(so_far, jobs or available_cores())
                update(int(so_far["done"].sum()), int(so_far["total"].sum()), line)
                if not out.is_terminal:
                    out.say(line)

            run_experiment(chosen, store, engine=engine, jobs=jobs, watch=watch)
        ended = progress(chosen, store)
    out.table(COLUMNS, _rows(ended))
    took = timedelta(seconds=round(time.monotonic() - began))
    out.say(
        f"{int(ended['done'].sum()) - n_before:,} runs in {took}.",
        f"Tables and figures: harmonium experiment report {folder}",
    )


def _recipe_file(recipe: Path) -> Path:
    """The file of a recipe that was named by its path, or as in the list."""
    candidates = [recipe]
    for root in _roots():
        candidates += [root / recipe, root / f"{recipe}.toml"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    return recipe  # reading it will say that there is none


@app.command("list")
def list_recipes() -> None:
    """Show the recipes, and which of their datasets are on this machine.

    Example: harmonium experiment list
    """
    from harmonium.experiments.recipe import read_recipe

    rows = []
    root_of = {path: root for root in _roots() for path in root.rglob("*.toml")}
    for path, root in sorted(root_of.items()):
        name = str(path.relative_to(root).with_suffix(""))
        recipe = read_recipe(path, trusted=True)
        datasets = [spec.label for spec in recipe.datasets if _is_found(spec)]
        rows.append((name, recipe.title, ", ".join(datasets) or "none"))
    Output().table(("Recipe", "What it does", "Datasets found"), rows)


@app.command()
def report(
    results: Path = argument("RESULTS", "The folder that 'harmonium experiment run' wrote.", ...),
    output: Path | None = value(
        "DIR",
        "Where the report goes; by default the subfolder 'report' of the results.",
        "--output",
        "-o",
    ),
) -> None:
    """Write an experiment's tables and figures, laid out as in the paper.

    Writes Markdown and HTML, tables in LaTeX, and figures as PNG and SVG. Nothing is trained: the
    report shows the results so far, and says what is missing.

    Example: harmonium experiment report results/table2
    In Python: harmonium.experiments.report.write_report("results/table2")
    """
    from harmonium.experiments.report import terminal_table, write_report

    out = Output()
    written, folder = write_report(results, output)
    out.say(Text(written.title, style="bold"), "")
    for table in written.shown:
        out.console.print(terminal_table(table, width=out.console.width), "")
    if written.unfinished:
        out.say(f"Not finished: {written.unfinished}")
    out.say(f"Written to {folder}: report.html, report.md, tables.tex, figures/")


def _roots() -> list[Path]:
    """Where the recipes are: next to the package in a checkout, inside it when installed."""
    package = Path(__file__).parent.parent
    return [root for root in (package / "recipes", package.parent / "recipes") if root.is_dir()]


def _is_found(spec: DatasetSpec) -> bool:
    """Whether a dataset is on this machine."""
    from harmonium.data.datasets import info, is_found
    from harmonium.experiments.datasets import GENERATED

    return spec.name == GENERATED or is_found(info(spec.name)) is not None


def _restricted(recipe: Recipe, datasets: str | None, models: str | None, out: Output) -> Recipe:
    """The recipe with the chosen datasets and models; by default with the datasets found."""
    specs = _chosen("dataset", {spec.label: spec for spec in recipe.datasets}, datasets)
    if not datasets:
        missing = ", ".join(spec.label for spec in specs if not _is_found(spec))
        specs = [spec for spec in specs if _is_found(spec)]
        if not specs:
            raise DataError(
                f"None of the recipe's datasets is on this machine: {missing}. Set "
                "HARMONIUM_DATA to the folder of the datasets, or run a recipe from small/."
            )
        if missing:
            out.say(f"Left out, since their files are missing: {missing}.")
    kept = _chosen("model", {spec.name: spec for spec in recipe.models}, models)
    return dataclasses.replace(recipe, datasets=tuple(specs), models=tuple(kept))


def _chosen(what: str, known: dict[str, Any], wanted: str | None) -> list[Any]:
    names = [name.strip() for name in wanted.split(",")] if wanted else [*known]
    for name in names:
        if name not in known:
            raise DataError(f"The recipe has no {what} '{name}'. It has {', '.join(known)}.")
    return [spec for label, spec in known.items() if label in names]


def _line(progress: pl.DataFrame, jobs: int) -> str:
    """How many runs are done, and the time left."""
    seconds = progress["seconds"]
    seconds = seconds.fill_null(seconds.mean() or 0.0)
    n_left = progress["total"] - progress["done"]
    left = (n_left * seconds).sum() / jobs
    line = f"{progress['done'].sum():,} of {progress['total'].sum():,} runs"
    if left:
        line += f", about {timedelta(seconds=round(left))} left"
    return line


def _rows(progress: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for dataset, model, total, done, seconds, auc in progress.iter_rows():
        seconds_each = "" if seconds is None else f"{seconds:.1f}"
        mean_auc = "" if auc is None else f"{100 * auc:.1f} %"
        yield dataset, model, f"{done} / {total}", seconds_each, mean_auc
