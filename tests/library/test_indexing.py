"""Indexing: what becomes of files that are new, moved, changed, gone, there twice or not music."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import odd_extractors
import pytest
from noise_files import LEVEL, RATE, level, long_ago, write
from some_tracks import a_model, in_force, say
from tagged_files import id3_tag, untagged

from harmonium.audio import extraction
from harmonium.audio.extractors import Extractor, extractor_key, features_of_file
from harmonium.audio.folders import find_audio
from harmonium.errors import LibraryError
from harmonium.library import Library, examine
from harmonium.library import index as index_module
from harmonium.library.filetags import apply_change, plan_write
from harmonium.library.index import index
from harmonium.library.store.schema import EXTRACTOR, FOLDERS


@pytest.fixture
def music(tmp_path):
    """A folder with three tracks."""
    folder = tmp_path / "music"
    for k in range(3):
        write(folder / "album" / f"{k}.flac", k, tags=["Rock", f"tag {k}"])
    return folder


def n_files(report):
    kinds = ("new", "changed", "retagged", "back", "moved", "copies", "forgotten")
    found = (getattr(report, kind) for kind in (*kinds, "unreadable", "still_unreadable"))
    return sum(map(len, found)) + report.unchanged


@pytest.fixture
def run(library):
    """Indexes into the library with a quick extractor, in this process."""

    def run(*paths, **options):
        report = index(library, paths, **{"extractor": LEVEL, "engine": "serial", **options})
        places = paths or library.settings.get(FOLDERS)
        there, _, _ = find_audio(place for place in places if os.path.lexists(place))
        assert n_files(report) == len(there)  # each is counted once
        return report

    return run


@pytest.fixture
def never_read(monkeypatch):
    """From when it is called on, reading or hearing a file fails the test."""

    def start(*, read=True, heard=True):
        def refuse(*_, **__):
            raise AssertionError("a file was read")

        if read:
            monkeypatch.setattr(examine, "examine", refuse)
        if heard:
            monkeypatch.setattr(index_module, "iterate_files", refuse)

    return start


def track_at(library, path):
    return library.tracks.find(str(path))


def features(library, track):
    return library.tracks.features([track.id], extractor=extractor_key(LEVEL))[1]


def test_new_files_become_tracks(library, run, music):
    report = run(music)
    paths = [str(music / "album" / f"{k}.flac") for k in range(3)]
    assert report.new == paths
    assert (report.extracted, report.complete) == (3, True)
    assert [track.path for track in library.tracks.all()] == paths
    track = track_at(library, paths[1])
    assert track.file_tags == {"genre": ["Rock", "tag 1"]}
    assert track.duration == pytest.approx(0.1)
    np.testing.assert_array_equal(features(library, track)[0], features_of_file(paths[1], LEVEL))
    assert library.settings.get(FOLDERS) == [str(music)]
    assert library.settings.get(EXTRACTOR) == extractor_key(LEVEL)


def test_the_first_tracks_have_tags_before_the_last_are_read(library, music, monkeypatch):
    monkeypatch.setattr(index_module, "_STORED_SECONDS", 0)
    events = []

    def tag_new():
        with library.learner.watching():
            events.append("tag")
            return 1

    monkeypatch.setattr(library, "tag_new", tag_new)
    monkeypatch.setattr(library.learner, "learn", lambda: events.append("learn"))
    report = library.index(music, extractor=LEVEL, engine="serial", cache=False)
    assert report.tagged == events.count("tag") > 1
    assert events.index("learn") == len(events) - 1  # what answers teach comes in the end


def swap(a, b):
    spare = a.with_name("spare")
    a.rename(spare)
    b.rename(a)
    spare.rename(b)


def replace_renamed(a, _):
    a.rename(a.with_name("z.flac"))
    write(a, 70)


def copy_over(a, b):
    shutil.copyfile(a, b)
    long_ago(b, 500)


def retag(a, _):
    apply_change(plan_write(a, ["Jazz"]))
    long_ago(a, 5)


def copy_to_folder(a, _):
    (a.parent / "z").mkdir()
    shutil.copy2(a, a.parent / "z" / "0.flac")


@pytest.mark.parametrize(
    ("act", "expected", "tracks"),
    [
        (lambda a, b: None, {}, "0 1 2"),
        (lambda a, b: long_ago(a, 5), {}, "0 1 2"),
        (retag, {"retagged": ["0"]}, "0 1 2"),
        (lambda a, b: write(a, 50), {"changed": ["0"]}, "0 1 2"),
        (lambda a, b: a.unlink(), {"missing": ["0"]}, "- 1 2"),
        (lambda a, b: a.rename(a.with_name("z.flac")), {"moved": [("0", "z")]}, "z 1 2"),
        (swap, {"moved": [("0", "1"), ("1", "0")]}, "1 0 2"),
        (replace_renamed, {"moved": [("0", "z")], "new": ["0"]}, "z 1 2 0"),
        (lambda a, b: a.replace(b), {"moved": [("0", "1")], "missing": ["1"]}, "1 - 2"),
        (copy_over, {"copies": [("1", "0")], "missing": ["1"]}, "0 - 2"),
        (copy_to_folder, {"copies": [("z/0", "0")]}, "0 1 2"),
    ],
    ids=(
        *("nothing", "touched", "tagged", "another sound", "gone", "moved", "swapped"),
        *("renamed and replaced", "moved over", "copied over", "copied"),
    ),
)
def test_what_becomes_of_tracks_whose_files_change(
    library, run, music, never_read, act, expected, tracks
):
    run(music)
    album = music / "album"
    for number in (1, 2, 3):
        say(library, "ann", number, ["mine"])
    model = library.models.add(a_model(1))
    library.predictions.put(model, [1, 2, 3], [[0.5]] * 3)
    sounds = [library.tracks.get(number).sound for number in (1, 2, 3)]
    act(album / "0.flac", album / "1.flac")
    if not {"changed", "new"} & expected.keys():
        never_read(read=False)
    report = run(music)

    def short(path):
        return str(Path(path).relative_to(album).with_suffix(""))

    found = {
        name: [short(one) if isinstance(one, str) else tuple(map(short, one)) for one in paths]
        for name, paths in vars(report).items()
        if paths and isinstance(paths, list)
    }
    assert {name: sorted(paths) for name, paths in found.items()} == expected
    present = {one.id: short(one.path) for one in library.tracks.all()}
    assert {number: path for number, path in enumerate(tracks.split(), 1) if path != "-"} == present
    have, X = library.tracks.features([*present], extractor=extractor_key(LEVEL))
    assert have.tolist() == [*present]
    heard = [features_of_file(album / f"{path}.flac", LEVEL) for path in present.values()]
    np.testing.assert_array_equal(X, heard)
    same = [1, 2, 3][len(expected.get("changed", ())) :]  # what was predicted of them is kept
    assert library.predictions.columns(model, [0])[0].tolist() == same
    assert [n for n in (1, 2, 3) if library.tracks.get(n).sound == sounds[n - 1]] == same
    assert in_force(library) == {("ann", number, "mine"): 1 for number in (1, 2, 3)}
    never_read()
    again = run()  # the folders of before
    assert again.unchanged + len(again.copies) == n_files(again)
    assert again.missing == []  # said once


@pytest.mark.parametrize("dated", [False, True], ids=["the same", "with another date"])
def test_a_file_that_is_gone_is_missing_until_it_is_back(
    library, run, music, never_read, tmp_path, dated
):
    run(music)
    path = music / "album" / "2.flac"
    path.rename(tmp_path / "elsewhere.flac")
    assert run(music).missing == [str(path)]
    assert library.tracks.get(3).state == "missing"
    if dated:
        long_ago(tmp_path / "elsewhere.flac", 99)
    (tmp_path / "elsewhere.flac").rename(path)
    never_read(read=not dated)
    report = run(music)
    assert (report.back, report.unchanged) == ([str(path)], 2)
    assert library.tracks.get(3).state == "present"
    assert library.tracks.count() == 3


def test_a_copy_takes_the_place_of_its_original_or_is_forgotten(library, run, music):
    original, copy = music / "album" / "0.flac", music / "z" / "copy.flac"
    copy.parent.mkdir()
    shutil.copy2(original, copy)
    run(music)
    original.unlink()
    report = run(music)
    assert report.moved == [(str(original), str(copy))]
    assert (report.missing, report.copies) == ([], [])
    assert track_at(library, copy).id == 1
    shutil.copy2(copy, original)
    assert run(music).copies == [(str(original), str(copy))]
    original.unlink()
    report = run(music)
    assert (report.copies, report.missing) == ([], [])
    write(original, 60)
    assert run(music).new == [str(original)]
    write(copy, 61)  # another sound under the name of a track that has a copy
    shutil.copy2(track_at(library, original).path, music / "z" / "other.flac")
    run(music)
    write(original, 62)
    report = run(music)
    assert report.moved == [(str(original), str(music / "z" / "other.flac"))]
    assert report.new == [str(original)]


def test_a_copy_that_gets_another_sound_is_a_track_of_its_own(library, run, music):
    copy = music / "copy.flac"
    shutil.copy2(music / "album" / "0.flac", copy)
    run(music)
    assert library.tracks.copies([1]) == {1: [str(copy)]}
    write(copy, 60)
    assert run(music).new == [str(copy)]
    assert library.tracks.copies([1]) == {}
    library.tracks.put_copy(replace(track_at(library, copy), id=1))  # as version 1.0.0 left it
    assert run(music).unchanged == 4
    assert library.tracks.copies([1]) == {}


def test_what_is_no_music_is_unreadable_until_it_is(library, run, music, never_read, monkeypatch):
    bad = music / "bad.mp3"
    bad.write_bytes(b"nonsense" * 50)
    long_ago(bad)
    report = run(music)
    assert list(report.unreadable) == [str(bad)]
    assert "cannot be decoded" in report.unreadable[str(bad)]
    assert (len(report.new), report.complete) == (3, False)
    assert track_at(library, bad).state == "unreadable"
    with monkeypatch.context() as patch:
        patch.setattr(index_module, "iterate_files", None)
        again = run(music)
    assert again.still_unreadable == report.unreadable  # remembered, and no news
    assert again.complete
    assert not again.unreadable
    assert run(music, retry=True).unreadable == report.unreadable
    write(bad.with_suffix(".flac"), 80).rename(bad)
    report = run(music)
    assert report.complete
    assert track_at(library, bad).state == "present"
    assert len(features(library, track_at(library, bad))) == 1


def test_what_cannot_be_opened_is_tried_each_time(library, run, music):
    link = music / "link.flac"
    link.symlink_to(music / "nowhere.flac")
    os.mkfifo(music / "pipe.mp3")
    report = run(music)
    assert "No such file" in report.unreadable.pop(str(link))
    assert report.unreadable == {str(music / "pipe.mp3"): "cannot be read: it is not a file."}
    assert len(run(music).still_unreadable) == 2
    write(music.parent / "outside.flac", 81)
    link.unlink()
    link.symlink_to(music.parent / "outside.flac")
    report = run(music)
    assert report.new == [str(link)]
    assert track_at(library, link).state == "present"


def test_a_file_whose_worker_was_killed_is_tried_again_next_time(library, run, music, monkeypatch):
    options = {"extractor": odd_extractors.extractor(odd_extractors.be_killed)}
    monkeypatch.setenv("ODD_KILLED", "1")
    report = run(music / "album" / "0.flac", engine="processes", jobs=1, **options)
    (reason,) = report.unreadable.values()
    assert "not read to its end" in reason
    assert "SIGKILL" in reason
    monkeypatch.delenv("ODD_KILLED")
    report = run(music / "album" / "0.flac", **options)
    assert (report.complete, report.still_unreadable, report.extracted) == (True, {}, 1)
    assert track_at(library, music / "album" / "0.flac").state == "present"


def test_tags_that_would_hang_their_reader_are_passed_over(run, music):
    """Mutagen goes on behind what is no frame, and compares what is left of a text with itself."""
    bomb = b"TCON" + bytes((0x02, 0x31, 0x2D, 0x01, 0, 0, 3)) + bytes(5_000_000)
    tag = id3_tag(4, b"Txxx" + bytes((0, 0, 0, 1, 0, 0, 0)) + bomb)
    (music / "bad.mp3").write_bytes(tag + untagged("mp3"))
    assert len(run(music).new) == 4


def test_formats_whose_tags_are_not_known_go_without(library, run, tmp_path):
    path = write(tmp_path / "music" / "a.au", 3)
    assert run(tmp_path / "music").complete
    track = track_at(library, path)
    assert (track.title, track.file_tags) == (None, {})
    path.rename(path.with_name("b.au"))
    assert len(run(tmp_path / "music").moved) == 1


def test_another_extractor_computes_all_anew(library, run, music):
    run(music)
    other = Extractor("level", level, ("mean", "peak"), rate=RATE, seconds=0.05)
    assert extractor_key(other) != extractor_key(LEVEL)
    report = run(music, extractor=other)
    assert (report.extracted, report.unchanged) == (3, 3)
    assert library.settings.get(EXTRACTOR) == extractor_key(other)

    def deaf(samples, rate):
        raise ValueError("no")

    report = run(music, extractor=Extractor("deaf", deaf, ("x",), rate=RATE, seconds=1))
    assert (report.unchanged, len(report.unreadable)) == (0, 3)


def test_another_extractor_keeps_what_there_was(library, run, music):
    run(music)
    other = Extractor("level", level, ("mean", "peak"), rate=RATE, seconds=0.05)
    run(music, extractor=other)
    ids = library.tracks.ids()
    for key in (extractor_key(LEVEL), extractor_key(other)):
        assert len(library.tracks.features(ids, extractor=key)[0]) == 3


def test_only_what_is_named_or_there_says_anything_of_its_tracks(library, run, music, tmp_path):
    other = write(tmp_path / "other" / "x.flac", 9)
    run(music, other.parent)
    other.unlink()
    assert run(music).missing == []
    assert run(other.parent).missing == [str(other)]
    report = run(music / "album" / "0.flac")  # a single file
    assert (report.unchanged, report.missing) == (1, [])
    library.settings.set(FOLDERS, [str(music)])
    music.rename(tmp_path / "unmounted")
    report = run()
    assert (report.missing, report.complete) == ([], False)
    assert list(report.unlisted) == [str(music)]
    assert library.tracks.count("present") == 3
    report = run(music)  # unless it is named
    assert len(report.missing) == 3
    assert library.settings.get(FOLDERS) == []
    with pytest.raises(LibraryError, match="Name a folder"):
        run()


def test_a_folder_that_does_not_exist_is_refused(run, tmp_path):
    with pytest.raises(LibraryError, match=r"no file or folder .*x"):
        run(tmp_path / "x")


def test_a_link_that_cannot_be_followed_does_not_end_the_run(library, run, music):
    (music / "loop").symlink_to(music / "loop")
    (music / "song.flac").symlink_to(music / "song.flac")
    report = run(music)
    assert len(report.new) == 3
    assert list(report.unlisted) == [str(music / "loop")]
    assert list(report.unreadable) == [str(music / "song.flac")]
    assert not report.complete


def test_a_path_that_is_too_long_for_the_system_is_unreadable_but_not_missing(run, tmp_path):
    music = tmp_path / "music"
    folder = music
    while len(os.fsencode(folder)) < 3900:
        folder /= "x" * 150
    folder.mkdir(parents=True)
    name = "y" * 200 + ".flac"
    source = write(tmp_path / "source.flac", 1)
    descriptor = os.open(folder, os.O_RDONLY)
    os.link(source, name, dst_dir_fd=descriptor)
    os.close(descriptor)
    report = run(music)
    assert list(report.unreadable) == [f"{folder}/{name}"]
    for _ in range(2):
        report = run(music)
        assert list(report.still_unreadable) == [f"{folder}/{name}"]
        assert report.missing == []


def test_a_run_that_is_interrupted_goes_on(library, run, music, monkeypatch):
    monkeypatch.setattr(examine, "READ_TOGETHER", 1)

    def stop(done, total):
        assert total == 3
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(music, progress=stop)
    kept = len(library.tracks.features(library.tracks.ids(), extractor=extractor_key(LEVEL))[0])
    assert kept == 2
    assert run(music).extracted == 1


def test_two_runs_at_once_make_each_track_once(library, run, music, monkeypatch):
    real = index_module._Run.begin

    def begin(self, *arguments, **options):
        """The first knows of no track yet when the second is done."""
        monkeypatch.setattr(index_module._Run, "begin", real)
        assert len(run(music).new) == 3
        return real(self, *arguments, **options)

    monkeypatch.setattr(index_module._Run, "begin", begin)
    assert run(music).complete
    assert library.tracks.count() == 3
    ids = library.tracks.ids()
    assert len(library.tracks.features(ids, extractor=extractor_key(LEVEL))[0]) == 3


def test_a_file_is_read_for_one_digest_only(library, run, music, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "file_digest", None)
    assert run(music, cache=tmp_path / "cache").extracted == 3
    (music / "album").rename(music / "record")
    with Library.open(tmp_path / "other.db") as other:  # finds the features by their sound
        report = index(other, [music], extractor=LEVEL, engine="serial", cache=tmp_path / "cache")
    assert (report.extracted, report.cached) == (3, 3)


def test_tracks_are_stored_while_others_are_still_read(library, run, music, monkeypatch):
    monkeypatch.setattr(index_module, "_STORED_SECONDS", 0)
    key, done, had_features = extractor_key(LEVEL), [0], []

    def stored():
        have = library.tracks.with_features(library.tracks.ids(), extractor=key)
        had_features.append((done[-1], len(have)))

    run(music, stored=stored, progress=lambda n, _: done.append(n))
    assert had_features[0] == (0, 1)  # then it is due again after a while


@pytest.fixture
def copied(run, tmp_path):
    """Two paths with the same sound."""
    folder = tmp_path / "music"
    first = write(folder / "Downloads" / "copy of a song.flac", 1)  # the first in the alphabet
    second = write(folder / "Zappa" / "song.flac", 1)
    run(folder)
    return first, second


def test_every_path_names_the_track(library, copied):
    first, second = copied
    assert library.tracks.count() == 1
    for name in (first, second, "Zappa/song.flac", "song", "copy of a song.flac"):
        assert library.track(str(name)).id == 1
    assert library.tracks.find(str(second)).id == 1


def test_a_copy_is_new_once(run, copied):
    """It is counted in every run, and listed where it is new."""
    first, second = copied
    report = run(first.parent.parent)
    assert len(report.copies) == 1
    assert report.known_copies == {str(second)}
    other = write(first.with_name("another.flac"), 1)
    report = run()
    new = {path for path, _ in report.copies} - report.known_copies
    assert new == {str(other)}
