"""The ``harmonium`` command: thin over the library. A command is imported when it is called."""

import io
import sys
import warnings
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from harmonium import __version__
from harmonium.commands import INTERRUPTED, NOBODY_READS, NOTHING_DONE
from harmonium.commands.lazy_group import LazyGroup, Listed
from harmonium.errors import HarmoniumError, HarmoniumWarning

# A new command is a line here: its name, and the first line of its docstring.
YOUR_MUSIC = {
    "index": "Bring the library up to date with the music in folders.",
    "import": "Import people's tags, from a table or from the files themselves.",
    "train": "Learn from people's tags how tracks with each tag sound.",
    "tag": "Say which tags tracks have, with the probability of each.",
    "search": "Find tracks by their tags, the surest first.",
    "suggest": "Suggest further tags for a track that has these, whatever it sounds like.",
    "related": "List the tags that a tag makes more likely, and those that it makes less likely.",
    "say": "Say which tags a track has, and which it has not.",
    "review": "Answer the model's doubts, with one key each.",
    "rename": "Give a tag another name, or make it one with another tag.",
    "hide": "Predict and learn a tag no more.",
    "forget": "Take tracks out of the library; their files are not touched.",
    "models": "List the models that were trained, or go back to an earlier one.",
    "doctor": "Examine a library: its files, its tags, and what people may have got wrong.",
    "write": "Write tags into the files of tracks, where players look for them.",
    "undo": "Take back a change: people's tags, and files to the byte.",
    "extractor": "List what can listen to music, and fetch the weights of musicnn.",
    "serve": "Open the library in a browser: search, listen, correct, teach, train, write.",
    "demo": "Generate a music collection, learn its listeners' tags, and tag the rest of it.",
}
DATA_AND_EXPERIMENTS = {
    "features": "Compute the features of music files, and write them as a table.",
    "inspect": "Draw what a clip sounds like: its spectrum, and how its bands swing.",
    "smooth": "Predict the tags that a new user would give each clip, from who tagged what.",
    "data": "List, describe and fetch the public datasets that Harmonium reads.",
    "experiment": "Run the paper's experiments, and make tables and figures of their results.",
}
PLACES = {
    "import": "import_:import_",
    "related": "suggest:related",
    "data": "data:app",
    "extractor": "extractor:app",
    "experiment": "experiment:app",
}
"""Module and name of the commands that are not functions of their name in a module of that name."""


class Commands(LazyGroup):
    """All commands, in the order in which they are listed."""

    listed: ClassVar[Mapping[str, Listed]] = {
        name: Listed(f"harmonium.commands.{PLACES.get(name, f'{name}:{name}')}", summary, panel)
        for panel, commands in (
            ("Your music", YOUR_MUSIC),
            ("Data and experiments", DATA_AND_EXPERIMENTS),
        )
        for name, summary in commands.items()
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learns which tags people give to music, and tags the music nobody has tagged yet.",
)


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


def _say(word: str, colour: str, message: str) -> None:
    """A message on stderr, whose first word is coloured on a terminal."""
    from rich.console import Console
    from rich.text import Text

    from harmonium.commands.screen import printable

    lines = "\n".join(map(printable, message.split("\n")))
    Console(stderr=True).print(Text.assemble((word, colour), " ", lines))


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    if issubclass(category, HarmoniumWarning):
        _say("Warning:", "yellow", str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _flush() -> None:
    """Write what is still to be written; where that fails, not again at the end of the program."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def main() -> None:
    """Run the command line; an expected error is one message and exit code 2, not a traceback."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may have any letters
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            _flush()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # to Typer and Rich, a plain 1
            sys.exit(NOBODY_READS)
        raise
    except BrokenPipeError:
        sys.exit(NOBODY_READS)
    except OSError as error:  # a full disk, say: not a mistake in the program
        where = f": {error.filename}" if error.filename else ""
        _say("Error:", "red", f"{error.strerror or error}{where}.")
        sys.exit(NOTHING_DONE)
    except HarmoniumError as error:
        _say("Error:", "red", str(error))
        sys.exit(NOTHING_DONE)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(INTERRUPTED)
