"""A table for the terminal."""

import re
from dataclasses import replace
from typing import Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from harmonium.experiments.report.tables import Align, Cell, Table

_JUSTIFY: dict[Align, Literal["left", "right", "center"]] = {
    "left": "left",
    "right": "right",
    "centre": "center",
}

_RULER = Console(width=10_000)
"""To measure how wide a table is by nature."""


def rich_table(table: Table, *, width: int) -> RichTable:
    """The table as Rich draws it; standard errors are left out where they would not fit."""
    whole = _drawn(table)
    if Measurement.get(_RULER, _RULER.options, whole).maximum <= width:
        return whole
    rows = tuple(tuple(_without_error(cell) for cell in row) for row in table.rows)
    if rows == table.rows:
        return whole
    note = "Standard errors are in the report: this window is too narrow for them."
    return _drawn(replace(table, rows=rows, caption=f"{table.caption} {note}"))


def _drawn(table: Table) -> RichTable:
    drawn = RichTable(
        title=Text(table.title, style="bold"),
        caption=Text(table.caption, style="dim"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(table.columns):
        drawn.add_column(
            Text(column.header),
            justify=_JUSTIFY[column.align],
            no_wrap=number == 0,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        if table.begins_group(number):
            drawn.add_section()
        drawn.add_row(*(_text(cell) for cell in row))
    return drawn


def _without_error(cell: Cell) -> Cell:
    return replace(cell, text=re.sub(r" ± [\d.]+", "", cell.text))


def _text(cell: Cell) -> Text:
    return Text(cell.text, style="bold" if cell.strong else "dim italic" if cell.faint else "")
