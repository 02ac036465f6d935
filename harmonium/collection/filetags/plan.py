"""What writing tags to a file would change."""

import os
from typing import BinaryIO

from harmonium.collection.filetags.file_errors import PathLike, opened
from harmonium.collection.filetags.formats.base import (
    FIELDS,
    Contents,
    Damaged,
    Format,
    Id3Options,
    Values,
)
from harmonium.collection.filetags.formats.detect import format_of
from harmonium.collection.filetags.records import Change, FieldChange
from harmonium.collection.filetags.rules import LeftOut, Rules, Tags, combine
from harmonium.collection.filetags.text import fold

_DEFAULT = Rules()


def plan_write(path: PathLike, tags: Tags, rules: Rules = _DEFAULT) -> Change:
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
    changes: list[FieldChange] = []
    for name in FIELDS:
        tags_here, refused = _accepted(found, contents, name, wanted.get(name, {}), rules.id3)
        changes.extend(_changes(found, contents, name, tags_here, rules))
        left_out += refused
    changes.sort(key=lambda one: one.field not in FIELDS)  # scores last
    return Change(
        path=os.fspath(path),
        format=found.name,
        version=contents.version,
        fields=tuple(one for one in changes if one.before != one.after),
        left_out=tuple(left_out),
        hard_links=links,
        id3=rules.id3,
    )


def read_for_writing(file: BinaryIO, options: Id3Options) -> tuple[Format, Contents]:
    """The format of a file and what is in it, or `Damaged` where it cannot be written to."""
    found = format_of(file)
    contents = found.read(file, options)
    if contents.obstacle:
        raise Damaged(f"nothing can be written to it: {contents.obstacle}")
    return found, contents


def _accepted(
    found: Format, contents: Contents, name: str, tags: dict[str, float], options: Id3Options
) -> tuple[dict[str, float], list[LeftOut]]:
    """(tags that the field can hold, those that it cannot)"""
    place = found.places(contents.version, options)[name][0]
    reasons = {tag: found.refusal(place, tag, contents.version, options) for tag in tags}
    refused = [LeftOut(tag, reason) for tag, reason in reasons.items() if reason]
    return {tag: score for tag, score in tags.items() if not reasons[tag]}, refused


def _changes(
    found: Format, contents: Contents, name: str, tags: dict[str, float], rules: Rules
) -> list[FieldChange]:
    """What becomes of a field, and of the scores of its tags."""
    places = found.places(contents.version, rules.id3)
    before = contents.at(places[name])
    after = combine(before, tuple(tags), rules.mode)
    changes = [FieldChange(name, before, after, places[name])]
    if rules.scores and (scores := _scores(tags, after)):
        own = f"harmonium_{name}"
        changes.append(FieldChange(own, contents.at(places[own]), scores, places[own]))
    return changes


def _scores(tags: dict[str, float], written: Values) -> Values:
    """TAG=SCORE of the tags that are in the field."""
    there = {fold(value) for value in written}
    return tuple(f"{tag}={score:.3f}" for tag, score in tags.items() if fold(tag) in there)
