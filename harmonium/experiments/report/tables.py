"""A report as data: tables, figures and paragraphs, before they take any format."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from harmonium.experiments.report.pictures import Picture

Align = Literal["left", "right", "centre"]

NOTHING = "—"
"""In a cell for which there is no value."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table, as plain text."""

    text: str
    strong: bool = False
    """The best of its row."""
    faint: bool = False
    """Not measured here: from the paper."""


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    header: str
    align: Align = "right"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under named columns."""

    name: str
    """Of its file, and of the place on the page."""
    title: str
    caption: str
    """What the numbers are and how to read them."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    groups: tuple[str, ...] = ()
    """What each row belongs to, for a line between rows that differ in it; empty: no lines."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"Table '{self.name}' has {len(self.columns)} columns and a row of {len(row)}."
                )

    def begins_group(self, row: int) -> bool:
        """Whether a line belongs above this row."""
        return bool(self.groups) and row > 0 and self.groups[row] != self.groups[row - 1]


def first_cells(rows: Sequence[tuple[Cell, ...]]) -> tuple[str, ...]:
    """The text of the first cell of each row."""
    return tuple(row[0].text for row in rows)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture with its words."""

    name: str
    """Of its files, and of the place on the page."""
    title: str
    caption: str
    picture: Picture


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is written for one folder of results."""

    title: str
    paragraphs: tuple[str, ...]
    main: Table
    """What the terminal shows."""
    items: tuple[Table | Figure, ...]
    """In the order of reading; the main table is one of them."""
    unfinished: str = ""
    """What is missing, in a sentence; empty where nothing is."""
    files: dict[str, str] = field(default_factory=dict)
    """Further files by name, such as tables for programs."""

    @property
    def tables(self) -> list[Table]:
        """The tables among the items."""
        return [item for item in self.items if isinstance(item, Table)]

    @property
    def figures(self) -> list[Figure]:
        """The figures among the items."""
        return [item for item in self.items if isinstance(item, Figure)]
