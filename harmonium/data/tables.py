"""Tables in files: CSV, TSV or Parquet, plain or gzipped.

Polars reads well-formed delimited text, and the csv module anything else: a row that cannot be used
is left out, and its line number is reported.
"""

import csv
import gzip
import io
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from harmonium.arrays import Ids, Places
from harmonium.data.coded import Coded, CodedRows, encode
from harmonium.errors import DataError, nearest_names
from harmonium.files import PathLike
from harmonium.spreadsheets import unguarded_series

Roles: TypeAlias = Mapping[str, str | int]  # role → its column, by name or by position from 0
ChooseRoles: TypeAlias = Callable[[list[str], int], Roles]
"""The columns' names (none without a header) and their number → the roles."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
USUAL_NAMES = {  # role → usual column names, the likeliest first
    "item": (
        "path",
        "file",
        "filename",
        "file_name",
        "location",
        "item",
        "clip",
        "track",
        "track_id",
        "song",
        "id",
    ),
    "artist": ("artist", "artist_name", "performer"),
    "title": ("title", "track_title", "song_title", "track_name", "name"),
    "tag": ("tag", "tags", "label", "genre", "mood"),
    "user": ("user", "person", "listener", "user_id", "username", "who", "annotator"),
}

WRONG_NUMBER = "a wrong number of fields"
NOT_UTF8 = "bytes that are not UTF-8"
MAX_COLUMNS = 20  # a message lists at most this many columns
_POSSIBLE_DELIMITERS = (",", ";", "\t", "|")
MAX_UNPACKED = 1 << 30  # bytes; a small gzipped file may unpack to any size
_HEAD_BYTES = 1 << 16  # bytes in which the first line must end
_FIRST_ROWS = 100  # rows that show the number of columns without a header
_SURROGATE = re.compile("[\ud800-\udfff]")  # what replaces a byte that is not UTF-8
_PARQUET_TO_IPC = """import sys, polars
polars.read_parquet(sys.stdin.buffer.read()).write_ipc(sys.stdout.buffer)"""
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_rows(
    path: PathLike,
    roles: Roles | ChooseRoles,
    *,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
) -> CodedRows:
    """The columns that `roles` asks for, from a CSV, TSV or Parquet file, plain or gzipped.

    Parameters
    ----------
    header : whether the first row names the columns; without a header, columns are given by
        position, and by default are the first ones in the order of the roles
    delimiter : by default the extension's usual one, or else one found in the first line
    quote : the character around fields that hold a delimiter or a line break; None if there is none
    encoding : the encoding of a text file
    """
    file = Path(path).expanduser()
    source = file.name
    suffix = (Path(file.stem) if file.suffix.lower() == ".gz" else file).suffix.lower()
    if suffix in PARQUET and delimiter is None:
        return _rows_of_parquet(file, roles, source=source)
    data = _utf8(_unpacked(file), encoding, source=source)
    delimiter = delimiter or _recognised_delimiter(data, DELIMITERS.get(suffix))
    if delimiter is None:
        known = ", ".join([*DELIMITERS, *PARQUET])
        raise DataError(
            f"Neither the extension of {source} nor its first line shows its format. The known "
            f"extensions are {known}, each also with .gz. If it is a text file, name its delimiter "
            "(--delimiter; in Python, delimiter=)."
        )
    _check_signs(delimiter, quote)
    return _TextTable(data, delimiter, quote, header=header, source=source).rows(roles)


def _check_signs(delimiter: str, quote: str | None) -> None:
    if not _is_sign(delimiter):
        raise DataError(f"'delimiter' must be one ASCII character, got {delimiter!r}.")
    if quote is not None and not _is_sign(quote):
        raise DataError(f"'quote' must be one ASCII character, or None, got {quote!r}.")
    if quote == delimiter:
        raise DataError(f"'quote' and 'delimiter' must differ, got {quote!r} for both.")


def _is_sign(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in "\r\n"


def _unpacked(file: Path) -> bytes:
    """A file's content, unpacked if it is gzipped, which the content decides, not the name."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {file}.{_hint_for_missing(file)}") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None
    if data.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(io.BytesIO(data)) as packed:
                data = packed.read(MAX_UNPACKED + 1)
        except (EOFError, OSError, zlib.error) as error:
            problem = "cut short" if isinstance(error, EOFError) else "damaged"
            raise DataError(
                f"{file.name} is {problem} gzip data ({error}). Get the file again."
            ) from None
        if len(data) > MAX_UNPACKED:
            raise DataError(
                f"{file.name} unpacks to more than {MAX_UNPACKED >> 20:,} MiB. If that is right, "
                "unpack it first (gunzip), and name the unpacked file."
            )
    if not data:
        raise DataError(f"{file.name} is empty (0 bytes).")
    return data


