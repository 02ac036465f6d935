"""The ``harmonium`` command. Each command is imported when it is called, so that help is fast."""

import io
import os
import re
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from harmonium import __version__
from harmonium.commands import INTERRUPTED, NOTHING_DONE, PIPE_CLOSED
from harmonium.errors import DataError, HarmoniumError, HarmoniumWarning

# A new command is a line here: its name, its module, and the first line of its docstring.
# "module:name" if the function has another name than the command.
PANELS = {
    "Your music": (
        ("index", "index", "Scan folders of music and update the library."),
        ("import", "import_:import_", "Import tags from a table, the music files or beets."),
        ("train", "train", "Train a model on your tags."),
        ("tag", "tag", "Tag files or the whole library."),
        ("search", "search", "Search tracks by their tags, the most likely first."),
        ("playlists", "playlists", "List the saved searches, or write their playlists."),
        ("push", "playlists", "Make or refresh a playlist on a Subsonic server."),
        ("suggest", "search", "Suggest more tags for a track that has these."),
        ("related", "search", "List the tags that a tag makes more likely, and less likely."),
        ("say", "corrections", "Set the tags of tracks; -TAG rejects one."),
        ("review", "corrections", "Answer the model's questions about doubtful tags."),
        ("rename", "corrections", "Rename or merge a tag."),
        ("hide", "corrections", "Hide tags."),
        ("kind", "corrections", "List the tags by kind, or set the kind of tags."),
        ("forget", "corrections", "Remove tracks from the library; their files are not touched."),
        ("models", "train", "List the trained models, or switch to another one."),
        ("doctor", "index", "Check the library's files and tags for problems."),
        ("write", "write", "Write tags into the music files, where players read them."),
        ("undo", "corrections", "Undo a change: tags, and files to the byte."),
        ("extractor", "features:extractor", "List the feature extractors."),
        ("serve", "serve", "Open the library in a browser."),
        ("demo", "demo", "Generate music, learn its tags, and tag the rest of it."),
    ),
    "Data and experiments": (
        ("features", "features", "Compute the features of music files as a table."),
        ("smooth", "smooth", "Predict the tags that a new user would give each clip."),
        ("data", "data:app", "List and describe the public datasets."),
        ("experiment", "experiment:app", "Run the paper's experiments, and report the results."),
    ),
}
TAKE_REJECTED_TAGS = ("search", "say", "push")  # arguments may be tags with a minus: jazz -rock
LABELS = "Example|In Python|Exit codes|Then"  # words that start a paragraph of the help


class _PlainHelp:
    """Help without the types of arguments and flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, including --help."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument" or parameter.is_flag:
                parameter.display_type_rich = lambda ctx: None
        return parameters


class Command(_PlainHelp, TyperCommand):
    """A command whose help is its docstring, in paragraphs that are as wide as the terminal."""

    def __init__(self, *names: Any, help: str | None = None, **options: Any) -> None:
        text = re.sub(rf"\n+({LABELS}): +", r"\n\n[dim]\1:[/dim]  ", help or "")
        paragraphs = [" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n")]
        super().__init__(*names, help="\n\n".join(paragraphs), **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a space before rejected tags, so that they are not options; readers strip it."""
        if self.name in TAKE_REJECTED_TAGS:
            flags = {flag for parameter in self.params for flag in parameter.opts} | {"-h"}
            end = args.index("--") if "--" in args else len(args)
            args = [_shielded(argument, flags) for argument in args[:end]] + args[end:]
        return super().parse_args(ctx, args)


def _shielded(argument: str, flags: set[str]) -> str:
    """An argument with a space before it if it is a rejected tag; -n, -n20 and --long are not."""
    if len(argument) < 2 or argument[0] != "-" or argument[1] == "-" or argument in flags:
        return argument
    is_flag_with_number = argument[:2] in flags and re.fullmatch(r"-.[\d.]+", argument)
    return argument if is_flag_with_number else f" {argument}"


