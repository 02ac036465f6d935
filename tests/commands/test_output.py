"""What commands print: names, numbers, tables, JSON, progress, and the changes of files."""

import io
import json
import os
import re
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from harmonium.commands import output
from harmonium.commands.output import Flow, Output, printable
from harmonium.commands.write import show_plan
from harmonium.errors import counted, did_you_mean, nearest_names
from harmonium.library.filetags import FieldChange, FileChange, UnwrittenTag
from harmonium.library.writing.file_plans import PlannedFile, WritePlan


def terminal(width=80, colours=False):
    """An Output of a terminal, and a function that gives what was printed on it."""
    out, file = Output(), io.StringIO()
    out.console = out.errors = Console(
        file=file, force_terminal=True, width=width, no_color=not colours, legacy_windows=False
    )
    out.form = "terminal"
    return out, file.getvalue


def plain(text):
    """Without styles, and without the spaces at the ends of lines."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()]


class Record(NamedTuple):
    tag: str
    probability: float
    n: int
    at: datetime


RECORD = Record("hip hop", 0.25, 1200, datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
NAMES = {"Tag": "tag", ">Probability": "probability", ">N": "n", "At": "at"}
COLUMNS = {title: attrgetter(name) for title, name in NAMES.items()} | {"None": lambda record: None}


def test_records_as_json(capsys):
    Output(as_json=True).show([RECORD], COLUMNS)
    (record,) = json.loads(capsys.readouterr().out)
    assert record == RECORD._asdict() | {"at": "2026-01-02T03:04:00+00:00"}


def test_records_as_lines(capsys):
    Output().show([RECORD], COLUMNS)
    assert capsys.readouterr().out == "hip hop\t0.2500\t1200\t2026-01-02T03:04:00+00:00\t\n"


def test_records_as_a_table():
    out, shown = terminal()
    out.show([RECORD], COLUMNS)
    head, row = plain(shown())
    assert head.split() == ["Tag", "Probability", "N", "At", "None"]
    assert row.startswith("hip hop         25 %  1,200  2026-01-0")


def test_no_records():
    out, shown = terminal()
    out.show([], COLUMNS, empty="No tags.")
    assert plain(shown()) == ["No tags."]


def test_paths_are_shown_after_their_folder():
    out, shown = terminal()
    out.folders = ["/music", "/music/more"]
    places = ("/music", "/music/more", "/mus", Path.home())
    out.table((""), [(f"{place}/a b.ogg",) for place in places])
    assert plain(shown()) == ["a b.ogg", "a b.ogg", "/mus/a b.ogg", "~/a b.ogg"]


def test_an_iterator_as_json(capsys):
    Output(as_json=True).json(iter([{"a": [1]}, {"b": "\udcff"}]))
    assert json.loads(capsys.readouterr().out) == [{"a": [1]}, {"b": "\udcff"}]


@pytest.mark.parametrize(("n", "text"), [(0, "0 tracks"), (1, "1 track"), (1200, "1,200 tracks")])
def test_counted_things(n, text):
    assert counted(n, "track") == text


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


def test_lines_are_broken_between_words():
    path = "/music/" + "x" * 40
    out, shown = terminal(width=30)
    out.say(f"What was said of all these tracks is kept: {path}")
    assert plain(shown()) == ["What was said of all these", "tracks is kept:", path]


def test_failures_do_nothing_to_the_terminal():
    out, shown = terminal()
    out.failures([("a\x1b[2Jb", "gone")])
    assert plain(shown()) == ["a\\x1b[2Jb: gone"]


def test_many_failures_are_cut_short():
    out, shown = terminal()
    out.failures([(f"{i}", "no") for i in range(40)], "; see FILE")
    lines = plain(shown())
    assert (len(lines), lines[-1]) == (31, "and 10 more; see FILE")


def test_a_bar_shows_no_numbers_that_are_not_known(monkeypatch):
    made = []

    def kept(*columns, **options):
        made.append(Progress(*columns, **options))
        return made[0]

    def picture():
        console = Console(width=80)
        with console.capture() as captured:
            console.print(made[0].get_renderable())
        return captured.get()

    monkeypatch.setattr(output, "Progress", kept)
    out = Output()
    out.errors = Console(force_terminal=True, width=80)
    with out.errors.capture(), out.bar("listening", at_first="looking for music") as progress:
        shown = [picture()]
        for call in ((0, 0, "reading"), (3, 40)):
            progress(*call)
            shown.append(picture())
    for text, words in zip(shown, ("looking for music", "reading", "listening"), strict=True):
        assert text.startswith(words)
        assert "?" not in text
        assert "-:--" not in text
    assert "0/" not in shown[0] + shown[1]
    assert "0:00:00 so far" in shown[0]
    assert "3/40" in shown[2]


# The changes of files, as `harmonium write` shows them. ---------------------------------------


def planned(*fields, left_out=()):
    about = {"path": "/music/a song.mp3", "format": "MP3", "version": "ID3v2.4"}
    return PlannedFile(track=None, change=FileChange(**about, fields=fields, left_out=left_out))


def test_the_difference_on_a_terminal():
    genre = FieldChange("genre", ("Rock", "Old"), ("Rock", "late night"), ("TCON",))
    skipped = (UnwrittenTag("loud", "on the ignore list"),)
    plan = WritePlan(files=[planned(genre, left_out=skipped)], n_unchanged=2)
    out, shown = terminal()
    show_plan(out, plan)
    assert plain(shown()) == [
        "/music/a song.mp3",
        "  genre TCON -Old, Rock, +late night",
        "1 file would change, 2 up to date.",
        "Skipped (on the ignore list): loud",
    ]


def test_the_difference_in_colours():
    genre = FieldChange("genre", ("Rock", "Old"), ("Rock", "late night"), ("TCON",))
    plan = WritePlan(files=[planned(genre)], n_unchanged=2)
    out, shown = terminal(colours=True)
    show_plan(out, plan)
    assert "\x1b[9;31m-Old" in shown()
    assert "\x1b[32m+late" in shown()


@given(st.lists(st.text("ab ", min_size=1, max_size=9), max_size=12), st.integers(10, 40))
def test_texts_that_flow_stay_whole(words, width):
    options = Console(width=width).options
    flow = Flow([Text(word) for word in words])
    lines = [line.plain for line in flow.__rich_console__(None, options)]
    assert " ".join(lines) == ", ".join(words)
    assert all(len(line) <= width for line in lines)


def test_the_nearest_names():
    assert nearest_names("MELOW", ["rock", "Yellow", "Mellow"], n=2) == ["Mellow", "Yellow"]
    assert did_you_mean("rok", ["rock", "pop"]) == " Did you mean 'rock'?"


def test_examples_where_no_name_is_near():
    assert did_you_mean("xyz", ["rock", "pop"]) == did_you_mean("xyz", [], examples=1) == ""
    assert did_you_mean("xyz", ["rock", "pop"], examples=1, quote=str) == " There are pop …."
