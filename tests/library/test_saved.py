"""Searches with a name, and their playlists in a folder."""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest
import small_library
from command_line import run_main

from harmonium.errors import DataError, LibraryError, UnknownTagError
from harmonium.library import Library, saved
from harmonium.library.snapshot import Question


@pytest.fixture
def searches(library):
    """Saved searches; of 60 tracks, three have genres and moods in their files."""
    ids = small_library.trained(library)[1]
    tags = [
        {"genre": ["Jazz"], "mood": ["Mellow"]},
        {"genre": ["jazz", "Rock"]},
        {"mood": ["rock"]},
    ]
    for track, given in zip(library.tracks.many(ids[:3]), tags, strict=True):
        library.tracks.replace(replace(track, file_tags=given))
    library.save_search("Evening", "jazz -rock", limit=7, min_probability=0.3)
    library.save_search("A/B", "mellow OR (jazz -mellow)", limit=5)
    library.save_search("a_b", "jazz live", order="smooth", limit=4)
    library.save_search("Way", start=int(ids[0]), end=int(ids[9]), limit=5)
    return library


def test_a_saved_search_finds_its_tracks_anew_and_its_changes_can_be_undone(searches):
    library = searches
    there = {one.name: one for one in library.saved_searches()}
    assert [*there] == ["A/B", "a_b", "Evening", "Way"]
    assert there["Evening"].question == Question("jazz -rock", min_probability=0.3, stops=7)
    assert there["Way"].words == f"from #{there['Way'].question.start} to #{10}"
    assert there["a_b"].words == "jazz live, sorted by smooth"
    found = [hit.track.id for hit in library.run_search("Evening")]
    assert len(found) == 7
    assert found == [h.track.id for h in library.search("jazz -rock", limit=7)]
    library.say(found[0], "rock")
    assert found[0] not in [hit.track.id for hit in library.run_search("Evening")]
    assert library.save_search("Way", start=1, end=10, limit=5) is None  # it is that already
    deleted = library.delete_search("Evening")
    assert "Evening" not in [one.name for one in library.saved_searches()]
    library.undo(deleted)
    assert library.run_search("Evening").hits
    library.rename_search("Evening", "Night")
    assert [one.name for one in library.saved_searches()] == ["A/B", "a_b", "Night", "Way"]
    assert library.changes.list(1)[0].summary == "search 'Evening' renamed to 'Night'"
    library.undo()
    assert library.run_search("Evening").hits
    first = next(one.id for one in library.changes.list() if one.summary == "search 'A/B' saved")
    library.rename_search("A/B", "AB")
    with pytest.raises(LibraryError, match=r"Nothing of change .* can be undone"):
        library.undo(first)
    assert library.changes.get(first).undone_in_part_by is None
    for wrong, error in {
        ("rename_search", "Evening", "Way"): DataError,
        ("rename_search", "Evening", " "): DataError,
        ("save_search", "x" * 201, "jazz"): DataError,
        ("save_search", "x", "no such tag"): UnknownTagError,
        ("delete_search", "Evning"): LibraryError,
    }.items():
        with pytest.raises(error):
            getattr(library, wrong[0])(*wrong[1:])
    with pytest.raises(DataError, match="Name a folder"):
        library.write_playlists(__file__)
    with pytest.raises(DataError, match="got minimum"):
        library.save_search("x", "jazz", minimum=0.3)
    library.save_search("Named", name="song", limit=3)
    assert library.saved_searches()[3].words == "“song”"


def test_playlists_are_files_or_rules_for_navidrome(searches, tmp_path):
    folder = tmp_path / "new" / "lists"
    written = searches.write_playlists(folder)
    names = {"A/B": "A_B.m3u8", "a_b": "a_b 2.m3u8", "Evening": "Evening.m3u8", "Way": "Way.m3u8"}
    assert {one.name: one.path for one in written} == {k: str(folder / v) for k, v in names.items()}
    assert [one.n_tracks for one in written] == [5, 4, 7, 5]
    lines = (folder / "Way.m3u8").read_text(encoding="utf-8").splitlines()
    assert [lines[2], lines[-1]] == ["/music/000.ogg", "/music/009.ogg"]
    written = searches.write_playlists(folder, rules=True)
    assert [one.n_tracks for one in written] == [None, 4, None, 5, None, None]
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
        searches.delete_search(name)
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

    with patch.object(saved, "write_atomically", interrupted), pytest.raises(KeyboardInterrupt):
        searches.write_playlists(tmp_path)
    searches.save_search("Way", "jazz", limit=3)
    assert [one.n_tracks for one in searches.write_playlists(tmp_path)] == [5, 4, 7, 3]


def test_the_commands_save_list_write_rename_and_delete(searches, place, tmp_path):
    done = run_main("search", "jazz", "-n", 3, "--save", "Three", "-L", place)
    assert done.exit_code == 0, done.stderr
    assert "Saved as 'Three'." in done.stderr
    listed = run_main("playlists", "-L", place)
    assert "Three\tjazz\t3" in listed.stdout.splitlines()
    assert run_main("playlists", "--rename", "Three", "3", "-L", place).exit_code == 0
    assert "3\tjazz\t3" in run_main("playlists", "--delete", "Way", "-L", place).stdout
    with Library.open(place) as library:
        library.rename("live", "on stage")
        library.hide("on stage")
    done = run_main("playlists", tmp_path / "lists", "--nsp", "-L", place)
    assert done.exit_code == 0, done.stderr
    kinds = [line.split("\t")[1] for line in done.stdout.splitlines()]
    assert kinds == ["rules", "rules", "4", "rules"]
