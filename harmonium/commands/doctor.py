"""`harmonium doctor`: problems of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from harmonium.commands import IN_PART, options
from harmonium.commands.output import Cell, Output

if TYPE_CHECKING:
    from harmonium.library.doctor import Health


def doctor(
    library: str | None = options.LIBRARY,
    doubts: int = options.number(20, "List at most N probable mistakes in people's tags.", min=0),
    limit: int = options.number(10, "On a terminal, show at most N lines of each other list."),
    as_json: bool = options.JSON,
) -> None:
    """Check the library's files and tags for problems.

    Lists files that are unreadable or missing, files with the same sound, tags that are unused or
    used once, tags that may be spellings of one another, and people's tags that surprise the model
    most. A track's tags are judged by a model that was not trained on it.

    Example: harmonium doctor --doubts 50
    In Python: library.doctor()
    Exit codes: 0 all files are present and readable; 1 some are not; 2 there is no library.
    """
    from harmonium.library import Library

    with Library.open(library, create=False) as opened:
        health = opened.doctor(doubts)
    out = Output(as_json)
    out.json(_record(health))
    if out.is_terminal:
        _show(out, health, limit)
    else:
        for kind, (_, _, rows) in _sections(health).items():
            out.table((), [(kind, *row) for row in rows])
        for one in health.doubts or []:
            out.table((), [("doubt", one.track.path, one.tag, _said(one), one.probability)])
    raise typer.Exit(0 if health.is_well else IN_PART)


def _sections(health: Health) -> dict[str, tuple[str, tuple[str, ...], list[tuple[Cell, ...]]]]:
    """Kind → title, columns and rows, of all but the doubts."""
    copies: list[tuple[Cell, ...]] = [(copy.path, copy.track.path) for copy in health.copies]
    return {
        "unreadable": (
            "Unreadable files",
            ("File", "Reason"),
            [(track.path, track.reason) for track in health.unreadable],
        ),
        "missing": ("Missing files", ("File",), [(track.path,) for track in health.missing]),
        "copy": ("Files with the sound of another", ("File", "Other file"), copies),
        "recording": (
            "Tracks of one artist and title, with different sound",
            ("Track", "Files"),
            [(tracks[0].name, *(track.path for track in tracks)) for tracks in health.recordings],
        ),
        "spelling": (
            "Tags that may be two spellings of one",
            ("Tag", ">Tracks", "Perhaps", ">Tracks"),
            [(one.tag, one.n_tracks, one.other, one.n_other) for one in health.spellings],
        ),
        "once": ("Tags of a single track", ("Tag",), [(tag,) for tag in health.once]),
        "unused": ("Unused tags", ("Tag",), [(tag,) for tag in health.unused]),
    }


def _show(out: Output, health: Health, limit: int) -> None:
    sections = [(*section, limit) for section in _sections(health).values()]
    doubts: list[tuple[Cell, ...]] = [
        (one.track.name, one.tag, _said(one), one.probability, one.usual)
        for one in health.doubts or []
    ]
    title = "Possible mistakes in people's tags, the most surprising first"
    sections.append((title, ("Track", "Tag", "", ">Model", ">Share"), doubts, len(doubts)))
    sections = [section for section in sections if section[2]]
    for title, columns, rows, most in sections:
        headings = columns + ("",) * (max(map(len, rows)) - len(columns))
        out.table(headings, rows[:most], title=f"{title}: {len(rows):,}")
        if len(rows) > most:
            out.say(f"and {len(rows) - most:,} more; --json lists all")
        out.say("")
    if health.doubts is None:
        out.say("No model yet, so people's tags cannot be checked; run `harmonium train`.")
    elif not sections:
        out.say("No problems found.")


def _said(doubt: Any) -> str:
    return "given" if doubt.said else "not given"


def _record(health: Health) -> dict[str, Any]:
    return {
        "unreadable": [{"path": one.path, "reason": one.reason} for one in health.unreadable],
        "missing": [one.path for one in health.missing],
        "copies": [{"path": one.path, "track": one.track.path} for one in health.copies],
        "recordings": [[one.path for one in tracks] for tracks in health.recordings],
        "unused": health.unused,
        "once": health.once,
        "spellings": health.spellings,
        "doubts": None
        if health.doubts is None
        else [{**one._asdict(), "track": one.track.path} for one in health.doubts],
    }