def _hint_for_missing(file: Path) -> str:
    """What may help to find a file."""
    if not file.parent.is_dir():
        return f" Its folder {file.parent} does not exist either."
    near = nearest_names(file.name, [other.name for other in file.parent.iterdir()])
    return f" The closest name in that folder is {near[0]!r}." if near else ""


def _recognised_delimiter(data: bytes, usual: str | None) -> str | None:
    """The usual delimiter, unless the first line lacks it and has another."""
    text = data[:_HEAD_BYTES].decode(errors="replace")
    for delimiter in filter(None, (usual, *_POSSIBLE_DELIMITERS)):
        with suppress(StopIteration, csv.Error):  # reading it will say what is wrong
            first_row = next(csv.reader(io.StringIO(text), delimiter=delimiter))
            if len(first_row) > 1:
                return delimiter
    return usual


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


def _rows_of_parquet(file: Path, roles: Roles | ChooseRoles, *, source: str) -> CodedRows:
    frame = read_parquet(file)
    names = frame.columns
    if callable(roles):
        roles = roles(names, len(names))
    position_of = find_columns(roles, names, source=source)
    if not frame.height:
        raise DataError(f"{source} has columns but no row.")
    columns = {role: frame[names[position]] for role, position in position_of.items()}
    return CodedRows.from_columns(columns, source=source, unit="row", locate=lambda rows: rows + 1)


def read_parquet(file: Path) -> pl.DataFrame:
    """The table in a Parquet file, plain or gzipped; a DataError if it is damaged."""
    data = _unpacked(file)
    reason = "it lacks the mark at either end"
    if data.startswith(b"PAR1") and data.endswith(b"PAR1"):
        # In another process, since some damage makes polars ask for so much memory that it aborts.
        command = [sys.executable, "-P", "-c", _PARQUET_TO_IPC]
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if not done.returncode:
            return pl.read_ipc(io.BytesIO(done.stdout))
        last_line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = last_line if done.returncode == 1 else "it cannot be decoded"
    raise DataError(f"{file.name} is not a complete Parquet file: {reason}.")


def find_columns(
    roles: Roles, names: Sequence[str], *, source: str, header: bool = True
) -> dict[str, int]:
    """The position of each role's column among the names of all columns.

    A role looked up by its own name, such as "user", may also have one of its `USUAL_NAMES`.
    Without a header, the file has no names.
    """
    names = [name.strip() for name in names]
    position_of: dict[str, int] = {}
    for role, wanted in roles.items():
        if isinstance(wanted, int):
            position = wanted
            if isinstance(wanted, bool) or not 0 <= wanted < len(names):
                raise DataError(
                    f"'{role}' must be a column's name or its position, here from 0 to "
                    f"{len(names) - 1}: got {wanted}. The columns of {source}: {_listed(names)}."
                )
        else:
            name = wanted.strip()
            if wanted == role and wanted not in names:
                name = _usual_name(role, names, roles) or name
            position = _position_by_name(role, name, names, source=source, header=header)
        for other, other_position in position_of.items():
            if other_position == position:
                raise DataError(
                    f"'{other}' and '{role}' are both column {position} of {source}, "
                    f"{names[position]!r}. Name another column for one of them."
                )
        position_of[role] = position
    return position_of


