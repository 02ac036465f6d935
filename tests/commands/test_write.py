"""`harmonium write` and `harmonium undo` on files of every format, through the command line."""

import json
import shutil
import subprocess
from pathlib import Path

import mutagen
import numpy as np
import pytest
from command_line import run
from tagged_files import decoded, tagged
from written_music import make_songs, predict, say

from harmonium.errors import DataError, LibraryError
from harmonium.library.filetags import audio_digest, read_tags

KINDS = ("mp3", "mp3v23", "flac", "ogg", "opus", "m4a", "wav", "aiff")


@pytest.fixture
def songs(library, tmp_path):
    """Three songs, of which people say "dreamy" and the model "guitar", "mellow" and "hip hop"."""
    paths = make_songs(library, tmp_path / "music", ["mp3", "flac", "m4a"])
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    return paths


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_trip_through_the_command(library, place, tmp_path, kind):
    (song,) = make_songs(library, tmp_path / "music", [kind]).values()
    say(library, [("ann", "dreamy", 1)])
    predict(library)
    before, sound = song.read_bytes(), audio_digest(song)

    done = run("write", song, "-L", place, "-f", "mellow=mood", "-f", "dreamy=mood", "--scores")
    assert done.exit_code == 0, done.output

    assert song.read_bytes() != before
    assert audio_digest(song) == sound
    np.testing.assert_array_equal(decoded(song.read_bytes()), decoded(before))
    tags = read_tags(song)
    assert tags.genre == ("Rock", "Élan vital", "guitar", "hip hop")
    assert tags.mood == ("dreamy", "mellow")
    assert tags.scores == pytest.approx(
        {"dreamy": 1, "guitar": 0.9, "hip hop": 0.6, "mellow": 0.4}, abs=1e-3
    )
    assert _genres_by_mutagen(song, kind)[-2:] == ["guitar", "hip hop"]
    assert "Rock" in _genre_by_ffprobe(song)

    done = run("undo", "-L", place)
    assert done.exit_code == 0, done.output
    assert song.read_bytes() == before


def _genres_by_mutagen(song: Path, kind: str) -> list[str]:
    file = mutagen.File(song)
    if kind == "m4a":
        return file.tags["\xa9gen"]
    if kind in ("flac", "ogg", "opus"):
        return file.tags["genre"]
    values = file.tags["TCON"].text
    return values[0].split("; ") if kind == "mp3v23" and len(values) == 1 else list(values)


def _genre_by_ffprobe(song: Path) -> str:
    ffprobe = shutil.which("ffprobe")
    if ffprobe is None:
        pytest.skip("ffprobe is not installed (Debian: apt-get install ffmpeg)")
    options = ["-v", "error", "-show_entries", "format_tags:stream_tags", "-of", "json"]
    said = subprocess.run([ffprobe, *options, song], capture_output=True, check=True, timeout=120)
    found = json.loads(said.stdout)
    tags = found["format"].get("tags", {}) | found["streams"][0].get("tags", {})
    return {key.lower(): value for key, value in tags.items()}["genre"]


