"""Importing the tags that music files had when they were last indexed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import sqlalchemy as sa

from harmonium.data.splitting import TagSplitter
from harmonium.data.tag_names import normalise_tag
from harmonium.errors import DataError, FileTagError
from harmonium.library.filetags import FIELDS, FieldChange, UndoRecord, genre_names
from harmonium.library.filetags.contents import GIVEN
from harmonium.library.imports.rows import (
    MAX_TAG_LENGTH,
    ImportReport,
    check_tracks,
    note_split,
    store_rows,
)
from harmonium.library.library import Library
from harmonium.library.store.schema import change, written_file

SPLIT_FIELDS = dict.fromkeys(("grouping", "comment"), (",", ";", "\n"))
"""Fields in which people put several tags into one value → what separates them."""

Values = dict[str, list[str]]  # field → the values in a file


class _TagInFile(NamedTuple):
    spelling: str
    field: str


def import_file_tags(
    library: Library,
    *,
    fields: Iterable[str] = ("genre",),
    person: str = "files",
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that the files had when they were last indexed.

    A value that holds several tags is split. Texts too long for a tag are left out, and so is what
    Harmonium itself wrote into a file (unless that was undone) or gave to beets.

    Parameters
    ----------
    fields : some of "genre", "mood", "grouping" and "comment"
    person : the name under which these tags are kept
    split : what separates tags in one value; an empty text: nothing. By default, commas, semicolons
        and line breaks in grouping and comment; elsewhere see `harmonium.data.tag_names`.
    replace : whether to withdraw tags under that name that are no longer in the files
    dry_run : whether to report what would be imported, and import nothing
    """
    wanted = list(dict.fromkeys(fields))
    for name in wanted:
        if name not in FIELDS:
            raise DataError(f"'fields' must be among {', '.join(FIELDS)}, got {name!r}.")
    check_tracks(library)
    report = ImportReport()
    own = _tags_written(library)
    values: dict[int, Values] = {}
    for track in library.tracks.all():
        values[track.id] = _values_of(track.file_tags, wanted)
        given = {normalise_tag(tag) for tag in track.file_tags.get(GIVEN, ())}
        own[track.id] = own.get(track.id, set()) | given
    splitters = _splitters(library, values.values(), wanted, split)
    rows: list[tuple[int, str, str, str]] = []
    for track_id, values_of_track in values.items():
        for tag, cell in _tags_in_file(values_of_track, splitters, report).items():
            report.n_rows += 1
            if tag in own[track_id]:
                report.n_own += 1
            elif len(tag) > MAX_TAG_LENGTH:
                report.left_out[f"more than {MAX_TAG_LENGTH} characters"] += 1
            else:
                rows.append((track_id, tag, cell.spelling, cell.field))
    schema = {"track_id": pl.Int64, **dict.fromkeys(("tag", "spelling", "kind"), pl.String)}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(person=pl.lit(person))
    report.n_matched = len(frame)
    source = f"{', '.join(wanted)} of the files"
    return store_rows(library, frame, report, source, kind="file", replace=replace, dry_run=dry_run)


def _values_of(file_tags: Mapping[str, Sequence[str]], fields: Iterable[str]) -> Values:
    """The values of some fields of a file; the numbers of genres become names."""
    values = {name: list(file_tags.get(name, ())) for name in fields}
    if "genre" in values:
        values["genre"] = [genre for text in values["genre"] for genre in genre_names(text)]
    return values


def _splitters(
    library: Library,
    files: Collection[Values],
    fields: Iterable[str],
    separators: Sequence[str] | None,
) -> dict[str, TagSplitter]:
    """Field → what splits its values into tags."""
    known = library.opinions.tags()["tag"].to_list()
    splitters = {}
    for name in fields:
        texts = (text for values in files for text in values[name])
        usual = SPLIT_FIELDS.get(name)
        splitters[name] = TagSplitter(
            texts, known=known, separators=usual if separators is None else separators
        )
    return splitters


def _tags_in_file(
    values: Values, splitters: Mapping[str, TagSplitter], report: ImportReport
) -> dict[str, _TagInFile]:
    """Tag → how it is first spelt in a file, and where."""
    tags: dict[str, _TagInFile] = {}
    for field, texts in values.items():
        for text in texts:
            parts = splitters[field].split(text)
            note_split(report, text, parts)
            for part in parts:
                tags.setdefault(normalise_tag(part), _TagInFile(spelling=part, field=field))
    return tags


def _tags_written(library: Library) -> dict[int, set[str]]:
    """Track → the tags that Harmonium wrote to its file, without what was undone.

    A tag that an undo restores is Harmonium's only if it was before the undone change.
    """
    own: dict[int, set[str]] = {}
    own_before: dict[tuple[int, int], frozenset[str]] = {}  # of a change and a track
    query = (
        sa.select(written_file, change.c.undoes)
        .join_from(written_file, change, change.c.id == written_file.c.change_id)
        .where(written_file.c.track_id > 0)
        .order_by(written_file.c.id)
    )
    for row in library.fetch(query):
        try:
            fields = UndoRecord.from_bytes(bytes(row.record)).change.fields
        except FileTagError:
            continue  # from a newer version, which cannot be read
        tags = own.setdefault(row.track_id, set())
        own_before.setdefault((row.change_id, row.track_id), frozenset(tags))
        before = set(_tags_in_fields(fields, 0))
        after = set(_tags_in_fields(fields, 1))
        added = {tag for _, tag in after - before}
        if row.undoes is not None:
            added &= own_before.get((row.undoes, row.track_id), frozenset())
        tags -= {tag for _, tag in before - after}
        tags |= added
    return own


def _tags_in_fields(fields: Iterable[FieldChange], when: int) -> Iterator[tuple[str, str]]:
    """(field, tag) for all tags before a change (0) or after it (1)."""
    for field in fields:
        for tag in field.tags[when]:
            yield field.field, normalise_tag(tag)
