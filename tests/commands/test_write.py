"""`harmonium write` and `undo`: which tags, which files, rules, asking, results, and back."""

import json
from unittest.mock import DEFAULT, patch

import mutagen
import pytest
from command_line import run
from some_tracks import say as say_of
from tagged_files import tagged
from written_music import PREDICTED, change_title, make_songs, predict, say

from harmonium.errors import DataError, LibraryError
from harmonium.library import filetags
from harmonium.library.filetags import apply_change, read_tags
from harmonium.library.filetags import undo as undo_change

OLD = ("Rock", "Élan vital")


@pytest.fixture
def songs(library, tmp_path):
    """Three songs, of which people say "dreamy" and the model "guitar", "mellow" and "hip hop"."""
    paths = make_songs(library, tmp_path / "music", ["mp3", "flac", "m4a"])
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    return paths


@pytest.fixture
def undo(place):
    return lambda *arguments: run("undo", *arguments, "-L", place)


@pytest.fixture
def write(place):
    return lambda *arguments, **options: run("write", *arguments, "-L", place, **options)


def changed(songs):
    return [kind for kind, path in songs.items() if path.read_bytes() != tagged(kind)]


def outlined(library, **rules):
    return library.writer.outline(precision=None, rules=rules)


def field_values(song):
    tags = read_tags(song)
    return tags.genre, tags.mood, tags.grouping


class TestWhat:
    @pytest.mark.parametrize(
        ("options", "added"),
        [
            ([], ("dreamy", "guitar", "hip hop", "mellow")),
            (["--people"], ("dreamy",)),
            (["--predicted"], ("guitar", "hip hop", "mellow")),
            (["--only", "guitar"], ("guitar",)),
        ],
    )
    def test_options_choose_whose_tags_are_written(self, songs, write, options, added):
        assert write("--yes", "-f", "genre", *options).exit_code == 0
        assert {read_tags(song).genre for song in songs.values()} == {(*OLD, *added)}

    def test_only_tracks_named_in_any_way_or_found(self, songs, library, write, place, monkeypatch):
        assert write(songs["mp3"].parent, "#3", "--yes").exit_code == 0
        assert changed(songs) == ["mp3", "m4a"]
        run("undo", "-L", place)
        say_of(library, "ann", 2, ["live"])
        assert write("--query", "live", "--yes").exit_code == 0
        assert changed(songs) == ["flac"]
        monkeypatch.chdir(songs["mp3"].parent)
        assert str(songs["mp3"]) in write("../mp3", "--dry-run", "--json").stdout

    def test_tracks_without_predictions_are_counted(self, songs, library, write, tmp_path):
        make_songs(library, tmp_path / "more", ["ogg"])
        assert write("--yes").stderr.startswith("1 track without predictions")
        assert write("--yes", "--people").stderr == ""

    def test_an_empty_folder_has_no_tracks(self, songs, write, tmp_path):
        (tmp_path / "empty").mkdir()
        with pytest.raises(LibraryError, match="no tracks in the folder"):
            write(tmp_path / "empty")

    def test_a_missing_track_is_refused(self, songs, library, write):
        library.tracks.set_state([2], "missing")
        with pytest.raises(LibraryError, match="missing"):
            write(songs["flac"], "--yes")


