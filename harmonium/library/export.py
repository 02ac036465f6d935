"""Tracks for other programs: a playlist, a document for Rekordbox, or a table.

A playlist is extended M3U in UTF-8, which players expect in a file that ends in .m3u8. Rekordbox
reads an XML document in which each track has its attributes and a playlist names some of them. The
tags follow the file's own comment, between /* and */, where Rekordbox writes its MyTags; the colour
shows the energy.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

import numpy as np

from harmonium import __version__
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError
from harmonium.files import absolute_path, check_writable, write_atomically
from harmonium.library.model import USUAL_PRECISION
from harmonium.library.snapshot import Hit, Snapshot
from harmonium.library.store.models import Owner
from harmonium.library.store.tracks import Track
from harmonium.library.writing.wanted import TagSources
from harmonium.spreadsheets import guarded

if TYPE_CHECKING:
    from harmonium.library.library import Library, TrackName

PLAYLIST_ENDINGS = (".m3u8", ".m3u")
EXPORT_ENDINGS = (".xml", ".csv")
COLOURS = ("0x0000FF", "0x25FDE9", "0x00FF00", "0xFFA500", "0xFF0000")
"""Rekordbox's colours for the energy, from the lowest fifth up: blue, turquoise, green, orange,
red."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TaggedTrack(NamedTuple):
    """A track to export."""

    track: Track
    tags: Sequence[str]  # as they are spelt
    features: Mapping[str, float]  # audio features; empty if they are unknown


def can_be_listed(track: Track) -> bool:
    """Whether a playlist, with one line per file, can name the track's file."""
    return "\n" not in track.path and "\r" not in track.path


def playlist(tracks: Iterable[Track], relative_to: Path | None = None) -> bytes:
    """A playlist: for each track that can be listed, a line about it and its path."""
    folder = None if relative_to is None else absolute_path(relative_to)
    lines = ["#EXTM3U"]
    for track in filter(can_be_listed, tracks):
        seconds = -1 if track.duration is None else round(track.duration)
        title = track.title or Path(track.path).stem
        name = f"{track.artist} - {title}" if track.artist else title
        path = track.path if folder is None else os.path.relpath(track.path, folder)
        if path.startswith("#"):  # such a line would be a comment
            path = f"./{path}"
        lines += [f"#EXTINF:{seconds},{' '.join(name.split())}", path]
    # A path may hold bytes that are not UTF-8: they are written as they are.
    return os.fsencode("\n".join(lines) + "\n")


def write_playlist(path: Path, tracks: Iterable[Track], *, relative: bool = False) -> None:
    """Write a playlist, completely or not at all; ``relative`` paths start at its own folder."""
    check_writable(path, PLAYLIST_ENDINGS)
    write_atomically(path, playlist(tracks, path.parent if relative else None))


def export_tracks(
    library: Library,
    path: Path,
    tracks: Iterable[TrackName | Hit],
    *,
    owner: Owner | None = None,
    raw: bool = False,
) -> None:
    """Export tracks with the tags that `write` writes, see `Library.export`."""
    snapshot = library.snapshot()
    searched: dict[int, dict[str, float]] = {}  # track → the tags that were searched for
    for named in tracks:
        if isinstance(named, Hit):
            searched[named.track.id] = named.tags
        else:
            searched[library.track(named).id] = {}
    ids = list(searched)
    wanted = library.writer.wanted(ids, TagSources(owner=owner, precision=USUAL_PRECISION))
    features = snapshot.features(np.array(ids, np.int64))
    tagged = []
    for track, values in zip(library.tracks.many(ids), features, strict=True):
        tags = list(wanted[track.id].scores) if track.id in wanted else []
        for tag in _held(snapshot, track.id, searched[track.id]):
            if tag not in tags:
                tags.append(tag)
        shown = [snapshot.tags[tag].spelling for tag in tags]
        tagged.append(TaggedTrack(track=track, tags=shown, features=values))
    write_export(path, tagged, raw=raw)


