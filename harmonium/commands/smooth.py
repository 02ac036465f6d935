"""`harmonium smooth`: which tags a new user would give each clip, from who tagged what."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harmonium.commands.smooth_report import say_done, say_sizes, summarise

if TYPE_CHECKING:
    import polars as pl

    from harmonium.data import Triples

FORMATS = (".parquet", ".csv")


def smooth(
    triples: Annotated[
        Path,
        typer.Argument(
            metavar="TRIPLES",
            show_default=False,
            help="A table of who gave which tag to what: .csv, .tsv or .parquet, also gzipped.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="The table of probabilities to write: .parquet or .csv.",
        ),
    ],
    tags: Annotated[
        int, typer.Option("--tags", "-t", metavar="N", min=1, help="How many tags: the most used.")
    ] = 100,
    user: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of users: its name, or 0, 1, …")
    ] = "user",
    item: Annotated[str, typer.Option(metavar="COLUMN", help="The column of clips.")] = "item",
    tag: Annotated[str, typer.Option(metavar="COLUMN", help="The column of tags.")] = "tag",
    track: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="The column of tracks, if several clips may be of one track.",
        ),
    ] = None,
    tracks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Or a table of its own, with the columns item and track.",
        ),
    ] = None,
    aliases: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Spellings that mean the same: a table with the columns alias and tag.",
        ),
    ] = None,
    as_spelt: Annotated[
        bool,
        typer.Option("--as-spelt", help="Leave tags as they are spelt: Hip-Hop is not hip hop."),
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHAR", show_default=False, help="What separates the columns."),
    ] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is a triple, not names of columns.")
    ] = False,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Of a text file.")] = "utf-8",
    min_users: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Leave out clips that fewer users have tagged."),
    ] = 1,
    long: Annotated[
        bool,
        typer.Option(
            "--long", help="A row for each clip and tag, instead of one column for each tag."
        ),
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Save the smoother, too: .safetensors."
        ),
    ] = None,
    hidden: Annotated[int, typer.Option(metavar="N", min=1, help="Hidden units.")] = 50,
    epochs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Passes over the triples at most.")
    ] = 100,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Another seed, other chances.")] = 0,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Lines of each list of the summary.")
    ] = 8,
) -> None:
    """Learn from who tagged what which tags a new user would give each clip.

    Fills in what users left out, and doubts what nobody corroborates.
    Writes the probability of every tag for every clip, and says where
    that differs most from what the users said.

    [dim]Example:[/dim]  harmonium smooth triples.csv -o smoothed.parquet --tags 100

    [dim]Then:[/dim]     polars.read_parquet("smoothed.parquet")
    """
    from harmonium.estimators import TagSmoother

    _check_outputs(output, model)
    layout = {"header": not no_header, "delimiter": delimiter, "encoding": encoding}
    columns = {"user": _column(user), "item": _column(item), "tag": _column(tag)}
    read = _read(triples, columns, layout, aliases=aliases, normalise=not as_spelt)
    if min_users > 1:
        read = _well_known(read, min_users)
    if track is not None:
        place = {"item": columns["item"], "track": _column(track)}
        track_of = _tracks(triples, place, layout)
    elif tracks is not None:
        track_of = _tracks(tracks, {"item": "item", "track": "track"}, {})
    else:
        track_of = None
    console = Console()
    say_sizes(console, read, track_of, tags)
    began = time.perf_counter()
    smoother = TagSmoother(
        n_tags=tags,
        n_hidden=hidden,
        max_epochs=epochs,
        random_state=seed,
        n_jobs=-1,
        verbose=int(sys.stderr.isatty()),
    ).fit(read, tracks=track_of)
    smoothed = smoother.smooth()
    seconds = time.perf_counter() - began
    _write(output, smoothed.long() if long else smoothed.frame())
    if model is not None:
        smoother.save(model)
    summarise(console, read, smoother.changes(smoothed), show)
    say_done(console, smoother, output, model, seconds)


def _column(name: str) -> str | int:
    """A column as the reader takes it: digits are a position."""
    return int(name) if name.isdecimal() else name


def _check_outputs(output: Path, model: Path | None) -> None:
    """Refuse, before any work, what could not be written."""
    from harmonium.errors import DataError

    if output.suffix.lower() not in FORMATS:
        raise DataError(
            f"The table must end in {' or '.join(FORMATS)}, which says its format. "
            f"Got {output.name!r}."
        )
    for path in (output, model):
        if path is not None and not path.parent.is_dir():
            raise DataError(f"There is no folder {path.parent} to write {path.name} to.")
        if path is not None and path.is_dir():
            raise DataError(f"{path} is a folder. Give the name of a file in it.")


def _read(
    path: Path,
    columns: dict[str, Any],
    layout: dict[str, Any],
    *,
    aliases: Path | None,
    normalise: bool,
) -> Triples:
    from harmonium.data import read_triples

    return read_triples(path, **columns, **layout, aliases=aliases, normalise=normalise)


def _well_known(triples: Triples, min_users: int) -> Triples:
    """The triples of the clips that at least so many users have tagged."""
    import numpy as np

    from harmonium.data import Conditioning
    from harmonium.errors import DataError

    n_users = Conditioning.from_triples(triples).n_users
    kept = np.flatnonzero(n_users >= min_users)
    if not len(kept):
        raise DataError(
            f"No clip has been tagged by {min_users:,} users; at most {n_users.max():,} tagged "
            "one. Ask for fewer with --min-users."
        )
    return triples.select_items(kept)


def _tracks(path: Path, columns: dict[str, Any], layout: dict[str, Any]) -> dict[str, str]:
    """The track of each item of a table, which must not have two for one item."""
    from harmonium.data.table_files import read_rows
    from harmonium.errors import DataError

    rows = read_rows(path, columns, **layout).usable()
    track_of: dict[str, str] = {}
    for item, track in zip(rows.values("item"), rows.values("track"), strict=True):
        if track_of.setdefault(item, track) != track:
            raise DataError(
                f"{path.name} has two tracks for {item!r}: {track_of[item]!r} and {track!r}. "
                "A clip is of one track."
            )
    return track_of


def _write(path: Path, table: pl.DataFrame) -> None:
    if path.suffix.lower() == ".csv":
        table.write_csv(path, float_precision=4)
    else:
        table.write_parquet(path)
