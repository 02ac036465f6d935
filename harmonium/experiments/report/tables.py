"""A report as data, before it takes any format: tables, figures, and numbers as text."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

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


def text_row(*texts: str, faint: bool = False) -> tuple[Cell, ...]:
    """A row of plain cells."""
    return tuple(Cell(text, faint=faint) for text in texts)


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


_SETTING_NAMES = {
    "n_hidden": "hidden units",
    "training_steps": "training steps",
    "inference_steps": "test steps",
    "learning_rate": "learning rate",
    "training": "trained with",
    "inference": "tested with",
    "known": "tags known",
    "l2": "L2",
    "nu": "ν",
    "features": "features",
    "clips": "training clips",
}
_APPROXIMATIONS = {
    "cd": "CD",
    "pl": "PL",
    "multi_prediction": "MP",
    "mean_field": "MF",
    "lbp": "LBP",
    "gibbs": "Gibbs",
    "exact": "exact",
}


def setting_name(key: str) -> str:
    """The name of a setting in words."""
    return _SETTING_NAMES.get(key, key.replace("_", " "))


def setting_heading(key: str) -> str:
    """The name of a setting at the head of a column."""
    text = setting_name(key)
    return text[0].upper() + text[1:] if text[0].isascii() else text


def format_value(key: str, value: Any) -> str:
    """The value of a setting, without its name."""
    if key in ("training", "inference"):
        return "own" if value is None else _APPROXIMATIONS.get(value, str(value))
    if key == "features":
        return "timbre + rhythm" if value == "all" else str(value)
    if key == "smoothing":
        return "smoothed" if value else "raw"
    if key == "known":
        return f"{100 * value:g} %"
    if key == "clips":
        return f"{value:,}" if value else "all"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    return "default" if value is None else str(value)


def format_setting(key: str, value: Any) -> str:
    """The value of a setting with its name, unless the value speaks for itself."""
    text = format_value(key, value)
    if key in ("dataset", "model", "smoothing", "features"):
        return text
    return f"{setting_name(key)} {text}"


def format_percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, where it has one."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def format_seconds(value: float) -> str:
    """A time in seconds, to three digits or so."""
    if math.isnan(value):
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_duration(value: float) -> str:
    """A long time in the unit that suits it."""
    if math.isnan(value):
        return NOTHING
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def one_line(text: str) -> str:
    """The text without line ends and double spaces; spaces that do not break stay."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip()


def join_names(names: list[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def count_of(count: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
