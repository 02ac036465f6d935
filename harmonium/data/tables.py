"""Tables: columns of names as integer codes, and files of CSV, TSV or Parquet, plain or gzipped.

Each distinct name is handled once; rows are integers.

Polars reads well-formed delimited text, and the csv module anything else: a row that cannot be used
is left out, and its line number is reported.
"""

import csv
import gzip
import io
import re
import subprocess
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonium.arrays import Codes, Ids, Mask, Places
from harmonium.errors import DataError, DataWarning, nearest_names
from harmonium.files import PathLike

Column: TypeAlias = Sequence[Any] | NDArray[Any] | pl.Series
Roles: TypeAlias = Mapping[str, str | int]  # role → its column, by name or by position from 0
ChooseRoles: TypeAlias = Callable[[list[str], int], Roles]
"""The columns' names (none without a header) and their number → the roles."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
USUAL_NAMES = {  # role → usual column names, the likeliest first
    "item": (
        *("path", "file", "filename", "file_name", "location"),
        *("item", "clip", "track", "track_id", "song", "id"),
    ),
    "artist": ("artist", "artist_name", "performer"),
    "title": ("title", "track_title", "song_title", "track_name", "name"),
    "tag": ("tag", "tags", "label", "genre", "mood"),
    "user": ("user", "person", "listener", "user_id", "username", "who", "annotator"),
}

WRONG_NUMBER = "a wrong number of fields"
NOT_UTF8 = "bytes that are not UTF-8"
MAX_PLACES = 5  # a warning names the places of this many rows for each reason
MAX_COLUMNS = 20  # a message lists at most this many columns
_POSSIBLE_DELIMITERS = (",", ";", "\t", "|")
_HEAD_BYTES = 1 << 16  # bytes in which the first line must end
_FIRST_ROWS = 100  # rows that show the number of columns without a header
_SURROGATE = re.compile("[\ud800-\udfff]")  # what replaces a byte that is not UTF-8
_PARQUET_TO_IPC = """import sys, polars
polars.read_parquet(sys.stdin.buffer.read()).write_ipc(sys.stdout.buffer)"""
_UTF8_MARK, _UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class Coded(NamedTuple):
    """A column: codes (n,) and the distinct names they stand for, in order of first appearance."""

    codes: Codes
    names: pl.Series


def encode(values: pl.Series) -> Coded:
    """The codes of a column of strings without nulls, (n,)."""
    names = values.unique(maintain_order=True)
    return Coded(values.cast(pl.Enum(names)).to_physical().cast(pl.Int32).to_numpy(), names)


def compact(column: Coded) -> Coded:
    """The same rows without names that none of them uses, in the same order."""
    used = np.bincount(column.codes, minlength=len(column.names)) > 0
    if used.all():
        return column
    new_code = (np.cumsum(used) - 1).astype(np.int32)
    return Coded(new_code[column.codes], column.names.filter(pl.Series(used)))


def distinct_rows(*columns: Codes) -> list[Codes]:
    """Each distinct row of the columns once, ascending."""
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(sizes) > np.iinfo(np.int64).max:
        frame = pl.DataFrame([pl.Series(str(i), column) for i, column in enumerate(columns)])
        return [column.to_numpy() for column in frame.unique().sort(pl.all())]
    key = np.ravel_multi_index(columns, sizes)  # so that one integer sort is enough
    key.sort()
    key = key[np.diff(key, prepend=-1) != 0]
    return [column.astype(np.int32) for column in np.unravel_index(key, sizes)]


@dataclass(frozen=True)
class CodedRows:
    """Rows of a file or of sequences, one coded column per role."""

    columns: Mapping[str, Coded]  # role ("user", "item", "tag", "count", "alias") -> its column
    source: str = "the columns"  # where the rows come from, for messages
    unit: str = "position"  # what `locate` counts in: "line", "row" or "position"
    locate: Callable[[Places], NDArray[Any]] = lambda rows: rows  # rows -> their places
    left_out: Mapping[str, list[int]] = field(default_factory=dict)  # reason -> places, so far

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column], **attributes: Any) -> "CodedRows":
        """Rows from sequences of equal length, by role, with the attributes named above."""
        strings = {
            role: as_strings(values, name=role, fractions=role == "count")
            for role, values in columns.items()
        }
        lengths = {role: len(values) for role, values in strings.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{length:,} for '{role}'" for role, length in lengths.items())
            raise DataError(f"The columns must be of equal length, got {given}.")
        return cls({role: encode(values) for role, values in strings.items()}, **attributes)

    def values(self, role: str) -> pl.Series:
        """The column of a role as strings, (n,)."""
        codes, names = self.columns[role]
        return names.gather(codes)

    def mapping(self, role: str, other: str) -> dict[str, str]:
        """The other role's value for each value of a role; there must be only one."""
        table: dict[str, str] = {}
        for key, value in zip(self.values(role), self.values(other), strict=True):
            if table.setdefault(key, value) != value:
                raise DataError(
                    f"{self.source} has two values of '{other}' for {key!r}: {table[key]!r} and "
                    f"{value!r}. Keep one of them."
                )
        return table

    def respelled(self, role: str, spell: Callable[[pl.Series], pl.Series]) -> "CodedRows":
        """The rows with a role's names respelt; names that become equal are merged."""
        codes, names = self.columns[role]
        new_code, names = encode(spell(names))
        return replace(self, columns={**self.columns, role: Coded(new_code[codes], names)})

    def usable(self, faults: Mapping[str, tuple[str, Mask]] | None = None) -> "CodedRows":
        """The rows without an empty name and without these faults, each a role and its bad names.

        One warning counts the rows left out by reason and says where the first are; if no row is
        left, that is an error.
        """
        empty = {
            f"an empty {role}": (role, (column.names.str.strip_chars() == "").to_numpy())
            for role, column in self.columns.items()
        }
        good = np.ones(len(self), dtype=np.bool_)
        left_out = dict(self.left_out)
        for reason, (role, bad_names) in {**empty, **(faults or {})}.items():
            if bad_names.any():
                bad = np.flatnonzero(bad_names[self.columns[role].codes] & good)
                good[bad] = False
                left_out |= {reason: self.locate(bad).tolist()} if len(bad) else {}
        if not left_out:
            return self
        n_good, n_bad = int(good.sum()), sum(map(len, left_out.values()))
        account = ", ".join(self._account(*reason) for reason in left_out.items())
        if not n_good:
            raise DataError(f"None of the {n_bad:,} rows of {self.source} can be used: {account}.")
        verb = "was" if n_bad == 1 else "were"
        warnings.warn(
            f"{n_bad:,} of {n_bad + n_good:,} rows of {self.source} {verb} left out: {account}.",
            DataWarning,
            stacklevel=4,  # the caller of read_triples, Triples.from_columns and the like
        )
        kept = {
            role: compact(Coded(codes[good], names))
            for role, (codes, names) in self.columns.items()
        }
        return CodedRows(kept, self.source)

    def _account(self, reason: str, where: list[int]) -> str:
        """For example "2 with an empty tag (lines 5, 17)"."""
        shown = ", ".join(f"{number:,}" for number in where[:MAX_PLACES])
        more = f" and {len(where) - MAX_PLACES:,} more" if len(where) > MAX_PLACES else ""
        plural = "s" if len(where) > 1 else ""
        return f"{len(where):,} with {reason} ({self.unit}{plural} {shown}{more})"


