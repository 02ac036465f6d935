"""Files that are whole or missing, locks, users' folders, and the spelling of paths."""

import os
import sys
from types import SimpleNamespace

import pytest

from harmonium import files


def test_the_content_replaces_what_was_there_once_it_is_whole(tmp_path):
    path = tmp_path / "file"
    files.write_atomically(path, b"one")
    with files.atomic_file(path) as file:
        file.write(b"two")
        assert path.read_bytes() == b"one"
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def linked(tmp_path):
    """A file that was written anew through a link to it, and that link."""
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"one")
    path.chmod(0o640)
    link.symlink_to(path)
    files.write_atomically(link, b"two")
    return path, link


def test_the_mode_of_a_file_stays(linked):
    path, _ = linked
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)


def test_a_link_to_a_file_stays(linked):
    path, link = linked
    assert link.is_symlink()
    assert path.read_bytes() == b"two"


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt(), OSError(28, "No space")])
def test_an_error_leaves_only_the_old_file(tmp_path, error):
    old = tmp_path / "file"
    old.write_bytes(b"old")
    with pytest.raises(type(error)) as raised, files.atomic_file(old) as file:  # noqa: PT012
        file.write(b"new")
        raise error
    assert getattr(raised.value, "filename", str(old)) == str(old)  # which an error names
    assert old.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [old]


def test_one_process_at_a_time_has_the_lock(tmp_path):
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert files.try_lock(first.fileno())
        assert not files.try_lock(second.fileno())
    with path.open("w") as third:
        assert files.try_lock(third.fileno())  # closing gave it back


@pytest.mark.parametrize("held", [None, False, True])
def test_windows_own_locks_are_used_there(monkeypatch, tmp_path, held):
    def locking(descriptor, mode, n_bytes):
        assert (mode, n_bytes) == (2, 1)
        if held:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "fcntl", None)
    there = held is not None  # else there are no locks at all, and the file counts as locked
    module = SimpleNamespace(locking=locking, LK_NBLCK=2) if there else None
    monkeypatch.setattr(files, "msvcrt", module)
    with (tmp_path / "lock").open("w") as file:
        assert files.try_lock(file.fileno()) is not bool(held)


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folders_are_the_system_s_or_named_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path))
    assert files.user_cache_folder() == tmp_path
    for name in ("HARMONIUM_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.user_cache_folder() == tmp_path / ".cache" / "harmonium"
    assert files.user_data_folder() == tmp_path / ".local" / "share" / "harmonium"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("music", "here/music"),
        ("../music", "music"),
        ("../here/../music/./x.mp3", "music/x.mp3"),
        ("~/music", "home/music"),
        ("../link", "link"),
        ("../link/x.mp3", "link/x.mp3"),
        ("../link/../x.mp3", "far/x.mp3"),  # as the system goes there
        ("../gone/../x.mp3", "x.mp3"),
    ],
)
def test_a_path_has_one_spelling(monkeypatch, tmp_path, written, meant):
    for name in ("here", "home", "far/away/sub"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert files.absolute_path(written) == str(tmp_path.resolve() / meant)


def test_odd_paths_have_a_spelling_too():
    assert files.absolute_path("/") == files.absolute_path("/..") == "/"
    assert files.absolute_path("/a/~nobody/../b") == "/a/b"
    assert files.absolute_path("/caf\udce9/../nul\0") == "/nul\0"


def test_odd_paths_can_be_read():
    assert files.readable(os.fsdecode(b"caf\xe9.mp3")) == "caf\\xe9.mp3"
    assert files.readable("café.mp3") == "café.mp3"
