"""People's tags from elsewhere: tables of triples, and what the files say of themselves.

An import is one change: all of it is there or nothing, and it can be undone. What is in force
already is not added again, so that importing the same twice does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from harmonium.collection.filetags import READ_FIELDS, UndoRecord
from harmonium.collection.importing.columns import choose_columns, first_line
from harmonium.collection.library import Library
from harmonium.collection.store.schema import FOLDERS, change, written_file
from harmonium.collection.store.track_finder import TrackFinder
from harmonium.data.coded_rows import CodedRows
from harmonium.data.normalise import normalise_tag, speller
from harmonium.data.table_files import read_rows
from harmonium.errors import DataError, FileTagError, LibraryError

Spell = Callable[[pl.Series], pl.Series]
LONGEST = 100
"""Characters that a tag from a file may have; what is longer is a text and not a tag."""
_PARTED = ("grouping", "comment")  # fields that people fill with several tags in one value
_PARTS = re.compile(r"[,;\n]")


@dataclass
class ImportReport:
    """What was imported, and what was not."""

    change: int | None = None
    """The number of the change; None where nothing was new, or it was a trial."""
    n_rows: int = 0
    """Rows of the table, or tags in files."""
    n_matched: int = 0
    """Rows whose track was found."""
    n_added: int = 0
    """Opinions that are new, or were taken back; on a trial, how many could be new at most."""
    people: list[str] = field(default_factory=list)
    n_tracks: int = 0
    n_tags: int = 0
    unmatched: pl.DataFrame = field(default_factory=lambda: _no_unmatched())
    """What was not found: item, artist, title, reason and rows, the most frequent first."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason → rows that could not be used at all."""
    n_own: int = 0
    """Tags in files that Harmonium wrote there itself."""

    @property
    def complete(self) -> bool:
        """Whether every row could be used."""
        return not len(self.unmatched) and not self.left_out


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
    aliases: Mapping[str, str] | None = None,
    header: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that a table says people gave to tracks.

    Parameters
    ----------
    library : to import into
    path : a .csv, .tsv or .parquet file, also with .gz
    item, artist, title, tag, user, value : columns, by name or by position from 0; by default told
        from their names. `value` is positive where the tag fits and not where it does not.
    person : whose tags they are, if there is no column of users
    aliases : spelling → tag, see `harmonium.data.read_aliases`
    header, encoding : how a text file is written, as in `harmonium.data.read_triples`
    delimiter : what parts its columns; by default told from its first line
    replace : whether all that the same people said before and is not in the table is taken back
    dry_run : whether only to find out what would be imported

    Raises
    ------
    DataError
        where the file cannot be used, or it is not clear which column is what
    LibraryError
        where there is nothing in the library
    """
    file = Path(path).expanduser()
    named = {"item": item, "artist": artist, "title": title, "tag": tag, "user": user}
    first = first_line(file, delimiter=delimiter, encoding=encoding)
    has_person = person is not None and user is None
    roles = choose_columns(
        named | {"value": value},
        first.cells if header else [],
        source=file.name,
        has_person=has_person,
        n_columns=len(first.cells),
    )
    rows = read_rows(
        file, roles, header=header, delimiter=first.delimiter, quote='"', encoding=encoding
    )
    frame, report = _matched(library, rows, speller(normalise=True, aliases=aliases))
    if has_person:
        frame = frame.with_columns(person=pl.lit(person))
    kind = "person" if has_person else "import"
    return _store(library, frame, report, file.name, kind=kind, replace=replace, dry_run=dry_run)


def import_file_tags(
    library: Library,
    *,
    fields: Iterable[str] = ("genre",),
    person: str = "files",
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that the files had when they were last indexed.

    Values of grouping and comment are parted at commas, semicolons and line breaks. Left out is
    what is too long for a tag, and what Harmonium itself wrote into a file.

    Parameters
    ----------
    library : whose files
    fields : some of "genre", "mood", "grouping" and "comment"
    person : the name under which these tags are kept
    replace : whether tags under that name that are no longer in the files are taken back
    dry_run : whether only to find out what would be imported
    """
    wanted = list(fields)
    for name in wanted:
        if name not in READ_FIELDS:
            raise DataError(f"'fields' must be among {', '.join(READ_FIELDS)}, got {name!r}.")
    _check_not_empty(library)
    report = ImportReport()
    written = _written_tags(library)
    triples: list[tuple[int, str]] = []
    for track in library.tracks.all():
        for found in _tags_of(track.file_tags, wanted):
            report.n_rows += 1
            if found in written.get(track.id, ()):
                report.n_own += 1
            elif len(found) > LONGEST:
                reason = f"more than {LONGEST} characters"
                report.left_out[reason] = report.left_out.get(reason, 0) + 1
            else:
                triples.append((track.id, found))
    schema = {"track_id": pl.Int64, "tag": pl.String}
    frame = pl.DataFrame(triples, schema=schema, orient="row").with_columns(person=pl.lit(person))
    report.n_matched = len(frame)
    source = f"{', '.join(wanted)} of the files"
    return _store(library, frame, report, source, kind="file", replace=replace, dry_run=dry_run)


