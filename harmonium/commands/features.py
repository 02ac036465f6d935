"""`harmonium features`: the features of many files, as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harmonium.commands.exit_codes import IN_PART, INTERRUPTED, NOTHING_DONE
from harmonium.commands.listing import printable, say

if TYPE_CHECKING:
    from harmonium.audio.audio_files import AudioFiles
    from harmonium.audio.extraction import Extraction, UnusableFile
    from harmonium.audio.extractors import Extractor

MOST_SHOWN = 30
"""Files that the table of failures shows."""


def features(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            show_default=False,
            help="Files of music, and folders that are searched for them to the bottom.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="The table to write: .parquet, .csv or .npz.",
        ),
    ],
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor",
            "-e",
            metavar="NAME",
            help="paper (timbre and rhythm, 389 numbers), timbre, rhythm, or one that another "
            "package provides.",
        ),
    ] = "paper",
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S", show_default=False, help="Length of the clip; by default the extractor's."
        ),
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            show_default=False,
            help="Where the clip begins; by default it is the middle of the file.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            show_default=False,
            help="Processes to work with; by default one for each core.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="processes, serial (no other process), or the address of a Dask scheduler, "
            "tcp://HOST:PORT.",
        ),
    ] = "processes",
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            show_default=False,
            help="Where features are kept for the next time; by default the folder that "
            "HARMONIUM_CACHE names, then the system's folder for caches.",
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use features kept before nor keep any.")
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="S", help="Seconds after which a file is given up, as its decoder hangs."
        ),
    ] = 300,
    failures: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="A CSV file to write the files to that could not be used, with the reasons.",
        ),
    ] = None,
) -> None:
    """Compute the features of files of music, and write them as a table.

    Works on all cores. What was computed is kept by the content of the
    files: a second run takes it from there, also after an interruption,
    and also of files that were renamed. Files that cannot be used are
    listed at the end.

    [dim]Example:[/dim]  harmonium features ~/Music -o features.parquet

    [dim]Exit codes:[/dim]  0 all files are in the table; 1 some could not be
    used, the others are; 2 nothing was written; 130 interrupted.
    """
    from harmonium.errors import HarmoniumError
    from harmonium.user_folders import user_cache_folder

    folder = None if no_cache else cache or user_cache_folder()
    job = _Job(output, failures, jobs, engine, folder, start, time_limit)
    try:
        code = job.run(paths, extractor, seconds)
    except HarmoniumError as error:
        _complain(str(error))
        code = NOTHING_DONE
    raise typer.Exit(code)


@dataclass
class _Job:
    """One call of the command."""

    output: Path
    failures: Path | None
    jobs: int | None
    engine: str
    cache: Path | None
    start: float | None
    time_limit: float

    def run(self, paths: list[Path], name: str, seconds: float | None) -> int:
        """The exit code."""
        from harmonium.audio.audio_files import find_audio
        from harmonium.audio.feature_files import check_output, check_place

        check_output(self.output)
        if self.failures is not None:
            check_place(self.failures)
        extractor = _extractor(name, seconds)
        with _errors().status("Looking for files of music"):
            found = find_audio(paths)
        if not found.files and not found.unreadable:
            _complain(
                "There is no file of music in the folders named. Files are found by their "
                "endings (.mp3, .flac, .wav and so on); name a file of another ending itself."
            )
            return NOTHING_DONE
        began = time.monotonic()
        extraction = self._extract(found, extractor)
        return self._conclude(extraction, found, time.monotonic() - began)

    def _extract(self, found: AudioFiles, extractor: Extractor) -> Extraction:
        from harmonium.audio.extraction import extract_files

        with _bar(len(found.files)) as bar:
            try:
                return extract_files(
                    found.files,
                    extractor=extractor,
                    jobs=self.jobs,
                    engine=self.engine,
                    cache=self.cache,
                    progress=bar.update,
                    start=self.start,
                    time_limit=self.time_limit,
                )
            except KeyboardInterrupt:
                bar.stop()
                self._say_stopped(bar.done, len(found.files))
                raise typer.Exit(INTERRUPTED) from None

    def _say_stopped(self, done: int, total: int) -> None:
        if self.cache is None:
            kept = "Nothing was kept, for lack of a cache."
        else:
            kept = f"They are kept in {_shown(self.cache)}; the same command goes on from there."
        say(_errors(), f"Stopped after {done:,} of {total:,} files. {kept}")

    def _conclude(self, extraction: Extraction, found: AudioFiles, seconds: float) -> int:
        """Write the files, say what was done, and give the exit code."""
        from harmonium.audio.extraction import UnusableFile
        from harmonium.audio.feature_files import write_failures, write_features

        failed = [UnusableFile(*pair) for pair in found.unreadable.items()] + [*extraction.failures]
        if self.failures is not None:
            write_failures(self.failures, failed)
        if failed:
            _report(failed)
        if not extraction.paths:
            _complain("None of the files could be used; nothing was written.")
            return NOTHING_DONE
        write_features(self.output, extraction)
        say(Console(), _summary(extraction, len(failed), self.output, seconds))
        return IN_PART if failed else 0


def _extractor(name: str, seconds: float | None) -> Extractor:
    from dataclasses import replace

    from harmonium.audio.extractors import get_extractor

    extractor = get_extractor(name)
    return extractor if seconds is None else replace(extractor, seconds=seconds)


class _Bar:
    """The progress on the screen."""

    def __init__(self, show: Callable[[int], None], stop: Callable[[], None]) -> None:
        self.done = 0
        self.stop = stop
        self._show = show
        self._shown_at = 0.0

    def update(self, done: int, total: int) -> None:
        """Files done; shown ten times a second, as from the cache come thousands."""
        self.done = done
        now = time.monotonic()
        if now - self._shown_at > 0.1 or done == total:
            self._show(done)
            self._shown_at = now


@contextmanager
def _bar(total: int) -> Iterator[_Bar]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )

    class Rate(ProgressColumn):
        """Files per second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} files/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    console = _errors()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as p:
        task = p.add_task("listening", total=total)
        yield _Bar(lambda done: p.update(task, completed=done), p.stop)


