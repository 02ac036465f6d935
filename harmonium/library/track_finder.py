"""Finding tracks by what people and other programs call them.

docs/library.md lists the rules. If a missing track and a present one have had the same path, it
means the present one. The path of a copy of a track's file means the track.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import sqlalchemy as sa

from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import LibraryError, NotInLibraryError, nearest_names
from harmonium.files import absolute_path, is_below
from harmonium.library.store.schema import track, track_copy
from harmonium.library.store.tracks import FORGOTTEN, Track
from harmonium.library.store.values import stored_path

if TYPE_CHECKING:
    from harmonium.library.library import Library, TrackName

NO_SUCH_TRACK = "no such track"
SEVERAL_TRACKS = "several tracks"
NOTHING_GIVEN = "nothing to find a track by"
_MAX_LISTED = 5  # tracks named in a message


class Match(NamedTuple):
    """What a table's row means."""

    ids: list[int]  # the track, and its copies; empty if no track matches
    reason: str | None = None  # why no track matches


class TrackFile(NamedTuple):
    """A file of a track."""

    track_id: int
    path: str


def find_track(library: Library, text: str) -> Track:
    """The track that a person means, by the rules of docs/library.md; or a LibraryError."""
    number = track_number(text)
    if number is not None:
        return _numbered_track(library, number)
    at_path = library.tracks.find(absolute_path(text))
    if at_path is not None:  # without reading all tracks
        return at_path
    folders = library.folders()
    with library.connect() as connection:
        # Usually the file name is spelt exactly; then only a few tracks are read.
        finder = TrackFinder(connection, folders, containing=_file_name(_path_in(text)))
        ids = finder.by_path(text)
        if not ids:
            finder = TrackFinder(connection, folders)
            ids = finder.by_path(text) or finder.by_path_in_any_case(text) or finder.by_name(text)
    if not ids:
        hint = finder.did_you_mean(text)
        raise NotInLibraryError(f"There is no track {text!r} in the library.{hint}")
    if len(ids) > 1:
        raise LibraryError(
            f"{text!r} could be any of {len(ids):,} tracks: {finder.listed(ids)}. Name one by its "
            "number, or by more of its path."
        )
    return library.tracks.get(ids[0])


def _numbered_track(library: Library, number: int) -> Track:
    numbered = library.tracks.get(number)
    if numbered.state == FORGOTTEN:
        raise LibraryError(
            f"Track #{number} was removed from the library. `harmonium undo --list` shows the "
            "change, and `harmonium undo NUMBER` brings the track back."
        )
    return numbered


def files_of(library: Library, named: TrackName) -> list[TrackFile]:
    """The files that a person means by a track, a file or a folder."""
    place = absolute_path(str(named)) if isinstance(named, str | Path) else ""
    if place and Path(place).is_dir():
        files = _files_below(library, place)
        if not files:
            raise LibraryError(
                f"There are no tracks in the folder {named}. `harmonium index {named}` adds its "
                "music."
            )
        return files
    match = library.track(named)
    if match.state != "present":
        reason = f": {match.reason.rstrip('.')}" if match.reason else ""
        raise LibraryError(f"{named} cannot be used; its file is {match.state}{reason}.")
    paths = [match.path, *library.tracks.copies([match.id]).get(match.id, [])]
    if place in paths:
        paths = [place]
    return [TrackFile(match.id, path) for path in paths]


def _files_below(library: Library, folder: str) -> list[TrackFile]:
    copies = library.tracks.copies(library.tracks.ids())
    files = []
    for present in library.tracks.all():
        for path in (present.path, *copies.get(present.id, [])):
            if is_below(path, [folder]):
                files.append(TrackFile(present.id, path))
    return files


