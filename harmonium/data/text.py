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

from harmonium.data.coding import Coded, encode_batches
from harmonium.data.columns import find_columns
from harmonium.data.rows import Rows
from harmonium.errors import DataError

WRONG_NUMBER = "a wrong number of fields"
NOT_UTF8 = "bytes that are not UTF-8"
_BATCH = 100_000  # rows held as Python strings at a time
_PIECE = 1 << 24  # bytes read at a time
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
    if not data or data.isspace():
        raise DataError(f"{source} is empty: it holds nothing but white space.")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n")
    names = _column_names(data, layout, roles, source=source)
    where = find_columns(roles, names, source=source, header=layout.header)
    columns = _read_fast(data, layout, where, n_fields=len(names))
    if columns is None:
        rows = _read_with_account(data, layout, where, n_fields=len(names), source=source)
    else:
        rows = Rows(columns, source, "line", lambda at: _lines(data, layout, source=source)[at])
    if not len(rows) and not rows.left_out:
        raise DataError(f"{source} has a header but no row below it.")
    return rows


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
            raise DataError(_unreadable(str(error), line, source=source)) from None
        if fields:
            yield line, fields


def _unreadable(reason: str, line: int, *, source: str) -> str:
    if reason.startswith("new-line"):
        reason = "a carriage return in a field that is not quoted"
    return (
        f"{source} cannot be understood from the row that begins in line {line} on: {reason}. Mend "
        "that row, or pass quote=None if quotes are ordinary characters."
    )


def _lines(data: bytes, layout: Layout, *, source: str) -> NDArray[np.int64]:
    """The line each row starts in, (n,)."""
    lines = [line for line, _ in _records(data, layout, source=source)]
    return np.array(lines[int(layout.header) :])


def _is_utf8(fields: list[str]) -> bool:
    """Whether the fields came from valid UTF-8: other bytes have become lone surrogates."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_fast(
    data: bytes, layout: Layout, where: Mapping[str, int], *, n_fields: int
) -> dict[str, Coded] | None:
    """The coded columns by role, or None if anything in the file is not as it should be."""
    quote = layout.quote.encode() if layout.quote is not None else None
    if quote is not None and quote not in data:
        quote = None
    if data[:1] in (b"\n", b"\r") or _has_lone_carriage_return(data):
        return None
    if quote is not None and not _well_quoted(data, quote, layout.delimiter.encode()):
        return None

    def batches() -> Iterator[dict[str, pl.Series]]:
        for i, piece in enumerate(_pieces(data, quote)):
            header = layout.header and i == 0
            yield _read_piece(piece, layout, where, n_fields=n_fields, header=header)

    try:
        return encode_batches(batches, list(where))
    except (_Irregular, pl.exceptions.PolarsError):
        return None


def _has_lone_carriage_return(data: bytes) -> bool:
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def _pieces(data: bytes, quote: bytes | None) -> Iterator[bytes]:
    """The text in pieces of whole rows; a line break after an odd number of quotes ends no row."""

    def odd(start: int, end: int) -> bool:
        return quote is not None and data.count(quote, start, end) % 2 == 1

    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        inside = odd(start, end)
        while inside and end < len(data):
            last, end = end, data.find(b"\n", end) + 1 or len(data)
            inside ^= odd(last, end)
        yield data[start:end]
        start = end


def _read_piece(
    piece: bytes, layout: Layout, where: Mapping[str, int], *, n_fields: int, header: bool
) -> dict[str, pl.Series]:
    """The columns by role.

    Rows that are too long are an error of polars; rows that are too short, and blank lines, have a
    null in the last column, which is therefore read too.
    """
    frame = pl.read_csv(
        piece,
        has_header=False,
        skip_rows=int(header),
        separator=layout.delimiter,
        quote_char=layout.quote,
        schema={str(position): pl.String for position in range(n_fields)},
        columns=sorted({*where.values(), n_fields - 1}),
    )
    if any(column.null_count() for column in frame):
        raise _Irregular
    return {role: frame[str(position)] for role, position in where.items()}


class _Irregular(Exception):
    """A row is too short, or a field is empty."""


def _well_quoted(data: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Whether quotes only open fields, close them, or stand doubled inside them.

    Counted from 0, every even quote must then come after a delimiter, a line break or a quote, and
    every odd one before one of these.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    opens, closes = np.zeros(256, dtype=np.bool_), np.zeros(256, dtype=np.bool_)
    opens[list(quote + delimiter + b"\n")] = True
    closes[list(quote + delimiter + b"\r\n")] = True
    n = 0  # quotes so far
    for start in range(0, len(text), _PIECE):
        at = start + np.flatnonzero(text[start : start + _PIECE] == quote[0])
        first, second = at[n % 2 :: 2], at[1 - n % 2 :: 2]
        n += len(at)
        opened = opens[text[np.maximum(first - 1, 0)]]
        closed = closes[text[np.minimum(second + 1, len(text) - 1)]]
        if not (opened | (first == 0)).all() or not (closed | (second == len(text) - 1)).all():
            return False
    return n % 2 == 0


def _read_with_account(
    data: bytes, layout: Layout, where: Mapping[str, int], *, n_fields: int, source: str
) -> Rows:
    """The good rows, row by row, and the line of each row that is not."""
    left_out: dict[str, list[int]] = {}
    lines: list[int] = []

    def good_rows() -> Iterator[dict[str, pl.Series]]:
        left_out.update({WRONG_NUMBER: [], NOT_UTF8: []})
        lines.clear()
        records = _records(data, layout, source=source)
        if layout.header:
            next(records)
        while batch := list(islice(records, _BATCH)):
            good = []
            for line, fields in batch:
                if len(fields) != n_fields:
                    left_out[WRONG_NUMBER].append(line)
                elif not _is_utf8(fields):
                    left_out[NOT_UTF8].append(line)
                else:
                    good.append(fields)
                    lines.append(line)
            yield {
                role: pl.Series([fields[at] for fields in good], dtype=pl.String)
                for role, at in where.items()
            }

    columns = encode_batches(good_rows, list(where))
    found = {reason: at for reason, at in left_out.items() if at}
    return Rows(columns, source, "line", lambda rows: np.array(lines)[rows], found)
