"""What players read of the files that `harmonium write` wrote, by the programs themselves."""

import importlib
import shutil
import subprocess

import pytest
import written_music
from command_line import output_of
from places import PROJECT

from harmonium.library import Library

needs_mpd = pytest.mark.skipif(
    not (shutil.which("mpd") and shutil.which("mpc")), reason="mpd and mpc are not installed"
)


@pytest.fixture
def players(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    return importlib.import_module("players")


@needs_mpd
def test_moods_are_read_by_mpc(players, data_home, tmp_path):
    """In the mood field if this MPD has one (0.23 has none), else in the grouping."""
    kinds = ("mp3", "flac", "ogg", "opus", "m4a", "wav", "aiff")
    music = tmp_path / "Music"
    with Library.open() as library:
        written_music.make_songs(library, music, kinds)
        moods = [("ann", "wistful", 1), ("ann", "drowsy", 1), ("ann", "jazz", 1)]
        written_music.say(library, moods)
        library.set_kind("wistful", "drowsy", kind="mood")
    try:
        with players.music_player_daemon(music) as mpc:
            mpc("list", "mood")
        field = "mood"
    except subprocess.CalledProcessError:
        field = "grouping"
    output_of("write", "--yes", "--field", f"mood={field}")
    with players.music_player_daemon(music) as mpc:
        wistful, drowsy, jazz = (
            {path.partition("/")[0] for path in mpc("find", *words).split()}
            for words in ((field, "wistful"), (field, "drowsy"), ("genre", "jazz"))
        )
    assert wistful | drowsy == set(kinds)
    # MPD shows the first one of several values in an MP4 file.
    assert wistful & drowsy == jazz == set(kinds) - {"m4a"}
