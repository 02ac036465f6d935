"""The rows of a library's tracks, and of copies of their files.

A track is one piece of sound: its file may be renamed, moved and retagged.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import ArrayLike

from harmonium.arrays import Ids
from harmonium.errors import LibraryError, NotInLibraryError, counted
from harmonium.library.store import database
from harmonium.library.store import features as feature_rows
from harmonium.library.store.features import TrackFeatures
from harmonium.library.store.schema import track, track_copy
from harmonium.library.store.values import (
    loaded_path,
    now,
    storable,
    stored_json,
    stored_path,
    to_datetime,
)

FORGOTTEN = "forgotten"
STATES = ("present", "missing", "unreadable", FORGOTTEN)


@dataclass(frozen=True)
class Track:
    """One piece of music: a file that was read, and what the library knows about it."""

    path: str  # absolute; where the file was when it was last seen
    sound: str  # the digest of the sound, in hexadecimal digits
    size: int = 0  # bytes when last read; while size and time stay the same, it counts as unchanged
    modified: int = 0  # the file's time of modification, in nanoseconds since 1970
    title: str | None = None
    artist: str | None = None
    album: str | None = None
    duration: float | None = None  # seconds
    file_tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Field ("genre", "mood", "grouping", "comment"; scores, audio features) → what it says. Where
    a field has values in several places of the tag, such as "TIT1" and "GRP1", those too."""
    format: str | None = None  # such as "MP3"; None if an older version read the file
    tag_version: str | None = None  # the kind of tag, such as "ID3v2.4"; None if it has none
    obstacle: str | None = None  # why no tags can be written to the file, as far as it was read
    id: int = 0  # its number; 0 until it is stored
    state: str = "present"
    """"present", "missing" (the file is gone), "unreadable" (the file cannot be decoded), or
    "forgotten" (a person took it out of the library)."""
    reason: str | None = None  # why it is unreadable
    added_at: datetime | None = None  # None until it is stored

    @property
    def name(self) -> str:
        """What to call it: artist and title, or the name of the file."""
        return track_name(self.path, self.title, self.artist)


@dataclass(frozen=True, kw_only=True)
class FileContents:
    """What a file holds, as far as a library remembers; the fields are those of `Track`."""

    file_tags: Mapping[str, tuple[str, ...]]
    format: str | None
    tag_version: str | None
    obstacle: str | None

    @property
    def is_unread(self) -> bool:
        """Whether an older version read the file, and it may have a format without tags."""
        return self.format is None and self.obstacle is None and not self.file_tags


def track_name(path: str, title: str | None = None, artist: str | None = None) -> str:
    """Artist and title, or the name of the file."""
    if title:
        return f"{artist} - {title}" if artist else title
    return path.replace("\\", "/").rpartition("/")[2]


def named_tracks(tracks: Sequence[Track]) -> str:
    """The name of a single track, or how many there are."""
    return tracks[0].name if len(tracks) == 1 else counted(len(tracks), "track")


