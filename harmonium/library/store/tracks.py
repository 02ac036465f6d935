"""The tracks of a library and their features.

A track is one piece of sound: its file may be renamed, moved and tagged anew, and stays the track.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray

from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.files import absolute_path
from harmonium.library.store import bulk, features
from harmonium.library.store.database import LibraryPart, stored_json
from harmonium.library.store.features import TrackFeatures
from harmonium.library.store.schema import (
    FOLDERS,
    loaded_path,
    now,
    storable,
    stored_path,
    to_datetime,
    track,
    track_copy,
)
from harmonium.library.store.track_finder import resolve, track_number
from harmonium.library.store.versions import TRACKS, count_on

FORGOTTEN = "forgotten"
STATES = ("present", "missing", "unreadable", FORGOTTEN)


@dataclass(frozen=True)
class Track:
    """One piece of music."""

    id: int
    path: str
    """Absolute; where the file was when it was last seen."""
    sound: str
    """The digest of the sound, in hexadecimal digits."""
    state: str
    """"present", "missing" (the file is gone), "unreadable" (there is no way to hear it), or
    "forgotten" (a person took it out of the library)."""
    reason: str | None
    """Why it is unreadable."""
    title: str | None
    artist: str | None
    album: str | None
    duration: float | None
    """Seconds."""
    added_at: datetime
    file_tags: dict[str, list[str]]
    """Field ("genre", "mood", "grouping", "comment") → what the file says."""

    @property
    def name(self) -> str:
        """What to call it: artist and title, or the name of the file."""
        if self.title:
            return f"{self.artist} - {self.title}" if self.artist else self.title
        return self.path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class TrackFile:
    """What a file is found to be."""

    path: str
    sound: str
    size: int = 0
    modified: int = 0
    """Nanoseconds since 1970, as the file system says."""
    title: str | None = None
    artist: str | None = None
    album: str | None = None
    duration: float | None = None
    file_tags: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Tracks(LibraryPart):
    """The tracks of a library."""

    def count(self, state: str | None = None) -> int:
        """How many there are, of a state, or of any but "forgotten"."""
        query = sa.select(sa.func.count()).select_from(track)
        wanted = track.c.state != FORGOTTEN if state is None else track.c.state == _checked(state)
        query = query.where(wanted)
        return int(self._library.fetch(query)[0][0])

    def get(self, track_id: int) -> Track:
        """The track of a number, or a LibraryError."""
        return self.many([track_id])[0]

    def find(self, path: str) -> Track | None:
        """The track that has a file at this absolute path; of several, one that is present.

        The file may also be a copy of its own.
        """
        query = sa.select(track).where(
            track.c.path == stored_path(path)["path"], track.c.state != FORGOTTEN
        )
        rows = self._library.fetch(query.order_by((track.c.state != "present"), track.c.id))
        found = next((_track(row) for row in rows if loaded_path(row) == path), None)
        if found is not None:
            return found
        copies = sa.select(track_copy).where(track_copy.c.path == stored_path(path)["path"])
        for row in self._library.fetch(copies):
            if loaded_path(row) == path and (of := self.get(row.track_id)).state != FORGOTTEN:
                return of
        return None

    def copies(self, ids: ArrayLike) -> dict[int, list[str]]:
        """Track → the paths of other files with its sound, where there are any."""
        found: dict[int, list[str]] = {}
        for some in bulk.batches(np.asarray(ids, np.int64).ravel().tolist()):
            query = sa.select(track_copy).where(track_copy.c.track_id.in_(some))
            for row in self._library.fetch(query.order_by(track_copy.c.path)):
                found.setdefault(row.track_id, []).append(loaded_path(row))
        return found

    def see_copy(self, path: str, size: int, modified: int) -> None:
        """Note what a copy has become, so that it is not read again."""
        here = sa.update(track_copy).where(track_copy.c.path == stored_path(path)["path"])
        with self._library.begin() as connection:
            connection.execute(here.values(size=size, modified=modified))

    def resolve(self, text: str) -> Track:
        """The track that a person means: by the rules of `track_finder`.

        Raises
        ------
        LibraryError
            where none or several fit; it names those that come near
        """
        number = track_number(text)
        if number is not None:
            numbered = self.get(number)
            if numbered.state == FORGOTTEN:
                raise LibraryError(
                    f"Track {text} was taken out of the library. `harmonium undo --list` shows the "
                    "change that did it, and `harmonium undo NUMBER` brings the track back."
                )
            return numbered
        with self._library.connect() as connection:
            if (found := self.find(absolute_path(text))) is not None:
                return found  # without reading all tracks
            folders = self._library.settings.get(FOLDERS, [])
            return self.get(resolve(connection, text, folders))

    def all(self, states: Iterable[str] = ("present",)) -> Iterator[Track]:
        """The tracks, in the order of their numbers; read page by page."""
        wanted = [_checked(state) for state in states]
        last = 0
        while True:
            query = sa.select(track).where(track.c.id > last, track.c.state.in_(wanted))
            page = self._library.fetch(query.order_by(track.c.id).limit(bulk.PAGE))
            if not page:
                return
            yield from map(_track, page)
            last = page[-1].id

    def many(self, ids: ArrayLike) -> list[Track]:
        """The tracks of these numbers, in this order."""
        wanted = [int(i) for i in np.asarray(ids).ravel()]
        found: dict[int, Track] = {}
        with self._library.reading():
            for some in bulk.batches(wanted):
                rows = self._library.fetch(sa.select(track).where(track.c.id.in_(some)))
                found |= {row.id: _track(row) for row in rows}
        for number in wanted:
            if number not in found:
                raise NotInLibraryError(f"There is no track #{number} in the library.")
        return [found[number] for number in wanted]

    def ids(self, states: Iterable[str] = ("present",)) -> NDArray[np.int64]:
        """The numbers of the tracks, ascending."""
        wanted = [_checked(state) for state in states]
        query = sa.select(track.c.id).where(track.c.state.in_(wanted)).order_by(track.c.id)
        return np.array([row.id for row in self._library.fetch(query)], np.int64)

    def features(self, ids: ArrayLike, *, extractor: str) -> TrackFeatures:
        """The features of those of the tracks that have them.

        Parameters
        ----------
        ids : (n,) numbers of tracks
        extractor : its key, as the setting "extractor" has it; or its name, for the last used

        Returns
        -------
        numbers (m,) in the order given, and features (m, n_features)
        """
        with self._library.connect() as connection:
            return features.read(connection, np.asarray(ids, np.int64).ravel(), extractor)

    def with_features(self, ids: ArrayLike, *, extractor: str) -> tuple[NDArray[np.int64], int]:
        """Those of the tracks that have features, in the order given; and how many numbers each."""
        wanted = np.asarray(ids, np.int64).ravel()
        with self._library.connect() as connection:
            known, _ = features.ids_and_number(connection, extractor)
            return wanted[np.isin(wanted, known)], features.width(connection, extractor)

    def feature_blocks(self, *, extractor: str, block: int) -> Iterator[TrackFeatures]:
        """The features of all present tracks, for blocks of numbers one after the other.

        Yields (m,) numbers and (m, n_features) features with 0 < m ≤ block.
        """
        last = self._library.fetch(sa.select(sa.func.max(track.c.id)))[0][0] or 0
        for start in range(0, last + 1, block):
            with self._library.connect() as connection:
                found = features.read_range(connection, start, start + block, extractor)
            if len(found[0]):
                yield found

    def heads(self, ids: ArrayLike, *, extractor: str) -> TrackFeatures:
        """The tag probabilities of the extractor's own heads, of those tracks that have them.

        Returns
        -------
        numbers (m,) in the order given, and probabilities (m, n_heads)
        """
        with self._library.connect() as connection:
            return features.read_heads(connection, np.asarray(ids, np.int64).ravel(), extractor)

    def put_features(
        self,
        ids: ArrayLike,
        matrix: ArrayLike,
        *,
        extractor: str,
        heads: ArrayLike | None = None,
    ) -> None:
        """Store features (n, n_features) of tracks (n,), in place of what these had.

        An extractor's key is its name, or its name and something after the last "@". Its heads'
        tag probabilities, (n, n_heads), are kept beside the features.
        """
        numbers, rows = np.asarray(ids, np.int64), np.asarray(matrix, np.float32)
        given = None if heads is None else np.asarray(heads, np.float32)
        with self._library.begin() as connection:
            features.write(connection, numbers, rows, extractor, given)
            count_on(connection, TRACKS)

    def put(
        self, files: Iterable[TrackFile], *, state: str = "present", reason: str | None = None
    ) -> list[int]:
        """Add tracks for new sounds, bring those of known ones up to date; their numbers."""
        common = {"state": _checked(state), "reason": reason}
        with self._library.begin() as connection:
            pages = [_put(connection, some, common) for some in bulk.batches(files)]
            count_on(connection, TRACKS)
        return [number for page in pages for number in page]

    def replace(self, track_id: int, file: TrackFile) -> None:
        """Make a track that of another file, or of what its file has become; it is present."""
        values = _columns(file) | {"state": "present", "reason": None}
        with self._library.begin() as connection:
            connection.execute(sa.update(track).where(track.c.id == int(track_id)).values(values))
            count_on(connection, TRACKS)

    def set_state(self, ids: Iterable[int], state: str, *, reason: str | None = None) -> None:
        """Say that tracks are present, missing or unreadable."""
        values = {"state": _checked(state), "reason": reason}
        with self._library.begin() as connection:
            for some in bulk.batches(map(int, ids)):
                connection.execute(sa.update(track).where(track.c.id.in_(some)).values(values))
            count_on(connection, TRACKS)


def _put(
    connection: sa.Connection, files: Sequence[TrackFile], common: dict[str, Any]
) -> list[int]:
    """Store files, at most a page of them; the numbers of their tracks."""
    wanted = track.c.sound.in_([file.sound for file in files])
    query = sa.select(track.c.sound, track.c.id).where(wanted)
    known = {row.sound: row.id for row in connection.execute(query)}
    rows = {file.sound: _columns(file) | common for file in files}  # of a sound, the last
    new = [row | {"added_at": now()} for sound, row in rows.items() if sound not in known]
    for sound, number in known.items():
        connection.execute(sa.update(track).where(track.c.id == number).values(rows[sound]))
    for row, number in zip(new, bulk.new_numbers(connection, track, len(new)), strict=True):
        row["id"] = known[row["sound"]] = number
    values = [tuple(row[column.name] for column in track.c) for row in new]
    bulk.insert_rows(connection, track, values)
    return [int(known[file.sound]) for file in files]


def _columns(file: TrackFile) -> dict[str, Any]:
    texts = {name: getattr(file, name) for name in ("title", "artist", "album")}
    tags = {name: [*values] for name, values in file.file_tags.items() if values}
    return {
        **vars(file),
        **stored_path(file.path),
        **{name: text and storable(text) for name, text in texts.items()},
        "file_tags": json.dumps(tags),
    }


def _track(row: Any) -> Track:
    return Track(
        id=row.id,
        path=loaded_path(row),
        sound=row.sound,
        state=row.state,
        reason=row.reason,
        title=row.title,
        artist=row.artist,
        album=row.album,
        duration=row.duration,
        added_at=to_datetime(row.added_at),
        file_tags=stored_json(row.file_tags),
    )


def _checked(state: str) -> str:
    if state not in STATES:
        raise LibraryError(f"'state' must be one of {', '.join(STATES)}, got {state!r}.")
    return state
