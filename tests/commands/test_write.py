"""`harmonium write` and `undo`: which tags, which files, rules, asking, results, and back."""

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from unittest.mock import DEFAULT, patch

import mutagen
import pytest
from command_line import run
from noise_files import write as write_noise
from processes_in_tests import reports_of_killed
from some_tracks import say as say_of
from sqlalchemy import select
from sqlalchemy.engine.default import DefaultExecutionContext
from tagged_files import tagged
from written_music import PREDICTED, make_songs, predict, say

from harmonium.data.tag_names import AUDIO_FEATURES
from harmonium.errors import DataError, LibraryError
from harmonium.library import Library
from harmonium.library import write as writing
from harmonium.library.answers import keep_said
from harmonium.library.filetags import MODES, apply_change, audio_digest, read_tags
from harmonium.library.filetags import undo as undo_change
from harmonium.library.index import index
from harmonium.library.store.schema import track
from harmonium.library.store.tracks import Track
from harmonium.library.write import last_change

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
    return library.outline_write(precision=None, rules=rules)


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
    def test_people_and_predictions(self, songs, write, options, added):
        assert write("--yes", "-f", "genre", *options).exit_code == 0
        assert {read_tags(song).genre for song in songs.values()} == {(*OLD, *added)}

    def test_each_kind_of_tags_goes_to_a_field_of_its_own(self, songs, library, write, place):
        say(library, [("ann", "sunday morning", 1)])
        write(songs["mp3"])
        assert field_values(songs["mp3"]) == (
            (*OLD, "hip hop"),
            ("dreamy", "mellow"),
            ("sunday morning", "guitar"),
        )
        run("kind", "sunday morning", "guitar", "mood", "-L", place)
        write(songs["flac"], "-f", "mood=comment", "-f", "genre=none")
        assert field_values(songs["flac"]) == (OLD, (), ())
        assert "dreamy; sunday morning; guitar; mellow" in read_tags(songs["flac"]).comment[-1]

    def test_what_people_reject_and_what_files_have_is_not_written(self, songs, library, write):
        say(library, [("bob", "guitar", -1), ("bob", "dreamy", -1)])
        say(library, [("tags of files", "élan vital!", 1)], kind="file")
        write("--yes")
        assert field_values(songs["flac"]) == ((*OLD, "hip hop"), ("mellow",), ())

    def test_a_tag_that_a_file_has_under_another_name_is_not_written(self, songs, library, write):
        more = {"rock/pop": 0.9, "jazz/funk": 0.9}
        predict(library, PREDICTED | more, more=[*more], thresholds=[0.5, 0.5])
        tags = [one.tag for one in outlined(library).tags]
        assert ("rock/pop" in tags, "jazz/funk" in tags) == (False, True)  # they have Rock
        say(library, [("ann", "acid jazz", 1)])
        assert "jazz/funk" not in [one.tag for one in outlined(library).tags]
        say(library, [("ann", "acid jazz", -1)])
        write(songs["flac"], "--predicted", "--only", "rock/pop")
        assert read_tags(songs["flac"]).genre == OLD
        say(library, [("ann", "rap", 1)])
        assert not any(one.tag == "hip hop" for one in outlined(library).tags)
        write("--yes")
        assert read_tags(songs["mp3"]).genre == (*OLD, "rap")
        say(library, [("ann", "hip hop", 1)])  # now they are two tags
        write("--yes")
        assert "hip hop" in read_tags(songs["mp3"]).genre

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        "rules",
        [
            {},
            {"ignore": ["Guitar"], "scores": True},
            {"whitelist": ["guitar", "dreamy"], "aliases": {"dreamy": "Guitar"}},
            {"fields": {"mood": "none", "genre": "mood"}, "aliases": {"Hip Hop": "Rock"}},
            {"default_field": "comment", "aliases": {"Guitar": "Gitarre"}},
            {"features": True},
        ],
    )
    def test_the_outline_adds_up_to_what_is_written(self, songs, library, rules, mode):
        rules = {"mode": mode, **rules}
        for number, genres in ((1, ["Unknown"]), (2, ["Other", "Hip-Hop; Guitar"]), (3, [])):
            one = library.tracks.get(number)
            file = mutagen.File(one.path, easy=True)
            file["genre"] = genres
            file.save()
            library.tracks.replace(replace(one, **read_tags(one.path).of_track))
        copy = shutil.copy(songs["flac"], songs["flac"].with_name("copy.flac"))
        library.tracks.put_copy(replace(library.tracks.get(2), path=str(copy)))
        say(library, [("files", "jazz", 1)], kind="file")  # it is not in the files; they had it
        keep_said(library, 1, ["Sunday Morning"])
        predict(library, PREDICTED | dict.fromkeys(AUDIO_FEATURES, 0.5), more=AUDIO_FEATURES)
        library.hide("mellow", learn=False)
        outline = outlined(library, **rules)
        plan = library.plan_write(precision=None, rules=rules)
        assert outline.tracks == sorted({one.track.id for one in plan.files})
        assert outline.n_files == len(plan.files)
        added = Counter(one.names[tag] for one in plan.files for tag in one.added)
        assert {one.tag: one.n for one in outline.accepted} == added
        assert sum(one.n - one.n_said for one in outline.accepted) == plan.n_guessed
        wrong = sum(one.expected_wrong for one in outline.accepted)
        assert wrong == pytest.approx(plan.expected_wrong)
        changed = [{field.field for field in one.change.fields} for one in plan.files]
        assert outline.n_features == sum("energy" in fields for fields in changed)
        report = library.write(plan)
        assert report.n_tags == sum(added.values())
        plan = library.plan_write(precision=None, rules=rules)
        left = outlined(library, **rules)
        assert left.tracks == sorted({one.track.id for one in plan.files})
        assert not left.tracks or rules.get("aliases")  # a new name may be another tag's

    def test_a_genre_replaces_a_word_that_is_not_a_tag(self, songs, library, write, undo):
        for path in songs.values():
            file = mutagen.File(path, easy=True)
            file["genre"] = ["Other"] if path == songs["mp3"] else ["Other", "Jazz"]
            file.save()
        before = songs["mp3"].read_bytes()
        write("--yes")
        assert read_tags(songs["mp3"]).genre == ("hip hop",)
        assert read_tags(songs["flac"]).genre == ("Other", "Jazz", "hip hop")
        undo()
        assert songs["mp3"].read_bytes() == before
        library.set_kind("other", kind="own")
        write("--yes")
        assert read_tags(songs["mp3"]).genre == ("Other", "hip hop")

    def test_only_tracks_named_in_any_way_or_found(self, songs, library, write, place, monkeypatch):
        assert write(songs["mp3"].parent, "#3", "--yes").exit_code == 0
        assert changed(songs) == ["mp3", "m4a"]
        run("undo", "-L", place)
        say_of(library, "ann", 2, ["live"])
        assert write("--query", "live", "--yes").exit_code == 0
        assert changed(songs) == ["flac"]
        monkeypatch.chdir(songs["mp3"].parent)
        assert str(songs["mp3"]) in write("../mp3", "--dry-run", "--json").stdout

    def test_untagged_and_missing_tracks_and_an_empty_folder(self, songs, library, write, tmp_path):
        make_songs(library, tmp_path / "more", ["ogg"])
        assert write("--yes").stderr.startswith("1 track without predictions")
        assert write("--yes", "--people").stderr == ""
        (tmp_path / "empty").mkdir()
        with pytest.raises(LibraryError, match="no tracks in the folder"):
            write(tmp_path / "empty")
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

    def test_audio_features_are_written_if_asked_for_and_undone(self, songs, library, write, undo):
        with pytest.raises(DataError, match="audio feature"):
            write("--features", "--dry-run")
        predict(library, PREDICTED | {"energy": 0.734}, more=["energy"])
        assert write("--yes", "--features", "--remember").exit_code == 0
        assert mutagen.File(songs["flac"])["energy"] == ["0.73"]
        assert "energy" not in read_tags(songs["flac"]).genre
        assert write("--dry-run").stdout == ""  # idempotent, and the rule is remembered
        assert undo().exit_code == 0
        assert changed(songs) == []
        write("--yes", "--people")
        assert "energy" not in mutagen.File(songs["flac"])

    def test_the_library_remembers_and_forgets(self, songs, library, write):
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
    def test_bad_options_and_files_of_rules(self, songs, write, tmp_path, arguments, word):
        if isinstance(arguments, str):
            (tmp_path / "rules.toml").write_text(arguments)
            arguments = ["--rules", tmp_path / "rules.toml"]
        with pytest.raises(DataError, match=word):
            write(*arguments)


