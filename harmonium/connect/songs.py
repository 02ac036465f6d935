"""The songs of a server, and which of them are the library's tracks."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from harmonium.library.store.tracks import Track

MAX_APART = 5.0  # seconds by which two durations of one recording may differ


class Song(NamedTuple):
    """A track as the server knows it."""

    id: str
    path: str = ""  # relative to a folder on the server, or made up from tags
    title: str = ""
    artist: str = ""
    album: str = ""
    artistId: str = ""
    duration: float | None = None


class _Likeness(NamedTuple):
    """How well a song fits a track; the least is the best."""

    minus_common_parts: (
        int  # minus the number of parts of the path that are the same, from the end on
    )
    is_of_another_album: bool
    gap: float  # seconds between the durations


def matched(tracks: Iterable[Track], songs: Iterable[Song]) -> dict[int, Song]:
    """Number of a track → its song: by the end of the path, else by artist, title and album.

    The durations must agree. A folder and a file's name must be the same, or all of the path that
    the server shows.
    """
    by_file: dict[str, list[Song]] = defaultdict(list)
    by_name: dict[str, list[Song]] = defaultdict(list)
    for song in songs:
        by_file[_parts(song.path)[-1]].append(song)
        by_name[_name(song)].append(song)
    matches = {}
    for track in tracks:
        best: tuple[_Likeness, Song] | None = None
        candidates = _by_path(track, by_file)
        if track.title:
            candidates += [(0, song) for song in by_name[_name(track)]]
        for n_common, song in candidates:
            gap = _gap(track, song)
            if gap > MAX_APART:
                continue
            likeness = _Likeness(
                minus_common_parts=-n_common,
                is_of_another_album=_parts(song.album) != _parts(track.album),
                gap=gap,
            )
            if best is None or (likeness, song) < best:
                best = (likeness, song)
        if best is not None:
            matches[track.id] = best[1]
    return matches


def _by_path(track: Track, by_file: dict[str, list[Song]]) -> list[tuple[int, Song]]:
    """The songs whose path ends like the track's, each with the number of common parts."""
    parts = _parts(track.path)
    candidates = []
    for song in by_file[parts[-1]]:
        song_parts = _parts(song.path)
        n_common = _n_common_at_end(parts, song_parts)
        if n_common >= 2 or n_common == len(song_parts):
            candidates.append((n_common, song))
    return candidates


def _gap(track: Track, song: Song) -> float:
    """The seconds between the durations; 0 if one is unknown."""
    if not track.duration or not song.duration:
        return 0.0
    return abs(track.duration - song.duration)


def _n_common_at_end(parts: list[str], other_parts: list[str]) -> int:
    """How many parts two paths have in common at their ends."""
    pairs = zip(reversed(parts), reversed(other_parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _name(track: Track | Song) -> str:
    """Artist and title, regardless of spelling."""
    return "\n".join([*_parts(track.artist), *_parts(track.title)])


def _parts(path: str | None) -> list[str]:
    """The parts of a path, or a name as one part, regardless of spelling."""
    text = unicodedata.normalize("NFC", path or "").casefold()
    return text.replace("\\", "/").strip("/ ").split("/")
