"""`harmonium demo`: the main job on the generated collection, told as it goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harmonium.commands.options import JobsOption
from harmonium.commands.screen import Flow, bar, percent, say

if TYPE_CHECKING:
    from harmonium.collection import Library
    from harmonium.collection.answering.search import SearchResult
    from harmonium.collection.store.models import StoredModel
    from harmonium.demo.story import Music, Scored

TAGS_SHOWN, TRACKS_SHOWN, GUESSES_SHOWN = 12, 6, 5


def demo(
    folder: Annotated[Path, typer.Argument(help="Where the music and the results go.")] = Path(
        "demo"
    ),
    tracks: Annotated[
        int, typer.Option(metavar="N", min=20, help="How many tracks to generate.")
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
    to. A second run takes up what the first has written.

    [dim]Example:[/dim]  harmonium demo /tmp/demo --tracks 100
    """
    from harmonium.collection import Library
    from harmonium.demo import story
    from harmonium.engine import available_cores

    began = time.monotonic()
    teller = _Teller(Console(), folder)
    n_jobs = jobs or available_cores()
    music = teller.generate(tracks, seed, n_jobs)
    with Library.open(music.path(story.LIBRARY)) as library:
        teller.index(library, music, n_jobs)
        n_said = teller.import_tags(library, music)
        model = teller.train(library, seed)
        teller.tag(library, model)
        scored = story.score(library, music, model)
        teller.score(music, model, scored)
        query = story.choose_query(scored, model)
        found = teller.search(library, query)
    teller.show(music, model, scored, query, found, n_said)
    teller.end(time.monotonic() - began)


class _Teller:
    """Does each step and says what came of it."""

    def __init__(self, console: Console, folder: Path) -> None:
        self._console = console
        self._folder = folder
        self._number = 0

    def generate(self, n_tracks: int, seed: int, jobs: int) -> Music:
        from harmonium.demo import story

        self._head("A collection of music", "generated, so that the truth about it is known")
        with bar(self._console, "rendering") as progress:
            music = story.make_music(
                self._folder, n_tracks, seed=seed, jobs=jobs, progress=progress
            )
        artists = music.collection.clips["artist"].n_unique()
        self._say(f"{n_tracks} tracks of 10 seconds by {artists} invented artists.")
        return music

    def index(self, library: Library, music: Music, jobs: int) -> None:
        from harmonium.demo import story

        self._head("Listening", f"harmonium index {self._folder / 'audio'}")
        with bar(self._console, "listening") as progress:
            report = story.index_music(library, music, jobs=jobs, progress=progress)
        n_known = music.collection.n_tracks - len(report.new)
        again = f", {n_known} were known" if n_known else ""
        self._say(
            f"{len(report.new)} new tracks in the library{again}; 389 numbers for the timbre and "
            "rhythm of each."
        )

    def import_tags(self, library: Library, music: Music) -> int:
        from harmonium.demo import story

        self._head("People's tags", f"harmonium import {music.path(story.TAGS)}")
        report = story.import_tags(library, music)
        self._say(
            f"{story.PEOPLE} people gave {report.n_matched:,} tags to {report.n_tracks} of the "
            f"tracks, {report.n_tags} different ones, each with words, habits and mistakes of "
            "their own. Nobody tagged the other half."
        )
        return report.n_matched

    def train(self, library: Library, seed: int) -> StoredModel:
        from harmonium.demo import story

        self._head("Learning", "harmonium train")
        with bar(self._console, "training") as progress:
            model = story.train_model(library, seed=seed, progress=progress)
        self._say(_learnt(model.report))
        return model

    def tag(self, library: Library, model: StoredModel) -> None:
        from harmonium.demo import story

        self._head("Tagging", "harmonium tag")
        with bar(self._console, "tagging") as progress:
            n = story.tag_rest(library, model, progress=progress)
        self._say(f"{n} tracks have a probability for each of {len(model.vocabulary)} tags.")

    def score(self, music: Music, model: StoredModel, scored: Scored) -> None:
        from harmonium.demo.showing import tag_scores

        self._head("How good is that?", "the half that nobody tagged, against the truth")
        table = _table("Tag", "Learnt from", "AUC")
        for one in tag_scores(model, scored)[:TAGS_SHOWN]:
            table.add_row(one.tag, str(one.examples), f"{one.auc:.2f}")
        self._console.print(table)
        text = Text.assemble(
            "Mean AUC of all ",
            f"{len(scored.tags)} tags: ",
            (f"{scored.auc.mean:.3f}", "bold"),
            " (0.5 is chance, 1 is perfect)",
        )
        self._say(text)
        self._console.print()
        self._console.print(_guesses(music, scored))

    def search(self, library: Library, query: str) -> SearchResult:
        from harmonium.demo import story

        self._head("Searching", f"harmonium search '{query}'")
        found = story.search_music(library, query)
        table = _table("Track", "Probability")
        for hit in found.hits:
            by = "people say so" if hit.certain else percent(hit.probability)
            table.add_row(Text(hit.track.name), by)
        self._console.print(table)
        return found

    def show(
        self,
        music: Music,
        model: StoredModel,
        scored: Scored,
        query: str,
        found: SearchResult,
        n_said: int,
    ) -> None:
        from harmonium.demo.showing import write_page

        self._head("Look and listen", "open this page in a browser")
        page = write_page(music, model, scored, query, found, n_said=n_said)
        self._say(Text(str(Path(page).absolute()), style="bold"))

    def end(self, seconds: float) -> None:
        from harmonium.demo.showing import NEXT_STEPS
        from harmonium.demo.story import LIBRARY

        self._console.print()
        self._say(f"Done in {seconds:.0f} s. Next, with your own music:")
        width = max(len(command) for command, _ in NEXT_STEPS)
        for command, why in NEXT_STEPS:
            self._say(Text.assemble("  ", (f"{command:<{width}}", "cyan"), f"   # {why}"))
        library = self._folder / LIBRARY
        self._say(f"To go on with this collection instead, add --library {library} to a command.")

    def _head(self, title: str, how: str) -> None:
        self._number += 1
        self._console.print()
        self._say(Text.assemble((f"{self._number}. {title}", "bold"), "   ", (how, "dim")))

    def _say(self, message: str | Text) -> None:
        say(self._console, message)


def _learnt(report: dict[str, Any]) -> str:
    n_learnt = sum(tag["learnt"] for tag in report["tags"])
    words = "smoothed tags" if report["smoothed"] else "the tags as they were given"
    tried = f" Of smoothed and raw tags, {words} did better." if report["smoothing_tried"] else ""
    return (
        f"{len(report['tags'])} tags have enough examples, {n_learnt} of them can be told from "
        f"chance; mean AUC {report['mean_auc']:.3f} against what the three say of tracks that were "
        f"held out.{tried}"
    )


def _guesses(music: Music, scored: Scored) -> Table:
    from harmonium.demo.showing import best_guesses

    table = _table("Track", "Its likeliest tags (✓ true of it)")
    step = max(1, len(scored.rows) // TRACKS_SHOWN)
    for i in range(0, len(scored.rows), step)[:TRACKS_SHOWN]:
        clip = music.collection.clips.row(int(scored.rows[i]), named=True)
        guesses = [
            Text.assemble(f"{guess.tag} {percent(guess.probability)}", (" ✓" * guess.true, "green"))
            for guess in best_guesses(scored, i)[:GUESSES_SHOWN]
        ]
        table.add_row(Text(f"{clip['artist']} - {clip['title']}"), Flow(guesses))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        right = column in ("Learnt from", "AUC", "Probability")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table