def as_strings(values: Column, *, name: str, fractions: bool = False) -> pl.Series:
    """A column as strings, (n,): whole numbers are written out, missing values become ""."""
    # `fractions` lets numbers with a fraction through as well
    try:
        plain = isinstance(values, np.ndarray) and values.dtype.kind in "iufb"
        listed = values if plain or isinstance(values, pl.Series) else list(values)
        series = pl.Series(listed)
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"'{name}' must be one sequence of values of one type, got {type(values).__name__}: "
            f"{error}. Convert its values with str() first."
        ) from None
    if series.dtype.is_float() and not fractions:  # as pandas has whole numbers, some missing
        present = series.fill_nan(None)
        whole = present.cast(pl.Int64, strict=False)
        if whole.null_count() == present.null_count() and (whole == present).all():
            series = whole
    if series.dtype != pl.String:
        known = series.dtype.is_integer() or series.dtype in (pl.Categorical, pl.Enum, pl.Null)
        if not (known or (fractions and series.dtype.is_numeric())):
            raise DataError(
                f"'{name}' must hold strings or whole numbers, got {series.dtype}. "
                "Convert its values with str() first."
            )
        series = series.cast(pl.String)
    return series.fill_null("") if series.null_count() else series


def most_frequent(totals: NDArray[Any], names: pl.Series, n: int) -> Places:
    """Indices of the n largest totals, largest first; equal totals in alphabetical order."""
    if n < 1:
        raise DataError(f"'n', the number of tags to keep, must be at least 1, got {n}.")
    return np.lexsort((names.rank("ordinal").to_numpy(), -totals))[:n]


