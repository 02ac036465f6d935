"""A format that is added as docs/design.md says can be read, written and undone."""

import pytest
from written_music import say

from harmonium.errors import FileTagError
from harmonium.library.examine import examine
from harmonium.library.filetags import (
    Rules,
    UndoRecord,
    apply_change,
    audio_digest,
    formats,
    plan_write,
    read_tags,
    undo,
)
from harmonium.library.filetags.binary import copy, read_at, size_of
from harmonium.library.filetags.contents import ALL_FIELDS, FileTags
from harmonium.library.filetags.format import Format

MARK = b"NOTE"
SONG = MARK + b"GENRE=Rock\nXYZ=kept\n\n" + bytes(range(256)) * 20


class Note(Format):
    """Lines KEY=value, an empty line, and the sound."""

    name = "Note"

    def detect(self, file):
        return read_at(file, 0, 4) == MARK

    def places(self, version, options):
        return {name: (name.upper(),) for name in ALL_FIELDS}

    def _lines(self, file):
        head, _, sound = read_at(file, 0, size_of(file)).partition(b"\n\n")
        return [line.split("=", 1) for line in head[4:].decode().split("\n") if line], len(sound)

    def read(self, file, options):
        values = {}
        for key, value in self._lines(file)[0]:
            values[key] = (*values.get(key, ()), value)
        return FileTags.of(self, "Note", values)

    def write(self, source, target, edits, options):
        lines, n_sound = self._lines(source)
        lines = [(key, value) for key, value in lines if key not in edits]
        lines += [(key, value) for key, values in edits.items() for value in values]
        text = "".join(f"{key}={value}\n" for key, value in lines)
        target.write(MARK + text.encode() + b"\n")
        copy(source, target, size_of(source) - n_sound, size_of(source))

    def sound(self, file):
        yield read_at(file, size_of(file) - self._lines(file)[1], size_of(file))

    def pictures(self, file):
        return []


@pytest.fixture
def song(tmp_path, monkeypatch):
    """A file of the new format, which is named among the others."""
    known = formats.supported_formats()
    monkeypatch.setattr(formats, "supported_formats", lambda: (Note(), *known))
    path = tmp_path / "song.note"
    path.write_bytes(SONG)
    return path


def test_a_write_round_trips_to_the_byte(song):
    assert read_tags(song).genre == ("Rock",)
    digest = audio_digest(song)
    rules = Rules(fields={"calm": "mood"}, scores=True)
    record = apply_change(plan_write(song, {"jazz": 0.5, "calm": 1.0}, rules))
    tags = read_tags(song)
    assert (tags.genre, tags.mood, tags.scores) == (
        ("Rock", "jazz"),
        ("calm",),
        {"jazz": 0.5, "calm": 1},
    )
    assert b"XYZ=kept" in song.read_bytes()
    assert audio_digest(song) == digest
    undo(song, UndoRecord.from_bytes(record.to_bytes()))
    assert song.read_bytes() == SONG


def test_a_write_by_a_library_round_trips_to_the_byte(song, library):
    library.tracks.put([examine(str(song))])
    say(library, [("ann", "dreamy", 1)])
    assert library.writer.outline().n_files == 1
    assert library.write().paths == [str(song)]
    assert read_tags(song).mood == ("dreamy",)
    library.undo()
    assert song.read_bytes() == SONG


def test_without_its_name_it_is_not_supported(tmp_path):
    path = tmp_path / "song.note"
    path.write_bytes(SONG)
    with pytest.raises(FileTagError, match=r"not supported; supported are .* and MP3"):
        read_tags(path)
