"""What is read from files and what is to change in them, as plain records."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from harmonium.collection.filetags.formats.base import Id3Options, Values
from harmonium.collection.filetags.rules import LeftOut


@dataclass(frozen=True, kw_only=True)
class FileTags:
    """What a file says of itself."""

    format: str
    """"MP3", "FLAC", "Ogg Vorbis", "Opus", "Speex", "Ogg FLAC", "MP4", "WAV" or "AIFF"."""
    version: str | None
    """The kind of tag: "ID3v2.2" to "ID3v2.4", "ID3v1", "Vorbis comment", "MP4", "RIFF INFO";
    None where there is none."""
    genre: Values = ()
    mood: Values = ()
    grouping: Values = ()
    comment: Values = ()
    title: str | None = None
    artist: str | None = None
    """Several are joined with "; "."""
    album: str | None = None
    duration: float | None = None
    """Seconds; None where the file does not tell."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Tag → score, where Harmonium wrote them."""
    notes: tuple[str, ...] = ()
    """What is odd about the file's tags."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class FieldChange:
    """A field that changes."""

    field: str
    """"genre", "mood" or "grouping", or "harmonium_genre" … for the scores of its tags."""
    before: Values
    after: Values
    places: tuple[str, ...]
    """Where it is in the file, such as "TCON"; written to the first, removed from the others."""

    def reversed(self) -> "FieldChange":
        """What undoes it."""
        return FieldChange(self.field, self.after, self.before, self.places)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What writing would do to a file: the result of a dry run, and all that writing needs."""

    path: str
    format: str
    version: str | None
    """The kind of tag that the file has."""
    fields: tuple[FieldChange, ...]
    """Those that change."""
    left_out: tuple[LeftOut, ...] = ()
    """Tags that are not written, each with the reason."""
    hard_links: int = 1
    """Names that the file has; the others keep the old content."""
    id3: Id3Options = field(default_factory=Id3Options)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.fields)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"left_out": [one._asdict() for one in self.left_out]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, perhaps by way of JSON."""
        fields = tuple(
            FieldChange(one["field"], *(tuple(one[k]) for k in ("before", "after", "places")))
            for one in data["fields"]
        )
        left_out = tuple(LeftOut(**one) for one in data["left_out"])
        id3 = Id3Options(**data["id3"])
        return cls(**{**data, "fields": fields, "left_out": left_out, "id3": id3})
