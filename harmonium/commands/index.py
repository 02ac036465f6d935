"""`harmonium index` and `doctor`: the music in folders, and what is wrong with a library."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from harmonium.commands import IN_PART, options
from harmonium.commands.options import argument, flag, number, value
from harmonium.commands.output import Cell, Output, shortened
from harmonium.errors import HarmoniumError, LibraryError, counted

if TYPE_CHECKING:
    from harmonium.library import Library
    from harmonium.library.doctor import Health
    from harmonium.library.index import IndexReport

MAX_SHOWN = 20  # files of each kind that are shown
DOUBT = "doubt"  # the kind of problem that is a probable mistake in people's tags
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

    out = Output(as_json)
    began = time.monotonic()
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
    failed = []
    for playlist in written:
        if playlist.problem:
            failed.append((f"Saved search {playlist.name!r}", playlist.problem))
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
    counts = {name: len(getattr(report, name)) for name in LISTS}
    counts["unreadable"] = len(report.unreadable)
    counts["unreadable as before"] = len(report.still_unreadable)
    counts["unchanged"] = report.unchanged
    if not out.is_terminal:
        counts["hidden folders"] = len(report.hidden)
        counts["tracks in the library"] = n_tracks
        out.table((), counts.items())
        return
    files = []
    for name, n in counts.items():
        if n:
            noun = "copy" if name == "copies" and n == 1 else name
            files.append(f"{n:,} {noun}")
    out.say(
        f"{', '.join(files) or 'no files'}; {counted(n_tracks, 'track')} in the library; "
        f"{seconds:.1f} s"
    )
    copies = []
    for path, other in report.copies:
        if path not in report.known_copies:
            copies.append(f"{path} sounds the same as {other}")
    lists = {
        "Moved": [f"{old} → {new}" for old, new in report.moved],
        "Changed sound; people's tags are kept": report.changed,
        "Missing; people's tags are kept": report.missing,
        "Copies": copies,
        "Hidden folders, skipped; name one to index it": report.hidden,
    }
    for title, lines in lists.items():
        if lines:
            out.say(f"{title}:")
            out.hint(*shortened(lines, MAX_SHOWN, more="; --json lists all", indent="  "))


def doctor(
    library: str | None = options.LIBRARY,
    doubts: int = number(20, "List at most N probable mistakes in people's tags.", min=0),
    limit: int = number(10, "On a terminal, show at most N lines of each of the other lists."),
    report: bool = flag(
        "Print versions and sizes instead, for a report of a fault: no path, title, tag or name.",
        "--report",
    ),
    as_json: bool = options.JSON,
) -> None:
    """Check the library's files and tags for problems.

    Lists files that are unreadable or missing, files with the same sound, tags that are unused or
    used once, tags that may be two spellings of one, and people's tags that surprise the model
    most. A track's tags are judged by a model that was not trained on it. --report prints what a
    report of a fault should say, with or without a library.

    Example: harmonium doctor --doubts 50
    In Python: library.doctor()
    Exit codes: 0 all files are present and readable; 1 some are not; 2 there is no library.
    """
    out = Output(as_json)
    if report:
        _print_report(out, library)
        return
    with options.opened(library) as opened:
        health = opened.doctor(doubts)
        out.folders = opened.folders()
    out.json(health)
    sections = [*_file_sections(health), *_tag_sections(health)]
    sections.append(_doubts(health, for_people=out.is_terminal))
    sections = [section for section in sections if section.rows]
    for section in sections:
        if out.is_terminal:
            _show_section(out, section, limit)
        else:
            out.table((), [(section.kind, *row) for row in section.rows])
    if health.doubts is None:
        out.hint("No model yet, so people's tags cannot be checked; run `harmonium train`.")
    elif not sections:
        out.hint("No problems found.")
    raise typer.Exit(0 if health.is_well else IN_PART)


def _print_report(out: Output, place: str | None) -> None:
    """Print what a report of a fault should say, with or without a library."""
    from harmonium.library.system_report import system_report

    try:
        with options.opened_if_any(place) as library:
            report = system_report(library)
    except HarmoniumError as error:  # its message may name a path
        report = system_report(None, fault=type(error).__name__)
    out.json(report)
    width = max(len(name) for name, _ in report.lines())
    for name, entry in report.lines():
        out.say(f"{name:<{width}}  {entry}")


class _Section(NamedTuple):
    """Problems of one kind."""

    kind: str  # for programs
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]  # which may have more cells than there are columns


def _show_section(out: Output, section: _Section, limit: int) -> None:
    """A table for people; probable mistakes are limited before."""
    rows = section.rows
    most = len(rows) if section.kind == DOUBT else limit
    n_cells = max(map(len, rows))
    headings = section.columns + ("",) * (n_cells - len(section.columns))
    out.table(headings, rows[:most], title=f"{section.title}: {len(rows):,}")
    if len(rows) > most:
        out.say(f"and {len(rows) - most:,} more; --json lists all")
    out.say("")


def _file_sections(health: Health) -> Iterator[_Section]:
    yield _Section(
        kind="unreadable",
        title="Unreadable files",
        columns=("File", "Reason"),
        rows=[(track.path, track.reason) for track in health.unreadable],
    )
    yield _Section(
        kind="missing",
        title="Missing files",
        columns=("File",),
        rows=[(track.path,) for track in health.missing],
    )
    yield _Section(
        kind="copy",
        title="Files that sound the same as another",
        columns=("File", "Other file"),
        rows=[(path, track.path) for path, track in health.copies],
    )
    yield _Section(
        kind="recording",
        title="Tracks with the same artist and title, but different sound",
        columns=("Track", "Files"),
        rows=[(tracks[0].name, *(track.path for track in tracks)) for tracks in health.recordings],
    )


def _tag_sections(health: Health) -> Iterator[_Section]:
    yield _Section(
        kind="spelling",
        title="Tags that may be two spellings of one",
        columns=("Tag", ">Tracks", "Perhaps", ">Tracks"),
        rows=[*health.spellings],
    )
    yield _Section(
        kind="once",
        title="Tags on a single track",
        columns=("Tag",),
        rows=[(tag,) for tag in health.once],
    )
    yield _Section(
        kind="unused",
        title="Unused tags",
        columns=("Tag",),
        rows=[(tag,) for tag in health.unused],
    )


def _doubts(health: Health, *, for_people: bool) -> _Section:
    """People see the names of the tracks and the usual share, programs the paths."""
    rows: list[tuple[Cell, ...]] = []
    for doubt in health.doubts or []:
        said = "given" if doubt.said else "not given"
        if for_people:
            rows.append((doubt.track.name, doubt.tag, said, doubt.probability, doubt.usual))
        else:
            rows.append((doubt.track.path, doubt.tag, said, doubt.probability))
    return _Section(
        kind=DOUBT,
        title="Possible mistakes in people's tags, the most surprising first",
        columns=("Track", "Tag", "", ">Model", ">Share"),
        rows=rows,
    )
