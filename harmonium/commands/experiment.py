"""`harmonium experiment`: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harmonium.commands.experiment_run import list_recipes, run

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Run the paper's experiments, and make tables and figures of their results.",
)
app.command()(run)
app.command("list")(list_recipes)


@app.command()
def report(
    results: Annotated[
        Path, typer.Argument(help="The folder that 'harmonium experiment run' wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            show_default=False,
            help="Where the report goes. By default the subfolder 'report' of the results.",
        ),
    ] = None,
) -> None:
    """Write the tables and figures of an experiment, in the form of the paper.

    As Markdown, HTML and LaTeX, with the figures as PNG and SVG. Nothing is
    trained: the report shows what is there, and says what is not finished.

    [dim]Example:[/dim]  harmonium experiment report results/table2
    """
    from rich.text import Text

    from harmonium.experiments.report import write_report
    from harmonium.experiments.report.terminal import rich_table

    console = Console()
    made, folder = write_report(results, output)
    console.print(Text(made.title, style="bold"))
    console.print()
    console.print(rich_table(made.main, width=console.width))
    if made.unfinished:
        console.print(Text.assemble(("Not finished: ", "yellow"), made.unfinished))
    console.print(Text(f"Written to {folder}: report.html, report.md, report.tex, figures/"))
