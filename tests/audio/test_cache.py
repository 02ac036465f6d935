"""The cache of features: what it finds, what it does not, and that it survives everything."""

import hashlib
import os
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest
from processes_in_tests import PATIENCE, end, start

from harmonium.audio import cache as cache_module
from harmonium.audio.cache import FeatureCache, FileStatus, file_digest, file_status
from harmonium.errors import DataError

OLD = FileStatus(
    size=100,
    modified=1_600_000_000_123_456_789,
    changed=1_600_000_000_987_654_321,
    inode=42,
)
DIGEST = bytes(range(32))
NAME = os.fsdecode(b"/music/caf\xe9.wav")
VECTOR = np.array([1.5, -0.0, 3e-38, 7e37], np.float32)


@pytest.fixture
def cache(tmp_path):
    with FeatureCache(tmp_path / "cache", "r") as cache:
        yield cache


def test_a_file_by_its_path(cache):
    cache.put(NAME, OLD, DIGEST, VECTOR)
    assert cache.find_by_path(NAME, OLD).tobytes() == VECTOR.tobytes()
    assert cache.find_by_path("/music/b.wav", OLD) is None


@pytest.mark.parametrize("field", FileStatus._fields)
def test_a_file_whose_status_has_changed(cache, field):
    cache.put(NAME, OLD, DIGEST, VECTOR)
    changed = OLD._replace(**{field: getattr(OLD, field) + 1})
    assert cache.find_by_path(NAME, changed) is None


def test_a_content_wherever_it_is(cache):
    cache.put(NAME, OLD, DIGEST, VECTOR)
    assert cache.find_by_content(DIGEST).tobytes() == VECTOR.tobytes()
    assert cache.find_by_content(DIGEST[::-1]) is None


def test_the_sizes_of_known_contents(cache):
    assert not cache.has_size(100)
    cache.put(NAME, OLD, DIGEST, VECTOR)
    assert cache.has_size(100)
    assert not cache.has_size(101)


def test_recipes_are_kept_apart(cache, tmp_path):
    cache.put(NAME, OLD, DIGEST, VECTOR)
    with FeatureCache(tmp_path / "cache", "s") as other:
        assert other.find_by_path(NAME, OLD) is None
        assert other.find_by_content(DIGEST) is None
        assert not other.has_size(100)
        other.put(NAME, OLD, DIGEST, 2 * VECTOR[:2])
        assert len(other.find_by_path(NAME, OLD)) == 2
    assert len(cache.find_by_path(NAME, OLD)) == 4


def test_the_status_of_a_new_file_is_not_trusted(cache, tmp_path):
    """It might not show another change."""
    (tmp_path / "new.wav").write_bytes(b"new")
    status = file_status(tmp_path / "new.wav")
    cache.put("/music/new.wav", status, DIGEST, VECTOR)
    cache.put("/music/new.wav", status, DIGEST)
    assert cache.find_by_path("/music/new.wav", status) is None
    assert cache.find_by_content(DIGEST) is not None


def test_the_digest_of_a_file(tmp_path):
    (tmp_path / "new.wav").write_bytes(b"new")
    assert file_digest(tmp_path / "new.wav") == hashlib.sha256(b"new").digest()


def test_an_inode_of_64_bits(cache, tmp_path, monkeypatch):
    values = list(tmp_path.stat())
    values[1] = (1 << 64) - 7
    monkeypatch.setattr(os, "stat", lambda path: os.stat_result(values))
    inode = file_status("/a").inode
    assert inode == -7
    cache.put("/a", OLD._replace(inode=inode), DIGEST, VECTOR)
    assert cache.find_by_path("/a", OLD._replace(inode=-7)) is not None


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"features.sqlite cannot be used: .* Name another"):
        FeatureCache(tmp_path / "file", "r")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "features.sqlite").write_bytes(b"not a database, though long enough" * 100)
    with pytest.raises(DataError, match=r"features.sqlite cannot be used: .* Name another"):
        FeatureCache(tmp_path, "r")


def test_a_cache_of_a_newer_version(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "CACHE_FORMAT", 0)
    with pytest.raises(DataError, match="newer version"):
        FeatureCache(tmp_path / "cache", "r")


def test_two_processes_at_once(tmp_path):
    writers = [start(__file__, tmp_path, first, 150) for first in (0, 100)]
    try:
        for process in writers:
            _, errors = process.communicate(timeout=PATIENCE)
            assert (process.returncode, errors) == (0, "")
    finally:
        for process in writers:
            end(process)
    with FeatureCache(tmp_path, "r") as cache:
        for number in range(250):
            assert cache.find_by_content(_digest(number))[0] == number
            assert cache.find_by_path(f"/{number}", OLD)[0] == number
    with closing(sqlite3.connect(tmp_path / "features.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _digest(number):
    return number.to_bytes(32, "big")


def _writer(folder, first, count):
    with FeatureCache(folder, "r") as cache:
        for number in range(first, first + count):
            vector = np.full(389, number % 1000, np.float32)
            cache.put(f"/{number}", OLD, _digest(number), vector)


if __name__ == "__main__":
    _writer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
