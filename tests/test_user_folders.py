"""Where the library, fetched files and caches go."""

import sys

import pytest

from harmonium.user_folders import user_cache_folder, user_data_folder


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
