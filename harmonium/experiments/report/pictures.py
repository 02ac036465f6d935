"""Pictures as data: what is to be seen, without saying how it is drawn.

A picture has panels, which share their axes' scale and one legend. All AUCs are in percent.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class BarSeries:
    """The bars of one series: a value for each group, NaN where there is none."""

    name: str
    values: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class BarPanel:
    """Groups of bars side by side."""

    title: str
    groups: tuple[str, ...]
    series: tuple[BarSeries, ...]


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Grouped bars with standard errors."""

    title: str
    group_label: str
    value_label: str
    panels: tuple[BarPanel, ...]


@dataclass(frozen=True)
class Line:
    """One line: x, y and the standard error of y, NaN where it has none."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class LinePanel:
    """Lines in one pair of axes."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Lines with standard errors, as bars or as bands."""

    title: str
    x_label: str
    y_label: str
    panels: tuple[LinePanel, ...]
    log_x: bool = False
    band: bool = False


@dataclass(frozen=True)
class CountPanel:
    """Tags up, where the first is better, and down, where it is worse; None: not compared."""

    title: str
    groups: tuple[str, ...]
    up: tuple[int | None, ...]
    down: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Bars up and down from zero."""

    title: str
    up_label: str
    down_label: str
    value_label: str
    panels: tuple[CountPanel, ...]


@dataclass(frozen=True)
class DotPanel:
    """A dot with its standard error for each of several choices, and a word beside it."""

    title: str
    choices: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Choices from top to bottom, values from left to right."""

    title: str
    value_label: str
    word_label: str
    """What the words beside the dots are."""
    panels: tuple[DotPanel, ...]


Picture = Bars | Lines | Counts | Dots
