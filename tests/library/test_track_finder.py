"""Finding tracks by what people and other programs call them."""

import pytest
import sqlalchemy as sa
from some_tracks import add_tracks

from harmonium.errors import LibraryError
from harmonium.library import Library
from harmonium.library.store.schema import track_copy
from harmonium.library.store.tracks import Track
from harmonium.library.store.values import stored_path
from harmonium.library.track_finder import (
    NO_SUCH_TRACK,
    NOTHING_GIVEN,
    SEVERAL_TRACKS,
    Match,
    TrackFinder,
    find_track,
)


def test_a_track_is_found_by_what_people_call_it(library, monkeypatch):
    monkeypatch.chdir("/tmp")
    add_tracks(library, 6)
    paths = ("/music/004.mp3", "004.mp3", "./004.mp3", "music/004", "004.MP3", "Music\\004")
    names = ("#5", "../music/004.mp3", "artist 1 - song 4", "ARTIST 1 – Song_4", "song 4")
    for text in (*paths, *names):
        assert find_track(library, text).id == 5
    one, two = library.tracks.put([Track("/m/x.mp3", "a"), Track("/m/x.mp3", "b")])
    library.tracks.set_state([one], "missing")  # which comes after a present one of its path
    for text in ("/m/x.mp3", "x.mp3", "x"):
        assert find_track(library, text).id == two


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("001.mp3", "any of 2 tracks: #2 /music/001"),
        ("002.mp", r"Did you mean #3 /music/002\.mp3, .*\?"),
        ("#17", "no track #17"),
        (f"#{10**30}", "no track .#1000"),
        ("01.mp3", "no track '01.mp3'"),  # the end of a name is not the end of a path
        ("02", "no track '02'"),
    ],
)
def test_a_name_without_a_single_match_lists_similar_tracks(library, text, message):
    add_tracks(library, 3)
    library.tracks.put([Track("/other/001.mp3", "x", title="Song 1")])
    with pytest.raises(LibraryError, match=message):
        find_track(library, text)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory):
    files = [
        ("/music/a/01 One.mp3", "Björk", "Jóga"),
        ("/music/b/01 One.mp3", "Björk", "Hunter"),
        ("/music/b/Cafe\u0301.flac", "Various", "Hunter"),
        ("/other/12.ogg", None, "Twelve"),
        ("/other/x.ogg", None, None),
    ]
    with Library.open(tmp_path_factory.mktemp("matcher") / "library.db") as library:
        library.tracks.put(
            Track(path, f"s{k}", artist=artist, title=title)
            for k, (path, artist, title) in enumerate(files)
        )
        with library.connect() as connection:
            return TrackFinder(connection, ["/music", "/other"])


@pytest.mark.parametrize(
    ("expected", "items"),
    [
        (Match([1]), ["/music/a/01 One.mp3"]),
        (Match([2]), ["b/01 One.mp3", "./b/01 One.mp3", "b\\01 One.mp3", "music/b/01 One.mp3"]),
        (Match([2]), ["B\\01 one.MP3"]),
        (Match([3]), ["Caf\u00e9.flac", "Caf\u00e9"]),
        (Match([4]), ["#4", "12", "12.ogg"]),
        (Match([5]), ["X"]),
        (Match([], NO_SUCH_TRACK), ["#9", "1 One.mp3", "01 on", "4"]),
        (Match([], SEVERAL_TRACKS), ["01 One.mp3", "01 One", "01 ONE.MP3"]),
        (Match([], NOTHING_GIVEN), [" "]),
    ],
)
def test_an_item_finds_its_track(matcher, expected, items):
    assert {item: matcher.match(item) for item in items} == dict.fromkeys(items, expected)


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (Match([1]), [("björk", "JÓGA "), ("", "jóga")]),
        (Match([2]), [("Björk", "Hunter"), ("Björk", "Hunter", "01 One.mp3")]),
        (Match([4]), [(None, "twelve")]),
        (
            Match([], NO_SUCH_TRACK),
            [("BJÖRK", "joga"), ("Somebody", "Jóga"), ("Björk", "Gone", "gone.mp3")],
        ),
        (Match([], SEVERAL_TRACKS), [("", "Hunter")]),
    ],
)
def test_names_find_a_track_where_no_item_tells(matcher, expected, names):
    for artist, title, *item in names:
        assert matcher.match(*item, artist=artist, title=title) == expected


def test_the_path_of_a_copy_means_the_track_that_it_is_a_copy_of(library):
    one, two = library.tracks.put([Track("/m/a/x.mp3", "a"), Track("/m/y/c/x.mp3", "b")])
    with library.begin() as connection:
        values = {"track_id": one, "size": 1, "modified": 1} | stored_path("/m/c/x.mp3")
        connection.execute(sa.insert(track_copy).values(values))
        finder = TrackFinder(connection, ["/m"])
    for path in ("/m/a/x.mp3", "/m/c/x.mp3", "c/x.mp3", "/m/c/../c/x.mp3"):
        assert finder.match(path) == Match([one])
    assert finder.match("y/c/x.mp3") == Match([two])