class TestRules:
    def test_options(self, songs, write):
        options = ["--ignore", "loud", "--ignore", "hip hop", "--alias", "guitar=Gitarre"]
        options += ["--default-field", "grouping", "--mode", "overwrite", "--scores"]
        assert write("--yes", *options).exit_code == 0
        tags = read_tags(songs["m4a"])
        assert tags.grouping == ("dreamy", "Gitarre", "mellow")
        assert tags.genre == OLD
        assert tags.scores == pytest.approx({"dreamy": 1, "Gitarre": 0.9, "mellow": 0.4}, abs=1e-3)

    def test_a_file_of_rules_to_which_options_add(self, songs, write, tmp_path):
        rules = tmp_path / "rules.toml"
        rules.write_text('default_field = "none"\nignore = ["loud"]\n[fields]\nmellow = "mood"\n')
        write("--yes", "--rules", rules, "-f", "guitar=grouping")
        tags = read_tags(songs["mp3"])
        assert (tags.mood, tags.grouping, tags.genre) == (("mellow",), ("guitar",), OLD)

    @pytest.mark.usefixtures("songs")
    def test_audio_features_need_a_model_of_them(self, write):
        with pytest.raises(DataError, match="audio feature"):
            write("--features", "--dry-run")

    def test_audio_features_are_written_if_asked_for(self, songs, library, write):
        predict(library, PREDICTED | {"energy": 0.734}, more=["energy"])
        assert write("--yes", "--features", "--remember").exit_code == 0
        assert mutagen.File(songs["flac"])["energy"] == ["0.73"]
        assert "energy" not in read_tags(songs["flac"]).genre
        assert write("--dry-run").stdout == ""  # idempotent, and the rule is remembered

    def test_audio_features_are_undone(self, songs, library, write, undo):
        predict(library, PREDICTED | {"energy": 0.734}, more=["energy"])
        assert write("--yes", "--features", "--remember").exit_code == 0
        assert undo().exit_code == 0
        assert changed(songs) == []
        write("--yes", "--people")
        assert "energy" not in mutagen.File(songs["flac"])

    def test_rules_are_remembered_until_forgotten(self, songs, library, write):
        write("--dry-run", "-f", "guitar=mood", "--remember")
        assert library.settings.get("write_rules") == {"fields": {"guitar": "mood"}, "aliases": {}}
        write(songs["mp3"])
        assert "guitar" in read_tags(songs["mp3"]).mood
        write(songs["flac"], "--forget")
        assert "guitar" not in read_tags(songs["flac"]).mood
        assert library.settings.get("write_rules") == {}

    @pytest.mark.parametrize(
        ("arguments", "word"),
        [
            (["--field", "mellow"], "--field .* got 'mellow'"),
            (["--field", "mood", "--default-field", "genre"], "mood and genre"),
            (["--alias", "=x"], "--alias"),
            (["--only", "guitr", "--dry-run"], "guitr.*Did you mean guitar"),
            (["--features", "--people"], "Drop --people"),
            (["--rules", "nowhere.toml"], "cannot be read"),
            ('colour = "red"', "colour"),
            ('ignore = "loud"', "a list of tags"),
            ("[fields]\nmellow = 3", "'fields.mellow'.*grouping"),
            ("scores = 1", "'scores'"),
            ("id3_version = true", "'id3_version'"),
            ("mode = ", "TOML"),
        ],
    )
    def test_bad_rules_are_refused(self, songs, write, tmp_path, arguments, word):
        if isinstance(arguments, str):
            (tmp_path / "rules.toml").write_text(arguments)
            arguments = ["--rules", tmp_path / "rules.toml"]
        with pytest.raises(DataError, match=word):
            write(*arguments)


class TestAsking:
    def test_a_dry_run_lists_changes(self, songs, write):
        done = write("--dry-run", "--people", "-f", "dreamy=mood")
        assert done.exit_code == 0
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert rows == [[str(path), "mood", "", "dreamy"] for path in songs.values()]
        planned = json.loads(write("--dry-run", "--people", "--json").stdout)
        assert [file["path"] for file in planned] == [str(path) for path in songs.values()]
        assert planned[0]["fields"][0]["after"] == ["dreamy"]
        assert not changed(songs)

    def test_several_files_need_a_yes(self, songs, write):
        with pytest.raises(DataError, match=r"3 files.*--yes"):
            write()
        assert not changed(songs)
        assert write(songs["mp3"]).exit_code == 0

    @pytest.mark.parametrize(("answer", "code", "n_changed"), [("y\n", 0, 3), ("n\n", 2, 0)])
    def test_a_person_is_asked(self, songs, write, monkeypatch, answer, code, n_changed):
        monkeypatch.setattr("harmonium.commands.write.has_reader", lambda: True)
        done = write(input=answer)
        assert done.exit_code == code
        assert "Write to 3 files?" in done.stderr
        assert len(changed(songs)) == n_changed

    def test_predictions_need_a_model(self, library, write, tmp_path):
        make_songs(library, tmp_path / "music", ["mp3"])
        with pytest.raises(LibraryError, match="no model"):
            write("--predicted")

    def test_predictions_of_the_built_in_model_are_named(self, library, write, tmp_path):
        make_songs(library, tmp_path / "music", ["mp3"])
        predict(library, own=0)
        assert "3 predicted tags from the built-in model." in write("--dry-run").stderr
        predict(library)
        assert "built-in" not in write("--dry-run").stderr


class TestResults:
    def test_the_result_for_programs(self, songs, library, write):
        result = json.loads(write("--yes", "--json").stdout)
        assert result["written"] == [str(path) for path in songs.values()]
        assert library.changes.get(result["change"]).summary == "12 tags written to 3 files"

    def test_a_second_write_has_nothing_to_do(self, songs, write):
        write("--yes")
        done = write("--yes")
        assert (done.exit_code, done.stdout) == (0, "Nothing to write: 3 files up to date.\n")
        again = json.loads(write("--yes", "--json").stdout)
        assert again == {"change": None, "written": []}

    def test_some_files_fail(self, songs, write):
        songs["flac"].chmod(0o444)
        songs["m4a"].unlink()
        done = write("--yes")
        assert done.exit_code == 1
        assert "4 tags written to 1 file; 2 failed." in done.stdout
        assert "read-only" in done.stderr
        assert str(songs["m4a"]) in done.stderr.replace("\n", "")
        assert read_tags(songs["mp3"]).genre != OLD
        assert songs["flac"].read_bytes() == tagged("flac")

    def test_a_write_to_no_file_is_no_change(self, songs, library, write):
        for path in songs.values():
            path.unlink()
        before = library.changes.list()
        assert write("--yes").exit_code == 2
        assert library.changes.list() == before