def _summary(extraction: Extraction, n_failed: int, output: Path, seconds: float) -> str:
    n = len(extraction.paths)
    parts = [
        f"{n:,} {'file' if n == 1 else 'files'}, {extraction.features.shape[1]:,} features each: "
        f"{_shown(output)}"
    ]
    if extraction.n_cached:
        parts.append(f"{extraction.n_cached:,} from the cache")
    if n_failed:
        parts.append(f"{n_failed:,} could not be used")
    return f"{'; '.join(parts)}; {seconds:.1f} s"


def _report(failed: list[UnusableFile]) -> None:
    """The files that could not be used: a table for people, a line each for programs."""
    console = _errors()
    if console.is_terminal:
        console.print(_failure_table(failed))
        return
    for failure in failed:
        say(console, f"{_shown(failure.path)}: {printable(failure.reason)}")


def _failure_table(failed: list[UnusableFile]) -> Table:
    table = Table(
        title=f"{len(failed):,} could not be used",
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("File", overflow="fold")
    table.add_column("Reason", overflow="fold")
    for failure in failed[:MOST_SHOWN]:
        table.add_row(Text(_shown(failure.path)), Text(printable(failure.reason)))
    if len(failed) > MOST_SHOWN:
        rest = f"and {len(failed) - MOST_SHOWN:,} more; --failures FILE writes all of them"
        table.caption, table.caption_justify = Text(rest), "left"
    return table


def _errors() -> Console:
    return Console(file=sys.stderr)


def _complain(message: str) -> None:
    say(_errors(), Text.assemble(("Error: ", "red"), printable(message)))


def _shown(path: str | Path) -> str:
    """A path as it can be printed: nothing in it acts on the terminal."""
    from harmonium.audio.feature_files import readable

    return printable(readable(path))
