"""`harmonium demo`: the main job on the generated collection, told as it goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from harmonium.commands.bars import bar

if TYPE_CHECKING:
    from harmonium.data.synthetic import SyntheticCollection
    from harmonium.demo import Tagged


def demo(
    folder: Annotated[Path, typer.Argument(help="Where the music and the results go.")] = Path(
        "demo"
    ),
    tracks: Annotated[int, typer.Option(min=10, help="How many tracks to generate.")] = 80,
    clips: Annotated[int, typer.Option(min=1, help="Clips of 10 seconds of each track.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another collection.")] = 0,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes to work with; all cores by default.")
    ] = os.cpu_count() or 1,
) -> None:
    """Generate a music collection, learn its listeners' tags, and tag the rest of it.

    Writes the music as WAV files you can listen to, the listeners' tags,
    the model, and the tags it gives to the tracks that nobody tagged.
    A second run takes up what the first has written.

    [dim]Example:[/dim]  harmonium demo /tmp/demo --tracks 40
    """
    from harmonium import demo as job
    from harmonium.data.synthetic import make_collection

    console = Console()
    collection = make_collection(tracks, clips, seed=seed)
    console.print(
        f"\n[bold]1. A collection of music[/bold]: {tracks} tracks by invented artists, "
        f"{collection.n_clips} clips of 10 seconds"
    )
    with bar(console, "rendering") as progress:
        collection.write(folder, jobs=jobs, progress=progress)
    _say_who_tagged(console, collection)

    console.print(
        "\n[bold]2. What it sounds like[/bold]: 389 numbers for the timbre and rhythm of a clip"
    )
    paths = [folder / path for path in collection.clips["path"]]
    with bar(console, "listening") as progress:
        features = job.extract(paths, jobs=jobs, progress=progress)

    console.print(
        "\n[bold]3. Learning[/bold]: a discriminative RBM, from the tags of four tracks in five"
    )
    tagged = job.learn_and_tag(collection, features, seed=seed, verbose=console.is_terminal)
    console.print(
        f"{len(tagged.tags)} tags with at least {job.MIN_EXAMPLES} examples; best after "
        f"{tagged.model.best_epoch_} epochs; {sum(tagged.model.history_['seconds']):.0f} seconds."
    )

    n_tracks = collection.clips["track"].gather(tagged.clips).n_unique()
    console.print(
        f"\n[bold]4. Tagging the rest[/bold]: {len(tagged.clips)} clips of {n_tracks} tracks "
        "that it has not heard before"
    )
    console.print(_tag_table(tagged))
    console.print(
        f"Mean AUC of all {len(tagged.tags)} tags, against the truth: "
        f"[bold]{tagged.auc.mean:.3f}[/bold] (0.5 is chance, 1 is perfect)"
    )
    console.print(_clip_table(collection, tagged))
    _say_completion(console, collection, tagged)
    job.save(folder, collection, tagged)
    console.print(
        f"\nIn [bold]{folder}[/bold]: audio/ (listen to it), triples.csv (who tagged what), "
        "tags.csv (what the model says), model.safetensors"
    )


def _say_who_tagged(console: Console, collection: SyntheticCollection) -> None:
    triples = collection.triples
    console.print(
        f"Its {len(triples.users)} listeners, three to a clip, gave {len(triples):,} tags, each "
        "with words, habits and mistakes of their own."
    )


def _tag_table(tagged: Tagged) -> Table:
    table = Table(title="The most used tags", title_justify="left", title_style="")
    table.add_column("tag")
    table.add_column("examples", justify="right")
    table.add_column("AUC", justify="right")
    for tag, examples, auc in list(
        zip(tagged.tags, tagged.examples, tagged.auc.values, strict=True)
    )[:12]:
        table.add_row(tag, str(examples), f"{auc:.2f}")
    return table


def _clip_table(collection: SyntheticCollection, tagged: Tagged) -> Table:
    table = Table(
        title="\nSome of the clips, with what they are most likely to be called",
        title_justify="left",
        title_style="",
        caption="✓ true of the clip",
        caption_justify="left",
    )
    table.add_column("clip")
    table.add_column("tags and their probabilities, in percent")
    shown = range(0, len(tagged.clips), max(1, len(tagged.clips) // 6))
    for i in list(shown)[:6]:
        clip = collection.clips.row(int(tagged.clips[i]), named=True)
        best = (-tagged.probabilities[i]).argsort()[:6]
        words = [
            f"{tagged.tags[j]} {100 * tagged.probabilities[i, j]:.0f}"
            + ("[green]✓[/green]" if tagged.truth[i, j] else "")
            for j in best
        ]
        table.add_row(f"{clip['title']} ({clip['artist']}), {clip['section']}", ", ".join(words))
    return table


def _say_completion(console: Console, collection: SyntheticCollection, tagged: Tagged) -> None:
    """Tell the model the true tag that it least expects of the first clip; show what follows."""
    import numpy as np

    p = tagged.probabilities[0]
    surprise = np.where(tagged.truth[0], p, np.inf)
    told = int(surprise.argmin())
    known = np.full((1, len(p)), np.nan, np.float32)
    known[0, told] = 1
    after = tagged.model.complete(tagged.features.head(1), known)[0]
    gains = np.where(np.arange(len(p)) == told, -np.inf, after - p).argsort()[::-1][:4]
    changes = ", ".join(f"{tagged.tags[j]} {100 * p[j]:.0f} → {100 * after[j]:.0f}" for j in gains)
    title = collection.clips["title"][int(tagged.clips[0])]
    console.print(
        f"\nTold that [bold]{title}[/bold] is “{tagged.tags[told]}” (it had said "
        f"{100 * p[told]:.0f} %), the model thinks better of: {changes}"
    )
