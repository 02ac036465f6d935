"""Which songs of a server are the library's tracks."""

import pytest

from harmonium.connect.songs import Song, matched
from harmonium.library.store.tracks import Track

SONGS = [
    Song("cd1", "Artist/Album/CD1/01.mp3", "Intro", "A", "Album", duration=60),
    Song("cd2", "Artist/Album/CD2/01.mp3", "Intro", "A", "Album", duration=90),
    Song("made up", "A/Other/03 - Blue.flac", "Blue", "A", "Other", duration=200),
    Song("live", "A/Live/05 - Blue.flac", "Blue", "A", "Live", duration=201),
    Song("root", "song.ogg", "song.ogg", "[unknown]", duration=10),
    Song("accent", "e\u0301t\u00e9/b.mp3", "B", "B", duration=10),
]


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        ("/m/Artist/Album/CD2/01.mp3", {"duration": 90.4}, "cd2"),
        ("C:\\m\\artist\\ALBUM\\cd1\\01.MP3", {"duration": 60}, "cd1"),
        ("/m/Artist/Album/CD2/01.mp3", {"duration": 300}, None),  # another recording
        ("/m/x/y.flac", {"title": "blue", "artist": "a", "album": "Live"}, "live"),
        (
            "/m/x/y.flac",
            {"title": "Blue", "artist": "A", "album": "Other", "duration": 199},
            "made up",
        ),
        ("/m/x/y.flac", {"title": "Blue", "artist": "B"}, None),
        ("/m/song.ogg", {}, "root"),
        ("/m/x/01.mp3", {}, None),  # only the name of the file is the same
        ("/m/\u00e9te\u0301/b.mp3", {}, "accent"),
        ("/m/x/.flac", {}, None),
    ],
)
def test_tracks_are_matched_by_path_then_by_tags(path, fields, expected):
    matches = matched([Track(path, "s", id=1, **fields)], SONGS)
    assert (matches[1].id if matches else None) == expected
