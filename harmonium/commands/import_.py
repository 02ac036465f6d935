"""`harmonium import`: people's tags, from tables and from the files themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harmonium.commands import IN_PART, NOTHING_DONE
from harmonium.commands.options import (
    TABLE_HELP,
    AliasesOption,
    DelimiterOption,
    EncodingOption,
    JsonOption,
    LibraryOption,
    NoHeaderOption,
    column,
    file_option,
)
from harmonium.commands.screen import printable, say, say_some, show_rows
from harmonium.errors import counted

if TYPE_CHECKING:
    from harmonium.library.imports import ImportReport

MOST_PEOPLE = 5
"""People who are named."""
MOST_SHOWN = 10
"""Items without a track that are shown."""
COUNTS = ("n_rows", "n_matched", "n_added", "n_tracks", "n_tags")


def _column_option(text: str) -> Any:
    return typer.Option(metavar="COLUMN", help=text)


def import_(
    table: Annotated[Path | None, typer.Argument(metavar="TABLE", help=TABLE_HELP)] = None,
    library: LibraryOption = None,
    from_files: Annotated[
        bool, typer.Option("--from-files", help="Import the tags in the files that are indexed.")
    ] = False,
    fields: Annotated[
        str,
        typer.Option(
            metavar="FIELDS",
            help="With --from-files: genre, mood, grouping, comment; several with commas.",
        ),
    ] = "genre",
    features: Annotated[
        Path | None,
        file_option(
            "Import features that another program computed, and use them from now on: a table "
            "(.csv, .tsv, .parquet, .npz) with a row of numbers for each track."
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            "-p",
            metavar="NAME",
            help="Whose tags they are, if no column says so; by default 'files' with --from-files.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        _column_option(
            "The column that says which track: a path or its end, the file's name without its "
            "ending, or a number such as #12. Columns are named, or counted from 0."
        ),
    ] = None,
    artist: Annotated[str | None, _column_option("The column of artists.")] = None,
    title: Annotated[str | None, _column_option("The column of titles.")] = None,
    tag: Annotated[str | None, _column_option("The column of tags.")] = None,
    user: Annotated[str | None, _column_option("The column of people.")] = None,
    value: Annotated[
        str | None,
        _column_option(
            "A column of numbers: positive where the tag fits, 0 or less where it does not."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTERS",
            help="Part texts at each of these characters, such as ',/&'. By default at ; and |, "
            "and at commas and slashes where all parts are known tags: Jazz/Blues, not AC/DC.",
        ),
    ] = None,
    no_split: Annotated[
        bool, typer.Option("--no-split", help="Take each text for one tag.")
    ] = False,
    aliases: AliasesOption = None,
    delimiter: DelimiterOption = None,
    no_header: NoHeaderOption = False,
    encoding: EncodingOption = "utf-8",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Take back what the same people said before and do not say in this import.",
        ),
    ] = False,
    unmatched: Annotated[
        Path | None, file_option("Write what was not found in the library to this CSV file.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            "-n",
            help="Only say what would be imported, and show how texts are parted.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Import people's tags, from a table or from the files themselves.

    Columns that are not given are recognised by their names. A text
    with several tags, such as "Jazz; Blues", is parted. What was not
    found is reported. An import is done as a whole or not at all;
    importing the same again adds nothing; and `harmonium undo` takes
    it back.

    [dim]Example:[/dim]  harmonium import tags.csv

    [dim]Example:[/dim]  harmonium import --from-files --fields genre,mood

    [dim]Example:[/dim]  harmonium import --features embeddings.parquet

    [dim]Exit codes:[/dim]  0 all rows were used; 1 some were not and are reported;
    2 nothing was done, or no row could be used.
    """
    from harmonium.data import read_aliases
    from harmonium.errors import DataError
    from harmonium.files import check_writable
    from harmonium.library import Library
    from harmonium.library.imports import import_file_tags, import_table

    if features is not None:
        if table is not None or from_files:
            raise typer.BadParameter("--features is an import of its own; name no tags with it.")
        which: Any = {"item": item and column(item), "artist": artist and column(artist)}
        which |= {"title": title and column(title)}
        _import_features(library, features, which, dry_run=dry_run, as_json=as_json)
    if (table is None) != from_files:
        raise typer.BadParameter(
            "Name a table, or pass --from-files"
            + (", but not both." if from_files else ": whose tags are to be imported?")
        )
    if no_split and split is not None:
        raise typer.BadParameter("Say --split or --no-split, not both.")
    named = {"item": item, "artist": artist, "title": title}
    named |= {"tag": tag, "user": user, "value": value}
    columns: Any = {role: name and column(name) for role, name in named.items()}
    if unmatched is not None:
        unmatched = unmatched.expanduser()
        check_writable(unmatched)
    separators = () if no_split else None if split is None else tuple(split)
    how: dict[str, Any] = {"split": separators, "replace": replace, "dry_run": dry_run}
    with Library.open(library, create=False) as opened:
        if table is None:
            wanted = [name.strip() for name in fields.split(",") if name.strip()]
            report = import_file_tags(opened, fields=wanted, person=person or "files", **how)
        else:
            report = import_table(
                opened,
                table,
                **columns,
                person=person,
                aliases=None if aliases is None else read_aliases(aliases),
                header=not no_header,
                delimiter=delimiter,
                encoding=encoding,
                **how,
            )
    if unmatched is not None:
        try:
            report.unmatched.write_csv(unmatched)
        except OSError as error:
            reason = error.strerror or error
            raise DataError(f"{unmatched} cannot be written: {reason}.") from error
    _show_report(report, as_json=as_json, dry_run=dry_run, replaced=replace)
    if not report.n_matched and not report.n_own:
        raise typer.Exit(NOTHING_DONE)
    raise typer.Exit(0 if report.complete else IN_PART)


