"""Which track a person, or the row of a table, means.

One set of rules, tried in this order until tracks fit:

1. its number, "#12"
2. its path: absolute, from the present folder, or from a folder that was indexed
3. the end of its path; then the same without the ending of the file's name
4. the end of its path, with or without that ending, in capitals or not
5. its artist and title, in any spelling; or the title alone

Where a missing track and a present one have had the same path, it is the present one's. The path of
a copy of a track's file means the track as well.
"""

import os
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import polars as pl
import sqlalchemy as sa

from harmonium.data.tag_names import normalise_names, normalise_tag
from harmonium.errors import LibraryError, nearest_names
from harmonium.files import absolute_path
from harmonium.library.store.schema import stored_path, track, track_copy

NONE, SEVERAL, EMPTY = "no such track", "several tracks", "nothing to find a track by"
"""Why a row means no track."""
_SHOWN = 5  # tracks named in a message
_Spelling = Callable[[str], str]


def resolve(connection: sa.Connection, text: str, folders: Iterable[str] = ()) -> int:
    """The number of the track that a person means.

    Raises
    ------
    LibraryError
        where none or several fit; it names those that come near
    """
    # Most often the name of the file is as written; then few tracks have to be read.
    file = _path_in(text).rpartition("/")[2]
    finder = TrackFinder(connection, folders, containing=file, for_one=True)
    found = finder.by_path(text)
    if not found:
        finder = TrackFinder(connection, folders, for_one=True)
        found = finder.by_path(text) or finder.by_path_in_any_case(text) or finder.by_name(text)
    if not found:
        raise LibraryError(f"There is no track {text!r} in the library.{finder.near(text)}")
    if len(found) > 1:
        raise LibraryError(
            f"{text!r} could be any of {len(found):,} tracks: {finder.listed(found)}. Name one "
            "by its number, or by more of its path."
        )
    return found[0]


class TrackFinder:
    """The tracks of a library, to be found by what people and other programs call them.

    Parameters
    ----------
    connection : to the library; it is read once, for any number of questions
    folders : those that relative paths may be relative to
    containing : only tracks with this in their paths
    for_one : whether there is only one question, for which no index is worth while
    """

    def __init__(
        self,
        connection: sa.Connection,
        folders: Iterable[str] = (),
        *,
        containing: str = "",
        for_one: bool = False,
    ) -> None:
        self._folders = [_one_spelling(folder) for folder in folders]
        columns = (track.c.id, track.c.path, track.c.artist, track.c.title)
        order = (track.c.state == "present", track.c.id)  # of tracks with one path, the last stays
        query = sa.select(*columns).where(track.c.state != "forgotten").order_by(*order)
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
        self._for_one = for_one
        self._by_file: dict[_Spelling, Mapping[str, list[tuple[str, int]]]] = {}

    def match(
        self, item: str | None = None, *, artist: str | None = None, title: str | None = None
    ) -> int | str:
        """The number of the track that the row of a table means; or why there is none.

        Parameters
        ----------
        item : its number, path, or the end of its path
        artist, title : the title alone is enough if no other track has it
        """
        answers = []
        if item and item.strip():
            item = item.strip()
            answers.append(_single(self.by_path(item) or self.by_path_in_any_case(item)))
        if title and title.strip():
            answers.append(_single(self._by_artist_and_title(artist or "", title)))
        found = next((answer for answer in answers if isinstance(answer, int)), None)
        return found if found is not None else (answers or [EMPTY])[0]

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
        titles = _normalised(row.title for row in rows)
        named = zip(rows, names, titles, strict=True)
        return [row.id for row, name, title in named if wanted in (name, title)]

    def _by_artist_and_title(self, artist: str, title: str) -> list[int]:
        wanted = normalise_tag(artist)
        titled = self._titles.get(normalise_tag(title), [])
        return [number for who, number in titled if not wanted or who == wanted]

    def _by_end(self, end: str, spell: _Spelling) -> list[int]:
        """The tracks whose paths end with these parts of one; or do without the file's ending."""
        paths = self._spelt_paths(spell, end.rpartition("/")[2])
        end = f"/{end.lstrip('/')}"
        whole = [number for path, number in paths if path.endswith(end)]
        found = whole or [n for path, n in paths if _without_ending(path).endswith(end)]
        return list(dict.fromkeys(found))

    def _spelt_paths(self, spell: _Spelling, file: str) -> list[tuple[str, int]]:
        """The paths, and tracks, whose file may be called so."""
        if self._for_one:
            return [(spell(path), number) for path, number in self._ids.items()]
        if spell not in self._by_file:
            self._by_file[spell] = _by_file_name(self._ids, spell)
        return self._by_file[spell].get(file, [])

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


def track_number(text: str) -> int | None:
    """12 of "#12"; None of any other text."""
    return int(text[1:]) if text.startswith("#") and text[1:].isdecimal() else None


def _path_in(text: str) -> str:
    """The path that a text is, or the end of one, as tracks have them here."""
    return _one_spelling(stored_path(text)["path"]).removeprefix("./")


def _one_spelling(path: str) -> str:
    """A path with slashes, its accents as one letter each: systems differ in both."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))


def _normalised(names: Iterable[str]) -> Iterable[str]:
    return normalise_names(pl.Series(list(names), dtype=pl.String))


def _by_file_name(ids: Mapping[str, int], spell: _Spelling) -> Mapping[str, list[tuple[str, int]]]:
    """The name of a file, with its ending and without → the paths, and the tracks there."""
    found = defaultdict(list)
    for path, number in ids.items():
        full = spell(path)
        file = full.rpartition("/")[2]
        found[file].append((full, number))
        stem = _without_ending(file)
        if stem != file:
            found[stem].append((full, number))
    return found


def _without_ending(path: str) -> str:
    return os.path.splitext(path)[0]  # noqa: PTH122


def _single(numbers: list[int]) -> int | str:
    if len(numbers) == 1:
        return numbers[0]
    return SEVERAL if numbers else NONE
