"""What a report is made of: tables and pictures as data, with nothing drawn or formatted yet."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from harmonium.experiments.report.wording import NOTHING


class Bold(str):
    """A cell with the best value of those it is compared with."""


class Faint(str):
    """A cell that was not measured here: it is from the paper."""


Record = dict[str, str]
"""A row of a table: heading -> cell."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under a header. A row need not have every column."""

    name: str  # the name of its file, and of its place on the page
    title: str
    caption: str  # what the numbers are and how to read them
    records: Sequence[Mapping[str, str]]  # heading -> cell
    details: int = 0  # columns at the end that a narrow terminal leaves out

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The headings of all rows."""
        headings = itertools.chain.from_iterable(self.records)
        return tuple(dict.fromkeys(headings))

    @cached_property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of each row."""
        return [
            tuple(record.get(heading, NOTHING) for heading in self.header)
            for record in self.records
        ]

    @property
    def alignments(self) -> str:
        """For every column, r if all its cells begin like numbers, else l."""
        number = re.compile(rf"[−+]?\d|{NOTHING}|<")
        letters = ""
        for column in zip(*self.rows, strict=True):
            letters += "r" if all(map(number.match, column)) else "l"
        return letters

    @cached_property
    def group_starts(self) -> set[int]:
        """The rows that start a new dataset; a row from the paper does not."""
        starts: set[int] = set()
        if self.header[0] != "Dataset":
            return starts
        dataset = None
        for place, row in enumerate(self.rows):
            if isinstance(row[0], Faint):
                continue
            if dataset is not None and row[0] != dataset:
                starts.add(place)
            dataset = row[0]
        return starts


class Point(NamedTuple):
    """A point of a figure. AUCs are in percent."""

    place: float | str  # on a line, a number; among bars, the name of the group
    value: float
    error: float  # the standard error; NaN if there is none


Panel = dict[str, list[Point]]
"""Name of a series -> its points."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as data. Its panels share one legend and the scale of their axes."""

    name: str  # the name of its files, and of its place on the page
    title: str
    caption: str
    kind: Literal["lines", "bars"]
    panels: Mapping[str, Panel]  # title -> what is in it
    x_label: str = "Mean AUC (%)"
    y_label: str = "Mean AUC (%)"  # of lines
    log_x: bool = False


Items = list[Table | Picture]

PERCENT = "Mean over tags and test folds in percent, ± its standard error over folds."
"""How captions explain a mean AUC."""
