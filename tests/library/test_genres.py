"""Genres as they are in real files: parted, spelt as people do, and counted by a tree."""

import numpy as np
import pytest
from some_tracks import in_force, say, triples

from harmonium.data.tag_names import GenreTree, builtin_tree
from harmonium.library import Library
from harmonium.library.imports import import_file_tags, import_table
from harmonium.library.store.opinions import VerdictTable, judge, label_matrix, with_kinds
from harmonium.library.store.schema import GENRES
from harmonium.library.store.tracks import Track

GENRES_IN_FILES = [["Jazz; Blues"], ["Hip-Hop"], ["hip hop", "Pop/Rock"], ["Hip-Hop"], ["(17)"]]


@pytest.fixture
def library(tmp_path):
    with Library.open(tmp_path / "library.db") as opened:
        opened.tracks.put(
            Track(f"/music/{i}.mp3", f"s{i}", file_tags={"genre": genres})
            for i, genres in enumerate(GENRES_IN_FILES, 1)
        )
        yield opened


def tags(library):
    return {(track, tag) for _, track, tag in in_force(library)}


def test_genres_of_files_are_parted_and_numbers_named(library):
    report = import_file_tags(library)
    hip_hop = {(track, "hip hop") for track in (2, 3, 4)}
    assert tags(library) == {(1, "jazz"), (1, "blues"), *hip_hop, (3, "pop/rock"), (5, "rock")}
    assert report.parted == {"Jazz; Blues": ("Jazz", "Blues")}
    assert report.whole == {"Pop/Rock": 1}
    import_file_tags(library, split=())
    assert (1, "jazz; blues") in tags(library)


def test_cells_of_a_table_are_parted(library, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text('path,tag\n1.mp3,"live, loud"\n2.mp3,"loud, -live"\n', encoding="utf-8")
    report = import_table(library, table, person="ann")
    assert tags(library) == {(1, "live"), (1, "loud"), (2, "loud")}
    assert report.n_rows == report.n_matched == 2
    assert sum(report.left_out.values()) == 1  # the minus


def test_the_most_used_spelling_is_kept_and_files_come_first(library, tmp_path):
    import_file_tags(library)
    table = tmp_path / "t.csv"
    rows = "".join(f"{i}.mp3,HIP HOP\n{i}.mp3,Soft Rock\n" for i in range(1, 6))
    table.write_text("path,tag\n" + rows, encoding="utf-8")
    import_table(library, table, person="ann", aliases={"soft rock": "Yacht-Rock"})
    spelt = library.opinions.spellings()
    assert spelt["hip hop"] == "Hip-Hop"
    assert spelt["yacht rock"] == "Yacht-Rock"
    import_file_tags(library)
    assert library.opinions.spellings() == spelt
    say(library, "ann", 1, present=["Post-Bop"])
    assert library.opinions.spellings()["post bop"] == "Post-Bop"


def test_files_that_are_spelt_anew_are_counted_anew(library):
    import_file_tags(library)
    library.tracks.put(
        Track(f"/music/{i}.mp3", f"s{i}", file_tags={"genre": ["Hip Hop"]}) for i in (2, 3, 4)
    )
    assert import_file_tags(library).n_added == 0
    assert library.opinions.spellings()["hip hop"] == "Hip Hop"


def test_an_unparted_genre_is_no_negative_of_its_parts(library):
    for track, given in ((1, "Pop/Rock"), (2, "Rock"), (3, "jazz"), (4, "Pop/Rock")):
        say(library, "files", track, present=[given])
    say(library, "ann", 4, absent=["pop"])
    Y = label_matrix(judge(library.opinions.triples()), np.array([1, 2, 3, 4]), ["rock", "pop"])
    np.testing.assert_array_equal(Y, [[np.nan, np.nan], [1, 0], [0, 0], [np.nan, 0]])


def test_kinds_count_for_a_genre_unless_that_is_denied():
    rows = [("a", 1, "bebop", 1), ("a", 2, "bebop", 1), ("a", 2, "jazz", -1), ("b", 1, "dnb", 1)]
    said = with_kinds(triples(*rows), builtin_tree())
    assert set(said.rows()) == {
        ("a", 1, "bebop", 1),
        ("a", 1, "jazz", 1),
        ("a", 2, "bebop", 1),
        ("a", 2, "jazz", -1),
        ("b", 1, "drum & bass", 1),
        ("b", 1, "electronic", 1),
    }


def test_search_counts_kinds_by_the_library_s_tree(library):
    for track, given in ((1, ["bebop", "swing"]), (2, ["jazz"]), (3, ["rock"])):
        say(library, "ann", track, present=given)
    for tree, expected in ((GenreTree(), [2]), (builtin_tree(), [1, 2]), (GenreTree(), [2])):
        library.settings.set(GENRES, tree.to_dict())
        assert VerdictTable.read(library, ["jazz"]).agreement("jazz").yes.tolist() == expected
