"""A table in a file to rows: CSV, TSV or Parquet, plain or gzipped.

Of delimited text, polars reads what is well formed and the csv module the rest, piece by piece: a
row that cannot be used is left out, and its line is known.
"""

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Ids
from harmonium.data.codes import CodedRows, encode_batches
from harmonium.errors import DataError, nearest_names

PathLike: TypeAlias = str | os.PathLike[str]
Roles: TypeAlias = Mapping[str, str | int]
"""Role → its column, by name or by position from 0."""
ChooseRoles: TypeAlias = Callable[[list[str], int], Roles]
"""Names of the columns, none without a header, and how many columns there are → the roles."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
USUAL_NAMES = {
    "item": (
        *("path", "file", "filename", "file_name", "location"),
        *("item", "clip", "track", "track_id", "song", "id"),
    ),
    "artist": ("artist", "artist_name", "performer"),
    "title": ("title", "track_title", "song_title", "track_name", "name"),
    "tag": ("tag", "tags", "label", "genre", "mood"),
    "user": ("user", "person", "listener", "user_id", "username", "who", "annotator"),
}
"""Role → names that columns usually have, the likeliest first."""

PIECE_BYTES = 1 << 24
WRONG_NUMBER = "a wrong number of fields"
NOT_UTF8 = "bytes that are not UTF-8"
MAX_COLUMNS = 20
"""A message lists at most this many columns."""
_POSSIBLE_DELIMITERS = (",", ";", "\t", "|")
_HEAD_BYTES = 1 << 16  # the first line must be within these
_BATCH_ROWS = 100_000  # held as Python strings at a time
_FIRST_ROWS = 100  # tell the number of columns where there is no header
_UTF8_MARK, _UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


def read_rows(
    path: PathLike,
    roles: Roles | ChooseRoles,
    *,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    any_delimiter: bool = False,
) -> CodedRows:
    """The columns that `roles` asks for, from a CSV, TSV or Parquet file, plain or gzipped.

    any_delimiter : whether to recognise a delimiter that is not named from the first line
    """
    file = Path(path).expanduser()
    source = file.name
    suffix = (Path(file.stem) if file.suffix.lower() == ".gz" else file).suffix.lower()
    data = _unpacked(_bytes(file), source=source)
    if suffix in PARQUET and delimiter is None:
        return _rows_of_parquet(data, roles, source=source)
    if any_delimiter and delimiter is None:
        data, encoding = _utf8(data, encoding, source=source), "utf-8"
        delimiter = _recognised_delimiter(data, DELIMITERS.get(suffix))
    for name, sign in {"delimiter": delimiter, "quote": quote}.items():
        if sign is not None and (len(sign) != 1 or not sign.isascii() or sign in "\r\n"):
            none = ", or None" if name == "quote" else ""
            raise DataError(f"'{name}' must be one ASCII character{none}, got {sign!r}.")
    if delimiter is None and suffix not in DELIMITERS:
        known = ", ".join([*DELIMITERS, *PARQUET])
        raise DataError(
            f"The extension of {source} does not show its format; known are {known}, each also "
            "with .gz. If it is a text file, name its delimiter (--delimiter; in Python, "
            "delimiter=)."
        )
    delimiter = delimiter or DELIMITERS[suffix]
    if quote == delimiter:
        raise DataError(f"'quote' and 'delimiter' must differ, got {quote!r} for both.")
    text = _utf8(data, encoding, source=source)
    return _rows_of_text(text, roles, delimiter, quote, header=header, source=source)


def _bytes(file: Path) -> bytes:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {file}.{_nearest_file(file)}") from None
    except IsADirectoryError:
        raise DataError(f"{file} is a folder. Name a file in it.") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None
    if not data:
        raise DataError(f"{file} is empty (0 bytes).")
    return data


def _nearest_file(file: Path) -> str:
    if not file.parent.is_dir():
        return f" Its folder {file.parent} does not exist either."
    near = nearest_names(file.name, [other.name for other in file.parent.iterdir()])
    return f" The nearest name in that folder is {near[0]!r}." if near else ""


def _unpacked(data: bytes, *, source: str) -> bytes:
    """The bytes inside, if they are gzipped; by content, as names can mislead."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        unpacked = gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        problem = "cut short" if isinstance(error, EOFError) else "damaged"
        raise DataError(f"{source} is {problem} gzip data ({error}). Get the file again.") from None
    if not unpacked:
        raise DataError(f"{source} is empty (0 bytes once unpacked).")
    return unpacked