class TestAsking:
    def test_a_dry_run_writes_nothing_and_many_files_need_a_yes(self, songs, write):
        done = write("--dry-run", "--people", "-f", "dreamy=mood")
        assert done.exit_code == 0
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert rows == [[str(path), "mood", "", "dreamy"] for path in songs.values()]
        found = json.loads(write("--dry-run", "--people", "--json").stdout)
        assert [one["path"] for one in found] == [str(path) for path in songs.values()]
        assert found[0]["fields"][0]["after"] == ["dreamy"]
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

    def test_predictions_need_a_model_and_name_the_built_in_one(self, library, write, tmp_path):
        make_songs(library, tmp_path / "music", ["mp3"])
        with pytest.raises(LibraryError, match="no model"):
            write("--predicted")
        predict(library, own=0)
        assert "3 predicted tags from the built-in model." in write("--dry-run").stderr
        predict(library)
        assert "built-in" not in write("--dry-run").stderr


class TestResults:
    def test_as_json_and_a_second_write_has_nothing_to_do(self, songs, library, write):
        found = json.loads(write("--yes", "--json").stdout)
        assert found["written"] == [str(path) for path in songs.values()]
        assert library.changes.get(found["change"]).summary == "12 tags written to 3 files"
        done = write("--yes")
        assert (done.exit_code, done.stdout) == (0, "Nothing to write: 3 files up to date.\n")
        again = json.loads(write("--yes", "--json").stdout)
        assert again == {"change": None, "written": []}

    def test_while_it_is_written_the_change_says_how_far(self, songs, library):
        said = []
        plan = library.plan_write(precision=None)
        library.write(plan, progress=lambda *_: said.append(library.changes.list(1)[0].summary))
        assert said == [f"tags written to {n} of 3 files" for n in (1, 2, 3)]

    def test_some_files_fail_and_then_all(self, songs, library, write):
        songs["flac"].chmod(0o444)
        songs["m4a"].unlink()
        done = write("--yes")
        assert done.exit_code == 1
        assert "4 tags written to 1 file; 2 failed." in done.stdout
        assert "read-only" in done.stderr
        assert str(songs["m4a"]) in done.stderr.replace("\n", "")
        assert read_tags(songs["mp3"]).genre != OLD
        assert songs["flac"].read_bytes() == tagged("flac")
        for kind in ("mp3", "flac"):
            songs[kind].unlink()
        before = library.changes.list()
        assert write("--yes").exit_code == 2
        assert library.changes.list() == before

    def test_the_rows_of_the_library_are_up_to_date(self, songs, library, place):
        query = select(track.c.size, track.c.modified).order_by(track.c.id)
        for command, last in ((("write", "--yes"), "hip hop"), (("undo",), OLD[1])):
            run(*command, "-L", place)
            now = [path.stat() for path in songs.values()]
            found = [tuple(row) for row in library.fetch(query)]
            assert found == [(one.st_size, one.st_mtime_ns) for one in now]
            assert library.tracks.get(2).file_tags["genre"][-1] == last


