"""Importing the tags that a table says people gave to tracks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from harmonium.data.tables import read_rows
from harmonium.library.imports.columns import choose_columns
from harmonium.library.imports.rows import ImportReport, import_rows
from harmonium.library.library import Library


def import_table(
    library: Library,
    path: str | Path,
    *,
    item: str | int | None = None,
    artist: str | int | None = None,
    title: str | int | None = None,
    tag: str | int | None = None,
    user: str | int | None = None,
    value: str | int | None = None,
    person: str | None = None,
    default_person: str = "me",
    aliases: Mapping[str, str] | None = None,
    header: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that a table says people gave to tracks.

    Parameters
    ----------
    path : a .csv, .tsv or .parquet file, also with .gz
    item, artist, title, tag, user, value : columns, by name or by position from 0; by default
        recognised by their names. Columns such as genre, mood and instrument hold tags of these
        kinds. `value` is positive if the tag fits, otherwise 0 or less.
    person : whose tags they are; by default, the column of users says so
    default_person : whose tags they are if neither says so
    aliases : spelling → tag, see `harmonium.data.read_aliases`
    header, encoding : how a text file is written, as in `harmonium.data.read_triples`
    delimiter : what separates its columns; by default recognised from its first line
    split : what separates tags in one cell; an empty text: nothing does. By default, cells are
        split where that is safe, see `harmonium.data.tag_names`.
    replace : whether to withdraw what these people said before and is not in the table
    dry_run : whether to report what would be imported, and import nothing

    Raises a `DataError` if a column is not clear or the file cannot be used.
    """
    file = Path(path).expanduser()
    named = {"item": item, "artist": artist, "title": title, "tag": tag, "value": value}
    if person is None or user is not None:
        named["user"] = user
    choose = partial(choose_columns, named, ("item", "tag"), file.name)
    rows = read_rows(file, choose, header=header, delimiter=delimiter, encoding=encoding)
    frame = pl.DataFrame({role: rows.values(role) for role in rows.columns})
    left_out = Counter({reason: len(lines) for reason, lines in rows.left_out.items()})
    report = ImportReport(n_rows=len(frame) + left_out.total(), left_out=left_out)
    return import_rows(
        library,
        frame,
        report,
        file.name,
        person=person or default_person,
        aliases=aliases,
        split=split,
        replace=replace,
        dry_run=dry_run,
    )
