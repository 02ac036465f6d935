"""The kinds of imported tags, and words that are no tags."""

import pytest
from command_line import run
from some_tracks import add_tracks, in_force

from harmonium.errors import DataError
from harmonium.library.imports import (
    import_file_tags,
    import_table,
)
from harmonium.library.store.tracks import Track


def table(folder, text, name="tags.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_of_a_wide_table_give_their_tags_a_kind(library, tmp_path):
    add_tracks(library, 3)
    text = "path,Genre,Mood,Instruments\n000.mp3,Krautpop,Bitter; Rainy,\n001.mp3,,Rainy,Theremin\n"
    report = import_table(library, table(tmp_path, text))
    assert report.people == ["me"]
    assert (report.n_rows, report.n_matched, report.left_out) == (2, 2, {})
    assert library.changes.get(report.change).summary == "tags.csv: 5 tags added"
    kinds = {one.tag: one.kind for one in library.tags.list()}
    moods = dict.fromkeys(("bitter", "rainy"), "mood")
    assert kinds == moods | {"krautpop": "genre", "theremin": "instrument"}
    library.undo()
    assert "krautpop" not in library.tags.kinds()


def import_genres_with_moods(library):
    files = {"genre": ["Krautpop", "Mellow", "Rap"], "mood": ["Rainy", "Pop"]}
    library.tracks.put([Track("/a", "a", file_tags=files)])
    import_file_tags(library, fields=["genre", "mood"])


def test_kinds_come_from_fields_then_words(library):
    import_genres_with_moods(library)
    library.say(1, "sunday morning", "female vocals")
    kinds = {one.tag: one.kind for one in library.tags.list()}
    assert (kinds["krautpop"], kinds["mellow"], kinds["rainy"]) == ("genre", "mood", "mood")
    assert (kinds["rap"], kinds["pop"]) == ("genre", "genre")
    assert (kinds["sunday morning"], kinds["female vocals"]) == ("own", "voice")


def test_a_kind_that_was_set_stays_until_undo(library, tmp_path):
    import_genres_with_moods(library)
    change = library.set_kind("Rainy", "krautpop", kind="own")
    import_table(library, table(tmp_path, "path,mood\n/a,rainy\n"))
    assert library.snapshot().tags["rainy"].kind == "own"
    library.rename("rainy", "wet")
    assert library.snapshot().tags["wet"].kind == "own"
    library.undo()
    library.undo(change)
    assert library.snapshot().tags["rainy"].kind == "mood"
    assert library.set_kind("rainy", kind="mood") is None


def test_an_unknown_kind_is_refused(library):
    import_genres_with_moods(library)
    with pytest.raises(DataError, match="'kind'"):
        library.set_kind("rainy", kind="feeling")


def test_the_fields_to_write_are_remembered(library):
    assert library.writer.fields()["voice"] == "grouping"
    library.writer.set_fields({"mood": "comment", "Rainy": "mood", "era": "none"})
    found = library.writer.fields()
    assert (found["mood"], found["rainy"], found["era"]) == ("comment", "mood", "none")
    library.writer.set_fields({"mood": None})
    assert library.writer.fields() == found | {"mood": "mood"}
    with pytest.raises(DataError, match="fields"):
        library.writer.set_fields({"mood": "title"})


def import_odd_genres(library):
    genres = ["Other", "(12)", "255", "Jazz", "-", "Misc", "Unknown; Rock"]
    library.tracks.put(
        Track(f"/{k}", f"{k}", file_tags={"genre": [text]}) for k, text in enumerate(genres)
    )
    return import_file_tags(library)


def test_words_that_are_not_tags_are_ignored(library):
    report = import_odd_genres(library)
    assert set(library.opinions.tags()["tag"]) == {"jazz", "rock"}
    assert report.ignored == {"Other": 2, "255": 1, "Unknown": 1, "Misc": 1}


def test_a_library_may_change_which_words_are_ignored(library, tmp_path):
    import_odd_genres(library)
    library.set_kind("other", kind="own")
    library.set_kind("Jazz", kind="none")
    report = import_table(library, table(tmp_path, "path,tag\n/0,Other\n/0,jazz\n/1,1984\n"))
    assert report.ignored == {"jazz": 1, "1984": 1}
    assert in_force(library)["me", 1, "other"] == 1
    done = run("import", "--from-files", "--dry-run", "-L", library.place)
    assert "1 track: Misc" in done.output