def _recognised_delimiter(data: bytes, usual: str | None) -> str | None:
    """The usual one, if it is in the first line; else one that is; else the usual one."""
    text = data[:_HEAD_BYTES].decode(errors="replace")
    candidates = _POSSIBLE_DELIMITERS if usual is None else (usual, *_POSSIBLE_DELIMITERS)
    return next((one for one in candidates if _splits_first_line(text, one)), usual)


def _splits_first_line(text: str, delimiter: str) -> bool:
    try:
        return len(next(csv.reader(io.StringIO(text), delimiter=delimiter))) > 1
    except (StopIteration, csv.Error):
        return False  # reading it says what is wrong


def _utf8(data: bytes, encoding: str, *, source: str) -> bytes:
    """The text as UTF-8 without a byte-order mark."""
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode()
        except LookupError:
            raise DataError(
                f"'encoding' must be one that Python knows, got {encoding!r}."
            ) from None
        except UnicodeError as error:
            raise DataError(f"{source} is not in the encoding {encoding!r}: {error}.") from None
    if data.startswith(_UTF16_MARKS):
        raise DataError(
            f"{source} is in UTF-16, not in UTF-8. Pass encoding='utf-16' (--encoding utf-16)."
        )
    if data.startswith(b"PAR1"):
        raise DataError(f"{source} is Parquet, not text. Rename it to end in .parquet.")
    if b"\0" in data[:4096]:
        raise DataError(f"{source} is not a text file: it has zero bytes. Unpack or convert it.")
    return data.removeprefix(_UTF8_MARK)


def _rows_of_parquet(data: bytes, roles: Roles | ChooseRoles, *, source: str) -> CodedRows:
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(data)))
        roles = roles(names, len(names)) if callable(roles) else roles
        where = find_columns(roles, names, source=source)
        frame = pl.read_parquet(io.BytesIO(data), columns=[names[at] for at in where.values()])
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{source} is not a whole Parquet file: {reason}.") from None
    if not frame.height:
        raise DataError(f"{source} has columns but no row.")
    columns = {role: frame[names[at]] for role, at in where.items()}
    return CodedRows.from_columns(columns, source=source, unit="row", locate=lambda rows: rows + 1)


def find_columns(
    roles: Roles, names: Sequence[str], *, source: str, header: bool = True
) -> dict[str, int]:
    """The position of each role's column among the names of all columns.

    A role that is to be found by its own name, such as "user", may have another of `USUAL_NAMES`.
    Without a header, names do not stand in the file.
    """
    roles = {role: _usual(role, wanted, names, roles) for role, wanted in roles.items()}
    found: dict[str, int] = {}
    for role, wanted in roles.items():
        if isinstance(wanted, int):
            position = _at_position(role, wanted, names, source=source)
        else:
            position = _by_name(role, wanted, names, source=source, header=header)
        twin = next((other for other, at in found.items() if at == position), None)
        if twin is not None:
            raise DataError(
                f"'{twin}' and '{role}' are both column {position} of {source}, "
                f"{names[position]!r}. Name another column for one of them."
            )
        found[role] = position
    return found


def _usual(role: str, wanted: str | int, names: Sequence[str], roles: Roles) -> str | int:
    """The name that a column has instead of that of its role; else what was wanted."""
    folded = {name.strip().casefold(): name for name in reversed(names)}
    if wanted != role or any(name.strip() == wanted for name in names):
        return wanted
    others = (name for name in USUAL_NAMES.get(role, ()) if name not in roles.values())
    return next((folded[name] for name in others if name in folded), wanted)


def _at_position(role: str, position: int, names: Sequence[str], *, source: str) -> int:
    if isinstance(position, bool) or not 0 <= position < len(names):
        raise DataError(
            f"'{role}' must be a column's name or its position, here from 0 to {len(names) - 1}: "
            f"got {position}. The columns of {source}: {_listed(names)}."
        )
    return position


