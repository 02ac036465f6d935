"""What commands show of names and numbers."""

import os

import pytest
from harmonium.commands.screen import bar, printable, say
from rich.console import Console

from harmonium.commands import screen
from harmonium.errors import counted


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


def test_lines_are_broken_between_words_and_a_path_stays_whole():
    path = "/music/" + "x" * 40
    console = Console(force_terminal=True, width=30, color_system=None)
    with console.capture() as captured:
        say(console, f"What was said of all these tracks is kept: {path}")
    assert captured.get().split("\n") == [
        "What was said of all these",
        "tracks is kept:",
        path,
        "",
    ]


def test_counts():
    assert [counted(n, "track") for n in (0, 1, 1200)] == ["0 tracks", "1 track", "1,200 tracks"]


def test_a_bar_shows_no_numbers_that_are_not_known(monkeypatch):
    made = []

    class Kept(screen.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, **options)
            made.append(self)

    monkeypatch.setattr(screen, "Progress", Kept)
    console = Console(force_terminal=True, width=80)
    with console.capture(), bar(console, "listening", at_first="looking for music") as progress:
        shown = [_picture(made[0])]
        progress(0, 0, "reading")
        shown.append(_picture(made[0]))
        progress(3, 40)
        shown.append(_picture(made[0]))
    for picture, words in zip(shown, ("looking for music", "reading", "listening"), strict=True):
        assert picture.startswith(words)
        assert "?" not in picture
        assert "-:--" not in picture
    assert "0/" not in shown[0] + shown[1]
    assert "0:00 so far" in shown[0]
    assert "3/40" in shown[2]


def _picture(progress):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(progress.get_renderable())
    return captured.get()
