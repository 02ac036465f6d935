"""`harmonium playlists` and `push`: saved searches, as files and on a Subsonic server."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harmonium.commands import IN_PART, exit_code, options
from harmonium.commands.options import argument, flag, number, probability, value
from harmonium.commands.output import Output, has_reader, to_undo
from harmonium.errors import DataError, HarmoniumError, counted

if TYPE_CHECKING:
    from harmonium.connect.subsonic import Server
    from harmonium.library import Library
    from harmonium.library.searching.saved import SavedSearch
    from harmonium.library.store.tracks import Track

Failure = tuple[str, str]  # what failed, and why


def playlists(
    folder: Path | None = argument("FOLDER", "Write all saved searches to this folder."),
    library: str | None = options.LIBRARY,
    nsp: bool = flag(
        "Write smart playlists for Navidrome (.nsp) where its rules allow: for tags in the "
        "genre, mood or grouping of the files.",
        "--nsp",
    ),
    relative: bool = flag("Use paths relative to the folder.", "--relative"),
    to: str | None = options.SUBSONIC,
    password_file: Path | None = options.PASSWORD_FILE,
    delete: str | None = value("NAME", "Delete a saved search.", "--delete"),
    rename: tuple[str, str] | None = value("OLD NEW", "Rename a saved search.", "--rename"),
    as_json: bool = options.JSON,
) -> None:
    """List the saved searches, or write their playlists.

    `harmonium search QUERY --save NAME` saves one, and so does the page. Each search runs again
    when its playlist is written to FOLDER or to a Subsonic server (--to), where it replaces your
    playlist of the same name. `harmonium index --playlists FOLDER` writes them after each index.

    Example: harmonium playlists ~/Music/Playlists --relative
    Example: harmonium playlists --to https://me@music.example.org
    In Python: library.searches.list(), library.write_playlists("~/Music/Playlists")
    Exit codes: 0 done; 1 some were not written, or have missing tracks; 2 nothing done.
    """
    out = Output(as_json)
    if folder is not None and to is not None:
        raise typer.BadParameter("Name a folder or a server (--to), not both.")
    with options.opened(library) as opened:
        if delete is not None:
            out.hint(to_undo(opened.searches.delete(delete)))
        if rename is not None:
            out.hint(to_undo(opened.searches.rename(*rename)))
        if folder is not None:
            raise typer.Exit(_write(out, opened, folder, nsp=nsp, relative=relative))
        searches = opened.searches.list()
        if to is not None and searches:
            tracks_of, failed = _tracks_of_searches(opened, searches)
    if to is not None and searches:
        raise typer.Exit(_push(out, subsonic(to, password_file), tracks_of, failed))
    empty = "No saved searches yet. `harmonium search QUERY --save NAME` saves one."
    out.show(searches, {"Name": "name", "Search": "words", ">Tracks": "question.stops"}, empty)


def _write(out: Output, library: Library, folder: Path, *, nsp: bool, relative: bool) -> int:
    """Write all saved searches to a folder; returns the exit code."""
    with out.bar("writing") as progress:
        written = library.write_playlists(folder, rules=nsp, relative=relative, progress=progress)
    out.json(written)
    rows = []
    failed = []
    for playlist in written:
        if playlist.path is not None:
            content = playlist.kind if playlist.n_tracks is None else playlist.n_tracks
            rows.append((playlist.name, content, playlist.path))
        if playlist.problem:
            failed.append((f"Saved search {playlist.name!r}", playlist.problem))
    out.table(("Name", ">Tracks", "File"), rows)
    out.failures(failed)
    return IN_PART if failed else 0


def _tracks_of_searches(
    library: Library, searches: Iterable[SavedSearch]
) -> tuple[dict[str, list[Track]], list[Failure]]:
    """What each saved search finds, and the searches that fail."""
    tracks_of = {}
    failed = []
    for search in searches:
        try:
            tracks_of[search.name] = [hit.track for hit in search.run(library)]
        except HarmoniumError as error:
            failed.append((f"Saved search {search.name!r}", str(error)))
    return tracks_of, failed


def push(
    search: list[str] | None = argument("SEARCH", "The name of a saved search, or a query."),
    library: str | None = options.LIBRARY,
    to: str | None = options.SUBSONIC,
    password_file: Path | None = options.PASSWORD_FILE,
    name: str | None = value("NAME", "The playlist's name; by default the search.", "--name"),
    limit: int = number(100, "At most N tracks of a query.", "--limit", "-n"),
    min_probability: float = probability(
        0.3, "Skip less likely tracks of a query.", "--min-probability", "-p"
    ),
    rescan: bool = flag("First let the server scan its folders, and wait for it.", "--rescan"),
    as_json: bool = options.JSON,
) -> None:
    """Make or refresh a playlist on a Subsonic server.

    Navidrome is one. Tracks are found by the end of their path, else by artist,
    title, album and duration; the others are listed. Your playlist of the same name is replaced.
    The password comes from --password-file, the keyring (if the package keyring is installed) or a
    prompt. Without SEARCH, --rescan only starts a scan, for example after `harmonium write`.

    Example: harmonium push calm piano --to https://me@music.example.org --name Evening
    Example: harmonium write && harmonium push --rescan --to https://me@music.example.org
    Exit codes: 0 done; 1 some tracks are not on the server; 2 nothing done.
    """
    if to is None or not (search or rescan):
        raise DataError("Say what to push, and where: harmonium push SEARCH --to https://USER@HOST")
    out = Output(as_json)
    text = " ".join(search or [])
    tracks: list[Track] = []
    if search:
        with options.opened(library) as opened:
            if text in [saved.name for saved in opened.searches.list()]:
                result = opened.searches.run(text)
            else:
                result = opened.search(text, limit=limit, min_probability=min_probability)
            tracks = [hit.track for hit in result]
    server = subsonic(to, password_file)
    if rescan:
        with out.bar("scanning") as progress:
            server.rescan(progress)
        out.note(f"{server.base} has scanned its folders.")
    if search:
        raise typer.Exit(_push(out, server, {name or text: tracks}, []))


def subsonic(address: str, password_file: Path | None) -> Server:
    """A server that answers; asks for the password now, not in the middle of a progress bar."""
    from harmonium.connect.subsonic import Server, find_password

    prompt = getpass.getpass if has_reader() else None
    server = Server(address, lambda server: find_password(server, password_file, prompt))
    server.call("ping")
    return server


def _push(
    out: Output, server: Server, tracks_of: dict[str, list[Track]], failed: list[Failure]
) -> int:
    """Push playlists; list those that failed and the missing tracks; returns the exit code."""
    with out.bar("reading the server's songs") as progress:
        songs = server.songs(chain.from_iterable(tracks_of.values()), progress)
    pushed = []
    records = []
    missing: set[str] = set()
    for name, tracks in tracks_of.items():
        try:
            playlist = server.push(name, tracks, songs)
        except HarmoniumError as error:
            failed.append((name, str(error)))
            continue
        pushed.append(playlist)
        paths = [track.path for track in playlist.missing]
        records.append({**vars(playlist), "missing": paths})
        missing.update(paths)
    out.json(records)
    for playlist in pushed:
        verb = "made" if playlist.is_new else "refreshed"
        out.say(f"{playlist.name}: {verb}, {counted(playlist.n_tracks, 'track')}")
    out.failures(failed + [(path, "not on the server") for path in sorted(missing)])
    return exit_code(len(pushed), len(failed) + len(missing))