def _held(snapshot: Snapshot, track_id: int, probabilities: Mapping[str, float]) -> list[str]:
    """Those of some tags that a track has."""
    said = snapshot.agreed_of(track_id)
    tags = snapshot.tags
    return [name for name, p in probabilities.items() if tags.holds(tags[name], said, p)]


def check_export(path: Path) -> None:
    """Before any work, refuse a file that cannot be written."""
    if path.suffix.lower() not in EXPORT_ENDINGS:
        raise DataError(
            f"'--export' takes a file that ends in .xml (Rekordbox) or .csv. Got {path.name!r}; "
            "for other players, use '--playlist'."
        )
    check_writable(path)


def write_export(path: Path, tracks: Sequence[TaggedTrack], *, raw: bool = False) -> None:
    """Write tracks and their tags in the format that the file's ending names.

    In a table, cells that a spreadsheet would take for formulas begin with an apostrophe, unless
    ``raw``; see `harmonium.spreadsheets`.
    """
    check_export(path)
    if path.suffix.lower() == ".xml":
        content = rekordbox(tracks, path.stem)
    else:
        content = table(tracks, raw=raw)
    write_atomically(path, content)


def rekordbox(tracks: Sequence[TaggedTrack], name: str) -> bytes:
    """The XML document for Rekordbox: the tracks, and a playlist of them."""
    root = ET.Element("DJ_PLAYLISTS", Version="1.0.0")
    ET.SubElement(root, "PRODUCT", Name="harmonium", Version=__version__, Company="")
    n_tracks = str(len(tracks))
    collection = ET.SubElement(root, "COLLECTION", Entries=n_tracks)
    playlists = ET.SubElement(root, "PLAYLISTS")
    top = ET.SubElement(playlists, "NODE", Type="0", Name="ROOT", Count="1")
    node = ET.SubElement(top, "NODE", Name=_text(name), Type="1", KeyType="0", Entries=n_tracks)
    for tagged in tracks:
        ET.SubElement(collection, "TRACK", _rekordbox_attributes(tagged))
        ET.SubElement(node, "TRACK", Key=str(tagged.track.id))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _rekordbox_attributes(tagged: TaggedTrack) -> dict[str, str]:
    """The attributes of a track, without those that are unknown."""
    track = tagged.track
    values = {
        "Name": track.title or Path(track.path).stem,
        "Artist": track.artist or "",
        "Album": track.album or "",
        "Genre": ", ".join(track.file_tags.get("genre", [])),
    }
    if track.duration is not None:
        values["TotalTime"] = str(round(track.duration))
    comments = list(track.file_tags.get("comment", []))
    if tagged.tags:
        comments.append(f"/* {' / '.join(tagged.tags)} */")
    values["Comments"] = " ".join(comments)
    energy = tagged.features.get("energy")
    if energy is not None:
        values["Colour"] = COLOURS[min(int(5 * energy), 4)]
    attributes = {"TrackID": str(track.id)}
    for name, value in values.items():
        text = _text(value)
        if text:
            attributes[name] = text
    place = track.path.replace("\\", "/") if os.sep == "\\" else track.path
    location = quote(os.fsencode(place.removeprefix("/")), safe="/:")
    attributes["Location"] = f"file://localhost/{location}"
    return attributes


def table(tracks: Sequence[TaggedTrack], *, raw: bool = False) -> bytes:
    """A table with a row for each track: the genre of its file, its tags and audio features."""
    file = StringIO(newline="")
    writer = csv.writer(file)
    columns = ("path", "artist", "title", "album", "duration", "genre", "tags")
    writer.writerow([*columns, *AUDIO_FEATURES])
    for track, tags, features in tracks:
        genre = "; ".join(track.file_tags.get("genre", []))
        texts = [track.path, track.artist or "", track.title or "", track.album or ""]
        lists = [genre, "; ".join(tags)]
        if not raw:
            texts = [guarded(text) for text in texts]
            lists = [guarded(text) for text in lists]
        numbers = [f"{value:.4f}" for value in features.values()]
        writer.writerow([*texts, track.duration, *lists, *numbers])
    return os.fsencode(file.getvalue())


def _text(value: str) -> str:
    """The text on one line, without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", " ".join(value.split()))
