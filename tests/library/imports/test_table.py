"""Importing tables of tags."""

import pytest
from some_tracks import add_tracks, in_force, say

from harmonium.errors import DataError, LibraryError
from harmonium.library.imports import (
    import_table,
)
from harmonium.library.store.tracks import Track
from harmonium.library.track_finder import SEVERAL_TRACKS


def table(folder, text, name="tags.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_counts_for_every_copy_of_a_track(library, tmp_path):
    """Those with the same sound are one track; an MP3 and a FLAC of it are two."""
    about = {"artist": "Ann", "title": "Song"}
    lengths = {"/m/Song.mp3": 100.0, "/m/lossless/Song.flac": 100.4, "/m/live/Song.ogg": 160.0}
    tracks = [Track(path, path, duration=n, **about) for path, n in lengths.items()]
    short, *_ = library.tracks.put(tracks[:2])
    library.tracks.put_copy(Track("/m/copies/Song.mp3", "/m/Song.mp3", id=short))
    rows = "artist,title,path,tag\nAnn,Song,,rock\n,,Song,slow\n,,copies/Song.mp3,loud\n"
    report = import_table(library, table(tmp_path, rows))
    assert (report.n_rows, report.n_matched, report.n_tracks) == (3, 3, 2)
    assert report.complete
    both = {("me", number, tag): 1 for number in (1, 2) for tag in ("rock", "slow")}
    assert in_force(library) == both | {("me", 1, "loud"): 1}
    library.tracks.put(tracks[2:])  # another length: it is not clear which one is meant
    report = import_table(library, table(tmp_path, "artist,title,tag\nAnn,Song,jazz\n"))
    assert report.unmatched["reason"].to_list() == [SEVERAL_TRACKS]


@pytest.mark.parametrize(
    ("text", "options", "expected", "left_out"),
    [
        (  # as a spreadsheet writes it
            "\ufeffListener;File;Tag\nann;001.mp3;a\nann;000.mp3;b, c\n",
            {},
            {("ann", 2, "a"): 1, ("ann", 1, "b, c"): 1},
            {},
        ),
        (
            "Artist\tTitle\tTag\nartist 1\tSONG 1\tmellow\nArtist 2\tSong 1\tmellow\n",
            {"person": "me"},
            {("me", 2, "mellow"): 1},
            {},
        ),
        (
            "user,item,tag,v\nann,000,a,1\nann,001,a,0\nann,002,a,-2.5\nann,002,b,no\n",
            {"value": "v"},
            {("ann", 1, "a"): 1, ("ann", 2, "a"): -1, ("ann", 3, "a"): -1},
            {"number": 1},
        ),
        (
            "user,path,tag\nann,000.mp3,-jazz\nann,000.mp3,lo-fi\nann,001.mp3,jazz\n",
            {},
            {("ann", 1, "lo fi"): 1, ("ann", 2, "jazz"): 1},
            {"minus": 1},
        ),
        ("user,item,tag\nann,000,rock\nann,000\n", {}, {("ann", 1, "rock"): 1}, {"fields": 1}),
        (
            'path,tag\n000.mp3,"live, loud"\n001.mp3,"loud, -live"\n',
            {"person": "ann"},
            {("ann", 1, "live"): 1, ("ann", 1, "loud"): 1, ("ann", 2, "loud"): 1},
            {"minus": 1},
        ),
        (
            "001.mp3:loud\n",
            {"item": 0, "tag": 1, "person": "me", "header": False, "delimiter": ":"},
            {("me", 2, "loud"): 1},
            {},
        ),
    ],
    ids=["spreadsheet", "titles", "values", "minus", "broken row", "several in a cell", "bare"],
)
def test_tables_are_read_as_people_write_them(library, tmp_path, text, options, expected, left_out):
    add_tracks(library, 3)
    report = import_table(library, table(tmp_path, text), **options)
    assert in_force(library) == expected
    assert len(report.left_out) == len(left_out)
    for word, (reason, number) in zip(left_out, report.left_out.items(), strict=True):
        assert word in reason
        assert number == left_out[word]
    kind = "person" if "person" in options else "import"
    assert library.opinions.people()[0].kind == kind


def test_a_table_of_triples(library, tmp_path):
    add_tracks(library, 4)
    text = (
        "user,path,tag\n"
        "ann,/music/000.mp3,Hip-Hop\nann,001.mp3,rock\nbob,001.mp3,ROCK\nbob,001.mp3,rock\n"
        "bob,gone.mp3,rock\nbob,gone.mp3,pop\nbob,002.mp3,\n"
    )
    dry = import_table(library, table(tmp_path, text), dry_run=True)
    assert (dry.n_matched, dry.n_added, dry.change) == (4, 3, None)
    assert (in_force(library), library.changes.list()) == ({}, [])
    report = import_table(library, table(tmp_path, text))
    said = ("ann", 1, "hip hop"), ("ann", 2, "rock"), ("bob", 2, "rock")
    assert in_force(library) == dict.fromkeys(said, 1)
    assert (report.n_rows, report.n_matched, report.n_added) == (7, 4, 3)
    assert report.unmatched.rows() == [("gone.mp3", "", "", "no such track", 2)]
    assert report.left_out == {"an empty tag": 1}
    assert (report.people, report.n_tracks, report.n_tags) == (["ann", "bob"], 2, 2)
    assert not report.complete
    change = library.changes.get(report.change)
    assert (change.command, change.summary) == ("import", "tags.csv: 3 tags added")


def test_the_change_counts_what_is_new(library, tmp_path):
    add_tracks(library, 2)
    path = tmp_path / "tags.csv"
    path.write_text("file,tag\n000.mp3,rock\n")
    import_table(library, path)
    path.write_text("file,tag\n000.mp3,rock\n001.mp3,rock\n")
    report = import_table(library, path)
    assert report.n_added == 1
    assert library.changes.get(report.change).summary == "tags.csv: 1 tag added"


@pytest.fixture
def new_opinions(library, tmp_path, monkeypatch):
    """A table with opinions of ann, who has said other things in the library, as has bob."""
    monkeypatch.setattr("harmonium.library.store.database.CHUNK", 2)
    add_tracks(library, 3)
    say(library, "ann", 1, ["old", "both"], ["no", "new"])
    say(library, "ann", 3, ["far"])
    say(library, "bob", 1, ["old"])
    return table(tmp_path, "user,item,tag\nann,000,both\nann,000,new\nann,001,new\n")


@pytest.mark.parametrize("replace", [False, True])
def test_an_import_may_replace_what_its_people_said(library, new_opinions, replace):
    """The same again adds nothing."""
    said = library.changes.list(1)[0].id
    before = in_force(library)
    first, second = (import_table(library, new_opinions, replace=replace) for _ in range(2))
    imported = dict.fromkeys((("ann", 1, "both"), ("ann", 1, "new"), ("ann", 2, "new")), 1)
    kept = {("bob", 1, "old"): 1} if replace else before
    assert in_force(library) == kept | imported
    assert first.n_added == (5 if replace else 2)  # two are new, three were taken back
    assert (second.n_matched, second.n_added, second.change) == (3, 0, None)
    assert [change.id for change in library.changes.list(2)] == [first.change, said]


@pytest.mark.parametrize("replace", [False, True])
def test_an_import_is_undone(library, new_opinions, replace):
    before = in_force(library)
    first, _ = (import_table(library, new_opinions, replace=replace) for _ in range(2))
    assert library.changes.undo(first.change).complete
    assert in_force(library) == before


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("user,item,tag\n", {"user": "who"}, "'who' for 'user'.*--user"),
        ("a,item,b\n", {"item": "itme"}, "nearest is 'item'"),  # nor are other columns clear
        ("user,item,tag\n", {}, "no tracks yet"),
        (None, {}, "There is no file"),
    ],
)
def test_tables_that_cannot_be_used(library, tmp_path, text, options, message):
    path = tmp_path / "none.csv" if text is None else table(tmp_path, text + "ann,000,rock\n")
    with pytest.raises((DataError, LibraryError), match=message):
        import_table(library, path, **options)
