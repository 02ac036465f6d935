"""`harmonium undo`: take back what a command did to people's tags and to files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands import INTERRUPTED, exit_code
from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import bar, say, say_failures, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harmonium.library.store.changes import Change, UndoReport


def undo(
    change: Annotated[
        int | None,
        typer.Argument(
            metavar="CHANGE",
            help="The number of the change; by default the last one that is not undone.",
        ),
    ] = None,
    library: LibraryOption = None,
    list_changes: Annotated[
        bool, typer.Option("--list", "-l", help="List the last changes, and undo nothing.")
    ] = False,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many changes --list shows.")
    ] = 20,
    fields_only: Annotated[
        bool,
        typer.Option(
            "--fields-only",
            help="In files that were changed since, restore the fields that still have what was "
            "written, and leave the rest.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back a change: people's tags, and files to the byte.

    Everything that changes people's tags, files, tracks or the model in
    use can be undone, and so can an undo: name its number. What later
    changes touched stays as they left it, and so do files that another
    program changed since; both are listed, and without a number the next
    undo passes over them.

    [dim]Example:[/dim]  harmonium undo --list

    [dim]Exit codes:[/dim]  0 all of it is undone; 1 a part is, the rest is
    listed; 2 nothing was done; 130 interrupted, the same command goes on.
    """
    from harmonium.library import Library
    from harmonium.library.write import last_change, undo_change

    with Library.open(library, create=False) as opened:
        if list_changes:
            _list(opened.changes.list(limit), as_json)
            return
        wanted = last_change(opened) if change is None else opened.changes.get(change)
        errors = Console(stderr=True)
        with bar(errors, "restoring") as progress:
            try:
                report = undo_change(opened, wanted.id, exact=not fields_only, progress=progress)
            except KeyboardInterrupt:
                say(errors, f"Stopped. To go on: harmonium undo {wanted.id}")
                raise typer.Exit(INTERRUPTED) from None
        if report.ended or report.revived or report.values_restored:
            learn(opened)
    _report(wanted, report, as_json)
    raise typer.Exit(exit_code(report.n_done, report.n_left))


def _list(changes: Sequence[Change], as_json: bool) -> None:
    """The latest first: a table for people, lines for programs."""
    if as_json:
        records = [{**asdict(change), "at": change.at.isoformat()} for change in changes]
        print(json.dumps(records, ensure_ascii=False, indent=2))
        return
    console = Console()
    if console.is_terminal and not changes:
        say(console, "Nothing was changed yet.")
        return
    rows: list[tuple[str | Text, ...]] = []
    for one in changes:
        here = one.at.astimezone().strftime("%Y-%m-%d %H:%M")
        when = here if console.is_terminal else one.at.isoformat()
        number = Text(str(one.id), style="cyan")
        rows.append((number, when, one.command, one.summary, Text(_undone(one), style="dim")))
    show_rows(console, ("Change", "When", "Command", "What", ""), rows, right=("Change",))


def _undone(change: Change) -> str:
    if change.undone_by is not None:
        return f"undone by {change.undone_by}"
    if change.undone_in_part_by is None:
        return ""
    if change.left is None:
        return f"undoing was interrupted, {change.undone_in_part_by}"
    return f"undone in part by {change.undone_in_part_by}, {change.left:,} left"


def _report(change: Change, report: UndoReport, as_json: bool) -> None:
    from harmonium.library.store.changes import SETTING

    errors = Console(stderr=True)
    say_failures(errors, (report.files_left | report.values_left).items())
    for later, n in sorted(report.conflicts.items()):
        stay = "stays as it is" if n == 1 else "stay as they are"
        say(errors, f"{counted(n, 'tag')} {stay}: change {later} came later. Undo that one first.")
    if as_json:
        record = {
            "undone": change.id,
            "change": report.change,
            "tags": report.ended + report.revived,
            "files": report.files_restored,
            "complete": report.complete,
        }
        print(json.dumps(record))
        return
    parts = []
    if report.ended:
        parts.append(f"{counted(report.ended, 'tag')} taken back")
    if report.revived:
        parts.append(f"{counted(report.revived, 'tag')} there again")
    parts += [
        f"{counted(n, what)} set back"
        for what, n in report.values_restored.items()
        if what != SETTING or not parts  # which only says that the change is remembered
    ]
    if report.files_restored or not parts:
        parts.append(f"{counted(report.files_restored, 'file')} restored")
    undone = "undone" if report.complete else "undone in part"
    amount = ", ".join(parts)
    what = f"Change {change.id} ({change.command}: {change.summary})"
    say(Console(), f"{what} is {undone}: {amount}.")
    if not report.complete:
        print(f"To try the rest again: harmonium undo {change.id}")
    if report.n_done:
        print(f"To have it back: harmonium undo {report.change}")
