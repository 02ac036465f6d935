"""Searches with a name."""

from operator import attrgetter

import pytest
from command_line import run_main

from harmonium.errors import DataError, LibraryError, NotInLibraryError, UnknownTagError
from harmonium.library import Library
from harmonium.library.snapshot import Question


def test_a_saved_search_finds_its_tracks_anew(searches):
    library = searches
    there = {one.name: one for one in library.searches.list()}
    assert [*there] == ["A/B", "a_b", "Evening", "Way"]
    assert there["Evening"].question == Question("jazz -rock", min_probability=0.3, stops=7)
    assert there["Way"].words == f"from #{there['Way'].question.start} to #{10}"
    assert there["a_b"].words == "jazz live, sorted by smooth"
    found = [hit.track.id for hit in library.searches.run("Evening")]
    assert len(found) == 7
    assert found == [h.track.id for h in library.search("jazz -rock", limit=7)]
    library.say(found[0], "rock")
    assert found[0] not in [hit.track.id for hit in library.searches.run("Evening")]
    assert library.save_search("Way", start=1, end=10, limit=5) is None  # it is that already


def test_changes_of_saved_searches_can_be_undone(searches):
    library = searches
    deleted = library.searches.delete("Evening")
    assert "Evening" not in [one.name for one in library.searches.list()]
    library.undo(deleted)
    assert library.searches.run("Evening").hits
    library.searches.rename("Evening", "Night")
    assert [one.name for one in library.searches.list()] == ["A/B", "a_b", "Night", "Way"]
    assert library.changes.list(1)[0].summary == "search 'Evening' renamed to 'Night'"
    library.undo()
    assert library.searches.run("Evening").hits
    first = next(one.id for one in library.changes.list() if one.summary == "search 'A/B' saved")
    library.searches.rename("A/B", "AB")
    with pytest.raises(LibraryError, match=r"Nothing of change .* can be undone"):
        library.undo(first)
    assert library.changes.get(first).undone_in_part_by is None


@pytest.mark.parametrize(
    ("verb", "arguments", "error"),
    [
        ("searches.rename", ("Evening", "Way"), DataError),
        ("searches.rename", ("Evening", " "), DataError),
        ("save_search", ("x" * 201, "jazz"), DataError),
        ("save_search", ("x", "no such tag"), UnknownTagError),
        ("save_search", ("x",), DataError),
        ("searches.delete", ("Evning",), NotInLibraryError),
    ],
)
def test_what_cannot_be_saved_is_refused(searches, verb, arguments, error):
    before = searches.searches.list()
    with pytest.raises(error):
        attrgetter(verb)(searches)(*arguments)
    assert searches.searches.list() == before


def test_a_search_for_a_name_is_shown_in_quotes(searches):
    searches.save_search("Named", name="song", limit=3)
    assert searches.searches.list()[3].words == "“song”"


def test_the_commands_of_saved_searches(searches, place, tmp_path):
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
    assert kinds == ["rules", "rules", "3", "rules"]
