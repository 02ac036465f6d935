"""The ``harmonium`` command: thin over the library. Heavy imports happen inside the commands."""

import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from harmonium import __version__
from harmonium.commands import data, experiment
from harmonium.commands.demo import demo
from harmonium.commands.features import features
from harmonium.commands.inspect import inspect
from harmonium.commands.smooth import smooth
from harmonium.errors import HarmoniumError, HarmoniumWarning

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learns which tags people give to music, and tags the music nobody has tagged yet.",
)
app.add_typer(data.app, name="data")
app.add_typer(experiment.app, name="experiment")
app.command()(demo)
app.command()(features)
app.command()(inspect)
app.command()(smooth)

err = Console(stderr=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"harmonium {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    if issubclass(category, HarmoniumWarning):
        err.print(f"[yellow]Warning:[/yellow] {escape(str(message))}", highlight=False)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def main() -> None:
    """Run the command line; an expected error is one message and exit code 1, not a traceback."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        app()
    except HarmoniumError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        err.print("Stopped.")
        sys.exit(130)