def positions(wanted: Column, names: pl.Series, *, name: str) -> Places:
    """The place of each wanted name in names, (n,)."""
    strings = as_strings(wanted, name=name)
    codes = codes_in(strings, names)
    if (codes < 0).any():
        missing = strings.filter(pl.Series(codes < 0)).unique(maintain_order=True)
        shown = ", ".join(repr(value) for value in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        raise DataError(f"'{name}' has names not among the {len(names):,} known: {shown}{more}.")
    return codes.astype(np.intp)


def codes_in(wanted: pl.Series, names: pl.Series) -> Codes:
    """The index of each wanted name in names, (n,), -1 for missing ones."""
    codes = pl.Series(np.arange(len(names), dtype=np.int32))
    return wanted.replace_strict(names, codes, default=-1, return_dtype=pl.Int32).to_numpy()


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
            f"Neither the extension of {source} nor its first line shows its format; known are "
            f"{known}, each also with .gz. If it is a text file, name its delimiter (--delimiter; "
            "in Python, delimiter=)."
        )
    for name, sign in {"delimiter": delimiter, "quote": quote}.items():
        if sign is not None and (len(sign) != 1 or not sign.isascii() or sign in "\r\n"):
            none = ", or None" if name == "quote" else ""
            raise DataError(f"'{name}' must be one ASCII character{none}, got {sign!r}.")
    if quote == delimiter:
        raise DataError(f"'quote' and 'delimiter' must differ, got {quote!r} for both.")
    return _TextTable(data, delimiter, quote, header=header, source=source).rows(roles)


