"""A table for the terminal."""

from typing import Literal

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from harmonium.experiments.report.tables import Align, Cell, Table

_JUSTIFY: dict[Align, Literal["left", "right", "center"]] = {
    "left": "left",
    "right": "right",
    "centre": "center",
}


def rich_table(table: Table) -> RichTable:
    """The table as Rich draws it."""
    drawn = RichTable(
        title=Text(table.title, style="bold"),
        caption=Text(table.caption, style="dim"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for column in table.columns:
        drawn.add_column(
            Text(column.header), justify=_JUSTIFY[column.align], no_wrap=column.align != "left"
        )
    for number, row in enumerate(table.rows):
        if table.begins_group(number):
            drawn.add_section()
        drawn.add_row(*(_text(cell) for cell in row))
    return drawn


def _text(cell: Cell) -> Text:
    return Text(cell.text, style="bold" if cell.strong else "dim italic" if cell.faint else "")
