"""A file is the old one or the new one, whatever happens."""

import pytest

from harmonium.atomic_files import atomic_file, write_atomically


def test_the_content_replaces_what_was_there(tmp_path):
    file = tmp_path / "file"
    write_atomically(file, b"one")
    write_atomically(file, b"two")
    assert file.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path):
    with atomic_file(tmp_path / "file") as file:
        file.write(b"half")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    old = tmp_path / "file"
    old.write_bytes(b"old")
    with pytest.raises(error), atomic_file(old) as file:
        _write_and_raise(file, error)
    assert old.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [old]


def _write_and_raise(file, error):
    file.write(b"new")
    raise error
