"""Cells that a spreadsheet would run as formulas."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonium.spreadsheets import guarded, guarded_frame, unguarded, unguarded_series

FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]
CELLS = st.text(st.sampled_from("'=+-@\t\r a1"), max_size=6) | st.text(max_size=20)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_becomes_text(formula):
    assert guarded(formula) == f"'{formula}"


@pytest.mark.parametrize("cell", ["", "rock", "r&b", "a=1", "1", "'n sync", " =1"])
def test_other_cells_stay_as_they_are(cell):
    assert guarded(cell) == cell == unguarded(cell)


@given(CELLS)
def test_every_cell_is_read_as_it_was(cell):
    assert unguarded(guarded(cell)) == cell
    assert guarded(cell)[:1] not in ("=", "+", "-", "@", "\t", "\r")


@given(st.lists(CELLS, min_size=1))
def test_a_table_is_guarded_as_its_cells_are(cells):
    table = pl.DataFrame({"=name": cells, "x": [-1.0] * len(cells)})
    safe = guarded_frame(table)
    assert safe.columns == ["'=name", "x"]
    assert safe["'=name"].to_list() == [guarded(cell) for cell in cells]
    assert safe["x"].to_list() == [-1.0] * len(cells)
    assert unguarded_series(safe["'=name"]).to_list() == cells
