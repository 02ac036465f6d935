"""What commands show of names and numbers."""

import os

import pytest

from harmonium.commands.screen import count, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Björk", "Björk"),
        ("two\nlines \x1b[31m", r"two\nlines \x1b[31m"),
        (os.fsdecode(b"caf\xe9.mp3"), r"caf\xe9.mp3"),
        ("\ud800", r"\ud800"),
    ],
)
def test_names_do_nothing_to_the_terminal(text, shown):
    assert printable(text) == shown


def test_counts():
    assert [count(n, "track") for n in (0, 1, 1200)] == ["0 tracks", "1 track", "1,200 tracks"]