def _matched(library: Library, rows: CodedRows, spell: Spell) -> tuple[pl.DataFrame, ImportReport]:
    """The rows with their tracks, and the report of those that have none."""
    _check_not_empty(library)
    keys = [role for role in ("item", "artist", "title") if role in rows.columns]
    coded = pl.DataFrame({role: rows.columns[role].codes for role in rows.columns})
    distinct = coded.select(keys).unique(maintain_order=True)
    words = distinct.with_columns(
        rows.columns[role].names.gather(distinct[role]).alias(f"{role}_") for role in keys
    )
    with library.connect() as connection:
        finder = TrackFinder(connection, library.settings.get(FOLDERS, []))
    answers = [
        finder.match(**{role: row[f"{role}_"] for role in keys})
        for row in words.iter_rows(named=True)
    ]
    numbers = [answer if isinstance(answer, int) else None for answer in answers]
    reasons = [answer if isinstance(answer, str) else None for answer in answers]
    words = words.with_columns(
        pl.Series("track_id", numbers, pl.Int64), pl.Series("reason", reasons, pl.String)
    )
    found = words.select(*keys, "track_id")
    coded = coded.join(found, on=keys, how="left", maintain_order="left")
    report = ImportReport(n_rows=len(coded) + sum(map(len, rows.left_out.values())))
    report.left_out = {reason: len(where) for reason, where in rows.left_out.items()}
    report.unmatched = _unmatched(coded, words, keys)
    frame = _named(coded.drop_nulls("track_id"), rows, spell, report)
    report.n_matched = len(frame)
    return frame, report


def _named(
    coded: pl.DataFrame, rows: CodedRows, spell: Spell, report: ImportReport
) -> pl.DataFrame:
    """Codes to names, without rows that lack one."""
    columns = {"track_id": coded["track_id"]}
    columns["tag"] = spell(rows.columns["tag"].names).gather(coded["tag"])
    denied = rows.columns["tag"].names.str.contains(r"^\s*[-−]\s*\w").gather(coded["tag"])
    if "user" in rows.columns:
        users = rows.columns["user"].names.str.strip_chars()
        columns["person"] = users.gather(coded["user"])
    if "value" in rows.columns:
        columns["value"] = _signs(rows.columns["value"].names).gather(coded["value"])
    frame = pl.DataFrame(columns)
    if n_denied := int(denied.sum()):  # which would be read as the tag itself
        report.left_out["a minus before the tag (a column --value says that it does not fit)"] = (
            n_denied
        )
        frame = frame.filter(~denied)
    for role, column in (("tag", "tag"), ("user", "person"), ("value", "value")):
        if column in frame.columns:
            empty = frame[column].is_null() if column == "value" else frame[column] == ""
            if n_empty := int(empty.sum()):
                word = "a value that is no number" if column == "value" else f"an empty {role}"
                report.left_out[word] = n_empty
                frame = frame.filter(~empty)
    return frame


def _signs(values: pl.Series) -> pl.Series:
    """1 for positive numbers, -1 for others, null for what is none."""
    numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    signs = pl.select(pl.when(numbers > 0).then(1).when(numbers.is_not_nan()).then(-1)).to_series()
    return signs.cast(pl.Int8)


def _unmatched(coded: pl.DataFrame, words: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    lost = coded.filter(pl.col("track_id").is_null())
    counted = lost.group_by(keys, maintain_order=True).len("rows")
    counted = counted.join(words, on=keys, how="left", maintain_order="left")
    names = {
        role: pl.col(f"{role}_") if role in keys else pl.lit("")
        for role in ("item", "artist", "title")
    }
    return counted.select(
        *(name.alias(role) for role, name in names.items()),
        "reason",
        pl.col("rows").cast(pl.Int64),
    ).sort("rows", descending=True, maintain_order=True)


def _no_unmatched() -> pl.DataFrame:
    texts = dict.fromkeys(("item", "artist", "title", "reason"), pl.String)
    return pl.DataFrame(schema={**texts, "rows": pl.Int64})


def _store(
    library: Library,
    frame: pl.DataFrame,
    report: ImportReport,
    source: str,
    *,
    kind: str,
    replace: bool,
    dry_run: bool,
) -> ImportReport:
    """Add the rows as one change, unless it is a trial or there is nothing new."""
    report.people = sorted(frame["person"].unique()) if len(frame) else []
    report.n_tracks, report.n_tags = frame["track_id"].n_unique(), frame["tag"].n_unique()
    if dry_run:
        report.n_added = len(frame.unique(["person", "track_id", "tag"]))
        return report
    tags, tracks = _counted(report.n_matched, "tag"), _counted(report.n_tracks, "track")
    summary = f"{source}: {tags} of {tracks}"
    with library.begin() as connection:
        number = library.changes.begin("import", summary, connection=connection)
        report.n_added = library.opinions.add_triples(
            frame, change=number, kind=kind, replace=replace
        )
        if report.n_added:
            report.change = number
        else:  # nothing to undo, so nothing to tell of
            connection.execute(sa.delete(change).where(change.c.id == number))
    return report


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _check_not_empty(library: Library) -> None:
    if not library.tracks.count():
        raise LibraryError(
            f"The library {library.place} has no tracks yet. `harmonium index FOLDER` comes first."
        )


def _tags_of(file_tags: Mapping[str, list[str]], fields: Iterable[str]) -> Iterable[str]:
    """The tags in some fields, each once, in one spelling."""
    values = (
        part
        for name in fields
        for value in file_tags.get(name, [])
        for part in (_PARTS.split(value) if name in _PARTED else [value])
    )
    return dict.fromkeys(tag for tag in map(normalise_tag, values) if tag)


def _written_tags(library: Library) -> dict[int, set[str]]:
    """Track → the tags that Harmonium put into its file."""
    found: dict[int, set[str]] = {}
    query = sa.select(written_file.c.track_id, written_file.c.record)
    with library.connect() as connection:
        for track_id, record in connection.execute(query.where(written_file.c.track_id > 0)):
            try:
                fields = UndoRecord.from_bytes(bytes(record)).change.fields
            except FileTagError:
                continue  # of a newer version; nothing can be said of it
            added = (tag for one in fields for tag in set(one.after) - set(one.before))
            found.setdefault(track_id, set()).update(map(normalise_tag, added))
    return found