class TrackFinder:
    """A library's tracks, read once, to find many of them by name.

    folders : what relative paths may be relative to
    containing : only tracks with this in their paths
    """

    def __init__(
        self, connection: sa.Connection, folders: Iterable[str] = (), *, containing: str = ""
    ) -> None:
        self._folders = [_uniform_path(folder) for folder in folders]
        tracks = (
            sa.select(track.c.id, track.c.path, track.c.artist, track.c.title, track.c.duration)
            .where(track.c.state != FORGOTTEN)
            .order_by(track.c.state == "present", track.c.id)  # of one path, the last one stays
        )
        copies = sa.select(track_copy.c.path, track_copy.c.track_id)
        if containing:
            copies = copies.where(track_copy.c.path.contains(containing, autoescape=True))
            has_copy = track.c.id.in_(copies.with_only_columns(track_copy.c.track_id))
            tracks = tracks.where(
                sa.or_(track.c.path.contains(containing, autoescape=True), has_copy)
            )
        self._tracks: dict[int, Any] = {row.id: row for row in connection.execute(tracks)}
        self._ids: dict[str, int] = {}  # path → track; the track's own path comes first
        for row in connection.execute(copies):
            if row.track_id in self._tracks:
                self._ids[_uniform_path(row.path)] = row.track_id
        for row in self._tracks.values():
            self._ids[_uniform_path(row.path)] = row.id

    def match(
        self, item: str | None = None, *, artist: str | None = None, title: str | None = None
    ) -> Match:
        """The track that a table's row means, and its copies; or why no track matches.

        item : its number, path, or the end of its path
        artist, title : the title alone is enough if no other track has it
        """
        attempts = []
        if item and item.strip():
            item = item.strip()
            attempts.append(self.by_path(item) or self.by_path_in_any_case(item))
        if title and title.strip():
            attempts.append(self._by_title(title, artist or ""))
        if not attempts:
            return Match([], NOTHING_GIVEN)
        for ids in attempts:
            if len(ids) == 1 or self._are_copies(ids):
                return Match(ids)
        return Match([], SEVERAL_TRACKS if attempts[0] else NO_SUCH_TRACK)

    def by_path(self, text: str) -> list[int]:
        """The tracks that match by the first three rules."""
        number = track_number(text)
        if number is not None:
            return [number] if number in self._tracks else []
        path = _path_in(text)
        absolute = _uniform_path(absolute_path(path))
        for place in (absolute, *(f"{folder}/{path}" for folder in self._folders)):
            if place in self._ids:
                return [self._ids[place]]
        return self._ending_with(path, self._by_file_name)

    def by_path_in_any_case(self, text: str) -> list[int]:
        """The tracks that match by the fourth rule."""
        return self._ending_with(_path_in(text).casefold(), self._by_folded_file_name)

    def by_name(self, text: str) -> list[int]:
        """The tracks that match by the last rule: "artist - title", or a title."""
        wanted = normalise_tag(text)
        rows = [row for row in self._tracks.values() if row.title]
        names = _normalised(f"{row.artist or ''} {row.title}" for row in rows)
        with_title = {track_id for _, track_id in self._by_normalised_title[wanted]}
        ids = []
        for row, name in zip(rows, names, strict=True):
            if name == wanted or row.id in with_title:
                ids.append(row.id)
        return ids

    def did_you_mean(self, text: str) -> str:
        """A hint to end a message with: the tracks whose names are most like the text."""
        names: dict[str, int] = {}
        for row in sorted(self._tracks.values(), key=lambda row: row.id):
            names.setdefault(_file_name(row.path).casefold(), row.id)
            if row.title:
                names.setdefault(f"{row.artist or ''} - {row.title}".casefold(), row.id)
        file = _file_name(text.replace("\\", "/"))
        similar = [*nearest_names(file, names, n=3), *nearest_names(text, names, n=3)]
        if not similar:
            return " `harmonium index FOLDER` adds music."
        ids = list(dict.fromkeys(names[name] for name in similar))
        return f" Did you mean {self.listed(ids)}?"

    def listed(self, ids: list[int]) -> str:
        """The first of these tracks, for a message."""
        names = [f"#{track_id} {self._tracks[track_id].path}" for track_id in ids[:_MAX_LISTED]]
        more = f" and {len(ids) - _MAX_LISTED:,} more" if len(ids) > _MAX_LISTED else ""
        return ", ".join(names) + more

    def _by_title(self, title: str, artist: str) -> list[int]:
        """The tracks with a title; with this artist, unless that is empty."""
        wanted = normalise_tag(artist)
        tracks = self._by_normalised_title[normalise_tag(title)]
        return [track_id for name, track_id in tracks if not wanted or name == wanted]

    def _are_copies(self, ids: list[int]) -> bool:
        """Whether tracks share artist, title and length, such as an MP3 and a FLAC."""
        rows = [self._tracks[track_id] for track_id in ids]
        names = {(normalise_tag(row.artist or ""), normalise_tag(row.title or "")) for row in rows}
        lengths = [row.duration or np.nan for row in rows]
        return len(names) == 1 and bool(np.ptp(lengths) < 1)

    def _ending_with(self, end: str, by_file_name: _ByFileName) -> list[int]:
        """The tracks whose paths end like this, with or without the file's extension."""
        candidates = by_file_name[_file_name(end)]
        end = f"/{end.lstrip('/')}"
        ids = [track_id for path, track_id in candidates if path.endswith(end)]
        if not ids:
            for path, track_id in candidates:
                if _without_extension(path).endswith(end):
                    ids.append(track_id)
        return list(dict.fromkeys(ids))

    @cached_property
    def _by_file_name(self) -> _ByFileName:
        return _grouped_by_file_name(self._ids.items())

    @cached_property
    def _by_folded_file_name(self) -> _ByFileName:
        return _grouped_by_file_name((path.casefold(), id) for path, id in self._ids.items())

    @cached_property
    def _by_normalised_title(self) -> dict[str, list[tuple[str, int]]]:
        """Title → the artists and numbers of tracks."""
        rows = [row for row in self._tracks.values() if row.title]
        artists = _normalised(row.artist or "" for row in rows)
        titles = _normalised(row.title for row in rows)
        by_title = defaultdict(list)
        for row, title, artist in zip(rows, titles, artists, strict=True):
            by_title[title].append((artist, row.id))
        return by_title


_ByFileName = dict[str, list[tuple[str, int]]]
"""Name of a file, with its extension and without → the paths and tracks of such files."""


def _grouped_by_file_name(ids: Iterable[tuple[str, int]]) -> _ByFileName:
    by_file_name = defaultdict(list)
    for path, track_id in ids:
        file = _file_name(path)
        for name in {file, _without_extension(file)}:
            by_file_name[name].append((path, track_id))
    return by_file_name


def track_number(text: str) -> int | None:
    """12 of "#12"; None of any other text, or a number too large for the database."""
    return int(text[1:]) if re.fullmatch(r"#\d{1,18}", text) else None


def _path_in(text: str) -> str:
    """A text as a path, or the end of one, in the form that tracks have here."""
    return _uniform_path(stored_path(text)["path"]).removeprefix("./")


def _uniform_path(path: str) -> str:
    """A path with slashes and composed accents: systems differ in both."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _without_extension(path: str) -> str:
    return os.path.splitext(path)[0]  # noqa: PTH122


def _normalised(names: Iterable[str]) -> Iterable[str]:
    return normalise_names(pl.Series(list(names), dtype=pl.String))