# Undoing, and what is said about it.


@pytest.fixture
def written(songs, write):
    assert write("--yes").exit_code == 0
    return songs


def one_line(text):
    return " ".join(text.split())


def test_undo_says_what_it_did(written, library, undo):
    number = library.writer.last_change().id
    done = undo()
    assert f"Change {number} (write: 12 tags written to 3 files) undone" in one_line(done.stdout)
    assert "3 files restored" in done.stdout
    assert f"To redo: harmonium undo {number + 1}" in done.stdout
    with pytest.raises(LibraryError, match="undone already"):
        undo(number)
    assert "3 tags removed" in undo().stdout
    with pytest.raises(LibraryError, match="nothing to undo"):
        undo()
    assert changed(written) == []


def test_an_undo_that_could_do_nothing_is_tried_again(written, library, undo):
    number = library.writer.last_change().id
    for path in written.values():
        path.chmod(0o444)
    for _ in range(2):
        done = undo()
        assert done.exit_code == 2
        assert f"Change {number} (write" in done.stdout
        assert "not undone" in done.stdout
        assert done.stderr.count("read-only") == 3
    first, _, third = (line.split("\t") for line in undo("--list").stdout.splitlines()[:3])
    assert first[3] == f"nothing of change {number} could be undone"
    assert third[4:] in ([], [""])
    for path in written.values():
        path.chmod(0o644)
    assert undo().exit_code == 0
    assert changed(written) == []


def test_a_file_that_was_changed_since_does_not_block_undo(written, library, undo):
    change_title(written["flac"])
    edited, number = written["flac"].read_bytes(), library.writer.last_change().id
    done = undo()
    assert done.exit_code == 1
    assert "it was changed since" in one_line(done.stderr)
    assert "partly undone: 2 files restored" in done.stdout
    assert changed(written) == ["flac"]
    assert written["flac"].read_bytes() == edited
    undoing = library.changes.list(1)[0].id
    listed = undo("--list").stdout.splitlines()
    assert f"change {number} partly undone: " in listed[0]
    assert listed[1].endswith(f"partly undone by {undoing}, 1 left")
    assert library.writer.last_change().id == number - 1
    assert "removed" in undo().stdout
    with pytest.raises(LibraryError, match=f"harmonium undo {number}"):
        undo()
    assert undo(number, "--fields-only").exit_code == 0
    assert library.changes.get(number).undone_by is not None
    tags = read_tags(written["flac"])
    assert (tags.genre, tags.title) == (OLD, "Another title")


def test_what_ctrl_c_stopped_can_be_continued(songs, library, undo, write):
    second = [DEFAULT, KeyboardInterrupt]
    with patch.object(filetags, "apply_change", wraps=apply_change, side_effect=second):
        done = write("--yes")
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Stopped. Each file is either untouched or complete." in done.stderr
    assert changed(songs) == ["mp3"]
    assert write("--yes").exit_code == 0
    with patch.object(filetags, "undo", wraps=undo_change, side_effect=second):
        done = undo()
    assert (done.exit_code, done.stderr) == (130, "Stopped. To continue: harmonium undo 3\n")
    assert len(changed(songs)) == 2
    undoing = library.changes.list(1)[0].id
    assert undo().exit_code == 0  # goes on as the same change
    assert changed(songs) == ["mp3"]
    assert undo(undoing).exit_code == 0  # redone as a whole
    assert changed(songs) == list(songs)
    for _ in range(2):
        assert undo().exit_code == 0
    assert changed(songs) == []


def test_tags_that_a_later_change_touched_stay(songs, library, undo):
    change = say_of(library, "ann", 1, absent=["dreamy"])
    done = undo("1")
    assert done.exit_code == 1
    assert f"Change {change} came later and changed 1 of it again." in done.stderr
    assert "partly undone: 2 tags removed" in done.stdout


def test_the_list_of_changes_for_programs(written, undo):
    rows = [line.split("\t") for line in undo("--list").stdout.splitlines()]
    assert [row[0] for row in rows] == ["2", "1"]
    assert [row[2:4] for row in rows] == [
        ["write", "12 tags written to 3 files"],
        ["say", "3 tags"],
    ]
    undo()
    listed = json.loads(undo("--list", "--json").stdout)
    assert [change["undone_by"] for change in listed] == [None, 3, None]
    assert listed[0]["undoes"] == 2


def test_the_result_of_undo_for_programs(written, undo):
    done = json.loads(undo("--json").stdout)
    assert done == {"undone": 2, "change": 3, "tags": 0, "files": 3, "complete": True}