class Tracks(database.LibraryPart):
    """The tracks of a library."""

    def count(self, state: str | None = None) -> int:
        """How many there are in a state, or in any but "forgotten"."""
        if state is None:
            condition = track.c.state != FORGOTTEN
        else:
            condition = track.c.state == _checked(state)
        query = sa.select(sa.func.count(track.c.id)).where(condition)
        with self._library.connect() as connection:
            return int(connection.scalar(query) or 0)

    def get(self, track_id: int) -> Track:
        """The track with this number, or a LibraryError."""
        return self.many([track_id])[0]

    def find(self, path: str) -> Track | None:
        """The track with a file, or a copy of it, at this absolute path; the present one if any."""
        if "\0" in path:  # no file has such a path, and PostgreSQL no such text
            return None
        text = stored_path(path)["path"]
        of_tracks = (
            sa.select(track.c.id, track.c.path, track.c.path_bytes)
            .where(track.c.path == text)
            .order_by(track.c.state != "present", track.c.id)
        )
        of_copies = sa.select(
            track_copy.c.track_id.label("id"), track_copy.c.path, track_copy.c.path_bytes
        ).where(track_copy.c.path == text)
        for row in [*self._library.fetch(of_tracks), *self._library.fetch(of_copies)]:
            if loaded_path(row) != path:
                continue
            match = self.get(row.id)
            if match.state != FORGOTTEN:
                return match
        return None

    def resolve(self, text: str) -> Track:
        """The track that a person means, like `Library.track`."""
        return self._library.track(text)

    def with_sound(self, sound: str) -> list[Track]:
        """The track with this sound, if any."""
        rows = self._library.fetch(sa.select(track).where(track.c.sound == sound))
        return [_track(row) for row in rows]

    def copies(self, ids: ArrayLike) -> dict[int, list[str]]:
        """Track → the paths of other files with its sound, if any."""
        paths: dict[int, list[str]] = {}
        query = sa.select(track_copy).order_by(track_copy.c.path)
        for row in self._rows_of(ids, track_copy.c.track_id, query):
            paths.setdefault(row.track_id, []).append(loaded_path(row))
        return paths

    def files(self, ids: ArrayLike) -> Iterator[tuple[FileContents, list[tuple[int, str]]]]:
        """(what files hold, the (track, path) of each file that holds just that).

        These are the files of tracks and all their copies.
        """
        alike: dict[tuple[Any, ...], list[tuple[int, str]]] = defaultdict(list)
        columns = ("path", "path_bytes", "file_tags", "format", "tag_version", "obstacle")
        query = sa.select(track.c.id, *(track.c[name] for name in columns))
        contents = {}
        for row in self._rows_of(ids, track.c.id, query):
            contents[row.id] = row[3:]
            alike[row[3:]].append((row.id, loaded_path(row)))
        query = sa.select(track_copy.c.track_id, *(track_copy.c[name] for name in columns))
        for row in self._rows_of(ids, track_copy.c.track_id, query.order_by(track_copy.c.path)):
            # A copy that an older version read counts as the same as the track's own file.
            holds = contents[row.track_id] if row.file_tags is None else row[3:]
            alike[holds].append((row.track_id, loaded_path(row)))
        for (text, format, version, obstacle), files in alike.items():
            fields = stored_json(text)
            yield (
                FileContents(
                    file_tags={name: tuple(values) for name, values in fields.items()},
                    format=format,
                    tag_version=version,
                    obstacle=obstacle,
                ),
                files,
            )

    def _rows_of(
        self, ids: ArrayLike, column: sa.Column[int], query: sa.Select[Any]
    ) -> Iterator[Any]:
        """The rows that a query finds for numbers in a column, many at a time."""
        numbers = np.asarray(ids, np.int64).ravel().tolist()
        for batch in database.batches(numbers, database.IDS_AT_ONCE):
            yield from self._library.fetch(query.where(column.in_(batch)))

    def put_copy(self, file: Track) -> None:
        """Store another file with the sound of a track, whose number it has."""
        row = {
            "track_id": file.id,
            "size": file.size,
            "modified": file.modified,
            **stored_path(file.path),
            **_contents(file),
        }
        with self._library.begin() as connection:
            database.replace_rows(connection, track_copy, [row], track_copy.c.path == row["path"])

    def drop_copies(self, paths: Iterable[str]) -> None:
        """Delete copies that are gone."""
        with self._library.begin() as connection:
            for path in paths:
                is_copy = track_copy.c.path == stored_path(path)["path"]
                connection.execute(sa.delete(track_copy).where(is_copy))

    def all(self, states: Iterable[str] = ("present",)) -> Iterator[Track]:
        """The tracks in order of their numbers, read page by page."""
        wanted = [_checked(state) for state in states]
        last = 0
        while True:
            query = (
                sa.select(track)
                .where(track.c.id > last, track.c.state.in_(wanted))
                .order_by(track.c.id)
                .limit(database.PAGE)
            )
            page = self._library.fetch(query)
            if not page:
                return
            yield from map(_track, page)
            last = page[-1].id

    def many(self, ids: ArrayLike) -> list[Track]:
        """The tracks with these numbers, in this order."""
        wanted: list[int] = np.asarray(ids, np.int64).ravel().tolist()
        with self._library.reading():
            rows = self._rows_of(wanted, track.c.id, sa.select(track))
            tracks = {row.id: _track(row) for row in rows}
        for number in wanted:
            if number not in tracks:
                raise NotInLibraryError(f"There is no track #{number} in the library.")
        return [tracks[number] for number in wanted]

    def ids(self) -> Ids:
        """The numbers of the present tracks, ascending."""
        query = sa.select(track.c.id).where(track.c.state == "present").order_by(track.c.id)
        return np.array([row.id for row in self._library.fetch(query)], np.int64)

    def put(self, tracks: Iterable[Track]) -> list[int]:
        """Add tracks for new sounds and update the known ones; their numbers."""
        numbers: list[int] = []
        with self._library.begin() as connection:
            for batch in database.batches(tracks):
                numbers += _put(connection, batch)
            database.bump_version(connection, database.TRACKS)
        return numbers

    def replace(self, changed: Track) -> None:
        """Update a track."""
        with self._library.begin() as connection:
            update = sa.update(track).where(track.c.id == changed.id).values(_columns(changed))
            connection.execute(update)
            database.bump_version(connection, database.TRACKS)

    def set_state(self, ids: Iterable[int], state: str, *, reason: str | None = None) -> None:
        """Mark tracks as present, missing or unreadable."""
        values = {"state": _checked(state), "reason": reason}
        with self._library.begin() as connection:
            for batch in database.batches(map(int, ids)):
                connection.execute(sa.update(track).where(track.c.id.in_(batch)).values(values))
            database.bump_version(connection, database.TRACKS)

    def features(self, ids: ArrayLike, *, extractor: str) -> TrackFeatures:
        """The features (m, n_features) of those tracks (m,) that have them, in the order given.

        extractor : its key, as in the setting "extractor"; or its name, for the last one used
        """
        wanted = np.asarray(ids, np.int64).ravel()
        with self._library.connect() as connection:
            stored = feature_rows.find_extractor(connection, extractor)
            if stored is None:
                return np.empty(0, np.int64), np.empty((0, 0), np.float32)
            vectors = feature_rows.read_features(connection, stored.id, wanted)
        with_features = [number for number in wanted.tolist() if number in vectors]
        data = b"".join(vectors[number] for number in with_features)
        X = np.frombuffer(data, "<f4").astype(np.float32)
        shape = (len(with_features), stored.n_features)
        return np.array(with_features, np.int64), X.reshape(shape)

    def with_features(self, ids: ArrayLike, *, extractor: str) -> Ids:
        """The tracks that have features, in the order given."""
        wanted = np.asarray(ids, np.int64).ravel()
        with self._library.connect() as connection:
            stored = feature_rows.find_extractor(connection, extractor)
            if stored is None:
                return wanted[:0]
            have_features = feature_rows.ids_with_features(connection, stored.id, wanted)
        return wanted[np.isin(wanted, have_features)]

    def put_features(self, ids: ArrayLike, matrix: ArrayLike, *, extractor: str) -> None:
        """Store features (n, n_features) of tracks (n,), replacing the old ones.

        An extractor's key is its name, or its name and something after the last "@".
        """
        numbers = np.asarray(ids, np.int64)
        X = np.asarray(matrix, np.float32)
        if X.ndim != 2 or len(X) != len(numbers):
            raise LibraryError(
                f"'matrix' must have a row for each of the {len(numbers)} tracks, got {X.shape}."
            )
        with self._library.begin() as connection:
            extractor_id = feature_rows.register_extractor(connection, extractor, X.shape[1])
            feature_rows.write_features(connection, extractor_id, numbers, X)
            database.bump_version(connection, database.TRACKS)

    def drop_features(self, track_id: int) -> None:
        """Delete all features of a track: its sound has changed."""
        with self._library.begin() as connection:
            feature_rows.delete_features(connection, track_id)


