"""The tables and arrays of the public datasets; a fault is reported with its file and line."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.errors import DataError

LARGEST = float(np.finfo(np.float32).max)
"""A feature of larger size would be infinite."""


def fault(path: Path, line: int | None, problem: str) -> DataError:
    """The error for a malformed file: where it is, and what is wrong there."""
    return DataError(f"{path}{'' if line is None else f', line {line}'}: {problem}")


def read_text(path: Path, *, encoding: str = "utf-8") -> str:
    """The file's text; bytes that are not in the encoding are an error with the line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise fault(path, None, f"it cannot be read: {error.strerror}.") from None
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise fault(path, line, f"byte 0x{raw[error.start]:02x} is not {encoding} text.") from None


def read_table(
    path: Path,
    columns: Sequence[str],
    *,
    header: bool,
    separator: str = "\t",
    encoding: str = "utf-8",
) -> pl.DataFrame:
    """A table of strings with these columns, and the column "line" with each row's line number.

    Parameters
    ----------
    header : whether the first line must hold the names of the columns
    separator : "\\t" (fields as they stand) or "," (fields may be in double quotes)

    Blank lines are skipped.
    """
    text = read_text(path, encoding=encoding).replace("\r\n", "\n")
    table = _split_tabs(text) if separator == "\t" else _split_quoted(path, text, separator)
    if header:
        _check_header(path, table.row(0)[1], columns)
        table = table.slice(1)
    table = table.filter(pl.col("fields").list.join("").str.strip_chars() != "")
    if not len(table):
        raise fault(path, None, "there are no rows in it.")
    number = table["fields"].list.len()
    wrong = number != len(columns)
    if wrong.any():
        row = wrong.arg_max() or 0
        problem = f"{number[row]} fields where there should be {len(columns)}"
        raise fault(path, table["line"][row], f"{problem} ({', '.join(columns)}).")
    fields = pl.col("fields").list.to_struct(fields=list(columns))
    return table.select("line", fields).unnest("fields")


def _split_tabs(text: str) -> pl.DataFrame:
    """The number and the fields of each line."""
    lines = pl.DataFrame({"fields": text.split("\n")}).with_row_index("line", offset=1)
    return lines.with_columns(pl.col("fields").str.split("\t"))


def _split_quoted(path: Path, text: str, separator: str) -> pl.DataFrame:
    """The same where fields may be in double quotes."""
    reader = csv.reader(text.split("\n"), delimiter=separator)
    try:
        rows = [(reader.line_num, fields) for fields in reader]
    except csv.Error as error:
        raise fault(path, reader.line_num, f"it cannot be read as a table: {error}.") from None
    return pl.DataFrame(
        rows, schema={"line": pl.UInt32, "fields": pl.List(pl.String)}, orient="row"
    )


def _check_header(path: Path, names: list[str], columns: Sequence[str]) -> None:
    if [name.strip() for name in names] != list(columns):
        wanted, got = ", ".join(columns), ", ".join(names) or "none"
        raise fault(path, 1, f"the columns must be {wanted}; got {got}.")


def whole_numbers(
    path: Path, table: pl.DataFrame, column: str, *, low: int = 0, high: int | None = None
) -> NDArray[np.int64]:
    """A column as whole numbers from low to high, (n,)."""
    numbers = table[column].str.strip_chars().cast(pl.Int64, strict=False)
    wrong = numbers.is_null() | (numbers < low)
    if high is not None:
        wrong |= numbers > high
    if wrong.any():
        row = wrong.arg_max() or 0
        limit = f"from {low} up" if high is None else f"from {low} to {high}"
        raise fault(
            path,
            table["line"][row],
            f"{column} must be a whole number {limit}, got '{table[column][row]}'.",
        )
    return numbers.to_numpy()


def not_empty(path: Path, table: pl.DataFrame, column: str) -> pl.Series:
    """A column without surrounding space, (n,), none of it empty."""
    values = table[column].str.strip_chars()
    empty = values == ""
    if empty.any():
        raise fault(path, table["line"][empty.arg_max() or 0], f"{column} is empty.")
    return values


def read_arrays(
    path: Path, rows: Sequence[str], others: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The named arrays of an .npz file; those in rows must be equally long."""
    try:
        # Opened here: np.load leaves a file open that turns out to be no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name in (*rows, *others):
                if name not in archive.files:
                    held = ", ".join(archive.files)
                    raise fault(path, None, f"there is no array '{name}' in it, only {held}.")
            arrays = {name: np.asanyarray(archive[name]) for name in (*rows, *others)}
    except DataError:
        raise
    except Exception as error:  # NumPy and zipfile raise all kinds of errors at damage
        problem = f"it is not a complete .npz file ({error}). Copy it again."
        raise fault(path, None, problem) from None
    lengths = {name: len(np.atleast_1d(arrays[name])) for name in rows}
    for name, length in lengths.items():
        if length != lengths[rows[0]]:
            problem = f"'{name}' has {length} rows where '{rows[0]}' has {lengths[rows[0]]}."
            raise fault(path, None, problem)
    return arrays


def feature_matrix(path: Path, values: NDArray[Any], n_columns: int) -> NDArray[np.float32]:
    """A matrix of finite float32 with so many columns, (n, n_columns)."""
    if values.ndim != 2 or values.shape[1] != n_columns or values.dtype.kind not in "fiu":
        raise fault(
            path,
            None,
            f"the features must be a matrix of numbers with {n_columns} columns, "
            f"got {values.dtype} of shape {values.shape}.",
        )
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise fault(path, None, f"row {row}, column {column} of the features is not finite.")
    return matrix


def strings(values: NDArray[Any]) -> pl.Series:
    """An array of text as a series, (n,)."""
    return pl.Series(values.tolist(), dtype=pl.String)
