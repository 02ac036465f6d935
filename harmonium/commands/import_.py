"""`harmonium import`: people's tags, from tables, from the files themselves and from beets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from harmonium.commands import IN_PART, NOTHING_DONE, options
from harmonium.commands.options import argument, column, file, flag, value
from harmonium.commands.output import Output, printable, shortened, to_undo
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library.imports import FeatureReport, ImportReport

MAX_PEOPLE = 5  # people who are named
MAX_SHOWN = 10  # rows to show that match no track
COUNTS = ("n_rows", "n_matched", "n_added", "n_tracks", "n_tags", "change")
Column = str | None


def import_(
    table: Path | None = argument(
        "TABLE",
        f"{options.TABLE_HELP} With --from-beets, the beets library; by default the usual one.",
    ),
    library: str | None = options.LIBRARY,
    from_files: bool = flag("Import the tags of the indexed files.", "--from-files"),
    from_beets: bool = flag(
        "Import people's tags in beets; plugin tags they removed count as rejected.", "--from-beets"
    ),
    fields: str = value(
        "FIELDS", "Fields to read with --from-files: genre,mood,grouping,comment.", default="genre"
    ),
    features: Path | None = file(
        "Import features from another program and use them from now on: a table (.csv, .tsv, "
        ".parquet, .npz) with a row of numbers per track."
    ),
    person: str | None = value(
        "NAME",
        "Whose tags these are. By default, the people in the column of users; without one, "
        "HARMONIUM_PERSON, else me. With --from-files: files; with --from-beets: beets.",
        "--person",
    ),
    item: Column = value(
        "COLUMN",
        "The column that names the track: a path or its end, a file name, or #NUMBER. Give "
        "a column's name, or its number from 0.",
    ),
    artist: Column = value("COLUMN", "The column of artists."),
    title: Column = value("COLUMN", "The column of titles."),
    tag: Column = value("COLUMN", "The column of tags."),
    user: Column = value("COLUMN", "The column of users."),
    value: Column = value("COLUMN", "Column of numbers: positive if the tag fits, else 0 or less."),
    split: str | None = value(
        "CHARACTERS",
        "Split texts at these characters, such as ',/&'. By default at ; and |, and at commas "
        "and slashes if all parts are known tags: Jazz/Blues, not AC/DC.",
    ),
    no_split: bool = flag("Each text is one tag.", "--no-split"),
    aliases: Path | None = options.ALIASES,
    delimiter: str | None = options.DELIMITER,
    no_header: bool = options.NO_HEADER,
    encoding: str = options.ENCODING,
    replace: bool = flag("Remove these people's earlier tags not in the table.", "--replace"),
    unmatched: Path | None = file("Write rows that match no track to this CSV file."),
    raw: bool = options.RAW,
    dry_run: bool = flag("Show what would be imported; import nothing.", "--dry-run"),
    as_json: bool = options.JSON,
) -> None:
    """Import tags from a table, the music files or beets.

    Columns are recognised by their names; those called genre, mood or instrument hold tags of that
    kind. A text with several tags, such as "Jazz; Blues", is split. Rows that match no track are
    reported. An import is all or nothing, importing the same table again adds nothing, and
    `harmonium undo` undoes it.

    Example: harmonium import tags.csv
    Example: harmonium import --from-files --fields genre,mood
    Example: harmonium import --from-beets
    Example: harmonium import --features embeddings.parquet
    In Python: library.import_tags("tags.csv"), library.import_file_tags()
    """
    from harmonium.data import read_aliases
    from harmonium.files import check_writable
    from harmonium.spreadsheets import guarded_frame

    sources = [table is not None and not from_beets, from_files, from_beets, features is not None]
    if sum(sources) != 1:
        raise typer.BadParameter("Name one: a table, --from-files, --from-beets or --features.")
    if no_split and split is not None:
        raise typer.BadParameter("Use --split or --no-split, not both.")
    separators = tuple(split) if split is not None else None
    if no_split:
        separators = ()
    out = Output(as_json)
    with options.opened(library) as opened:
        if features is not None:
            imported = opened.import_features(
                features,
                item=column(item),
                artist=column(artist),
                title=column(title),
                dry_run=dry_run,
            )
            raise typer.Exit(_show_features(out, imported, dry_run=dry_run))
        if unmatched is not None:
            unmatched = unmatched.expanduser()
            check_writable(unmatched)
        if from_beets:
            from harmonium.connect.beets import import_from_beets

            report = import_from_beets(
                opened,
                table,
                person=person or "beets",
                split=separators,
                replace=replace,
                dry_run=dry_run,
            )
        elif table is None:
            report = opened.import_file_tags(
                [name.strip() for name in fields.split(",") if name.strip()],
                person=person or "files",
                split=separators,
                replace=replace,
                dry_run=dry_run,
            )
        else:
            report = opened.import_tags(
                table,
                item=column(item),
                artist=column(artist),
                title=column(title),
                tag=column(tag),
                user=column(user),
                value=column(value),
                person=person,
                default_person=os.environ.get("HARMONIUM_PERSON") or "me",
                aliases=None if aliases is None else read_aliases(aliases),
                header=not no_header,
                delimiter=delimiter,
                encoding=encoding,
                split=separators,
                replace=replace,
                dry_run=dry_run,
            )
    if unmatched is not None:
        lost = report.unmatched if raw else guarded_frame(report.unmatched)
        lost.write_csv(unmatched)
    _show(out, report, dry_run=dry_run, replaced=replace)
    if not report.n_matched and not report.n_own:
        raise typer.Exit(NOTHING_DONE)
    raise typer.Exit(0 if report.complete else IN_PART)


def _show_features(out: Output, report: FeatureReport, *, dry_run: bool) -> int:
    """Show what an import of features did; returns the exit code."""
    out.json(report)
    verb = "would be" if dry_run else "are"
    out.say(
        f"The features of {counted(report.n_tracks, 'track')} {verb} {report.name}, "
        f"{report.n_features:,} numbers each. `harmonium train` learns from them; `harmonium index "
        "--extractor NAME` switches back to an extractor."
    )
    if out.form != "json":
        lines = [f"{name}: {reason}" for name, reason in report.unmatched.items()]
        out.note(*shortened(lines, MAX_SHOWN, more="; --json lists all"))
    return IN_PART if report.unmatched else 0


def _show(out: Output, report: ImportReport, *, dry_run: bool, replaced: bool) -> None:
    """Print what was done to standard output, and what was not to standard error."""
    out.json(report)
    if out.form == "json":
        return
    if out.is_terminal:
        out.say(*_summary(report, dry_run=dry_run, replaced=replaced))
        if dry_run:
            _show_splits(out, report)
    else:
        out.table((), [(name.removeprefix("n_"), getattr(report, name) or 0) for name in COUNTS])
    _note_what_was_left_out(out, report)


def _show_splits(out: Output, report: ImportReport) -> None:
    """Which texts are split, and which are not."""
    if report.split:
        rows = sorted((text, ", ".join(parts)) for text, parts in report.split.items())
        title = f"Split ({len(rows):,}); --no-split splits none"
        out.table(("Text", "Tags"), rows, title=title)
    if report.whole:
        times = sorted(report.whole.items(), key=lambda item: (-item[1], item[0]))
        title = f"Not split ({len(times):,}); --split CHARACTERS splits them"
        out.table(("Text", ">Times"), times, title=title)


def _note_what_was_left_out(out: Output, report: ImportReport) -> None:
    for reason, n in report.left_out.items():
        hint = ". --encoding names another, such as cp1252" if "UTF-8" in reason else ""
        out.note(f"{n:,} skipped: {reason}{hint}")
    if report.ignored:
        words = [f"{counted(n, 'track')}: {word}" for word, n in report.ignored.most_common()]
        out.note("Ignored, not a tag (`harmonium kind WORD own` makes it one):")
        out.note(*shortened(words, MAX_SHOWN, more="; --json lists all", indent="  "))
    lost = report.unmatched.to_dicts()
    if lost:
        n_rows = sum(row["rows"] for row in lost)
        out.note(f"{counted(n_rows, 'row')} of {counted(len(lost), 'item')} without a match:")
        lines = [f"{_item_name(row)}: {row['reason']}" for row in lost]
        out.note(*shortened(lines, MAX_SHOWN, more="; --unmatched FILE writes all", indent="  "))
    tags = counted(report.n_own, "tag")
    if not report.n_rows:
        out.note("Nothing to import: no such tags. (File tags are read when files are indexed.)")
    elif report.n_own == report.n_rows:
        out.note(f"Nothing to import: {tags}, all written by Harmonium.")
    elif report.n_own:
        out.note(f"{tags} skipped: written by Harmonium.")


def _item_name(row: dict[str, Any]) -> str:
    """What a row of the table names: an item, or an artist and a title."""
    return row["item"] or f"{row['artist']} - {row['title']}".strip(" -")


def _summary(report: ImportReport, *, dry_run: bool, replaced: bool) -> Iterator[str]:
    if report.n_own == report.n_rows:
        return  # a note says so
    line = (
        f"{report.n_matched:,} of {counted(report.n_rows, 'row')} matched: "
        f"{counted(report.n_tracks, 'track')}, {counted(report.n_tags, 'different tag')}"
    )
    if len(report.people) > MAX_PEOPLE:
        line += f", by {len(report.people):,} people"
    elif report.people:
        line += f", by {', '.join(report.people)}"
    yield line
    if report.split and not dry_run:
        text, parts = next(iter(report.split.items()))
        yield (
            f"{counted(len(report.split), 'text')} split, such as {printable(text)} into "
            f"{', '.join(parts)}. --dry-run shows all, --no-split splits none."
        )
    if report.renamed:
        names = [f"{old} as {new}" for old, new in report.renamed.items()]
        more = " …" if len(names) > MAX_SHOWN else ""
        yield f"Imported under their new names: {', '.join(names[:MAX_SHOWN])}{more}."
    if dry_run:
        yield f"Dry run: {report.n_added:,} {'would change' if replaced else 'new'}."
    elif report.change is not None:
        new = "changed" if replaced else "new"
        yield f"{report.n_added:,} {new}. {to_undo(report.change)}"
    elif report.n_matched:
        yield "Nothing new: all of them are in the library already."
    else:
        yield "Nothing was imported: no row could be used."
