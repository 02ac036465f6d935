"""Which files are found in folders, and in which order."""

import os

import pytest

from harmonium.audio.folders import find_audio, list_folders


@pytest.fixture
def folder(tmp_path):
    for name in ("b/2.mp3", "b/10.FLAC", "a/x.wav", "a/notes.txt", "a/cover.jpg", "c.Ogg", "d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(paths, folder):
    return [os.path.relpath(path, folder) for path in find_audio(paths).files]


def test_music_by_its_ending_in_order(folder):
    assert names([folder], folder) == ["a/x.wav", "b/10.FLAC", "b/2.mp3", "c.Ogg"]


def test_named_files_of_any_kind(folder):
    paths = [folder / "d", folder / "a" / "notes.txt", folder / "not-there.mp3"]
    assert find_audio(paths).files == [str(path) for path in paths]


def test_each_file_once(folder):
    paths = [folder / "b" / "2.mp3", folder, folder / "b"]
    assert names(paths, folder) == ["b/2.mp3", "a/x.wav", "b/10.FLAC", "c.Ogg"]


def test_what_is_hidden_is_left_out(folder):
    for name in ("a/._x.wav", ".trash/old.mp3", "...And Oceans/...intro.mp3"):  # the last is a band
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    found = find_audio([folder])
    assert names([folder], folder)[:2] == ["...And Oceans/...intro.mp3", "a/x.wav"]
    assert len(found.files) == 5
    assert found.hidden == [str(folder / ".trash")]
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


def test_deeper_than_python_recurses(tmp_path):
    folders = [str(tmp_path) + "/d" * depth for depth in range(1, 1401)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102
    file = f"{folders[-1]}/x.mp3"
    os.close(os.open(file, os.O_CREAT))
    try:
        assert find_audio([tmp_path]).files == [file]
    finally:  # Python's own way of removing folders recurses
        os.remove(file)  # noqa: PTH107
        for folder in reversed(folders):
            os.rmdir(folder)  # noqa: PTH106


def make_bad_links(folder):
    """Links to themselves, with and without a music file's name, and one to too long a name."""
    for name in ("loop", "loop.mp3", ".loop"):
        (folder / name).symlink_to(folder / name)
    (folder / "long").symlink_to("x" * 300)


def test_a_link_that_cannot_be_followed_is_reported(folder):
    before = find_audio([folder])
    assert before.unreadable == {}
    make_bad_links(folder)
    after = find_audio([folder])
    # reading loop.mp3 says why
    assert sorted(after.files) == sorted([*before.files, str(folder / "loop.mp3")])
    assert after.hidden == before.hidden
    assert list(after.unreadable) == [str(folder / "long"), str(folder / "loop")]
    assert all(reason.startswith("cannot be followed: ") for reason in after.unreadable.values())


def test_a_folder_with_bad_links_is_listed_to_choose_from(folder):
    _, before = list_folders(folder)
    make_bad_links(folder)
    _, after = list_folders(folder)
    assert after == before


def test_a_folder_that_cannot_be_listed(folder, monkeypatch):
    real = os.scandir

    def scandir(path):
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names([folder], folder) == ["b/10.FLAC", "b/2.mp3", "c.Ogg"]
    assert find_audio([folder]).unreadable == {
        str(folder / "a"): "cannot be listed: Permission denied."
    }


def test_names_of_any_kind(tmp_path):
    odd = [os.fsdecode(b"\xff.mp3"), "two\nlines.mp3", "🎵.mp3"]
    for name in odd:
        (tmp_path / name).touch()
    assert set(names([tmp_path], tmp_path)) == set(odd)
