"""The tracks that a person names: by files, folders, numbers, names, or a question."""

from collections.abc import Sequence
from pathlib import Path

from harmonium.errors import DataError, LibraryError
from harmonium.files import absolute_path
from harmonium.library.known_files import is_below
from harmonium.library.library import Library, TrackName
from harmonium.library.snapshot import Question

MIN_PROBABILITY = 0.5
"""A track is found by a question that is as likely as not to be true of it."""


def chosen_tracks(
    library: Library, named: Sequence[TrackName], query: str | None = None
) -> tuple[list[int], set[str] | None]:
    """As `Library.find_tracks`."""
    chosen, files = set(library.tracks.ids().tolist()), None
    if named:
        found = [pair for one in named for pair in _files_of(library, one)]
        chosen &= {number for number, _ in found}
        files = {path for _, path in found}
    if query is not None and query.strip():
        question = Question(query.strip(), min_probability=MIN_PROBABILITY)
        chosen &= set(library.snapshot().find(question).ids.tolist())
    return sorted(chosen), files


def _files_of(library: Library, named: TrackName) -> list[tuple[int, str]]:
    """(track, file) of each file that is meant."""
    place = absolute_path(str(named)) if isinstance(named, str | Path) else ""
    if not place or not Path(place).is_dir():
        track = library.track(named)
        if track.state != "present":
            why = f": {track.reason.rstrip('.')}" if track.reason else ""
            raise LibraryError(f"{named} cannot be used; its file is {track.state}{why}.")
        everywhere = [track.path, *library.tracks.copies([track.id]).get(track.id, [])]
        return [(track.id, path) for path in ([place] if place in everywhere else everywhere)]
    copies = library.tracks.copies(library.tracks.ids())
    inside = [
        (track.id, path)
        for track in library.tracks.all()
        for path in (track.path, *copies.get(track.id, []))
        if is_below(path, [place])
    ]
    if not inside:
        raise LibraryError(
            f"The library has no track in the folder {named}. `harmonium index {named}` adds those "
            "that are there."
        )
    return inside


def music_files(library: Library | None, named: Sequence[str | Path]) -> list[str]:
    """The files that are named, in folders too, or by what the library knows of them."""
    from harmonium.audio.audio_files import find_audio

    paths = []
    for one in named:
        path = Path(one).expanduser()
        try:
            if path.exists():
                paths.append(path)
            elif library is None:
                raise LibraryError("There is no library that could know it, either.")
            else:
                paths.append(Path(library.tracks.resolve(str(one)).path))
        except LibraryError as error:
            raise LibraryError(f"There is no file {str(one)!r}. {error}") from None
    found = find_audio(paths)
    if not found.files:
        raise DataError("There is no music file in the folders named.")
    return [str(file) for file in found.files]
