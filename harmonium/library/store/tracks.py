"""A library's tracks: how they are named, their features, and how similar they sound.

A track is one piece of sound: its file may be renamed, moved and retagged.

docs/library.md lists the rules for finding a track. If a missing track and a present one have had
the same path, it means the present one. The path of a copy of a track's file means the track.

A track's features are a row of float32 for each extractor. Its sound vector has `N_AXES` one-byte
integers, and two tracks are compared by the cosine of their vectors. The features are standardised
over the library, clipped at two deviations, so that no odd feature decides alone, and projected on
their `N_AXES` principal axes, which are not whitened (docs/library.md).

The axes are fitted when a library is first indexed, and again when a tenth of the tracks is new or
has new features; new tracks get vectors along the existing axes. If a track's features change, its
vector is dropped. Vectors are stored in blocks of `BLOCK` track numbers, each block up to its last
track; a track without a vector starts with `_NONE`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from harmonium.arrays import Doubles, Floats, Ids, Places
from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import LibraryError, NotInLibraryError, counted, nearest_names
from harmonium.files import absolute_path
from harmonium.library.store import database
from harmonium.library.store.schema import (
    BLOCK,
    EXTRACTOR,
    extractor,
    feature,
    sound_space,
    sound_vector,
    track,
    track_copy,
)

if TYPE_CHECKING:
    from harmonium.library.library import Library, Progress, TrackName

TrackFeatures = tuple[Ids, Floats]  # numbers of tracks (n,) and their features (n, n_features)
Vectors = NDArray[np.int8]  # sound vectors (n, N_AXES)
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
    """Field ("genre", "mood", "grouping", "comment"; scores, audio features) → what it says."""
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
        wanted = track.c.state != FORGOTTEN if state is None else track.c.state == _checked(state)
        return int(self._library.fetch(sa.select(sa.func.count(track.c.id)).where(wanted))[0][0])

    def get(self, track_id: int) -> Track:
        """The track with this number, or a LibraryError."""
        return self.many([track_id])[0]

    def find(self, path: str) -> Track | None:
        """The track with a file, or a copy of it, at this absolute path; the present one if any."""
        text = database.stored_path(path)["path"]
        places = (track_copy.c.track_id.label("id"), track_copy.c.path, track_copy.c.path_bytes)
        copies = sa.select(*places).where(track_copy.c.path == text)
        own = sa.select(track.c.id, track.c.path, track.c.path_bytes).where(track.c.path == text)
        own = own.order_by((track.c.state != "present"), track.c.id)
        for row in [*self._library.fetch(own), *self._library.fetch(copies)]:
            if database.loaded_path(row) == path and (found := self.get(row.id)).state != FORGOTTEN:
                return found
        return None

    def with_sound(self, sound: str) -> list[Track]:
        """The track with this sound, if any."""
        rows = self._library.fetch(sa.select(track).where(track.c.sound == sound))
        return [_track(row) for row in rows]

    def copies(self, ids: ArrayLike) -> dict[int, list[str]]:
        """Track → the paths of other files with its sound, if any."""
        found: dict[int, list[str]] = {}
        query = sa.select(track_copy).order_by(track_copy.c.path)
        for row in self._rows_of(ids, track_copy.c.track_id, query):
            found.setdefault(row.track_id, []).append(database.loaded_path(row))
        return found

    def by_file_tags(
        self, ids: ArrayLike
    ) -> Iterator[tuple[dict[str, tuple[str, ...]], list[int]]]:
        """(field → values, the tracks whose files say so), for all that files of tracks say."""
        found: dict[str, list[int]] = {}
        query = sa.select(track.c.id, track.c.file_tags)
        for number, text in self._rows_of(ids, track.c.id, query):
            found.setdefault(text, []).append(number)
        for text, numbers in found.items():
            yield {name: (*some,) for name, some in database.stored_json(text).items()}, numbers

    def _rows_of(
        self, ids: ArrayLike, column: sa.Column[int], query: sa.Select[Any]
    ) -> Iterator[Any]:
        """The rows that a query finds for numbers in a column, some at a time."""
        for some in database.batches(np.asarray(ids, np.int64).ravel().tolist(), 10_000):
            yield from self._library.fetch(query.where(column.in_(some)))

    def put_copy(self, file: Track) -> None:
        """Store the path, size and time of another file with the sound of a track."""
        values = {"track_id": file.id, "size": file.size, "modified": file.modified}
        values |= database.stored_path(file.path)
        with self._library.begin() as connection:
            same = track_copy.c.path == values["path"]
            database.replace_rows(connection, track_copy, [values], same)

    def drop_copies(self, paths: Iterable[str]) -> None:
        """Delete copies that are gone."""
        with self._library.begin() as connection:
            for path in paths:
                same = track_copy.c.path == database.stored_path(path)["path"]
                connection.execute(sa.delete(track_copy).where(same))

    def resolve(self, text: str) -> Track:
        """The track that a person means, by this module's rules; or a LibraryError."""
        number = track_number(text)
        if number is not None:
            if (numbered := self.get(number)).state == FORGOTTEN:
                raise LibraryError(
                    f"Track {text} was removed from the library. `harmonium undo --list` shows the "
                    "change, and `harmonium undo NUMBER` brings the track back."
                )
            return numbered
        if (at_path := self.find(absolute_path(text))) is not None:
            return at_path  # without reading all tracks
        folders = self._library.folders()
        with self._library.connect() as connection:
            # Usually the file name is spelt exactly; then only a few tracks are read.
            finder = TrackFinder(connection, folders, containing=_path_in(text).rpartition("/")[2])
            found = finder.by_path(text)
            if not found:
                finder = TrackFinder(connection, folders)
                found = finder.by_path(text) or finder.by_path_in_any_case(text)
                found = found or finder.by_name(text)
        if not found:
            raise LibraryError(f"There is no track {text!r} in the library.{finder.near(text)}")
        if len(found) > 1:
            raise LibraryError(
                f"{text!r} could be any of {len(found):,} tracks: {finder.listed(found)}. Name one "
                "by its number, or by more of its path."
            )
        return self.get(found[0])

    def files_of(self, named: TrackName) -> list[tuple[int, str]]:
        """(track, file) of each file that a person means by a track, a file or a folder."""
        place = absolute_path(str(named)) if isinstance(named, str | Path) else ""
        if not place or not Path(place).is_dir():
            one = self._library.track(named)
            if one.state != "present":
                why = f": {one.reason.rstrip('.')}" if one.reason else ""
                raise LibraryError(f"{named} cannot be used; its file is {one.state}{why}.")
            everywhere = [one.path, *self.copies([one.id]).get(one.id, [])]
            return [(one.id, path) for path in ([place] if place in everywhere else everywhere)]
        copies = self.copies(self.ids())
        inside = [
            (one.id, path)
            for one in self.all()
            for path in (one.path, *copies.get(one.id, []))
            if is_below(path, [place])
        ]
        if not inside:
            raise LibraryError(
                f"There are no tracks in the folder {named}. `harmonium index {named}` adds "
                "its music."
            )
        return inside

    def all(self, states: Iterable[str] = ("present",)) -> Iterator[Track]:
        """The tracks in order of their numbers, read page by page."""
        wanted = [_checked(state) for state in states]
        last = 0
        while True:
            query = sa.select(track).where(track.c.id > last, track.c.state.in_(wanted))
            page = self._library.fetch(query.order_by(track.c.id).limit(database.PAGE))
            if not page:
                return
            yield from map(_track, page)
            last = page[-1].id

    def many(self, ids: ArrayLike) -> list[Track]:
        """The tracks with these numbers, in this order."""
        wanted: list[int] = np.asarray(ids, np.int64).ravel().tolist()
        with self._library.reading():
            rows = self._rows_of(wanted, track.c.id, sa.select(track))
            found = {row.id: _track(row) for row in rows}
        for number in wanted:
            if number not in found:
                raise NotInLibraryError(f"There is no track #{number} in the library.")
        return [found[number] for number in wanted]

    def ids(self) -> Ids:
        """The numbers of the present tracks, ascending."""
        query = sa.select(track.c.id).where(track.c.state == "present").order_by(track.c.id)
        return np.array([row.id for row in self._library.fetch(query)], np.int64)

    def features(self, ids: ArrayLike, *, extractor: str) -> TrackFeatures:
        """The features (m, n_features) of those tracks (m,) that have them, in the order given.

        extractor : its key, as in the setting "extractor"; or its name, for the last one used
        """
        wanted = np.asarray(ids, np.int64).ravel().tolist()
        with self._library.reading(), self._library.connect() as connection:
            number, n_features = find_extractor(connection, extractor)
            query = sa.select(feature.c.track_id, feature.c.vector)
            query = query.where(feature.c.extractor_id == number)
            found = dict(self._rows_of(wanted, feature.c.track_id, query))
        have = [one for one in wanted if one in found]
        data = np.frombuffer(b"".join(found[one] for one in have), "<f4").astype(np.float32)
        return np.array(have, np.int64), data.reshape(len(have), n_features)

    def with_features(self, ids: ArrayLike, *, extractor: str) -> Ids:
        """The tracks that have features, in the order given."""
        wanted = np.asarray(ids, np.int64).ravel()
        with self._library.connect() as connection:
            number, _ = find_extractor(connection, extractor)
            return wanted[np.isin(wanted, _ids_with_features(connection, number))]

    def put_features(self, ids: ArrayLike, matrix: ArrayLike, *, extractor: str) -> None:
        """Store features (n, n_features) of tracks (n,), replacing the old ones.

        An extractor's key is its name, or its name and something after the last "@".
        """
        numbers, rows = np.asarray(ids, np.int64), np.asarray(matrix, "<f4")
        if rows.ndim != 2 or len(rows) != len(numbers):
            raise LibraryError(
                f"'matrix' must have a row for each of the {len(numbers)} tracks, got {rows.shape}."
            )
        with self._library.begin() as connection:
            number = _register(connection, extractor, rows.shape[1])
            for places in database.batches(range(len(numbers))):
                some = numbers[places]
                old = (feature.c.extractor_id == number, feature.c.track_id.in_(some.tolist()))
                new = [
                    {"extractor_id": number, "track_id": one, "vector": vector.tobytes()}
                    for one, vector in zip(some.tolist(), rows[places], strict=True)
                ]
                database.replace_rows(connection, feature, new, *old)
                _write_vectors(connection, number, some)
            database.bump_version(connection, database.TRACKS)

    def drop_features(self, track_id: int) -> None:
        """Delete all features of a track: its sound has changed."""
        with self._library.begin() as connection:
            connection.execute(sa.delete(feature).where(feature.c.track_id == track_id))
            numbers = connection.scalars(sa.select(sound_vector.c.extractor_id).distinct()).all()
            for number in numbers:
                _write_vectors(connection, number, np.array([track_id]))

    def put(self, tracks: Iterable[Track]) -> list[int]:
        """Add tracks for new sounds and update the known ones; their numbers."""
        with self._library.begin() as connection:
            pages = [_put(connection, some) for some in database.batches(tracks)]
            database.bump_version(connection, database.TRACKS)
        return [number for page in pages for number in page]

    def replace(self, one: Track) -> None:
        """Update a track."""
        with self._library.begin() as connection:
            values = _columns(one)
            connection.execute(sa.update(track).where(track.c.id == one.id).values(values))
            database.bump_version(connection, database.TRACKS)

    def set_state(self, ids: Iterable[int], state: str, *, reason: str | None = None) -> None:
        """Mark tracks as present, missing or unreadable."""
        values = {"state": _checked(state), "reason": reason}
        with self._library.begin() as connection:
            for some in database.batches(map(int, ids)):
                connection.execute(sa.update(track).where(track.c.id.in_(some)).values(values))
            database.bump_version(connection, database.TRACKS)


