"""Locks on files, on Unix and as on Windows."""

from types import SimpleNamespace

import pytest

from harmonium import file_locks
from harmonium.file_locks import try_lock


def test_one_at_a_time(tmp_path):
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert try_lock(first.fileno())
        assert not try_lock(second.fileno())
    with path.open("w") as third:
        assert try_lock(third.fileno())  # closing gave it back


@pytest.mark.parametrize(("held", "expected"), [(False, True), (True, False)])
def test_windows_own_locks_are_used_there(monkeypatch, tmp_path, held, expected):
    def locking(descriptor, mode, n_bytes):
        assert (mode, n_bytes) == (2, 1)
        if held:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(file_locks, "fcntl", None)
    monkeypatch.setattr(file_locks, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with (tmp_path / "lock").open("w") as file:
        assert try_lock(file.fileno()) is expected


def test_without_any_locks_the_file_counts_as_locked(monkeypatch, tmp_path):
    monkeypatch.setattr(file_locks, "fcntl", None)
    monkeypatch.setattr(file_locks, "msvcrt", None)
    with (tmp_path / "lock").open("w") as file:
        assert try_lock(file.fileno())
