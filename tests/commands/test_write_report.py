"""What write and undo show on a terminal."""

import io
import re

import pytest
from harmonium.commands.screen import Flow, say_failures
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from harmonium.commands import write_report
from harmonium.library.filetags import FieldChange, FileChange, UnwrittenTag
from harmonium.library.write import (
    FailedFile,
    PlannedFile,
    WritePlan,
    WriteReport,
)


class FakeTrack:
    path = "/music/a song.mp3"


@pytest.fixture
def plan():
    genre = FieldChange("genre", ("Rock", "Old"), ("Rock", "late night"), ("TCON",))
    change = FileChange(
        path=FakeTrack.path,
        format="MP3",
        version="ID3v2.4",
        fields=(genre,),
        left_out=(UnwrittenTag("loud", "on the ignore list"),),
    )
    return WritePlan([PlannedFile(FakeTrack, change)], n_unchanged=2)


def shown(show, *arguments, colours=False, width=80):
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=True, width=width, no_color=not colours, legacy_windows=False
    )
    show(console, *arguments)
    return file.getvalue()


def plain(text):
    """Without styles, and without the spaces at the ends of lines."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()]


def test_the_difference_on_a_terminal(plan):
    assert plain(shown(write_report.show_plan, plan)) == [
        "/music/a song.mp3",
        "  genre TCON -Old, Rock, +late night",
        "1 file would change, 2 would not.",
        "Left out (on the ignore list): loud",
    ]


def test_what_goes_is_red_and_what_comes_is_green(plan):
    text = shown(write_report.show_plan, plan, colours=True)
    assert "\x1b[9;31m-Old" in text
    assert "\x1b[32m+late" in text


def test_long_values_stay_in_their_column(plan):
    many = FieldChange("genre", (), tuple(f"tag{i}" for i in range(30)), ("TCON",))
    change = FileChange(path="", format="MP3", version=None, fields=(many,))
    lines = plain(shown(write_report.show_changes, [PlannedFile(FakeTrack, change)], width=40))
    assert len(lines) > 3
    assert all(line.startswith(" " * 13) for line in lines[2:])


@given(st.lists(st.text("ab ", min_size=1, max_size=9), max_size=12), st.integers(10, 40))
def test_texts_that_flow_are_whole_and_fit(words, width):
    lines = [line.plain for line in Flow([Text(word) for word in words]).lines(width)]
    assert " ".join(lines) == ", ".join(words)
    assert all(len(line) <= width for line in lines)


def test_the_last_words():
    written = WriteReport(change=7, paths=["a", "b"], failures=[FailedFile("c", "it is read-only")])
    said = plain(shown(write_report.say_written, written, WritePlan(n_unchanged=3)))
    assert said == [
        "Tags written to 2 files; 3 needed no change; 1 could not be written.",
        "To take it back: harmonium undo 7",
    ]


def test_failures_do_nothing_to_the_terminal():
    said = shown(say_failures, [FailedFile("a\x1b[2Jb", "gone")])
    assert said == "a\\x1b[2Jb: gone\n"


def test_many_failures_are_cut_short():
    said = plain(shown(say_failures, [FailedFile(f"{i}", "no") for i in range(40)]))
    assert len(said) == 31
    assert said[-1] == "and 10 more"