def _by_name(role: str, wanted: str, names: Sequence[str], *, source: str, header: bool) -> int:
    stripped = [name.strip() for name in names]
    exact = [i for i, name in enumerate(names) if name == wanted]
    matches = exact or [i for i, name in enumerate(stripped) if name == wanted.strip()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"{source} has {len(matches)} columns named {wanted!r}. Give '{role}' by position: "
            f"{' or '.join(str(i) for i in matches)}."
        )
    if not header:
        raise DataError(
            f"{source} is read without a header, so '{role}' must be a position from 0 to "
            f"{len(names) - 1}, got {wanted!r}."
        )
    near = nearest_names(wanted, stripped)
    use = "" if wanted == role else f" for '{role}'"
    guess = f" The nearest is {near[0]!r}." if near else ""
    if len(names) == 1:
        guess += " If that is not one column, name the delimiter (--delimiter; delimiter=)."
    raise DataError(
        f"{source} has no column {wanted!r}{use}. Its columns: {_listed(stripped)}.{guess} "
        f"Name the right one (--{role}; in Python, {role}=), or say that the file has no header "
        "(--no-header; header=False)."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_COLUMNS:,} more" if len(names) > MAX_COLUMNS else ""
    return ", ".join(repr(name) for name in names[:MAX_COLUMNS]) + more


def _rows_of_text(
    data: bytes,
    roles: Roles | ChooseRoles,
    delimiter: str,
    quote: str | None,
    *,
    header: bool,
    source: str,
) -> CodedRows:
    """The columns that `roles` asks for, from the bytes of a file in UTF-8."""
    if data.isspace() or not data:
        raise DataError(f"{source} is empty: it holds nothing but white space.")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n")
    reader = _TextReader(data, delimiter, quote, header, source)
    names, roles = reader.read_header(roles)
    reader.n_fields = len(names)
    reader.where = find_columns(roles, names, source=source, header=header)
    columns = encode_batches(reader.batches, list(reader.where))
    left_out = {reason: lines for reason, lines in reader.left_out.items() if lines}
    rows = CodedRows(columns, source, "line", reader.lines_of, left_out)
    if not len(rows) and not left_out:
        raise DataError(f"{source} has a header but no row below it.")
    return rows


