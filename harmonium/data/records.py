"""Delimited text as bytes: its records, its quotes, and where it can be cut."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harmonium.errors import DataError

PIECE = 1 << 24  # bytes looked at at a time


@dataclass(frozen=True)
class Layout:
    """How a text file is written: delimiter, quote character or None, whether it has a header."""

    delimiter: str
    quote: str | None
    header: bool


def records(
    data: bytes, layout: Layout, *, source: str, first_line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """The line each record starts in and its fields; blank lines are passed over."""
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
        line = first_line + reader.line_num
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


def is_utf8(fields: list[str]) -> bool:
    """Whether the fields came from valid UTF-8: other bytes have become lone surrogates."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True


def has_lone_carriage_return(data: bytes) -> bool:
    """Whether a carriage return stands anywhere but before a line feed."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def pieces(data: bytes, quote: str | None) -> Iterator[slice]:
    """Pieces of whole records; a line break after an odd number of quotes ends none."""
    mark = quote.encode() if quote else None
    if mark is not None and mark not in data:
        mark = None

    def odd(start: int, end: int) -> bool:
        return mark is not None and data.count(mark, start, end) % 2 == 1

    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PIECE) + 1 or len(data)
        inside = odd(start, end)
        while inside and end < len(data):
            last, end = end, data.find(b"\n", end) + 1 or len(data)
            inside ^= odd(last, end)
        yield slice(start, end)
        start = end


def well_quoted(data: bytes, layout: Layout) -> bool:
    """Whether quotes only open fields, close them, or stand doubled inside them.

    Counted from 0, every even quote must then come after a delimiter, a line break or a quote, and
    every odd one before one of these.
    """
    if layout.quote is None or layout.quote.encode() not in data:
        return True
    quote, delimiter = layout.quote.encode(), layout.delimiter.encode()
    text = np.frombuffer(data, dtype=np.uint8)
    opens, closes = np.zeros(256, dtype=np.bool_), np.zeros(256, dtype=np.bool_)
    opens[list(quote + delimiter + b"\n")] = True
    closes[list(quote + delimiter + b"\r\n")] = True
    n = 0  # quotes so far
    for start in range(0, len(text), PIECE):
        at = start + np.flatnonzero(text[start : start + PIECE] == quote[0])
        first, second = at[n % 2 :: 2], at[1 - n % 2 :: 2]
        n += len(at)
        opened = opens[text[np.maximum(first - 1, 0)]]
        closed = closes[text[np.minimum(second + 1, len(text) - 1)]]
        if not (opened | (first == 0)).all() or not (closed | (second == len(text) - 1)).all():
            return False
    return n % 2 == 0
