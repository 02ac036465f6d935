"""`harmonium index`: the music in folders, into the library."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harmonium.commands import IN_PART, INTERRUPTED
from harmonium.commands.options import (
    CacheOption,
    EngineOption,
    JobsOption,
    JsonOption,
    LibraryOption,
    NoCacheOption,
    TimeLimitOption,
    cache_folder,
)
from harmonium.commands.quick_learning import learn
from harmonium.commands.screen import bar, say, say_some, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.index import IndexReport

MOST_SHOWN = 20
"""Files of each kind that are shown."""


def index(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Music files, and folders to search with all their subfolders; by default "
            "the folders that were indexed before.",
        ),
    ] = None,
    library: LibraryOption = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            "-e",
            metavar="NAME",
            help="What listens: a name that `harmonium extractor list` shows, or onnx:FILE for a "
            "network in ONNX's format. By default the one that the library "
            "was indexed with; in a new library musicnn, if it was fetched, else paper.",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Windows of ten seconds to hear of each track, spread over it; their mean counts. "
            "By default as many as before, and 3 in a new library. musicnn has its own.",
        ),
    ] = None,
    jobs: JobsOption = None,
    engine: EngineOption = "processes",
    cache: CacheOption = None,
    no_cache: NoCacheOption = False,
    time_limit: TimeLimitOption = 300,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Try unusable files again, even if they have not changed."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the library up to date with the music in folders.

    Finds the files, recognises by their sound which are new, moved, changed
    or gone, and computes the features of what is new. Files that have
    not changed are not read again. People's tags are always kept: a
    track that was missing has them when it comes back. With musicnn, what
    is new is tagged at once, by the model in use or the one that comes along.

    [dim]Example:[/dim]  harmonium index ~/Music

    [dim]Exit codes:[/dim]  0 all files are in the library; 1 some could not be
    used and are listed, the others are in it; 2 nothing was done; 130
    interrupted: the same command goes on.
    """
    from harmonium.library.index import index as bring_up_to_date

    errors = Console(stderr=True)
    began = time.monotonic()
    with ExitStack() as stack:
        opened = stack.enter_context(_opened(library, paths or []))
        if extractor is None and windows is None:
            _settle_extractor(opened, errors, may_ask=not as_json)
        progress = stack.enter_context(bar(errors, "listening", at_first="looking for music"))
        try:
            report = bring_up_to_date(
                opened,
                paths or (),
                extractor=extractor,
                windows=windows,
                jobs=jobs,
                engine=engine,
                cache=cache_folder(cache, no_cache),
                progress=progress,
                time_limit=time_limit,
                retry=retry,
            )
        except KeyboardInterrupt:
            say(errors, "Stopped. What was done is kept; the same command goes on from there.")
            raise typer.Exit(INTERRUPTED) from None
        n_tracks = opened.tracks.count("present")
        n_tagged = _tag_new(opened)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        _summarise(Console(), report, n_tracks, time.monotonic() - began)
        _say_tagged(Console(), n_tagged)
    problems = {**report.unlisted, **report.unreadable}
    lines = [f"{path}: {reason}" for path, reason in problems.items()]
    most = MOST_SHOWN if errors.is_terminal else len(lines)
    say_some(errors, lines, most, more=" that could not be used; --json lists")
    raise typer.Exit(0 if report.complete else IN_PART)


def _settle_extractor(library: Library, errors: Console, *, may_ask: bool) -> None:
    """Say which extractor a library keeps, or what is missing; in a terminal ask for it, once."""
    from harmonium.audio.extractors import N_WINDOWS, default_extractor
    from harmonium.audio.musicnn_fetch import was_declined
    from harmonium.commands.extractor import ask_for_musicnn
    from harmonium.library.index import kept_extractor

    kept, best = kept_extractor(library), default_extractor()
    if kept is not None:
        if kept != best == "musicnn":
            say(
                errors,
                f"The library keeps its features, those of {kept}. `harmonium index --extractor "
                f"{best}` computes those of {best}, then `harmonium train` learns from them.",
            )
        elif kept == "paper":
            say(
                errors,
                "The library keeps its features, of one window a track. `harmonium index "
                f"--windows {N_WINDOWS}` computes those of {N_WINDOWS}, which tell more; then "
                "`harmonium train` learns from them.",
            )
    elif best != "musicnn" and not was_declined():
        if may_ask and errors.is_terminal and sys.stdin.isatty():
            ask_for_musicnn(errors)
        else:
            say(
                errors,
                "musicnn, which hears more, is not there: `harmonium extractor fetch musicnn` gets "
                "it (29 MB). Going on with the paper's features.",
            )


def _tag_new(library: Library) -> int | None:
    """Tag what is new by the model in use, if it hears as the one that comes along; how many."""
    from harmonium.library.answering.shipped_model import extractor_key, use_shipped_model
    from harmonium.library.answering.tag import tag_library

    model = use_shipped_model(library)
    if model is None or model.extractor != extractor_key():
        return None
    n_tagged = tag_library(library, model)
    learn(library)
    return n_tagged


def _say_tagged(console: Console, n_tagged: int | None) -> None:
    if n_tagged and console.is_terminal:
        say(console, f"{counted(n_tagged, 'track')} tagged. Next: harmonium search 'calm piano'")


def _opened(place: str | None, paths: list[Path]) -> Library:
    """The library, which is made if there is none; but not for a folder that is not there."""
    from harmonium.errors import LibraryError
    from harmonium.files import absolute_path
    from harmonium.library import Library

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
        ("forgotten", len(report.forgotten)),
        ("unreadable", len(report.unreadable)),
        ("unreadable as before", len(report.still_unreadable)),
        ("unchanged", report.unchanged),
        ("hidden folders", len(report.hidden)),
        ("tracks in the library", n_tracks),
    ]
    if not console.is_terminal:
        show_rows(console, ("", ""), [(name, str(n)) for name, n in rows])
        return
    words = {"copies": "copy"}
    shown = ", ".join(
        f"{n:,} {words.get(name, name) if n == 1 else name}" for name, n in rows[:-2] if n
    )
    shown = shown or "nothing there"
    say(console, f"{shown}; {counted(n_tracks, 'track')} in the library; {seconds:.1f} s")
    lists = {
        "Moved": [f"{old} → {new}" for old, new in report.moved],
        "Another sound than before; people's tags stayed with them": report.changed,
        "Missing; people's tags are kept": report.missing,
        "Copies": [
            f"{path} has the sound of {of}"
            for path, of in report.copies
            if path not in report.known_copies
        ],
        "Hidden folders, passed over; name one to index it": report.hidden,
    }
    for title, lines in lists.items():
        if lines:
            say(console, f"{title}:")
            say_some(console, lines, MOST_SHOWN, more="; --json lists all", indent="  ")
