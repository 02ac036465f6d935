"""Import of tables that say who gave which tag to which track."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from harmonium.data.coded_rows import CodedRows
from harmonium.data.normalise import normalise_names, normalise_tag, speller
from harmonium.data.parting import Parting
from harmonium.data.table_files import read_rows
from harmonium.library.importing.columns import choose_columns
from harmonium.library.importing.import_report import (
    ImportReport,
    check_has_tracks,
    keep_import,
    note_parting,
)
from harmonium.library.library import Library
from harmonium.library.store.schema import FOLDERS
from harmonium.library.store.track_finder import TrackFinder


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
    split: Sequence[str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import the tags that a table says people gave to tracks.

    Parameters
    ----------
    library : to import into
    path : a .csv, .tsv or .parquet file, also with .gz
    item, artist, title, tag, user, value : columns, by name or by position from 0; by default
        recognised by their names. `value` is positive where the tag fits and not where it does not.
    person : whose tags they are, if there is no column of users
    aliases : spelling → tag, see `harmonium.data.read_aliases`
    header, encoding : how a text file is written, as in `harmonium.data.read_triples`
    delimiter : what separates its columns; by default recognised from its first line
    split : what separates tags in one cell; none: nothing does. By default where it is safe, see
        `harmonium.data.parting`.
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
    has_person = person is not None and user is None

    def choose(names: Sequence[str], n_columns: int) -> dict[str, str | int]:
        return choose_columns(
            named | {"value": value},
            names,
            source=file.name,
            has_person=has_person,
            n_columns=n_columns,
        )

    rows = read_rows(
        file, choose, header=header, delimiter=delimiter, encoding=encoding, any_delimiter=True
    )
    check_has_tracks(library)
    report = ImportReport()
    known = library.opinions.tags()["tag"].to_list()
    parting = Parting(rows.columns["tag"].names, known=known, at=split)
    frame = _matched(library, rows, _parted(rows, parting, aliases or {}, report), report)
    if has_person:
        frame = frame.with_columns(person=pl.lit(person))
    kind = "person" if has_person else "import"
    return keep_import(
        library, frame, report, file.name, kind=kind, replace=replace, dry_run=dry_run
    )


def _parted(
    rows: CodedRows, parting: Parting, aliases: Mapping[str, str], report: ImportReport
) -> pl.DataFrame:
    """The tags in each cell: tag_code, tag, spelling, and whether a minus stands before it."""
    cells = []
    for code, text in enumerate(rows.columns["tag"].names):
        parts = parting.parts(text) or (text,)
        note_parting(report, text, parts)
        cells += [(code, part) for part in parts]
    schema = {"tag_code": pl.UInt32, "spelling": pl.String}
    frame = pl.DataFrame(cells, schema=schema, orient="row")
    tags = speller(normalise=True, aliases=aliases)(frame["spelling"])
    own = pl.select(pl.when(normalise_names(frame["spelling"]) == tags).then(frame["spelling"]))
    targets = {normalise_tag(name): name for name in aliases.values()}
    aliased = tags.replace(list(targets), list(targets.values())) if targets else tags
    return frame.with_columns(
        tag=tags,
        spelling=own.to_series().fill_null(aliased),
        denied=frame["spelling"].str.contains(r"^\s*[-−]\s*\w"),
    )


def _matched(
    library: Library, rows: CodedRows, tags: pl.DataFrame, report: ImportReport
) -> pl.DataFrame:
    """The tags with their tracks; the report says which rows have none."""
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
    report.n_rows = len(coded) + sum(map(len, rows.left_out.values()))
    report.left_out = {reason: len(where) for reason, where in rows.left_out.items()}
    report.unmatched = _unmatched(coded, words, keys)
    frame = _named(coded.drop_nulls("track_id"), rows, tags, report)
    report.n_matched = frame["row"].n_unique()
    return frame.drop("row")


def _named(
    coded: pl.DataFrame, rows: CodedRows, tags: pl.DataFrame, report: ImportReport
) -> pl.DataFrame:
    """Codes to names, without rows that lack one."""
    coded = coded.with_row_index("row").with_columns(tag_code=pl.col("tag").cast(pl.UInt32))
    coded = coded.drop("tag").join(tags, on="tag_code", maintain_order="left_right")
    columns = {name: coded[name] for name in ("row", "track_id", "tag", "spelling")}
    denied = coded["denied"]
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
