"""Import of the tags that files hold, as the last index found them."""

import re
from collections.abc import Iterable, Mapping

import polars as pl
import sqlalchemy as sa

from harmonium.collection.filetags import READ_FIELDS, UndoRecord
from harmonium.collection.importing.import_report import (
    ImportReport,
    check_has_tracks,
    keep_import,
)
from harmonium.collection.library import Library
from harmonium.collection.store.schema import change, written_file
from harmonium.data.normalise import normalise_tag
from harmonium.errors import DataError, FileTagError

LONGEST = 100
"""Characters that a tag from a file may have; what is longer is a text and not a tag."""
_PARTED = ("grouping", "comment")  # fields that people fill with several tags in one value
_PARTS = re.compile(r"[,;\n]")


def import_file_tags(
    library: Library,
    *,
    fields: Iterable[str] = ("genre",),
    person: str = "files",
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that the files had when they were last indexed.

    Values of grouping and comment are split at commas, semicolons and line breaks. What is too long
    for a tag is left out, and so is what Harmonium itself wrote into a file, unless it was undone.

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
    check_has_tracks(library)
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
    return keep_import(
        library, frame, report, source, kind="file", replace=replace, dry_run=dry_run
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
    """Track → the tags that Harmonium put into its file, less what was undone.

    What an undo brings back is Harmonium's only if it was so before the change that is undone.
    """
    own: dict[int, set[str]] = {}
    own_before: dict[tuple[int, int], frozenset[str]] = {}  # of a change and a track
    query = (
        sa.select(written_file, change.c.undoes)
        .join_from(written_file, change, change.c.id == written_file.c.change_id)
        .where(written_file.c.track_id > 0)
        .order_by(written_file.c.id)
    )
    with library.connect() as connection:
        for row in connection.execute(query):
            try:
                fields = UndoRecord.from_bytes(bytes(row.record)).change.fields
            except FileTagError:
                continue  # of a newer version, which cannot be read
            tags = own.setdefault(row.track_id, set())
            own_before.setdefault((row.change_id, row.track_id), frozenset(tags))
            before = {(one.field, normalise_tag(tag)) for one in fields for tag in one.before}
            after = {(one.field, normalise_tag(tag)) for one in fields for tag in one.after}
            added = {tag for _, tag in after - before}
            if row.undoes is not None:
                added &= own_before.get((row.undoes, row.track_id), frozenset())
            tags -= {tag for _, tag in before - after}
            tags |= added
    return own