def _unpacked(file: Path) -> bytes:
    """A file's content, unpacked if it is gzipped, which the content decides, not the name."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        hint = f" Its folder {file.parent} does not exist either."
        if file.parent.is_dir():
            near = nearest_names(file.name, [other.name for other in file.parent.iterdir()])
            hint = f" The closest name in that folder is {near[0]!r}." if near else ""
        raise DataError(f"There is no file {file}.{hint}") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            problem = "cut short" if isinstance(error, EOFError) else "damaged"
            raise DataError(
                f"{file.name} is {problem} gzip data ({error}). Get the file again."
            ) from None
    if not data:
        raise DataError(f"{file.name} is empty (0 bytes).")
    return data


def _recognised_delimiter(data: bytes, usual: str | None) -> str | None:
    """The usual delimiter, unless the first line lacks it and has another."""
    text = data[:_HEAD_BYTES].decode(errors="replace")
    for one in filter(None, (usual, *_POSSIBLE_DELIMITERS)):
        with suppress(StopIteration, csv.Error):  # reading it will say what is wrong
            if len(next(csv.reader(io.StringIO(text), delimiter=one))) > 1:
                return one
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
    roles = roles(names, len(names)) if callable(roles) else roles
    where = find_columns(roles, names, source=source)
    if not frame.height:
        raise DataError(f"{source} has columns but no row.")
    columns = {role: frame[names[at]] for role, at in where.items()}
    return CodedRows.from_columns(columns, source=source, unit="row", locate=lambda rows: rows + 1)


def read_parquet(file: Path) -> pl.DataFrame:
    """The table in a Parquet file, plain or gzipped; a DataError if it is damaged."""
    data, reason = _unpacked(file), "it lacks the mark at either end"
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
    found: dict[str, int] = {}
    for role, wanted in roles.items():
        if isinstance(wanted, int):
            if isinstance(wanted, bool) or not 0 <= wanted < len(names):
                raise DataError(
                    f"'{role}' must be a column's name or its position, here from 0 to "
                    f"{len(names) - 1}: got {wanted}. The columns of {source}: {_listed(names)}."
                )
            position = wanted
        else:
            usual = USUAL_NAMES.get(role, ()) if wanted == role and wanted not in names else ()
            folded = {name.casefold(): name for name in reversed(names)}
            others = (one for one in usual if one in folded and one not in roles.values())
            wanted = next((folded[one] for one in others), wanted.strip())
            position = _by_name(role, wanted, names, source=source, header=header)
        twin = next((other for other, at in found.items() if at == position), None)
        if twin is not None:
            raise DataError(
                f"'{twin}' and '{role}' are both column {position} of {source}, "
                f"{names[position]!r}. Name another column for one of them."
            )
        found[role] = position
    return found


def _by_name(role: str, wanted: str, names: Sequence[str], *, source: str, header: bool) -> int:
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
    more = f" and {len(names) - MAX_COLUMNS:,} more" if len(names) > MAX_COLUMNS else ""
    return ", ".join(repr(name) for name in names[:MAX_COLUMNS]) + more


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
        self.data, self.delimiter, self.quote = data, delimiter, quote
        self.header, self.source = header, source
        self.n_fields = 0
        self.where: Mapping[str, int] = {}  # role -> the position of its column
        self.left_out: dict[str, list[int]] = {WRONG_NUMBER: [], NOT_UTF8: []}  # reason -> lines

    def rows(self, roles: Roles | ChooseRoles) -> CodedRows:
        """The columns that the roles ask for."""
        names, roles = self._names(roles)
        self.n_fields = len(names)
        self.where = find_columns(roles, names, source=self.source, header=self.header)
        read = self._read_fast() or self._read_with_care()
        columns = {role: encode(values) for role, values in read.items()}
        left_out = {reason: lines for reason, lines in self.left_out.items() if lines}
        rows = CodedRows(columns, self.source, "line", self._lines_of, left_out)
        if not len(rows) and not left_out:
            raise DataError(f"{self.source} has a header but no row below it.")
        return rows

    def _names(self, roles: Roles | ChooseRoles) -> tuple[list[str], Roles]:
        """The names of the columns, and the roles.

        Without a header, the names are the roles in their order, then positions, as many as the
        first rows usually have fields.
        """
        found = self._records()
        if self.header:
            _, header = next(found)
            if _SURROGATE.search("".join(header)):
                raise DataError(
                    f"The header of {self.source} has bytes that are not UTF-8. "
                    "Name the file's encoding, for example encoding='latin-1'."
                )
            return header, roles(header, len(header)) if callable(roles) else roles
        widths = Counter(len(fields) for _, fields in islice(found, _FIRST_ROWS))
        n_fields = widths.most_common(1)[0][0]
        roles = roles([], n_fields) if callable(roles) else roles
        return [*roles, *(str(i) for i in range(len(roles), n_fields))][:n_fields], roles

    def _read_fast(self) -> dict[str, pl.Series] | None:
        """The columns by role, or None if anything is wrong.

        Rows that are too long are an error of polars; rows that are too short, and blank lines,
        have a null in the last column, which is therefore read too.
        """
        data, delimiter, quote = self.data, self.delimiter.encode(), (self.quote or "").encode()
        lone_return = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
        if lone_return or data[:1] in (b"\n", b"\r"):
            return None
        if data.endswith(delimiter):  # polars has not noticed extra fields
            return None
        if quote and quote in data and not _is_well_quoted(data, quote, delimiter):
            return None
        try:
            frame = pl.read_csv(
                data,
                has_header=False,
                skip_rows=int(self.header),
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

    def _read_with_care(self) -> dict[str, pl.Series]:
        """The good rows as columns by role; the others' lines go to `left_out`."""
        columns: dict[str, list[str]] = {role: [] for role in self.where}
        for line, fields in self._body():
            if fault := self._fault(fields):
                self.left_out[fault].append(line)
                continue
            for role, at in self.where.items():
                columns[role].append(fields[at])
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


def _is_well_quoted(data: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Whether quotes only open fields, close them, or are doubled inside them.

    Counted from 0, every even quote must then come after a delimiter, a line break or a quote, and
    every odd one before one of these.
    """
    text = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    at = np.flatnonzero(text == quote[0])
    before, after = text[at[::2] - 1], text[at[1::2] + 1]
    opened = np.isin(before, list(quote + delimiter + b"\n"))
    closed = np.isin(after, list(quote + delimiter + b"\r\n"))
    return len(at) % 2 == 0 and bool(opened.all()) and bool(closed.all())
