"""Which tracks the rows of a table mean: by path, number, file name, or title and artist."""

import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

import sqlalchemy as sa

from harmonium.collection.store.schema import track
from harmonium.collection.store.track_finder import ends_with
from harmonium.data.normalise import normalise_tag

NONE, SEVERAL, EMPTY = "no such track", "several tracks", "nothing to find a track by"
"""Why there is no match."""


class Matcher:
    """The tracks of a library, to be found by what other programs call them.

    Parameters
    ----------
    connection : to a library
    folders : those that relative paths may be relative to
    """

    def __init__(self, connection: sa.Connection, folders: Iterable[str] = ()) -> None:
        self._folders = tuple(folders)
        self._ids: set[int] = set()
        self._paths: dict[str, int] = {}
        self._files: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._stems: dict[str, list[int]] = defaultdict(list)
        self._names: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._titles: dict[str, list[int]] = defaultdict(list)
        columns = (track.c.id, track.c.path, track.c.artist, track.c.title)
        # A path may be a missing track's and a present one's: the latter comes last and stays.
        order = (track.c.state == "present", track.c.id)
        for row in connection.execute(sa.select(*columns).order_by(*order)):
            self._add(*row)

    def match(
        self, item: str | None = None, *, artist: str | None = None, title: str | None = None
    ) -> int | str:
        """The number of the track; or why there is none.

        Parameters
        ----------
        item : "#12", a path, absolute or relative to a folder of the library, the end of a path, or
            the file's name without its ending; as it is, or else in capitals or not
        artist, title : in any spelling; the title alone, if no other track has it
        """
        answers = []
        if item and item.strip():
            answers.append(self._by_item(item.strip()))
        if title and title.strip():
            answers.append(self._by_names(artist or "", title))
        found = next((answer for answer in answers if isinstance(answer, int)), None)
        return found if found is not None else (answers or [EMPTY])[0]

    def _add(self, number: int, path: str, artist: str | None, title: str | None) -> None:
        path = _plain(path)
        file = path.rpartition("/")[2]
        self._ids.add(number)
        self._paths[path] = number
        self._files[file].append((path, number))
        self._stems[os.path.splitext(file)[0]].append(number)  # noqa: PTH122
        if title:
            self._names[normalise_tag(artist or ""), normalise_tag(title)].append(number)
            self._titles[normalise_tag(title)].append(number)

    def _by_item(self, item: str) -> int | str:
        if item.startswith("#") and item[1:].isdecimal():
            number = int(item[1:])
            return number if number in self._ids else NONE
        path = _plain(item)
        for folder in ("", *(f"{_plain(folder)}/" for folder in self._folders)):
            if (number := self._paths.get(folder + path.removeprefix("./"), -1)) >= 0:
                return number
        candidates = self._files.get(path.rpartition("/")[2], [])
        by_end = [number for full, number in candidates if ends_with(full, path)]
        return _single(by_end or self._stems.get(path, []) or self._in_any_case(path))

    def _in_any_case(self, path: str) -> list[int]:
        """Tracks whose paths, with or without ending, end so, in capitals or not."""
        end = path.casefold()
        return [
            number
            for full, number in self._folded.get(end.rpartition("/")[2], [])
            if ends_with(full, end) or ends_with(os.path.splitext(full)[0], end)  # noqa: PTH122
        ]

    @cached_property
    def _folded(self) -> dict[str, list[tuple[str, int]]]:
        """Name of a file, with and without ending, in small letters → paths likewise, numbers."""
        found: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, number in self._paths.items():
            full = path.casefold()
            file = full.rpartition("/")[2]
            for name in {file, os.path.splitext(file)[0]}:  # noqa: PTH122
                found[name].append((full, number))
        return found

    def _by_names(self, artist: str, title: str) -> int | str:
        who, what = normalise_tag(artist), normalise_tag(title)
        if not who:
            return _single(self._titles.get(what, []))
        return _single(self._names.get((who, what), []))


def match_all(
    matcher: Matcher, rows: Iterable[Mapping[str, str]]
) -> tuple[list[int | None], list[str | None]]:
    """For rows with some of "item", "artist" and "title": the tracks, and the reasons for none."""
    answers = [
        matcher.match(row.get("item"), artist=row.get("artist"), title=row.get("title"))
        for row in rows
    ]
    numbers = [answer if isinstance(answer, int) else None for answer in answers]
    return numbers, [answer if isinstance(answer, str) else None for answer in answers]


def _single(numbers: list[int]) -> int | str:
    if len(numbers) == 1:
        return numbers[0]
    return SEVERAL if numbers else NONE


def _plain(path: str) -> str:
    """A path with slashes, its accents as one letter each: systems differ in both."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))