def _usual_name(role: str, names: Sequence[str], roles: Roles) -> str | None:
    """The likeliest column of a role, which no other role is to have; None if there is none."""
    spelled = {name.casefold(): name for name in reversed(names)}
    for usual in USUAL_NAMES.get(role, ()):
        if usual in spelled and usual not in roles.values():
            return spelled[usual]
    return None


def _position_by_name(
    role: str, wanted: str, names: Sequence[str], *, source: str, header: bool
) -> int:
    matches = [i for i, name in enumerate(names) if name == wanted]
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
    near = nearest_names(wanted, names)
    use = "" if wanted == role else f" for '{role}'"
    guess = f" The nearest is {near[0]!r}." if near else ""
    if len(names) == 1:
        guess += " If that is not one column, name the delimiter (--delimiter; delimiter=)."
    raise DataError(
        f"{source} has no column {wanted!r}{use}. Its columns: {_listed(names)}.{guess} "
        f"Name the right one (--{role}; in Python, {role}=), or say that the file has no header "
        "(--no-header; header=False)."
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:MAX_COLUMNS])
    if len(names) > MAX_COLUMNS:
        listed += f" and {len(names) - MAX_COLUMNS:,} more"
    return listed


class _TextTable:
    """A UTF-8 text that knows where its rows are."""

    def __init__(
        self, data: bytes, delimiter: str, quote: str | None, *, header: bool, source: str
    ) -> None:
        if data.isspace() or not data:
            raise DataError(f"{source} is empty: it holds only white space.")
        if b"\n" not in data:
            data = data.replace(b"\r", b"\n")
        if data.endswith((b"\n\n", b"\n\r\n")):
            data = data.rstrip(b"\r\n")
        self.data = data
        self.delimiter = delimiter
        self.quote = quote
        self.header = header
        self.source = source
        self.n_fields = 0
        self.position_of: Mapping[str, int] = {}  # role -> the position of its column
        self.left_out: dict[str, list[int]] = {WRONG_NUMBER: [], NOT_UTF8: []}  # reason -> lines

    def rows(self, roles: Roles | ChooseRoles) -> CodedRows:
        """The columns that the roles ask for."""
        names, roles = self._names(roles)
        self.n_fields = len(names)
        self.position_of = find_columns(roles, names, source=self.source, header=self.header)
        values_of = self._read_fast() or self._read_with_care()
        left_out = {reason: lines for reason, lines in self.left_out.items() if lines}
        rows = CodedRows(
            columns={role: _without_guards(encode(values)) for role, values in values_of.items()},
            source=self.source,
            unit="line",
            locate=self._lines_of,
            left_out=left_out,
        )
        if not len(rows) and not left_out:
            raise DataError(f"{self.source} has a header but no row below it.")
        return rows

    def _names(self, roles: Roles | ChooseRoles) -> tuple[list[str], Roles]:
        """The names of the columns, and the roles.

        Without a header, the names are the roles in their order, then positions, as many as the
        first rows usually have fields.
        """
        records = self._records()
        if self.header:
            _, names = next(records)
            if _SURROGATE.search("".join(names)):
                raise DataError(
                    f"The header of {self.source} has bytes that are not UTF-8. "
                    "Name the file's encoding, for example encoding='latin-1'."
                )
            if callable(roles):
                roles = roles(names, len(names))
            return names, roles
        widths = Counter(len(fields) for _, fields in islice(records, _FIRST_ROWS))
        n_fields, _ = widths.most_common(1)[0]
        if callable(roles):
            roles = roles([], n_fields)
        names = [*roles, *(str(i) for i in range(len(roles), n_fields))]
        return names[:n_fields], roles

    def _read_fast(self) -> dict[str, pl.Series] | None:
        """The columns by role, or None if anything is wrong.

        Rows that are too long are an error of polars; rows that are too short, and blank lines,
        have a null in the last column, which is therefore read too.
        """
        if not self._may_be_read_fast():
            return None
        try:
            frame = pl.read_csv(
                self.data,
                has_header=False,
                skip_rows=int(self.header),
                separator=self.delimiter,
                quote_char=self.quote,
                schema={str(position): pl.String for position in range(self.n_fields)},
                columns=sorted({*self.position_of.values(), self.n_fields - 1}),
            )
        except pl.exceptions.PolarsError:
            return None
        if any(column.null_count() for column in frame):
            return None
        return {role: frame[str(position)] for role, position in self.position_of.items()}

    def _may_be_read_fast(self) -> bool:
        """Whether the text has nothing that polars would misread."""
        data = self.data
        has_lone_return = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
        if has_lone_return or data[:1] in (b"\n", b"\r"):
            return False
        delimiter = self.delimiter.encode()
        if data.endswith(delimiter):  # polars does not notice extra fields
            return False
        quote = (self.quote or "").encode()
        if quote and quote in data:
            return _is_well_quoted(data, quote, delimiter)
        return True

    def _read_with_care(self) -> dict[str, pl.Series]:
        """The good rows as columns by role; the others' lines go to `left_out`."""
        columns: dict[str, list[str]] = {role: [] for role in self.position_of}
        for line, fields in self._body():
            fault = self._fault(fields)
            if fault:
                self.left_out[fault].append(line)
                continue
            for role, position in self.position_of.items():
                columns[role].append(fields[position])
        return {role: pl.Series(values, dtype=pl.String) for role, values in columns.items()}

    def _lines_of(self, rows: Places) -> Ids:
        """The lines in which these rows begin; the rows are ascending."""
        good = (line for line, fields in self._body() if not self._fault(fields))
        return np.fromiter(islice(good, int(rows[-1]) + 1), np.int64)[rows]

    def _fault(self, fields: list[str]) -> str | None:
        if len(fields) != self.n_fields:
            return WRONG_NUMBER
        return NOT_UTF8 if _SURROGATE.search("".join(fields)) else None

    def _body(self) -> Iterator[tuple[int, list[str]]]:
        return islice(self._records(), int(self.header), None)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line each record starts in and its fields; blank lines are skipped."""
        lines = io.TextIOWrapper(
            io.BytesIO(self.data), encoding="utf-8", errors="surrogateescape", newline="\n"
        )
        reader = csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            line = 1 + reader.line_num
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                reason = str(error)
                if reason.startswith("new-line"):
                    reason = "a carriage return in a field that is not quoted"
                raise DataError(
                    f"{self.source} cannot be parsed from line {line} on: {reason}. "
                    "Correct that row, or pass quote=None if quotes are ordinary characters."
                ) from None
            if fields:
                yield line, fields


def _without_guards(column: Coded) -> Coded:
    """The column without the apostrophes that keep spreadsheets from running cells."""
    names = unguarded_series(column.names)
    if (names == column.names).all():
        return column
    unguarded = encode(names)
    return Coded(unguarded.codes[column.codes], unguarded.names)


def _is_well_quoted(data: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Whether quotes only open fields, close them, or are doubled inside them.

    Counted from 0, every even quote must then come after a delimiter, a line break or a quote, and
    every odd one before one of these.
    """
    text = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(text == quote[0])
    if len(quotes) % 2:
        return False
    before_even = text[quotes[::2] - 1]
    after_odd = text[quotes[1::2] + 1]
    opened = np.isin(before_even, list(quote + delimiter + b"\n"))
    closed = np.isin(after_odd, list(quote + delimiter + b"\r\n"))
    return bool(opened.all()) and bool(closed.all())