# Undoing changes with their files: changed since, moved, by later changes, in part, again.


@pytest.fixture
def written(songs, write):
    assert write("--yes").exit_code == 0
    return songs


def change_title(path):
    file = mutagen.File(path)
    file["title"] = ["Another title"]
    file.save()


def one_line(text):
    return " ".join(text.split())


def test_step_by_step_back_to_the_beginning_and_forward_again(written, library, undo):
    new = {kind: path.read_bytes() for kind, path in written.items()}
    number = last_change(library).id
    assert "3 files restored" in undo().stdout
    undoing = library.changes.list(1)[0]
    assert undoing.undoes == number
    with pytest.raises(LibraryError, match="undone already"):
        undo(number)
    assert "3 tags removed" in undo().stdout
    assert library.opinions.triples().is_empty()
    with pytest.raises(LibraryError, match="nothing to undo"):
        undo()
    assert changed(written) == []
    assert undo(library.changes.list(1)[0].id).exit_code == 0
    assert set(library.opinions.triples()["tag"]) == {"dreamy"}
    assert undo(undoing.id).exit_code == 0
    assert {kind: path.read_bytes() for kind, path in written.items()} == new
    assert library.changes.get(number).undone_by is None


def test_a_change_that_was_redone_twice_is_undone_only_as_its_files_are(written, library, undo):
    write = library.changes.list(1)[0].id
    first, redo, again = write + 1, write + 2, write + 3
    for number in (write, first, redo, first, again, write + 5):  # the last one undoes nothing
        assert undo(number).exit_code == 0
    assert len(changed(written)) == 3
    assert library.changes.get(write).undone_by is None
    assert undo(write).exit_code == 0
    assert changed(written) == []


