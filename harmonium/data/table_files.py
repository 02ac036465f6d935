"""A file to rows: what kind it is, its bytes, and its columns."""

import csv
import gzip
import io
import os
import zlib
from pathlib import Path
from typing import TypeAlias

import polars as pl

from harmonium.data.coded_rows import CodedRows, find_columns
from harmonium.data.delimited_text import ChooseRoles, Layout, Roles, rows_of_text
from harmonium.errors import DataError, nearest_names

PathLike: TypeAlias = str | os.PathLike[str]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
_LIKELY = (",", ";", "\t", "|")  # what may separate columns if none is named
_HEAD = 1 << 16  # bytes in which the first line must be
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
    suffix = _suffix(file)
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
    layout = Layout(delimiter or _usual_delimiter(suffix, source=source), quote, header)
    if layout.quote == layout.delimiter:
        raise DataError(f"'quote' and 'delimiter' must differ, got {quote!r} for both.")
    return rows_of_text(_utf8(data, encoding, source=source), layout, roles, source=source)


def _suffix(file: Path) -> str:
    """The extension that tells the format: ".csv" of "tags.CSV.gz"."""
    name = Path(file.stem) if file.suffix.lower() == ".gz" else file
    return name.suffix.lower()


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
        return f" Its folder {file.parent} is not there either."
    names = [other.name for other in file.parent.iterdir()]
    near = nearest_names(file.name, names)
    return f" The nearest name in that folder is {near[0]!r}." if near else ""


def _unpacked(data: bytes, *, source: str) -> bytes:
    """The bytes inside, if they are gzipped; by content, as names can mislead."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        unpacked = gzip.decompress(data)
    except EOFError:
        raise DataError(
            f"{source} is cut short: its gzip data ends too early. Get the file again."
        ) from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{source} is damaged gzip data ({error}). Get the file again.") from None
    if not unpacked:
        raise DataError(f"{source} is empty (0 bytes once unpacked).")
    return unpacked


def _recognised_delimiter(data: bytes, usual: str | None) -> str | None:
    """The usual one, if it is in the first line; else one that is; else the usual one."""
    text = data[:_HEAD].decode(errors="replace")
    candidates = _LIKELY if usual is None else (usual, *_LIKELY)
    return next((one for one in candidates if _parts_first_line(text, one)), usual)


def _parts_first_line(text: str, delimiter: str) -> bool:
    try:
        return len(next(csv.reader(io.StringIO(text), delimiter=delimiter))) > 1
    except (StopIteration, csv.Error):
        return False  # reading it says what is wrong


def _usual_delimiter(suffix: str, *, source: str) -> str:
    if suffix not in DELIMITERS:
        known = ", ".join([*DELIMITERS, *PARQUET])
        raise DataError(
            f"The extension of {source} does not show its format; known are {known}, each also "
            "with .gz. If it is a text file, name its delimiter (--delimiter; in Python, "
            "delimiter=)."
        )
    return DELIMITERS[suffix]


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
