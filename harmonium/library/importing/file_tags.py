"""Import of the tags that files hold, as the last index found them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl
import sqlalchemy as sa

from harmonium.data.normalise import normalise_tag
from harmonium.data.parting import Parting
from harmonium.errors import DataError, FileTagError
from harmonium.library.filetags import FIELDS, UndoRecord, genre_names
from harmonium.library.importing.import_report import (
    LONGEST,
    ImportReport,
    check_has_tracks,
    keep_import,
    note_parting,
)
from harmonium.library.library import Library
from harmonium.library.store.schema import change, written_file

SPLIT_FIELDS = dict.fromkeys(("grouping", "comment"), (",", ";", "\n"))
"""Fields that people fill with several tags in one value → what separates these."""
_NO_GENRE = "Unknown"  # what a number that stands for no genre is read as


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

    A value that holds several tags is parted. What is too long for a tag is left out, and so is
    what Harmonium itself wrote into a file, unless it was undone.

    Parameters
    ----------
    library : whose files
    fields : some of "genre", "mood", "grouping" and "comment"
    person : the name under which these tags are kept
    split : what separates tags in one value; none: nothing does. By default, commas, semicolons
        and line breaks in grouping and comment; elsewhere see `harmonium.data.parting`.
    replace : whether tags under that name that are no longer in the files are taken back
    dry_run : whether only to find out what would be imported
    """
    wanted = list(dict.fromkeys(fields))
    for name in wanted:
        if name not in FIELDS:
            raise DataError(f"'fields' must be among {', '.join(FIELDS)}, got {name!r}.")
    check_has_tracks(library)
    report = ImportReport()
    written = _written_tags(library)
    values = {track.id: dict(_values(track.file_tags, wanted)) for track in library.tracks.all()}
    known = library.opinions.tags()["tag"].to_list()
    partings = {
        name: Parting(
            (value for by_field in values.values() for value in by_field.get(name, ())),
            known=known,
            at=SPLIT_FIELDS.get(name) if split is None else split,
        )
        for name in wanted
    }
    triples: list[tuple[int, str, str]] = []
    for track_id, by_field in values.items():
        found: dict[str, str] = {}
        for name, texts in by_field.items():
            for text in texts:
                parts = partings[name].parts(text)
                note_parting(report, text, parts)
                found = {normalise_tag(part): part for part in parts} | found
        for tag, spelling in found.items():
            report.n_rows += 1
            if tag in written.get(track_id, ()):
                report.n_own += 1
            elif len(tag) > LONGEST:
                reason = f"more than {LONGEST} characters"
                report.left_out[reason] = report.left_out.get(reason, 0) + 1
            else:
                triples.append((track_id, tag, spelling))
    schema = {"track_id": pl.Int64, "tag": pl.String, "spelling": pl.String}
    frame = pl.DataFrame(triples, schema=schema, orient="row").with_columns(person=pl.lit(person))
    report.n_matched = len(frame)
    source = f"{', '.join(wanted)} of the files"
    return keep_import(
        library, frame, report, source, kind="file", replace=replace, dry_run=dry_run
    )


def _values(
    file_tags: Mapping[str, list[str]], fields: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """(field, its values); numbers of genres become their names."""
    for name in fields:
        texts = file_tags.get(name, [])
        if name == "genre":
            texts = [one for text in texts for one in genre_names(text) if one != _NO_GENRE]
        yield name, texts


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
            before, after = (
                {(one.field, normalise_tag(tag)) for one in fields for tag in one.tags[when]}
                for when in (0, 1)
            )
            added = {tag for _, tag in after - before}
            if row.undoes is not None:
                added &= own_before.get((row.undoes, row.track_id), frozenset())
            tags -= {tag for _, tag in before - after}
            tags |= added
    return own