class Group(_PlainHelp, TyperGroup):
    """A group of commands."""


class Listed(NamedTuple):
    """A command that is not imported yet."""

    module: str
    attribute: str  # its function or `typer.Typer`
    summary: str  # the first line of its help
    panel: str  # the heading that it is listed under


def _listed() -> dict[str, Listed]:
    """All commands by name."""
    commands = {}
    for panel, entries in PANELS.items():
        for name, place, summary in entries:
            module, _, attribute = place.partition(":")
            commands[name] = Listed(
                module=f"harmonium.commands.{module}",
                attribute=attribute or name,
                summary=summary,
                panel=panel,
            )
    return commands


class Commands(Group):
    """All commands; each is a name and a summary until it is called."""

    listed: ClassVar[Mapping[str, Listed]] = _listed()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {}
        for name, listed in self.listed.items():
            self.commands[name] = TyperCommand(
                name=name, help=listed.summary, rich_help_panel=listed.panel
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments call, and its own arguments."""
        if args[0] not in self.commands:
            folder = os.path.expanduser(args[0])  # noqa: PTH111 - whatever it is, it is no error
            is_path = os.sep in folder or os.path.exists(folder)  # noqa: PTH110
            if is_path and not os.path.isdir(folder):  # noqa: PTH112
                raise DataError(f"{folder} is not a folder. `harmonium tag FILE` tags a file.")
            if is_path:
                args = ["serve", *args]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and imported_command(name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C is one line and exit code 130 for all."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort) as stop:  # Abort: while a question was open
            new_line = "\n" if isinstance(stop, typer.Abort) else ""
            typer.echo(f"{new_line}Stopped.", err=True)
            raise typer.Exit(INTERRUPTED) from None


def imported_command(name: str) -> Any:
    """A command with its options and its whole help; a `typer.Typer` is a group of commands."""
    listed = Commands.listed[name]
    target = getattr(import_module(listed.module), listed.attribute)
    if isinstance(target, typer.Typer):
        for registered in target.registered_commands:
            registered.cls = Command
        target.info.cls = Group
        target.info.help = listed.summary
        target.info.no_args_is_help = True
        command: Any = typer.main.get_group(target)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=Command)(target)
        command = typer.main.get_command(alone)
    command.name = name
    return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn how you tag music, and tag the rest of it. `harmonium FOLDER` indexes a folder of "
    "music and opens it in the browser.",
    epilog="Exit codes: 0 done; 1 done in part, the rest is listed; 2 nothing done; 130 "
    "interrupted (Ctrl-C), the same command continues.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"harmonium {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options before the command."""


def _complain(word: str, colour: str, message: str) -> None:
    """A message on stderr, whose first word is coloured on a terminal."""
    from rich.console import Console
    from rich.text import Text

    from harmonium.commands.output import printable

    lines = "\n".join(map(printable, message.split("\n")))
    Console(stderr=True).print(Text.assemble((word, colour), " ", lines))


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    if issubclass(category, HarmoniumWarning):
        _complain("Warning:", "yellow", str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _flush() -> None:
    """Write what is in the buffer; if that fails, do not try again when the program ends."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def main() -> None:
    """Run the command line; an expected error is one message and exit code 2, not a traceback."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may contain any bytes
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            _flush()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer and Rich exit with 1
            sys.exit(PIPE_CLOSED)
        raise
    except BrokenPipeError:
        sys.exit(PIPE_CLOSED)
    except OSError as error:  # such as a full disk: not a bug
        where = f": {error.filename}" if error.filename else ""
        _complain("Error:", "red", f"{error.strerror or error}{where}.")
        sys.exit(NOTHING_DONE)
    except HarmoniumError as error:
        _complain("Error:", "red", str(error))
        sys.exit(NOTHING_DONE)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(INTERRUPTED)
