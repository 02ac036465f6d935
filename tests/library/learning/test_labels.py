"""Labels: which tags there is enough to learn from, and what is unknown where."""

import dataclasses
import functools

import numpy as np
import polars as pl
import pytest
import small_library
from small_library import new_change
from some_tracks import triples

from harmonium.errors import DataError
from harmonium.library.learning.labels import TaggedTracks, TrainingOptions, choose_vocabulary
from harmonium.library.verdicts import judge


def labels(tracks):
    """Tag → the labels of all tracks."""
    return dict(zip(tracks.tags, tracks.labels(tracks.ids).T, strict=True))


def judged(**counts):
    """Tags on the first so many tracks."""
    rows = [("ann", i, tag, 1) for tag, n in counts.items() for i in range(n)]
    return judge(triples(*rows))


def test_the_vocabulary_is_the_tags_with_enough_tracks_most_used_first():
    tags, excluded = choose_vocabulary(judged(rare=4, some=5, much=40, all=98), 100)
    assert tags == ("much", "some")
    found = [(one.tag, one.missing, one.reason) for one in excluded]
    assert found == [("all", 3, "3 more tracks without it"), ("rare", 1, "1 more track with it")]


@pytest.mark.parametrize("n_tracks", [30, 99, 100, 10_000])
def test_a_tag_needs_as_many_examples_in_a_library_of_any_size(n_tracks):
    assert choose_vocabulary(judged(rare=4, some=5), n_tracks)[0] == ("some",)


def test_fewer_examples_are_enough_if_asked_for():
    tags, _ = choose_vocabulary(judged(rare=4, some=5), 30, min_examples=4)
    assert tags == ("some", "rare")


def test_only_the_most_used_tags_are_learnt():
    tags, excluded = choose_vocabulary(judged(a=12, b=11, c=10), 100, max_tags=2)
    assert tags == ("a", "b")
    assert excluded[0].reason == "only the 2 most used tags are learnt"


def test_one_example_is_not_enough():
    with pytest.raises(DataError, match="'min_examples' must be at least 2"):
        choose_vocabulary(judged(a=7), 100, min_examples=1)


def test_tracks_of_which_only_a_word_without_meaning_is_said_are_unknown_for_genres(library):
    ids, *_ = small_library.fill(library, tagged=0, people=())
    with library.begin():
        change = new_change(library)
        genres = {1: "jazz", 0: "rock"}
        for number in ids[:40].tolist():
            library.opinions.say("files", number, [genres[number % 2], "calm"], change=change)
        library.opinions.say("files", 41, ["Other"], change=change)
        library.opinions.say("files", 42, ["Other", "calm"], change=change)
        library.opinions.say("files", 43, ["calm"], change=change)
    library.tracks.replace(
        dataclasses.replace(library.tracks.get(43), file_tags={"genre": ["Unknown"]})
    )
    options = TrainingOptions(min_examples=2)
    tracks = TaggedTracks.read(library, options)
    assert 41 not in tracks.ids
    assert "other" not in tracks.tags
    jazz = labels(tracks)["jazz"]
    assert np.isnan(jazz[np.isin(tracks.ids, [42, 43])]).all()
    assert not np.isnan(jazz[~np.isin(tracks.ids, [42, 43])]).any()


def test_a_genre_that_nobody_else_uses_or_a_kind_of_it_leaves_other_genres_unknown(library):
    small_library.fill(library, tagged=0, people=())
    genres = {number: ["jazz", "electronic"][number % 2] for number in range(1, 31)}
    genres |= {31: "clasical", 32: "jaz", 33: "bebop", 34: "electro", 35: "jazz/blues"}
    given = pl.DataFrame({"person": "files", "track_id": [*genres], "tag": [*genres.values()]})
    with library.begin():
        library.opinions.add_triples(given, change=new_change(library), kind="file")
    library.set_kind("clasical", "jaz", "jazz/blues", kind="genre")
    tracks = TaggedTracks.read(library, TrainingOptions())
    Y = labels(tracks)
    at = {number: place for place, number in enumerate(tracks.ids.tolist())}
    assert np.isnan([Y["jazz"][at[number]] for number in (31, 32, 33, 35)]).all()
    assert Y["jazz"][at[34]] == 0
    assert np.isnan(Y["electronic"][at[34]])
    assert Y["electronic"][at[33]] == 0
    blues = dict(zip(tracks.ids.tolist(), tracks.genre_labels(tracks.ids, "blues"), strict=True))
    assert np.isnan([blues[31], blues[32], blues[35]]).all()
    assert blues[33] == blues[34] == 0


def test_a_genre_in_a_file_says_nothing_about_moods(library):
    ids, *_ = small_library.fill(library, tagged=0, people=())
    say = library.opinions.say
    with library.begin():
        change = new_change(library)
        library.opinions.add_triples(
            pl.DataFrame({"person": "files", "track_id": ids[:60], "tag": ["jazz", "rock"] * 30}),
            change=change,
            kind="file",
        )
        for number in range(1, 21):
            say("ann", number, ["calm", "jazz"] if number % 2 else ["own", "rock"], change=change)
        say("ann", 21, absent=["calm"], change=library.changes.begin("review", ""))
    Y = labels(TaggedTracks.read(library, TrainingOptions()))
    assert Y["calm"][:21].tolist() == [1, 0] * 10 + [0]  # described, and answered
    assert np.isnan(Y["calm"][21:]).all()
    assert not np.isnan(Y["jazz"]).any()
    with library.begin():
        for number in range(1, 21):
            say("bob", number, ["calm"], change=new_change(library))
    Y = labels(TaggedTracks.read(library, TrainingOptions(min_share=0)))
    assert not np.isnan(Y["calm"]).any()


def test_a_table_with_other_or_nothing_as_the_genre_still_gives_moods(library, tmp_path):
    """Where most tracks have one of several genres, it is unknown of the others; else absent."""
    small_library.fill(library, tagged=0, people=())
    cells = ["Jazz", "Rock", "Rock", "Jazz", "Other", ""]
    rows = [f"{k:03}.ogg,{cells[k % 6]},{'Rainy' if k % 2 else 'Calm'}" for k in range(60)]
    table = tmp_path / "table.csv"

    def imported(**instead):
        text = "\n".join(["path,genre,mood", *rows])
        table.write_text(functools.reduce(lambda a, b: a.replace(*b), instead.items(), text))
        library.import_tags(table, replace=True)
        return labels(TaggedTracks.read(library, TrainingOptions()))

    Y, unknown = imported(), np.arange(60) % 6 >= 4
    assert set(Y) == {"jazz", "rock", "rainy", "calm"}
    for genre in ("jazz", "rock"):
        np.testing.assert_array_equal(np.isnan(Y[genre]), unknown)
    np.testing.assert_array_equal(Y["rainy"], np.arange(60) % 2)
    assert imported(Rock="Jazz")["jazz"].sum() == 40  # told from the 20 others
    assert imported(Rock="")["jazz"].sum() == 20
    assert not np.isnan(imported(Rock='"Rock, Jazz"', Other="")["rock"]).any()  # not one of several
