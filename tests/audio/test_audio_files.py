"""Which files are found in folders, and in which order."""

import os

import pytest

from harmonium.audio.decoding import find_audio


@pytest.fixture
def folder(tmp_path):
    for name in ("b/2.mp3", "b/10.FLAC", "a/x.wav", "a/notes.txt", "a/cover.jpg", "c.Ogg", "d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(paths, folder):
    return [os.path.relpath(path, folder) for path in find_audio(paths)[0]]


def test_music_by_its_ending_sorted_to_the_bottom_and_named_files_as_they_are(folder):
    assert names([folder], folder) == ["a/x.wav", "b/10.FLAC", "b/2.mp3", "c.Ogg"]
    paths = [folder / "d", folder / "a" / "notes.txt", folder / "not-there.mp3"]
    assert find_audio(paths)[0] == [str(path) for path in paths]
    paths = [folder / "b" / "2.mp3", folder, folder / "b"]  # each file once
    assert names(paths, folder) == ["b/2.mp3", "a/x.wav", "b/10.FLAC", "c.Ogg"]


def test_hidden_files_and_folders_are_left_out(folder):
    for name in ("a/._x.wav", ".trash/old.mp3", "...And Oceans/...intro.mp3"):  # the last is a band
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    files, _, hidden = find_audio([folder])
    assert names([folder], folder)[:2] == ["...And Oceans/...intro.mp3", "a/x.wav"]
    assert len(files) == 5
    assert hidden == [str(folder / ".trash")]
    assert names([folder / ".trash"], folder) == [".trash/old.mp3"]


def test_links_are_followed_but_not_in_circles(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "far.opus").touch()
    (folder / "a" / "up").symlink_to(folder)
    (folder / "a" / "self").symlink_to(folder / "a")
    (folder / "z").symlink_to(elsewhere)
    (folder / "gone.mp3").symlink_to(folder / "nothing")
    expected = ["a/x.wav", "b/10.FLAC", "b/2.mp3", "c.Ogg", "gone.mp3", "z/far.opus"]
    assert names([folder], folder) == expected


def test_names_of_any_kind(tmp_path):
    odd = [os.fsdecode(b"\xff.mp3"), "two\nlines.mp3", "🎵.mp3"]
    for name in odd:
        (tmp_path / name).touch()
    assert set(names([tmp_path], tmp_path)) == set(odd)


def test_deeper_than_python_recurses(tmp_path):
    folders = [str(tmp_path) + "/d" * depth for depth in range(1, 1401)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102
    file = f"{folders[-1]}/x.mp3"
    os.close(os.open(file, os.O_CREAT))
    try:
        assert find_audio([tmp_path])[0] == [file]
    finally:  # Python's own way of removing folders recurses
        os.remove(file)  # noqa: PTH107
        for folder in reversed(folders):
            os.rmdir(folder)  # noqa: PTH106


def test_a_folder_that_cannot_be_listed(folder, monkeypatch):
    real = os.scandir

    def scandir(path):
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names([folder], folder) == ["b/10.FLAC", "b/2.mp3", "c.Ogg"]
    assert find_audio([folder])[1] == {str(folder / "a"): "cannot be listed: Permission denied."}