def _put(connection: sa.Connection, tracks: Sequence[Track]) -> list[int]:
    query = sa.select(track.c.sound, track.c.id)
    query = query.where(track.c.sound.in_([one.sound for one in tracks]))
    known = {row.sound: row.id for row in connection.execute(query)}
    rows = {one.sound: _columns(one) for one in tracks}  # the last one with this sound
    new = [row | {"added_at": database.now()} for sound, row in rows.items() if sound not in known]
    for sound, number in known.items():
        connection.execute(sa.update(track).where(track.c.id == number).values(rows[sound]))
    if new:
        into = sa.insert(track).returning(track.c.sound, track.c.id)
        known |= {row.sound: row.id for row in connection.execute(into, new)}
    return [int(known[one.sound]) for one in tracks]


def _columns(one: Track) -> dict[str, Any]:
    """The columns of a track, except its number and when it was added."""
    texts = {name: getattr(one, name) for name in ("title", "artist", "album")}
    tags = {name: [*values] for name, values in one.file_tags.items() if values}
    plain = ("sound", "size", "modified", "duration", "state", "reason")
    return {
        **{name: getattr(one, name) for name in plain},
        **database.stored_path(one.path),
        **{name: text and database.storable(text) for name, text in texts.items()},
        "file_tags": json.dumps(tags),
    }