def test_a_file_that_was_changed_since_is_left_and_does_not_block(written, library, undo):
    change_title(written["flac"])
    edited, number = written["flac"].read_bytes(), last_change(library).id
    done = undo()
    assert done.exit_code == 1
    assert "it was changed since" in one_line(done.stderr)
    assert "partly undone: 2 files restored" in done.stdout
    assert changed(written) == ["flac"]
    assert written["flac"].read_bytes() == edited
    undoing = library.changes.list(1)[0].id
    listed = undo("--list").stdout.splitlines()
    assert listed[1].endswith(f"partly undone by {undoing}, 1 left")
    assert last_change(library).id == number - 1
    assert "removed" in undo().stdout
    with pytest.raises(LibraryError, match=f"harmonium undo {number}"):
        undo()
    assert undo(number, "--fields-only").exit_code == 0
    assert library.changes.get(number).undone_by is not None
    tags = read_tags(written["flac"])
    assert (tags.genre, tags.title) == (OLD, "Another title")


def test_what_a_file_is_called_does_not_change_the_reason(library, undo, write, tmp_path):
    song = tmp_path / "it was changed since.mp3"
    song.write_bytes(tagged("mp3"))
    library.tracks.put([Track(str(song), sound=audio_digest(song))])
    say(library, [("ann", "dreamy", 1)])
    write("--yes")
    song.chmod(0o444)
    done = undo()
    assert done.exit_code == 2
    assert f"{song.name}: it is read-only" in one_line(done.stderr)


def test_the_last_of_several_writes_is_named_until_it_is_undone(written, library, undo, write):
    numbers = [last_change(library).id]
    for tag in ("rainy", "sunny"):
        say(library, [("bob", tag, 1)])
        write("--yes")
        numbers.append(last_change(library).id)
    done = undo(numbers[0])
    assert done.exit_code == 2
    assert f"change {numbers[-1]} wrote to it later" in one_line(done.stderr)
    for number in numbers[:0:-1]:
        assert undo(number).exit_code == 0
    change_title(written["flac"])
    done = undo(numbers[0])
    assert done.exit_code == 1
    assert "it was changed since" in one_line(done.stderr)
    assert "wrote to it later" not in one_line(done.stderr)
    assert changed(written) == ["flac"]


def test_a_file_that_was_moved_and_one_that_is_gone(written, library, undo, tmp_path):
    new = tmp_path / "elsewhere.flac"
    shutil.move(written["flac"], new)
    library.tracks.put([Track(str(new), sound=library.tracks.resolve("#2").sound)])
    written["mp3"].unlink()
    done = undo()
    assert done.exit_code == 1
    assert "harmonium index" in one_line(done.stderr)
    assert new.read_bytes() == tagged("flac")


def test_ctrl_c_while_writing_and_undoing(songs, library, undo, write):
    second = [DEFAULT, KeyboardInterrupt]
    with patch.object(writing.filetags, "apply_change", wraps=apply_change, side_effect=second):
        done = write("--yes")
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Stopped. Each file is either untouched or complete." in done.stderr
    assert changed(songs) == ["mp3"]
    assert write("--yes").exit_code == 0
    with patch.object(writing.filetags, "undo", wraps=undo_change, side_effect=second):
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


@pytest.mark.parametrize(
    "at", [(Library, "begin"), (DefaultExecutionContext, "_setup_result_proxy")]
)
def test_ctrl_c_in_a_transaction_leaves_no_lock(songs, library, monkeypatch, at):
    """Interrupted where neither contextlib nor SQLAlchemy rolls back."""
    real = getattr(*at)

    def interrupted(self):
        left = real(self)
        if at[0] is Library:
            left.__enter__()
        elif library._connections.writer is None:
            return left
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.write(progress=lambda *_: monkeypatch.setattr(*at, interrupted))
    assert changed(songs) == ["mp3"]
    assert library.changes.list(1)[0].summary.endswith(" written to 1 file")


