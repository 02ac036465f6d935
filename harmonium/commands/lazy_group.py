"""Commands that are imported when they are called, so that `harmonium --help` need not wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from harmonium.commands import INTERRUPTED


class Listed(NamedTuple):
    """A command, as much of it as `harmonium --help` shows."""

    place: str
    """"module:name" of its function, or of the `typer.Typer` of a group of commands."""
    summary: str
    """The first line of its own help; a test compares them."""
    panel: str
    """The heading under which it is listed."""


class LazyGroup(TyperGroup):
    """A group whose commands are known by name and summary until one is called.

    `listed` has them, in the order of the help; a subclass sets it.
    """

    listed: ClassVar[Mapping[str, Listed]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands(self.listed)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(self.listed)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What to show of a command; not itself, which need not be imported for that."""
        if cmd_name not in self.listed:
            return None
        _, summary, panel = self.listed[cmd_name]
        return TyperCommand(name=cmd_name, help=summary, rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments call, and the arguments that are left for it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.commands[name], rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C is one line and exit code 130 for all."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def main(self, args: Any = None, *others: Any, **options: Any) -> Any:
        """Run the command that the arguments call, by default those of the process."""
        try:
            return super().main(args, *others, **options)
        except SystemExit as end:
            if args is None and end.code == INTERRUPTED and "jax" in sys.modules:
                _leave(INTERRUPTED)
            raise


def _leave(code: int) -> None:
    """End the process without taking Python down: a computation that JAX has under way outlives
    Ctrl-C, and would crash when the interpreter is gone.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


class _Commands(Mapping[str, Any]):
    """Name → command, imported when it is asked for."""

    def __init__(self, listed: Mapping[str, Listed]) -> None:
        self._listed = listed

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __getitem__(self, name: str) -> Any:
        place, _, panel = self._listed[name]
        module, _, attribute = place.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            command: Any = typer.main.get_group(found)
        else:
            alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
            alone.command(name, cls=getattr(found, "command_class", None))(found)
            command = typer.main.get_command(alone)
        command.name, command.rich_help_panel = name, panel
        return command
