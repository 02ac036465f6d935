"""What a person says of one track."""

from collections.abc import Iterable, Sequence

from harmonium.errors import DataError, counted
from harmonium.library.library import Library

ME = "me"
"""Whose tags they are, where nobody is named."""


def say(
    library: Library,
    track_id: int,
    *,
    present: Sequence[str] = (),
    absent: Sequence[str] = (),
    unsaid: Sequence[str] = (),
    person: str = ME,
    change: int | None = None,
) -> int | None:
    """Keep what a person says of a track.

    It takes the place of what they said before of the same tags, and of what the track's file says
    to the contrary.

    Parameters
    ----------
    track_id : the number of the track
    present, absent : tags that fit, and tags that do not, in any spelling
    unsaid : tags of which they take back what they said
    person : their name
    change : the number of a change that this is part of; by default it is one of its own

    Returns
    -------
    the number of the change; None where it is all as they had said before
    """
    track = library.tracks.get(track_id)
    with library.begin():
        number = change or library.changes.begin("say", f"{track.name}: {_said(present, absent)}")
        n_changed = library.opinions.say(person, track_id, present, absent, unsaid, change=number)
        if change is None and not n_changed:
            library.changes.drop(number)
            return None
    return number


def read_said(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Tags that hold and tags that do not, from words such as "rock", "-live" or "rock, -live"."""
    parts = [part.strip() for word in words for part in word.split(",") if part.strip(" -")]
    absent = [part.removeprefix("-").strip() for part in parts if part.startswith("-")]
    present = [part for part in parts if not part.startswith("-")]
    if not parts and any(word.strip() for word in words):
        raise DataError("A minus alone is no tag. Write it before one: -live")
    return present, absent


def _said(present: Sequence[str], absent: Sequence[str]) -> str:
    words = ", ".join([*present, *(f"-{tag}" for tag in absent)])
    return words or counted(1, "tag") + " taken back"
