"""From what the collection gives to what the API gives."""

from harmonium.files import readable
from harmonium.library.answering import track_tags
from harmonium.library.snapshot import Hit, Snapshot
from harmonium.library.store.tracks import Track
from harmonium.web import answers

PLAYABLE = {
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
    ".wave": "audio/wav",
    ".m4a": "audio/mp4",
    ".m4b": "audio/mp4",
    ".aac": "audio/aac",
    ".mka": "audio/x-matroska",
}
"""Endings of files that browsers play, with their types."""


def media_type(path: str) -> str | None:
    """The type of a file that browsers play; None of another."""
    name = path.lower()
    return next((kind for ending, kind in PLAYABLE.items() if name.endswith(ending)), None)


def brief(track: Track) -> answers.TrackBrief:
    """A track in a line."""
    return answers.TrackBrief.model_validate(_line(track))


def _line(track: Track) -> dict[str, object]:
    return {
        "id": track.id,
        "name": readable(track.name),
        "title": track.title,
        "artist": track.artist,
        "album": track.album,
        "duration": track.duration,
    }


def hit(view: Snapshot, found: Hit) -> answers.Hit:
    """A track that was found."""
    tags = [
        answers.HitTag(
            tag=one.tag,
            shown=view.shown(one.tag),
            probability=one.probability,
            source="people" if one.probability is None else "model",
        )
        for one in found.shown_tags
    ]
    return answers.Hit.model_validate(
        _line(found.track)
        | {
            "probability": found.probability,
            "similarity": found.similarity,
            "source": found.source,
            "tags": tags,
        }
    )


def tag_of_track(one: track_tags.TagOfTrack) -> answers.TagOfTrack:
    """A tag of a track."""
    values = one._asdict()
    people = answers.PeopleCount(yes=values.pop("yes"), no=values.pop("no"))
    return answers.TagOfTrack(**values, people=people)


def whole_track(view: Snapshot, track: Track, person: str) -> answers.TrackAnswer:
    """A track with all its tags."""
    copies = view.library.tracks.copies([track.id]).get(track.id, [])
    tags = track_tags.tags_of_track(view, track.id, person)
    return answers.TrackAnswer.model_validate(
        _line(track)
        | {
            "state": track.state,
            "file": readable(track.path),
            "playable": track.state == "present" and media_type(track.path) is not None,
            "copies": [readable(path) for path in copies],
            "tags": [tag_of_track(one) for one in tags],
        }
    )
