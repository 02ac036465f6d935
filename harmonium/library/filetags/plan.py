"""What writing tags to a file would change."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, Self

from harmonium.library.filetags.formats.base import (
    COMMENT,
    FIELDS,
    Format,
    Id3Options,
    TagContents,
    Values,
)
from harmonium.library.filetags.formats.detect import format_of
from harmonium.library.filetags.music_file import FileProblem, PathLike, opened
from harmonium.library.filetags.rules import (
    GivenTags,
    Rules,
    UnwrittenTag,
    combine,
    combine_comment,
    fold,
    tags_in_comment,
)

_DEFAULT = Rules()


@dataclass(frozen=True)
class FieldChange:
    """A field that changes."""

    field: str
    """"genre", "mood", "grouping" or "comment", or "harmonium_genre" … for the scores of its
    tags."""
    before: Values
    after: Values
    places: tuple[str, ...]
    """Where it is in the file, such as "TCON"; written to the first, removed from the others."""

    @property
    def tags(self) -> tuple[Values, Values]:
        """Its tags before and after: the values, or the parts of a comment."""
        if self.field != COMMENT:
            return self.before, self.after
        return tags_in_comment(self.before), tags_in_comment(self.after)


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What writing would do to a file: the result of a dry run, and all that writing needs."""

    path: str
    format: str
    version: str | None
    """The kind of tag that the file has."""
    fields: tuple[FieldChange, ...]
    """Those that change."""
    left_out: tuple[UnwrittenTag, ...] = ()
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
        left_out = tuple(UnwrittenTag(**one) for one in data["left_out"])
        id3 = Id3Options(**data["id3"])
        return cls(**{**data, "fields": fields, "left_out": left_out, "id3": id3})


def plan_write(path: PathLike, tags: GivenTags, rules: Rules = _DEFAULT) -> FileChange:
    """What writing these tags would change in a file; nothing is written.

    Parameters
    ----------
    path : of an MP3, FLAC, Ogg (Vorbis, Opus, Speex, FLAC), MP4, WAV or AIFF file
    tags : names, or a mapping of names to scores; they are written in this order
    rules : which tags go where

    Raises
    ------
    FileTagError
        where the file cannot be read, or is such that it cannot be written to
    DataError
        where a tag cannot be written to any file
    """
    wanted, left_out = rules.sort(tags)
    with opened(path) as file:
        found, contents = read_for_writing(file, rules.id3)
        links = os.fstat(file.fileno()).st_nlink
    places = found.places(contents.version, rules.id3)
    fields: list[FieldChange] = []
    scores: list[FieldChange] = []
    for name in FIELDS:
        where, accepted = places[name], {}
        if name == COMMENT:
            where = where[:1]  # what is elsewhere is somebody's text, and stays there
        for tag, score in wanted.get(name, {}).items():
            reason = found.refusal(where[0], tag, contents.version, rules.id3)
            if name == COMMENT and tags_in_comment((tag,)) != (tag,):
                reason = "a comment would take it for several tags"
            if reason:
                left_out.append(UnwrittenTag(tag, reason))
            else:
                accepted[tag] = score
        before = contents.at(where)
        join = combine_comment if name == COMMENT else combine
        after = join(before, tuple(accepted), rules.mode)
        fields.append(FieldChange(name, before, after, where))
        own = f"harmonium_{name}"
        if rules.scores and (new := _scores(accepted, fields[-1].tags[1])):
            scores.append(FieldChange(own, contents.at(places[own]), new, places[own]))
    return FileChange(
        path=os.fspath(path),
        format=found.name,
        version=contents.version,
        fields=tuple(one for one in [*fields, *scores] if one.before != one.after),
        left_out=tuple(left_out),
        hard_links=links,
        id3=rules.id3,
    )


def read_for_writing(file: BinaryIO, options: Id3Options) -> tuple[Format, TagContents]:
    """The format of a file and what is in it, or `FileProblem` where it cannot be written to."""
    found = format_of(file)
    contents = found.read(file, options)
    if contents.obstacle:
        raise FileProblem(f"nothing can be written to it: {contents.obstacle}")
    return found, contents


def _scores(tags: dict[str, float], written: Values) -> Values:
    """TAG=SCORE of the tags that are in the field."""
    there = {fold(value) for value in written}
    return tuple(f"{tag}={score:.3f}" for tag, score in tags.items() if fold(tag) in there)
