"""What a person says of one track."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harmonium.errors import DataError, LibraryError, counted
from harmonium.library.answering.track_tags import CompletedTag, complete_track
from harmonium.library.library import Library
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.tracks import Track

ME = "me"
"""Whose tags they are, where nobody is named."""


@dataclass(frozen=True)
class Said:
    """What a person said of a track."""

    change: int | None
    """None where they had said all of it before."""
    track: Track
    moved: list[CompletedTag]
    """The other tags whose probabilities it moved most, those first."""


def say_and_follow(
    library: Library,
    track: Track,
    yes: Sequence[str],
    no: Sequence[str],
    unsay: Sequence[str],
    person: str,
    change: int | None,
) -> Said:
    """Keep what a person says of a track, and tell what follows from it for its other tags."""
    snapshot = library.snapshot()
    number = say(
        library, track.id, present=yes, absent=no, unsaid=unsay, person=person, change=change
    )
    moved: list[CompletedTag] = []
    if number is not None:
        with suppress(LibraryError):  # no model, or no features: nothing follows
            moved = follows(snapshot, track.id, person)
    return Said(number, track, moved)


def follows(before: Snapshot, track_id: int, person: str) -> list[CompletedTag]:
    """The tags that moved most from an earlier state to what follows from a person's answers."""
    answers = before.library.opinions.of_track(track_id)
    own = {tag: value > 0 for who, tag, value in answers if who == person}
    yes, no = ([tag for tag, holds in own.items() if holds == wanted] for wanted in (True, False))
    found = complete_track(before, track_id, yes, no, person)
    tags = {one.tag: one for one in found.tags}
    return [tags[name] for name in found.moved]


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
