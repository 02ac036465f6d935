"""`harmonium smooth`: which tags a new user would give each clip, from who tagged what."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from harmonium.commands import options
from harmonium.commands.options import argument, file, flag, number, numbered_column, value
from harmonium.commands.output import Cell, Output, share_bar, shortened
from harmonium.errors import counted

if TYPE_CHECKING:
    import polars as pl

    from harmonium.data import Triples
    from harmonium.estimators import TagSmoother

FORMATS = (".parquet", ".csv")
CHANGES = {
    "filled in": "no user gave it, but it is as likely as for clips that have it",
    "doubted": "a user gave it, but it is less than half as likely as usual",
}
MAX_TAGS = 5  # tags in a cell of the table of clips


def smooth(
    triples: Path = argument("TRIPLES", options.TABLE_HELP, default=...),
    output: Path = file("Table to write: .parquet or .csv.", "--output", "-o", default=...),
    tags: int = number(100, "Use the N most used tags.", "--tags", "-t"),
    user: str = value("COLUMN", "Column of users: a name, or a number from 0.", default="user"),
    item: str = value("COLUMN", "The column of clips.", default="item"),
    tag: str = value("COLUMN", "The column of tags.", default="tag"),
    track: str | None = value("COLUMN", "The column of tracks, if a track has several clips."),
    tracks: Path | None = file("Or a separate table with the columns item and track."),
    aliases: Path | None = options.ALIASES,
    as_spelt: bool = flag("Keep spellings apart: Hip-Hop is not hip hop.", "--as-spelt"),
    delimiter: str | None = options.DELIMITER,
    no_header: bool = options.NO_HEADER,
    encoding: str = options.ENCODING,
    long: bool = flag("One row per clip and tag, instead of a column per tag.", "--long"),
    raw: bool = options.RAW,
    model: Path | None = file("Also save the smoother, .safetensors."),
    hidden: int = number(50, "Hidden units."),
    epochs: int = number(100, "Train for at most N epochs."),
    seed: int = options.SEED,
    show: int = number(8, "Show N lines of each list.", min=0),
) -> None:
    """Predict the tags that a new user would give each clip.

    Fills in what users left out, and doubts what only one of them said. Writes the probability of
    every tag for every clip, and shows where it differs most from what the users said.

    Example: harmonium smooth triples.csv -o smoothed.parquet --tags 100
    Then: polars.read_parquet("smoothed.parquet")
    In Python: harmonium.TagSmoother().fit(triples).smooth()
    """
    from harmonium.data import read_triples
    from harmonium.data.tables import read_rows
    from harmonium.estimators import TagSmoother
    from harmonium.files import atomic_file, check_writable
    from harmonium.spreadsheets import guarded_frame

    check_writable(output, FORMATS)
    if model is not None:
        check_writable(model)
    given = read_triples(
        triples,
        user=numbered_column(user),
        item=numbered_column(item),
        tag=numbered_column(tag),
        normalise=not as_spelt,
        aliases=aliases,
        header=not no_header,
        delimiter=delimiter,
        encoding=encoding,
    )
    rows = None
    if track is not None:
        rows = read_rows(
            triples,
            {"item": numbered_column(item), "track": numbered_column(track)},
            header=not no_header,
            delimiter=delimiter,
            encoding=encoding,
        )
    elif tracks is not None:
        rows = read_rows(tracks, {"item": "item", "track": "track"})
    track_of = None if rows is None else rows.usable().mapping("item", "track")
    out = Output()
    _say_sizes(out, given, track_of, tags)
    began = time.perf_counter()
    smoother = TagSmoother(
        n_tags=tags,
        n_hidden=hidden,
        max_epochs=epochs,
        random_state=seed,
        n_jobs=-1,
        verbose=int(sys.stderr.isatty()),
    )
    smoothed = smoother.fit(given, tracks=track_of).smooth()
    seconds = time.perf_counter() - began
    table = smoothed.long() if long else smoothed.frame()
    with atomic_file(output) as opened:
        if output.suffix.lower() == ".csv":
            safe = table if raw else guarded_frame(table)
            safe.write_csv(opened, float_precision=4)
        else:
            table.write_parquet(opened)
    if model is not None:
        smoother.save(model)
    changes = smoother.changes(smoothed)
    if show and len(changes):
        _show_changes(out, given, changes, show)
    out.say("", _quality(smoother))
    size = f"{len(smoother.items_):,} clips × {len(smoother.tags_):,} tags in "
    also = "" if model is None else f" and {model}"
    out.say(Text.assemble(size, (str(output), "bold"), f"{also}; {seconds:.0f} s"))


def _quality(smoother: TagSmoother) -> str | None:
    """How well held-out users are predicted; None if there were none."""
    best = smoother.best_epoch_
    score = smoother.history_["validation"][best - 1] if best else math.nan
    if math.isnan(score):
        return None
    return (
        f"Log-likelihood per tag of held-out users: {score:.3f}; by how often each tag is used: "
        f"{smoother.baseline_:.3f}"
    )


def _say_sizes(out: Output, triples: Triples, track_of: dict[str, str] | None, n_tags: int) -> None:
    """What was read."""
    line = (
        f"{len(triples):,} triples of {counted(len(triples.users), 'user')} and "
        f"{counted(len(triples.items), 'clip')}"
    )
    if track_of is not None:
        n_tracks = len({track_of[item] for item in triples.items if item in track_of})
        line += f" of {counted(n_tracks, 'track')}"
    if n_tags < len(triples.tags):
        share = len(triples.top_tags(n_tags)) / len(triples)
        tags = f"the {n_tags:,} most used of {len(triples.tags):,} tags, {share:.0%} of them"
    else:
        tags = counted(len(triples.tags), "tag")
    out.say(f"{line}; {tags}")


def _show_changes(out: Output, triples: Triples, changes: pl.DataFrame, n: int) -> None:
    """The clips that changed most, and the tags that were filled in and doubted most often."""
    _say_title(out, "Most changed clips", "percent of new users who would say it")
    clips = [_clip_row(triples, changes, item) for item in _most_frequent(changes["item"])[:n, 0]]
    out.table(("Clip", ">Users", "Said", "Filled in", "Doubted"), clips)
    for kind, meaning in CHANGES.items():
        rows = changes.filter(changes["change"] == kind)
        if len(rows):
            _say_title(out, f"Tags {kind} most often", meaning)
            out.table(("Tag", ">Clips", "", "Such as"), _tag_rows(rows, n))


def _tag_rows(changes: pl.DataFrame, n: int) -> list[tuple[Cell, ...]]:
    """The n tags that changed most often: how often, and two clips."""
    counts = _most_frequent(changes["tag"])
    largest = counts["n"][0]
    rows: list[tuple[Cell, ...]] = []
    for tag, n_clips in counts.head(n).iter_rows():
        examples = changes.filter(changes["tag"] == tag)["item"][:2]
        rows.append((tag, n_clips, share_bar(n_clips / largest), Text(", ".join(examples), "dim")))
    return rows


def _say_title(out: Output, title: str, aside: str) -> None:
    out.say("", Text.assemble((title, "bold"), " ", (f"({aside})", "dim")))


def _clip_row(triples: Triples, changes: pl.DataFrame, item: str) -> tuple[Cell, ...]:
    rows = changes.filter(changes["item"] == item)
    given = triples.tags.gather(triples.tag[triples.item == triples.items.index_of(item)])
    said = _most_frequent(given)
    cells = [Text(_numbered_tags(said.to_series(0), said["n"], "×"))]
    for kind, style in (("filled in", "green"), ("doubted", "yellow")):
        tags = rows.filter(rows["change"] == kind)
        percents = (100 * tags["probability"]).round().cast(int)
        cells.append(Text(_numbered_tags(tags["tag"], percents, "%"), style))
    return item, rows["users"][0], *cells


def _numbered_tags(tags: pl.Series, numbers: pl.Series, unit: str) -> str:
    """For example "rock 2×, loud 1×, and 3 more"."""
    words = [f"{tag} {n}{unit}" for tag, n in zip(tags, numbers, strict=True)]
    return ", ".join(shortened(words, MAX_TAGS))


def _most_frequent(values: pl.Series) -> pl.DataFrame:
    """Each value and n, how often it occurs; the most frequent first, then alphabetically."""
    return values.value_counts(name="n").sort("n", values.name, descending=[True, False])
