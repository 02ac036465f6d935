"""The playlists of saved searches in a folder."""

import errno
import json
from unittest.mock import patch

import pytest

from harmonium.errors import DataError
from harmonium.library.searching import playlists


def test_playlists_are_files_or_rules_for_navidrome(searches, tmp_path):
    folder = tmp_path / "new" / "lists"
    written = searches.write_playlists(folder)
    names = {"A/B": "A_B.m3u8", "a_b": "a_b 2.m3u8", "Evening": "Evening.m3u8", "Way": "Way.m3u8"}
    assert {one.name: one.path for one in written} == {k: str(folder / v) for k, v in names.items()}
    assert [one.n_tracks for one in written] == [5, 3, 7, 5]
    lines = (folder / "Way.m3u8").read_text(encoding="utf-8").splitlines()
    assert [lines[2], lines[-1]] == ["/music/000.ogg", "/music/009.ogg"]
    written = searches.write_playlists(folder, rules=True)
    assert [one.n_tracks for one in written] == [None, 3, None, 5, None, None]
    assert [one.kind for one in written] == [*["rules", "tracks"] * 2, "removed", "removed"]
    assert {path.suffix for path in folder.glob("[AE]*")} == {".nsp"}
    jazz = [{"is": {"genre": name}} for name in ("Jazz", "jazz")]
    assert json.loads((folder / "Evening.nsp").read_text(encoding="utf-8")) == {
        "name": "Evening",
        "comment": "jazz -rock",
        "all": [
            {"any": jazz},
            {"all": [{"isNot": {"genre": "Rock"}}, {"isNot": {"mood": "rock"}}]},
        ],
        "limit": 7,
    }
    rule = json.loads((folder / "A_B.nsp").read_text(encoding="utf-8"))
    calm = {"mood": "Mellow"}
    assert rule["any"] == [{"is": calm}, {"all": [{"any": jazz}, {"isNot": calm}]}]


def test_only_files_that_the_library_wrote_are_replaced_or_removed(searches, tmp_path):
    (tmp_path / "Way.m3u8").write_text("my own")
    written = {one.name: one for one in searches.write_playlists(tmp_path, relative=True)}
    assert "by another program" in written["Way"].problem
    (tmp_path / "A_B.m3u8").write_text("changed")
    (tmp_path / "copy.m3u8").write_bytes((tmp_path / "a_b 2.m3u8").read_bytes())
    for name in ("A/B", "a_b", "Way"):
        searches.searches.delete(name)
    searches.settings.set("search:Evening", {"text": "such"})
    searches.save_search("New", "jazz", limit=2)
    broken, new, gone = searches.write_playlists(tmp_path)
    assert (broken.name, broken.path) == ("Evening", None)
    assert "the tag such" in broken.problem
    assert (gone.name, gone.kind, new.n_tracks) == ("a_b 2", "removed", 2)
    left = {"A_B.m3u8", "copy.m3u8", "Evening.m3u8", "New.m3u8", "Way.m3u8"}
    assert {path.name for path in tmp_path.glob("*.m3u8")} == left
    assert "\n../" in (tmp_path / "New.m3u8").read_text()  # relative, as the last time
    assert (tmp_path / "A_B.m3u8").read_text() == "changed"


@pytest.mark.parametrize("written", [False, True])
def test_playlists_that_were_interrupted_are_written_again(searches, tmp_path, written):
    searches.write_playlists(tmp_path)
    searches.save_search("Way", "jazz", limit=2)

    def interrupted(path, content):
        if path.name == "Way.m3u8":
            if written:
                path.write_bytes(content)
            raise KeyboardInterrupt

    with patch.object(playlists, "write_atomically", interrupted), pytest.raises(KeyboardInterrupt):
        searches.write_playlists(tmp_path)
    searches.save_search("Way", "jazz", limit=3)
    assert [one.n_tracks for one in searches.write_playlists(tmp_path)] == [5, 3, 7, 3]


def test_a_file_in_place_of_the_folder_is_refused(searches):
    with pytest.raises(DataError, match="Name a folder"):
        searches.write_playlists(__file__)


def test_a_name_too_long_for_a_file_is_shortened(searches, tmp_path):
    long = ["ä" * 150, "ä" * 151, "x" * 200]
    for name in long:
        searches.save_search(name, "jazz", limit=3)
    written = {one.name: one for one in searches.write_playlists(tmp_path)}
    assert all(one.problem is None for one in written.values())
    paths = [written[name].path for name in long]
    assert len(set(paths)) == 3
    assert all(path.endswith(".m3u8") for path in paths)
    again = searches.write_playlists(tmp_path)
    assert [one.path for one in again] == [one.path for one in written.values()]


def test_a_playlist_that_cannot_be_written_does_not_end_the_others(searches, tmp_path):
    def full(path, content):
        if path.name == "Evening.m3u8":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        path.write_bytes(content)

    with patch.object(playlists, "write_atomically", full):
        written = {one.name: one for one in searches.write_playlists(tmp_path)}
    assert written.pop("Evening").problem == "It was not written: No space left on device."
    assert [one.problem for one in written.values()] == [None] * 3
    assert searches.write_playlists(tmp_path)[2].path == str(tmp_path / "Evening.m3u8")
