"""`harmonium undo`: take back what a command did to people's tags and to files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harmonium.commands import INTERRUPTED, exit_code
from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.screen import bar, count, plain_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harmonium.collection.store.changes import Change, UndoReport


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

    Imports, tags that people gave, and writes to files can be undone, and
    so can undoing: name its number. What later changes touched stays as
    they left it, and so do files that another program changed since;
    both are listed.

    [dim]Example:[/dim]  harmonium undo --list

    [dim]Exit codes:[/dim]  0 all of it is undone; 1 a part is, the rest is
    listed; 2 nothing was done; 130 interrupted, the same command goes on.
    """
    from harmonium.collection import Library
    from harmonium.collection.writing.restore import last_change, undo_change

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
    _report(wanted, report, as_json)
    n_done = report.ended + report.revived + report.files_restored
    raise typer.Exit(exit_code(n_done, 0 if report.complete else 1))


def _list(changes: Sequence[Change], as_json: bool) -> None:
    """The latest first: a table for people, lines for programs."""
    if as_json:
        print(
            json.dumps([_change_record(change) for change in changes], ensure_ascii=False, indent=2)
        )
        return
    console = Console()
    if not console.is_terminal:
        for one in changes:
            print(one.id, one.at.isoformat(), one.command, one.summary, _state(one), sep="\t")
        return
    if not changes:
        console.print("Nothing was changed yet.")
        return
    table = plain_table()
    table.add_column("Change", justify="right", style="cyan", no_wrap=True)
    for heading in ("When", "Command"):
        table.add_column(heading, no_wrap=True)
    table.add_column("What", overflow="fold")
    table.add_column("", style="dim", no_wrap=True)
    for one in changes:
        when = one.at.astimezone().strftime("%Y-%m-%d %H:%M")
        table.add_row(str(one.id), when, one.command, one.summary, _state(one))
    console.print(table)


def _state(change: Change) -> str:
    return "" if change.undone_by is None else f"undone by {change.undone_by}"


def _change_record(change: Change) -> dict[str, object]:
    return {
        "id": change.id,
        "at": change.at.isoformat(),
        "command": change.command,
        "summary": change.summary,
        "undoes": change.undoes,
        "undone_by": change.undone_by,
    }


def _report(change: Change, report: UndoReport, as_json: bool) -> None:
    from harmonium.collection.writing.write_tracks import FailedFile
    from harmonium.commands.write_report import show_failures

    errors = Console(stderr=True)
    show_failures(errors, [FailedFile(path, why) for path, why in report.files_left.items()])
    for later, n in sorted(report.conflicts.items()):
        stay = "stays as it is" if n == 1 else "stay as they are"
        say(errors, f"{count(n, 'tag')} {stay}: change {later} came later. Undo that one first.")
    if as_json:
        print(
            json.dumps(
                {
                    "undone": change.id,
                    "change": report.change,
                    "tags": report.ended + report.revived,
                    "files": report.files_restored,
                    "complete": report.complete,
                }
            )
        )
        return
    print(_undone(change, report))
    print(f"To have it back: harmonium undo {report.change}")


def _undone(change: Change, report: UndoReport) -> str:
    parts = []
    if report.ended:
        parts.append(f"{count(report.ended, 'tag')} taken back")
    if report.revived:
        parts.append(f"{count(report.revived, 'tag')} there again")
    if report.files_restored or not parts:
        parts.append(f"{count(report.files_restored, 'file')} restored")
    undone = "undone" if report.complete else "undone in part"
    amount = ", ".join(parts)
    return f"Change {change.id} ({change.command}: {change.summary}) is {undone}: {amount}."