def test_an_undo_stops_a_write_or_a_review_and_restores_all_of_it(songs, library, place):
    def undo_after_two(done, total):
        if done == 2:
            with Library.open(place) as other:
                reports.append(other.undo(learn=False))

    reports = []
    written = library.write(progress=undo_after_two)
    assert reports[0].complete
    assert (reports[0].files_restored, len(written.paths), len(written.failures)) == (2, 2, 1)
    assert f"change {reports[0].change} undoes it" in next(iter(written.failures.values()))
    assert changed(songs) == []
    assert library.changes.get(written.change).undone_by == reports[0].change
    change = library.answer(1, "rainy", True)
    library.undo(change)
    with pytest.raises(LibraryError, match="undoes it"):
        library.answer(2, "rainy", True, change=change)


def test_tags_that_a_later_change_touched_stay(songs, library, undo):
    change = say_of(library, "ann", 1, absent=["dreamy"])
    done = undo("1")
    assert done.exit_code == 1
    assert f"Change {change} came later and changed 1 of it again." in done.stderr
    assert "partly undone: 2 tags removed" in done.stdout


def test_the_list_and_the_result_for_programs(written, undo):
    rows = [line.split("\t") for line in undo("--list").stdout.splitlines()]
    assert [row[0] for row in rows] == ["2", "1"]
    assert [row[2:4] for row in rows] == [
        ["write", "12 tags written to 3 files"],
        ["say", "3 tags"],
    ]
    done = json.loads(undo("--json").stdout)
    assert done == {"undone": 2, "change": 3, "tags": 0, "files": 3, "complete": True}
    found = json.loads(undo("--list", "--json").stdout)
    assert [one["undone_by"] for one in found] == [None, 3, None]
    assert found[0]["undoes"] == 2


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_killed_at_any_moment_every_file_is_old_or_new_and_undo_restores_it(tmp_path):
    reports = reports_of_killed("write", tmp_path, "2", "12")
    assert [one["killed"] for one in reports] == [False] + [True] * 12
    assert set(reports[0]["songs"]) == {"new"}
    assert len({one["songs"].count("new") for one in reports[1:]}) > 3  # moments all over the write
    for one in reports:
        assert "neither" not in one["songs"]
        assert set(one["undone"]) == set(one["restored"]) == {"old"}
        assert set(one["again"]) == {"new"}
        assert one["left"] == []


@pytest.fixture
def files(library, tmp_path):
    """A copy that comes first in the alphabet, and the album's own file."""
    folder = tmp_path / "music"
    names = ("Downloads/copy of a song.flac", "Zappa/song.flac")
    paths = [folder / name for name in names]
    for path in paths:
        write_noise(path, 1, seconds=1)
    index(library, [folder], extractor="timbre", engine="serial")
    assert library.tracks.count() == 1
    return paths


def test_every_path_names_the_track_and_a_copy_is_new_once(library, place, files):
    """It is counted in every run, and listed where it is new."""
    for name in (*files, "Zappa/song.flac", "song", "copy of a song.flac"):
        assert library.tracks.resolve(str(name)).id == 1
        assert run("say", name, "--unsay", "rock", "-L", place).exit_code == 0
    assert library.tracks.find(str(files[1])).id == 1
    first = index(library, [files[0].parents[1]], extractor="timbre", engine="serial")
    assert len(first.copies) == 1
    assert first.known_copies == {str(files[1])}
    other = write_noise(files[0].with_name("another.flac"), 1, seconds=1)
    report = index(library, extractor="timbre", engine="serial")
    new = {path for path, _ in report.copies} - report.known_copies
    assert new == {str(other)}


def test_tags_are_written_to_each_and_taken_back_from_each_unless_changed(library, place, files):
    before = [path.read_bytes() for path in files]
    run("say", "#1", "rock", "-L", place)
    assert run("write", "--yes", "-L", place).exit_code == 0
    assert [read_tags(path).genre for path in files] == [("rock",)] * 2
    assert library.tracks.get(1).path == str(files[0])
    report = index(library, extractor="timbre", engine="serial")
    assert not report.moved
    assert run("undo", "-L", place).exit_code == 0
    assert [path.read_bytes() for path in files] == before
    run("write", "--yes", "-L", place)
    change_title(files[1])
    edited = files[1].read_bytes()
    done = run("undo", "-L", place)
    assert done.exit_code == 1
    assert f"{files[1]}: it was changed since" in one_line(done.stderr)
    assert [files[0].read_bytes(), files[1].read_bytes()] == [before[0], edited]


