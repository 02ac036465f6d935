"""Imports: which tracks rows mean, which columns hold what, and what files say of themselves."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from command_line import run
from small_library import fill
from some_tracks import add_tracks, in_force, say

from harmonium.audio import get_extractor
from harmonium.errors import DataError, LibraryError
from harmonium.library import Library
from harmonium.library.imports import (
    choose_columns,
    import_features,
    import_file_tags,
    import_table,
)
from harmonium.library.store.database import stored_path
from harmonium.library.store.schema import track_copy
from harmonium.library.store.tracks import EMPTY, NONE, SEVERAL, Track, TrackFinder

ROLES = dict.fromkeys(("item", "artist", "title", "tag", "user", "value"))
NEEDED = ("item", "tag")


def table(folder, text, name="tags.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# Matching


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
        ([1], ["/music/a/01 One.mp3"]),
        ([2], ["b/01 One.mp3", "./b/01 One.mp3", "b\\01 One.mp3", "music/b/01 One.mp3"]),
        ([2], ["B\\01 one.MP3"]),
        ([3], ["Caf\u00e9.flac", "Caf\u00e9"]),
        ([4], ["#4", "12", "12.ogg"]),
        ([5], ["X"]),
        (NONE, ["#9", "1 One.mp3", "01 on", "4"]),
        (SEVERAL, ["01 One.mp3", "01 One", "01 ONE.MP3"]),
        (EMPTY, [" "]),
    ],
)
def test_tracks_are_found_by_paths_names_and_numbers(matcher, expected, items):
    assert {item: matcher.match(item) for item in items} == dict.fromkeys(items, expected)


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        ([1], [("björk", "JÓGA "), ("", "jóga")]),
        ([2], [("Björk", "Hunter"), ("Björk", "Hunter", "01 One.mp3")]),
        ([4], [(None, "twelve")]),
        (NONE, [("BJÖRK", "joga"), ("Somebody", "Jóga"), ("Björk", "Gone", "gone.mp3")]),
        (SEVERAL, [("", "Hunter")]),
    ],
)
def test_tracks_are_found_by_artist_and_title_where_no_item_tells(matcher, expected, names):
    for artist, title, *item in names:
        assert matcher.match(*item, artist=artist, title=title) == expected


def test_a_row_counts_for_a_track_and_its_copies(library, tmp_path):
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
    assert report.unmatched["reason"].to_list() == [SEVERAL]


# Columns


@pytest.mark.parametrize(
    ("names", "named", "n_columns", "expected"),
    [
        ("user item tag", {}, 0, "user item tag"),
        ("Path Tag", {}, 0, "item=Path tag=Tag"),
        ("listener artist title label", {}, 0, "user=listener artist title tag=label"),
        ("user_id track_id title tag", {}, 0, "user=user_id item=track_id title tag"),
        ("a b c", {"item": "a", "tag": "c"}, 0, "item=a tag=c"),
        ("user path tag", {"item": "tag", "tag": "path"}, 0, "item=tag tag=path user"),
        ("path Mood Styles key", {}, 0, "item=path mood=Mood genre=Styles"),
        ("path tag mood", {}, 0, "item=path tag"),
        ("path genre mood", {"tag": 2}, 0, "item=path mood"),
        ("", {}, 3, "user=0 item=1 tag=2"),
        ("", {}, 2, "item=0 tag=1"),
    ],
)
def test_columns_are_told_from_their_names(names, named, n_columns, expected):
    pairs = (part.partition("=") for part in expected.split())
    wanted = {role: name or role for role, _, name in pairs}
    found = choose_columns(ROLES | named, NEEDED, "t.csv", names.split(), n_columns)
    assert {role: str(column) for role, column in found.items()} == wanted


@pytest.mark.parametrize(
    ("names", "message"),
    [("user tag", "--item"), ("user path", "--tag"), ("", "1 column")],
)
def test_what_is_not_clear_is_asked_for(names, message):
    with pytest.raises(DataError, match=message):
        choose_columns(ROLES, NEEDED, "t.csv", names.split(), 1)


# Tables


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
    assert (change.command, change.summary) == ("import", "tags.csv: 3 tags of 2 tracks")


@pytest.mark.parametrize("replace", [False, True])
def test_an_import_may_replace_what_its_people_said_and_is_undone(
    library, tmp_path, monkeypatch, replace
):
    """The same again adds nothing."""
    monkeypatch.setattr("harmonium.library.store.database.CHUNK", 2)
    add_tracks(library, 3)
    say(library, "ann", 1, ["old", "both"], ["no", "new"])
    say(library, "ann", 3, ["far"])
    said = say(library, "bob", 1, ["old"])
    before = in_force(library)
    path = table(tmp_path, "user,item,tag\nann,000,both\nann,000,new\nann,001,new\n")
    first, second = (import_table(library, path, replace=replace) for _ in range(2))
    imported = dict.fromkeys((("ann", 1, "both"), ("ann", 1, "new"), ("ann", 2, "new")), 1)
    kept = {("bob", 1, "old"): 1} if replace else before
    assert in_force(library) == kept | imported
    assert first.n_added == (5 if replace else 2)  # two are new, three were taken back
    assert (second.n_matched, second.n_added, second.change) == (3, 0, None)
    assert [change.id for change in library.changes.list(2)] == [first.change, said]
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


# Files


def test_tags_of_files(library):
    comments = {"comment": ["nice, mellow; live\nx", "long " * 30], "genre": ["Pop"]}
    files = [{"genre": ["Hip-Hop", "hip hop"], "mood": ["Calm"]}, comments]
    library.tracks.put(Track(f"/{k}", f"{k}", file_tags=tags) for k, tags in enumerate(files))
    library.tracks.put([Track("/c", "3", file_tags={"genre": ["Pop"]}, state="missing")])
    report = import_file_tags(library)
    assert in_force(library) == {("files", 1, "hip hop"): 1, ("files", 2, "pop"): 1}
    assert report.complete
    assert library.opinions.people()[0].kind == "file"
    report = import_file_tags(library, fields=["mood", "comment"], person="my files")
    assert report.left_out == {"more than 100 characters": 1}
    tags = {tag for person, _, tag in in_force(library) if person == "my files"}
    assert tags == {"calm", "nice", "mellow", "live", "x"}
    assert import_file_tags(library).change is None
    with pytest.raises(DataError, match="'fields'"):
        import_file_tags(library, fields=["year"])


def test_what_undoing_brought_back_is_its_owners_tag(library, tmp_path):
    from tagged_files import untagged

    from harmonium.library.filetags import Rules, apply_change, plan_write
    from harmonium.library.index import examine
    from harmonium.library.write import undo_change

    path = tmp_path / "a.flac"
    path.write_bytes(untagged("flac"))
    apply_change(plan_write(path, ["Rock", "Live"]))  # by its owner
    (one,) = library.tracks.put([examine(str(path))])

    def write(tags):
        change = library.changes.begin("write", "x")

        def keep(record):
            library.changes.keep_file(change, one, str(path), record.to_bytes())

        apply_change(plan_write(path, tags, Rules(mode="overwrite")), keep=keep)
        library.tracks.replace(replace(examine(str(path)), id=one))
        return change

    def own_and_imported():
        report = import_file_tags(library, dry_run=True)
        return report.n_own, report.n_matched

    first = write(["rock", "Jazz"])  # "rock" is its owner's, in another spelling
    assert own_and_imported() == (1, 1)
    second = write(["Blues"])
    assert own_and_imported() == (1, 0)
    undone = undo_change(library, second)
    assert own_and_imported() == (1, 1)  # of "Jazz" and "rock"
    undo_change(library, undone.change)
    assert own_and_imported() == (1, 0)  # "Blues" is there again, and still Harmonium's
    undo_change(library, second)
    undo_change(library, first)
    assert library.tracks.get(one).file_tags == {"genre": ["Rock", "Live"]}
    assert own_and_imported() == (0, 2)
    apply_change(plan_write(path, ["Blues"]))  # by its owner, who agrees
    library.tracks.replace(replace(examine(str(path)), id=one))
    assert own_and_imported() == (0, 3)


X = np.arange(12, dtype=np.float32).reshape(4, 3) ** 2
PATHS = ["/music/003.ogg", "001", "#5", "nowhere.ogg"]


def write(path):
    frame = pl.DataFrame({"path": PATHS, **{f"x{j}": X[:, j] for j in range(3)}})
    if path.suffix == ".npz":
        np.savez(path, item=np.array(PATHS), embedding=X)
    elif path.name == "lists.parquet":
        pl.DataFrame({"file": PATHS, "embedding": X.tolist()}).write_parquet(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)
    return path


@pytest.mark.parametrize("name", ["e.csv", "e.parquet", "lists.parquet", "e.npz"])
def test_rows_become_the_features_of_the_tracks_that_they_name(library, tmp_path, name):
    ids, _, _ = fill(library, 20)
    before = library.settings.get("extractor")
    assert import_features(library, write(tmp_path / name), dry_run=True).n_tracks == 3
    assert library.settings.get("extractor") == before
    report = import_features(library, tmp_path / name)
    assert (report.n_rows, report.n_tracks, report.n_features) == (4, 3, 3)
    assert report.unmatched == {"nowhere.ogg": "no such track"}
    key = library.settings.get("extractor")
    assert key.startswith(f"imported:{name.partition('.')[0]}@")
    have, found = library.tracks.features(ids, extractor=key)
    order = [PATHS.index(path) for path in ("001", "/music/003.ogg", "#5")]
    np.testing.assert_array_equal(have, [ids[1], ids[3], 5])
    np.testing.assert_array_equal(found, X[order])
    assert {hit.track.id for hit in library.search(like=5).hits} == {int(ids[1]), int(ids[3])}
    with pytest.raises(DataError, match="were imported"):
        get_extractor(key)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"path": ["/music/001.ogg"], "x": [float("nan")]}, "must be finite numbers; 1 rows"),
        ({"path": ["/music/001.ogg"], "x": ["a"]}, "no columns of numbers"),
        ({"who": ["/music/001.ogg"], "x": [1.0]}, "not clear which column"),
        ({"path": ["elsewhere"], "x": [1.0]}, "No row of e.parquet"),
    ],
)
def test_what_cannot_be_used_is_refused(library, tmp_path, frame, message):
    fill(library, 20)
    before = library.settings.get("extractor")
    pl.DataFrame(frame).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(DataError, match=message):
        import_features(library, tmp_path / "e.parquet")
    assert library.settings.get("extractor") == before


def test_the_command_says_what_was_imported_and_what_was_not(tmp_path):
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        fill(library, 20)
    table = write(tmp_path / "e.parquet")
    done = run("import", "--features", table, "-L", place)
    assert done.exit_code == 1
    assert "The features of 3 tracks are imported:e, 3 numbers each." in done.stdout
    assert done.stderr == "nowhere.ogg: no such track\n"


# Kinds of tags


def test_columns_of_a_wide_table_give_their_tags_a_kind(library, tmp_path):
    add_tracks(library, 3)
    text = "path,Genre,Mood,Instruments\n000.mp3,Krautpop,Bitter; Rainy,\n001.mp3,,Rainy,Theremin\n"
    report = import_table(library, table(tmp_path, text))
    assert report.people == ["me"]
    assert (report.n_rows, report.n_matched, report.left_out) == (2, 2, {})
    assert library.changes.get(report.change).summary == "tags.csv: 5 tags of 2 tracks"
    kinds = {one.tag: one.kind for one in library.tags()}
    moods = dict.fromkeys(("bitter", "rainy"), "mood")
    assert kinds == moods | {"krautpop": "genre", "theremin": "instrument"}
    library.undo()
    assert "krautpop" not in library.kinds()


def test_kinds_come_from_fields_then_words_and_what_was_set_stays(library, tmp_path):
    files = {"genre": ["Krautpop", "Mellow", "Rap"], "mood": ["Rainy", "Pop"]}
    library.tracks.put([Track("/a", "a", file_tags=files)])
    import_file_tags(library, fields=["genre", "mood"])
    library.say(1, "sunday morning", "female vocals")
    kinds = {one.tag: one.kind for one in library.tags()}
    assert (kinds["krautpop"], kinds["mellow"], kinds["rainy"]) == ("genre", "mood", "mood")
    assert (kinds["rap"], kinds["pop"]) == ("genre", "genre")
    assert (kinds["sunday morning"], kinds["female vocals"]) == ("own", "voice")
    change = library.set_kind("Rainy", "krautpop", kind="own")
    import_table(library, table(tmp_path, "path,mood\n/a,rainy\n"))
    assert library.snapshot().kind("rainy") == "own"
    library.rename("rainy", "wet")
    assert library.snapshot().kind("wet") == "own"
    library.undo()
    library.undo(change)
    assert library.snapshot().kind("rainy") == "mood"
    assert library.set_kind("rainy", kind="mood") is None
    with pytest.raises(DataError, match="'kind'"):
        library.set_kind("rainy", kind="feeling")


def test_the_fields_of_kinds_and_tags_are_remembered(library):
    assert library.write_fields()["voice"] == "grouping"
    found = library.write_fields({"mood": "comment", "Rainy": "mood", "era": "none"})
    assert (found["mood"], found["rainy"], found["era"]) == ("comment", "mood", "none")
    assert library.write_fields({"mood": None}) == found | {"mood": "mood"}
    with pytest.raises(DataError, match="fields"):
        library.write_fields({"mood": "title"})


def test_words_that_are_not_tags_are_ignored_and_a_library_may_change_the_list(library, tmp_path):
    genres = ["Other", "(12)", "255", "Jazz", "-", "Misc", "Unknown; Rock"]
    library.tracks.put(
        Track(f"/{k}", f"{k}", file_tags={"genre": [text]}) for k, text in enumerate(genres)
    )
    report = import_file_tags(library)
    assert set(library.opinions.tags()["tag"]) == {"jazz", "rock"}
    assert report.ignored == {"Other": 2, "255": 1, "Unknown": 1, "Misc": 1}
    library.set_kind("other", kind="own")
    library.set_kind("Jazz", kind="none")
    report = import_table(library, table(tmp_path, "path,tag\n/0,Other\n/0,jazz\n/1,1984\n"))
    assert report.ignored == {"jazz": 1, "1984": 1}
    assert in_force(library)["me", 1, "other"] == 1
    done = run("import", "--from-files", "--dry-run", "-L", library.place)
    assert "1 track: Misc" in done.output


def test_the_path_of_a_copy_means_the_track_that_it_is_a_copy_of(library):
    one, two = library.tracks.put([Track("/m/a/x.mp3", "a"), Track("/m/y/c/x.mp3", "b")])
    with library.begin() as connection:
        values = {"track_id": one, "size": 1, "modified": 1} | stored_path("/m/c/x.mp3")
        connection.execute(sa.insert(track_copy).values(values))
        finder = TrackFinder(connection, ["/m"])
    for path in ("/m/a/x.mp3", "/m/c/x.mp3", "c/x.mp3", "/m/c/../c/x.mp3"):
        assert finder.match(path) == [one]
    assert finder.match("y/c/x.mp3") == [two]
