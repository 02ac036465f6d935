"""`harmonium demo`: the main job on the generated collection, told as it goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from harmonium.commands.options import JobsOption
from harmonium.commands.screen import Flow, bar, percent, plain_table, say

if TYPE_CHECKING:
    from harmonium.demo.steps import DemoEvaluation, DemoMusic
    from harmonium.library import Library
    from harmonium.library.answering.search import SearchResult
    from harmonium.library.store.models import StoredModel

LEAST_TRACKS = 40
"""People tag half of the tracks, and training needs 20 that are tagged."""
TAGS_SHOWN, TRACKS_SHOWN, TAGS_OF_A_TRACK, HITS_SHOWN = 12, 6, 5, 8


def demo(
    folder: Annotated[Path, typer.Argument(help="Where the music and the results go.")] = Path(
        "demo"
    ),
    tracks: Annotated[
        int, typer.Option(metavar="N", min=LEAST_TRACKS, help="How many tracks to generate.")
    ] = 200,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Another seed, another collection.")
    ] = 0,
    jobs: JobsOption = None,
) -> None:
    """Generate a music collection, learn its listeners' tags, and tag the rest of it.

    Three people tag half of the tracks. The rest is what you would do
    with your own music: index, import, train, tag, search; each step
    shows its command. At the end there is a page to look at and listen
    to. A second run goes on with what the first has written.

    [dim]Example:[/dim]  harmonium demo /tmp/demo --tracks 100
    """
    from harmonium.demo import steps
    from harmonium.demo.page import NEXT_STEPS, write_page
    from harmonium.engine import available_cores
    from harmonium.library import Library

    began = time.monotonic()
    console, n_jobs = Console(), jobs or available_cores()
    _head(console, 1, "A collection of music", "generated, so that the truth about it is known")
    with bar(console, "rendering") as progress:
        music = steps.make_music(folder, tracks, seed=seed, jobs=n_jobs, progress=progress)
    artists = music.collection.clips["artist"].n_unique()
    say(console, f"{tracks} tracks of 10 seconds by {artists} invented artists.")
    with Library.open(music.path(steps.LIBRARY)) as library:
        n_given = _listen(console, library, music, folder, n_jobs)
        model = _learn(console, library, seed)
        evaluation = steps.evaluate(library, music, model)
        _show_evaluation(console, music, evaluation)
        query = steps.choose_query(evaluation, model)
        found = _search(console, library, query)
    _head(console, 8, "Look and listen", "open this page in a browser")
    page = write_page(music, model, evaluation, query, found, n_given)
    say(console, Text(str(page), style="bold"))
    console.print()
    say(console, f"Done in {time.monotonic() - began:.0f} s. Next, with your own music:")
    width = max(len(command) for command, _ in NEXT_STEPS)
    for command, why in NEXT_STEPS:
        say(console, Text.assemble("  ", (f"{command:<{width}}", "cyan"), f"   # {why}"))
    place = folder / steps.LIBRARY
    say(console, f"To go on with this collection instead, add --library {place} to a command.")
    say(console, Text.assemble("In a browser: ", (f"harmonium serve --library {place}", "cyan")))


def _head(console: Console, number: int, title: str, how: str) -> None:
    console.print()
    say(console, Text.assemble((f"{number}. {title}", "bold"), "   ", (how, "dim")))


def _listen(console: Console, library: Library, music: DemoMusic, folder: Path, jobs: int) -> int:
    """Index the music and import what people say about it; how many tags that is."""
    from harmonium.demo.steps import AUDIO, PEOPLE, TAGS, import_tags
    from harmonium.library.index import index

    _head(console, 2, "Listening", f"harmonium index {folder / AUDIO}")
    with bar(console, "listening") as progress:
        indexed = index(
            library, [music.path(AUDIO)], extractor="paper", jobs=jobs, progress=progress
        )
    n_known = music.collection.n_tracks - len(indexed.new)
    again = f", {n_known} were known" if n_known else ""
    say(
        console,
        f"{len(indexed.new)} new tracks in the library{again}; 389 numbers for the timbre and "
        "rhythm of each.",
    )
    _head(console, 3, "People's tags", f"harmonium import {folder / TAGS}")
    given = import_tags(library, music)
    say(
        console,
        f"{PEOPLE} people gave {given.n_matched:,} tags to {given.n_tracks} of the tracks, "
        f"{given.n_tags} different ones, each with words, habits and mistakes of their own. "
        "Nobody tagged the other half.",
    )
    return given.n_matched


def _learn(console: Console, library: Library, seed: int) -> StoredModel:
    """Train a model, and tag all tracks with it."""
    from harmonium.library.answering.tag import tag_library
    from harmonium.library.learning.train import TrainingOptions, train

    _head(console, 4, "Learning", "harmonium train")
    with bar(console, "training") as progress:
        options = TrainingOptions(seed=seed)
        model = train(library, options, progress=lambda _, *done: progress(*done))
    report, tags = model.report, model.report["tags"]
    better = "Smoothed tags" if report["smoothed"] else "The tags as they were given"
    worse = "the tags as they were given" if report["smoothed"] else "smoothed ones"
    tried = f" {better} did better than {worse}." if report["smoothing_tried"] else ""
    say(
        console,
        f"{len(tags)} tags have enough examples, {sum(tag['learnt'] for tag in tags)} of them are "
        f"clearly above chance; mean AUC {report['mean_auc']:.3f} against what the three "
        f"say about tracks that were held out.{tried}",
    )
    _head(console, 5, "Tagging", "harmonium tag")
    with bar(console, "tagging") as progress:
        n = tag_library(library, model, progress=progress)
    say(console, f"{n} tracks have a probability for each of {len(model.vocabulary)} tags.")
    return model


def _show_evaluation(console: Console, music: DemoMusic, evaluation: DemoEvaluation) -> None:
    _head(console, 6, "How good is that?", "the half that nobody tagged, against the truth")
    scores = plain_table("Tag", "Learnt from", "AUC", right=("Learnt from", "AUC"))
    for one in evaluation.tag_aucs()[:TAGS_SHOWN]:
        scores.add_row(one.tag, str(one.examples), f"{one.auc:.2f}")
    console.print(scores)
    mean = Text(f"{evaluation.auc.mean:.3f}", style="bold")
    what = f"Mean AUC of all {len(evaluation.tags)} tags: "
    say(console, Text.assemble(what, mean, " (0.5 is chance, 1 is perfect)\n"))
    tracks = plain_table("Track", "Its likeliest tags (✓ true of it)")
    n = len(evaluation.rows)
    for i in range(0, n, max(1, n // TRACKS_SHOWN))[:TRACKS_SHOWN]:
        clip = music.collection.clips.row(int(evaluation.rows[i]), named=True)
        tags = [
            Text.assemble(f"{one.tag} {percent(one.probability)}", (" ✓" * one.true, "green"))
            for one in evaluation.predicted_tags(i)[:TAGS_OF_A_TRACK]
        ]
        tracks.add_row(Text(f"{clip['artist']} - {clip['title']}"), Flow(tags))
    console.print(tracks)


def _search(console: Console, library: Library, query: str) -> SearchResult:
    from harmonium.library.answering.search import search

    _head(console, 7, "Searching", f"harmonium search '{query}'")
    found = search(library, query, limit=HITS_SHOWN)
    table = plain_table("Track", "Probability", right=("Probability",))
    for hit in found.hits:
        by = "people say so" if hit.certain else percent(hit.probability)
        table.add_row(Text(hit.track.name), by)
    console.print(table)
    return found
