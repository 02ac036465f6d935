"""Playlists as players read them."""

import os
from types import SimpleNamespace

import pytest

from harmonium.errors import DataError
from harmonium.library.playlist import check_playlist, playlist, write_playlist


def track(path, title=None, artist=None, duration=None):
    return SimpleNamespace(path=path, title=title, artist=artist, duration=duration)


def test_a_line_about_each_track_and_its_path():
    tracks = [track("/a/b.ogg", "Song", "Ann\nBob", 61.6), track("/a/c d.ogg")]
    assert playlist(tracks) == (
        "#EXTM3U\n#EXTINF:62,Ann Bob - Song\n/a/b.ogg\n#EXTINF:-1,c d\n/a/c d.ogg\n"
    )


def test_a_path_that_is_not_utf8_goes_out_as_it_came_in(tmp_path):
    path = os.fsdecode(b"/music/caf\xe9.mp3")
    file = tmp_path / "list.m3u8"
    write_playlist(file, [track(path, "Café")])
    assert file.read_bytes().endswith(b"\n/music/caf\xe9.mp3\n")
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(DataError, match=r"must end in \.m3u8"):
        check_playlist(tmp_path / "list.txt")
    with pytest.raises(DataError, match="there is no folder"):
        check_playlist(tmp_path / "none" / "list.m3u8")


def test_a_name_with_a_line_break_does_not_stop_the_others():
    tracks = [track("/a\nb.ogg"), track("/c.ogg"), track("/d\r.ogg")]
    assert playlist(tracks) == "#EXTM3U\n#EXTINF:-1,c\n/c.ogg\n"
