"""What commands show: tables for people, tab-separated lines for programs, progress, numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

Cell = str | Text
BETWEEN = ", "
MOST_FAILURES = 30


def show_rows(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    title: str | None = None,
    right: Sequence[str] = (),
) -> None:
    """Show rows of cells; ``right`` names the columns that hold numbers."""
    if not console.is_terminal:
        for row in rows:
            print(*(printable(str(cell)) for cell in row), sep="\t")
        return
    if title is not None:
        say(console, Text(printable(title), style="bold"))
    table = plain_table(*columns, right=right)
    for row in rows:
        table.add_row(*(c if isinstance(c, Text) else Text(printable(c)) for c in row))
    console.print(table)


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without lines; its cells are broken rather than cut."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def say(console: Console, message: str | Text) -> None:
    """A line, broken between words on a terminal; nothing in it acts on the terminal.

    A word that is longer than the terminal is wide, such as a path, stays whole.
    """
    text = message if isinstance(message, Text) else Text(printable(message))
    for line in _broken(text, console.width) if console.is_terminal else [text]:
        console.print(line, soft_wrap=True)


def _broken(text: Text, width: int) -> list[Text]:
    """The lines of a text, broken at spaces."""
    lines: list[Text] = []
    for paragraph in text.split("\n", allow_blank=True):
        words = paragraph.split(" ", allow_blank=True)
        lines.append(words[0])
        for before, word in pairwise(words):
            # spaces at the beginning stay with the first word
            if before and lines[-1].cell_len + 1 + word.cell_len > width:
                lines.append(word)
            else:
                lines[-1] = Text.assemble(lines[-1], " ", word)
    return lines


def say_some(
    console: Console, lines: Sequence[str], most: int, *, more: str = "", indent: str = ""
) -> None:
    """At most so many lines, then how many more there are; ``more`` ends that line."""
    for line in lines[:most]:
        say(console, f"{indent}{line}")
    if len(lines) > most:
        say(console, f"{indent}and {len(lines) - most:,} more{more}")


def say_failures(console: Console, failures: Iterable[tuple[str, str]]) -> None:
    """Files that could not be used, with the reasons; not all if they are many."""
    lines = [why if path in why else f"{path}: {why}" for path, why in failures]
    say_some(console, lines, MOST_FAILURES)


def printable(text: str) -> str:
    """A text without characters that do something to a terminal."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(letter: str) -> str:
    """Bytes of a file's name that are not UTF-8 come as letters from U+DC80 on."""
    byte = ord(letter) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(letter)[1:-1]


def percent(probability: float) -> str:
    """A probability as a whole number of hundredths, for people."""
    return f"{100 * probability:.0f} %"


@contextmanager
def bar(
    console: Console, name: str, *columns: ProgressColumn, at_first: str | None = None
) -> Iterator[Callable[..., None]]:
    """A progress bar that is gone when it is done; gives what to call with (done, total).

    Until then, and with a total of 0, it is not known how much there is to do: the bar swings to
    and fro. ``at_first`` is what is being done until the first call; a third argument of a call is
    what is being done from then on.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        _Done(),
        *columns,
        _Time(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(at_first or name, total=None)

        def update(done: int, total: int, what: str = name) -> None:
            progress.update(task, completed=done, total=total or None, description=what)

        yield update


class _Done(ProgressColumn):
    """ "12/40", or nothing while it is not known of how many."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:,.0f}/{task.total:,.0f}")


class _Time(ProgressColumn):
    """How long it takes yet; while that is not known, how long it has taken."""

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if left is None or not task.completed:
            return Text(f"{_clock(task.elapsed or 0)} so far", style="dim")
        return Text(f"{_clock(left)} left", style="cyan")


def _clock(seconds: float) -> str:
    """For example "0:07" or "1:02:03"."""
    text = str(timedelta(seconds=int(seconds)))
    return text[3:] if text.startswith("0:0") else text[2:] if text.startswith("0:") else text


class Flow:
    """Texts with commas between them, as many to a line as there is room for.

    Lines are broken between texts, and not within one.
    """

    def __init__(self, pieces: Sequence[Text]) -> None:
        self.pieces = pieces

    def lines(self, width: int) -> list[Text]:
        """The lines; one is longer than the width only where a single piece is."""
        found: list[Text] = []
        for number, piece in enumerate(self.pieces):
            last = number == len(self.pieces) - 1
            whole = piece.copy() if last else Text.assemble(piece, BETWEEN.rstrip())
            if found and found[-1].cell_len + 1 + whole.cell_len <= width:
                found[-1] = Text.assemble(found[-1], " ", whole)
            else:
                found.append(whole)
        return found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Text]:
        yield from self.lines(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max((piece.cell_len + 1 for piece in self.pieces), default=0)
        total = sum(piece.cell_len + len(BETWEEN) for piece in self.pieces)
        return Measurement(longest, max(longest, total)).with_maximum(options.max_width)