def _track(row: Any) -> Track:
    values = dict(row._mapping)
    del values["path_bytes"]
    values |= {"path": database.loaded_path(row), "file_tags": database.stored_json(row.file_tags)}
    return Track(**values | {"added_at": database.to_datetime(row.added_at)})


def _checked(state: str) -> str:
    if state not in STATES:
        raise LibraryError(f"'state' must be one of {', '.join(STATES)}, got {state!r}.")
    return state


NONE, SEVERAL, EMPTY = "no such track", "several tracks", "nothing to find a track by"
"""Why a row matches no track."""
_SHOWN = 5  # tracks named in a message
_Spelling = Callable[[str], str]


class TrackFinder:
    """A library's tracks, read once, to find them by what people and other programs call them.

    folders : what relative paths may be relative to
    containing : only tracks with this in their paths
    """

    def __init__(
        self, connection: sa.Connection, folders: Iterable[str] = (), *, containing: str = ""
    ) -> None:
        self._folders = [_one_spelling(folder) for folder in folders]
        columns = (track.c.id, track.c.path, track.c.artist, track.c.title, track.c.duration)
        order = (track.c.state == "present", track.c.id)  # of tracks with one path, the last stays
        query = sa.select(*columns).where(track.c.state != FORGOTTEN).order_by(*order)
        copies = sa.select(track_copy.c.path, track_copy.c.track_id)
        if containing:
            copies = copies.where(track_copy.c.path.contains(containing, autoescape=True))
            of_copies = track.c.id.in_(copies.with_only_columns(track_copy.c.track_id))
            own = track.c.path.contains(containing, autoescape=True)
            query = query.where(sa.or_(own, of_copies))
        self._tracks = {row.id: row for row in connection.execute(query)}
        self._ids = {
            _one_spelling(row.path): row.track_id
            for row in connection.execute(copies)
            if row.track_id in self._tracks
        }
        self._ids |= {_one_spelling(row.path): row.id for row in self._tracks.values()}
        # spelling → name of a file, with its extension and without → paths and tracks
        self._by_file: dict[_Spelling, dict[str, list[tuple[str, int]]]] = {}

    def match(
        self, item: str | None = None, *, artist: str | None = None, title: str | None = None
    ) -> list[int] | str:
        """The track that a table's row means, and its copies; or why no track fits.

        item : its number, path, or the end of its path
        artist, title : the title alone is enough if no other track has it
        """
        answers = []
        if item and item.strip():
            item = item.strip()
            answers.append(self.by_path(item) or self.by_path_in_any_case(item))
        if title and title.strip():
            wanted, titled = normalise_tag(artist or ""), self._titles[normalise_tag(title)]
            answers.append([number for who, number in titled if not wanted or who == wanted])
        for found in answers:
            if len(found) == 1 or self._are_copies(found):
                return found
        return EMPTY if not answers else SEVERAL if answers[0] else NONE

    def _are_copies(self, numbers: list[int]) -> bool:
        """Whether tracks share artist, title and length, such as an MP3 and a FLAC."""
        rows = [self._tracks[number] for number in numbers]
        names = {(normalise_tag(row.artist or ""), normalise_tag(row.title or "")) for row in rows}
        lengths = [row.duration or np.nan for row in rows]
        return len(names) == 1 and bool(np.ptp(lengths) < 1)

    def by_path(self, text: str) -> list[int]:
        """The tracks that fit by the first three rules."""
        number = track_number(text)
        if number is not None:
            return [number] if number in self._tracks else []
        path = _path_in(text)
        absolute = _one_spelling(absolute_path(path))
        places = (absolute, *(f"{folder}/{path}" for folder in self._folders))
        for place in places:
            if place in self._ids:
                return [self._ids[place]]
        return self._by_end(path, str)

    def by_path_in_any_case(self, text: str) -> list[int]:
        """The tracks that fit by the fourth rule."""
        return self._by_end(_path_in(text).casefold(), str.casefold)

    def by_name(self, text: str) -> list[int]:
        """The tracks that fit by the last rule: "artist - title", or a title."""
        wanted = normalise_tag(text)
        rows = [row for row in self._tracks.values() if row.title]
        names = _normalised(f"{row.artist or ''} {row.title}" for row in rows)
        titled = {number for _, number in self._titles[wanted]}
        named = zip(rows, names, strict=True)
        return [row.id for row, name in named if name == wanted or row.id in titled]

    def _by_end(self, end: str, spell: _Spelling) -> list[int]:
        """The tracks whose paths end like this, with or without the file extension."""
        if spell not in self._by_file:
            found = self._by_file[spell] = defaultdict(list)
            for path, number in self._ids.items():
                file = spell(path).rpartition("/")[2]
                for name in {file, _without_ending(file)}:
                    found[name].append((spell(path), number))
        paths = self._by_file[spell][end.rpartition("/")[2]]
        end = f"/{end.lstrip('/')}"
        whole = [number for path, number in paths if path.endswith(end)]
        whole = whole or [n for path, n in paths if _without_ending(path).endswith(end)]
        return list(dict.fromkeys(whole))

    @cached_property
    def _titles(self) -> Mapping[str, list[tuple[str, int]]]:
        """Title → the artists and numbers of tracks."""
        rows = [row for row in self._tracks.values() if row.title]
        artists = _normalised(row.artist or "" for row in rows)
        titles = _normalised(row.title for row in rows)
        found = defaultdict(list)
        for row, title, artist in zip(rows, titles, artists, strict=True):
            found[title].append((artist, row.id))
        return found

    def near(self, text: str) -> str:
        """The tracks whose names are most like the text."""
        names: dict[str, int] = {}
        for row in sorted(self._tracks.values(), key=lambda row: row.id):
            names.setdefault(row.path.rpartition("/")[2].casefold(), row.id)
            if row.title:
                names.setdefault(f"{row.artist or ''} - {row.title}".casefold(), row.id)
        file = text.replace("\\", "/").rpartition("/")[2]
        near = [*nearest_names(file, names, n=3), *nearest_names(text, names, n=3)]
        if not near:
            return " `harmonium index FOLDER` adds music."
        return f" Near it: {self.listed(list(dict.fromkeys(names[name] for name in near)))}."

    def listed(self, numbers: list[int]) -> str:
        """The first of these tracks, for a message."""
        shown = ", ".join(f"#{number} {self._tracks[number].path}" for number in numbers[:_SHOWN])
        more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
        return shown + more


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is inside one of these folders."""
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def track_number(text: str) -> int | None:
    """12 of "#12"; None of any other text, or a number too large for the database."""
    return int(text[1:]) if re.fullmatch(r"#\d{1,18}", text) else None


def _path_in(text: str) -> str:
    """A text as a path, or the end of one, in the form that tracks have here."""
    return _one_spelling(database.stored_path(text)["path"]).removeprefix("./")


def _one_spelling(path: str) -> str:
    """A path with slashes and composed accents: systems differ in both."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))


