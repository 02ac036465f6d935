"""Where a command's result goes: a terminal, a pipe, JSON or CSV."""

import csv
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import typer
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

from harmonium import stopping
from harmonium.commands import INTERRUPTED
from harmonium.errors import DataError, with_path
from harmonium.spreadsheets import guarded

Cell = str | Text | int | float | datetime | None
"""An int is a count, a float a probability. A pipe gets plain numbers and ISO dates."""
Columns = Mapping[str, str | Callable[[Any], Cell]]
"""A column's heading → the record's field that it shows, or a function from record to cell."""
Line = str | Text | None  # a line to print; None is not printed
MAX_FAILURES = 30


class Output:
    """The result on standard output, in one form, and notes on standard error.

    Each method does nothing unless its form was asked for, so a command can call all of them:
    `json` and `csv` for programs, `say` and `table` for people and pipes, `hint` only for people.
    """

    folders: Sequence[str] = ()  # in tables for people, paths begin after them

    def __init__(self, as_json: bool = False, as_csv: bool = False) -> None:
        if as_json and as_csv:
            raise DataError("Use --json or --csv, not both.")
        self.console = Console()
        self.errors = Console(stderr=True)
        self.form: Literal["json", "csv", "terminal", "lines"] = "lines"
        if as_json:
            self.form = "json"
        elif as_csv:
            self.form = "csv"
        elif self.console.is_terminal:
            self.form = "terminal"

    @property
    def is_terminal(self) -> bool:
        """Whether people read the result."""
        return self.form == "terminal"

    def show(self, records: Sequence[Any], columns: Columns, empty: str = "") -> None:
        """Records from the library: their fields as JSON, or one row each; see `table`.

        People see ``empty`` if there are no records.
        """
        self.json(records)
        if empty and not records:
            self.hint(empty)
            return
        makers = []
        for source in columns.values():
            makers.append(attrgetter(source) if isinstance(source, str) else source)
        rows = []
        for record in records:
            rows.append([make_cell(record) for make_cell in makers])
        self.table([*columns], rows)

    def json(self, value: Any) -> None:
        """A value or a record; an iterator becomes an array that is written as it comes."""
        if self.form != "json":
            return
        if not isinstance(value, Iterator):
            print(json.dumps(plain(value), indent=1))
            return
        print("[", end="")
        for number, record in enumerate(value):
            print("," if number else "", json.dumps(plain(record)), sep="\n", end="")
        print("\n]")

    def csv(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, raw: bool = False
    ) -> None:
        """A table for programs, with its head; ``raw`` as in `harmonium.spreadsheets`."""
        if self.form != "csv":
            return
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            if raw:
                writer.writerow(row)
            else:
                cells = [guarded(cell) if isinstance(cell, str) else cell for cell in row]
                writer.writerow(cells)

    def say(self, *lines: Line) -> None:
        """Lines of the result."""
        if self.form in ("terminal", "lines"):
            _print_lines(self.console, lines)

    def hint(self, *lines: Line) -> None:
        """Lines that explain the result to people."""
        if self.is_terminal:
            _print_lines(self.console, lines)

    def note(self, *lines: Line) -> None:
        """Lines about what happened, apart from the result."""
        _print_lines(self.errors, lines)

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str | None = None
    ) -> None:
        """Rows of cells, with tabs between them in a pipe; a column ">Name" is set to the right."""
        if self.form == "lines":
            for row in rows:
                print(*(printable(_for_programs(cell)) for cell in row), sep="\t")
        elif self.is_terminal:
            if title is not None:
                self.hint(Text(printable(title), style="bold"))
            table = plain_table(*columns)
            table.show_header = any(columns)
            for row in rows:
                table.add_row(*(_for_people(cell, self.folders) for cell in row))
            self.console.print(table)

    def pairs(self, rows: Mapping[str, object]) -> None:
        """Names and values, in two columns."""
        cells = [(Text(name, style="bold"), str(value)) for name, value in rows.items()]
        self.table(("", ""), cells)

    def failures(self, failures: Iterable[tuple[str, str]], more: str = "") -> None:
        """Files that could not be used, with the reasons; people see at most 30."""
        lines = [with_path(path, reason) for path, reason in failures]
        most = MAX_FAILURES if self.errors.is_terminal else None
        self.note(*shortened(lines, most, more=more))

    @contextmanager
    def bar(
        self, name: str, stopped: str | Callable[[int, int], str] = "", at_first: str | None = None
    ) -> Iterator[Callable[..., None]]:
        """A progress bar that disappears when done; yields a function to call with (done, total).

        Until the first call, and with a total of 0, the total is unknown and the bar only moves.
        ``at_first`` is shown until the first call; a call's third argument replaces the name.
        Ctrl-C stops the work at its next step, a second one at once. ``stopped`` is a note about
        that, or a function that makes one from (done, total).
        """
        last_done = 0
        last_total = 0

        def update(done: int, total: int, what: str = name) -> None:
            nonlocal last_done, last_total
            last_done = done
            last_total = total
            stopping.check()
            progress.update(task, completed=done, total=total or None, description=what)

        columns = (TextColumn("{task.description}"), BarColumn(), _Done())
        hidden = not self.errors.is_terminal
        try:
            with (
                stopping.stops_on_interrupt(),
                Progress(*columns, console=self.errors, transient=True, disable=hidden) as progress,
            ):
                task = progress.add_task(at_first or name, total=None)
                yield update
        except KeyboardInterrupt:
            if not stopped:
                raise
            self.note(stopped if isinstance(stopped, str) else stopped(last_done, last_total))
            raise typer.Exit(INTERRUPTED) from None


