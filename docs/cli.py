"""The page of all commands, docs/cli.md, from their help.

    python docs/cli.py > docs/cli.md

A test compares the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import typer

from harmonium.cli import Commands, imported_command

INTRODUCTION = """\
# The command line

`python docs/cli.py > docs/cli.md` makes this page from the commands' help. `harmonium --help` lists
the commands; `harmonium COMMAND --help` shows one. [library.md](library.md) explains those for your
music, and names the Python method of each.

**Output.** On a terminal, commands print tables with colours. In a pipe or a file, they print plain
lines with tabs between columns. Progress and notes go to standard error. With `--json`, a
command prints only JSON to standard output.

**Exit codes.**

| code | |
|---|---|
| 0 | done |
| 1 | partly done: some files or rows could not be used, and are listed; or `search` found nothing |
| 2 | nothing done: wrong usage or bad input, with a message that says what to do |
| 130 | interrupted (Ctrl-C): finished work is kept, and the same command continues |
| 141 | the pipe was closed by its reader, such as `head` |

**Completion.** `harmonium --install-completion` sets up your shell (Bash, Zsh, Fish or
PowerShell) to complete commands and options with the Tab key; `--show-completion` prints the
script instead. For the script of another shell: `_HARMONIUM_COMPLETE=source_zsh harmonium` (or
`source_bash`, `source_fish`).

**Environment.**

| variable | |
|---|---|
| `HARMONIUM_LIBRARY` | the library, unless `--library` names one: a path or a URL |
| `HARMONIUM_PERSON` | whose tags `say`, `review`, `import` and `serve` save, without `--person` |
| `HARMONIUM_CACHE` | the folder of cached features |
| `HARMONIUM_DATA` | the folder of the public datasets |
| `NO_COLOR` | if set, no colours |
"""

MIN_SHARED = 3
"""An option that this many commands share is described once."""
EXAMPLE = re.compile(r"\[dim\](Examples?|Then):\[/dim\]\s*")
PYTHON = re.compile(r"\[dim\]In Python:\[/dim\]\s*(.*)")
LABEL = re.compile(r"\[dim\]([^\[\]]+):\[/dim\]\s*")


def page() -> str:
    """The whole page as Markdown; what several commands share is described once."""
    found = dict(commands())
    rows = {name: _rows(command) for name, command in found.items()}
    times = Counter(row for some in rows.values() for row in some.items())
    shared = dict(row for row, n in times.items() if n >= MIN_SHARED)
    parts = [INTRODUCTION, "**Shared options.**\n", _table(shared)]
    for name, command in found.items():
        own = {key: text for key, text in rows[name].items() if shared.get(key) != text}
        parts += [
            f"## {name}\n",
            *_description(command.help or ""),
            *([_table(own)] if own else []),
        ]
        if also := [key.partition(",")[0] for key in rows[name] if key not in own]:
            parts.append(f"Shared options: {', '.join(also)}.\n")
    return "\n".join(parts)


def commands() -> Iterator[tuple[str, Any]]:
    """(full name, command) of every command, including those in groups."""
    for name in Commands.listed:
        command = imported_command(name)
        for word, one in getattr(command, "commands", {"": command}).items():
            yield f"harmonium {name} {word}".strip(), one


def _description(text: str) -> Iterator[str]:
    """The docstring: examples as code, other labels bold, each paragraph in one line."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith("[dim]Exit codes:"):
            continue  # the introduction has them
        if EXAMPLE.match(paragraph):
            lines = [EXAMPLE.sub("", line).strip() for line in paragraph.splitlines()]
            yield "".join(f"    {line}\n" for line in lines)
        else:
            line = " ".join(part.strip() for part in paragraph.splitlines())
            line = PYTHON.sub(r"**In Python:** `\1`", line)
            yield _without_markup(LABEL.sub(r"**\1:** ", line)) + "\n"


def _rows(command: Any) -> dict[str, str]:
    """Name → help of each parameter."""
    context = typer.Context(command)
    return {
        _name(parameter): _help(parameter, context)
        for parameter in command.get_params(context)
        if not getattr(parameter, "hidden", False) and parameter.name != "help"
    }


def _table(rows: dict[str, str]) -> str:
    lines = (f"| {name} | {text} |" for name, text in rows.items())
    return "\n".join(["| | |", "|---|---|", *lines, ""])


def _name(parameter: Any) -> str:
    """`PATH…`, or `--output`, `-o` FILE."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        return f"`{name}{'…' if parameter.nargs == -1 and '...' not in name else ''}`"
    flags = [*parameter.opts, *parameter.secondary_opts]
    value = "" if parameter.is_flag else " " + (parameter.metavar or parameter.name.upper())
    return ", ".join(f"`{flag}`" for flag in flags) + value


def _help(parameter: Any, context: Any) -> str:
    text = " ".join((parameter.help or "").split())
    default = parameter.get_default(context, call=False)
    if parameter.required:
        text += " Required."
    elif default not in (None, "") and not isinstance(default, bool):
        text += f" Default: `{default}`."
    return _without_markup(text).replace("|", r"\|")


def _without_markup(text: str) -> str:
    """The text without markup for the terminal."""
    return re.sub(r"\[/?(dim|bold|italic|green|red|yellow|cyan)\]", "", text).replace(r"\[", "[")


if __name__ == "__main__":
    print(page(), end="")
