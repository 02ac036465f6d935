"""Which columns of a table of tags hold what: as they are named, or as their names suggest."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from harmonium.data.table_files import DELIMITERS, PARQUET
from harmonium.errors import DataError

USUAL = {
    "item": (
        *("path", "file", "filename", "file_name", "location"),
        *("item", "track", "track_id", "clip", "song", "id"),
    ),
    "artist": ("artist", "artist_name", "performer"),
    "title": ("title", "track_title", "song_title", "track_name", "name"),
    "tag": ("tag", "tags", "label", "genre", "mood"),
    "user": ("user", "person", "listener", "user_id", "username", "who", "annotator"),
}
"""Role → names that columns usually have, the likeliest first."""
DELIMITING = (",", ";", "\t", "|")
"""What may part the columns of a text file, where nothing is said of it."""
_HEAD = 1 << 16  # bytes in which the first line must be


@dataclass(frozen=True)
class FirstLine:
    """What can be told of a table before it is read."""

    cells: list[str]
    """Of the first line, or the names of a Parquet file's columns; empty if there are none."""
    delimiter: str | None
    """Of a text file: as it was named, or as the line suggests; None if neither says."""


def first_line(path: Path, *, delimiter: str | None, encoding: str) -> FirstLine:
    """The first line of a table, and what parts its columns.

    Raises
    ------
    DataError
        where it is no table of text, or in another encoding
    """
    nothing = FirstLine([], delimiter)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head.startswith(b"PAR1"):
            return FirstLine(list(pl.read_parquet_schema(path)), delimiter)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as unpacked:
                head = unpacked.read(_HEAD)
    except (OSError, EOFError, pl.exceptions.PolarsError):
        return nothing  # reading it says what is wrong
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if suffix.lower() in PARQUET or (delimiter is not None and len(delimiter) != 1):
        return nothing
    text = _text(head, encoding, source=path.name)
    usual = DELIMITERS.get(suffix.lower())
    chosen = delimiter or _told_delimiter(text, usual)
    return FirstLine(_cells(text, chosen or ","), chosen)


def _text(head: bytes, encoding: str, *, source: str) -> str:
    """The beginning of a text file; what cannot be decoded is replaced."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and "16" not in encoding:
        raise DataError(f"{source} is in UTF-16, not in {encoding}: pass --encoding utf-16.")
    try:
        text = head.decode(encoding, errors="replace").removeprefix("\ufeff")
    except LookupError:
        raise DataError(
            f"'encoding' must be one that Python knows, as utf-8, cp1252 or utf-16: got "
            f"{encoding!r}."
        ) from None
    if "\0" in text:
        raise DataError(f"{source} is not a table: neither text (CSV, TSV) nor Parquet.")
    return text


def _told_delimiter(text: str, usual: str | None) -> str | None:
    """The usual one, if it is in the first line; else one that is; else the usual one."""
    candidates = DELIMITING if usual is None else (usual, *DELIMITING)
    return next((one for one in candidates if len(_cells(text, one)) > 1), usual)


def _cells(text: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader(io.StringIO(text), delimiter=delimiter))]
    except (StopIteration, csv.Error, ValueError):
        return []  # reading it says what is wrong


def choose_columns(
    named: Mapping[str, str | int | None],
    names: Sequence[str],
    *,
    source: str,
    has_person: bool,
    n_columns: int = 0,
) -> dict[str, str | int]:
    """Role → column, for all roles that are named or can be told from the names of the columns.

    Parameters
    ----------
    named : role ("item", "artist", "title", "tag", "user", "value") → what a person named, or None
    names : of the columns of the file; empty where it has no header
    source : the file's name, for messages
    has_person : whether it is said otherwise whose tags they are
    n_columns : how many there are, where that is known

    Raises
    ------
    DataError
        where it is not clear what is tagged, with what, or by whom
    """
    chosen = {role: column for role, column in named.items() if column is not None}
    by_names = "item" in chosen or "title" in chosen
    folded = {name.strip().casefold(): name for name in reversed(names)}
    for role, usual in USUAL.items():
        guessed = next((folded[name] for name in usual if name in folded), None)
        taken = guessed in chosen.values() or (role in ("item", "title", "artist") and by_names)
        if role == "user" and has_person:
            continue
        if role not in chosen and guessed is not None and not taken:
            chosen[role] = guessed
    if not names and not chosen:
        roles = ("item", "tag") if has_person else ("user", "item", "tag")
        if 0 < n_columns < len(roles):
            raise DataError(
                f"{source} has {n_columns} columns, and without a header they must be "
                f"{', '.join(roles)}. --item 0 --tag 1 says otherwise, counted from 0; --person "
                "says whose tags they are where there is no such column."
            )
        return {role: position for position, role in enumerate(roles)}
    _check_clear(chosen, names, source, has_person)
    return chosen


def _check_clear(
    chosen: Mapping[str, str | int], names: Sequence[str], source: str, has_person: bool
) -> None:
    there = f" Its columns: {', '.join(map(repr, names))}." if names else ""
    if "item" not in chosen and "title" not in chosen:
        raise DataError(
            f"It is not clear which column of {source} says what is tagged.{there} Name it with "
            "--item (paths or numbers), or with --title and --artist."
            + (" If its first line is no header, pass --no-header." if names else "")
        )
    if "tag" not in chosen:
        raise DataError(
            f"It is not clear which column of {source} holds the tags.{there} Name it with --tag."
        )
    if "user" not in chosen and not has_person:
        raise DataError(
            f"It is not clear whose tags {source} holds.{there} Name the column of people with "
            "--user, or the one person with --person."
        )