class TestWhat:
    def test_people_and_predictions_by_default(self, songs, place):
        assert run("write", "--yes", "-L", place).exit_code == 0
        for song in songs.values():
            assert read_tags(song).genre[2:] == ("dreamy", "guitar", "hip hop", "mellow")

    def test_only_people(self, songs, place):
        run("write", "--yes", "--people", "-L", place)
        assert read_tags(songs["mp3"]).genre[2:] == ("dreamy",)

    def test_only_predictions(self, songs, place):
        run("write", "--yes", "--predicted", "-L", place)
        assert read_tags(songs["mp3"]).genre[2:] == ("guitar", "hip hop", "mellow")

    def test_what_people_deny_is_not_written(self, songs, library, place):
        say(library, [("bob", "guitar", -1), ("bob", "dreamy", -1)])
        run("write", "--yes", "-L", place)
        assert read_tags(songs["flac"]).genre[2:] == ("hip hop", "mellow")

    def test_tags_that_were_found_in_files_are_in_them_already(self, songs, library, place):
        say(library, [("tags of files", "élan vital!", 1)], kind="file")
        run("write", "--yes", "--people", "-L", place)
        assert read_tags(songs["flac"]).genre == ("Rock", "Élan vital", "dreamy")

    def test_the_spelling_of_the_file_counts(self, songs, library, place):
        file = mutagen.File(songs["flac"])
        file["genre"] = ["Hip-Hop"]
        file.save()
        run("write", songs["flac"], "-L", place)
        assert read_tags(songs["flac"]).genre == ("Hip-Hop", "dreamy", "guitar", "mellow")

    def test_only_what_is_asked_for(self, songs, place):
        assert run("write", songs["mp3"].parent, "#3", "--yes", "-L", place).exit_code == 0
        changed = [kind for kind, path in songs.items() if path.read_bytes() != tagged(kind)]
        assert changed == ["mp3", "m4a"]

    def test_paths_are_found_however_they_are_written(self, songs, place, monkeypatch):
        folder = songs["mp3"].parent
        (folder.parent / "work").mkdir()
        monkeypatch.chdir(folder.parent / "work")
        monkeypatch.setenv("HOME", str(folder.parent))
        for path in (f"../{folder.name}", f"../work/../{folder.name}/", f"~/{folder.name}"):
            done = run("write", path, "--dry-run", "--json", "-L", place)
            assert done.exit_code == 0
            assert str(songs["mp3"]) in done.stdout

    def test_what_a_search_finds(self, songs, library, place):
        with library.begin():
            change = library.changes.begin("say", "one")
            library.opinions.say("ann", 2, ["live"], change=change)
        done = run("write", "--query", "live", "--yes", "-L", place)
        assert done.exit_code == 0, done.output
        changed = [kind for kind, path in songs.items() if path.read_bytes() != tagged(kind)]
        assert changed == ["flac"]

    def test_without_a_model_predictions_alone_cannot_be_written(self, library, place, tmp_path):
        make_songs(library, tmp_path / "music", ["mp3"])
        with pytest.raises(LibraryError, match="no model whose predictions"):
            run("write", "--predicted", "-L", place)

    def test_tracks_that_the_model_has_not_heard(self, songs, library, place, tmp_path):
        make_songs(library, tmp_path / "more", ["ogg"])
        done = run("write", "--yes", "-L", place)
        assert done.stderr.startswith("1 track without predictions")
        assert run("write", "--yes", "--people", "-L", place).stderr == ""

    def test_a_folder_without_tracks(self, songs, place, tmp_path):
        (tmp_path / "empty").mkdir()
        with pytest.raises(LibraryError, match="no track in the folder"):
            run("write", tmp_path / "empty", "-L", place)

    def test_a_file_that_is_gone(self, songs, library, place):
        (track,) = [one for one in library.tracks.all() if one.path.endswith(".flac")]
        library.tracks.set_state([track.id], "missing")
        with pytest.raises(LibraryError, match=r"cannot be used; its file is missing\."):
            run("write", songs["flac"], "-L", place, "--yes")


class TestRules:
    def test_options(self, songs, place):
        options = ["--ignore", "loud", "--ignore", "hip hop", "--alias", "guitar=Gitarre"]
        options += ["--default-field", "grouping", "--mode", "overwrite"]
        assert run("write", "--yes", *options, "-L", place).exit_code == 0
        tags = read_tags(songs["m4a"])
        assert tags.grouping == ("dreamy", "Gitarre", "mellow")
        assert tags.genre == ("Rock", "Élan vital")

    def test_only_a_tag_that_no_track_has(self, songs, place):
        with pytest.raises(DataError, match=r"No track has the tag guitr.*Did you mean guitar"):
            run("write", "-L", place, "--only", "guitr", "-n")

    def test_only(self, songs, place):
        run("write", "--yes", "--only", "guitar", "-L", place)
        assert read_tags(songs["flac"]).genre == ("Rock", "Élan vital", "guitar")

    def test_a_file_of_rules_to_which_options_add(self, songs, place, tmp_path):
        rules = tmp_path / "rules.toml"
        rules.write_text(
            'default_field = "none"\nignore = ["loud"]\n[fields]\nmellow = "mood"\n',
            encoding="utf-8",
        )
        run("write", "--yes", "--rules", rules, "-f", "guitar=grouping", "-L", place)
        tags = read_tags(songs["mp3"])
        assert (tags.mood, tags.grouping) == (("mellow",), ("guitar",))
        assert tags.genre == ("Rock", "Élan vital")

    def test_the_library_remembers_and_forgets(self, songs, library, place):
        run("write", "--dry-run", "-f", "mellow=mood", "--remember", "-L", place)
        assert library.settings.get("write_rules") == {"fields": {"mellow": "mood"}, "aliases": {}}
        run("write", songs["mp3"], "-L", place)
        assert read_tags(songs["mp3"]).mood == ("mellow",)
        run("write", songs["flac"], "--forget", "-L", place)
        assert read_tags(songs["flac"]).mood == ()
        assert library.settings.get("write_rules") == {}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('colour = "red"', "There is no rule 'colour'"),
            ('ignore = "loud"', "'ignore' must be a list of tags"),
            ("[fields]\nmellow = 3", "mellow"),
            ("[fields]\nmellow = 'feeling'", r"must be one of 'genre', 'mood', 'grouping'"),
            ("scores = 1", "'scores'"),
            ("id3_version = true", "'id3_version'"),
            ("mode = ", "are not TOML"),
        ],
    )
    def test_bad_rules(self, songs, place, tmp_path, text, message):
        rules = tmp_path / "rules.toml"
        rules.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            run("write", "--rules", rules, "-L", place)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--field", "mellow"],
                "--field takes TAG=FIELD, or one of genre, .* got 'mellow'",
            ),
            (["--alias", "=x"], "--alias takes TAG=VALUE"),
            (["--mode", "mix"], "'mode' must be one of"),
            (["--id3", "5"], "'id3_version' must be one of"),
            (["--rules", "nowhere.toml"], "cannot be read"),
        ],
    )
    def test_bad_options(self, songs, place, arguments, message):
        with pytest.raises(DataError, match=message):
            run("write", *arguments, "-L", place)