def _put(connection: sa.Connection, tracks: Sequence[Track]) -> list[int]:
    """Add or update tracks, by their sounds; their numbers."""
    sounds = [given.sound for given in tracks]
    query = sa.select(track.c.sound, track.c.id).where(track.c.sound.in_(sounds))
    known = {row.sound: row.id for row in connection.execute(query)}
    columns_by_sound = {given.sound: _columns(given) for given in tracks}  # the last one stays
    added_at = now()
    new = []
    for sound, columns in columns_by_sound.items():
        if sound in known:
            update = sa.update(track).where(track.c.id == known[sound])
            connection.execute(update.values(columns))
        else:
            new.append({**columns, "added_at": added_at})
    if new:
        insert = sa.insert(track).returning(track.c.sound, track.c.id)
        for row in connection.execute(insert, new):
            known[row.sound] = row.id
    return [int(known[sound]) for sound in sounds]


def _columns(stored: Track) -> dict[str, Any]:
    """The columns of a track, except its number and when it was added."""
    return {
        **stored_path(stored.path),
        "sound": stored.sound,
        "state": stored.state,
        "reason": stored.reason,
        "title": _storable_or_none(stored.title),
        "artist": _storable_or_none(stored.artist),
        "album": _storable_or_none(stored.album),
        "duration": stored.duration,
        "size": stored.size,
        "modified": stored.modified,
        **_contents(stored),
    }


def _contents(file: Track) -> dict[str, str | None]:
    """The columns of what a file holds."""
    file_tags = {name: list(values) for name, values in file.file_tags.items() if values}
    return {
        "file_tags": json.dumps(file_tags),
        "format": file.format,
        "tag_version": file.tag_version,
        "obstacle": _storable_or_none(file.obstacle),
    }


def _storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _track(row: Any) -> Track:
    return Track(
        path=loaded_path(row),
        sound=row.sound,
        size=row.size,
        modified=row.modified,
        title=row.title,
        artist=row.artist,
        album=row.album,
        duration=row.duration,
        file_tags=stored_json(row.file_tags),
        format=row.format,
        tag_version=row.tag_version,
        obstacle=row.obstacle,
        id=row.id,
        state=row.state,
        reason=row.reason,
        added_at=to_datetime(row.added_at),
    )


def _checked(state: str) -> str:
    if state not in STATES:
        raise LibraryError(f"'state' must be one of {', '.join(STATES)}, got {state!r}.")
    return state
