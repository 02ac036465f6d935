"""`harmonium demo`: the main job on the generated collection, told as it goes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harmonium.commands.options import JobsOption
from harmonium.commands.screen import Flow, bar, percent, plain_table, say

if TYPE_CHECKING:
    from harmonium.collection import Library
    from harmonium.collection.answering.search import SearchResult
    from harmonium.collection.store.models import StoredModel
    from harmonium.demo.steps import DemoEvaluation, DemoMusic

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
    says its command. At the end there is a page to look at and listen
    to. A second run goes on with what the first has written.

    [dim]Example:[/dim]  harmonium demo /tmp/demo --tracks 100
    """
    from harmonium.collection import Library
    from harmonium.demo import steps
    from harmonium.engine import available_cores

    began = time.monotonic()
    run = _DemoRun(Console(), folder, seed, jobs or available_cores())
    music = run.generate(tracks)
    with Library.open(music.path(steps.LIBRARY)) as library:
        run.index(library, music)
        n_given = run.import_tags(library, music)
        model = run.train(library)
        run.tag(library, model)
        evaluation = steps.evaluate(library, music, model)
        run.show_evaluation(music, evaluation)
        query = steps.choose_query(evaluation, model)
        found = run.search(library, query)
    run.write_page(music, model, evaluation, query, found, n_given)
    run.end(time.monotonic() - began)


@dataclass
class _DemoRun:
    """Does each step of the demo, and says what came of it."""

    console: Console
    folder: Path
    seed: int
    jobs: int
    n_steps: int = 0

    def generate(self, n_tracks: int) -> DemoMusic:
        from harmonium.demo.steps import make_music

        self._head("A collection of music", "generated, so that the truth about it is known")
        with bar(self.console, "rendering") as progress:
            music = make_music(
                self.folder, n_tracks, seed=self.seed, jobs=self.jobs, progress=progress
            )
        artists = music.collection.clips["artist"].n_unique()
        self._say(f"{n_tracks} tracks of 10 seconds by {artists} invented artists.")
        return music

    def index(self, library: Library, music: DemoMusic) -> None:
        from harmonium.collection.indexing.run import index
        from harmonium.demo.steps import AUDIO

        self._head("Listening", f"harmonium index {self.folder / AUDIO}")
        with bar(self.console, "listening") as progress:
            report = index(library, [music.path(AUDIO)], jobs=self.jobs, progress=progress)
        n_known = music.collection.n_tracks - len(report.new)
        again = f", {n_known} were known" if n_known else ""
        self._say(
            f"{len(report.new)} new tracks in the library{again}; 389 numbers for the timbre and "
            "rhythm of each."
        )

    def import_tags(self, library: Library, music: DemoMusic) -> int:
        from harmonium.demo.steps import PEOPLE, TAGS, import_tags

        self._head("People's tags", f"harmonium import {self.folder / TAGS}")
        report = import_tags(library, music)
        self._say(
            f"{PEOPLE} people gave {report.n_matched:,} tags to {report.n_tracks} of the tracks, "
            f"{report.n_tags} different ones, each with words, habits and mistakes of their own. "
            "Nobody tagged the other half."
        )
        return report.n_matched

    def train(self, library: Library) -> StoredModel:
        from harmonium.collection.learning.train import TrainingOptions, train

        self._head("Learning", "harmonium train")
        with bar(self.console, "training") as progress:
            options = TrainingOptions(seed=self.seed)
            model = train(library, options, progress=lambda _, *done: progress(*done))
        self._say(_learnt(model.report))
        return model

    def tag(self, library: Library, model: StoredModel) -> None:
        from harmonium.collection.answering.tag import tag_library

        self._head("Tagging", "harmonium tag")
        with bar(self.console, "tagging") as progress:
            n = tag_library(library, model, progress=progress)
        self._say(f"{n} tracks have a probability for each of {len(model.vocabulary)} tags.")

    def show_evaluation(self, music: DemoMusic, evaluation: DemoEvaluation) -> None:
        self._head("How good is that?", "the half that nobody tagged, against the truth")
        table = plain_table("Tag", "Learnt from", "AUC", right=("Learnt from", "AUC"))
        for one in evaluation.tag_aucs()[:TAGS_SHOWN]:
            table.add_row(one.tag, str(one.examples), f"{one.auc:.2f}")
        self.console.print(table)
        text = Text.assemble(
            f"Mean AUC of all {len(evaluation.tags)} tags: ",
            (f"{evaluation.auc.mean:.3f}", "bold"),
            " (0.5 is chance, 1 is perfect)",
        )
        self._say(text)
        self.console.print()
        self.console.print(_track_table(music, evaluation))

    def search(self, library: Library, query: str) -> SearchResult:
        from harmonium.collection.answering.search import search

        self._head("Searching", f"harmonium search '{query}'")
        found = search(library, query, limit=HITS_SHOWN)
        table = plain_table("Track", "Probability", right=("Probability",))
        for hit in found.hits:
            by = "people say so" if hit.certain else percent(hit.probability)
            table.add_row(Text(hit.track.name), by)
        self.console.print(table)
        return found

    def write_page(self, *results: Any) -> None:
        from harmonium.demo.page import write_page

        self._head("Look and listen", "open this page in a browser")
        self._say(Text(str(write_page(*results)), style="bold"))

    def end(self, seconds: float) -> None:
        from harmonium.demo.page import NEXT_STEPS
        from harmonium.demo.steps import LIBRARY

        self.console.print()
        self._say(f"Done in {seconds:.0f} s. Next, with your own music:")
        width = max(len(command) for command, _ in NEXT_STEPS)
        for command, why in NEXT_STEPS:
            self._say(Text.assemble("  ", (f"{command:<{width}}", "cyan"), f"   # {why}"))
        library = self.folder / LIBRARY
        self._say(f"To go on with this collection instead, add --library {library} to a command.")

    def _head(self, title: str, how: str) -> None:
        self.n_steps += 1
        self.console.print()
        self._say(Text.assemble((f"{self.n_steps}. {title}", "bold"), "   ", (how, "dim")))

    def _say(self, message: str | Text) -> None:
        say(self.console, message)


def _learnt(report: dict[str, Any]) -> str:
    n_learnt = sum(tag["learnt"] for tag in report["tags"])
    words = "smoothed tags" if report["smoothed"] else "the tags as they were given"
    tried = f" Of smoothed and raw tags, {words} did better." if report["smoothing_tried"] else ""
    return (
        f"{len(report['tags'])} tags have enough examples, {n_learnt} of them can be told from "
        f"chance; mean AUC {report['mean_auc']:.3f} against what the three say of tracks that were "
        f"held out.{tried}"
    )


def _track_table(music: DemoMusic, evaluation: DemoEvaluation) -> Table:
    table = plain_table("Track", "Its likeliest tags (✓ true of it)")
    n = len(evaluation.rows)
    for i in range(0, n, max(1, n // TRACKS_SHOWN))[:TRACKS_SHOWN]:
        clip = music.collection.clips.row(int(evaluation.rows[i]), named=True)
        tags = [
            Text.assemble(f"{one.tag} {percent(one.probability)}", (" ✓" * one.true, "green"))
            for one in evaluation.predicted_tags(i)[:TAGS_OF_A_TRACK]
        ]
        table.add_row(Text(f"{clip['artist']} - {clip['title']}"), Flow(tags))
    return table
