"""From opinions to verdicts and labels."""

import numpy as np
import pytest
from some_tracks import add_tracks, in_force, say, triples

from harmonium.data.genres import GenreTree, builtin_tree
from harmonium.errors import DataError
from harmonium.library import Library
from harmonium.library.imports import import_file_tags, import_table
from harmonium.library.store.schema import GENRES
from harmonium.library.store.tracks import Track
from harmonium.library.verdicts import (
    VerdictTable,
    agreed_tags,
    judge,
    label_matrix,
    with_implied_genres,
)

IDS = np.array([3, 5, 9])


ROCK, CROWD = ("ann", 3, "rock", 1), [(f"p{i}", 3, "jazz", 1) for i in range(9)]
VOTES = [("ann", 3, "rock", -1), ("ann", 5, "rock", 1), ("bob", 5, "rock", -1)]
VOTES += [("ann", 9, "rock", 1), ("bob", 9, "rock", 1), ("cy", 9, "rock", -1)]
UNPARTED = [("files", 3, "pop/rock", 1), ("files", 5, "rock", 1), ("files", 9, "pop/rock", 1)]
UNPARTED += [("ann", 9, "pop", -1)]


@pytest.mark.parametrize(
    ("rows", "tags", "rule", "expected"),
    [
        ([ROCK, ("ann", 5, "jazz", 1)], ("rock", "jazz"), {}, [[1, 0], [0, 1], [0, 0]]),
        (VOTES, ("rock",), {}, [[0], [np.nan], [1]]),
        ([ROCK, *VOTES[3:5]], ("rock",), {"min_count": 2}, [[np.nan], [0], [1]]),
        ([*CROWD, ROCK], ("jazz", "rock"), {}, [[1, 0], [0, 0], [0, 0]]),
        ([*CROWD, ROCK], ("jazz", "rock"), {"min_share": 0}, [[1, 1], [0, 0], [0, 0]]),
        (UNPARTED, ("rock", "pop"), {}, [[np.nan, np.nan], [1, 0], [np.nan, 0]]),
    ],
    ids=(
        *("given to no track", "denied", "too few people", "one among many", "one is enough"),
        "a genre that may be two",
    ),
)
def test_labels_of_opinions(rows, tags, rule, expected):
    Y = label_matrix(judge(triples(*rows), **rule), IDS, tags)
    np.testing.assert_array_equal(Y, expected)


@pytest.mark.parametrize("rule", [{"min_count": 0}, {"min_share": 1.5}])
def test_a_rule_that_makes_no_sense_is_refused(rule):
    with pytest.raises(DataError, match=f"'{next(iter(rule))}' must be"):
        judge(triples(("ann", 3, "rock", 1)), **rule)


