"""Tracks for other programs: a playlist, a document for Rekordbox, commands for beets, or a table.

A playlist is extended M3U in UTF-8, which players take under the ending .m3u8. Rekordbox reads an
XML document in which each track has its attributes and a playlist names some of them. beets has no
format to import; its users change its library by `beet modify`, so there is a line of that for each
track. The tags go where they replace nothing: after the file's own comment for Rekordbox, and into
a field of their own for beets, as audio features do. Rekordbox has no place for these.
"""

import csv
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

from harmonium import __version__
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError
from harmonium.files import absolute_path, check_writable, write_atomically
from harmonium.library.store.tracks import Track

TaggedTracks = Sequence[tuple[Track, Sequence[str], Mapping[str, float]]]
"""(track, its tags, its audio features)"""

PLAYLIST_ENDINGS = (".m3u8", ".m3u")
BEETS_FIELD = "harmonium"  # the field of beets that the tags go into

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def can_be_listed(track: Track) -> bool:
    """Whether a playlist, which has a line for each file, can name the track's file."""
    return "\n" not in track.path and "\r" not in track.path


def playlist(tracks: Iterable[Track]) -> str:
    """The text of a playlist: a line about each track that can be listed, and its path."""
    lines = ["#EXTM3U"]
    for track in filter(can_be_listed, tracks):
        seconds = -1 if track.duration is None else round(track.duration)
        title = track.title or Path(track.path).stem
        name = f"{track.artist} - {title}" if track.artist else title
        lines += [f"#EXTINF:{seconds},{' '.join(name.split())}", track.path]
    return "\n".join(lines) + "\n"


def write_playlist(path: Path, tracks: Iterable[Track], *, relative: bool = False) -> None:
    """Write a playlist, wholly or not at all; ``relative`` paths in it begin at its own folder."""
    check_writable(path, PLAYLIST_ENDINGS)
    if relative:
        folder = absolute_path(path.parent)
        paths = ((track, os.path.relpath(track.path, folder)) for track in tracks)
        # A line that begins with # would be a comment.
        tracks = [replace(track, path=f"./{p}" if p[0] == "#" else p) for track, p in paths]
    # A path may hold bytes that are no UTF-8: they go out as they came in.
    write_atomically(path, os.fsencode(playlist(tracks)))


def rekordbox(tracks: TaggedTracks, name: str) -> bytes:
    """The XML document for Rekordbox: the tracks, and a playlist of them."""
    root = ET.Element("DJ_PLAYLISTS", Version="1.0.0")
    ET.SubElement(root, "PRODUCT", Name="harmonium", Version=__version__, Company="")
    n_tracks = str(len(tracks))
    collection = ET.SubElement(root, "COLLECTION", Entries=n_tracks)
    playlists = ET.SubElement(root, "PLAYLISTS")
    top = ET.SubElement(playlists, "NODE", Type="0", Name="ROOT", Count="1")
    node = ET.SubElement(top, "NODE", Name=_text(name), Type="1", KeyType="0", Entries=n_tracks)
    for track, tags, _ in tracks:
        about = {
            "Name": track.title or Path(track.path).stem,
            "Artist": track.artist,
            "Album": track.album,
            "Genre": ", ".join(track.file_tags.get("genre", [])),
            "TotalTime": None if track.duration is None else str(round(track.duration)),
            "Comments": "; ".join([*track.file_tags.get("comment", []), ", ".join(tags)]),
        }
        known = {key: text for key, value in about.items() if (text := _text(value or ""))}
        place = track.path.replace("\\", "/") if os.sep == "\\" else track.path
        url = "file://localhost/" + quote(os.fsencode(place.removeprefix("/")), safe="/:")
        known = {"TrackID": str(track.id), **known, "Location": url}
        ET.SubElement(collection, "TRACK", known)
        ET.SubElement(node, "TRACK", Key=str(track.id))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def beets_can_name(track: Track) -> bool:
    """Whether a query of beets finds the track's file: not with a line break or backslash in it."""
    return not set(track.path) & set("\n\r\\")


def beets(tracks: TaggedTracks, name: str) -> bytes:
    """Commands for a shell that put the tags into beets' library, and into no file."""
    lines = [
        f"#!/bin/sh\n# Tags of {' '.join(name.split())!r}, by harmonium. After this,\n"
        f"# `beet list {BEETS_FIELD}:TAG` finds tracks by them.\n"
    ]
    for track, tags, features in tracks:
        if (tags or features) and beets_can_name(track):
            # a value is a template: $ and % mean something there unless $ stands before them
            value = re.sub(r"[$%]", r"$\g<0>", "; ".join(tags))
            words = [f"path:{track.path}", *([f"{BEETS_FIELD}={value}"] if tags else [])]
            words += [f"{name}={number:.2f}" for name, number in features.items()]
            lines.append(f"beet modify -y -M -W {' '.join(map(shlex.quote, words))}\n")
    return os.fsencode("".join(lines))


def table(tracks: TaggedTracks, name: str) -> bytes:
    """A table with a row for each track, and a column for each audio feature."""
    file = StringIO(newline="")
    writer = csv.writer(file)
    about = ("path", "artist", "title", "album", "duration")
    writer.writerow([*about, "tags", *AUDIO_FEATURES])
    for track, tags, features in tracks:
        numbers = [f"{value:.4f}" for value in features.values()]
        writer.writerow([*(getattr(track, one) for one in about), "; ".join(tags), *numbers])
    return os.fsencode(file.getvalue())


WRITERS: dict[str, Callable[[TaggedTracks, str], bytes]] = {
    **{".xml": rekordbox, ".sh": beets, ".csv": table}
}
"""Ending of the file → what makes it."""


def check_export(path: Path) -> None:
    """Refuse, before any work, a file that could not be written."""
    if path.suffix.lower() not in WRITERS:
        raise DataError(
            f"'--export' takes a file that ends in .xml (Rekordbox), .sh (beets) or .csv. Got "
            f"{path.name!r}; for other players, use '--playlist'."
        )
    check_writable(path)


def write_export(path: Path, tracks: TaggedTracks) -> list[Track]:
    """Write tracks and their tags in the form of the file's ending; the tracks left out."""
    # beets leaves out those without tags and features, or that it cannot name
    check_export(path)
    writer = WRITERS[path.suffix.lower()]
    write_atomically(path, writer(tracks, path.stem))
    if writer is not beets:
        return []
    return [track for track, *about in tracks if not any(about) or not beets_can_name(track)]


def _text(value: str) -> str:
    """On one line, and without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", " ".join(value.split()))
