"""Which columns of a table of tags hold what: as they are named, or as their names suggest."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from harmonium.data.files import DELIMITERS, PARQUET
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
_HEAD = 1 << 16  # bytes in which the header must be


def column_names(path: Path, *, delimiter: str | None, encoding: str) -> list[str]:
    """The names in the first line of a table, or of a Parquet file's columns."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head.startswith(b"PAR1"):
            return list(pl.read_parquet_schema(path))
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as unpacked:
                head = unpacked.read(_HEAD)
    except (OSError, EOFError, pl.exceptions.PolarsError):
        return []  # reading it says what is wrong
    text = head.decode(encoding, errors="replace").removeprefix("\ufeff")
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    separator = delimiter or DELIMITERS.get(suffix.lower(), ",")
    if suffix.lower() in PARQUET or len(separator) != 1:
        return []
    return [name.strip() for name in next(csv.reader(io.StringIO(text), delimiter=separator), [])]


def choose_columns(
    named: Mapping[str, str | int | None], names: Sequence[str], *, source: str, has_person: bool
) -> dict[str, str | int]:
    """Role → column, for all roles that are named or can be told from the names of the columns.

    Parameters
    ----------
    named : role ("item", "artist", "title", "tag", "user", "value") → what a person named, or None
    names : of the columns of the file; empty where it has no header
    source : the file's name, for messages
    has_person : whether it is said otherwise whose tags they are

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
        return {role: position for position, role in enumerate(roles)}
    _check(chosen, names, source, has_person)
    return chosen


def _check(
    chosen: Mapping[str, str | int], names: Sequence[str], source: str, has_person: bool
) -> None:
    there = f" Its columns: {', '.join(map(repr, names))}." if names else ""
    if "item" not in chosen and "title" not in chosen:
        raise DataError(
            f"It is not clear which column of {source} says what is tagged.{there} Name it with "
            "--item (paths or numbers), or with --title and --artist."
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
