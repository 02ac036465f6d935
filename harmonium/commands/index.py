"""`harmonium index`: the music in folders, into the library."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harmonium.commands.bars import bar
from harmonium.commands.exit_codes import IN_PART, INTERRUPTED
from harmonium.commands.library_option import LibraryOption
from harmonium.commands.listing import say, show_rows

if TYPE_CHECKING:
    from harmonium.collection import Library
    from harmonium.collection.indexing.report import IndexReport

MOST_SHOWN = 20
"""Files of each kind that are shown."""


def index(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            show_default=False,
            help="Folders of music, searched to the bottom, and files; by default all folders "
            "that were indexed before.",
        ),
    ] = None,
    library: LibraryOption = None,
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor",
            "-e",
            metavar="NAME",
            help="paper (timbre and rhythm, 389 numbers), timbre, rhythm, or one that another "
            "package provides.",
        ),
    ] = "paper",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            show_default=False,
            help="Processes to work with; by default one for each core.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="processes, serial (no other process), or the address of a Dask scheduler, "
            "tcp://HOST:PORT.",
        ),
    ] = "processes",
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Where features are kept besides, by the content of files; by default the "
            "folder that HARMONIUM_CACHE names, then the system's folder for caches.",
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use features kept before nor keep any.")
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="S", help="Seconds after which a file is given up, as its decoder hangs."
        ),
    ] = 300,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Try files again that could not be used, as they are."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all that was found as JSON.")] = (
        False
    ),
) -> None:
    """Bring the library up to date with the music in folders.

    Finds the files, notices which are new, moved, changed or gone by
    their sound, and computes features of what is new. Files that are
    what they were are not read again. People's tags are kept in any
    case: a track that is missing has them when it comes back.

    [dim]Example:[/dim]  harmonium index ~/Music

    [dim]Exit codes:[/dim]  0 all files are in the library; 1 some could not be
    used and are listed, the others are; 2 nothing was done; 130
    interrupted: the same command goes on.
    """
    from harmonium.collection.indexing.run import index as bring_up_to_date
    from harmonium.user_folders import user_cache_folder

    errors = Console(file=sys.stderr)
    began = time.monotonic()
    with _opened(library, paths or []) as opened, bar(errors, "listening") as progress:
        try:
            report = bring_up_to_date(
                opened,
                paths or (),
                extractor=extractor,
                jobs=jobs,
                engine=engine,
                cache=None if no_cache else cache or user_cache_folder(),
                progress=progress,
                time_limit=time_limit,
                retry=retry,
            )
        except KeyboardInterrupt:
            say(errors, "Stopped. What was done is kept; the same command goes on from there.")
            raise typer.Exit(INTERRUPTED) from None
        n_tracks = opened.tracks.count("present")
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        _summarise(Console(), report, n_tracks, time.monotonic() - began)
    _complain(errors, report)
    raise typer.Exit(0 if report.complete else IN_PART)


def _opened(place: str | None, paths: list[Path]) -> Library:
    """The library, which is made if there is none; but not for a folder that is not there."""
    from harmonium.collection import Library
    from harmonium.errors import LibraryError
    from harmonium.user_folders import absolute_path

    missing = [path for path in paths if not os.path.lexists(absolute_path(path))]
    if not missing:
        return Library.open(place)
    try:
        return Library.open(place, create=False)
    except LibraryError:
        raise LibraryError(f"There is no file or folder {missing[0]}.") from None


def _summarise(console: Console, report: IndexReport, n_tracks: int, seconds: float) -> None:
    """How many of each kind; on a terminal also which, where it matters."""
    rows = [
        ("new", len(report.new)),
        ("moved", len(report.moved)),
        ("changed", len(report.changed)),
        ("tagged anew", len(report.retagged)),
        ("back", len(report.back)),
        ("missing", len(report.missing)),
        ("copies", len(report.copies)),
        ("unreadable", len(report.unreadable)),
        ("unchanged", report.unchanged),
        ("tracks in the library", n_tracks),
    ]
    if not console.is_terminal:
        show_rows(console, ("", ""), [(name, str(n)) for name, n in rows])
        return
    shown = ", ".join(f"{n:,} {name}" for name, n in rows[:-1] if n) or "nothing there"
    tracks = f"{n_tracks:,} {'track' if n_tracks == 1 else 'tracks'}"
    say(console, f"{shown}; {tracks} in the library; {seconds:.1f} s")
    _list(console, "Moved", [f"{old} → {new}" for old, new in report.moved])
    _list(console, "Another sound than before; people's tags stayed with them", report.changed)
    _list(console, "Missing; people's tags are kept", report.missing)
    _list(console, "Copies", [f"{path} has the sound of {of}" for path, of in report.copies])


def _list(console: Console, title: str, lines: list[str]) -> None:
    if lines:
        say(console, f"{title}:")
        for line in lines[:MOST_SHOWN]:
            say(console, f"  {_text(line)}")
        if len(lines) > MOST_SHOWN:
            say(console, f"  and {len(lines) - MOST_SHOWN:,} more; --json lists all")


def _complain(errors: Console, report: IndexReport) -> None:
    """What could not be used, with the reasons."""
    problems = [*report.unlisted.items(), *report.unreadable.items()]
    shown = problems[:MOST_SHOWN] if errors.is_terminal else problems
    for path, reason in shown:
        say(errors, f"{_text(path)}: {reason}")
    if len(problems) > len(shown):
        say(errors, f"and {len(problems) - len(shown):,} more that could not be used; --json lists")


def _text(path: str) -> str:
    from harmonium.audio.feature_files import readable

    return readable(path)
