"""Cells of CSV files that a spreadsheet would take for formulas.

Excel, LibreOffice and Google Sheets run a cell that begins with =, +, -, @, a tab or a carriage
return, whoever wrote it: the artist of a downloaded file may read ``=cmd|' /C calc'!A0``. An
apostrophe before it makes it text. Tables are written with it and read without it; numbers are not
texts, and stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_LIKE_A_FORMULA = r"'*[=+\-@\t\r]"  # with apostrophes, so that each cell is read as it was
_GUARDED = rf"^'({_LIKE_A_FORMULA})"


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if re.match(_LIKE_A_FORMULA, cell) else cell


def unguarded(cell: str) -> str:
    """A cell as it was before `guarded`."""
    return re.sub(_GUARDED, r"\1", cell)


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts and names of columns no spreadsheet takes for formulas."""
    import polars as pl

    texts = pl.col(pl.String).str.replace(rf"^({_LIKE_A_FORMULA})", "'${1}")
    return frame.with_columns(texts).rename(guarded)


def unguarded_series(cells: pl.Series) -> pl.Series:
    """Cells (n,) as they were before `guarded_frame`."""
    return cells.str.replace(_GUARDED, "${1}")
