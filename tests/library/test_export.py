"""What players and Rekordbox are given."""

import csv
import os
from types import SimpleNamespace
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

import pytest

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError
from harmonium.library import export
from harmonium.library.export import TaggedTrack

FEATURES = {name: k / 8 for k, name in enumerate(AUDIO_FEATURES)}
HOSTILE = "/music/it's \"&<$HOME>\n`id`; %2F é.mp3"


def track(number, path, **about):
    nothing = {"title": None, "artist": None, "album": None, "duration": None, "file_tags": {}}
    return SimpleNamespace(id=number, path=path, **(nothing | about))


@pytest.fixture
def rekordbox(tmp_path):
    """The root of an export of two tracks."""
    files = {"genre": ["Jazz", "R&B"], "comment": ["promo"]}
    tracks = [
        TaggedTrack(
            track(7, "/a/b c.mp3", title="<T>", artist="A\nB", duration=61.6, file_tags=files),
            ["x"],
            FEATURES,
        ),
        TaggedTrack(track(3, HOSTILE), ["late night", "r&b"], {}),
    ]
    export.write_export(tmp_path / 'my "list".XML', tracks)
    return ET.parse(tmp_path / 'my "list".XML').getroot()


def test_rekordbox_gets_each_track(rekordbox):
    first, second = rekordbox.findall("COLLECTION/TRACK")
    about = {"Name": "<T>", "Artist": "A B", "Genre": "Jazz, R&B", "TotalTime": "62"}
    place = "file://localhost/a/b%20c.mp3"
    assert first.attrib == about | {
        **{"TrackID": "7", "Comments": "promo /* x */", "Location": place, "Colour": "0x0000FF"}
    }
    assert second.get("Comments") == "/* late night / r&b */"
    assert "Colour" not in second.attrib
    assert rekordbox.find("COLLECTION").get("Entries") == "2"


def test_rekordbox_gets_a_playlist_of_the_tracks(rekordbox):
    top = rekordbox.find("PLAYLISTS/NODE")
    assert (top.get("Type"), top.get("Name")) == ("0", "ROOT")
    (made,) = top
    assert made.attrib == {"Name": 'my "list"', "Type": "1", "KeyType": "0", "Entries": "2"}
    assert [entry.get("Key") for entry in made] == ["7", "3"]


@pytest.mark.parametrize("path", [HOSTILE, os.fsdecode(b"/music/caf\xe9\x01.mp3"), "/a//b#?.mp3"])
def test_rekordbox_finds_any_file_by_its_location(path):
    document = export.rekordbox([TaggedTrack(track(1, path), [], {})], os.fsdecode(b"\xe9\x00"))
    (entry,) = ET.fromstring(document).findall("COLLECTION/TRACK")
    place = entry.get("Location").removeprefix("file://localhost")
    assert place.isascii()
    assert unquote_to_bytes(place) == os.fsencode(path)
    assert "Comments" not in entry.attrib


@pytest.mark.parametrize(
    ("energy", "colour"),
    [(0, "0x0000FF"), (0.3, "0x25FDE9"), (0.4, "0x00FF00"), (0.79, "0xFFA500"), (1, "0xFF0000")],
)
def test_the_colour_in_rekordbox_is_that_of_the_energy(energy, colour):
    tagged = TaggedTrack(track(1, "/a.mp3"), [], {"energy": energy})
    document = export.rekordbox([tagged], "name")
    assert ET.fromstring(document).find("COLLECTION/TRACK").get("Colour") == colour


def test_a_table_has_a_column_for_each_feature(tmp_path):
    tracks = [
        TaggedTrack(
            track(1, HOSTILE, title="T, U", file_tags={"genre": ["Jazz"]}),
            ["late", "r&b"],
            FEATURES,
        ),
        TaggedTrack(track(2, os.fsdecode(b"/caf\xe9.mp3")), [], {}),
    ]
    export.write_export(tmp_path / "list.CSV", tracks)
    with (tmp_path / "list.CSV").open(newline="", errors="surrogateescape") as file:
        first, second = csv.DictReader(file)
    assert (first["path"], first["title"], first["genre"]) == (HOSTILE, "T, U", "Jazz")
    assert first["tags"] == "late; r&b"
    assert {name: float(first[name]) for name in AUDIO_FEATURES} == FEATURES
    assert (second["path"], second["energy"]) == (tracks[1].track.path, None)


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_table_has_no_cell_that_a_spreadsheet_runs(tmp_path, text):
    about = {"title": text, "artist": text, "album": text, "file_tags": {"genre": [text]}}
    tagged = TaggedTrack(track(1, "=x.mp3", **about), [text, "rock"], FEATURES)
    export.write_export(tmp_path / "list.csv", [tagged])
    with (tmp_path / "list.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["path"] == "'=x.mp3"
    for name in ("title", "artist", "album", "genre"):
        assert row[name] == f"'{text}"
    assert row["tags"] == f"'{text}; rock"
    export.write_export(tmp_path / "raw.csv", [tagged], raw=True)
    with (tmp_path / "raw.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["path"], row["title"], row["tags"]) == ("=x.mp3", text, f"{text}; rock")


def test_a_playlist_lists_each_track():
    tracks = [
        track(1, "/a/b.ogg", title="Song", artist="Ann\nBob", duration=61.6),
        track(2, "/a\nb.ogg"),  # cannot be listed
        track(3, "/a/c d.ogg"),
        track(4, "/d\r.ogg"),
    ]
    assert export.playlist(tracks) == (
        b"#EXTM3U\n#EXTINF:62,Ann Bob - Song\n/a/b.ogg\n#EXTINF:-1,c d\n/a/c d.ogg\n"
    )


def test_a_playlist_keeps_the_bytes_of_a_path(tmp_path):
    file = tmp_path / "list.m3u8"
    export.write_playlist(file, [track(1, os.fsdecode(b"/caf\xe9.mp3"), title="Café")])
    assert file.read_bytes().endswith(b"\n/caf\xe9.mp3\n")


@pytest.mark.parametrize(
    ("check", "name", "word"),
    [
        (export.check_export, "list.sh", "Rekordbox"),
        (lambda path: export.write_playlist(path, []), "list.txt", "m3u8"),
        (lambda path: export.write_playlist(path, []), "none/list.m3u8", "no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(tmp_path, check, name, word):
    with pytest.raises(DataError, match=word):
        check(tmp_path / name)
