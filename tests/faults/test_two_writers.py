"""Two processes that do the same work on one library at once, on SQLite and PostgreSQL."""

import pytest
from places import HELPERS
from processes_in_tests import begin_together, start
from small_library import fill
from some_tracks import add_tracks, in_force, write_table
from tagged_files import untagged

from harmonium.library import Library
from harmonium.library.filetags import read_tags
from harmonium.library.store.tracks import Track
from harmonium.library.write import undo_change

pytestmark = pytest.mark.long

BEGIN = """
import sys
from harmonium.cli import main
sys.stdin.readline()
"""


def both(*lines):
    """Two processes, each with commands of its own, begun at the same moment; what they said."""
    code = [
        BEGIN
        + "\n".join(
            f"sys.argv = ['harmonium', *{[str(part) for part in command]!r}]\n"
            "try:\n    main()\nexcept SystemExit as e:\n    assert (e.code or 0) < 3, e.code"
            for command in commands
        )
        for commands in lines
    ]
    return begin_together([start("-c", one, stdin=-1) for one in code])


def test_the_same_table_is_imported_once_and_what_is_said_meanwhile_is_kept(place, tmp_path):
    with Library.open(place) as library:
        add_tracks(library, 4)
    work = ["import", write_table(tmp_path, 400, 4), "-L", place]
    says = [
        [["say", "/music/000.mp3", f"{who} {k}", "-L", place, "--person", who] for k in range(4)]
        for who in ("ann", "bob")
    ]
    both([work, *says[0]], [*says[1], work])
    with Library.open(place) as library:
        said = in_force(library)
        assert len(said) == 400 + 8
        assert {tag for who, _, tag in said if who == "ann"} == {f"ann {k}" for k in range(4)}
        assert sorted(one.command for one in library.changes.list()) == ["import"] + ["say"] * 8


def test_two_that_write_tags_leave_whole_files_that_can_be_undone(place, tmp_path):
    songs = [tmp_path / f"{i}.flac" for i in range(12)]
    with Library.open(place) as library:
        for i, song in enumerate(songs):
            song.write_bytes(untagged("flac"))
            library.tracks.put([Track(str(song), f"{i:064x}")])
        change = library.changes.begin("say", "x")
        for number in range(1, 13):
            library.opinions.say("ann", number, ["surf rock"], change=change)
    work = ["write", "-L", place, "--yes", "--precision", "0"]
    for _, errors in both([work], [work]):
        refused = [line for line in errors.splitlines() if line]
        assert all("another program" in line or "plan again" in line for line in refused), errors
    assert all(read_tags(song).genre == ("surf rock",) for song in songs)
    with Library.open(place) as library:
        for change in library.changes.list():
            if change.command == "write":
                undo_change(library, change.id)
    assert all(song.read_bytes() == untagged("flac") for song in songs)


def test_two_that_train_store_two_models_and_the_last_is_in_use(tmp_path):
    place = tmp_path / "library.db"
    with Library.open(place) as library:
        fill(library, 40)
        before = in_force(library)
    script = HELPERS / "killed.py"
    begin_together([start(script, "train", place, stdin=-1) for _ in range(2)])
    with Library.open(place) as library:
        models = library.models.list()
        assert len(models) == 2
        assert library.models.current().id in {model.id for model in models}
        assert in_force(library) == before