@pytest.mark.parametrize("same", [True, False], ids=["the same bytes", "other titles"])
@pytest.mark.parametrize("which", [0, 1], ids=["the track's file", "the copy"])
def test_undo_finds_a_copy_that_was_renamed(library, place, files, same, which):
    if not same:
        change_title(files[0])
    before = [path.read_bytes() for path in files]
    run("say", "#1", "rock", "-L", place)
    assert run("write", "--yes", "-L", place).exit_code == 0
    moved = files[which].with_name("renamed.flac")
    files[which].rename(moved)
    kept = files[1 - which]
    done = run("undo", "-L", place)  # the library does not know yet
    assert done.exit_code == 1
    assert f"{files[which]}: the file is gone" in one_line(done.stderr)
    assert kept.read_bytes() == before[1 - which]
    assert read_tags(moved).genre == ("rock",)
    index(library, extractor="timbre", engine="serial")
    done = run("undo", "2", "-L", place)
    assert (done.exit_code, done.stderr) == (0, "")
    assert moved.read_bytes() == before[which]
    assert kept.read_bytes() == before[1 - which]


def test_undo_finds_a_copy_that_has_another_ones_name(library, place, files):
    before = files[0].read_bytes()
    run("say", "#1", "rock", "-L", place)
    run("write", files[0], "-L", place)
    spare = files[0].with_suffix(".spare")
    for old, new in [(files[0], spare), (files[1], files[0]), (spare, files[1])]:
        old.rename(new)
    assert [read_tags(path).genre for path in files] == [(), ("rock",)]
    index(library, extractor="timbre", engine="serial")
    assert "1 file restored" in run("undo", "-L", place).stdout
    assert [path.read_bytes() for path in files] == [before, before]


def test_two_equal_changes_are_undone_where_the_file_is_now(library, place, files, undo):
    other, spare = files[0].with_stem("other"), files[0].with_suffix(".spare")
    files[1].unlink()
    write_noise(other, 99)
    index(library, [files[0].parent], extractor="timbre", engine="serial")
    before = files[0].read_bytes()
    run("say", "#1", "rock", "-L", place)
    write = library.write(library.plan_write(files[0], predicted=False)).change
    assert undo(write).exit_code == 0
    again = library.write(library.plan_write(files[0], predicted=False)).change
    assert undo(write + 1).exit_code == 0  # redone: the file is so already
    for old, new in [(files[0], spare), (other, files[0]), (spare, other)]:
        old.rename(new)
    index(library, extractor="timbre", engine="serial")
    assert [undo(number).exit_code for number in (again, write)] == [0, 0]
    assert other.read_bytes() == before


def test_tags_are_written_to_the_one_that_is_asked_for(library, place, files):
    run("say", "#1", "rock", "-L", place)
    for name in (files[1], files[1].parent):
        planned = json.loads(run("write", name, "--dry-run", "--json", "-L", place).stdout)
        assert [one["path"] for one in planned] == [str(files[1])]
    assert run("write", files[1], "-L", place).exit_code == 0
    assert [read_tags(path).genre for path in files] == [(), ("rock",)]
    assert run("undo", "-L", place).exit_code == 0
    assert read_tags(files[1]).genre == ()


def test_a_file_that_has_another_sound_since_it_was_indexed_is_left(library, place, files):
    run("say", "#1", "rock", "-L", place)
    write_noise(files[1], 2, seconds=1)
    other = files[1].read_bytes()
    done = run("write", "--yes", "-L", place)
    assert done.exit_code == 1
    assert "another sound" in done.stderr
    assert read_tags(files[0]).genre == ("rock",)
    assert files[1].read_bytes() == other
    library.undo(progress=lambda *_: write_noise(files[0], 3, seconds=1))  # and another meanwhile
    index(library, extractor="timbre", engine="serial")
    sounds = {one.path: one.sound for one in library.tracks.all()}
    assert sounds == {str(path): audio_digest(path) for path in files}