def test_a_genre_inside_the_name_of_another_is_left_open():
    """Unless people speak of it; without a list of genres, only what may be two tags is."""
    said = triples(
        *(("ann", 1, "poprock", 1), ("ann", 2, "rock", 1), ("ann", 3, "female", 1)),
        *(("ann", 4, "classical music", 1), ("bob", 4, "classical", -1)),
    )
    tags = ("classical", "pop", "rock", "male")
    labels = label_matrix(judge(said, genres=["pop", "rock", "classical"]), np.arange(1, 5), tags)
    nan = np.nan
    expected = [[0, nan, nan, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(labels, expected)
    assert not np.isnan(label_matrix(judge(said), np.arange(1, 5), tags)).any()


def test_what_people_agree_on():
    rows = [*CROWD, ROCK, ("ann", 3, "loud", -1)]  # one of ten is too few for rock
    rows += [*VOTES[1:], ("bob", 5, "soft", 1)]  # they are undecided about rock for track 5
    found = agreed_tags(triples(*rows))
    assert found == {3: {"jazz": True, "loud": False}, 5: {"soft": True}, 9: {"rock": True}}
    assert list(found[3]) == ["jazz", "loud"]


@pytest.mark.parametrize("n_people", [3, 12], ids=["few people", "a crowd"])
def test_one_tag_of_all_tracks_is_settled_as_all_tags_of_one_are(library, n_people):
    ids = add_tracks(library, 20)
    rng = np.random.default_rng(n_people)
    rows = {
        (f"person {rng.integers(n_people)}", int(rng.choice(ids)), f"tag {rng.integers(4)}"): (
            int(rng.choice([1, 1, 1, -1]))
        )
        for _ in range(400)
    }
    frame = triples(*((*key, value) for key, value in rows.items()))
    with library.begin():
        change = library.changes.begin("import", "at random")
        library.opinions.add_triples(frame, change=change)
    expected = agreed_tags(library.opinions.triples())
    held = [tags[name] for tags in expected.values() for name in tags]
    assert True in held
    assert False in held
    names = ["tag 0", "tag 1", "tag 2", "tag 3", "never said"]
    found = VerdictTable.read(library, names)
    for name in names:
        said = found.agreement(name)
        assert said.yes.tolist() == [i for i in ids if expected.get(i, {}).get(name) is True]
        assert said.no.tolist() == [i for i in ids if expected.get(i, {}).get(name) is False]


def test_after_undoing_the_only_opinions_the_next_ones_are_read(library):
    add_tracks(library, 3)
    assert library.snapshot().verdicts.of_track(2) == {}
    for tag in ("rock", "jazz"):
        change = library.say(2, tag).change
        assert library.snapshot().verdicts.of_track(2) == {tag: True}
        library.undo(change)
        assert library.snapshot().verdicts.of_track(2) == {}
    library.say(2, "rock", "-jazz")
    taken_back = library.say(2, unsay=["rock", "jazz"]).change
    assert library.changes.get(taken_back).summary.endswith("2 tags withdrawn")


GENRES_IN_FILES = [["Jazz; Blues"], ["Hip-Hop"], ["hip hop", "Pop/Rock"], ["Hip-Hop"], ["(17)"]]


@pytest.fixture
def genres(tmp_path):
    with Library.open(tmp_path / "genres.db") as opened:
        opened.tracks.put(
            Track(f"/music/{i}.mp3", f"s{i}", file_tags={"genre": genres})
            for i, genres in enumerate(GENRES_IN_FILES, 1)
        )
        yield opened


def tags(genres):
    return {(track, tag) for _, track, tag in in_force(genres)}


def test_genres_of_files_are_parted(genres):
    report = import_file_tags(genres)
    hip_hop = {(track, "hip hop") for track in (2, 3, 4)}
    assert tags(genres) == {(1, "jazz"), (1, "blues"), *hip_hop, (3, "pop/rock"), (5, "rock")}
    assert report.split == {"Jazz; Blues": ("Jazz", "Blues")}
    assert report.whole == {"Pop/Rock": 1}


def test_genres_of_files_stay_whole_without_separators(genres):
    import_file_tags(genres, split=())
    assert (1, "jazz; blues") in tags(genres)


def test_the_spelling_that_files_use_most_is_kept(genres, tmp_path):
    import_file_tags(genres)
    table = tmp_path / "t.csv"
    rows = "".join(f"{i}.mp3,HIP HOP\n{i}.mp3,Soft Rock\n" for i in range(1, 6))
    table.write_text("path,tag\n" + rows, encoding="utf-8")
    import_table(genres, table, person="ann", aliases={"soft rock": "Yacht-Rock"})
    spelt = genres.opinions.spellings()
    assert spelt["hip hop"] == "Hip-Hop"
    assert spelt["yacht rock"] == "Yacht-Rock"
    import_file_tags(genres)
    assert genres.opinions.spellings() == spelt
    say(genres, "ann", 1, present=["Post-Bop"])
    assert genres.opinions.spellings()["post bop"] == "Post-Bop"
    genres.tracks.put(
        Track(f"/music/{i}.mp3", f"s{i}", file_tags={"genre": ["Hip Hop"]}) for i in (2, 3, 4)
    )
    assert import_file_tags(genres).n_added == 0
    assert genres.opinions.spellings()["hip hop"] == "Hip Hop"


def test_kinds_count_for_a_genre_unless_that_is_denied():
    rows = [("a", 1, "bebop", 1), ("a", 2, "bebop", 1), ("a", 2, "jazz", -1), ("b", 1, "dnb", 1)]
    said = with_implied_genres(triples(*rows), builtin_tree())
    dnb = {("b", 1, "drum & bass", 1), ("b", 1, "electronic", 1)}
    assert set(said.rows()) == {*rows[:3], ("a", 1, "jazz", 1)} | dnb


def test_search_counts_kinds_by_the_library_s_tree(genres):
    for track, given in ((1, ["bebop", "swing"]), (2, ["jazz"]), (3, ["rock"])):
        say(genres, "ann", track, present=given)
    for tree, expected in ((GenreTree(), [2]), (builtin_tree(), [1, 2]), (GenreTree(), [2])):
        genres.settings.set(GENRES, tree.to_dict())
        assert VerdictTable.read(genres, ["jazz"]).agreement("jazz").yes.tolist() == expected
