"""Tags with a minus before them among a command's arguments: `harmonium search jazz -rock`."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from typer.core import TyperCommand

Function = TypeVar("Function", bound=Callable[..., Any])
_WITH_A_NUMBER = re.compile(r"-.[\d.]+")


class _DeniedTags(TyperCommand):
    """A command for which "-rock" is a tag that does not hold, and not the options -r, -o …"""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a space before such tags, with which they are no options; readers strip it."""
        flags = {flag for parameter in self.params for flag in parameter.opts} | {"-h"}
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*(_shielded(a, flags) for a in args[:end]), *args[end:]])


def _shielded(argument: str, flags: set[str]) -> str:
    """An argument with a space before it if it is a denied tag; options are -n, -n20 and --long."""
    if len(argument) < 2 or argument[0] != "-" or argument[1] == "-" or argument in flags:
        return argument
    if argument[:2] in flags and _WITH_A_NUMBER.fullmatch(argument):
        return argument
    return f" {argument}"


def takes_denied_tags(function: Function) -> Function:
    """Let the arguments of a command be tags with a minus before them."""
    function.command_class = _DeniedTags  # type: ignore[attr-defined]
    return function