class TestAsking:
    def test_a_dry_run_shows_the_changes_and_writes_nothing(self, songs, place):
        done = run("write", "--dry-run", "--people", "-f", "dreamy=mood", "-L", place)
        assert done.exit_code == 0
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        assert rows == [[str(path), "mood", "", "dreamy"] for path in songs.values()]
        assert all(path.read_bytes() == tagged(kind) for kind, path in songs.items())

    def test_a_dry_run_as_json(self, songs, place):
        found = json.loads(run("write", "-n", "--people", "--json", "-L", place).stdout)
        assert [one["path"] for one in found] == [str(path) for path in songs.values()]
        assert found[0]["fields"][0]["after"] == ["Rock", "Élan vital", "dreamy"]

    def test_a_program_has_to_say_yes(self, songs, place):
        with pytest.raises(DataError, match=r"written to 3 files.*--yes"):
            run("write", "-L", place)
        assert all(path.read_bytes() == tagged(kind) for kind, path in songs.items())

    @pytest.mark.parametrize(("answer", "code", "n_changed"), [("y\n", 0, 3), ("n\n", 2, 0)])
    def test_a_person_is_asked(self, songs, place, monkeypatch, answer, code, n_changed):
        monkeypatch.setattr("harmonium.commands.write.has_reader", lambda: True)
        done = run("write", "-L", place, input=answer)
        assert done.exit_code == code
        assert "Write to 3 files?" in done.stderr
        changed = [kind for kind, path in songs.items() if path.read_bytes() != tagged(kind)]
        assert len(changed) == n_changed

    def test_tags_of_the_built_in_model_are_called_so(self, library, place, tmp_path):
        make_songs(library, tmp_path / "music", ["mp3"])
        predict(library, own=0)
        said = run("write", "--dry-run", "-L", place).stderr
        assert "3 predicted tags from the built-in model." in said
        predict(library)
        assert "built-in" not in run("write", "--dry-run", "-L", place).stderr

    def test_one_file_is_written_without_asking(self, songs, place):
        assert run("write", songs["mp3"], "-L", place).exit_code == 0


class TestResults:
    def test_a_second_write_has_nothing_to_do(self, songs, place):
        run("write", "--yes", "-L", place)
        done = run("write", "--yes", "-L", place)
        assert done.exit_code == 0
        assert done.stdout == "Nothing to write: 3 files up to date.\n"

    def test_some_files_fail(self, songs, place):
        songs["flac"].chmod(0o444)
        songs["m4a"].unlink()
        done = run("write", "--yes", "-L", place)
        assert done.exit_code == 1
        assert "Tags written to 1 file; 2 failed." in done.stdout
        assert "read-only" in done.stderr
        assert str(songs["m4a"]) in done.stderr.replace("\n", "")
        assert read_tags(songs["mp3"]).genre != ("Rock", "Élan vital")
        assert songs["flac"].read_bytes() == tagged("flac")

    def test_all_files_fail(self, songs, library, place):
        for song in songs.values():
            song.unlink()
        before = library.changes.list()
        assert run("write", "--yes", "-L", place).exit_code == 2
        assert library.changes.list() == before

    def test_the_rows_of_the_library_are_up_to_date(self, songs, library, place):
        run("write", "--yes", "-L", place)
        assert _rows(library) == [_now(path) for path in songs.values()]
        assert library.tracks.get(2).file_tags["genre"][-1] == "mellow"
        run("undo", "-L", place)
        assert _rows(library) == [_now(path) for path in songs.values()]
        assert library.tracks.get(2).file_tags["genre"] == ["Rock", "Élan vital"]

    def test_as_json(self, songs, library, place):
        found = json.loads(run("write", "--yes", "--json", "-L", place).stdout)
        assert found["written"] == [str(path) for path in songs.values()]
        assert library.changes.get(found["change"]).summary == "tags written to 3 files"


def _rows(library):
    from sqlalchemy import select

    from harmonium.library.store.schema import track

    with library.connect() as connection:
        query = select(track.c.size, track.c.modified).order_by(track.c.id)
        return [tuple(row) for row in connection.execute(query)]


def _now(path):
    return path.stat().st_size, path.stat().st_mtime_ns
