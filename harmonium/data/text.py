"""Delimited text to rows: polars reads good files, the csv module finds out what is wrong."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.columns import find_columns
from harmonium.data.rows import Rows
from harmonium.errors import DataError

WRONG_NUMBER = "a wrong number of fields"
NOT_UTF8 = "bytes that are not UTF-8"
_BATCH = 100_000  # rows held as Python strings at a time
_FIRST_ROWS = 100  # rows looked at to find the number of columns where there is no header


@dataclass(frozen=True)
class Layout:
    """How a text file is written: delimiter, quote character or None, whether it has a header."""

    delimiter: str
    quote: str | None
    header: bool


def rows_of_text(
    data: bytes, layout: Layout, roles: Mapping[str, str | int], *, source: str
) -> Rows:
    """The columns that `roles` asks for, from the bytes of a file in UTF-8."""
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n")
    if data.isspace():
        raise DataError(f"{source} is empty: it holds nothing but white space.")
    names = _column_names(data, layout, roles, source=source)
    where = find_columns(roles, names, source=source, header=layout.header)
    frame = _read_fast(data, layout, where, n_fields=len(names))
    if frame is None:
        return _read_with_account(data, layout, where, n_fields=len(names), source=source)

    def line_of(rows: NDArray[np.intp]) -> NDArray[np.int64]:
        lines = [line for line, _ in _records(data, layout, source=source)]
        return np.array(lines[int(layout.header) :])[rows]

    return Rows(frame.to_dict(), source, "line", line_of)


def _column_names(
    data: bytes, layout: Layout, roles: Mapping[str, str | int], *, source: str
) -> list[str]:
    """The header; without one, the roles in their order, then positions.

    The number of columns of a file without a header is the usual one among its first rows.
    """
    records = _records(data, layout, source=source)
    if layout.header:
        _, header = next(records)
        if not _is_utf8(header):
            raise DataError(
                f"The header of {source} has bytes that are not UTF-8. "
                "Name the file's encoding, for example encoding='latin-1'."
            )
        return header
    widths = Counter(len(fields) for _, fields in islice(records, _FIRST_ROWS))
    n_fields = widths.most_common(1)[0][0]
    return [*roles, *(str(i) for i in range(len(roles), n_fields))][:n_fields]


def _records(data: bytes, layout: Layout, *, source: str) -> Iterator[tuple[int, list[str]]]:
    """The line each record starts in, from 1, and its fields; blank lines are passed over."""
    lines = io.TextIOWrapper(
        io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n"
    )
    reader = csv.reader(
        lines,
        delimiter=layout.delimiter,
        quotechar=layout.quote,
        quoting=csv.QUOTE_MINIMAL if layout.quote else csv.QUOTE_NONE,
        strict=True,
    )
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{source}, the row that begins in line {line}: {error}. Mend that row"
                + (
                    ", or pass quote=None if quotes are ordinary characters."
                    if layout.quote
                    else "."
                )
            ) from None
        if fields:
            yield line, fields


def _is_utf8(fields: list[str]) -> bool:
    """Whether the fields came from valid UTF-8: other bytes have become lone surrogates."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_fast(
    data: bytes, layout: Layout, where: Mapping[str, int], *, n_fields: int
) -> pl.DataFrame | None:
    """The columns by role, or None if anything about the file is not as it should be.

    Rows that are too long are an error of polars; rows that are too short, and blank lines, have a
    null in the last column, which is therefore read too.
    """
    starts_blank = data[:1] in (b"\n", b"\r")
    if starts_blank or (layout.quote and not _well_quoted(data, layout.quote, layout.delimiter)):
        return None
    names = [str(position) for position in range(n_fields)]
    wanted = sorted({*where.values(), n_fields - 1})
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            skip_rows=int(layout.header),
            separator=layout.delimiter,
            quote_char=layout.quote,
            schema=dict.fromkeys(names, pl.String),
            columns=wanted,
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema=dict.fromkeys(where, pl.String))
    except pl.exceptions.PolarsError:
        return None
    if any(column.null_count() for column in frame):
        return None
    return frame.select(pl.col(names[position]).alias(role) for role, position in where.items())


def _well_quoted(data: bytes, quote: str, delimiter: str) -> bool:
    """Whether quotes only open fields, close them, or stand doubled inside them.

    Counted from 0, every even quote must then come after a delimiter, a line break or a quote, and
    every odd one before one of these.
    """
    if quote.encode() not in data:
        return True
    text = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    at = np.flatnonzero(text == ord(quote))
    borders = np.zeros(256, dtype=np.bool_)
    borders[[ord(quote), ord(delimiter), ord("\n")]] = True
    opens = borders[text[at[::2] - 1]]
    borders[ord("\r")] = True
    closes = borders[text[at[1::2] + 1]]
    return len(at) % 2 == 0 and bool(opens.all() and closes.all())


def _read_with_account(
    data: bytes, layout: Layout, where: Mapping[str, int], *, n_fields: int, source: str
) -> Rows:
    """The good rows, row by row, and the line of each row that is not."""
    records = _records(data, layout, source=source)
    if layout.header:
        next(records)
    left_out: dict[str, list[int]] = {WRONG_NUMBER: [], NOT_UTF8: []}
    parts, lines = [pl.DataFrame(schema=dict.fromkeys(where, pl.String))], []
    while batch := list(islice(records, _BATCH)):
        good: list[list[str]] = []
        for line, fields in batch:
            if len(fields) != n_fields:
                left_out[WRONG_NUMBER].append(line)
            elif not _is_utf8(fields):
                left_out[NOT_UTF8].append(line)
            else:
                good.append(fields)
                lines.append(line)
        columns = {role: [fields[at] for fields in good] for role, at in where.items()}
        parts.append(pl.DataFrame(columns, schema=dict.fromkeys(where, pl.String)))
    line_of = np.array(lines, dtype=np.int64)
    return Rows(
        pl.concat(parts).to_dict(),
        source,
        "line",
        lambda rows: line_of[rows],
        {reason: found for reason, found in left_out.items() if found},
    )