@dataclass
class _TextReader:
    """Reads a text piece by piece, and knows where its rows are.

    Attributes
    ----------
    quote : the character around fields that hold a delimiter or a line break, or None
    where : role -> the position of its column
    left_out : reason -> the lines of the rows that were not read
    """

    data: bytes
    delimiter: str
    quote: str | None
    header: bool
    source: str
    n_fields: int = 0
    where: Mapping[str, int] = field(default_factory=dict)
    left_out: dict[str, list[int]] = field(default_factory=dict)
    _read: list[tuple[slice, int]] = field(default_factory=list)  # pieces, and the rows of each

    def read_header(self, roles: Roles | ChooseRoles) -> tuple[list[str], Roles]:
        """The names of the columns, and the roles.

        Without a header, the names are the roles in their order, then positions, as many as the
        first rows usually have fields.
        """
        found = self._records(slice(0, len(self.data)))
        if self.header:
            _, header = next(found)
            if not _is_utf8(header):
                raise DataError(
                    f"The header of {self.source} has bytes that are not UTF-8. "
                    "Name the file's encoding, for example encoding='latin-1'."
                )
            return header, roles(header, len(header)) if callable(roles) else roles
        widths = Counter(len(fields) for _, fields in islice(found, _FIRST_ROWS))
        n_fields = widths.most_common(1)[0][0]
        roles = roles([], n_fields) if callable(roles) else roles
        return [*roles, *(str(i) for i in range(len(roles), n_fields))][:n_fields], roles

    def batches(self) -> Iterator[dict[str, pl.Series]]:
        """The good rows, as columns by role."""
        self._read = []
        self.left_out = {WRONG_NUMBER: [], NOT_UTF8: []}
        regular = self._is_well_quoted()
        for piece in self._pieces() if regular else [slice(0, len(self.data))]:
            n_rows = 0
            fast = self._read_fast(piece) if regular else None
            for columns in [fast] if fast is not None else self._read_with_care(piece):
                n_rows += len(next(iter(columns.values())))
                yield columns
            self._read.append((piece, n_rows))

    def lines_of(self, rows: NDArray[np.intp]) -> Ids:
        """The lines in which these rows begin, ascending as the rows."""
        lines = []
        start = 0
        for piece, n_rows in self._read:
            inside = rows[(rows >= start) & (rows < start + n_rows)] - start
            if len(inside):
                good = [line for line, fields in self._body(piece) if not self._fault(fields)]
                lines.append(np.array(good)[inside])
            start += n_rows
        return np.concatenate(lines)

    def _read_fast(self, piece: slice) -> dict[str, pl.Series] | None:
        """The columns by role, or None if anything in the piece is not as it should be.

        Rows that are too long are an error of polars; rows that are too short, and blank lines,
        have a null in the last column, which is therefore read too.
        """
        data = self.data[piece]
        lone_return = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
        if lone_return or data[:1] in (b"\n", b"\r"):
            return None
        if data.endswith(self.delimiter.encode()):  # where polars sees no field too many
            return None
        try:
            frame = pl.read_csv(
                data,
                has_header=False,
                skip_rows=int(self.header and piece.start == 0),
                separator=self.delimiter,
                quote_char=self.quote,
                schema={str(position): pl.String for position in range(self.n_fields)},
                columns=sorted({*self.where.values(), self.n_fields - 1}),
            )
        except pl.exceptions.PolarsError:
            return None
        if any(column.null_count() for column in frame):
            return None
        return {role: frame[str(position)] for role, position in self.where.items()}

    def _read_with_care(self, piece: slice) -> Iterator[dict[str, pl.Series]]:
        """The good rows as columns by role; the lines of the others go to `left_out`."""
        found = self._body(piece)
        while batch := list(islice(found, _BATCH_ROWS)):
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

    def _fault(self, fields: list[str]) -> str | None:
        if len(fields) != self.n_fields:
            return WRONG_NUMBER
        return None if _is_utf8(fields) else NOT_UTF8

    def _body(self, piece: slice) -> Iterator[tuple[int, list[str]]]:
        """The records of a piece, without the header."""
        return islice(self._records(piece), int(self.header and piece.start == 0), None)

    def _records(self, piece: slice) -> Iterator[tuple[int, list[str]]]:
        """The line each record starts in and its fields; blank lines are skipped."""
        first_line = 1 + self.data.count(b"\n", 0, piece.start)
        lines = io.TextIOWrapper(
            io.BytesIO(self.data[piece]), encoding="utf-8", errors="surrogateescape", newline="\n"
        )
        reader = csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            line = first_line + reader.line_num
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                reason = str(error)
                if reason.startswith("new-line"):
                    reason = "a carriage return in a field that is not quoted"
                raise DataError(
                    f"{self.source} cannot be understood from the row that begins in line {line} "
                    f"on: {reason}. Correct that row, or pass quote=None if quotes are ordinary "
                    "characters."
                ) from None
            if fields:
                yield line, fields

    def _pieces(self) -> Iterator[slice]:
        """Pieces of whole records; a line break after an odd number of quotes ends none."""
        data, mark = self.data, (self.quote or "").encode()
        quoted = bool(mark) and mark in data
        start = 0
        while start < len(data):
            end, step, n_quotes = start, PIECE_BYTES, 0
            while end == start or (n_quotes % 2 and end < len(data)):
                last, end = end, data.find(b"\n", end + step) + 1 or len(data)
                n_quotes += data.count(mark, last, end) if quoted else 0
                step = 0
            yield slice(start, end)
            start = end

    def _is_well_quoted(self) -> bool:
        """Whether quotes only open fields, close them, or stand doubled inside them.

        Counted from 0, every even quote must then come after a delimiter, a line break or a quote,
        and every odd one before one of these.
        """
        if self.quote is None or self.quote.encode() not in self.data:
            return True
        quote, delimiter = self.quote.encode(), self.delimiter.encode()
        text = np.frombuffer(self.data, dtype=np.uint8)
        opens, closes = np.zeros(256, dtype=np.bool_), np.zeros(256, dtype=np.bool_)
        opens[list(quote + delimiter + b"\n")] = True
        closes[list(quote + delimiter + b"\r\n")] = True
        n = 0  # quotes so far
        for start in range(0, len(text), PIECE_BYTES):
            at = start + np.flatnonzero(text[start : start + PIECE_BYTES] == quote[0])
            first, second = at[n % 2 :: 2], at[1 - n % 2 :: 2]
            n += len(at)
            opened = opens[text[np.maximum(first - 1, 0)]]
            closed = closes[text[np.minimum(second + 1, len(text) - 1)]]
            if not (opened | (first == 0)).all() or not (closed | (second == len(text) - 1)).all():
                return False
        return n % 2 == 0


def _is_utf8(fields: list[str]) -> bool:
    """Whether the fields came from valid UTF-8: other bytes have become lone surrogates."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True
