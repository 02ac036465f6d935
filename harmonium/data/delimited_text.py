"""Delimited text to rows: polars reads what is well formed, the csv module the rest."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.data.coded_rows import CodedRows, find_columns
from harmonium.data.codes import encode_batches
from harmonium.errors import DataError

PIECE = 1 << 24  # bytes looked at at a time
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


Roles: TypeAlias = Mapping[str, str | int]
"""Role → its column, by name or by position from 0."""
ChooseRoles: TypeAlias = Callable[[list[str], int], Roles]
"""Names of the columns, none without a header, and how many columns there are → the roles."""


def rows_of_text(
    data: bytes, layout: Layout, roles: Roles | ChooseRoles, *, source: str
) -> CodedRows:
    """The columns that `roles` asks for, from the bytes of a file in UTF-8."""
    if not data or data.isspace():
        raise DataError(f"{source} is empty: it holds nothing but white space.")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n")
    names, roles = _column_names(data, layout, roles, source=source)
    where = find_columns(roles, names, source=source, header=layout.header)
    reader = _TextReader(data, layout, where, len(names), source)
    columns = encode_batches(reader.batches, list(where))
    left_out = {reason: lines for reason, lines in reader.left_out.items() if lines}
    rows = CodedRows(columns, source, "line", reader.lines_of, left_out)
    if not len(rows) and not left_out:
        raise DataError(f"{source} has a header but no row below it.")
    return rows


def _column_names(
    data: bytes, layout: Layout, roles: Roles | ChooseRoles, *, source: str
) -> tuple[list[str], Roles]:
    """The header, and the roles; without a header, the roles in their order, then positions.

    The number of columns of a file without a header is the usual one among its first rows.
    """
    found = records(data, layout, source=source)
    if layout.header:
        _, header = next(found)
        if not is_utf8(header):
            raise DataError(
                f"The header of {source} has bytes that are not UTF-8. "
                "Name the file's encoding, for example encoding='latin-1'."
            )
        return header, roles(header, len(header)) if callable(roles) else roles
    widths = Counter(len(fields) for _, fields in islice(found, _FIRST_ROWS))
    n_fields = widths.most_common(1)[0][0]
    roles = roles([], n_fields) if callable(roles) else roles
    return [*roles, *(str(i) for i in range(len(roles), n_fields))][:n_fields], roles


@dataclass
class _TextReader:
    """Reads a text piece by piece, and knows where its rows are.

    Attributes
    ----------
    where : role -> the position of its column
    left_out : reason -> the lines of the rows that were not read
    """

    data: bytes
    layout: Layout
    where: Mapping[str, int]
    n_fields: int
    source: str
    left_out: dict[str, list[int]] = field(default_factory=dict)
    _read: list[tuple[slice, int]] = field(default_factory=list)  # pieces, and the rows of each

    def batches(self) -> Iterator[dict[str, pl.Series]]:
        """The good rows, as columns by role."""
        self._read = []
        self.left_out = {WRONG_NUMBER: [], NOT_UTF8: []}
        regular = well_quoted(self.data, self.layout)
        whole = [slice(0, len(self.data))]
        for piece in pieces(self.data, self.layout.quote) if regular else whole:
            n_rows = 0
            fast = self._read_fast(piece) if regular else None
            for columns in [fast] if fast is not None else self._read_with_care(piece):
                n_rows += len(next(iter(columns.values())))
                yield columns
            self._read.append((piece, n_rows))

    def lines_of(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """The lines in which these rows begin, ascending as the rows."""
        lines = []
        start = 0
        for piece, n_rows in self._read:
            inside = rows[(rows >= start) & (rows < start + n_rows)] - start
            if len(inside):
                good = [line for line, fields in self._records(piece) if not self._fault(fields)]
                lines.append(np.array(good)[inside])
            start += n_rows
        return np.concatenate(lines)

    def _read_fast(self, piece: slice) -> dict[str, pl.Series] | None:
        """The columns by role, or None if anything in the piece is not as it should be.

        Rows that are too long are an error of polars; rows that are too short, and blank lines,
        have a null in the last column, which is therefore read too.
        """
        data, last = self.data[piece], self.n_fields - 1
        if data[:1] in (b"\n", b"\r") or has_lone_carriage_return(data):
            return None
        if data.endswith(self.layout.delimiter.encode()):  # where polars sees no field too many
            return None
        try:
            frame = pl.read_csv(
                data,
                has_header=False,
                skip_rows=int(self.layout.header and piece.start == 0),
                separator=self.layout.delimiter,
                quote_char=self.layout.quote,
                schema={str(position): pl.String for position in range(self.n_fields)},
                columns=sorted({*self.where.values(), last}),
            )
        except pl.exceptions.PolarsError:
            return None
        if any(column.null_count() for column in frame):
            return None
        return {role: frame[str(position)] for role, position in self.where.items()}

    def _read_with_care(self, piece: slice) -> Iterator[dict[str, pl.Series]]:
        """The good rows as columns by role; the lines of the others go to `left_out`."""
        found = self._records(piece)
        while batch := list(islice(found, _BATCH)):
            good = []
            for line, fields in batch:
                if fault := self._fault(fields):
                    self.left_out[fault].append(line)
                else:
                    good.append(fields)
            yield {
                role: pl.Series([fields[at] for fields in good], dtype=pl.String)
                for role, at in self.where.items()
            }

    def _records(self, piece: slice) -> Iterator[tuple[int, list[str]]]:
        """The records of a piece, without the header."""
        found = records(
            self.data[piece],
            self.layout,
            source=self.source,
            first_line=1 + self.data.count(b"\n", 0, piece.start),
        )
        return islice(found, int(self.layout.header and piece.start == 0), None)

    def _fault(self, fields: list[str]) -> str | None:
        if len(fields) != self.n_fields:
            return WRONG_NUMBER
        return None if is_utf8(fields) else NOT_UTF8


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
