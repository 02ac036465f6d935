"""`harmonium demo`: the main job on a generated collection, step by step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from harmonium.commands import options
from harmonium.commands.options import number
from harmonium.commands.output import Flow, Output, percent, plain_table

if TYPE_CHECKING:
    from harmonium.demo import DemoEvaluation, DemoMusic
    from harmonium.library import Library
    from harmonium.library.store.models import StoredModel

MIN_TRACKS = 40  # people tag half of the tracks, and training needs 20 tagged ones
TAGS_SHOWN, TRACKS_SHOWN, TAGS_OF_A_TRACK, HITS_SHOWN = 12, 6, 5, 8


def demo(
    folder: Path = typer.Argument(Path("demo"), help="Where the music and the results go."),
    tracks: int = number(200, "Generate N tracks.", min=MIN_TRACKS),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
) -> None:
    """Generate music, learn its tags, and tag the rest of it.

    Three simulated people tag half of the tracks. The rest is what you would do with your own
    music: index, import, train, tag, search, serve; each step shows its command. A second run
    continues from the first.

    Example: harmonium demo /tmp/demo --tracks 100
    """
    from harmonium import demo as steps
    from harmonium.engine import available_cores
    from harmonium.library import Library

    began, out, n_jobs = time.monotonic(), Output(), jobs or available_cores()
    _head(out, 1, "A collection of music", "generated, so that its true tags are known")
    with out.bar("rendering") as progress:
        music = steps.make_music(folder, tracks, seed=seed, jobs=n_jobs, progress=progress)
    artists = music.collection.clips["artist"].n_unique()
    out.say(f"{tracks} tracks of 10 seconds by {artists} invented artists.")
    with Library.open(music.folder / steps.LIBRARY) as library:
        _listen(out, library, music, folder, n_jobs)
        model = _learn(out, library, seed)
        evaluation = steps.evaluate(library, music, model)
        _show_evaluation(out, evaluation)
        query = steps.choose_query(model)
        _head(out, 7, "Searching", f"harmonium search '{query}'")
        found = library.search(query, limit=HITS_SHOWN)
    rows = [
        (hit.track.name, "people say so" if hit.source == "people" else hit.probability)
        for hit in found
    ]
    out.table(("Track", ">Probability"), rows)
    place = folder / steps.LIBRARY
    _head(out, 8, "Look and listen", f"harmonium serve --library {place}")
    out.say("This command shows and plays the tracks in a browser.", "")
    out.say(f"Done in {time.monotonic() - began:.0f} s. Next, with your own music:")
    for line in steps.NEXT_STEPS.splitlines():
        command, hash, why = line.partition("#")
        out.say(Text.assemble("  ", (command, "cyan"), hash, why))
    out.say(f"To continue with this collection, add --library {place} to a command.")


def _head(out: Output, number: int, title: str, how: str) -> None:
    out.say("", Text.assemble((f"{number}. {title}", "bold"), "   ", (how, "dim")))


def _listen(out: Output, library: Library, music: DemoMusic, folder: Path, jobs: int) -> None:
    """Index the music and import the tags."""
    from harmonium.demo import AUDIO, PEOPLE, TAGS, import_tags

    _head(out, 2, "Listening", f"harmonium index {folder / AUDIO}")
    with out.bar("listening") as progress:
        indexed = library.index(
            music.folder / AUDIO, extractor="paper", jobs=jobs, cache=False, progress=progress
        )
    n_known = music.collection.n_tracks - len(indexed.new)
    again = f", {n_known} were known" if n_known else ""
    out.say(
        f"{len(indexed.new)} new tracks in the library{again}; 389 numbers for the timbre and "
        "rhythm of each."
    )
    _head(out, 3, "People's tags", f"harmonium import {folder / TAGS}")
    given = import_tags(library, music)
    out.say(
        f"{PEOPLE} people gave {given.n_matched:,} tags to {given.n_tracks} of the tracks, "
        f"{given.n_tags} different ones. Each has their own words, habits and mistakes. Nobody "
        "tagged the other half."
    )


def _learn(out: Output, library: Library, seed: int) -> StoredModel:
    """Train a model, and tag all tracks with it."""
    _head(out, 4, "Learning", "harmonium train")
    with out.bar("training") as progress:
        model = library.train(seed=seed, progress=lambda _, *done: progress(*done))
    report, tags = model.report, model.report["tags"]
    better, worse = "The tags as given", "smoothed ones"
    if report["smoothed"]:
        better, worse = "Smoothed tags", "the tags as given"
    tried = f" {better} did better than {worse}." if report["smoothing_tried"] else ""
    out.say(
        f"{len(tags)} tags have enough examples, {sum(tag['learnt'] for tag in tags)} of them are "
        f"clearly above chance; mean AUC {report['mean_auc']:.3f} on held-out tracks, against what "
        f"the three people say.{tried}"
    )
    _head(out, 5, "Tagging", "harmonium tag")
    with out.bar("tagging") as progress:
        n = library.tag_all(progress=progress, learn=False)
    out.say(f"{n} tracks have a probability for each of {len(model.vocabulary)} tags.")
    return model


def _show_evaluation(out: Output, evaluation: DemoEvaluation) -> None:
    _head(out, 6, "How good is that?", "the half that nobody tagged, against the truth")
    scores = [(tag, n, f"{auc:.2f}") for tag, n, auc in evaluation.tag_aucs[:TAGS_SHOWN]]
    out.table(("Tag", ">Trained on", ">AUC"), scores)
    mean = Text(f"{evaluation.mean_auc:.3f}", style="bold")
    what = f"Mean AUC of all {len(evaluation.tags)} tags: "
    out.say(Text.assemble(what, mean, " (0.5 is chance, 1 is perfect)"), "")
    tracks = plain_table("Track", "Its most likely tags (✓ true)")
    n = len(evaluation.clips)
    for i in range(0, n, max(1, n // TRACKS_SHOWN))[:TRACKS_SHOWN]:
        clip = evaluation.clips[i]
        tags = [
            Text.assemble(f"{tag} {percent(probability)}", (" ✓" * is_true, "green"))
            for tag, probability, is_true in evaluation.predicted_tags(i)[:TAGS_OF_A_TRACK]
        ]
        tracks.add_row(Text(f"{clip['artist']} - {clip['title']}"), Flow(tags))
    out.console.print(tracks)
