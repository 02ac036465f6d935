"""Rows for people and for programs: a table on a terminal, tab-separated lines elsewhere."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

Cell = str | Text


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
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(c if isinstance(c, Text) else Text(printable(c)) for c in row))
    console.print(table)


def say(console: Console, message: str | Text) -> None:
    """A line that is broken by the terminal, if at all; nothing in it acts on the terminal."""
    text = message if isinstance(message, Text) else Text(printable(message))
    console.print(text, soft_wrap=True)


def printable(text: str) -> str:
    """A text without characters that do something to a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def percent(probability: float) -> str:
    """A probability as a whole number of hundredths, for people."""
    return f"{100 * probability:.0f} %"
