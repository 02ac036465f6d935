"""What a file's tag says: the fields that Harmonium knows, their places in a tag, their values.

A field, such as "mood", is kept in one or several places of a tag, such as "TMOO" in an MP3. Which
ones depends on the kind of tag (`TagLayout`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from harmonium.data.tag_names import AUDIO_FEATURES

LIST_FIELDS = ("genre", "mood", "grouping")  # the fields that hold a list of tags
COMMENT = "comment"  # the field that is a text: people's own words, perhaps with tags in it
FIELDS = (*LIST_FIELDS, COMMENT)  # the fields that tags are read from and written to
SCORE_FIELDS = tuple(f"harmonium_{name}" for name in FIELDS)  # the scores of the tags in each
GIVEN = "harmonium"  # the field with the tags that Harmonium gave to beets
OWN_FIELDS = (*SCORE_FIELDS, GIVEN, *AUDIO_FEATURES)  # with their name as place in every format
TEXT_FIELDS = ("title", "artist", "album")
ALL_FIELDS = (*FIELDS, *OWN_FIELDS, *TEXT_FIELDS)
GROUPING_FRAMES = ("TIT1", "GRP1")  # the frames of ID3 that players take for the grouping
MAX_TAGS = 1 << 20  # the most characters to read from a file's tags

Values: TypeAlias = tuple[str, ...]
Edits: TypeAlias = Mapping[str, Values]  # place, such as "TCON", "GENRE" or "©gen" → its values


@dataclass(frozen=True, kw_only=True)
class Id3Options:
    """Choices that ID3 leaves open, as in `Rules`."""

    version: int = 4
    grouping: str = "TIT1"  # the frame that the grouping is written to
    separator: str = "; "


USUAL_OPTIONS = Id3Options()


class TagLayout(ABC):
    """Where a kind of tag has its fields, and what these can hold."""

    name: str | None  # the format's usual name

    @abstractmethod
    def places(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → the places where a tag of this version may have it."""

    def targets(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → those of its places that a write replaces."""
        # Comments in other places are somebody's texts, and stay.
        places = self.places(version, options)
        return {**places, COMMENT: places[COMMENT][:1]}

    def split_again(self, values: Edits, version: str | None, options: Id3Options) -> Edits:
        """Values that were read with the usual options, as they would be read with these."""
        return values

    def refusal(self, place: str, value: str, version: str | None, options: Id3Options) -> str:
        """Why a value cannot be kept in a place, or "": most formats keep any text."""
        return ""


class PlainLayout(TagLayout):
    """Each field under its own name.

    This is the layout of other programs' fields, and of files whose format is not remembered.
    """

    name = None

    def places(self, version: str | None, options: Id3Options) -> Mapping[str, Values]:
        """Field → its own name."""
        return _BY_NAME


_BY_NAME = {name: (name,) for name in ALL_FIELDS}


@dataclass(frozen=True, kw_only=True)
class FileTags:
    """What a file says about itself."""

    format: str | None  # such as "MP3"; None if a library does not remember it
    version: str | None
    """The kind of tag: "ID3v2.2" to "ID3v2.4", "ID3v1", "Vorbis comment", "MP4", "RIFF INFO";
    None if there is none."""
    genre: Values = ()
    mood: Values = ()
    grouping: Values = ()
    comment: Values = ()
    title: str | None = None
    artist: str | None = None  # several are joined with "; "
    album: str | None = None
    duration: float | None = None  # seconds; None if the file does not say
    scores: Mapping[str, float] = field(default_factory=dict)  # tag → score, as Harmonium wrote it
    notes: tuple[str, ...] = ()  # oddities of the file's tags
    obstacle: str | None = None  # why the file cannot be written to, although it can be read
    values: Edits = field(default_factory=dict, repr=False)
    places: Mapping[str, Values] = field(default_factory=dict, repr=False)
    """Field → the places where it may be."""
    targets: Mapping[str, Values] = field(default_factory=dict, repr=False)
    """Field → those of its places that a write replaces: the first gets all values, and the others
    are emptied."""
    layout: TagLayout = field(repr=False, compare=False)

    @classmethod
    def of(
        cls,
        layout: TagLayout,
        version: str | None,
        values: Edits,
        options: Id3Options = USUAL_OPTIONS,
        *,
        duration: float | None = None,
        notes: tuple[str, ...] = (),
        obstacle: str | None = None,
        damage: str | None = None,
    ) -> Self:
        """From the values at a tag's places; a tag with ``damage`` cannot be written to."""
        if sum(len(text) + 1 for texts in values.values() for text in texts) > MAX_TAGS:
            values = {}
            damage = f"its tags have more than {MAX_TAGS:,} characters"
        if damage is not None:
            notes = (*notes, damage)
            obstacle = damage
        places = layout.places(version, options)

        def at(name: str) -> Values:
            return _values_at(values, places[name])

        return cls(
            format=layout.name,
            version=version,
            genre=at("genre"),
            mood=at("mood"),
            grouping=at("grouping"),
            comment=at(COMMENT),
            title="; ".join(at("title")) or None,
            artist="; ".join(at("artist")) or None,
            album="; ".join(at("album")) or None,
            duration=duration,
            scores=_scores([text for name in SCORE_FIELDS for text in at(name)]),
            notes=notes,
            obstacle=obstacle,
            values=values,
            places=places,
            targets=layout.targets(version, options),
            layout=layout,
        )

    @classmethod
    def known(
        cls,
        layout: TagLayout,
        version: str | None,
        remembered: Mapping[str, Sequence[str]],
        options: Id3Options,
    ) -> Self:
        """From what a library remembers of a file (`of_track`), or from another program's fields.

        It has the values at their places, and no fields of its own.
        """
        places = layout.places(version, options)
        usual_places = layout.places(version, USUAL_OPTIONS)
        values = {name: tuple(texts) for name, texts in remembered.items() if name not in places}
        for name in places.keys() & remembered.keys():
            if not any(place in values for place in places[name]):
                values[usual_places[name][0]] = tuple(remembered[name])
        return cls(
            format=layout.name,
            version=version,
            values=layout.split_again(values, version, options),
            places=places,
            targets=layout.targets(version, options),
            layout=layout,
        )

    def at(self, places: Iterable[str]) -> Values:
        """The values of all these places, each once."""
        return _values_at(self.values, places)

    def values_of(self, name: str) -> Values:
        """The values of a field, in all its places."""
        return _values_at(self.values, self.places[name])

    @property
    def of_track(self) -> dict[str, Any]:
        """What a library remembers of a file, as fields of its `Track`.

        ``file_tags`` has the values by field, and also by place where a field has values outside
        its first place.
        """
        remembered = {}
        for name in (*FIELDS, *OWN_FIELDS):
            places = self.places[name]
            if values := self.at(places):
                remembered[name] = list(values)
            if self.at(places[1:]):
                for place in places:
                    if values := self.at([place]):
                        remembered[place] = list(values)
        return {
            "title": self.title,
            "artist": self.artist,
            "album": self.album,
            "duration": self.duration,
            "file_tags": remembered,
            "format": self.format,
            "tag_version": self.version,
            "obstacle": self.obstacle,
        }


def _values_at(values: Edits, places: Iterable[str]) -> Values:
    values_there: dict[str, None] = {}
    for place in places:
        values_there |= dict.fromkeys(values.get(place, ()))
    return tuple(values_there)


def _scores(texts: Iterable[str]) -> dict[str, float]:
    """Tag → score, from texts such as "jazz=0.934"."""
    scores = {}
    for text in texts:
        tag, _, number = text.rpartition("=")
        with suppress(ValueError):  # another program's
            scores[tag] = float(number)
    return scores
