"""`harmonium smooth`: which tags a new user would give each clip, from who tagged what."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harmonium.commands.options import (
    TABLE_HELP,
    AliasesOption,
    DelimiterOption,
    EncodingOption,
    NoHeaderOption,
    SeedOption,
    column,
    file_option,
)
from harmonium.commands.screen import plain_table
from harmonium.errors import counted

if TYPE_CHECKING:
    import polars as pl

    from harmonium.data import Triples
    from harmonium.estimators import TagSmoother

FORMATS = (".parquet", ".csv")
TAGS_IN_A_CELL = 5


def smooth(
    triples: Annotated[Path, typer.Argument(metavar="TRIPLES", help=TABLE_HELP)],
    output: Annotated[
        Path,
        file_option("The table of probabilities to write: .parquet or .csv.", "--output", "-o"),
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
            metavar="COLUMN", help="The column of tracks, if several clips may be of one track."
        ),
    ] = None,
    tracks: Annotated[
        Path | None, file_option("Or a table of its own, with the columns item and track.")
    ] = None,
    aliases: AliasesOption = None,
    as_spelt: Annotated[
        bool,
        typer.Option("--as-spelt", help="Leave tags as they are spelt: Hip-Hop is not hip hop."),
    ] = False,
    delimiter: DelimiterOption = None,
    no_header: NoHeaderOption = False,
    encoding: EncodingOption = "utf-8",
    min_users: Annotated[
        int, typer.Option(metavar="N", min=1, help="Leave out clips that fewer users have tagged.")
    ] = 1,
    long: Annotated[
        bool,
        typer.Option(
            "--long", help="A row for each clip and tag, instead of one column for each tag."
        ),
    ] = False,
    model: Annotated[Path | None, file_option("Save the smoother, too: .safetensors.")] = None,
    hidden: Annotated[int, typer.Option(metavar="N", min=1, help="Hidden units.")] = 50,
    epochs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Passes over the triples, at most.")
    ] = 100,
    seed: SeedOption = 0,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Lines of each list of the summary.")
    ] = 8,
) -> None:
    """Predict the tags that a new user would give each clip, from who tagged what.

    Fills in what users left out, and doubts what nobody corroborates.
    Writes the probability of every tag for every clip, and says where
    that differs most from what the users said.

    [dim]Example:[/dim]  harmonium smooth triples.csv -o smoothed.parquet --tags 100

    [dim]Then:[/dim]     polars.read_parquet("smoothed.parquet")
    """
    from harmonium.data import read_triples
    from harmonium.errors import DataError
    from harmonium.estimators import TagSmoother
    from harmonium.files import check_writable

    if output.suffix.lower() not in FORMATS:
        raise DataError(
            f"The table must end in {' or '.join(FORMATS)}, which says its format. "
            f"Got {output.name!r}."
        )
    for path in filter(None, (output, model)):
        check_writable(path)
    layout: Any = {"header": not no_header, "delimiter": delimiter, "encoding": encoding}
    columns: dict[str, Any] = {"user": column(user), "item": column(item), "tag": column(tag)}
    read = read_triples(triples, **columns, **layout, aliases=aliases, normalise=not as_spelt)
    if min_users > 1:
        read = _well_known(read, min_users)
    track_of = None
    if track is not None:
        place = {"item": columns["item"], "track": column(track)}
        track_of = _tracks(triples, place, layout)
    elif tracks is not None:
        track_of = _tracks(tracks, {"item": "item", "track": "track"}, {})
    console = Console()
    _say_sizes(console, read, track_of, tags)
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
    table = smoothed.long() if long else smoothed.frame()
    if output.suffix.lower() == ".csv":
        table.write_csv(output, float_precision=4)
    else:
        table.write_parquet(output)
    if model is not None:
        smoother.save(model)
    _show_changes(console, read, smoother.changes(smoothed), show)
    _say_done(console, smoother, output, model, seconds)


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


def _say_sizes(
    console: Console, triples: Triples, track_of: dict[str, str] | None, n_tags: int
) -> None:
    """What was read."""
    kept = min(n_tags, len(triples.tags))
    share = len(triples.top_tags(kept)) / len(triples)
    parts = [
        f"{len(triples):,} triples of {counted(len(triples.users), 'user')} and "
        f"{counted(len(triples.items), 'clip')}"
    ]
    if track_of is not None:
        n_tracks = len({track_of[item] for item in triples.items if item in track_of})
        parts[0] += f" of {counted(n_tracks, 'track')}"
    if kept < len(triples.tags):
        parts.append(f"the {kept:,} most used of {len(triples.tags):,} tags, {share:.0%} of them")
    else:
        parts.append(counted(kept, "tag"))
    console.print("; ".join(parts), highlight=False)


def _show_changes(console: Console, triples: Triples, changed: pl.DataFrame, n: int) -> None:
    """The clips that changed most, and the tags that were filled in and doubted most often."""
    if not n or not len(changed):
        return
    _say_title(console, "The most changed clips", "percent: how many new users would say it")
    console.print(_clip_table(changed, triples, n))
    for change, meaning in (
        ("filled in", "nobody gave it, and yet as likely as where it was given"),
        ("doubted", "somebody gave it, and yet not half as likely as in general"),
    ):
        rows = changed.filter(changed["change"] == change)
        if len(rows):
            _say_title(console, f"The tags {change} most often", meaning)
            console.print(_tag_table(rows, n))


def _say_title(console: Console, title: str, aside: str) -> None:
    console.print()
    console.print(Text.assemble((title, "bold"), " ", (f"({aside})", "dim")))


def _clip_table(changed: pl.DataFrame, triples: Triples, n: int) -> Table:
    """The clips with most changes, and of these the surest."""
    table = plain_table()
    table.add_column("Clip", overflow="fold", ratio=2)
    table.add_column("Users", justify="right", no_wrap=True)
    table.add_column("They said", overflow="fold", ratio=3)
    table.add_column("Filled in", overflow="fold", ratio=3, style="green")
    table.add_column("Doubted", overflow="fold", ratio=3, style="yellow")
    for item in _most_frequent(changed["item"])["item"][:n]:
        rows = changed.filter(changed["item"] == item)
        given = triples.tags.gather(triples.tag[triples.item == triples.items.index_of(item)])
        said = given.value_counts(sort=True, name="n")
        said = said.sort("n", descending=True, maintain_order=True)
        cells = [_numbered_tags(said.to_series(0), said["n"], "×")]
        for kind in ("filled in", "doubted"):
            tags = rows.filter(rows["change"] == kind)
            percents = (100 * tags["probability"]).round().cast(int)
            cells.append(_numbered_tags(tags["tag"], percents, "%"))
        table.add_row(Text(item), f"{rows['users'][0]:,}", *cells)
    return table


def _numbered_tags(tags: pl.Series, numbers: pl.Series, unit: str) -> Text:
    """For example "rock 2×, loud 1×, and 3 more"."""
    words = [f"{tag} {n}{unit}" for tag, n in zip(tags, numbers, strict=True)]
    more = [f"and {len(words) - TAGS_IN_A_CELL} more"] if len(words) > TAGS_IN_A_CELL else []
    return Text(", ".join(words[:TAGS_IN_A_CELL] + more))


def _tag_table(rows: pl.DataFrame, n: int) -> Table:
    table = plain_table()
    table.add_column("Tag", overflow="fold")
    table.add_column("Clips", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("Such as", overflow="fold")
    counted = _most_frequent(rows["tag"])
    for tag, n_clips in counted.head(n).iter_rows():
        examples = rows.filter(rows["tag"] == tag)["item"][:2]
        bar = Text("━" * max(1, round(16 * n_clips / counted["n"][0])), style="cyan")
        table.add_row(Text(tag), f"{n_clips:,}", bar, Text(", ".join(examples), style="dim"))
    return table


def _most_frequent(values: pl.Series) -> pl.DataFrame:
    """Each value and n, how often it is there; most often first, then by the alphabet."""
    counted = values.value_counts(name="n")
    return counted.sort("n", values.name, descending=[True, False])


def _say_done(
    console: Console, smoother: TagSmoother, output: Path, model: Path | None, seconds: float
) -> None:
    """What was written, and how well the smoother did on users that it had not learnt from."""
    console.print()
    scores = smoother.history_["validation"]
    if smoother.best_epoch_ and scores[0] == scores[0]:
        better = scores[smoother.best_epoch_ - 1]
        console.print(
            f"Log-likelihood per tag of held-out users: {better:.3f}; going only by how often each "
            f"tag is used: {smoother.baseline_:.3f}",
            highlight=False,
        )
    sizes = f"{len(smoother.items_):,} clips × {len(smoother.tags_):,} tags in "
    also = f" and {model}" if model is not None else ""
    console.print(Text.assemble(sizes, (str(output), "bold"), f"{also}; {seconds:.0f} s"))