def _normalised(names: Iterable[str]) -> Iterable[str]:
    return normalise_names(pl.Series(list(names), dtype=pl.String))


def _without_ending(path: str) -> str:
    return os.path.splitext(path)[0]  # noqa: PTH122


N_AXES = 128
_NONE = -128
MAX_TRACKS = 10_000  # tracks that the space is made from; if there are more, a random sample
MAX_DEVIATIONS = 2.0  # where features are clipped, in deviations from their mean
MAX_GROWTH = 1.1  # how much a library may grow or shrink before its space is made again
ROUNDING = 1e-9
FULL = 127  # the length of a vector
_PAGE = 4096  # tracks at a time


def find_extractor(connection: sa.Connection, key: str | None) -> tuple[int, int]:
    """(number, n_features) of the extractor with this key, or the last with this name; else 0."""
    query = (
        sa.select(extractor.c.id, extractor.c.n_features)
        .where(sa.or_(extractor.c.key == key, extractor.c.name == key))
        .order_by((extractor.c.key == key).desc(), extractor.c.id.desc())
    )
    row = connection.execute(query).first()
    return (0, 0) if row is None else (row[0], row[1])


def _ids_with_features(connection: sa.Connection, number: int) -> Ids:
    """All tracks that have features of an extractor, (n,) ascending."""
    query = sa.select(feature.c.track_id).where(feature.c.extractor_id == number)
    found = connection.execute(query.order_by(feature.c.track_id)).scalars().all()
    return np.array(found, np.int64)


