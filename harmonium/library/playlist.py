"""Playlists: extended M3U in UTF-8, which players take under the ending .m3u8."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from harmonium.errors import DataError
from harmonium.files import absolute_path, check_writable, write_atomically
from harmonium.library.store.tracks import Track

ENDINGS = (".m3u8", ".m3u")


def can_be_listed(track: Track) -> bool:
    """Whether a playlist, which has a line for each file, can name the track's file."""
    return "\n" not in track.path and "\r" not in track.path


def playlist(tracks: Iterable[Track]) -> str:
    """The text of a playlist: a line about each track that can be listed, and its path."""
    lines = ["#EXTM3U"]
    for track in filter(can_be_listed, tracks):
        seconds = -1 if track.duration is None else round(track.duration)
        lines += [f"#EXTINF:{seconds},{_name(track)}", track.path]
    return "\n".join(lines) + "\n"


def check_playlist(path: Path) -> None:
    """Refuse, before any work, a playlist that could not be written."""
    if path.suffix.lower() not in ENDINGS:
        raise DataError(f"A playlist must end in {' or '.join(ENDINGS)}. Got {path.name!r}.")
    check_writable(path)


def write_playlist(path: Path, tracks: Iterable[Track], *, relative: bool = False) -> None:
    """Write a playlist; an interrupted write leaves the old file or none.

    With ``relative``, the paths in it begin at its own folder.
    """
    check_playlist(path)
    if relative:
        folder = absolute_path(path.parent)
        tracks = [replace(track, path=_path_from(folder, track.path)) for track in tracks]
    text = playlist(tracks)
    # a path may hold bytes that are no UTF-8: they go out as they came in
    write_atomically(path, os.fsencode(text))


def _path_from(folder: str, path: str) -> str:
    """A path from a folder on; a line that begins with # would be a comment."""
    relative = os.path.relpath(path, folder)
    return os.path.join(os.curdir, relative) if relative.startswith("#") else relative  # noqa: PTH118


def _name(track: Track) -> str:
    title = track.title or Path(track.path).stem
    name = f"{track.artist} - {title}" if track.artist else title
    return " ".join(name.split())