def plain(value: Any) -> Any:
    """A record, or a value with records in it, as JSON."""
    if hasattr(value, "to_dicts"):  # a table
        return value.to_dicts()
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _for_programs(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, float):
        return f"{cell:.4f}"
    return str(cell)


def _for_people(cell: Cell, folders: Sequence[str]) -> Text:
    if cell is None:
        return Text("")
    if isinstance(cell, Text):
        return cell
    if isinstance(cell, datetime):
        return Text(f"{cell.astimezone():%Y-%m-%d %H:%M}")
    if isinstance(cell, float):
        return Text(percent(cell))
    if isinstance(cell, str):
        return Text(printable(_short_path(cell, folders)))
    return Text(f"{cell:,}")


def _short_path(text: str, folders: Sequence[str]) -> str:
    """A path after the folder that it begins with, or after ~; any other text as it is."""
    replacements = {f"{Path.home()}{os.sep}": "~/"}
    replacements |= {f"{folder}{os.sep}": "" for folder in folders}
    start = max(filter(text.startswith, replacements), key=len, default="")
    return replacements.get(start, "") + text.removeprefix(start)


def plain_table(*columns: str) -> Table:
    """A table without lines, whose cells are wrapped; ">Name" is set to the right."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        justify: Any = "right" if column.startswith(">") else "left"
        table.add_column(column.removeprefix(">"), justify=justify, overflow="fold")
    return table


def _print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Lines that a terminal wraps between words; a long word, such as a path, stays whole."""
    for line in lines:
        if isinstance(line, str):
            text = printable(line)
            if console.is_terminal:
                text = fill(text, console.width, break_long_words=False, break_on_hyphens=False)
            line = Text(text)
        if line is not None:
            console.print(line, soft_wrap=True)


def shortened(
    lines: Sequence[str], most: int | None, *, more: str = "", indent: str = ""
) -> Iterator[str]:
    """At most ``most`` lines, then how many more there are; ``more`` ends that line."""
    yield from (f"{indent}{line}" for line in lines[:most])
    if most is not None and len(lines) > most:
        yield f"{indent}and {len(lines) - most:,} more{more}"


def printable(text: str) -> str:
    """A text without characters that control a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    """Bytes of a file's name that are not UTF-8 come as letters from U+DC80 on."""
    byte = ord(letter) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(letter)[1:-1]


def percent(probability: float) -> str:
    """A probability as a whole number of hundredths."""
    return f"{100 * probability:.0f} %"


def to_undo(change: int | None) -> str | None:
    """How to undo a change; None without a change."""
    return None if change is None else f"To undo: harmonium undo {change}"


def share_bar(share: float) -> Text:
    """A bar of up to 20 characters."""
    return Text("━" * max(1, round(20 * share)), style="cyan")


def has_reader() -> bool:
    """Whether there is a person at the terminal to ask; Ctrl-C ends the wait for an answer."""
    if hasattr(signal, "siginterrupt"):  # polars lets reads go on after Ctrl-C
        signal.siginterrupt(signal.SIGINT, True)
    return sys.stdin is not None and sys.stdin.isatty()


class _Done(ProgressColumn):
    """What is done, and the time left; while that is unknown, the time so far."""

    def render(self, task: Task) -> Text:
        done = "" if task.total is None else f"{task.completed:,.0f}/{task.total:,.0f} "
        left = task.time_remaining if task.completed else None
        if left is None:
            time = f"{timedelta(seconds=int(task.elapsed or 0))} so far"
        else:
            time = f"{timedelta(seconds=int(left))} left"
        return Text.assemble(done, (time, "dim"))


class Flow:
    """Texts with commas between them; lines break between texts, not within them."""

    def __init__(self, pieces: Sequence[Text]) -> None:
        *others, last = pieces or [Text()]
        self.pieces = [*(Text.assemble(piece, ",") for piece in others), last]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Text]:
        line = self.pieces[0]
        for piece in self.pieces[1:]:
            if line.cell_len + 1 + piece.cell_len <= options.max_width:
                line = Text.assemble(line, " ", piece)
            else:
                yield line
                line = piece
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [piece.cell_len + 1 for piece in self.pieces]
        return Measurement(max(widths), sum(widths)).with_maximum(options.max_width)
