"""The plugin in beets itself, and what people correct there."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import heard_library
import mutagen
import pytest
import sqlalchemy as sa
from command_line import output_of, run_main
from noise_files import write
from places import PROJECT
from small_library import trained
from some_tracks import add_tracks
from tagged_files import name_of, tagged

from harmonium.connect import beets
from harmonium.connect.beets import FIELDS, ItemTagger, TaggedItem, import_from_beets
from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError, NoLibraryError
from harmonium.library import Library
from harmonium.library.filetags import Rules, apply_change, plan_write, read_tags
from harmonium.library.learning import fitting
from harmonium.library.model.tagger import Tagger
from harmonium.library.store.schema import prediction
from harmonium.library.store.tracks import Track
from harmonium.library.writing.wanted import WantedTags

CONFIG = """
plugins: harmonium
directory: {folder}/Sorted
import: {{copy: yes, write: yes, autotag: no, duplicate_action: keep}}
harmonium: {{precision: 0}}
"""
SHOWN = "$title|$genres|$mood|$grouping|$energy|$harmonium"


@pytest.fixture
def home(tmp_path, data_home, monkeypatch):
    """An empty home with settings for beets."""
    places = {"HOME": tmp_path, "HARMONIUM_CACHE": tmp_path / "cache", "BEETSDIR": tmp_path}
    for name, place in {**places, "PYTHONPATH": PROJECT}.items():
        monkeypatch.setenv(name, str(place))
    (tmp_path / "config.yaml").write_text(CONFIG.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def beet(*arguments):
    command = [sys.executable, "-m", "beets", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listed(*query):
    """Title → the fields of the items that beets finds."""
    rows = (line.split("|") for line in beet("ls", "-f", SHOWN, *query).splitlines())
    return {title: dict(zip(SHOWN[1:].split("|$")[1:], row, strict=True)) for title, *row in rows}


def test_moods_make_a_round_trip_through_beets(home, monkeypatch):
    """Import into beets, query by mood and energy, correct one, import that, undo."""
    monkeypatch.setattr(fitting, "usual_epochs", lambda *_: 10)
    monkeypatch.setattr(heard_library, "N_TRACKS", 32)
    paths, truth = heard_library.write_music(home / "Music")
    for path in paths[24:]:
        (home / "New").mkdir(exist_ok=True)
        path.rename(home / "New" / path.name)
    output_of("index", "Music", "--jobs", "1")
    moods = ["Hurried" if drums else "Sleepy" for drums in truth[:24, 2]]
    rows = [f"{path},{mood}" for path, mood in zip(paths, moods, strict=False)]
    (home / "moods.csv").write_text("\n".join(["path,mood", *rows]))
    output_of("import", "moods.csv")
    with heard_library.trained_quickly(n_hidden=5):
        output_of("train")

    # beets asks Harmonium about what it imports, and writes no files that it imports as they are.
    beet("import", "-q", "New")
    found = listed()
    output_of("index", "New", "--jobs", "1")
    with Library.open() as library:
        plan = library.writer.plan("New", precision=None)
        energy = {
            library.track(path).title: library.audio_features(path)["energy"]
            for path in (home / "New").iterdir()
        }
    planned = {one.track.title: one.change.fields for one in plan.files}
    for title, fields in planned.items():
        for one in fields:
            assert found[title][FIELDS[one.field]] == "; ".join(one.after)
    likely = {title for title, one in found.items() if "Sleepy" in one["mood"].split("; ")}
    assert listed("mood:sleepy").keys() == likely
    assert 0 < len(likely) < len(found) == 8
    assert {title: one["energy"] for title, one in found.items()} == {
        title: f"{value:.2f}" for title, value in energy.items()
    }
    middle = sorted(round(value, 2) for value in energy.values())[4]
    loud = {title for title, value in energy.items() if round(value, 2) >= middle}
    assert listed(f"energy:{middle}..").keys() == loud
    first = min(likely)
    (file,) = (home / "Sorted").rglob(f"* {first}.flac")
    assert "mood" not in mutagen.File(file)
    beet("write", f"title:{first}")
    assert "Sleepy" in mutagen.File(file)["mood"]
    assert "energy" not in mutagen.File(file)

    # What somebody removed is not given again.
    beet("modify", "-y", f"title:{first}", "mood=Rainy", "genres=Slowcore; Jazz")
    assert not beet("harmonium", "-f", f"title:{first}")
    assert mutagen.File(file)["mood"] == ["Rainy"]

    # The library learns what was set and removed, and not what it gave itself; another file with
    # the same folders is not taken for it.
    write(home / "Old" / file.relative_to(home / "Sorted"), 1)
    output_of("index", "Sorted", "Old", "--jobs", "1")
    assert "skipped: written by Harmonium" in run_main("import", "--from-beets").stderr
    with Library.open() as library:
        number = library.track(str(file)).id
        said = library.opinions.triples().filter(person="beets")
        assert {(number, "rainy", 1), (number, "slowcore", 1), (number, "sleepy", -1)} <= {
            *said.select("track_id", "tag", "value").rows()
        }
        assert set(said["track_id"]) == {number}
        kinds = library.tags.kinds()
        assert (kinds["rainy"], kinds["slowcore"]) == ("mood", "genre")
    assert "added\t0" in output_of("import", "--from-beets", "library.db")
    output_of("undo")
    with Library.open() as library:
        assert not len(library.opinions.triples().filter(person="beets"))

        # Tracks of the library get what people say about them.
        library.say(str(file), "wistful")
        library.set_kind("wistful", kind="mood")
    assert "wistful" in beet("harmonium", "-fp", f"title:{first}")
    assert listed(f"title:{first}")[first]["mood"] == "Rainy"
    beet("harmonium", "-f", f"title:{first}")
    assert listed(f"title:{first}")[first]["mood"] == "Rainy; wistful"
    assert not beet("harmonium")  # all have been tagged


def test_beets_shares_the_fields_of_files_with_harmonium(home):
    """Whoever writes moods, the other one reads them; and numbers, if beets is to write them."""
    config = home / "config.yaml"
    config.write_text(config.read_text() + "  auto: no\n  write_features: yes\n")
    config.write_text(config.read_text().replace("{precision: 0}", ""))
    kinds, rules = ("mp3", "flac", "ogg", "opus", "m4a"), Rules(default_field="mood", features=True)
    for kind in kinds:
        path = home / "Music" / kind / name_of(kind)
        path.parent.mkdir(parents=True)
        path.write_bytes(tagged(kind))
        apply_change(plan_write(path, ["calm", "slow"], rules, {"energy": 0.25}))
    beet("import", "-q", "--nocopy", "Music")
    lines = beet("ls", "-f", "$format $mood $energy").splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["calm; slow 0.25"] * 5
    beet("modify", "-y", "mood=wild; fast", "energy=0.75", "harmonium=fast")
    paths = [*(home / "Music").rglob("*.*")]
    with Library.open() as library:
        library.tracks.put([Track(str(one), one.name, **read_tags(one).of_track) for one in paths])
        report = library.import_file_tags(["mood"])
        assert (report.n_rows, report.n_own, report.n_tracks) == (10, 5, 5)
        assert set(library.opinions.tags()["tag"]) == {"wild"}
    for path in paths:
        assert read_tags(path).mood == ("wild", "fast")
        change = plan_write(path, [], Rules(mode="overwrite", features=True), {"energy": 0.5})
        assert [one.before for one in change.fields] == [("0.75",)]


def test_tags_fit_to_what_an_item_has_without_a_library(data_home, tmp_path):
    tagger = ItemTagger()
    folder = Path(tagger.library.place).parent
    item = {"genres": ["Hip-Hop"], "grouping": "mine", "harmonium": ["happy", "fast"]}
    item |= {"mood": ["fast"], "comments": "loud"}
    tags = WantedTags(predicted={"hip hop": 0.9, "calm": 0.8, "happy": 0.8, "piano": 0.7})
    tagged = TaggedItem(path="a", tags=tags, features={"energy": 0.731})
    assert tagger.new_values(item, tagged) == {
        **{"mood": ["fast", "calm"], "grouping": "mine; piano", "energy": 0.73},
        "harmonium": ["happy", "fast", "calm", "piano"],
    }
    assert tagger.new_values({}, TaggedItem(path="a")) == {}

    good, bad = write(tmp_path / "a.wav", 1, seconds=3), tmp_path / "b.mp3"
    bad.write_bytes(b"no music")
    found = {one.path: one for one in tagger.tag([str(good), str(bad), "missing.ogg"])}
    plugin = pytest.importorskip("beetsplug.harmonium")
    assert (*found[str(good)].features,) == AUDIO_FEATURES == plugin.FEATURES
    assert found[str(bad)].problem
    assert found["missing.ogg"].problem == "is missing"
    tagger.close()
    assert not folder.exists()
    with pytest.raises(NoLibraryError, match="no library"):
        ItemTagger(str(tmp_path / "other.db"))


def test_what_a_rule_overwrites_was_not_rejected(tmp_path):
    place = str(tmp_path / "library.db")
    with Library.open(place) as library:
        library.settings.set("write_rules", {"mode": "overwrite"})
    tagger = ItemTagger(place)
    item = {"mood": ["fast", "wild"], "harmonium": ["fast", "sad"]}
    tags = WantedTags(predicted={"sad": 0.9, "calm": 0.8})
    new = tagger.new_values(item, TaggedItem(path="a", tags=tags))
    assert new == {"mood": ["calm"], "harmonium": ["sad", "calm"]}
    tagger.close()


def test_a_library_of_beets_that_is_missing_is_refused(library, tmp_path):
    with pytest.raises(DataError, match="unable"):
        import_from_beets(library, tmp_path / "none.db")


def test_a_file_that_is_no_library_of_beets_is_refused(library, tmp_path):
    with pytest.raises(DataError, match="not a"):
        import_from_beets(library, write(tmp_path / "a.wav", 1))


def test_the_library_of_beets_must_be_named_where_beets_is_not_installed(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "beets", None)
    with pytest.raises(DataError, match="Name its library"):
        import_from_beets(library)


@pytest.fixture
def half_tagged(tmp_path):
    """A library in which one of two tracks is tagged."""
    with Library.open(tmp_path / "library.db") as library:
        trained(library, tagged=15)
        with library.begin() as connection:
            connection.execute(sa.delete(prediction))
        model = library.models.current()
        ids, X = library.tracks.features([1], extractor=model.extractor)
        library.predictions.put(model.id, ids, Tagger(model).probabilities(X))
        paths = [library.tracks.get(number).path for number in (1, 2)]
    return tmp_path / "library.db", paths


def test_a_library_that_another_program_is_writing_to_is_read(half_tagged, monkeypatch):
    """New tracks wait for the next time."""
    place, paths = half_tagged
    monkeypatch.setattr(beets.Library, "open", partial(Library.open, wait=0.1))
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        tagger = ItemTagger(str(place), precision=0)
        items = {item.path: item for item in tagger.tag(paths)}
        tagged, untagged = (items[path] for path in paths)
        assert tagged.tags.predicted
        assert "not tagged yet" in untagged.problem
        assert "Another program" in untagged.problem
        assert tagger.new_values({}, untagged) == {}
        tagger.close()
    finally:
        other.close()
    tagger = ItemTagger(str(place), precision=0)
    assert [item.problem for item in tagger.tag(paths)] == [None, None]
    tagger.close()


def test_a_library_that_was_moved_is_named(tmp_path):
    with pytest.raises(NoLibraryError, match=r"moved\.db"):
        ItemTagger(str(tmp_path / "moved.db"))


@pytest.mark.parametrize(
    ("path", "genres", "mood"),
    [
        (None, "Rock", "calm"),
        (7, "Rock", "calm"),
        (b"/music/000.mp3", 5, 7),
        (b"/music/000.mp3", b"\xff\xfe", 1.5),
        (b"/m\xff\x00.mp3", None, b"calm"),
        (b"/music/\xff.mp3", "Rock", "calm"),
    ],
)
def test_values_of_any_type_in_beets_library(library, tmp_path, path, genres, mood):
    """Its columns have no types that SQLite would check."""
    add_tracks(library, 1)
    library.tracks.put([Track(os.fsdecode(b"/music/\xff.mp3"), "another sound")])
    with closing(sqlite3.connect(tmp_path / "beets.db")) as database:
        database.execute("CREATE TABLE items (id, path, genres, grouping, comments)")
        database.execute("CREATE TABLE item_attributes (key, entity_id, value)")
        database.execute("INSERT INTO items VALUES (1, ?, ?, ?, 2.5)", (path, genres, genres))
        database.execute("INSERT INTO item_attributes VALUES ('mood', 1, ?)", (mood,))
        database.commit()
    report = import_from_beets(library, tmp_path / "beets.db")
    known = (b"/music/000.mp3", b"/music/\xff.mp3")
    assert report.n_matched == (3 if path in known else 0)
