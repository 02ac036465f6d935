"""What `harmonium smooth` says: the sizes, what changed most, and where the results are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import polars as pl

    from harmonium.data import Triples
    from harmonium.estimators import TagSmoother

_IN_A_CELL = 5  # tags


def say_sizes(
    console: Console, triples: Triples, track_of: Mapping[str, str] | None, n_tags: int
) -> None:
    """What was read."""
    kept = min(n_tags, len(triples.tags))
    share = len(triples.top_tags(kept)) / len(triples)
    parts = [
        f"{len(triples):,} triples of {_some(len(triples.users), 'user')} and "
        f"{_some(len(triples.items), 'clip')}"
    ]
    if track_of is not None:
        n_tracks = len({track_of[item] for item in triples.items if item in track_of})
        parts[0] += f" of {_some(n_tracks, 'track')}"
    if kept < len(triples.tags):
        parts.append(f"the {kept:,} most used of {len(triples.tags):,} tags, {share:.0%} of them")
    else:
        parts.append(_some(kept, "tag"))
    console.print("; ".join(parts), highlight=False)


def summarise(console: Console, triples: Triples, changed: pl.DataFrame, n: int) -> None:
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


def _clip_table(changed: pl.DataFrame, triples: Triples, n: int) -> Table:
    """The clips with most changes, and of these the surest."""
    table = _table()
    table.add_column("Clip", overflow="fold", ratio=2)
    table.add_column("Users", justify="right", no_wrap=True)
    table.add_column("They said", overflow="fold", ratio=3)
    table.add_column("Filled in", overflow="fold", ratio=3, style="green")
    table.add_column("Doubted", overflow="fold", ratio=3, style="yellow")
    order = (
        changed["item"]
        .value_counts(sort=True, name="n")
        .sort("n", "item", descending=[True, False])
    )
    for item in order["item"][:n]:
        rows = changed.filter(changed["item"] == item)
        said = _said(triples, item)
        table.add_row(
            Text(item),
            f"{rows['users'][0]:,}",
            _listed(*said, "×"),
            *(_percent(rows.filter(rows["change"] == kind)) for kind in ("filled in", "doubted")),
        )
    return table


def _said(triples: Triples, item: str) -> tuple[list[str], list[int]]:
    """The tags that users gave an item, and how many of them did, most first."""
    code = triples.items.index_of(item)
    tags = triples.tags.gather(triples.tag[triples.item == code])
    counted = tags.value_counts(sort=True, name="n").sort("n", descending=True, maintain_order=True)
    return counted.to_series(0).to_list(), counted["n"].to_list()


def _tag_table(rows: pl.DataFrame, n: int) -> Table:
    table = _table()
    table.add_column("Tag", overflow="fold")
    table.add_column("Clips", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("Such as", overflow="fold")
    counted = (
        rows["tag"].value_counts(sort=True, name="n").sort("n", "tag", descending=[True, False])
    )
    most = counted["n"][0]
    for tag, count in counted.head(n).iter_rows():
        examples = rows.filter(rows["tag"] == tag)["item"][:2]
        bar = Text("━" * max(1, round(16 * count / most)), style="cyan")
        table.add_row(Text(tag), f"{count:,}", bar, Text(", ".join(examples), style="dim"))
    return table


def say_done(
    console: Console, smoother: TagSmoother, output: Path, model: Path | None, seconds: float
) -> None:
    """What was written, and how well the smoother did on users that it had not learnt from."""
    console.print()
    scores = smoother.history_["validation"]
    if smoother.best_epoch_ and scores[0] == scores[0]:
        better = scores[smoother.best_epoch_ - 1]
        console.print(
            f"Log-likelihood of a held-out user's tags, each: {better:.3f}; from how often each "
            f"tag is used alone: {smoother.baseline_:.3f}",
            highlight=False,
        )
    also = f" and {model}" if model is not None else ""
    console.print(
        f"{len(smoother.items_):,} clips × {len(smoother.tags_):,} tags in [bold]{output}[/bold]"
        f"{also}; {seconds:.0f} s",
        highlight=False,
    )


def _say_title(console: Console, title: str, aside: str) -> None:
    console.print()
    console.print(Text.assemble((title, "bold"), " ", (f"({aside})", "dim")))


def _table() -> Table:
    return Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))


def _percent(rows: pl.DataFrame) -> Text:
    percents = (100 * rows["probability"]).round().cast(int)
    return _listed(rows["tag"], percents, "%")


def _listed(tags: Any, numbers: Any, unit: str) -> Text:
    """For example "rock 2×, loud 1×, and 3 more"."""
    words = [f"{tag} {n}{unit}" for tag, n in zip(tags, numbers, strict=True)]
    more = [f"and {len(words) - _IN_A_CELL} more"] if len(words) > _IN_A_CELL else []
    return Text(", ".join(words[:_IN_A_CELL] + more))


def _some(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
