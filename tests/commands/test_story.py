"""A story in the terminal, from an empty home: messy genres, moods of a table, folders, copies."""

import csv
import hashlib
import json
import shutil

import heard_library
import mutagen
import pytest
from command_line import run_main

from harmonium.library import Library
from harmonium.library.filetags import apply_change, plan_write
from harmonium.library.learning import fitting

N = 36
GENRES = {True: ("Rock", "rock", "ROCK"), False: ("Jazz", "jazz", "Jazz ")}
VAGUE = ("Other", "Unknown", "12")


@pytest.fixture
def music(tmp_path, data_home, monkeypatch):
    """A folder of files with messy genres; a song is rock if it has drums."""
    for name, value in {"HOME": tmp_path, "HARMONIUM_CACHE": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(fitting, "usual_epochs", lambda *_: 10)
    monkeypatch.setattr(heard_library, "N_TRACKS", N)
    folder = tmp_path / "Music"
    paths, truth = heard_library.write_music(folder)
    for k, (path, tags) in enumerate(zip(paths, truth, strict=True)):
        words = VAGUE if k % 6 == 5 else GENRES[bool(tags[2])]
        apply_change(plan_write(path, [words[k // 6 % 3]]))
    (folder / "Downloads").mkdir()
    shutil.copy(paths[0], folder / "Downloads" / "download.flac")
    monkeypatch.chdir(folder)
    with heard_library.trained_quickly(n_hidden=5):
        yield folder


def harmonium(*arguments, code=0):
    done = run_main(*arguments)
    assert done.exit_code == code, f"{arguments}\n{done.stdout}{done.stderr}"
    return done


def digests(folder):
    return {path: hashlib.md5(path.read_bytes()).digest() for path in folder.rglob("*.flac")}


def test_from_a_folder_to_tags_to_the_folder_as_it_was(music, tmp_path):
    assert "tagged" in harmonium("index", "~/Music", "--jobs", "1").stdout
    assert harmonium("tag", "Artist 0", "-n", "3").stdout

    # The genres of the files: words that say nothing are shown, and not learnt.
    shown = harmonium("import", "--from-files")
    assert "Ignored, not a tag" in shown.stderr
    assert "2 tracks: Unknown" in shown.stderr

    # A table: moods survive beside a genre that says nothing; a copy counts for its track.
    moods = ["Rainy" if k % 2 else "Sunny" for k in range(30)]
    rows = [f"Artist {k % 6}/{k:02} Song.flac,Other,{mood}" for k, mood in enumerate(moods)]
    rows[0] = "Downloads/download.flac,Other,Sunny"
    table = tmp_path / "moods.csv"
    table.write_text("\n".join(["path,genre,mood", *rows]))
    assert "matched\t30\nadded\t30\ntracks\t30\ntags\t2" in harmonium("import", table).stdout

    # A folder at once, with a tag of one's own; undone in one step.
    harmonium("say", "Artist 1", "Artist 2/", "concert", "-calm")
    found = json.loads(harmonium("search", "concert", "-p", "0", "-n", "40", "--json").stdout)
    assert sum(hit["source"] == "people" for hit in found) == 12
    assert len(found) > 12  # and the model has learnt it
    harmonium("undo")
    harmonium("say", "Artist 1", "concert")

    harmonium("train")
    with Library.open() as library:
        outputs = library.models.current().outputs
        learnt = {output.name for output in outputs if output.source == "tracks"}
        kinds = library.tags.kinds()
    assert learnt == {"rock", "jazz", "rainy", "sunny", "concert"}
    assert (kinds["rainy"], kinds["rock"]) == ("mood", "genre")
    harmonium("tag")

    # What is found is exported, predicted tracks included.
    export = tmp_path / "rock.csv"
    found = json.loads(harmonium("search", "rock", "-n", "40", "--export", export, "--json").stdout)
    matching = [hit["path"] for hit in found if hit["holds"]]
    with export.open(newline="") as file:
        assert [row["path"] for row in csv.DictReader(file)] == matching != []

    # Each kind goes to its own field, and undo restores every byte.
    before = digests(music)
    harmonium("write", "--dry-run")
    assert digests(music) == before
    harmonium("write", "--yes")
    fields = mutagen.File(music / "Artist 1" / "01 Song.flac")
    assert fields["mood"] == ["Rainy"]
    assert "Rainy" not in fields["genre"]
    assert fields["grouping"] == ["concert"]
    harmonium("undo")
    assert digests(music) == before

    # A renamed tag goes on working; a folder can be forgotten, and comes back.
    harmonium("rename", "rock", "Loud Music")
    assert json.loads(harmonium("search", "rock", "--json").stdout)
    harmonium("forget", "Artist 1", "Artist 2/")
    harmonium("search", "concert", code=1)
    harmonium("undo")
    assert len(json.loads(harmonium("search", "concert", "-p", "1", "--json").stdout)) == 6
