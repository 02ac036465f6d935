"""A report as data, before it takes any format: tables, figures, and numbers as text."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from harmonium.experiments.recipe import ONE

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


def text_row(*entries: str | Cell, faint: bool = False) -> tuple[Cell, ...]:
    """A row of plain cells, and of those that are cells already."""
    return tuple(e if isinstance(e, Cell) else Cell(e, faint=faint) for e in entries)


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    header: str
    align: Align = "right"
    detail: bool = False
    """Whether a terminal, which is narrow, leaves it out."""


def columns(*headers: str, align: Align = "right", detail: bool = False) -> tuple[Column, ...]:
    """The heads of columns that are aligned alike."""
    return tuple(Column(header, align, detail) for header in headers)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under named columns."""

    name: str
    """The name of its file, and of its place on the page."""
    title: str
    caption: str
    """What the numbers are and how to read them."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    grouped: bool = True
    """Whether a line parts rows that differ in their first cell."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"Table '{self.name}' has {len(self.columns)} columns and a row of {len(row)}."
                )

    def begins_group(self, row: int) -> bool:
        """Whether a line belongs above this row."""
        first = self.rows[row][0]
        if not self.grouped or first.faint:  # the paper's row belongs to the one above it
            return False
        above = [cells[0].text for cells in self.rows[:row] if not cells[0].faint]
        return bool(above) and above[-1] != first.text


@dataclass(frozen=True)
class Series:
    """What has one colour: a line, or the bars or dots of each group. AUCs are in percent."""

    name: str
    values: tuple[float, ...]
    """NaN where there is none."""
    errors: tuple[float, ...] = ()
    """Standard errors, NaN where there is none."""
    x: tuple[float, ...] = ()
    """Where the points of a line are."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    series: tuple[Series, ...]
    groups: tuple[str, ...] = ()
    """What each value of a series belongs to; lines have x instead."""
    words: tuple[str, ...] = ()
    """Beside each dot."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as data: what is to be seen, without saying how it is drawn.

    Its panels share one legend and their axes' scale.
    """

    name: str
    """The name of its files, and of its place on the page."""
    title: str
    caption: str
    kind: Literal["bars", "lines", "counts", "dots"]
    """Counts have two series: bars up and down from zero. Dots have one, from top to bottom."""
    x_label: str = ""
    y_label: str = ""
    word_label: str = ""
    """What the words beside dots are."""
    panels: tuple[Panel, ...]
    log_x: bool = False
    band: bool = False
    """Whether the errors of lines are bands, and not bars."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is written for one folder of results."""

    title: str
    paragraphs: tuple[str, ...]
    main: Table
    """What the terminal shows first."""
    items: tuple[Table | Picture, ...]
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
    def shown(self) -> list[Table]:
        """What the terminal shows: the main table, and the differences that judge it."""
        return [self.main, *(table for table in self.tables if table.name == "differences")]

    @property
    def figures(self) -> list[Picture]:
        """The figures among the items."""
        return [item for item in self.items if isinstance(item, Picture)]


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
    "unsure": "unsure tags",
    "unit_norm": "unit norm",
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
        return "one true tag" if value == ONE else f"{100 * value:g} %"
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
    if key == "known":
        return f"{text} known"
    return f"{setting_name(key)} {text}"


def format_percent(mean: float, error: float = math.nan, *, digits: int = 1) -> str:
    """A mean AUC in percent with its standard error, where it has one."""
    if math.isnan(mean):
        return NOTHING
    text = f"{100 * mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.{digits}f}"


def format_difference(difference: float, error: float = math.nan) -> str:
    """A difference of AUCs in percentage points, with its sign and its standard error."""
    if math.isnan(difference):
        return NOTHING
    sign = "−" if difference < 0 else "+"
    text = f"{sign}{100 * abs(difference):.2f}"
    return text if math.isnan(error) else f"{text} ± {100 * error:.2f}"


def format_p(p: float) -> str:
    """A p value, to three decimals."""
    if math.isnan(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


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
