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
from numpy.typing import ArrayLike

from harmonium.arrays import Ids
from harmonium.errors import LibraryError, NotInLibraryError
from harmonium.files import absolute_path
from harmonium.library.store import bulk, features
from harmonium.library.store.database import TRACKS, LibraryPart, bump_version, stored_json
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

FORGOTTEN = "forgotten"
STATES = ("present", "missing", "unreadable", FORGOTTEN)


@dataclass(frozen=True)
class Track:
    """One piece of music: a file that was read, and what the library knows about it."""

    path: str
    """Absolute; where the file was when it was last seen."""
    sound: str
    """The digest of the sound, in hexadecimal digits."""
    size: int = 0
    """Bytes of the file when it was last read. While size and time stay the same, it counts as
    unchanged."""
    modified: int = 0
    """The file's time of modification, in nanoseconds since 1970."""
    title: str | None = None
    artist: str | None = None
    album: str | None = None
    duration: float | None = None
    """Seconds."""
    file_tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Field ("genre", "mood", "grouping", "comment") → what the file says."""
    id: int = 0
    """Its number; 0 until it is stored."""
    state: str = "present"
    """"present", "missing" (the file is gone), "unreadable" (the file cannot be decoded), or
    "forgotten" (a person took it out of the library)."""
    reason: str | None = None
    """Why it is unreadable."""
    added_at: datetime | None = None
    """None until it is stored."""

    @property
    def name(self) -> str:
        """What to call it: artist and title, or the name of the file."""
        if self.title:
            return f"{self.artist} - {self.title}" if self.artist else self.title
        return self.path.replace("\\", "/").rpartition("/")[2]


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

    def put_copy(self, file: Track) -> None:
        """Keep the path, size and time of another file with the sound of a stored track."""
        values = {"track_id": file.id, "size": file.size, "modified": file.modified}
        with self._library.begin() as connection:
            self.drop_copies([file.path])
            connection.execute(sa.insert(track_copy).values(values | stored_path(file.path)))

    def drop_copies(self, paths: Iterable[str]) -> None:
        """Forget copies that are gone."""
        with self._library.begin() as connection:
            for path in paths:
                same = track_copy.c.path == stored_path(path)["path"]
                connection.execute(sa.delete(track_copy).where(same))

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

    def ids(self, states: Iterable[str] = ("present",)) -> Ids:
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

    def with_features(self, ids: ArrayLike, *, extractor: str) -> tuple[Ids, int]:
        """Those of the tracks that have features, in the order given; and how many numbers each."""
        wanted = np.asarray(ids, np.int64).ravel()
        with self._library.connect() as connection:
            number, n_features = features.find_extractor(connection, extractor)
            return wanted[np.isin(wanted, features.read_ids(connection, number))], n_features

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

    def put_features(self, ids: ArrayLike, matrix: ArrayLike, *, extractor: str) -> None:
        """Store features (n, n_features) of tracks (n,), in place of what these had.

        An extractor's key is its name, or its name and something after the last "@".
        """
        numbers, rows = np.asarray(ids, np.int64), np.asarray(matrix, np.float32)
        with self._library.begin() as connection:
            features.write(connection, numbers, rows, extractor)
            bump_version(connection, TRACKS)

    def put(self, tracks: Iterable[Track]) -> list[int]:
        """Add tracks for new sounds, bring those of known ones up to date; their numbers."""
        with self._library.begin() as connection:
            pages = [_put(connection, some) for some in bulk.batches(tracks)]
            bump_version(connection, TRACKS)
        return [number for page in pages for number in page]

    def replace(self, one: Track) -> None:
        """Store what a track has become."""
        with self._library.begin() as connection:
            values = _columns(one)
            connection.execute(sa.update(track).where(track.c.id == one.id).values(values))
            bump_version(connection, TRACKS)

    def set_state(self, ids: Iterable[int], state: str, *, reason: str | None = None) -> None:
        """Say that tracks are present, missing or unreadable."""
        values = {"state": _checked(state), "reason": reason}
        with self._library.begin() as connection:
            for some in bulk.batches(map(int, ids)):
                connection.execute(sa.update(track).where(track.c.id.in_(some)).values(values))
            bump_version(connection, TRACKS)


def _put(connection: sa.Connection, tracks: Sequence[Track]) -> list[int]:
    """Store tracks, at most a page of them; their numbers."""
    query = sa.select(track.c.sound, track.c.id)
    query = query.where(track.c.sound.in_([one.sound for one in tracks]))
    known = {row.sound: row.id for row in connection.execute(query)}
    rows = {one.sound: _columns(one) for one in tracks}  # of a sound, the last
    new = [row | {"added_at": now()} for sound, row in rows.items() if sound not in known]
    for sound, number in known.items():
        connection.execute(sa.update(track).where(track.c.id == number).values(rows[sound]))
    for row, number in zip(new, bulk.new_numbers(connection, track, len(new)), strict=True):
        row["id"] = known[row["sound"]] = number
    values = [tuple(row[column.name] for column in track.c) for row in new]
    bulk.insert_rows(connection, track, values)
    return [int(known[one.sound]) for one in tracks]


def _columns(one: Track) -> dict[str, Any]:
    """The columns of a track, but for its number and when it was added."""
    texts = {name: getattr(one, name) for name in ("title", "artist", "album")}
    tags = {name: [*values] for name, values in one.file_tags.items() if values}
    plain = ("sound", "size", "modified", "duration", "state", "reason")
    return {
        **{name: getattr(one, name) for name in plain},
        **stored_path(one.path),
        **{name: text and storable(text) for name, text in texts.items()},
        "file_tags": json.dumps(tags),
    }


def _track(row: Any) -> Track:
    values = dict(row._mapping)
    del values["path_bytes"]
    values |= {"path": loaded_path(row), "file_tags": stored_json(row.file_tags)}
    return Track(**values | {"added_at": to_datetime(row.added_at)})


def _checked(state: str) -> str:
    if state not in STATES:
        raise LibraryError(f"'state' must be one of {', '.join(STATES)}, got {state!r}.")
    return state
