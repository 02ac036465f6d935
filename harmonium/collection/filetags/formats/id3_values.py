"""What the frames of an ID3 tag mean, and in which of them each field is."""

from typing import Any

from mutagen.id3 import ID3, TCON

from harmonium.collection.filetags.formats.base import FIELDS, SCORE_FIELDS, Id3Options, Values

MOOD = "TXXX:Mood"
"""Where mood is before version 2.4, which has a frame for it."""
_COMMENTS = {"", "comment", "description", "id3v1 comment"}
"""Descriptions of comments that people write; others, such as iTunNORM, are programs' notes."""
_OWN = {place.casefold(): place for place in (MOOD, *(f"TXXX:{f.upper()}" for f in SCORE_FIELDS))}
_LISTS = ("TMOO", "TIT1", "GRP1")
_TEXTS = ("TIT2", "TPE1", "TALB")


def version_name(tag: ID3) -> str:
    """ "ID3v2.4", or "ID3v1" where there is nothing else."""
    return "ID3v1" if tag.version[0] == 1 else f"ID3v2.{tag.version[1]}"


def version_number(version: str | None, options: Id3Options) -> int:
    """2, 3 or 4: that of the tag, or the one for new tags."""
    return int(version[-1]) if version and version.startswith("ID3v2.") else options.version


def values_of(tag: ID3, options: Id3Options) -> dict[str, Values]:
    """Place → values. ``tag`` is read with translate=False."""
    values: dict[str, Values] = {}
    separator = None if tag.version >= (2, 4) or tag.version[0] == 1 else options.separator
    for name in _LISTS:
        if name in tag:
            values[name] = _parted(tag[name].text, separator)
    for name in _TEXTS:
        if name in tag:
            values[name] = _parted(tag[name].text, None)
    if "TCON" in tag:
        genres = TCON(encoding=3, text=list(_parted(tag["TCON"].text, separator))).genres
        values["TCON"] = _parted(genres, None)
    for frame in tag.getall("TXXX"):
        if place := _OWN.get(f"TXXX:{frame.desc}".casefold()):
            values[place] = (*values.get(place, ()), *_parted(frame.text, separator))
    values["COMM"] = tuple(text for frame in tag.getall("COMM") for text in _comments(frame))
    return values


def places(version: str | None, options: Id3Options) -> dict[str, tuple[str, ...]]:
    """Field → frames; mood moves to the frame that the version has for it."""
    own = {name: (f"TXXX:{name.upper()}",) for name in SCORE_FIELDS}
    moods = ("TMOO", MOOD) if version_number(version, options) == 4 else (MOOD, "TMOO")
    lists = dict(zip(FIELDS, (("TCON",), moods, (options.grouping,)), strict=True))
    texts = {"title": ("TIT2",), "artist": ("TPE1",), "album": ("TALB",), "comment": ("COMM",)}
    return {**lists, **own, **texts}


def refusal(place: str, value: str, version: str | None, options: Id3Options) -> str:
    """Why a value cannot be kept in a frame, or ""."""
    separator = options.separator.strip() or options.separator
    if version_number(version, options) < 4 and separator in value:
        return f"{separator!r} sets values apart in an ID3 tag before version 2.4"
    if place == "TCON" and TCON(encoding=3, text=[value]).genres != [value]:
        return "an ID3 tag would take it for the number of a genre"
    return ""


def _parted(texts: list[str], separator: str | None) -> Values:
    """The texts without empty ones, parted at the separator where there is one."""
    if separator is not None:
        mark = separator.strip() or separator
        texts = [part.strip() for text in texts for part in str(text).split(mark)]
    return tuple(text for text in map(str, texts) if text.strip())


def _comments(frame: Any) -> Values:
    return _parted(frame.text, None) if frame.desc.casefold() in _COMMENTS else ()