def _import_features(
    place: str | None, file: Path, columns: Any, *, dry_run: bool, as_json: bool
) -> None:
    from harmonium.library import Library
    from harmonium.library.feature_tables import import_features

    with Library.open(place, create=False) as opened:
        report = import_features(opened, file, **columns, dry_run=dry_run)
    if as_json:
        print(json.dumps(vars(report), indent=2))
    else:
        console, errors = Console(), Console(stderr=True)
        verb = "would be" if dry_run else "are"
        say(
            console,
            f"The features of {counted(report.n_tracks, 'track')} {verb} {report.name}, "
            f"{report.n_features:,} numbers each. `harmonium train` learns from them; `harmonium "
            "index --extractor NAME` goes back to those of an extractor.",
        )
        lines = [f"{name}: {reason}" for name, reason in report.unmatched.items()]
        say_some(errors, lines, MOST_SHOWN, more="; --json lists all")
    raise typer.Exit(IN_PART if report.unmatched else 0)


def _show_report(report: ImportReport, *, as_json: bool, dry_run: bool, replaced: bool) -> None:
    """What was done, on the standard output; what was not, on that of errors."""
    console, errors = Console(), Console(stderr=True)
    if as_json:
        names = ("change", *COUNTS, "n_own", "people", "left_out", "parted", "whole", "renamed")
        record = {name: getattr(report, name) for name in names}
        print(json.dumps(record | {"unmatched": report.unmatched.to_dicts()}, indent=2))
        return
    if console.is_terminal:
        for line in _summary(report, dry_run, replaced):
            say(console, line)
    else:
        numbers = {name: getattr(report, name) or 0 for name in (*COUNTS, "change")}
        rows = [(name.removeprefix("n_"), str(n)) for name, n in numbers.items()]
        show_rows(console, ("", ""), rows)
    if dry_run and console.is_terminal:
        _show_parting(console, report)
    for reason, n in report.left_out.items():
        hint = ". --encoding names another, such as cp1252" if "UTF-8" in reason else ""
        say(errors, f"{n:,} left out: {reason}{hint}")
    _show_unmatched(errors, report)
    if not report.n_rows:
        say(errors, "Nothing to import: the files had no such tags when they were last indexed.")
    elif report.n_own == report.n_rows:
        n_own = counted(report.n_own, "tag")
        say(errors, f"Nothing to import: the files have {n_own}, all written by Harmonium itself.")
    elif report.n_own:
        say(errors, f"{counted(report.n_own, 'tag')} left out, as Harmonium wrote them itself.")


def _summary(report: ImportReport, dry_run: bool, replaced: bool) -> Iterator[str]:
    if report.n_own == report.n_rows:
        return  # there is nothing to say but that
    people = ", ".join(report.people)
    if len(report.people) > MOST_PEOPLE:
        people = f"{len(report.people):,} people"
    found = (
        f"{report.n_matched:,} of {counted(report.n_rows, 'row')} "
        f"{'is a tag' if report.n_matched == 1 else 'are tags'} of "
        f"{counted(report.n_tracks, 'track')}, {counted(report.n_tags, 'different tag')}"
    )
    yield f"{found}, by {people}" if people else found
    if report.parted and not dry_run:
        text, parts = next(iter(report.parted.items()))
        yield (
            f"{counted(len(report.parted), 'text')} with several tags: parted, such as "
            f"{printable(text)} into {', '.join(parts)}. --dry-run shows how, --no-split parts "
            "none."
        )
    if report.renamed:
        names = [f"{old} as {new}" for old, new in report.renamed.items()]
        more = " …" if len(names) > MOST_SHOWN else ""
        yield f"Imported under their new names: {', '.join(names[:MOST_SHOWN])}{more}."
    if dry_run:
        new = "is new" if report.n_added == 1 else "are new"
        would = "would change" if replaced else new
        yield f"Nothing was imported: this was a trial. {report.n_added:,} {would}."
    elif report.change is not None:
        new = "changed" if replaced else "is new" if report.n_added == 1 else "are new"
        yield f"{report.n_added:,} {new}. To take it back: harmonium undo {report.change}"
    elif report.n_matched:
        yield "Nothing was imported: the library has all of them already."
    else:
        yield "Nothing was imported: no row could be used."


def _show_parting(console: Console, report: ImportReport) -> None:
    """How texts are parted, and which that look as if they could be are not."""
    if report.parted:
        parted = [(text, ", ".join(parts)) for text, parts in sorted(report.parted.items())]
        title = f"Parted ({len(parted):,}); --no-split parts none"
        show_rows(console, ("Text", "Tags"), parted, title=title)
    if report.whole:
        whole = sorted(report.whole.items(), key=lambda one: (-one[1], one[0]))
        title = f"Taken for one tag ({len(whole):,}); --split CHARACTERS parts them"
        rows = [(text, f"{n:,}") for text, n in whole]
        show_rows(console, ("Text", "Times"), rows, title=title, right=("Times",))


def _show_unmatched(errors: Console, report: ImportReport) -> None:
    lost = report.unmatched
    if not len(lost):
        return
    n_rows = int(lost["rows"].sum())
    verb = "has" if n_rows == 1 else "have"
    say(errors, f"{counted(n_rows, 'row')} of {counted(len(lost), 'item')} {verb} no track:")
    lines = [
        f"{row['item'] or ' - '.join(filter(None, (row['artist'], row['title'])))}: {row['reason']}"
        for row in lost.iter_rows(named=True)
    ]
    more = "; --unmatched FILE writes all of them"
    say_some(errors, lines, MOST_SHOWN, more=more, indent="  ")
