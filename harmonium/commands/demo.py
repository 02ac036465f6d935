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

# How much is shown.
TAGS_SHOWN = 12
TRACKS_SHOWN = 6
TAGS_OF_A_TRACK = 5
HITS_SHOWN = 8


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

    began = time.monotonic()
    out = Output()
    n_jobs = jobs or available_cores()
    _head(out, 1, "A collection of music", "generated, so that its true tags are known")
    with out.bar("rendering") as progress:
        music = steps.make_music(folder, tracks, seed=seed, jobs=n_jobs, progress=progress)
    n_artists = music.collection.clips["artist"].n_unique()
    out.say(f"{tracks} tracks of 10 seconds by {n_artists} invented artists.")
    with Library.open(music.folder / steps.LIBRARY) as library:
        _listen(out, library, music, folder, n_jobs)
        model = _learn(out, library, seed)
        _show_evaluation(out, steps.evaluate(library, music, model))
        _search(out, library, steps.choose_query(model))
    place = folder / steps.LIBRARY
    _head(out, 8, "Look and listen", f"harmonium serve --library {place}")
    out.say("This command shows and plays the tracks in a browser.", "")
    out.say(f"Done in {time.monotonic() - began:.0f} s. Next, with your own music:")
    for line in steps.NEXT_STEPS.splitlines():
        command, hash_sign, reason = line.partition("#")
        out.say(Text.assemble("  ", (command, "cyan"), hash_sign, reason))
    out.say(f"To continue with this collection, add --library {place} to a command.")


def _head(out: Output, number: int, title: str, command: str) -> None:
    out.say("", Text.assemble((f"{number}. {title}", "bold"), "   ", (command, "dim")))


def _listen(out: Output, library: Library, music: DemoMusic, folder: Path, jobs: int) -> None:
    """Index the music and import the tags."""
    from harmonium.demo import AUDIO, PEOPLE, TAGS, import_tags

    _head(out, 2, "Listening", f"harmonium index {folder / AUDIO}")
    with out.bar("listening") as progress:
        indexed = library.index(
            music.folder / AUDIO, extractor="paper", jobs=jobs, cache=False, progress=progress
        )
    n_known = music.collection.n_tracks - len(indexed.new)
    known = f", {n_known} were known" if n_known else ""
    out.say(
        f"{len(indexed.new)} new tracks in the library{known}; 389 numbers for the timbre and "
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
    report = model.report
    smoothing = ""
    if report.smoothing_tried and report.smoothed:
        smoothing = " Smoothed tags did better than the tags as given."
    elif report.smoothing_tried:
        smoothing = " The tags as given did better than smoothed ones."
    out.say(
        f"{len(report.tags)} tags have enough examples, {report.n_learnt} of them are clearly "
        f"above chance; mean AUC {report.mean_auc:.3f} on held-out tracks, against what the three "
        f"people say.{smoothing}"
    )
    _head(out, 5, "Tagging", "harmonium tag")
    with out.bar("tagging") as progress, library.learner.paused():
        n_tagged = library.tag_all(progress=progress)
    out.say(f"{n_tagged} tracks have a probability for each of {len(model.vocabulary)} tags.")
    return model


def _show_evaluation(out: Output, evaluation: DemoEvaluation) -> None:
    _head(out, 6, "How good is that?", "the half that nobody tagged, against the truth")
    rows = []
    for score in evaluation.tag_scores[:TAGS_SHOWN]:
        rows.append((score.tag, score.n_examples, f"{score.auc:.2f}"))
    out.table(("Tag", ">Trained on", ">AUC"), rows)
    label = f"Mean AUC of all {len(evaluation.tags)} tags: "
    mean = Text(f"{evaluation.mean_auc:.3f}", style="bold")
    out.say(Text.assemble(label, mean, " (0.5 is chance, 1 is perfect)"), "")

    table = plain_table("Track", "Its most likely tags (✓ true)")
    n_clips = len(evaluation.clips)
    step = max(1, n_clips // TRACKS_SHOWN)
    for i in range(0, n_clips, step)[:TRACKS_SHOWN]:
        clip = evaluation.clips[i]
        tags = []
        for predicted in evaluation.predicted_tags(i)[:TAGS_OF_A_TRACK]:
            tick = " ✓" if predicted.is_true else ""
            text = f"{predicted.tag} {percent(predicted.probability)}"
            tags.append(Text.assemble(text, (tick, "green")))
        table.add_row(Text(f"{clip['artist']} - {clip['title']}"), Flow(tags))
    out.console.print(table)


def _search(out: Output, library: Library, query: str) -> None:
    _head(out, 7, "Searching", f"harmonium search '{query}'")
    rows = []
    for hit in library.search(query, limit=HITS_SHOWN):
        source = "people say so" if hit.source == "people" else hit.probability
        rows.append((hit.track.name, source))
    out.table(("Track", ">Probability"), rows)
