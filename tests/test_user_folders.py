"""Where the library, fetched files and caches go."""

import os
import sys

import pytest

from harmonium.user_folders import (
    absolute_path,
    readable,
    user_cache_folder,
    user_data_folder,
)


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HARMONIUM_CACHE", str(tmp_path))
    assert user_cache_folder() == tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folders_of_the_system(monkeypatch, tmp_path):
    for name in ("HARMONIUM_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache_folder() == tmp_path / ".cache" / "harmonium"
    assert user_data_folder() == tmp_path / ".local" / "share" / "harmonium"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert user_cache_folder() == tmp_path / "caches" / "harmonium"
    assert user_data_folder() == tmp_path / "data" / "harmonium"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("music", "here/music"),
        ("./music/", "here/music"),
        ("../music", "music"),
        ("../here/../music/./x.mp3", "music/x.mp3"),
        ("~/music", "home/music"),
        ("../link", "link"),
        ("../link/x.mp3", "link/x.mp3"),
        ("../link/sub/../x.mp3", "link/x.mp3"),
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
    assert absolute_path(written) == str(tmp_path.resolve() / meant)


def test_odd_paths_have_a_spelling_too():
    assert absolute_path("/") == absolute_path("/..") == "/"
    assert absolute_path("/a/~nobody/../b") == "/a/b"
    assert absolute_path("/caf\udce9/../nul\0") == "/nul\0"


def test_a_path_can_be_read_whatever_is_in_it():
    assert readable(os.fsdecode(b"caf\xe9.mp3")) == "caf\\xe9.mp3"
    assert readable("café.mp3") == "café.mp3"
