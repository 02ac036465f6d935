"""Taking tracks out of the library, without touching their files."""

from collections.abc import Sequence

from harmonium.errors import counted
from harmonium.library.library import Library
from harmonium.library.store.changes import TRACK_STATE
from harmonium.library.store.tracks import FORGOTTEN


def forget(library: Library, ids: Sequence[int]) -> int | None:
    """Take tracks out of the library, with what people say of them; the number of the change.

    Indexing passes over their sounds from now on, wherever their files are. None where all of them
    were forgotten before.
    """
    tracks = library.tracks.many(list(ids))
    name = tracks[0].name if len(tracks) == 1 else counted(len(tracks), "track")
    with library.begin():
        number = library.changes.begin("forget", f"{name} taken out of the library")
        library.opinions.end_tracks([track.id for track in tracks], change=number)
        new = [
            library.changes.set_value(number, TRACK_STATE, track.id, FORGOTTEN) for track in tracks
        ]
        if not any(new):
            library.changes.drop(number)
            return None
    return number
