"""`harmonium doctor`: the health of a library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harmonium.commands.options import JsonOption, LibraryOption
from harmonium.commands.screen import percent, say, show_rows

if TYPE_CHECKING:
    from harmonium.library.doctor import Doubt, Health

ILL = 1
"""The exit code where files are unreadable or missing."""


def doctor(
    library: LibraryOption = None,
    doubts: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="How many probable mistakes in people's tags to list."
        ),
    ] = 20,
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="How many lines of each other list on a terminal."),
    ] = 10,
    as_json: JsonOption = False,
) -> None:
    """Examine a library: its files, its tags, and what people may have got wrong.

    Lists files that cannot be read or are gone, files with the same sound,
    tags that are not used or used once, tags that may be two spellings of
    one; and people's tags that surprise the model most, judged by a model
    that has not learnt from the track in question.

    [dim]Example:[/dim]  harmonium doctor --doubts 50

    [dim]Exit codes:[/dim]  0 all files are there and readable; 1 some are not;
    2 there is no library.
    """
    from harmonium.library import Library
    from harmonium.library.doctor import examine

    with Library.open(library, create=False) as opened:
        health = examine(opened, doubts=doubts)
    console = Console()
    if as_json:
        print(json.dumps(_health_record(health), indent=1))
    elif console.is_terminal:
        _show_health(console, health, limit)
    else:
        _print_lines(console, health)
    raise typer.Exit(0 if health.is_well else ILL)


def _sections(health: Health) -> dict[str, tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Kind → title, columns and rows, of all but the doubts."""
    return {
        "unreadable": (
            "Files that cannot be read",
            ("File", "Reason"),
            [(track.path, track.reason or "") for track in health.unreadable],
        ),
        "missing": ("Files that are gone", ("File",), [(track.path,) for track in health.missing]),
        "copy": (
            "Files with the same sound as another",
            ("File", "The same as"),
            [(copy.path, copy.track.path) for copy in health.copies],
        ),
        "recording": (
            "Tracks of one artist and title, with different sound",
            ("Track", "Files"),
            [(tracks[0].name, *(track.path for track in tracks)) for tracks in health.recordings],
        ),
        "spelling": (
            "Tags that may be two spellings of one",
            ("Tag", "Tracks", "Perhaps", "Tracks"),
            [(s.tag, str(s.n_tracks), s.other, str(s.n_other)) for s in health.spellings],
        ),
        "once": ("Tags of a single track", ("Tag",), [(tag,) for tag in health.once]),
        "unused": ("Tags that nobody uses any more", ("Tag",), [(tag,) for tag in health.unused]),
    }


def _print_lines(console: Console, health: Health) -> None:
    """For programs: the kind of finding, and what it is about."""
    for kind, (_, _, rows) in _sections(health).items():
        show_rows(console, (), ((kind, *row) for row in rows))
    for doubt in health.doubts or []:
        cells = (doubt.track.path, doubt.tag, _said(doubt), f"{doubt.probability:.4f}")
        show_rows(console, (), [("doubt", *cells)])


def _show_health(console: Console, health: Health, limit: int) -> None:
    sections = [(*section, limit) for section in _sections(health).values()]
    doubts: list[tuple[str, ...]] = [
        (d.track.name, d.tag, _said(d), percent(d.probability), percent(d.usual))
        for d in health.doubts or []
    ]
    title = "Possible mistakes in people's tags, the most surprising first"
    sections.append((title, ("Track", "Tag", "", "Model", "Share"), doubts, len(doubts)))
    sections = [section for section in sections if section[2]]
    for title, columns, rows, most in sections:
        headings = columns + ("",) * (max(map(len, rows)) - len(columns))
        right = ("Tracks", "Model", "Share")
        show_rows(console, headings, rows[:most], title=f"{title}: {len(rows):,}", right=right)
        if len(rows) > most:
            say(console, f"and {len(rows) - most:,} more; --json lists all")
        say(console, "")
    if health.doubts is None:
        say(
            console, "Without a model, people's tags cannot be judged: 'harmonium train' makes one."
        )
    elif not sections:
        say(console, "Nothing is amiss.")


def _said(doubt: Doubt) -> str:
    return "given" if doubt.said else "not given"


def _health_record(health: Health) -> dict[str, Any]:
    return {
        "unreadable": [{"path": t.path, "reason": t.reason} for t in health.unreadable],
        "missing": [t.path for t in health.missing],
        "copies": [{"path": c.path, "track": c.track.path} for c in health.copies],
        "recordings": [[t.path for t in tracks] for tracks in health.recordings],
        "unused": health.unused,
        "once": health.once,
        "spellings": [s._asdict() for s in health.spellings],
        "doubts": None
        if health.doubts is None
        else [{**d._asdict(), "track": d.track.path} for d in health.doubts],
    }
