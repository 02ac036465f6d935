"""What a person says about tracks: how it is read and saved, and what follows from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from harmonium.data.tag_names import NO_TAG, kind_of, normalise_tag
from harmonium.errors import DataError, LibraryError, counted
from harmonium.library.library import Library
from harmonium.library.snapshot import Snapshot
from harmonium.library.store.tracks import Track, named_tracks
from harmonium.library.teaching.completion import CompletedTag, complete_track

ME = "me"  # the default person


@dataclass(frozen=True)
class Said:
    """What a person said about tracks."""

    change: int | None  # None if nothing is new
    tracks: list[Track]
    moved: list[CompletedTag]  # the other tags of a single track, most moved first


def say(
    library: Library,
    tracks: list[Track],
    accepted: Sequence[str] = (),
    rejected: Sequence[str] = (),
    withdrawn: Sequence[str] = (),
    *,
    person: str = ME,
    change: int | None = None,
) -> Said:
    """Save what a person says about tracks, like `keep_said`, and work out what follows."""
    before = library.snapshot()
    ids = [track.id for track in tracks]
    number = keep_said(library, ids, accepted, rejected, withdrawn, person=person, change=change)
    moved: list[CompletedTag] = []
    if number is not None and len(tracks) == 1:
        moved = _moved_tags(before, tracks[0], person)
    return Said(change=number, tracks=tracks, moved=moved)


def _moved_tags(before: Snapshot, track: Track, person: str) -> list[CompletedTag]:
    """The other tags of a track that a person's answers move, compared with an earlier state."""
    opinions = before.library.opinions.of_track(track.id)
    accepted = [tag for who, tag, value in opinions if who == person and value > 0]
    rejected = [tag for who, tag, value in opinions if who == person and value < 0]
    try:
        completion = complete_track(before, track.id, accepted, rejected, person)
    except LibraryError:  # no model, or no features: nothing follows
        return []
    tags = {tag.tag: tag for tag in completion.tags}
    return [tags[name] for name in completion.moved]


def keep_said(
    library: Library,
    ids: ArrayLike,
    accepted: Sequence[str] = (),
    rejected: Sequence[str] = (),
    withdrawn: Sequence[str] = (),
    *,
    person: str = ME,
    change: int | None = None,
) -> int | None:
    """Save what a person says about tracks; the number of the change, None if nothing is new.

    It replaces what they said before about the same tags, and anything in the tracks' files that
    contradicts it.
    """
    kinds = library.tags.kinds()
    for word in accepted:
        if kind_of(normalise_tag(word), kinds) == NO_TAG:
            raise DataError(f"{word!r} is not a tag. `harmonium kind {word!r} own` makes it one.")
    summary = f"{named_tracks(library.tracks.many(ids))}: {_listed(accepted, rejected, withdrawn)}"
    with library.begin():
        if change is None:
            number = library.changes.begin("say", summary)
        else:
            library.changes.check_open(change)
            number = change
        n_changed = library.opinions.say(person, ids, accepted, rejected, withdrawn, change=number)
        if change is None and not n_changed:
            library.changes.drop(number)
            return None
    return number


def _listed(accepted: Sequence[str], rejected: Sequence[str], withdrawn: Sequence[str]) -> str:
    words = [*accepted, *(f"-{tag}" for tag in rejected)]
    return ", ".join(words) if words else f"{counted(len(withdrawn), 'tag')} withdrawn"


def read_said(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """The accepted and the rejected tags in words such as "rock", "-live" or "rock, -live"."""
    text = ",".join(words).replace(";", ",")
    accepted = []
    rejected = []
    for part in text.split(","):
        tag = part.strip()
        if not tag.strip(" -"):
            continue
        if tag.startswith("-"):
            rejected.append(tag.removeprefix("-").strip())
        else:
            accepted.append(tag)
    if not accepted and not rejected and text.strip(" ,"):
        raise DataError("A minus alone is not a tag. Put it before a tag: -live")
    return accepted, rejected
