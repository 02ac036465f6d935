"""Tracks for other programs: a playlist, a document for Rekordbox, or a table.

A playlist is extended M3U in UTF-8, which players expect in a file that ends in .m3u8. Rekordbox
reads an XML document in which each track has its attributes and a playlist names some of them. The
tags follow the file's own comment, between /* and */, where Rekordbox writes its MyTags; the colour
shows the energy.
"""

import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
COLOURS = ("0x0000FF", "0x25FDE9", "0x00FF00", "0xFFA500", "0xFF0000")
"""Rekordbox's colours for the energy, from the lowest fifth up: blue, turquoise, green, orange,
red."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def can_be_listed(track: Track) -> bool:
    """Whether a playlist, with one line per file, can name the track's file."""
    return "\n" not in track.path and "\r" not in track.path


def playlist(tracks: Iterable[Track], relative_to: Path | None = None) -> bytes:
    """A playlist: for each track that can be listed, a line about it and its path."""
    lines, folder = ["#EXTM3U"], None if relative_to is None else absolute_path(relative_to)
    for track in filter(can_be_listed, tracks):
        seconds = -1 if track.duration is None else round(track.duration)
        title = track.title or Path(track.path).stem
        name = f"{track.artist} - {title}" if track.artist else title
        path = track.path if folder is None else os.path.relpath(track.path, folder)
        # A line that begins with # would be a comment.
        path = f"./{path}" if path[0] == "#" else path
        lines += [f"#EXTINF:{seconds},{' '.join(name.split())}", path]
    # A path may hold bytes that are not UTF-8: they are written as they are.
    return os.fsencode("\n".join(lines) + "\n")


def write_playlist(path: Path, tracks: Iterable[Track], *, relative: bool = False) -> None:
    """Write a playlist, completely or not at all; ``relative`` paths start at its own folder."""
    check_writable(path, PLAYLIST_ENDINGS)
    write_atomically(path, playlist(tracks, path.parent if relative else None))


def rekordbox(tracks: TaggedTracks, name: str) -> bytes:
    """The XML document for Rekordbox: the tracks, and a playlist of them."""
    root = ET.Element("DJ_PLAYLISTS", Version="1.0.0")
    ET.SubElement(root, "PRODUCT", Name="harmonium", Version=__version__, Company="")
    n_tracks = str(len(tracks))
    collection = ET.SubElement(root, "COLLECTION", Entries=n_tracks)
    playlists = ET.SubElement(root, "PLAYLISTS")
    top = ET.SubElement(playlists, "NODE", Type="0", Name="ROOT", Count="1")
    node = ET.SubElement(top, "NODE", Name=_text(name), Type="1", KeyType="0", Entries=n_tracks)
    for track, tags, features in tracks:
        energy, my_tags = features.get("energy"), " / ".join(tags)
        comments = [*track.file_tags.get("comment", []), f"/* {my_tags} */" if tags else ""]
        about = {
            "Name": track.title or Path(track.path).stem,
            "Artist": track.artist,
            "Album": track.album,
            "Genre": ", ".join(track.file_tags.get("genre", [])),
            "TotalTime": None if track.duration is None else str(round(track.duration)),
            "Comments": " ".join(comments),
            "Colour": None if energy is None else COLOURS[min(int(5 * energy), 4)],
        }
        known = {key: text for key, value in about.items() if (text := _text(value or ""))}
        place = track.path.replace("\\", "/") if os.sep == "\\" else track.path
        url = "file://localhost/" + quote(os.fsencode(place.removeprefix("/")), safe="/:")
        known = {"TrackID": str(track.id), **known, "Location": url}
        ET.SubElement(collection, "TRACK", known)
        ET.SubElement(node, "TRACK", Key=str(track.id))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def table(tracks: TaggedTracks, name: str) -> bytes:
    """A table with a row for each track: the genre of its file, its tags and audio features."""
    file = StringIO(newline="")
    writer = csv.writer(file)
    about = ("path", "artist", "title", "album", "duration")
    writer.writerow([*about, "genre", "tags", *AUDIO_FEATURES])
    for track, tags, features in tracks:
        numbers = [f"{value:.4f}" for value in features.values()]
        texts = ["; ".join(some) for some in (track.file_tags.get("genre", []), tags)]
        writer.writerow([*(getattr(track, one) for one in about), *texts, *numbers])
    return os.fsencode(file.getvalue())


WRITERS: dict[str, Callable[[TaggedTracks, str], bytes]] = {".xml": rekordbox, ".csv": table}
"""The file's ending → the function that makes it."""


def check_export(path: Path) -> None:
    """Before any work, refuse a file that cannot be written."""
    if path.suffix.lower() not in WRITERS:
        raise DataError(
            f"'--export' takes a file that ends in .xml (Rekordbox) or .csv. Got {path.name!r}; "
            "for other players, use '--playlist'."
        )
    check_writable(path)


def write_export(path: Path, tracks: TaggedTracks) -> None:
    """Write tracks and their tags in the format that the file's ending names."""
    check_export(path)
    write_atomically(path, WRITERS[path.suffix.lower()](tracks, path.stem))


def _text(value: str) -> str:
    """The text on one line, without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", " ".join(value.split()))
