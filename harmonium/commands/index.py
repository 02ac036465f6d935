"""`harmonium index` and `doctor`: the music in folders, and what is wrong with a library."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harmonium.commands import IN_PART, options
from harmonium.commands.options import argument, flag, number, value
from harmonium.commands.output import Cell, Output, shortened
from harmonium.errors import LibraryError, counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.doctor import Health
    from harmonium.library.index import IndexReport

MAX_SHOWN = 20  # files of each kind that are shown
LISTS = ("new", "moved", "changed", "retagged", "back", "missing", "copies", "forgotten")


def index(
    paths: list[Path] | None = argument(
        "PATH", "Music files and folders; by default the folders indexed before."
    ),
    library: str | None = options.LIBRARY,
    extractor: str | None = value(
        "NAME",
        "Feature extractor: a name from `harmonium extractor list`, or onnx:FILE. By default the "
        "library's own, or musicnn in a new library.",
        "--extractor",
        "-e",
    ),
    windows: int | None = number(
        None,
        "Average over N ten-second windows per track, for extractors with one window, such as "
        "paper. By default, what the library uses.",
    ),
    jobs: int | None = options.JOBS,
    engine: str = options.engine("processes"),
    cache: Path | None = options.CACHE,
    no_cache: bool = options.NO_CACHE,
    time_limit: float = options.TIME_LIMIT,
    retry: bool = flag("Retry unreadable files that have not changed.", "--retry"),
    playlists: Path | None = value(
        "FOLDER", "Then write the playlists of saved searches, as `harmonium playlists` does."
    ),
    as_json: bool = options.JSON,
) -> None:
    """Scan folders of music and update the library.

    Recognises new, moved, changed and missing files by their sound, and computes the features of
    new ones. Unchanged files are not read again. People's tags are kept, even for missing tracks,
    which may come back. New tracks are tagged at once, by the model in use or the built-in model.

    Example: harmonium index ~/Music
    In Python: library.index("~/Music")
    """
    from harmonium.audio.extractors import DEFAULT
    from harmonium.library.index import kept_extractor

    out, began = Output(as_json), time.monotonic()
    with _opened(library, paths or []) as opened:
        kept = kept_extractor(opened)
        if extractor is None and windows is None and kept not in (None, DEFAULT):
            out.note(
                f"The library keeps the features of {kept}. To switch to {DEFAULT}: `harmonium "
                f"index --extractor {DEFAULT}`, then `harmonium train`."
            )
        stopped = "Stopped. What was done is kept; the same command continues."
        with out.bar("listening", stopped, at_first="looking for music") as progress:
            report = opened.index(
                *(paths or []),
                extractor=extractor,
                windows=windows,
                jobs=jobs,
                engine=engine,
                cache=options.cache_folder(cache, no_cache) or False,
                progress=progress,
                time_limit=time_limit,
                retry=retry,
            )
        n_tracks = opened.tracks.count("present")
        written = opened.write_playlists(playlists) if playlists is not None else []
    out.json(report)
    _show(out, report, n_tracks, time.monotonic() - began)
    if report.tagged:
        out.hint(f"{counted(report.tagged, 'track')} tagged. Next: harmonium search 'calm piano'")
    problems = report.unlisted | report.unreadable
    out.failures(problems.items(), " that could not be read; --json lists all")
    failed = [(f"Saved search {one.name!r}", one.problem) for one in written if one.problem]
    out.failures(failed)
    raise typer.Exit(0 if report.complete and not failed else IN_PART)


def _opened(place: str | None, paths: list[Path]) -> Library:
    """The library; a new one, unless a folder is missing."""
    from harmonium.files import absolute_path
    from harmonium.library import Library

    missing = [path for path in paths if not os.path.lexists(absolute_path(path))]
    if not missing:
        return Library.open(place)
    try:
        return Library.open(place, create=False)
    except LibraryError:
        raise LibraryError(f"There is no file or folder {missing[0]}.") from None


def _show(out: Output, report: IndexReport, n_tracks: int, seconds: float) -> None:
    """How many files of each kind; on a terminal, also their names if that helps."""
    counts = {name: len(getattr(report, name)) for name in LISTS} | {
        "unreadable": len(report.unreadable),
        "unreadable as before": len(report.still_unreadable),
        "unchanged": report.unchanged,
    }
    if not out.is_terminal:
        others = {"hidden folders": len(report.hidden), "tracks in the library": n_tracks}
        out.table((), (counts | others).items())
        return
    if len(report.copies) == 1:
        counts = {"copy" if name == "copies" else name: n for name, n in counts.items()}
    files = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n) or "no files"
    out.say(f"{files}; {counted(n_tracks, 'track')} in the library; {seconds:.1f} s")
    copies = [(path, of) for path, of in report.copies if path not in report.known_copies]
    for title, lines in {
        "Moved": [f"{old} → {new}" for old, new in report.moved],
        "Changed sound; people's tags are kept": report.changed,
        "Missing; people's tags are kept": report.missing,
        "Copies": [f"{path} sounds the same as {of}" for path, of in copies],
        "Hidden folders, skipped; name one to index it": report.hidden,
    }.items():
        if lines:
            out.say(f"{title}:")
            out.hint(*shortened(lines, MAX_SHOWN, more="; --json lists all", indent="  "))


def doctor(
    library: str | None = options.LIBRARY,
    doubts: int = number(20, "List at most N probable mistakes in people's tags.", min=0),
    limit: int = number(10, "On a terminal, show at most N lines of each of the other lists."),
    as_json: bool = options.JSON,
) -> None:
    """Check the library's files and tags for problems.

    Lists files that are unreadable or missing, files with the same sound, tags that are unused or
    used once, tags that may be two spellings of one, and people's tags that surprise the model
    most. A track's tags are judged by a model that was not trained on it.

    Example: harmonium doctor --doubts 50
    In Python: library.doctor()
    Exit codes: 0 all files are present and readable; 1 some are not; 2 there is no library.
    """
    out = Output(as_json)
    with options.opened(library) as opened:
        health, out.folders = opened.doctor(doubts), opened.folders()
    out.json(health)
    found = [section for section in _sections(health, out.is_terminal) if section[-1]]
    for kind, title, columns, rows in found:
        if not out.is_terminal:
            out.table((), [(kind, *row) for row in rows])
            continue
        most = len(rows) if kind == "doubt" else limit
        headings = columns + ("",) * (max(map(len, rows)) - len(columns))
        out.table(headings, rows[:most], title=f"{title}: {len(rows):,}")
        if len(rows) > most:
            out.say(f"and {len(rows) - most:,} more; --json lists all")
        out.say("")
    if health.doubts is None:
        out.hint("No model yet, so people's tags cannot be checked; run `harmonium train`.")
    elif not found:
        out.hint("No problems found.")
    raise typer.Exit(0 if health.is_well else IN_PART)


def _sections(
    health: Health, for_people: bool
) -> Iterator[tuple[str, str, tuple[str, ...], Sequence[tuple[Cell, ...]]]]:
    """Kind, title, columns, rows; people see the names of doubted tracks, programs their paths."""
    broken = [(track.path, track.reason) for track in health.unreadable]
    yield "unreadable", "Unreadable files", ("File", "Reason"), broken
    yield "missing", "Missing files", ("File",), [(track.path,) for track in health.missing]
    copies = [(path, track.path) for path, track in health.copies]
    yield "copy", "Files that sound the same as another", ("File", "Other file"), copies
    title = "Tracks with the same artist and title, but different sound"
    some = [(tracks[0].name, *(one.path for one in tracks)) for tracks in health.recordings]
    yield "recording", title, ("Track", "Files"), some
    columns: tuple[str, ...] = ("Tag", ">Tracks", "Perhaps", ">Tracks")
    yield "spelling", "Tags that may be two spellings of one", columns, [*health.spellings]
    yield "once", "Tags on a single track", ("Tag",), [(tag,) for tag in health.once]
    yield "unused", "Unused tags", ("Tag",), [(tag,) for tag in health.unused]
    title = "Possible mistakes in people's tags, the most surprising first"
    columns, doubts = ("Track", "Tag", "", ">Model", ">Share"), list[tuple[Cell, ...]]()
    for one in health.doubts or []:
        name, usual = (one.track.name, (one.usual,)) if for_people else (one.track.path, ())
        said = "given" if one.said else "not given"
        doubts.append((name, one.tag, said, one.probability, *usual))
    yield "doubt", title, columns, doubts
