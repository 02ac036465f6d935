"""Which tracks the arguments of a command mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harmonium.collection import Library

LEAST_PROBABILITY = 0.5
"""A track counts as found if the question is as likely as not to be true of it."""


def chosen_tracks(library: Library, named: list[str], query: str | None) -> list[int]:
    """The numbers of the present tracks that are named or found, ascending; else of all.

    named : files, folders, "#NUMBER", "artist - title"
    query : what to search for; if there are names too, among those

    Raises
    ------
    LibraryError
        where a name fits no track, or one whose file cannot be used
    """
    chosen: set[int] | None = None
    if named:
        chosen = {number for text in named for number in _named(library, text)}
    if query is not None:
        found = _found(library, query)
        chosen = found if chosen is None else chosen & found
    present = library.tracks.ids().tolist()
    return present if chosen is None else [number for number in present if number in chosen]


def _named(library: Library, text: str) -> list[int]:
    from harmonium.collection.indexing.known_files import is_below
    from harmonium.errors import LibraryError
    from harmonium.user_folders import absolute_path

    folder = Path(absolute_path(text))
    if not folder.is_dir():
        track = library.tracks.resolve(text)
        if track.state != "present":
            why = f": {track.reason.rstrip('.')}" if track.reason else ""
            raise LibraryError(f"{text} cannot be used; its file is {track.state}{why}.")
        return [track.id]
    inside = [track.id for track in library.tracks.all() if is_below(track.path, [str(folder)])]
    if not inside:
        raise LibraryError(
            f"The library has no track in the folder {text}. `harmonium index {text}` adds those "
            "that are there."
        )
    return inside


def _found(library: Library, query: str) -> set[int]:
    from harmonium.collection.answering.search import search

    limit = max(1, library.tracks.count())
    return {
        hit.track.id
        for hit in search(library, query, limit=limit, min_probability=LEAST_PROBABILITY).hits
    }