def _register(connection: sa.Connection, key: str, n_features: int) -> int:
    query = sa.select(extractor.c.id, extractor.c.n_features).where(extractor.c.key == key)
    row = connection.execute(query).first()
    if row is None:
        name = key.rpartition("@")[0] or key
        values = {"key": key, "name": name, "n_features": n_features}
        return database.key_of(connection.execute(sa.insert(extractor).values(values)))
    if row[1] != n_features:
        raise LibraryError(
            f"The extractor {key!r} gives {row[1]} features per track, got {n_features}."
        )
    return int(row[0])


def _read_vectors(connection: sa.Connection, number: int) -> tuple[Ids, Vectors]:
    """The tracks that have an extractor's vectors (n,), ascending, and the vectors, (n, N_AXES)."""
    query = sa.select(sound_vector.c.block, sound_vector.c.vectors)
    query = query.where(sound_vector.c.extractor_id == number).order_by(sound_vector.c.block)
    found = [(row.block * BLOCK, row.vectors) for row in connection.execute(query)]
    vectors = np.frombuffer(b"".join(data for _, data in found), np.int8).reshape(-1, N_AXES)
    places = [np.arange(first, first + len(data) // N_AXES) for first, data in found]
    ids, have = np.concatenate([np.empty(0, np.int64), *places]), vectors[:, 0] != _NONE
    return (ids, vectors) if have.all() else (ids[have], vectors[have])


def _write_vectors(
    connection: sa.Connection, number: int, ids: Ids, vectors: Vectors | None = None
) -> None:
    """Store the vectors (n, N_AXES) of tracks (n,), replacing the old ones; None drops them."""
    blocks = ids // BLOCK
    for block in np.unique(blocks).tolist():
        here = blocks == block
        places = ids[here] % BLOCK
        same = (sound_vector.c.extractor_id == number, sound_vector.c.block == block)
        data = connection.scalar(sa.select(sound_vector.c.vectors).where(*same)) or b""
        old = np.frombuffer(data, np.int8).reshape(-1, N_AXES)
        if vectors is None and (old[places[places < len(old)], 0] == _NONE).all():
            continue
        whole = np.full((max(len(old), int(places.max()) + 1), N_AXES), _NONE, np.int8)
        whole[: len(old)] = old
        whole[places] = _NONE if vectors is None else vectors[here]
        values = {
            **{"extractor_id": number, "block": block, "vectors": whole.tobytes()},
            "n_vectors": int(np.count_nonzero(whole[:, 0] != _NONE)),
        }
        database.replace_rows(connection, sound_vector, [values], *same)


class SoundSpace(NamedTuple):
    """From features to vectors."""

    mean: Doubles  # (n_features,)
    deviation: Doubles  # (n_features,), infinite for a constant feature
    centre: Doubles  # (n_features,) the mean after clipping at `MAX_DEVIATIONS`
    axes: Doubles  # (n_features, at most N_AXES)

    @classmethod
    def fitted(cls, X: Floats) -> Self:
        """The space of tracks with features (n, n_features)."""
        wide = X.astype(np.float64)
        mean, deviation = wide.mean(axis=0), wide.std(axis=0)
        deviation[deviation <= ROUNDING * np.abs(wide).max(axis=0)] = np.inf
        cut = np.clip((wide - mean) / deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        centre = cut.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov(cut.T, bias=True).reshape(len(mean), len(mean)))
        return cls(mean, deviation, centre, vectors[:, ::-1][:, :N_AXES])

    def vectors(self, X: Floats) -> Vectors:
        """Tracks in the space, (n, N_AXES), of length `FULL` up to rounding."""
        cut = np.clip((X - self.mean) / self.deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        at = (cut - self.centre) @ self.axes
        length = np.maximum(np.linalg.norm(at, axis=1, keepdims=True), ROUNDING)
        padded = np.zeros((len(X), N_AXES), np.int8)
        padded[:, : at.shape[1]] = np.rint(FULL * at / length)
        return padded


def update_sound_vectors(library: Library, progress: Progress | None = None) -> None:
    """Compute the missing vectors of tracks with features."""
    key = library.settings.get(EXTRACTOR)
    if key is None:
        return
    with library.connect() as connection:
        number, _ = find_extractor(connection, key)
        counts = (sa.func.count(feature.c.track_id), sa.func.sum(sound_vector.c.n_vectors))
        n_tracks, n_known = (
            int(connection.scalar(sa.select(n).where(table.c.extractor_id == number)) or 0)
            for n, table in zip(counts, (feature, sound_vector), strict=True)
        )
        fitted_on, space = _load(connection, number)
    fits = n_known * MAX_GROWTH >= n_tracks
    fits = fits and fitted_on / MAX_GROWTH <= n_tracks <= fitted_on * MAX_GROWTH
    if not n_tracks or (fits and n_known == n_tracks):
        return
    with library.begin() as connection:
        ids = _ids_with_features(connection, number)
        if fits and space is not None:
            ids = np.setdiff1d(ids, _read_vectors(connection, number)[0])
        else:
            n_chosen = min(len(ids), MAX_TRACKS)
            chosen = np.sort(np.random.default_rng(0).choice(ids, n_chosen, replace=False))
            space = SoundSpace.fitted(library.tracks.features(chosen, extractor=key)[1])
            arrays = {name: np.ascontiguousarray(one) for name, one in space._asdict().items()}
            values = {"extractor_id": number, "n_tracks": len(ids), "arrays": save(arrays)}
            # Vectors in the former space are invalid.
            for table, rows in ((sound_vector, []), (sound_space, [values])):
                database.replace_rows(connection, table, rows, table.c.extractor_id == number)
        for start in range(0, len(ids), _PAGE):
            some, X = library.tracks.features(ids[start : start + _PAGE], extractor=key)
            _write_vectors(connection, number, some, space.vectors(X))
            if progress:
                progress(start + len(some), len(ids))


class SoundVectors(NamedTuple):
    """How the tracks of a library sound."""

    ids: Ids  # (n,) ascending, of the tracks that have vectors
    vectors: Vectors  # (n, N_AXES), of length `FULL`

    @classmethod
    def of(cls, library: Library) -> Self:
        """The sounds of all tracks that have vectors."""
        key = library.settings.get(EXTRACTOR)
        with library.connect() as connection:
            return cls(*_read_vectors(connection, find_extractor(connection, key)[0]))

    def rows(self, ids: Ids) -> Places:
        """Which of ``ids`` have vectors."""
        return np.flatnonzero(np.isin(ids, self.ids))

    def at(self, ids: Ids) -> Doubles:
        """The vectors of these tracks, which must have them, scaled to length 1, (n, N_AXES)."""
        return self.vectors[np.searchsorted(self.ids, ids)] / float(FULL)

    def cosines(self, track_id: int) -> Floats:
        """The cosine of each track with one track, (n,)."""
        row = int(np.searchsorted(self.ids, track_id))
        if row == len(self.ids) or self.ids[row] != track_id:
            raise LibraryError(
                f"Track #{track_id} has no features to compare it by. `harmonium index` computes "
                "them."
            )
        own = self.vectors[row].astype(np.float32)
        own /= max(float(np.linalg.norm(own)), 1.0)
        found = np.empty(len(self.ids), np.float32)
        for start in range(0, len(self.ids), _PAGE):  # all as floats would not fit the cache
            some = self.vectors[start : start + _PAGE].astype(np.float32)
            length = np.sqrt(np.einsum("ij,ij->i", some, some))
            found[start : start + _PAGE] = some @ own / np.maximum(length, 1.0)
        return found


def current_space(library: Library) -> SoundSpace | None:
    """The space in use; None if it has not been made yet."""
    key = library.settings.get(EXTRACTOR)
    with library.connect() as connection:
        return _load(connection, find_extractor(connection, key)[0])[1]


def _load(connection: sa.Connection, number: int) -> tuple[int, SoundSpace | None]:
    """How many tracks there were when the space was made, and the space; 0 if there is none."""
    query = sa.select(sound_space).where(sound_space.c.extractor_id == number)
    row = connection.execute(query).first()
    return (0, None) if row is None else (row.n_tracks, SoundSpace(**load(row.arrays)))
